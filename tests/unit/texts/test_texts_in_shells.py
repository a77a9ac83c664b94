"""Texts in the lines that nodes' shells run, in OpenSSH's options, in user data and in pods: each arrives as it is.

All of it by the real programs: sh, bash, and ssh's own reader of options (`ssh -G`).
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from payloads import MARKS, payloads

from infra.clouds.alicloud.resources.nodes import user_data as alicloud
from infra.clouds.aws.resources.nodes import user_data as aws
from infra.clouds.kubernetes.plan.jobs import objects
from infra.clouds.kubernetes.plan.model import KubernetesPlan
from infra.clouds.machines.plan import MachinePlan
from infra.evaluate import decide
from infra.handover import Access, Environment, Group, Handover, Node, Store
from infra.spec import load
from ops.clouds.machines import cloud as machines
from ops.jobs import rendezvous
from ops.nodes import ssh

REPOSITORY = Path(__file__).resolve().parents[3]
TEXTS = [each for each in payloads() if "\0" not in each and len(each) < 200]  # no argument of a program holds a NUL
# Of files and folders. env(1) takes a program with a = in its path for a variable; no stack file's path has one.
NAMES = [each for each in TEXTS if not set("/=") & set(each) and each not in ("", ".", "..")]
RECORDER = """#!{python}
import json, os, sys
with open(os.environ.get("SAID", "/dev/stdout"), "w") as said:
    json.dump([sys.argv[1:], dict(os.environ)], said)
"""
PRINTER = '#!/bin/sh\nprintf "%s\\0" "$@" >"$SAID"\n'  # of its arguments, and much sooner than Python's


@pytest.fixture(autouse=True)
def marks() -> Iterator[Path]:
    """Where what was run leaves its mark; nothing may."""
    shutil.rmtree(MARKS, ignore_errors=True)
    Path(MARKS).mkdir()
    yield Path(MARKS)
    left = list(Path(MARKS).iterdir())
    shutil.rmtree(MARKS)
    assert left == []


@pytest.fixture
def recorder(tmp_path: Path) -> Path:
    """A program that prints its arguments and its environment."""
    program = tmp_path / "recorder"
    program.write_text(RECORDER.format(python=sys.executable))
    program.chmod(0o755)
    return program


def handover(python: str = "/p", key_file: str = "/k", known_hosts: str = "/h", prefix: str = "/") -> Handover:
    node = Node(name="n-1", group="n", address="10.0.0.1", port=22, host_key="k", prefix=prefix)
    return Handover(
        stack="trial",
        cloud="machines",
        region=None,
        access=Access(user="ops", key_file=key_file, known_hosts_file=known_hosts),
        nodes=(node,),
        groups=(Group(name="n", count=1, gpu=None, gpus_per_node=0, fabric="none"),),
        storage=(),
        store=Store(host="control", address="10.0.0.1"),
        environment=Environment(python=python),
    )


def shell(line: str) -> bytes:
    """What a node's login shell makes of a line that ssh has carried there."""
    return subprocess.run(["sh", "-c", line], stdout=subprocess.PIPE, check=True).stdout


def test_a_nodes_shell_hands_on_every_argument_and_variable_as_it_is(recorder: Path, tmp_path: Path) -> None:
    cluster = handover(python=str(recorder), prefix=str(tmp_path))
    variables = {f"GPUFLEET_{i}": text for i, text in enumerate(TEXTS)}

    answer = shell(rendezvous.python(cluster, cluster.nodes[0], TEXTS, variables))

    arguments, environment = json.loads(answer)
    assert arguments == TEXTS
    assert {name: environment[name] for name in variables} == variables
    print(f"{len(arguments) + len(variables)} texts through sh: 0 executed")


def test_a_nodes_shell_takes_any_folder_for_a_folder(tmp_path: Path) -> None:
    for i, name in enumerate(NAMES):
        folder = tmp_path / str(i) / name
        program = folder / "bin" / "python"
        program.parent.mkdir(parents=True)
        program.write_text('#!/bin/sh\necho "ran $PYTHONPATH"\n')
        program.chmod(0o755)
        (folder / "opt/gpufleet/package").mkdir(parents=True)
        (folder / "opt/gpufleet/current").symlink_to("package")
        cluster = handover(python=str(program), prefix=str(folder))

        said = shell(rendezvous.python(cluster, cluster.nodes[0], []))

        assert said.decode() == f"ran {folder}/opt/gpufleet/package\n"


