"""CloudMonitor events of nodes, above all spot interruptions: sent to one queue, and by mail to those who pay.

Source: CloudMonitor User Guide, "Create a system event-triggered alert rule". Alibaba Cloud
has no budgets as resources, so the mail names every node that starts or ends.
"""

from __future__ import annotations

from dataclasses import dataclass

from pulumi import ComponentResource, Output, ResourceOptions
from pulumi_alicloud import cms, message

from infra.clouds.alicloud.plan.model import BudgetPlan, EventPlan, InterruptionPlan


@dataclass(frozen=True, kw_only=True)
class EventsArgs:
    """What the events need."""

    plan: InterruptionPlan
    budget: BudgetPlan | None
    stack: str
    region: str


class Events(ComponentResource):
    """The rules, the queue and the contacts. queue: its name."""

    queue: Output[str]

    def __init__(self, name: str, args: EventsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:alicloud:Events", name, {}, opts)
        self._args = args
        queue = message.ServiceQueue(
            f"{name}-queue",
            queue_name=f"gpufleet-{args.stack}-{name}",
            message_retention_period=args.plan.retention_seconds,
            enable_sse=True,
            sse_type="SMQ",
            opts=ResourceOptions(parent=self),
        )
        self.queue = queue.queue_name
        for event in args.plan.events:
            self._into_queue(event)
        if args.budget is not None:
            self._by_mail(args.budget)
        self.register_outputs({"queue": self.queue})

    def _into_queue(self, event: EventPlan) -> None:
        cms.EventRule(
            f"{event.name}-event",
            rule_name=f"gpufleet-{self._args.stack}-{event.name}",
            event_pattern={"product": event.product, "name_lists": list(event.names)},
            mns_parameters=[{"mns_parameters_id": "1", "queue": self.queue, "region": self._args.region}],
            status="ENABLED",
            opts=ResourceOptions(parent=self),
        )

    def _by_mail(self, plan: BudgetPlan) -> None:
        child, stack = ResourceOptions(parent=self), self._args.stack
        contacts = [
            cms.AlarmContact(
                f"budget-contact-{number}",
                alarm_contact_name=f"gpufleet-{stack}-{number}",
                describe=f"gpufleet: {stack} may cost {plan.monthly_cny:,.0f} CNY a month",
                channels_mail=email,
                lang="en",
                opts=child,
            ).alarm_contact_name
            for number, email in enumerate(plan.emails, 1)
        ]
        group = cms.AlarmContactGroup(
            "budget-contacts", alarm_contact_group_name=f"gpufleet-{stack}-budget", contacts=contacts, opts=child
        )
        cms.EventRule(
            "budget-event",
            rule_name=f"gpufleet-{stack}-budget",
            event_pattern={"product": plan.event.product, "name_lists": list(plan.event.names)},
            contact_parameters=[
                {
                    "contact_parameters_id": "1",
                    "contact_group_name": group.alarm_contact_group_name,
                    "level": "3",
                }
            ],
            status="ENABLED",
            opts=child,
        )
