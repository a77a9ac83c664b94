"""Alibaba Cloud, as the day-by-day commands need it."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.handover import Handover
from infra.plan.model import Finding
from ops.clouds import base, discovery
from ops.clouds.alicloud import account_checks, copies
from ops.clouds.alicloud.account import Account, answers
from ops.clouds.alicloud.adoption import AlicloudAdoption
from ops.clouds.alicloud.resource_ids import TAGGED
from ops.clouds.alicloud.tagged_resources import ASSURANCE, Instance, TaggedResource, instances, members, resources
from ops.clouds.base import Discovered, Document
from ops.clouds.discovery import Machine
from ops.console.phases import Phase, Phases
from ops.engine import orphans, state_repair
from ops.engine.pulumi import Engine
from ops.engine.state_repair import Row, State
from ops.errors import CommandError
from ops.nodes import host_keys, login_key
from ops.nodes.ssh import NodeState

GONE_SECONDS = 900.0  # an eight-GPU machine takes minutes to stop
POLL_SECONDS = 2.0


class Cloud(base.Cloud):
    """One stack in the account. No request is cancelled and no fallback bought: groups refill themselves, on demand
    where the stack file allows it, and a single machine without capacity fails the deployment."""

    plan: AlicloudPlan
    billed: ClassVar[bool] = True

    @cached_property
    def account(self) -> Account:
        return Account(self.plan.region)

    def prepare(self, handover: Handover) -> None:
        if self.plan.ack is not None:
            return
        if self.plan.access.head is None or self.plan.access.key_pair is None:
            raise CommandError(
                "cluster.access: no machine can be reached from here: set `ssh_from`, a key and a group `head`, "
                "or let the nodes configure themselves with --no-wait"
            )
        login_key.ensure_key(Path(handover.access.key_file), self.plan.access.key_pair)

    def findings(self) -> tuple[Finding, ...]:
        with answers(self.account):
            return (*self._sources(), *account_checks.findings(self.account, self.plan))

    def recovered(self, state: State, rows: Sequence[Row]) -> tuple[State, int]:
        ordered = state_repair.in_order(rows)
        with answers(self.account):
            tagged = resources(self.account, self.plan.tags)
            existing = AlicloudAdoption(self.account, tagged, state_repair.ids(state)).existing(ordered)
        return state_repair.completed(state, ordered, existing), len(existing)

    def discovered(self, handover: Handover) -> Discovered:
        with answers(self.account):
            machines = instances(self.account, self.plan.tags)
            missing_states = tuple(
                NodeState(
                    group.name, group.name, "", "missing", f"{number}: Alibaba Cloud has not started the others yet"
                )
                for group, number in discovery.missing(self.plan.groups, machines)
            )
            if handover.kubernetes:
                return Discovered(handover, (*discovery.members(self.plan.groups, machines), *missing_states))
            running = [instance for instance in machines if instance.state == "running"]
            keys = host_keys.learn(running, Path(handover.access.known_hosts_file), self._console)
        now = discovery.discovered(handover, self.plan.groups, machines, keys, _unreachable)
        return Discovered(now.handover, (*now.others, *missing_states))

    def renewable(self, group: str) -> None:
        raise CommandError(f"--renew {group}: groups refill themselves here, and `up` recreates a lost machine", code=2)

    def orphans(self, state: State) -> list[str]:
        return [str(resource) for resource in self._orphans(state)]

    def claimed(self, state: State, rows: Sequence[Row]) -> tuple[State, list[str]]:
        before, ordered = set(state_repair.ids(state)), state_repair.in_order(rows)
        state, _ = self.recovered(state, rows)
        state = orphans.claimed(state, self._orphans(state), ordered, self.plan.stack, TAGGED)
        return state, [urn for urn, id_ in state_repair.ids(state).items() if id_ and urn not in before]

    def clear(self, state: State, phase: Phase) -> list[str]:
        began, first = self.clock.monotonic(), self._orphans(state)
        left = first
        while left:
            if ids := [resource.id for resource in left if resource.kind == "ecs/instance"]:
                with answers(self.account):
                    self.account.call("ecs", "DeleteInstances", InstanceId=ids, Force=True)
            phase.say(f"{len(left)} still being deleted: {', '.join(sorted({resource.kind for resource in left}))}")
            if self.clock.monotonic() - began > GONE_SECONDS:
                break
            self.clock.sleep(POLL_SECONDS)
            left = self._orphans(state)
        return [str(resource) for resource in first]

    def copy(self, handover: Handover, phases: Phases) -> Document:
        return copies.copy(self.project, self.plan, handover, phases)

    def _sources(self) -> Iterator[Finding]:
        """For a stack that was never up, the engine would fail with "unknown stack" in the middle of the deployment."""
        for i, bucket in enumerate(self.plan.copies):
            if not Engine(self.project, bucket.stack).exists():
                message = f"{bucket.stack} has never been up: `gpufleet up {bucket.stack}` first"
                path = f"cluster.copies[{i}].stack"
                yield Finding(level="error", rule="live-source", path=path, message=message)

    def _orphans(self, state: State) -> list[TaggedResource]:
        known = state_repair.known_names(state)
        with answers(self.account):
            makers = members(self.account, known)
            machines = instances(self.account, self.plan.tags)
            with_makers: list[Instance] = [
                replace(instance, made_by=makers.get(instance.id, "")) for instance in machines
            ]
            tagged = [resource for resource in resources(self.account, self.plan.tags) if resource.kind != ASSURANCE]
            return orphans.of(tagged, with_makers, known)

    def _console(self, instance: str) -> str:
        """ECS API, GetInstanceConsoleOutput: in base64."""
        response = self.account.call("ecs", "GetInstanceConsoleOutput", InstanceId=instance)
        return b64decode(response.get("ConsoleOutput") or "").decode(errors="replace")


def _unreachable(_: Machine) -> str:
    """No machine can be reached without a head: `prepare` refuses that."""
    return "false"
