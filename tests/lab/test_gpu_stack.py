"""A bare machine with eight A100s becomes a GPU node, and stays one. What it says when it is none: test_gpu_faults."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpu_machines import Boot, GpuMachine, Hardware
from ssh_hosts import Played

from infra.clouds.local.nodes.site import MACHINE_USER

PAGE = Path(__file__).parents[2] / "docs/gpu-node.md"
LAB_ONLY = ("/etc/ssh/sshd_config.d/gpufleet.conf",)  # what boots a machine of the lab
DRIVER = "580.178.04"
A100 = Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12")


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(A100) as (found,):
        yield found


@pytest.fixture(scope="module")
def first(node: GpuMachine) -> Played:
    """The machine's first run."""
    return node.play()


def test_a_bare_machine_becomes_a_gpu_node(node: GpuMachine, first: Played) -> None:
    assert first.code == 0, first.output
    details = {check["name"]: check["detail"] for check in node.ready["checks"]}
    assert details["versions"] == f"{DRIVER} open: on disk, loaded, library, fabric manager"
    assert details["gpus"] == "8 of compute capability 8.0"
    assert details["dcgm"] == "4.6.0, level 1 passed"
    assert node.ready["ready"]


def test_its_parameters_are_in_the_kernel_and_its_files_are_roots_but_for_those_of_jobs(
    node: GpuMachine, first: Played
) -> None:
    set_ = node.run("cat /etc/sysctl.d/90-gpufleet.conf /proc/sys/net/ipv4/tcp_mtu_probing")
    owners = node.run(
        "stat -c %U /etc/gpufleet/node.json /var/lib/gpufleet /var/lib/gpufleet/jobs /var/lib/gpufleet/runs"
    )

    assert set_.endswith("= 1\n1")
    assert owners.split() == ["root", "root", MACHINE_USER, "gpufleet-job"]


def test_every_package_of_the_driver_is_of_one_version_and_held(node: GpuMachine, first: Played) -> None:
    listed = node.run('dpkg-query -W -f "\\${Package} \\${Version} \\${db:Status-Want}\\n" "*nvidia*" nvlsm | sort')
    rows = [line.split() for line in listed.splitlines() if line.endswith((" hold", " install"))]

    assert {row[2] for row in rows} == {"hold"}
    assert {row[1] for row in rows if "container" not in row[0]} == {f"{DRIVER}-1"}


def table(heading: str) -> dict[str, str]:
    """A table of the page: what stands in the quotes of a row's first cell, and the rest of the row."""
    part = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ", 1) for line in part.splitlines() if line.startswith("| `")]
    return {name: rest for first, rest in rows for name in spread(re.findall("`([^`]+)`", first))}


def spread(names: list[str]) -> Iterator[str]:
    """`a-{b,c}` is `a-b` and `a-c`."""
    for name in names:
        before, brace, rest = name.partition("{")
        inside, _, after = rest.partition("}")
        yield from (before + word + after for word in inside.split(",")) if brace else (name,)


def test_the_page_names_every_file_that_is_ours_and_none_that_is_not_there(node: GpuMachine, first: Played) -> None:
    named = set(table("Files"))
    told = node.run(f'ls -d {" ".join(named)} 2>/dev/null; find /etc /usr /opt -name "*gpufleet*" -not -type d')
    there = set(told.split())
    ours = {path for path in there if path.startswith(("/etc", "/usr"))} - set(LAB_ONLY)
    units = {f"/etc/systemd/system/{unit}.service" for unit in table("Units and ports")}
    targets = ("multi-user", "sysinit")
    wanted = {f"/etc/systemd/system/{target}.target.wants/{Path(unit).name}" for unit in units for target in targets}

    optional = ("hardening", "with a storage role")  # what this node is not asked for
    assert named - there == {path for path, rest in table("Files").items() if any(part in rest for part in optional)}
    assert ours - named - units - wanted == set()


def test_the_page_names_every_unit_and_every_port(node: GpuMachine, first: Played) -> None:
    units = {unit for unit, rest in table("Units and ports").items() if "only with" not in rest}
    ports = {int(port) for rest in table("Units and ports").values() for port in re.findall(r"\b\d{4,5}\b", rest)}
    listening = [line.split()[1:4] for line in node.run("cat /proc/net/tcp /proc/net/tcp6").splitlines()]

    assert set(node.run(f"systemctl is-active {' '.join(units)}").split()) == {"active"}
    assert {int(local.rpartition(":")[2], 16) for local, _, state in listening if state == "0A"} - {22} <= ports


def test_dcgm_answers_root_alone_and_its_exporter_this_node_alone(node: GpuMachine, first: Played) -> None:
    node.run(
        "systemd-run --quiet python3 -m http.server 5555 --bind 127.0.0.1; until ss -ltn | grep -q :5555; do :; done"
    )
    ask = 'python3 -c "import socket; socket.create_connection((\\"127.0.0.1\\", {}), 2)" && echo in'
    seen = {
        (login, port): node.run(f"setpriv --reuid {login} --clear-groups {ask.format(port)}", fails=True).endswith("in")
        for login in ("root", MACHINE_USER)
        for port in (5555, 9400)
    }

    assert [at for at, answered in seen.items() if not answered] == [(MACHINE_USER, 5555)]
    with pytest.raises(TimeoutError):
        socket.create_connection((node.address, 9400), 1)


def test_the_page_names_the_versions_that_are_installed(node: GpuMachine, first: Played) -> None:
    locked = node.site.handover["groups"][0]["drivers"]["debian12"]
    page, installed = PAGE.read_text(), node.run('dpkg-query -W -f "\\${Version}\\n"')

    for part in ("driver", "cuda_toolkit", "dcgm", "container_toolkit", "dcgm_exporter"):
        assert locked[part] in page, part
        assert locked[part] in installed, part


def test_a_second_run_changes_nothing(node: GpuMachine, first: Played) -> None:
    second = node.play()

    assert (second.code, second.changed) == (0, 0), second.output
