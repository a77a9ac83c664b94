"""What EC2 announces about nodes, a spot interruption above all, into one queue.

Source: EventBridge User Guide, "Amazon SQS permissions" (the queue's policy, and the key's).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import cloudwatch, sqs

from infra.clouds.aws.plan.model import EventPlan, InterruptionPlan
from infra.clouds.aws.resources.iam.documents import policy


@dataclass(frozen=True, kw_only=True)
class EventsArgs:
    """What the events need. owner: the account's number. key_arn: the stack's key, which EventBridge may use."""

    plan: InterruptionPlan
    owner: Input[str]
    key_arn: Input[str]


class Events(ComponentResource):
    """The rules and the queue. queue_url: where to ask."""

    queue_url: Output[str]

    def __init__(self, name: str, args: EventsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("gpufleet:aws:Events", name, {}, opts)
        child = ResourceOptions(parent=self)
        queue = sqs.Queue(
            f"{name}-queue",
            message_retention_seconds=args.plan.retention_seconds,
            kms_master_key_id=args.key_arn,
            opts=child,
        )
        rules = [self._rule(event, queue.arn) for event in args.plan.events]
        senders = _queue_policy(queue.arn, rules, args.owner)
        sqs.QueuePolicy(f"{name}-queue-policy", queue_url=queue.id, policy=senders, opts=child)
        self.queue_url = queue.url
        self.register_outputs({"queue_url": self.queue_url})

    def _rule(self, event: EventPlan, queue_arn: Output[str]) -> Output[str]:
        child = ResourceOptions(parent=self)
        rule = cloudwatch.EventRule(
            f"{event.name}-event",
            event_pattern=json.dumps({"source": [event.source], "detail-type": [event.detail_type]}),
            state="ENABLED",
            opts=child,
        )
        cloudwatch.EventTarget(f"{event.name}-to-queue", rule=rule.name, arn=queue_arn, opts=child)
        return rule.arn


def _queue_policy(queue_arn: Output[str], rules: list[Output[str]], owner: Input[str]) -> Output[str]:
    return policy(
        {
            "Sid": "Announce",
            "Effect": "Allow",
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
            "Condition": {"StringEquals": {"aws:SourceAccount": owner}, "ArnEquals": {"aws:SourceArn": rules}},
        },
        {
            "Sid": "TlsOnly",
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": queue_arn,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    )
