"""What no stack on Alibaba Cloud may declare is refused in every form that it may have, and nothing sound is."""

from __future__ import annotations

import pytest
from ali_policy_cases import INSECURE, SECURE

from infra.policy import Resource, check, rules


def refused(resources: list[Resource]) -> set[str]:
    return {finding.rule for finding in check(resources)}


@pytest.mark.parametrize("case", INSECURE)
def test_an_insecure_variant_of_alibaba_cloud_is_refused_by_its_rule(case: str) -> None:
    rule, resources = INSECURE[case]

    assert rule in refused(resources)


@pytest.mark.parametrize("case", SECURE)
def test_a_secure_variant_of_alibaba_cloud_is_accepted(case: str) -> None:
    assert check(SECURE[case]) == ()


def test_every_rule_of_alibaba_cloud_has_a_case_that_it_refuses() -> None:
    own = {name for name in rules() if name.startswith("alicloud-")}

    assert own - {rule for rule, _ in INSECURE.values()} == set()
