"""Alibaba Cloud, as the day-by-day commands need it."""

from __future__ import annotations

import time
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
from ops.clouds.alicloud import account_checks
from ops.clouds.alicloud.account import Account, answers
from ops.clouds.alicloud.adoption import Adoption
from ops.clouds.alicloud.resource_ids import TAGGED
from ops.clouds.alicloud.tagged_resources import ASSURANCE, Instance, Thing, instances, members, things
from ops.clouds.base import Discovered
from ops.clouds.discovery import Machine
from ops.console.phases import Phase
from ops.engine import orphans, state_repair
from ops.engine.pulumi import Engine
from ops.engine.state_repair import Row, State
from ops.errors import CommandError
from ops.nodes import host_keys, login_key
from ops.nodes.ssh import NodeState

GONE_SECONDS = 900.0  # an eight-GPU machine takes minutes to stop
ASK_SECONDS = 2.0


class Cloud(base.Cloud):
    """One stack in the account. Nothing is withdrawn and nothing bought instead: groups refill themselves, on demand
    where the stack file lets them, and a single machine that is not to be had fails the deployment."""

    plan: AlicloudPlan
    billed: ClassVar[bool] = True

    @cached_property
    def account(self) -> Account:
        return Account(self.plan.region)

    def prepare(self, told: Handover) -> None:
        if self.plan.ack is not None:
            return
        if self.plan.access.head is None or self.plan.access.key_pair is None:
            raise CommandError(
                "cluster.access: no machine can be reached from here: name `ssh_from`, a key and a group `head`, "
                "or let the nodes configure themselves with --no-wait"
            )
        login_key.ensure_key(Path(told.access.key_file), self.plan.access.key_pair)

    def checked(self) -> tuple[Finding, ...]:
        with answers(self.account):
            return (*self._sources(), *account_checks.findings(self.account, self.plan))

    def recovered(self, state: State, rows: Sequence[Row]) -> tuple[State, int]:
        ordered = state_repair.in_order(rows)
        with answers(self.account):
            found = Adoption(self.account, things(self.account, self.plan.tags), state_repair.ids(state)).found(ordered)
        return state_repair.completed(state, ordered, found), len(found)

    def discovered(self, told: Handover) -> Discovered:
        with answers(self.account):
            found = instances(self.account, self.plan.tags)
            lacking = tuple(
                NodeState(group.name, group.name, "", "missing", f"{number}: Alibaba Cloud has given no more yet")
                for group, number in discovery.missing(self.plan.groups, found)
            )
            if told.kubernetes:
                return Discovered(told, (*discovery.members(self.plan.groups, found), *lacking))
            running = [each for each in found if each.state == "running"]
            keys = host_keys.learn(running, Path(told.access.known_hosts_file), self._console)
        now = discovery.discovered(told, self.plan.groups, found, keys, _no_way)
        return Discovered(now.told, (*now.others, *lacking))

    def renewable(self, group: str) -> None:
        raise CommandError(
            f"--renew {group}: groups refill themselves here, and `up` makes a lost machine anew", code=2
        )

    def strays(self, state: State) -> list[str]:
        return [str(each) for each in self._strays(state)]

    def claimed(self, state: State, rows: Sequence[Row]) -> tuple[State, list[str]]:
        before, ordered = set(state_repair.ids(state)), state_repair.in_order(rows)
        state, _ = self.recovered(state, rows)
        state = orphans.claimed(state, self._strays(state), ordered, self.plan.stack, TAGGED)
        return state, [urn for urn, id_ in state_repair.ids(state).items() if id_ and urn not in before]

    def clear(self, state: State, phase: Phase) -> list[str]:
        began, first = time.monotonic(), self._strays(state)
        left = first
        while left:
            if ids := [each.id for each in left if each.kind == "ecs/instance"]:
                with answers(self.account):
                    self.account.call("ecs", "DeleteInstances", InstanceId=ids, Force=True)
            phase.say(f"{len(left)} on their way out: {', '.join(sorted({each.kind for each in left}))}")
            if time.monotonic() - began > GONE_SECONDS:
                break
            time.sleep(ASK_SECONDS)
            left = self._strays(state)
        return [str(each) for each in first]

    def _sources(self) -> Iterator[Finding]:
        """The engine says "unknown stack" of one that it has never made, in the midst of making the rest."""
        for i, each in enumerate(self.plan.copies):
            if not Engine(self.project, each.stack).exists():
                message = f"{each.stack} has never been up: `gpufleet up {each.stack}` first"
                path = f"cluster.copies[{i}].stack"
                yield Finding(level="error", rule="live-source", path=path, message=message)

    def _strays(self, state: State) -> list[Thing]:
        known = state_repair.everything(state)
        with answers(self.account):
            makers = members(self.account, known)
            found = instances(self.account, self.plan.tags)
            made: list[Instance] = [replace(each, made_by=makers.get(each.id, "")) for each in found]
            tagged = [each for each in things(self.account, self.plan.tags) if each.kind != ASSURANCE]
            return orphans.of(tagged, made, known)

    def _console(self, instance: str) -> str:
        """ECS API, GetInstanceConsoleOutput: in base64."""
        told = self.account.call("ecs", "GetInstanceConsoleOutput", InstanceId=instance)
        return b64decode(told.get("ConsoleOutput") or "").decode(errors="replace")


def _no_way(_: Machine) -> str:
    """Without a head nobody comes in: `prepare` has said so."""
    return "false"
