"""Own machines: gpufleet does not create them; it can only run power commands for their BMCs."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from infra.clouds.machines.plan import MachinePlan, MachinesPlan
from infra.handover import Handover
from ops.clouds import base
from ops.clouds.base import Discovered
from ops.console.phases import Phase
from ops.engine import processes
from ops.engine.state_repair import State
from ops.errors import CommandError
from ops.nodes import ssh

BOOT_SECONDS, BOOT_POLL_SECONDS = 900.0, 5.0  # firmware of an eight-GPU server trains memory for minutes
COMMAND_SECONDS = 60.0


class Cloud(base.Cloud):
    """The hosts of a stack file."""

    plan: MachinesPlan

    def discovered(self, handover: Handover) -> Discovered:
        """The hosts of the handover; the file of known hosts is written from their keys."""
        lines = [f"{_known_as(node.address, node.port)} {node.host_key}\n" for node in handover.nodes]
        file = self.project.root / handover.access.known_hosts_file
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(lines))
        return Discovered(handover, ())

    def require_capacity(self) -> None:
        """Runs `power.wake` for hosts that do not answer. Raises CommandError for those that still do not."""
        if (silent := self._silent()) and self.plan.power.wake:
            for host in silent:
                _command(self.plan.power.wake, host)
            limit = self.clock.monotonic() + BOOT_SECONDS
            while (silent := self._silent()) and self.clock.monotonic() < limit:
                self.clock.sleep(BOOT_POLL_SECONDS)
        if silent:
            remedy = "look at its console" if self.plan.power.wake else "switch it on, or set `power.wake`"
            raise CommandError(
                *(f"{host.name} does not answer on {host.address}:{host.port}: {remedy}" for host in silent)
            )

    def renewable(self, group: str) -> None:
        raise CommandError(f"--renew {group}: own hosts are not bought; `up` configures a repaired one again", code=2)

    def clear(self, state: State, phase: Phase) -> list[str]:
        """Runs `power.sleep` for every host. Raises CommandError for those where it failed, once it ran for all."""
        if not (sleep := self.plan.power.sleep):
            return []
        failures = []
        for host in self.plan.nodes:
            phase.say(f"switching off {host.name}")
            try:
                _command(sleep, host)
            except CommandError as error:
                failures.append(str(error))
        if failures:
            raise CommandError(*failures, f"`gpufleet down {self.plan.stack}` tries all of them again")
        return []

    def _silent(self) -> list[MachinePlan]:
        with ThreadPoolExecutor(max_workers=32) as pool:
            reasons = pool.map(lambda host: ssh.refused(host.address, host.port), self.plan.nodes)
            return [host for host, reason in zip(self.plan.nodes, reasons, strict=True) if reason]


def _command(arguments: Sequence[str], host: MachinePlan) -> None:
    """Runs a command for one host's BMC, without a shell. Raises CommandError when it fails."""
    command = [argument.replace("{bmc}", host.bmc or "").replace("{host}", host.name) for argument in arguments]
    try:
        answer = processes.captured(command, seconds=COMMAND_SECONDS)
    except TimeoutError:
        raise CommandError(f"power: {arguments[0]} for {host.name} took more than {COMMAND_SECONDS:.0f} s") from None
    except OSError as error:
        raise CommandError(f"power: {arguments[0]}: {error.strerror}") from None
    if answer.returncode:
        messages = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
        raise CommandError(f"power: {arguments[0]} for {host.name}: {messages[-1]}")


def _known_as(address: str, port: int) -> str:
    return address if port == 22 else f"[{address}]:{port}"
