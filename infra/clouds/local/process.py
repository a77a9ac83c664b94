"""A node that is only a process: an SSH server on a loopback address, with a home of its own. Needs no rights.

It runs as the calling user, so it isolates nothing from that user; it is there to be reached, filled and lost like a
machine. Its system paths lie below its own folder (the handover's `prefix`).
"""

from __future__ import annotations

import os
import shlex
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from infra.clouds.local import processes, site, sweep
from infra.clouds.local.errors import LocalError
from infra.clouds.local.site import NodeSpec

SSHD = Path("/usr/sbin/sshd")  # it refuses to start by a relative name
SFTP = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
START_SECONDS = 15.0
ALIVE_SECONDS = 20.0  # a server whose process runs is only slow: on a busy computer its word can take seconds

CONFIG = """# Written by gpufleet.
ListenAddress {address}
Port {port}
HostKey "{host_key}"
PidFile none
AuthorizedKeysFile {authorized_keys}
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
AllowUsers {user}
UsePAM {pam}
StrictModes no
DisableForwarding yes
PermitUserRC no
PrintMotd no
PrintLastLog no
UseDNS no
{limits}
SetEnv "HOME={home}" "GPUFLEET_NODE={mark}"
Subsystem sftp {sftp}
ForceCommand {enter}
"""

# Any program of this computer may connect. Those that never log in are dropped soon, and the room that they take is
# wider than what a few hundred of them fill (sshd_config(5)).
LIMITS = """LoginGraceTime 20
MaxStartups 1000
MaxSessions 64"""

ENTER = """#!/bin/sh
# Every session of this node starts here: at the node's home, whatever the login's own home is.
cd "$HOME" || exit 1
[ -n "$SSH_ORIGINAL_COMMAND" ] || exec "${SHELL:-/bin/sh}" -l
exec "${SHELL:-/bin/sh}" -c "$SSH_ORIGINAL_COMMAND"
"""


def problems() -> list[str]:
    """What this computer lacks, one line each with its remedy."""
    if not SSHD.exists():
        return [f"there is no SSH server at {SSHD}: install the package openssh-server"]
    return [] if _sftp() else ["the SSH server has no sftp-server: install the package openssh-sftp-server"]


def create(spec: NodeSpec) -> None:
    """Starts the node's server; whatever was there under its name or address before is removed. Raises LocalError."""
    for name in {spec.name, site.holder(spec.site, spec.address, spec.port)} - {None}:
        sweep.remove_node(spec.site, name)
    site.prepare(spec)
    site.register(spec)
    (spec.folder / "home").mkdir()
    (spec.folder / "etc").mkdir()
    authorize(spec)
    enter = spec.service / "enter"
    enter.write_text(ENTER)
    enter.chmod(0o755)
    (spec.service / "config").write_text(_config(spec))
    _start(spec)


def authorize(spec: NodeSpec) -> None:
    """Says who may log in; holds for the next login."""
    (spec.service / "authorized_keys").write_text(spec.keys)


def is_alive(spec: NodeSpec) -> bool:
    """True if the node's own server runs and answers."""
    pid = processes.recorded(spec.service / "pid")
    running = pid is not None and processes.is_running(spec.folder, pid)
    return running and answers(spec.address, spec.port, ALIVE_SECONDS)


def is_free(address: str, port: int) -> bool:
    """True if a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError:
            return False
    return True


def answers(address: str, port: int, seconds: float = 2.0) -> bool:
    """True if an SSH server says its name there."""
    try:
        with socket.create_connection((address, port), seconds) as connection:
            connection.settimeout(seconds)
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def wait_for_server(spec: NodeSpec, has_ended: Callable[[], bool], log: Path, seconds: float) -> None:
    """Returns when the server answers. Raises LocalError with the end of the log when it will not."""
    limit = time.monotonic() + seconds
    while not answers(spec.address, spec.port):
        if has_ended() or time.monotonic() > limit:
            said = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
            why = said[-1] if said else "no word of the reason"
            raise LocalError(f"{spec.name} does not answer on {spec.address}:{spec.port}: {why}")
        time.sleep(0.02)


def sshd_options(binary: Path) -> str:
    """What only newer servers know, and need: one that is often asked whether it lives would stop answering."""
    return "PerSourcePenalties no\n" if b"persourcepenalties" in binary.read_bytes() else ""


def _config(spec: NodeSpec) -> str:
    place, service = spec.folder, spec.service
    return sshd_options(SSHD) + CONFIG.format(
        address=spec.address,
        port=spec.port,
        host_key=service / "host_key",
        authorized_keys=site.quoted(service / "authorized_keys"),
        user=site.login("process"),
        pam="yes" if _is_locked(site.login("process")) else "no",
        home=f"{place}/home",
        mark=f"{place}/",
        sftp=_sftp(),
        limits=LIMITS,
        enter=shlex.quote(str(service / "enter")),
    )


def _start(spec: NodeSpec) -> None:
    """In a session of its own and holding nothing of ours: it outlives the engine that asked for it."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # where a root sshd locks up its unprivileged half
    log = spec.service / "log"
    with log.open("w") as out:
        server = subprocess.Popen(
            [SSHD, "-D", "-e", "-f", spec.service / "config"],
            cwd="/",
            env={"PATH": os.defpath},
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
        )
    (spec.service / "pid").write_text(str(server.pid))
    wait_for_server(spec, lambda: server.poll() is not None, log, START_SECONDS)


def _sftp() -> str | None:
    return next((path for path in SFTP if Path(path).exists()), None)


def _is_locked(user: str) -> bool:
    """Without PAM, sshd turns away a user whose password is locked, as root's is on many systems."""
    if os.geteuid() != 0:
        return False  # and an unprivileged sshd cannot see that
    fields = (line.split(":") for line in Path("/etc/shadow").read_text().splitlines())
    return any(name == user and password.startswith("!") for name, password, *_ in fields)
