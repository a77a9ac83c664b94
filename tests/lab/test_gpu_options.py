"""One node with every option on: what each role leaves works, and a second run changes nothing.

MUNGE, Slurm's commands, Open MPI and containerd are the distribution's own packages, fetched by this computer's apt.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apt_repository
import nvidia_packages
import pytest
from gpu_machines import GATEWAY, PORT, Boot, GpuMachine, Hardware
from ssh_hosts import Played, make_lock

from infra.handover import Storage

pytestmark = pytest.mark.drill

OSSFS = "2.0.7"
OSSFS_SHA256 = hashlib.sha256(nvidia_packages.ossfs(OSSFS).deb()).hexdigest()
BUCKET = Storage(
    name="oss", path="/oss", kind="bucket", source="a", client="ossfs", options=("ro",), checksum=OSSFS_SHA256
)
H100 = Hardware(
    model="h100",
    gpu="H100-SXM5-80GB",
    count=8,
    distribution="debian12",
    fabric="infiniband",
    cards=tuple(f"mlx5_{number}" for number in range(8)),
    storage=(BUCKET,),
)
REAL = ("munge", "slurm-client", "openmpi-bin", "libopenmpi-dev", "containerd", "python3-venv", "python3-packaging")
ENVIRONMENT = "/opt/gpufleet/venv/bin/python"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """All options, and the site's files that they ask for."""
    site = tmp_path_factory.mktemp("site")
    (site / "slurm.conf").write_text("ClusterName=site\nSlurmctldHost=control\n")
    (site / "munge.key").write_bytes(b"the key of the site" * 8)
    locks = {name: make_lock(site, name) for name in ("torch", "tensorflow")}
    for lock in locks.values():
        lock.write_text(lock.read_text().replace(site.as_uri(), "file:///srv/wheels"))
    return {
        "mounts_ossfs_source": f"http://{GATEWAY}:{PORT}/installers",
        "container_toolkit_engine": "containerd",
        "cuda_toolkit_profiler": True,
        "gpu_settings_clocks_mhz": [1980, 1980],
        "limits_kernel_more": {"net.core.somaxconn": 65535, "vm.nr_hugepages": 5120},
        "mpi_wanted": True,
        "slurm_client_configuration": str(site / "slurm.conf"),
        "slurm_client_munge_key": str(site / "munge.key"),
        "python_environment_lock": str(locks["torch"]),
        "python_environment_tensorflow": str(locks["tensorflow"]),
        "preflight_disk_gib": 0.1,
    }


@pytest.fixture(scope="module")
def node(boot: Boot, settings: dict[str, Any]) -> Iterator[GpuMachine]:
    with boot(H100) as (found,):
        apt_repository.on_disk(found.root, *REAL)
        wheels = found.root / "srv/wheels"
        wheels.mkdir()
        for wheel in Path(settings["python_environment_lock"]).parent.glob("*.whl"):
            (wheels / wheel.name).write_bytes(wheel.read_bytes())
        package = found.repositories / f"installers/ossfs2_{OSSFS}_linux_x86_64.deb"
        package.parent.mkdir(exist_ok=True)
        package.write_bytes(nvidia_packages.ossfs(OSSFS).deb())
        yield found


def play(node: GpuMachine, settings: dict[str, Any]) -> Played:
    own = {**node.site.handover, "environment": {"python": ENVIRONMENT, "shared": False}}
    return node.play(handover=own, doca_ofed_key=node.keys[2].fingerprint, **settings)


@pytest.fixture(scope="module")
def first(node: GpuMachine, settings: dict[str, Any]) -> Played:
    played = play(node, settings)
    assert played.code == 0, played.output
    return played


def test_the_node_is_ready_with_all_of_it(node: GpuMachine, first: Played) -> None:
    details = {check["name"]: check["detail"] for check in node.ready["checks"]}

    assert node.ready["ready"], node.reasons
    assert details["rdma"].startswith("8 ")
    assert "/oss" in details["mounts"]


