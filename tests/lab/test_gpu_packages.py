"""What apt is told and what it must refuse, on a configured node with one T4: the traps of NVIDIA's repository."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import apt_repository
import nvidia_packages
import pytest
from gpu_machines import Boot, GpuMachine, Hardware
from repositories import fill

pytestmark = pytest.mark.drill

T4 = Hardware(model="t4", gpu="T4", count=1, distribution="debian12")
HELD_SECONDS = 10  # after the play has asked for them
PIN, KEYRING = "/etc/apt/preferences.d/gpufleet-nvidia", "/usr/share/keyrings/gpufleet-cuda.gpg"


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(T4) as (found,):
        played = found.play()
        assert played.code == 0, played.output
        yield found


def simulated(node: GpuMachine, *wanted: str) -> set[str]:
    """The versions of NVIDIA's packages that apt would install on a machine that has none."""
    told = node.run(
        f"apt-get --simulate --no-install-recommends -o Dir::State::status=/dev/null install {' '.join(wanted)}"
    )
    rows = (line.split() for line in told.splitlines() if line.startswith("Inst"))
    return {row[2].strip("(") for row in rows if "nvidia" in row[1]}


def test_without_the_pin_an_exact_metapackage_brings_another_branch(node: GpuMachine) -> None:
    node.run(f"mv {PIN} /root/pin")
    try:
        assert simulated(node, "nvidia-open=580.178.04-1") > {"580.178.04-1"}
    finally:
        node.run(f"mv /root/pin {PIN}")


def test_with_the_pin_everything_is_of_one_version(node: GpuMachine) -> None:
    assert simulated(node, "nvidia-open") == {"580.178.04-1"}
    assert simulated(node, "nvidia-driver-cuda", "nvidia-kernel-open-dkms") == {"580.178.04-1"}


def test_the_name_that_brings_a_driver_along_cannot_be_installed_unasked(node: GpuMachine) -> None:
    assert "no installation candidate" in node.run("apt-get --simulate install cuda", fails=True)


def test_another_apt_that_reads_the_lists_is_waited_for(node: GpuMachine) -> None:
    """As the one that a machine starts by itself at its first boot."""
    node.run("apt-get -qq -y remove --allow-change-held-packages nvidia-modprobe")
    node.run("rm -rf /var/lib/apt/lists; mkdir -p /var/lib/apt/lists/partial")
    node.run(
        f"systemd-run --quiet python3 /usr/local/lib/standin/standin_apt.py {HELD_SECONDS} /var/lib/apt/lists/lock"
    )

    waited = node.play()

    assert waited.code == 0, waited.output


def tampered(node: GpuMachine) -> None:
    index = place(node) / "Packages"
    index.write_bytes(b"Package: evil\n" + index.read_bytes())
    index.with_suffix(".gz").write_bytes(gzip.compress(index.read_bytes()))


def signed_by_another(node: GpuMachine) -> None:
    key = apt_repository.Key("another")
    apt_repository.write(place(node), nvidia_packages.cuda("debian12"), key, "NVIDIA")
    key.close()


def expired(node: GpuMachine) -> None:
    (place(node) / "3bf863cc.pub").write_bytes(node.keys[0].expired())
    node.run(f"rm {KEYRING}")


def gone(node: GpuMachine) -> None:
    (place(node) / "InRelease").unlink()


def swapped_package(node: GpuMachine) -> None:
    for deb in place(node).glob("nvidia-modprobe_580.178.04*.deb"):
        deb.write_bytes(deb.read_bytes()[:-2] + b"xx")


def place(node: GpuMachine) -> Path:
    return node.repositories / "cuda/debian12/x86_64"


@pytest.mark.parametrize("harm", [tampered, signed_by_another, expired, gone, swapped_package])
def test_a_repository_that_is_not_as_signed_is_refused_and_the_next_run_heals(
    node: GpuMachine, harm: Callable[[GpuMachine], None]
) -> None:
    node.run("apt-get -qq -y remove --allow-change-held-packages nvidia-modprobe; apt-get clean")
    node.run("rm -rf /var/lib/apt/lists; mkdir -p /var/lib/apt/lists/partial")
    harm(node)

    refused = node.play()
    installed = node.run(r'dpkg-query -W -f "\${db:Status-Abbrev}" nvidia-modprobe', fails=True)
    fill(node.repositories, "debian12", node.keys)
    node.run(f"rm {KEYRING}")
    healed = node.play()

    assert refused.code != 0
    assert installed[1:2] != "i", "a package of that repository was taken all the same"
    assert healed.code == 0, healed.output
