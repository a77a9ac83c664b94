"""Wrong stack files of AWS: one line a mistake, at its line, with its key and words that help. Cases: mistakes.txt."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest
import yaml
from clusters import KEY, REPOSITORY, Project, cluster
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from malformed import CASES, expected, stack_file
from pydantic import BaseModel

from infra.clouds.aws.spec.cluster import AwsSpec
from infra.evaluate import decide, described
from infra.spec import SpecError, StackFile, load


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_each_mistake_is_one_line_with_file_line_key_and_remedy(aws: Project, text: str) -> None:
    with pytest.raises(SpecError) as caught:
        aws.load(stack_file(text))

    problems = caught.value.problems
    wanted = expected(text)
    assert sorted((problem.line, problem.key) for problem in problems) == sorted((line, key) for line, key, _ in wanted)
    said = {(problem.line, problem.key): problem.message for problem in problems}
    for line, key, words in wanted:
        assert words in said[line, key]
    assert str(caught.value).splitlines() == [str(problem) for problem in problems]
    assert not re.search(r"pydantic|input_value|Input should|Traceback|NoneType|dict\b", str(caught.value))


@pytest.mark.parametrize(
    "wrong",
    [
        {"region": "'SECRET'"},
        {"zone": "'SECRET'"},
        {"images": "{x86_64: 'SECRET'}"},
        {"access": "{ssh_from: ['SECRET'], public_key: 'SECRET'}"},
        {"nodes": "[{name: 'SECRET', type: 'SECRET', count: 1}]"},
        {"nodes": "[{name: a, type: m6i.large, count: 1, market: {kind: 'SECRET'}}]"},
        {"nodes": "[{name: a, type: m6i.large, count: 1, market: {kind: block, id: 'SECRET'}}]"},
        {"nodes": "[{name: a, type: m6i.large, count: 1, market: {kind: block, id: 1, 'SECRET': 2}}]"},
        {"storage": "[{name: d, kind: 'SECRET', mount: /d}]"},
        {"storage": "[{name: d, kind: lustre, mount: /d, size_gib: 1200, bucket: 'SECRET'}]"},
        {"budget": "{monthly: 1, notify: ['SECRET']}"},
    ],
)
def test_a_private_key_in_any_wrong_place_is_never_repeated(aws: Project, wrong: dict[str, str]) -> None:
    text = cluster(**wrong).replace("SECRET", "-----BEGIN OPENSSH PRIVATE KEY----- c2VjcmV0")

    with pytest.raises(SpecError) as caught:
        aws.load(text)

    assert "c2VjcmV0" not in str(caught.value)


def test_at_least_a_hundred_malformed_files_are_known_and_no_two_alike() -> None:
    assert len(set(map(stack_file, CASES.values()))) == len(CASES) >= 100
    assert all(map(expected, CASES.values()))


def test_every_key_that_a_stack_file_may_hold_has_its_mistake() -> None:
    wrong = {re.sub(r"\[\d+\]", "", key) for text in CASES.values() for _, key, _ in expected(text)}

    assert {f"cluster.{key}" for key in keys_of(AwsSpec)} - {"cluster.cloud"} <= wrong


def keys_of(kind: Any) -> set[str]:
    """The key paths of a section, and of every section below it."""
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return {
            path
            for key, field in kind.model_fields.items()
            for path in (key, *(f"{key}.{inner}" for inner in keys_of(field.annotation)))
        }
    return {path for inner in get_args(kind) for path in keys_of(inner)}


SHIPPED = {
    stack: yaml.safe_load((REPOSITORY / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]["gpufleet:cluster"]
    for stack in ("h100-block", "eks-a100")
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 70_000),
    st.floats(),
    st.text(max_size=6),
    st.sampled_from(["spot", "block", "lustre", "required", "g6.8xlarge", "p6e-gb200.36xlarge", "us-east-1b", KEY]),
    st.lists(st.sampled_from(["10.0.0.0/8", "us-east-1a", 1]), max_size=2),
    st.dictionaries(st.sampled_from(["kind", "id", "cidr", "size_gib", "max_price"]), st.text(max_size=4), max_size=2),
)


def loaded(project: Project) -> StackFile | SpecError:
    try:
        return load(project.root, "x")
    except SpecError as error:
        return error


def places(value: object, path: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


def changed(value: object, place: tuple[object, ...], new: object) -> object:
    if not place:
        return new
    first, *rest = place
    if isinstance(value, dict):
        return {key: changed(item, tuple(rest), new) if key == first else item for key, item in value.items()}
    assert isinstance(value, list)
    return [changed(item, tuple(rest), new) if key == first else item for key, item in enumerate(value)]


@pytest.mark.parametrize("stack", SHIPPED)
@settings(
    max_examples=80,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(data=st.data())
def test_any_change_of_a_stack_is_a_plan_or_clear_lines(aws: Project, stack: str, data: st.DataObject) -> None:
    found = SHIPPED[stack]
    somewhere = st.sampled_from(places(found)[1:])
    for place, new in data.draw(st.lists(st.tuples(somewhere, ODD), min_size=1, max_size=3)):
        if place in places(found):
            found = changed(found, place, new)
    aws.write(yaml.safe_dump({"config": {"gpufleet:cluster": found}}))

    outcome = loaded(aws)
    if isinstance(outcome, SpecError):
        assert len(str(outcome).splitlines()) == len(outcome.problems) > 0
    else:
        assert all(described(finding, outcome) for finding in decide(outcome).findings)
