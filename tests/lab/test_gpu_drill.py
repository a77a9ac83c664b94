"""The long campaign on machines with stand-in GPUs: every scenario survives every damage."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from gpu_machines import GpuMachine, Hardware, lacking, running

pytestmark = [pytest.mark.drill, pytest.mark.timeout(3600)]

SCENARIOS = {
    "a100": Hardware(model="a100", gpu="A100-SXM4-80GB", count=8, distribution="debian12"),
    "v100": Hardware(model="v100", gpu="V100-SXM2-32GB", count=8, distribution="ubuntu2404"),
    "b200": Hardware(model="b200", gpu="B200", count=8, distribution="ubuntu2404"),
    "h100": Hardware(model="h100", gpu="H100-SXM5-80GB", count=8, distribution="ubuntu2404"),
    "t4": Hardware(model="t4", gpu="T4", count=1, distribution="debian12"),
}
OLD, NEW = "580.126.20", "595.91.07"
BY_HAND = "apt-get -qq -y --allow-downgrades --allow-change-held-packages -o APT::Ignore-Hold=true"


@pytest.fixture(scope="module", params=SCENARIOS)
def node(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GpuMachine]:
    """A configured node of each scenario."""
    folder = tmp_path_factory.mktemp(request.param)
    if reason := lacking(folder):
        pytest.skip(reason)
    with running(folder, SCENARIOS[request.param]) as found:
        played = found.play()
        assert played.code == 0, played.output
        yield found


def is_ubuntu(node: GpuMachine) -> bool:
    return (node.root / "etc/lsb-release").exists()


def revision(node: GpuMachine) -> str:
    return "ubuntu1" if is_ubuntu(node) else ""


def put(path: str, text: str) -> Callable[[GpuMachine], None]:
    """A damage: the file has this text."""

    def damage(node: GpuMachine) -> None:
        (node.root / path).write_text(text)

    return damage


def does(line: str) -> Callable[[GpuMachine], None]:
    """A damage: somebody runs this as root."""

    def damage(node: GpuMachine) -> None:
        node.run(line)

    return damage


def library_removed(node: GpuMachine) -> None:
    node.run(f"{BY_HAND} remove {'libnvidia-compute-580' if is_ubuntu(node) else 'nvidia-driver-cuda'}")


def other_version(node: GpuMachine) -> None:
    name = "nvidia-fabricmanager" if (node.root / "usr/bin/nv-fabricmanager").exists() else "nvidia-modprobe"
    node.run(f"{BY_HAND} install {name}={OLD}-1{revision(node)}")


def other_flavour(node: GpuMachine) -> None:
    node.run(f"{BY_HAND} install {module(node, '-580', 'open' if flavour(node) == 'proprietary' else 'proprietary')}")


def flavour(node: GpuMachine) -> str:
    return (node.root / "usr/share/standin/module").read_text().split()[1]


def module(node: GpuMachine, suffix: str, kind: str) -> str:
    """The package of a kernel module; Ubuntu's names end with the branch up to 580."""
    end = "-open" if kind == "open" else ""
    return f"nvidia-dkms{suffix}{end}" if is_ubuntu(node) else f"nvidia-kernel{end}-dkms"


DAMAGES: dict[str, Callable[[GpuMachine], None]] = {
    "package-removed": library_removed,
    "other-version-by-hand": other_version,
    "other-flavour-by-hand": other_flavour,
    "holds-lifted": does("apt-mark unhold $(apt-mark showhold)"),
    "dcgm-3-installed": does(f"{BY_HAND} install datacenter-gpu-manager=1:3.3.9-1"),
    "services-stopped": does("systemctl disable --now nvidia-dcgm nvidia-persistenced docker"),
    "pin-edited": put("etc/apt/preferences.d/gpufleet-nvidia", "Package: *\nPin: version 610.*\nPin-Priority: 1001\n"),
    "blacklist-removed": does("rm /etc/apt/apt.conf.d/52gpufleet-nvidia"),
    "key-replaced": put("usr/share/keyrings/gpufleet-cuda.gpg", "no key"),
    "foreign-source": put(
        "etc/apt/sources.list.d/cuda-debian12-x86_64.list",
        "deb [signed-by=/usr/share/keyrings/other.gpg] http://10.213.53.1:8099/compute/cuda/repos/debian12/x86_64/ /\n",
    ),
    "containers-edited": put("etc/cdi/nvidia.yaml", "cdiVersion: 0.7.0\n"),
    "settings-edited": put("etc/docker/daemon.json", "{}"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damage_is_healed_by_one_run(node: GpuMachine, damage: str) -> None:
    DAMAGES[damage](node)

    healed = node.play()

    assert healed.code == 0, healed.output
    assert healed.changed > 0
    assert node.ready["ready"]


def test_a_driver_of_another_branch_gives_way_and_the_node_is_rebooted_only_when_allowed(node: GpuMachine) -> None:
    library = ["libnvidia-compute"] if is_ubuntu(node) else ["nvidia-driver-cuda", "libnvidia-ml1"]
    names = [*library, module(node, "", flavour(node)), "nvidia-persistenced"]
    node.run(f"{BY_HAND} install {' '.join(f'{name}={NEW}-1{revision(node)}' for name in names)}")
    node.run("rm /run/standin/loaded; nvidia-smi -L", fails=True)  # as a reboot would

    refused = node.play(nvidia_driver_may_reboot=False)
    allowed = node.play()

    assert f"{NEW} is loaded and 580.178.04 installed: drain the node and" in refused.output
    assert allowed.code == 0, allowed.output
    assert node.ready["ready"]


def test_packages_do_not_change_under_a_running_job(node: GpuMachine) -> None:
    node.run("apt-mark unhold nvidia-modprobe")
    node.run(f"{BY_HAND} install nvidia-modprobe={OLD}-1{revision(node)}")
    node.computes(1)

    refused = node.play()
    node.computes()
    healed = node.play()

    assert "busy: process 1 computes on a GPU, and nvidia-modprobe must change" in refused.output
    assert healed.code == 0, healed.output


def test_after_all_of_it_a_run_changes_nothing(node: GpuMachine) -> None:
    again = node.play()

    assert (again.code, again.changed) == (0, 0), again.output
