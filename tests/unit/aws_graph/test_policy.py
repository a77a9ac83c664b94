"""What no stack may declare is refused in every form that it may have, and nothing sound is."""

from __future__ import annotations

import pytest
from policy_cases import INGRESS, INSECURE, SECURE, made, of, opened

from infra.graph.policy import RULES, Resource, check


@pytest.mark.parametrize("case", INSECURE)
def test_an_insecure_variant_is_refused_by_its_rule(case: str) -> None:
    rule, resources = INSECURE[case]

    found = {finding.rule for finding in check(resources) if finding.level == "error"}

    assert rule in found


@pytest.mark.parametrize("case", SECURE)
def test_a_secure_variant_is_accepted(case: str) -> None:
    assert check(SECURE[case]) == ()


def test_every_rule_has_a_case_that_it_refuses() -> None:
    covered = {rule for rule, _ in INSECURE.values()}

    assert set(RULES) - covered == {"private-acl"}


def test_a_public_list_of_its_own_is_refused() -> None:
    (finding,) = check([made("aws:s3/bucketAcl:BucketAcl", "list", bucket="b", acl="public-read-write")])

    assert (finding.rule, finding.path) == ("private-acl", "list.acl")


def test_a_finding_names_the_resource_and_its_input() -> None:
    rule, resources = of("ssh-from-the-world", opened("door", cidrIpv4="0.0.0.0/0"))

    (finding,) = check(resources)

    assert (finding.rule, finding.path) == (rule, "door")
    assert finding.message == "port 22 is open to 0.0.0.0/0; name your networks"


def test_halves_of_the_world_are_told_as_the_world() -> None:
    _, resources = INSECURE["halves in two rules"]

    messages = [finding.message for finding in check(resources)]

    assert messages == [
        f"port 22 is open to {half}, with its neighbours to 0.0.0.0/0; name your networks"
        for half in ("0.0.0.0/1", "128.0.0.0/1")
    ]


def test_a_reference_binds_a_block_to_its_bucket_and_no_other() -> None:
    kind = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
    first, second = (made("aws:s3/bucket:Bucket", name) for name in ("a", "b"))
    block = Resource(type=kind, name="block", urn="urn:block", references={"bucket": [first.urn]})

    unblocked = [finding.path for finding in check([first, second, block]) if finding.rule == "private-bucket"]

    assert unblocked == ["b"]


def test_the_table_is_as_long_as_was_promised() -> None:
    assert len(INSECURE) >= 40
    assert len(SECURE) >= 20


def test_one_rule_can_be_asked_alone() -> None:
    rule = RULES["ssh-from-the-world"]

    assert INGRESS in rule.types
