"""What no stack may declare is refused in every form that it may have, and nothing sound is."""

from __future__ import annotations

from collections import Counter

import pytest
from policy_cases import INSECURE, KINDS, SECURE
from policy_samples import BLOCK, BUCKET, made, opened

from infra.policy import Resource, check, rules, summary

NEEDS_A_CEILING = {"cost-ceiling"}  # test_policy_cost.py


def refused(resources: list[Resource]) -> set[str]:
    return {finding.rule for finding in check(resources) if finding.level == "error"}


@pytest.mark.parametrize("case", INSECURE)
def test_an_insecure_variant_is_refused_by_its_rule(case: str) -> None:
    rule, resources = INSECURE[case]

    assert rule in refused(resources)


@pytest.mark.parametrize("case", SECURE)
def test_a_secure_variant_is_accepted(case: str) -> None:
    assert check(SECURE[case]) == ()


def test_all_of_the_insecure_and_none_of_the_secure_variants_are_refused() -> None:
    """The table: `pytest -s` shows it."""
    rows = [f"{'':<12} {'insecure':>8} {'refused':>8} {'secure':>8} {'refused':>8}"]
    totals: Counter[str] = Counter()
    for name, kind in KINDS.items():
        found = Counter(
            insecure=len(kind.INSECURE),
            caught=sum(rule in refused(resources) for rule, resources in kind.INSECURE.values()),
            secure=len(kind.SECURE),
            wronged=sum(bool(check(resources)) for resources in kind.SECURE.values()),
        )
        totals.update(found)
        rows.append(_row(name, found))
    print("", *rows, _row("all", totals), f"by {len(rules())} rules", sep="\n")

    assert (totals["caught"], totals["wronged"]) == (totals["insecure"], 0)
    assert totals["insecure"] >= 60
    assert totals["secure"] >= 40


def _row(name: str, found: Counter[str]) -> str:
    return f"{name:<12} " + " ".join(f"{found[key]:>8}" for key in ("insecure", "caught", "secure", "wronged"))


def test_every_rule_has_a_case_that_it_refuses() -> None:
    covered = {rule for rule, _ in INSECURE.values()}
    of_another_cloud = {rule for rule in rules() if rule.startswith("alicloud-")}

    assert set(rules()) - covered - of_another_cloud == NEEDS_A_CEILING


def test_every_rule_says_what_it_is_about() -> None:
    assert all(summary(rule) for rule in rules().values())


def test_a_finding_names_the_resource_and_its_input() -> None:
    (finding,) = check([opened("door", cidrIpv4="0.0.0.0/0")])

    assert (finding.rule, finding.path) == ("ssh-from-the-world", "door")
    assert finding.message == "port 22 is open to 0.0.0.0/0; name your networks"


def test_halves_of_the_world_are_told_as_the_world() -> None:
    _, resources = INSECURE["network: halves in two rules"]

    messages = [finding.message for finding in check(resources)]

    assert messages == [
        f"port 22 is open to {half}, with its neighbours to 0.0.0.0/0; name your networks"
        for half in ("0.0.0.0/1", "128.0.0.0/1")
    ]


def test_a_reference_binds_a_block_to_its_bucket_and_no_other() -> None:
    first, second = (made(BUCKET, name) for name in ("a", "b"))
    block = Resource(type=BLOCK, name="block", urn="urn:block", references={"bucket": [first.urn]})

    unblocked = [finding.path for finding in check([first, second, block]) if finding.rule == "private-bucket"]

    assert unblocked == ["b"]
