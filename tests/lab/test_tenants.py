"""Tenants of a machine: none becomes another login, root, or the machine's role, and who is listed no longer is out."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import plants
import pytest
from gpu_machines import LINE_SECONDS, Boot, GpuMachine, Hardware
from ssh_hosts import Played, make_key

from infra.clouds.local.nodes.site import MACHINE_UID, MACHINE_USER

pytestmark = pytest.mark.in_order

HEAD = Hardware(model="t4", gpu="T4", count=0, distribution="debian12")
METADATA = ("169.254.169.254", "100.100.100.200", "fd00:ec2::254")
LOGINS = ("root", "ada", MACHINE_USER, "nobody")
SUBUID = "100500"  # what a tenant may be in a user namespace of its own
ATTEMPTS = 200
AT_ONCE = 4
# Answers on loopback, as a login; and counts how often a login is answered at a port, of so many times.
SERVE = """
import socket
with socket.create_server(("127.0.0.1", 0), backlog=500) as server:
    print(server.getsockname()[1], flush=True)
    while True:
        accepted, _ = server.accept()
        accepted.sendall(b"x")
        accepted.close()
"""
FETCH = """
import socket, sys
def fetched(port, seconds):
    with socket.socket() as s:
        s.settimeout(seconds)
        try:
            s.connect(("127.0.0.1", port))
            return s.recv(1) == b"x"
        except OSError:
            return False
print(sum(fetched(int(sys.argv[1]), float(sys.argv[3])) for _ in range(int(sys.argv[2]))))
"""
REACH = """
import socket, sys
for address in sys.argv[1:]:
    try:
        socket.create_connection((address, 80), 1).close()
        print(address)
    except OSError:
        pass
"""


def tenant(name: str, uid: int, *keys: Path) -> dict[str, Any]:
    public = [key.with_suffix(".pub").read_text().strip() for key in keys]
    return {"name": name, "uid": uid, "public_keys": public, "gpus": [], "cpu_percent": 100, "memory_gib": 1}


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("keys")
    return {name: make_key(folder / name) for name in ("ada", "ben", "cat", "old")}


@pytest.fixture(scope="module")
def node(boot: Boot, keys: dict[str, Path]) -> Iterator[GpuMachine]:
    """A machine with the tenants ada, ben and cat, where ada may log in with an old key, too."""
    with boot(HEAD) as (found,):
        addresses = " && ".join(f"ip address add {address} dev lo" for address in METADATA)
        found.run(f"{addresses} && systemd-run --quiet python3 -m http.server 80 --bind ::")
        ada, ben = tenant("ada", 2001, keys["ada"], keys["old"]), tenant("ben", 2002, keys["ben"])
        played = found.play(tenants_wanted=[ada, ben, tenant("cat", 2003, keys["cat"])])
        assert played.code == 0, played.output
        yield found


@pytest.fixture(scope="module")
def without_old(node: GpuMachine, keys: dict[str, Path]) -> tuple[int, list[str], Played]:
    """The old key and cat are listed no longer, and ada has planted ways out wherever a login may: how many things
    stood there, what of root's has changed, and how the run went."""
    assert logs_in(node, "cat", keys["cat"])
    before = plants.state(node)
    planted = plants.plant(node, "ada", plants.writable(node, "ada", MACHINE_USER))
    played = node.play(tenants_wanted=[tenant("ada", 2001, keys["ada"]), tenant("ben", 2002, keys["ben"])])
    return planted, plants.changed(before, plants.state(node)), played


def logs_in(node: GpuMachine, login: str, key: Path) -> bool:
    options = ["-F/dev/null", "-oBatchMode=yes", "-oIdentitiesOnly=yes", "-oIdentityAgent=none"]
    options += ["-oStrictHostKeyChecking=no", "-oUserKnownHostsFile=/dev/null"]
    command = ["ssh", *options, f"-i{key}", f"{login}@{node.address}", "true"]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode == 0


