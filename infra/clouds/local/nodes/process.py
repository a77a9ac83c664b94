"""A node that is only a process: an SSH server on a loopback address, with a home of its own. Needs no privileges.

It runs as the calling user, so it isolates nothing from that user; it can be reached, configured and lost like a
machine. Its system paths lie below its own folder (the handover's `prefix`).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from pathlib import Path

from infra.clouds.local.nodes import processes, site, sweep
from infra.clouds.local.nodes.errors import LocalError
from infra.clouds.local.nodes.site import NodeSpec

SSHD = Path("/usr/sbin/sshd")  # it refuses to start by a relative name
SFTP = ("/usr/lib/openssh/sftp-server", "/usr/libexec/openssh/sftp-server", "/usr/lib/ssh/sftp-server")
START_SECONDS = 15.0
ALIVE_SECONDS = 20.0  # a server whose process runs is only slow: on a busy computer its banner can take seconds

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

# Any program of this computer may connect. Connections that never log in are dropped soon, and the limit is higher than
# a few hundred of them (sshd_config(5)).
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
    """Starts the node's server; an earlier one of its name or address is removed. Raises LocalError."""
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
    """Sets the authorized keys, for the next login."""
    (spec.service / "authorized_keys").write_text(spec.keys)


def is_alive(spec: NodeSpec) -> bool:
    """True if the node's own server runs and answers."""
    pid = processes.recorded(spec.service / "pid")
    running = pid is not None and processes.is_running(spec.folder, pid)
    return running and processes.answers(spec.address, spec.port, ALIVE_SECONDS)


def wait_for_server(spec: NodeSpec, has_ended: Callable[[], bool], log: Path, seconds: float) -> None:
    """Returns when the server answers. Raises LocalError with the end of the log when it will not."""
    answered = False

    def settled() -> bool:
        nonlocal answered
        answered = processes.answers(spec.address, spec.port)
        return answered or has_ended()

    processes.until(settled, seconds, pause=0.02)
    if answered:
        return
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    reason = lines[-1] if lines else "it printed no error"
    raise LocalError(f"{spec.name} does not answer on {spec.address}:{spec.port}: {reason}")


def sshd_options(binary: Path) -> str:
    """An option that only newer servers have, and need: frequent liveness probes would be penalised."""
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
    """Starts the server and waits for it."""
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # the privilege separation folder of a root sshd
    log = spec.service / "log"
    server = processes.start([SSHD, "-D", "-e", "-f", spec.service / "config"], {"PATH": os.defpath}, log)
    (spec.service / "pid").write_text(str(server.pid))
    wait_for_server(spec, lambda: server.poll() is not None, log, START_SECONDS)


def _sftp() -> str | None:
    return next((path for path in SFTP if Path(path).exists()), None)


def _is_locked(user: str) -> bool:
    """Without PAM, sshd rejects a user whose password is locked, as root's is on many systems."""
    if os.geteuid() != 0:
        return False  # and an unprivileged sshd cannot see that
    fields = (line.split(":") for line in Path("/etc/shadow").read_text().splitlines())
    return any(name == user and password.startswith("!") for name, password, *_ in fields)
