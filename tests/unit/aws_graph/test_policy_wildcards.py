"""Whatever stands for everything is refused, however it is written; and a name with a wildcard in it stays a name."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from policy_samples import QUEUE_POLICY, made, permissions, policy

from infra.policy import check
from infra.policy.documents import too_wide

# What no statement names: a hundred buckets, roles and machines of others, each of other letters.
CHANCE = Random(20)
OTHERS = ["".join(CHANCE.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=CHANCE.randint(5, 20))) for _ in range(80)]
OTHERS += ["-".join((name[:4], name[4:])) for name in OTHERS[:20]]
ARNS = {
    "s3:GetObject": "arn:aws:s3:::{}/weights.bin",
    "kms:Decrypt": "arn:aws:kms:us-east-1:123456789012:key/{}",
    "ssm:SendCommand": "arn:aws:ec2:us-east-1:123456789012:instance/i-{}",
    "secretsmanager:GetSecretValue": "arn:aws:secretsmanager:us-east-1:123456789012:secret:{}",
    "sts:AssumeRole": "arn:aws:iam::123456789012:role/{}",
    "sqs:SendMessage": "arn:aws:sqs:us-east-1:123456789012:{}",
}
MOST_OTHERS = 0.1  # a pattern that a tenth of them matches is no name

wilds = some.text(alphabet="*?", min_size=1, max_size=4).filter(lambda text: "*" in text)
separators = some.sampled_from(["", "", "-", ".", "_", "-*-", "*", "a*", "?-"])


def spellings(action: str) -> some.SearchStrategy[str]:
    """Wildcards where the name stands, with separators and a letter between them; and where all of the ARN stands."""
    head, _, tail = ARNS[action].partition("{}")
    name = some.tuples(wilds, separators, some.sampled_from(["*", "?*", "*?"])).map("".join)
    ends = some.sampled_from([tail, "*", "", "/*", "-*"])
    whole = some.sampled_from(["*", "?*", "*:*", "arn:*", "arn:aws:*", "a*", "*/*", "**", "*?*", "arn:*:*:*:*:*"])
    cut = some.integers(3, len(head)).map(lambda at: head[:at] + "*")
    return some.one_of(whole, cut, some.tuples(some.just(head), name, ends).map("".join))


def share(pattern: str, action: str) -> float:
    """Of the things of others, how many a pattern is about: `*` is any letters, also past a slash, `?` is one (IAM)."""
    spelled = re.compile(
        "".join({"*": ".*", "?": "."}.get(each, re.escape(each)) for each in re.sub(r"\*+", "*", pattern))
    )
    return sum(spelled.fullmatch(ARNS[action].format(name)) is not None for name in OTHERS) / len(OTHERS)


@pytest.mark.parametrize("action", ARNS)
@settings(max_examples=50, deadline=None)
@given(data=some.data())
def test_a_pattern_that_takes_in_what_is_others_is_refused(action: str, data: Any) -> None:
    pattern = data.draw(spellings(action))

    refused = {finding.rule for finding in check([permissions(Action=action, Resource=["arn:aws:s3:::own", pattern])])}

    assert share(pattern, action) <= MOST_OTHERS or "wildcard-actions" in refused


@settings(max_examples=200, deadline=None)
@given(parts=some.lists(some.sampled_from(["*", "?", "-", ".", "/", ":", "_"]), min_size=1, max_size=12))
def test_nothing_but_wildcards_and_separators_names_nothing(parts: list[str]) -> None:
    text = "".join(parts)
    if "*" not in text and "?" not in text:
        text += "*"

    for arn in (text, f"arn:aws:s3:::{text}", f"arn:aws:iam::123456789012:role/{text}", f"acs:oss:*:*:{text}"):
        assert too_wide(arn), arn


@settings(max_examples=200, deadline=None)
@given(
    operator=some.sampled_from(["StringLike", "ArnLike", "StringEquals", "ForAnyValue:StringLike", "ArnEquals"]),
    key=some.sampled_from(
        ["aws:PrincipalArn", "aws:SourceArn", "aws:SourceAccount", "aws:PrincipalOrgID", "AWS:sourcearn"]
    ),
    value=some.text(alphabet="*?-:/a1", min_size=1, max_size=9).filter(lambda text: {"*", "?"} & set(text)),
)
def test_a_condition_on_a_wildcard_narrows_nobody(operator: str, key: str, value: str) -> None:
    statement = {"Action": "sqs:SendMessage", "Resource": "arn:aws:sqs:us-east-1:123456789012:q", "Principal": "*"}
    narrowed = policy(**statement, Condition={operator: {key: ["arn:aws:iam::123456789012:root", value]}})

    assert "wildcard-principals" in {finding.rule for finding in check([made(QUEUE_POLICY, policy=narrowed)])}


@settings(max_examples=100, deadline=None)
@given(
    name=some.from_regex(r"[a-z][a-z0-9]{2,12}(-[a-z0-9]{1,8})?", fullmatch=True),
    end=some.sampled_from(["", "-*", "*"]),
)
def test_a_name_with_a_wildcard_at_its_end_is_a_name(name: str, end: str) -> None:
    for template in ARNS.values():
        assert not too_wide(template.format(name + end)), template.format(name + end)


@settings(max_examples=100, deadline=None)
@given(text=some.text(max_size=60))
def test_what_is_no_policy_is_refused_and_ends_nothing(text: str) -> None:
    try:
        document = isinstance(json.loads(text), dict)
    except ValueError:
        document = False

    rules = {finding.rule for finding in check([made("aws:iam/rolePolicy:RolePolicy", policy=text)])}

    assert document or "wildcard-actions" in rules
