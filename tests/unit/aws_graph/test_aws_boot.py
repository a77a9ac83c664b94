"""How a node makes itself: its image, its user data, the bundle that it fetches."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, cast

import boto3
import pytest
from moto.server import ThreadedMotoServer
from rendered import inputs, script, the, trainer

from infra.clouds import bundle
from infra.graph import Graph

Rendered = Callable[[str], Graph]
USER_DATA_BYTES = 16_384  # EC2's limit, before base64
STAND_IN = '#!/bin/sh\necho "$0 $*" >>"$CALLS"\n'  # for what a test must not run
PYTHON = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$3/bin" && cp "$(dirname "$0")/apt-get" "$3/bin/pip" && cp "$(dirname "$0")/apt-get" "$3/bin/ansible-playbook"
"""


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadedMotoServer(port=0, verbose=False)
    server.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://{}:{}".format(*server.get_host_and_port()))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    yield
    server.stop()


def test_an_image_that_nobody_recorded_reads_as_its_public_name(graph_of: Rendered) -> None:
    image = inputs(graph_of("alone"), "LaunchTemplate", "dev-template")["imageId"]

    assert image == "resolve:ssm:/aws/service/canonical/ubuntu/server/24.04/stable/current/amd64/hvm/ebs-gp3/ami-id"


def test_user_data_is_a_script_within_the_limit_that_knows_its_bundle(graph_of: Rendered) -> None:
    text = script(trainer(graph_of("fabric")))
    boot = json.loads(text.split("<<'GPUFLEET'\n")[1].split("\nGPUFLEET\n")[0])

    assert len(text.encode()) < USER_DATA_BYTES
    assert boot["bundle"]["key"] == f"bundles/{boot['bundle']['sha256']}.tar"
    assert boot["bundle"]["bucket"] == "${own-bucket.bucket}"
    assert boot["handover"]["storage"][0]["source"] == "${storage-data-bucket.bucket}"
    assert boot["group"] == "trainer"


def test_the_script_is_sound_shell_and_sound_python(graph_of: Rendered) -> None:
    text = script(trainer(graph_of("fabric")))

    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0
    ast.parse(text.split("python3 - <<'GPUFLEET'\n")[1].split("\nGPUFLEET\n")[0])


def test_a_node_fetches_its_bundle_and_runs_the_playbook_on_itself(
    graph_of: Rendered, tmp_path: Path, s3: None
) -> None:
    graph = graph_of("fabric")
    uploaded = the(graph, "BucketObjectv2").inputs
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="own")
    client.upload_file(uploaded["source"]["path"], "own", uploaded["key"])

    started = boot(script(trainer(graph)).replace("${own-bucket.bucket}", "own"), tmp_path)

    assert started.returncode == 0
    (node,) = json.loads((tmp_path / "etc/gpufleet/handover.json").read_text())["nodes"]
    assert (node["group"], node["port"]) == ("trainer", 22)
    assert (tmp_path / "opt/gpufleet/bundle/playbooks/gpu_node.yml").is_file()
    calls = (tmp_path / "calls").read_text()
    assert "install --require-hashes --no-deps -r ansible.txt" in calls
    assert "ansible-playbook -i playbooks/inventory -e ansible_connection=local playbooks/gpu_node.yml" in calls


def test_the_bundle_locks_what_runs_the_playbook_and_nothing_else(graph_of: Rendered) -> None:
    with tarfile.open(the(graph_of("fabric"), "BucketObjectv2").inputs["source"]["path"]) as tar:
        lock = cast(IO[bytes], tar.extractfile("ansible.txt")).read().decode()

    pinned = [line.partition("==")[0] for line in lock.splitlines() if not line.startswith(" ")]
    assert {"ansible-core", "jinja2", "pyyaml", "cryptography", "cffi"} <= set(pinned)
    assert {"torch", "ansible-lint", "pulumi"}.isdisjoint(pinned)
    assert lock.count("--hash=sha256:") > len(pinned)


def test_a_node_refuses_a_bundle_that_is_another(graph_of: Rendered, tmp_path: Path, s3: None) -> None:
    graph = graph_of("fabric")
    client = boto3.client("s3", region_name="us-east-1")
    client.create_bucket(Bucket="own")
    client.put_object(Bucket="own", Key=the(graph, "BucketObjectv2").inputs["key"], Body=b"another")

    started = boot(script(trainer(graph)).replace("${own-bucket.bucket}", "own"), tmp_path)

    assert started.returncode == 1
    assert "is not what this node was started with" in (tmp_path / "var/log/gpufleet-boot.log").read_text()
    assert "ansible-playbook" not in (tmp_path / "calls").read_text()
    (check,) = json.loads((tmp_path / "var/lib/gpufleet/ready.json").read_text())["checks"]
    assert check["detail"] == f"the bundle fails: see {tmp_path}/var/log/gpufleet-boot.log"


def boot(text: str, root: Path) -> subprocess.CompletedProcess[bytes]:
    """Runs the script with its folders below `root`, and with stand-ins for what would change this computer."""
    for folder in ("/etc/gpufleet", "/opt/gpufleet", "/var/log", "/var/lib"):
        text = text.replace(folder, f"{root}{folder}")
    stand_ins = root / "bin"
    stand_ins.mkdir()
    for name, content in {"apt-get": STAND_IN, "python3": PYTHON.format(python=sys.executable)}.items():
        (stand_ins / name).write_text(content)
        (stand_ins / name).chmod(0o755)
    (root / "var/log").mkdir(parents=True)
    path = f"{stand_ins}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "CALLS": str(root / "calls")}
    return subprocess.run(["bash"], input=text.encode(), env=environment, check=False)


def test_the_bundle_is_the_same_for_the_same_files(tmp_path: Path) -> None:
    for order in (("a.yml", "b.yml"), ("b.yml", "a.yml")):
        folder = tmp_path / order[0] / "playbooks"
        folder.mkdir(parents=True)
        (folder.parent / "requirements.txt").write_text("")
        for name in order:
            (folder / name).write_text(name)

    first, second = (bundle.packed(tmp_path / name) for name in ("a.yml", "b.yml"))

    assert first == second
    with tarfile.open(fileobj=io.BytesIO(first)) as tar:
        assert tar.getnames() == ["playbooks/a.yml", "playbooks/b.yml", "requirements.txt", "ansible.txt"]


def test_the_bundle_that_is_uploaded_has_the_content_of_its_name(root: Path, graph_of: Rendered) -> None:
    uploaded = the(graph_of("fabric"), "BucketObjectv2").inputs

    kept = Path(uploaded["source"]["path"])

    assert uploaded["key"] == f"bundles/{hashlib.sha256(kept.read_bytes()).hexdigest()}.tar"
    assert kept.is_relative_to(root)
