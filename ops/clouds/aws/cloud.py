"""AWS, as the commands need it."""

from __future__ import annotations

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
from ops.clouds.aws.adoption import AwsAdoption
from ops.clouds.aws.resource_ids import TAGGED
from ops.clouds.aws.tagged_resources import TaggedResource, instances, resources
from ops.clouds.base import Discovered
from ops.console.phases import Phase
from ops.engine import orphans, state_repair
from ops.engine.state_repair import Row, State
from ops.nodes import login_key

PREPAID = "ec2/capacity-reservation"  # a block is prepaid and cannot be cancelled: it ends by itself
SLOW = {"ec2/instance", "ec2/natgateway", "ec2/network-interface", "ec2/volume"}
SLOW_SECONDS = 900.0  # an eight-GPU node takes minutes to stop
LAG_SECONDS = 60.0  # for deletions that the tagging API still lists
POLL_SECONDS = 2.0


class Cloud(base.Cloud):
    """One stack in the account."""

    plan: AwsPlan
    billed: ClassVar[bool] = True

    @cached_property
    def account(self) -> Account:
        return Account(self.plan.region)

    def prepare(self, handover: Handover) -> None:
        login_key.ensure_key(Path(handover.access.key_file), self.plan.access.key_pair)

    def findings(self) -> tuple[Finding, ...]:
        return account_checks.findings(self.account, self.plan)

    def recovered(self, state: State, rows: Sequence[Row]) -> tuple[State, int]:
        ordered = state_repair.in_order(rows)
        with answers(self.account):
            tagged = resources(self.account, self.plan.tags)
            existing = AwsAdoption(self.account, tagged, state_repair.ids(state)).existing(ordered)
        return state_repair.completed(state, ordered, existing), len(existing)

    def discovered(self, handover: Handover) -> Discovered:
        with answers(self.account):
            return discovery.discover(self.account, self.plan, handover)

    def require_capacity(self) -> None:
        with answers(self.account):
            capacity.require_capacity(self.account, self.plan)

    def renewable(self, group: str) -> None:
        capacity.renewable(self.plan, group)

    def renew(self, group: str) -> str:
        with answers(self.account):
            return capacity.renew(self.account, self.plan, group)

    def fall_back(self) -> list[str]:
        with answers(self.account):
            return list(capacity.fall_back(self.account, self.plan))

    def orphans(self, state: State) -> list[str]:
        return [str(resource) for resource in self._orphans(state)]

    def claimed(self, state: State, rows: Sequence[Row]) -> tuple[State, list[str]]:
        before = set(state_repair.ids(state))
        state, _ = self.recovered(state, rows)
        state = orphans.claimed(state, self._orphans(state), state_repair.in_order(rows), self.plan.stack, TAGGED)
        return state, [urn for urn, id_ in state_repair.ids(state).items() if id_ and urn not in before]

    def clear(self, state: State, phase: Phase) -> list[str]:
        began, first = self.clock.monotonic(), self._orphans(state)
        left = first
        while left:
            if ids := [resource.id for resource in left if resource.kind == "ec2/instance"]:
                self._terminate(ids)
            kinds = {resource.kind for resource in left}
            phase.say(f"{len(left)} still being deleted: {', '.join(sorted(kinds))}")
            if self.clock.monotonic() - began > (SLOW_SECONDS if kinds & SLOW else LAG_SECONDS):
                break
            self.clock.sleep(POLL_SECONDS)
            left = self._orphans(state)
        return [str(resource) for resource in first]

    def _orphans(self, state: State) -> list[TaggedResource]:
        with answers(self.account):
            tagged = [resource for resource in resources(self.account, self.plan.tags) if resource.kind != PREPAID]
            return orphans.of(tagged, instances(self.account, self.plan.tags), state_repair.known_names(state))

    def _terminate(self, ids: Sequence[str]) -> None:
        with answers(self.account):
            self.account.client("ec2").terminate_instances(InstanceIds=list(ids))