def test_ssh_reads_any_path_as_a_path_and_no_option(tmp_path: Path) -> None:
    for text in (each for each in TEXTS if "\n" not in each and "\r" not in each and "${" not in each):
        key, known = f"/keys/{text}/key", f"/hosts of {text}/known"
        cluster = handover(key_file=key, known_hosts=known)

        command = ssh.ssh(cluster, cluster.nodes[0], text)
        answer = subprocess.run([command[0], "-G", *command[1:]], capture_output=True, text=True, check=False)

        read = {line.split()[0]: line.partition(" ")[2] for line in answer.stdout.split("\n") if line}
        assert answer.returncode == 0, (text, answer.stderr)
        assert read["hostname"] == "10.0.0.1"
        assert read["user"] == "ops"
        assert read["identityfile"].replace("%%", "%") == key, text
        assert read["userknownhostsfile"] == known, text


def test_the_way_through_another_node_carries_any_path(tmp_path: Path) -> None:
    (tmp_path / "ssh").write_text(PRINTER)
    (tmp_path / "ssh").chmod(0o755)
    said = tmp_path / "said"
    real = shutil.which("ssh")
    assert real is not None
    for text in (each for each in TEXTS if "\n" not in each and "\r" not in each and "${" not in each):
        cluster = handover(key_file=f"/keys/{text}/key")
        way = ssh.through(cluster, cluster.nodes[0])
        line = [real, "-F", "none", "-o", f"ProxyCommand={way}", "-o", "BatchMode=yes", "10.9.9.9"]

        subprocess.run(
            line, env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SAID": str(said)}, capture_output=True, check=False
        )

        arguments = said.read_text().split("\0")[:-1]
        assert arguments[-4:] == ["-W", "10.9.9.9:22", "--", "ops@10.0.0.1"]
        assert arguments == [*ssh.ssh(cluster, cluster.nodes[0], "")[1:-3], *arguments[-4:]]


@pytest.mark.parametrize("script", [aws.SCRIPT, alicloud.SCRIPT], ids=["aws", "alicloud"])
def test_user_data_puts_every_text_into_the_file_that_it_writes(script: str, tmp_path: Path) -> None:
    """The script's own lines, up to the end of the text between its two marks."""
    boot = {"group": "g", "handover": {text: [text] for text in payloads()}}
    written = re.search(r"^cat >/etc/gpufleet/boot\.json <<'GPUFLEET'\n@BOOT@\nGPUFLEET$", script, re.MULTILINE)
    assert written is not None
    lines = written[0].replace("/etc/gpufleet", str(tmp_path)).replace("@BOOT@", json.dumps(boot, sort_keys=True))

    answer = subprocess.run(["bash", "-c", lines], capture_output=True, text=True, check=True)

    assert (answer.stdout, answer.stderr) == ("", "")
    assert json.loads((tmp_path / "boot.json").read_text()) == boot


def test_a_command_of_ones_own_runs_word_by_word(
    recorder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAID", str(tmp_path / "said"))
    host = MachinePlan(
        name="n", group="g", address="10.0.0.1", port=22, host_key="k", rack=None, bmc="10.0.0.9", prefix="/"
    )

    machines._command([str(recorder), *TEXTS, "{bmc}"], host)

    assert json.loads((tmp_path / "said").read_text())[0] == [*TEXTS, "10.0.0.9"]


def kubelet(argument: str) -> str:
    """What the kubelet makes of a container's argument (k8s.io/kubernetes/third_party/forked/golang/expansion)."""
    return re.sub(r"\$(\$|\(([^)]*)\))", lambda found: "$" if found[1] == "$" else f"<{found[2]}>", argument)


@pytest.mark.parametrize("stack", ["k8s-a100"])
def test_a_pod_gets_every_setting_and_the_job_file_as_they_are(stack: str) -> None:
    plan = decide(load(REPOSITORY, stack))
    assert isinstance(plan, KubernetesPlan)
    text, settings = "".join(TEXTS), [part for each in TEXTS for part in ("--set", each)]

    made = list(objects(plan.tenant, plan.groups[0], plan.storage, "gpt-1", text, settings, "key"))

    command = made[-1]["spec"]["trainer"]["command"]
    ran = subprocess.run(
        ["sh", "-c", 'for each; do printf "%s\\0" "$each"; done', *map(kubelet, command[3:])],
        capture_output=True,
        check=True,
    )
    assert ran.stdout.decode().split("\0")[:-1] == settings
    assert made[0]["data"]["job.toml"] == text
    assert "$" not in "".join(map(kubelet, command[2:3])).replace("$", "")
