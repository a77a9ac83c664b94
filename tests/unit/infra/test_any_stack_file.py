"""Whatever a stack file holds, it is a plan or it is clear lines: nothing else ever comes out."""

from __future__ import annotations

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from projects import Project

from infra.evaluate import decide, described
from infra.spec import SpecError, StackFile, load

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 70000),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["local", "process", "machine", "folder", "node", "127.0.0.0/24", "10.0.0.0/8", "10.0.0.11", "/data"]
    ),
)
CHECKS = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
SECTIONS = ["network", "access", "nodes", "storage", "budget", "secure"]
DETAILS = ["cloud", "isolation", "cidr", "port", "public_key", "name", "count", "conut", "addresses", "kind", "mount"]
KEYS = st.sampled_from([*SECTIONS, *DETAILS, "hourly", "monthly"]) | st.text(max_size=4)
ANYTHING = st.recursive(
    VALUES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=5), max_leaves=20
)


def mostly(value: object) -> st.SearchStrategy[object]:
    """The right value, or anything at all."""
    return st.just(value) | st.just(value) | ANYTHING


CLUSTERS = st.fixed_dictionaries(
    {"cloud": st.just("local"), "isolation": mostly("process")},
    optional={
        "nodes": mostly([{"name": "a", "count": 2}, {"name": "b", "count": 1, "addresses": ["127.0.0.9"]}]),
        "network": mostly({"port": 2022}) | st.dictionaries(st.sampled_from(["cidr", "port"]), VALUES),
        "storage": mostly([{"name": "d", "kind": "folder", "mount": "/d"}]),
        "budget": st.dictionaries(st.sampled_from(["hourly", "monthly"]), VALUES),
        "access": ANYTHING,
    },
)


def outcome(project: Project, content: bytes) -> StackFile | SpecError:
    project.write(content)
    try:
        return load(project.root, "x")
    except SpecError as error:
        return error


@settings(max_examples=60, suppress_health_check=CHECKS, deadline=None)
@given(cluster=ANYTHING | CLUSTERS)
def test_any_cluster_is_a_plan_or_clear_lines(project: Project, cluster: object) -> None:
    content = yaml.safe_dump({"config": {"gpufleet:cluster": cluster}}).encode()

    found = outcome(project, content)

    if isinstance(found, SpecError):
        assert len(str(found).splitlines()) == len(found.problems) > 0
        assert all(1 <= problem.line <= content.count(b"\n") + 1 for problem in found.problems)
    else:
        assert all(described(finding, found) for finding in decide(found).findings)


@settings(max_examples=60, suppress_health_check=CHECKS, deadline=None)
@given(content=st.binary(max_size=40) | st.text(max_size=40).map(str.encode))
def test_any_bytes_are_clear_lines(project: Project, content: bytes) -> None:
    found = outcome(project, content)

    assert isinstance(found, SpecError)
    assert len(str(found).splitlines()) == len(found.problems) > 0
