"""Wrong settings of sshd and of the packet filter: each locks people out for a moment, and is taken back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from gpu_machines import CIDR, Boot, GpuMachine, Hardware

HEAD = Hardware(model="t4", gpu="T4", count=1, distribution="debian12")
SETTINGS = ("/etc/ssh/sshd_config.d/00-gpufleet.conf", "/etc/gpufleet/firewall.nft")
REVERT_SECONDS = 12
OPEN = {"hardening_ssh_from": [CIDR]}


def sshd(**options: object) -> dict[str, Any]:
    return {"hardening_sshd": options}


def rule(line: str) -> dict[str, Any]:
    """A rule in front of nothing: the login's network is let in no longer, then this."""
    return {"hardening_ssh_from": ["192.0.2.0/24"], "hardening_peers": [], "hardening_rules": [line]}


LOCKING: dict[str, dict[str, Any]] = {
    "a user that does not exist": sshd(AllowUsers="nobody-at-all"),
    "a group that does not exist": sshd(AllowGroups="nobody-at-all"),
    "our user denied": sshd(DenyUsers="ops"),
    "our group denied": sshd(DenyGroups="ops"),
    "keys refused": sshd(PubkeyAuthentication="no"),
    "keys elsewhere": sshd(AuthorizedKeysFile="/nowhere/%u"),
    "no keys at all": sshd(AuthorizedKeysFile="none"),
    "key types that nobody has": sshd(PubkeyAcceptedAlgorithms="ssh-dss-cert-v01@openssh.com"),
    "another port": sshd(Port=2222, ListenAddress="0.0.0.0:2222"),
    "loopback only": sshd(ListenAddress="127.0.0.1"),
    "no session": sshd(MaxSessions=0),
    "another shell": sshd(ForceCommand="/bin/false"),
    "another root": sshd(ChrootDirectory="/var/empty"),
    "nobody may begin to log in": sshd(MaxStartups="1:100:1", LoginGraceTime=1, AllowUsers="x"),
    "the wrong network": {"hardening_ssh_from": ["192.0.2.0/24"], "hardening_peers": []},
    "no network of this family": {"hardening_ssh_from": ["2001:db8::/32"], "hardening_peers": []},
    "only another port": rule("tcp dport 2222 accept"),
    "only another address": rule("ip daddr 192.0.2.1 accept"),
    "a reset": rule("tcp dport 22 reject with tcp reset"),
}
REFUSED: dict[str, dict[str, Any]] = {
    "a method that is disabled": sshd(AuthenticationMethods="password"),
    "an option that there is not": sshd(PermitRootLogins="no"),
    "a value that there is not": sshd(PermitRootLogin="perhaps"),
    "a key exchange that there is not": sshd(KexAlgorithms="no-such-exchange"),
    "no such word": {**OPEN, "hardening_rules": ["tcp dport 22 permit"]},
    "no such set": {**OPEN, "hardening_rules": ["ip saddr @operators accept"]},
}


@pytest.fixture(scope="module")
def node(boot: Boot) -> Iterator[GpuMachine]:
    with boot(HEAD) as (found,):
        yield found


def hardened(node: GpuMachine, **settings: Any) -> Any:
    """Plays the role alone."""
    return node.play("harden.yml", hardening_wanted=True, hardening_revert_seconds=REVERT_SECONDS, **settings)


def standing(node: GpuMachine) -> list[str]:
    """The settings that hold, and whether a trial goes on."""
    files = [node.root / path[1:] for path in (*SETTINGS, "/etc/systemd/system/gpufleet-revert.timer")]
    return [file.read_text() if file.exists() else "" for file in files]


@contextmanager
def logins_under(node: GpuMachine, before: list[str]) -> Iterator[list[str]]:
    """What logins of our own say while other settings than those of before hold."""
    said: list[str] = []
    over = threading.Event()

    def log_in() -> None:
        while not over.wait(0.2):
            if standing(node)[:2] != before[:2]:
                said.append(node.run("echo in", fails=True))

    thread = threading.Thread(target=log_in)
    thread.start()
    try:
        yield said
    finally:
        over.set()
        thread.join()


def logged_in(node: GpuMachine) -> str:
    """A login of its own, as soon as there is one."""
    until = time.monotonic() + 3 * REVERT_SECONDS
    while not (said := node.run("echo in", fails=True)).endswith("in") and time.monotonic() < until:
        time.sleep(1)
    return said


@pytest.mark.drill
def test_right_settings_stay_and_are_not_set_twice(node: GpuMachine) -> None:
    told = node.site.handover
    filtered = {**told, "access": {**told["access"], "ssh_from": [CIDR]}}

    first, second = hardened(node, handover=filtered), hardened(node, handover=filtered)

    assert first.code == 0, first.output
    assert (second.code, second.changed) == (0, 0), second.output
    assert f"saddr {CIDR} tcp dport 22 accept" in node.run("nft list table inet gpufleet")
    assert "maxauthtries 3" in node.run("sshd -T")
    assert standing(node)[2] == "", "the trial has not ended"


@pytest.mark.drill
def test_settings_hold_on_a_machine_that_nobody_has_logged_in_to_yet(node: GpuMachine) -> None:
    """Ubuntu starts sshd by a socket, at the first login: before it there is neither sshd nor its folder in /run."""
    tried = 'echo "{\\"/etc/ssh/sshd_config.d/00-gpufleet.conf\\": \\"LoginGraceTime 20\\"}"'
    trial = "python3 /usr/local/sbin/gpufleet-trial"
    node.run(
        f"systemctl stop ssh; rm -rf /run/sshd; {tried} | {trial} begin {REVERT_SECONDS} && {trial} keep; code=$?; "
        "systemctl start ssh; exit $code"
    )

    assert "logingracetime 20" in node.run("sshd -T")
    assert standing(node)[2] == "", "the trial has not ended"


@pytest.mark.drill
@pytest.mark.parametrize("wrong", LOCKING)
def test_settings_that_lock_people_out_do_so_for_a_moment_only(node: GpuMachine, wrong: str) -> None:
    before = standing(node)

    with logins_under(node, before) as said:
        played = hardened(node, **LOCKING[wrong])

    assert "nobody could log in anew, so it was taken back" in played.output
    assert [answer for answer in said if answer != "in"], f"they locked nobody out: {said}"
    assert logged_in(node) == "in"
    assert standing(node) == before


@pytest.mark.drill
@pytest.mark.parametrize("wrong", REFUSED)
def test_settings_that_sshd_or_nft_refuse_never_hold(node: GpuMachine, wrong: str) -> None:
    before = standing(node)

    played = hardened(node, **REFUSED[wrong])

    assert played.code != 0, played.output
    assert "nobody could log in anew" not in played.output
    assert logged_in(node) == "in"
    assert standing(node) == before


@pytest.mark.drill
def test_settings_whose_proof_never_comes_are_taken_back_after_a_reboot_too(node: GpuMachine) -> None:
    before = standing(node)
    node.run(
        'echo "{\\"/etc/ssh/sshd_config.d/00-gpufleet.conf\\": \\"DenyUsers ops\\"}" '
        f"| python3 /usr/local/sbin/gpufleet-trial begin {REVERT_SECONDS}; systemctl --no-block reboot",
        fails=True,
    )
    assert standing(node) != before

    assert logged_in(node) == "in"
    assert standing(node) == before