def as_logins(node: GpuMachine, program: str, *calls: tuple[object, ...]) -> list[list[str]]:
    """What a program prints, a line each, for each call side by side: of a login, with arguments."""
    (node.root / "srv/program.py").write_text(program)
    lines = [f"setpriv --reuid {login} --clear-groups python3 /srv/program.py" for login, *_ in calls]
    lines = [f"{line} {' '.join(map(str, arguments))}" for line, (_, *arguments) in zip(lines, calls, strict=True)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return [said.splitlines() for said in pool.map(node.run, lines)]


def served_by(node: GpuMachine, login: str) -> int:
    """The port on loopback that a login now listens on."""
    (node.root / "srv/serve.py").write_text(SERVE)
    out = f"/run/served-{login}"
    node.run(f"systemd-run --quiet --uid={login} --property=StandardOutput=file:{out} python3 /srv/serve.py")
    return int(node.run(f"until [ -s {out} ]; do sleep 0.1; done; cat {out}"))


def test_what_a_tenant_plants_leads_root_nowhere(without_old: tuple[int, list[str], Played]) -> None:
    planted, changed, played = without_old

    assert planted > 100
    assert changed == ["/etc/gpufleet/keys.d/ada", "/etc/gpufleet/keys.d/cat"]
    assert played.code == 0, played.output


def test_a_tenant_logs_in_with_the_keys_that_are_listed_and_no_others(
    node: GpuMachine, keys: dict[str, Path], without_old: tuple[int, list[str], Played]
) -> None:
    node.run("rm -rf /home/ben/.ssh; install -d -o ben -m 700 /home/ben/.ssh")
    for name in ("authorized_keys", "authorized_keys2"):
        (node.root / "home/ben/.ssh" / name).write_text(keys["old"].with_suffix(".pub").read_text())
    node.run("chown ben /home/ben/.ssh/*; chmod 600 /home/ben/.ssh/*")

    seen = {(login, key): logs_in(node, login, keys[key]) for login in ("ada", "ben") for key in keys}

    assert [pair for pair, is_in in seen.items() if is_in] == [("ada", "ada"), ("ben", "ben")]


def test_a_tenant_who_is_listed_no_longer_is_out(
    node: GpuMachine, keys: dict[str, Path], without_old: tuple[int, list[str], Played]
) -> None:
    assert (logs_in(node, "cat", keys["cat"]), logs_in(node, "ada", keys["ada"])) == (False, True)


def test_the_metadata_service_answers_root_and_no_login(node: GpuMachine) -> None:
    seen = as_logins(node, REACH, *((login, *METADATA) for login in LOGINS))

    assert seen == [list(METADATA) if login == "root" else [] for login in LOGINS]


def test_no_tenant_reaches_the_loopback_of_another_login(node: GpuMachine) -> None:
    ports = {login: served_by(node, login) for login in ("ada", "ben", MACHINE_USER, "root")}

    closed = [("ada", "ben"), ("ada", MACHINE_USER), *((SUBUID, b) for b in ("ada", "ben", MACHINE_USER))]
    once = [(a, b) for a in ("ada", "root", SUBUID) for b in ports]

    strangers = as_logins(node, FETCH, *((login, ports["ben"], ATTEMPTS, 0.02) for login in ("ada", MACHINE_USER)))
    fetched = as_logins(node, FETCH, *((a, ports[b], 1, 1 if (a, b) in closed else LINE_SECONDS) for a, b in once))

    assert strangers == [["0"], ["0"]]
    assert [pair for pair, count in zip(once, fetched, strict=True) if count == ["0"]] == closed


def test_the_packet_filters_are_loaded_at_a_boot(node: GpuMachine) -> None:
    wanted = ["gpufleet-metadata.service", "gpufleet-tenants.service"]
    at_boot = node.run("ls /etc/systemd/system/sysinit.target.wants").split()

    node.run(f"nft flush ruleset && systemctl restart {' '.join(wanted)}")

    assert set(wanted) <= set(at_boot)
    tables = node.run("nft list tables").splitlines()  # in the order of loading: both units start at once
    assert sorted(tables) == ["table inet gpufleet_metadata", "table inet gpufleet_tenants"]


def test_tenants_that_are_somebody_else_are_refused_in_a_line_each(node: GpuMachine, keys: dict[str, Path]) -> None:
    others = {
        (MACHINE_USER, 2005): f"name: {MACHINE_USER} is a login of this node that is no tenant of ours",
        ("root", 2006): "name: root is a login of this node",
        ("sudo", 2007): "name: sudo is a group of this node",
        ("eve", 0): "uid: 0 must be 1000 to 59999",
        ("eva", MACHINE_UID): f"uid: {MACHINE_UID} is {MACHINE_USER} on this node",
        ("ada", 2009): "uid: ada has 2001 on this node, not 2009",
        ("../../etc", 2010): "name: '../../etc' must be a small letter",
    }
    before = plants.state(node)

    refused = node.play(tenants_wanted=[tenant(name, uid, keys["old"]) for name, uid in others])

    assert refused.code != 0
    for number, reason in enumerate(others.values()):
        assert f"tenants_wanted[{number}].{reason}" in refused.output
    assert plants.changed(before, plants.state(node)) == []


def test_a_run_that_names_no_tenants_leaves_them_as_they_are(node: GpuMachine, keys: dict[str, Path]) -> None:
    unsaid = node.play()

    assert (unsaid.code, unsaid.changed) == (0, 0), unsaid.output
    assert logs_in(node, "ada", keys["ada"])
