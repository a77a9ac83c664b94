"""AWS, as the day-by-day commands need it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from infra.clouds.aws.plan.model import AwsPlan
from infra.handover import Handover
from infra.plan.model import Finding
from ops.clouds import base
from ops.clouds.aws import account_checks, capacity, discovery
from ops.clouds.aws.account import Account, answers
from ops.clouds.aws.adoption import Adoption
from ops.clouds.aws.resource_ids import TAGGED
from ops.clouds.aws.tagged_resources import Thing, instances, things
from ops.clouds.base import Discovered
from ops.console.phases import Phase
from ops.engine import orphans, state_repair
from ops.engine.state_repair import Row, State
from ops.nodes import login_key

KEPT = "ec2/capacity-reservation"  # a block is paid for up front and cannot be given back: it ends by itself
SLOW = {"ec2/instance", "ec2/natgateway", "ec2/network-interface", "ec2/volume"}
SLOW_SECONDS = 900.0  # an eight-GPU node takes minutes to stop
LAG_SECONDS = 60.0  # for what the tagging API has not noticed yet
ASK_SECONDS = 2.0


class Cloud(base.Cloud):
    """One stack in the account."""

    plan: AwsPlan
    billed: ClassVar[bool] = True

    @cached_property
    def account(self) -> Account:
        return Account(self.plan.region)

    def prepare(self, told: Handover) -> None:
        login_key.ensure_key(Path(told.access.key_file), self.plan.access.key_pair)

    def checked(self) -> tuple[Finding, ...]:
        return account_checks.findings(self.account, self.plan)

    def recovered(self, state: State, rows: Sequence[Row]) -> tuple[State, int]:
        ordered = state_repair.in_order(rows)
        with answers(self.account):
            known = Adoption(self.account, things(self.account, self.plan.tags), state_repair.ids(state))
            found = known.found(ordered)
        return state_repair.completed(state, ordered, found), len(found)

    def discovered(self, told: Handover) -> Discovered:
        with answers(self.account):
            return discovery.discover(self.account, self.plan, told)

    def delivered(self) -> None:
        with answers(self.account):
            capacity.delivered(self.account, self.plan)

    def renewable(self, group: str) -> None:
        capacity.renewable(self.plan, group)

    def renew(self, group: str) -> str:
        with answers(self.account):
            return capacity.renew(self.account, self.plan, group)

    def fall_back(self) -> list[str]:
        with answers(self.account):
            return list(capacity.fall_back(self.account, self.plan))

    def strays(self, state: State) -> list[str]:
        return [str(each) for each in self._strays(state)]

    def claimed(self, state: State, rows: Sequence[Row]) -> tuple[State, list[str]]:
        before = set(state_repair.ids(state))
        state, _ = self.recovered(state, rows)
        state = orphans.claimed(state, self._strays(state), state_repair.in_order(rows), self.plan.stack, TAGGED)
        return state, [urn for urn, id_ in state_repair.ids(state).items() if id_ and urn not in before]

    def clear(self, state: State, phase: Phase) -> list[str]:
        began, first = time.monotonic(), self._strays(state)
        left = first
        while left:
            if ids := [each.id for each in left if each.kind == "ec2/instance"]:
                self._terminate(ids)
            kinds = {each.kind for each in left}
            phase.say(f"{len(left)} on their way out: {', '.join(sorted(kinds))}")
            if time.monotonic() - began > (SLOW_SECONDS if kinds & SLOW else LAG_SECONDS):
                break
            time.sleep(ASK_SECONDS)
            left = self._strays(state)
        return [str(each) for each in first]

    def _strays(self, state: State) -> list[Thing]:
        with answers(self.account):
            found = [each for each in things(self.account, self.plan.tags) if each.kind != KEPT]
            return orphans.of(found, instances(self.account, self.plan.tags), state_repair.everything(state))

    def _terminate(self, ids: Sequence[str]) -> None:
        with answers(self.account):
            self.account.client("ec2").terminate_instances(InstanceIds=list(ids))
