"""Set-up of the project on this computer: `python3 -m tools.setup`, run by `make demo` and `make test`.

What is installed already is only checked: a second run takes less than a second. It may be interrupted at any time; the
next run continues with what is complete.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tools.apart import peers_phase, policy_pack_phase
from tools.control_plane import control_plane_phase
from tools.controllers import controllers_phase
from tools.engine import engine_phase
from tools.environment import environment_phase, fitting_python, python_phase
from tools.phases import PhaseError, Table, say
from tools.system import machines_phase, ssh_phase

INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> int:
    """Returns 0 when all phases are done, 1 when one failed, 130 when interrupted."""
    options = parser().parse_args(arguments)
    other = fitting_python()
    if other is not None:
        os.execv(other, [other, "-m", "tools.setup", *(sys.argv[1:] if arguments is None else arguments)])
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    root = repository()
    table = Table(sys.stderr if options.json else sys.stdout)
    try:
        with alone(root):
            pack = options.tests or options.policy_pack
            code = phases(
                root,
                table,
                tests=options.tests,
                policy_pack=pack,
                peers=options.peers,
                controllers=options.controllers,
            )
            text = table.save(root / ".gpufleet" / "setup.json")
    except KeyboardInterrupt:
        say(
            "\nset-up interrupted: run it again to go on"
            if sys.stdout.isatty()
            else "set-up interrupted: run it again to go on"
        )
        return INTERRUPTED
    if options.json:
        print(text, end="")
    return code


def repository() -> Path:
    """The checkout this file is in."""
    return Path(__file__).resolve().parents[1]


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        prog="python3 -m tools.setup",
        description="Makes .venv from the lock, finds or builds the Pulumi engine, and looks for OpenSSH.",
        epilog="Writes .gpufleet/engine (path of the engine) and .gpufleet/setup.json (phases and their times).",
    )
    options.add_argument("--policy-pack", action="store_true", help="also the environment of infra/policy_pack")
    options.add_argument("--peers", action="store_true", help="also the environment of tools/peers")
    options.add_argument(
        "--controllers", action="store_true", help="also the controllers of TrainJob and JobSet, for their drill"
    )
    options.add_argument(
        "--tests",
        action="store_true",
        help="also what tests need: machine isolation, a control plane of Kubernetes, the policy pack",
    )
    options.add_argument("--json", action="store_true", help="print the phases as JSON; progress to standard error")
    return options


def phases(
    root: Path, table: Table, *, tests: bool, policy_pack: bool, peers: bool = False, controllers: bool = False
) -> int:
    """Runs every phase in order, up to the first that fails."""
    try:
        table.run("python", python_phase)
        table.run("environment", lambda: environment_phase(root, table.working))
        table.run("engine", lambda: engine_phase(root, table.working))
        table.run("ssh", lambda: ssh_phase(table.working))
        if tests:
            table.run("machines", lambda: machines_phase(table.working))
            table.run("kubernetes", lambda: control_plane_phase(root, table.working))
        if controllers:
            table.run("controllers", lambda: controllers_phase(root, table.working))
        if policy_pack:
            table.run("policy pack", lambda: policy_pack_phase(root, table.working))
        if peers:
            table.run("peers", lambda: peers_phase(root, table.working))
    except PhaseError:
        return 1
    return 0


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Waits until no other set-up of this checkout runs."""
    path = root / ".gpufleet" / "setup.lock"
    path.parent.mkdir(mode=0o700, exist_ok=True)
    with path.open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up of this checkout is running: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