def test_clocks_and_parameters_are_set_and_what_is_not_the_machines_own_is_named(
    node: GpuMachine, first: Played
) -> None:
    limits = json.loads((node.root / "etc/gpufleet/node.json").read_text())["limits"]
    parameters = (node.root / "etc/sysctl.d/90-gpufleet.conf").read_text().splitlines()

    assert node.run("cat /run/standin/clocks /proc/sys/net/core/somaxconn").split() == ["1980,1980", "65535"]
    assert "net.core.somaxconn = 65535" in parameters
    assert "vm.nr_hugepages" in limits["left_out"], "pages are the kernel's, which a container shares"
    assert not [line for line in parameters if line.startswith("vm.nr_hugepages")]


def test_doca_takes_the_place_of_the_kernels_own_driver(node: GpuMachine, first: Played) -> None:
    version = node.run("cat /sys/module/mlx5_core/version")

    assert version == node.run("modinfo -F version mlx5_core")
    assert {"doca-ofed", "mlnx-ofed-kernel-dkms"} <= set(node.run("apt-mark showhold").split())


def test_containerd_takes_the_devices_by_their_names(node: GpuMachine, first: Played) -> None:
    assert "enable_cdi = true" in node.run("cat /etc/containerd/config.toml")
    assert "/usr/lib/cni" in node.run("containerd config dump"), "the distribution's own settings must stay"
    assert node.run("systemctl is-active containerd") == "active"


def test_munge_speaks_with_the_sites_key_and_slurm_has_its_configuration(node: GpuMachine, first: Played) -> None:
    assert "Success" in node.run("munge --no-input | unmunge")
    assert node.run("stat -c %U:%a /etc/munge/munge.key") == "munge:400"
    assert "ClusterName=site" in node.run("cat /etc/slurm/slurm.conf")
    assert node.run("sinfo --version").startswith("slurm")


def test_programs_of_the_options_run(node: GpuMachine, first: Played) -> None:
    assert node.run("mpirun --allow-run-as-root --oversubscribe -n 2 echo in").split() == ["in", "in"]
    node.run("/opt/nvidia/nsight-systems-2025.3.2/bin/nsys")
    for name, folder in (("torch", "venv"), ("tensorflow", "tensorflow")):
        node.run(f'/opt/gpufleet/{folder}/bin/python -c "import {name}"')


def test_the_bucket_is_mounted_with_the_options_of_its_own_file(node: GpuMachine, first: Played) -> None:
    node.run("mountpoint --quiet /oss")

    assert node.run("stat -c %a /etc/gpufleet/ossfs-a.conf") == "600"
    assert (node.root / "var/lib/standin/content/a.options").read_text() == "--oss_bucket=a --ro"


def test_a_second_run_changes_nothing(node: GpuMachine, settings: dict[str, Any], first: Played) -> None:
    again = play(node, settings)

    assert (again.code, again.changed) == (0, 0), again.output


def test_clocks_that_are_no_longer_asked_for_are_the_drivers_again(
    node: GpuMachine, settings: dict[str, Any], first: Played
) -> None:
    freed = play(node, {**settings, "gpu_settings_clocks_mhz": []})
    left = node.run("cat /run/standin/clocks")
    again = play(node, settings)

    assert (freed.code, again.code) == (0, 0), freed.output + again.output
    assert (left, node.run("cat /run/standin/clocks")) == ("", "1980,1980")


def test_a_reset_leaves_nothing_of_ours(node: GpuMachine, first: Played) -> None:
    gone = node.play("reset.yml", reset_confirmed="gpus")
    left = node.run('find /etc /opt /usr /var/lib -name "*gpufleet*" -o -name "mount.ossfs2" | sort')

    assert gone.code == 0, gone.output
    assert left.split() == ["/etc/ssh/sshd_config.d/gpufleet.conf"]
    assert "cdi" not in node.run("cat /etc/containerd/config.toml")
    assert node.run("cat /run/standin/clocks") == ""
    assert node.run("systemctl restart containerd && systemctl is-active containerd munge").split() == ["active"] * 2
