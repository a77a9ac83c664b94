"""Own machines: they are there or they are not; all that can be done about it are commands to their BMCs."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from infra.clouds.machines.plan import MachinePlan, MachinesPlan
from infra.handover import Handover
from ops.clouds import base
from ops.clouds.base import Discovered
from ops.console.phases import Phase
from ops.engine.state_repair import State
from ops.errors import CommandError
from ops.nodes.ssh import CONNECT_SECONDS

BOOT_SECONDS, BOOT_ASK_SECONDS = 900.0, 5.0  # firmware of an eight-GPU server trains memory for minutes
COMMAND_SECONDS = 60.0


class Cloud(base.Cloud):
    """The hosts of a stack file."""

    plan: MachinesPlan

    def discovered(self, told: Handover) -> Discovered:
        """The hosts of the handover; the file of known hosts is written from their keys."""
        lines = [f"{_known_as(node.address, node.port)} {node.host_key}\n" for node in told.nodes]
        file = self.project.root / told.access.known_hosts_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(lines))
        return Discovered(told, ())

    def delivered(self) -> None:
        """Wakes hosts that do not answer, where the stack says how. Raises CommandError for those that stay silent."""
        if (silent := self._silent()) and self.plan.power.wake:
            for host in silent:
                _command(self.plan.power.wake, host)
            limit = time.monotonic() + BOOT_SECONDS
            while (silent := self._silent()) and time.monotonic() < limit:
                time.sleep(BOOT_ASK_SECONDS)
        if silent:
            remedy = "look at its console" if self.plan.power.wake else "switch it on, or tell `power.wake` how to"
            raise CommandError(
                *(f"{host.name} does not answer on {host.address}:{host.port}: {remedy}" for host in silent)
            )

    def renewable(self, group: str) -> None:
        raise CommandError(
            f"--renew {group}: hosts of one's own are not bought; `up` sets up a mended one anew", code=2
        )

    def clear(self, state: State, phase: Phase) -> list[str]:
        """Puts the hosts to sleep, if the stack says how. Raises CommandError for those that stay, after all were
        asked."""
        if not (sleep := self.plan.power.sleep):
            return []
        awake = []
        for host in self.plan.nodes:
            phase.say(f"switching off {host.name}")
            try:
                _command(sleep, host)
            except CommandError as error:
                awake.append(str(error))
        if awake:
            raise CommandError(*awake, f"`gpufleet down {self.plan.stack}` asks all of them again")
        return []

    def _silent(self) -> list[MachinePlan]:
        with ThreadPoolExecutor(max_workers=32) as pool:
            answers = pool.map(_answers, self.plan.nodes)
            return [host for host, there in zip(self.plan.nodes, answers, strict=True) if not there]


def _answers(host: MachinePlan) -> bool:
    try:
        socket.create_connection((host.address, host.port), CONNECT_SECONDS).close()
    except OSError:
        return False
    return True


def _command(words: Sequence[str], host: MachinePlan) -> None:
    """Runs a command for one host's BMC, without a shell. Raises CommandError when it fails."""
    named = [word.replace("{bmc}", host.bmc or "").replace("{host}", host.name) for word in words]
    try:
        answer = subprocess.run(
            named, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=COMMAND_SECONDS
        )
    except OSError as error:
        raise CommandError(f"power: {words[0]}: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"power: {words[0]} for {host.name} took more than {COMMAND_SECONDS:.0f} s") from None
    if answer.returncode:
        said = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
        raise CommandError(f"power: {words[0]} for {host.name}: {said[-1]}")


def _known_as(address: str, port: int) -> str:
    return address if port == 22 else f"[{address}]:{port}"
