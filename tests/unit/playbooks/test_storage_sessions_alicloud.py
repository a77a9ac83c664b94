"""Sessions that a node takes out at Alibaba Cloud, against a metadata service and an STS that check signatures."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fake_alicloud import FakeAlicloud, serving

FILES = Path(__file__).parents[3] / "playbooks/roles/storage_sessions/files"
ROLE = "acs:ram::1234567890123456:role/gpufleet-x-storage"


@pytest.fixture(scope="module")
def grants() -> ModuleType:
    return module("grants")


@pytest.fixture(scope="module")
def alicloud(grants: ModuleType) -> ModuleType:
    module("web")
    return module("alicloud")


def module(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, FILES / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture
def cloud() -> Iterator[FakeAlicloud]:
    with serving() as fake:
        yield fake


class Node:
    """Asks for sessions as the service on a node does."""

    def __init__(self, cloud: FakeAlicloud, alicloud: ModuleType, grants: ModuleType) -> None:
        self.settings = {"role": ROLE, "region": "cn-beijing", "node": "gpu-1"}
        self.settings |= {"metadata": cloud.address, "sts": cloud.address}
        self._alicloud, self._grants = alicloud, grants

    def session(self, login: str, *places: tuple[str, str, str]) -> dict[str, Any]:
        grant = self._grants.Grant(login, tuple(self._grants.Place(*place) for place in places))
        return self._alicloud.session(self.settings, grant, 3600)


@pytest.fixture
def node(cloud: FakeAlicloud, alicloud: ModuleType, grants: ModuleType) -> Node:
    return Node(cloud, alicloud, grants)


def reach(policy: dict[str, Any], action: str) -> list[str]:
    """The resources that a session policy allows an action on."""
    given = [(one["Action"], one["Resource"]) for one in policy["Statement"]]
    return [each for actions, resources in given if action in (actions, *actions) for each in resources]


def test_a_session_is_signed_as_the_clouds_own_sdk_signs_and_reads_as_sdks_read_it(
    node: Node, cloud: FakeAlicloud
) -> None:
    session = node.session("ada", ("data", "tenants/ada/", "write"))

    assert set(session) == {"Version", "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration"}
    (form,) = cloud.assumed
    assert (form["RoleArn"], form["RoleSessionName"], form["DurationSeconds"]) == (ROLE, "ada@gpu-1", "3600")
    assert cloud.refused == 0


def test_no_two_requests_have_the_same_nonce(node: Node, cloud: FakeAlicloud) -> None:
    for _ in range(3):
        node.session("ada", ("data", "tenants/ada/", "write"))

    assert len(cloud.nonces) == 3
    assert cloud.refused == 0


def test_a_tenants_session_ends_at_its_own_prefix(node: Node, cloud: FakeAlicloud) -> None:
    session = node.session("ada", ("data", "tenants/ada/", "write"), ("more", "tenants/ada/", "write"))

    policy = cloud.policy_of(session["AccessKeyId"])
    own = ["acs:oss:*:*:data/tenants/ada/*", "acs:oss:*:*:more/tenants/ada/*"]
    assert policy["Version"] == "1"
    assert [reach(policy, f"oss:{verb}Object") for verb in ("Get", "Put", "Delete")] == [own, own, own]
    (listed,) = (one for one in policy["Statement"] if one["Action"] == "oss:ListObjects")
    assert listed["Resource"] == ["acs:oss:*:*:data", "acs:oss:*:*:more"]
    assert listed["Condition"] == {"StringLike": {"oss:Prefix": "tenants/ada/*"}}
    assert reach(policy, "oss:ListMultipartUploads") == []


def test_who_may_read_alone_changes_nothing(node: Node, cloud: FakeAlicloud) -> None:
    policy = cloud.policy_of(node.session("ada", ("data", "sets/", "read"))["AccessKeyId"])

    assert reach(policy, "oss:GetObject") == ["acs:oss:*:*:data/sets/*"]
    assert reach(policy, "oss:PutObject") == reach(policy, "oss:DeleteObject") == []


def test_a_run_that_uploads_may_go_on_with_its_parts(node: Node, cloud: FakeAlicloud) -> None:
    policy = cloud.policy_of(node.session("job", ("data", "runs/a/", "upload"))["AccessKeyId"])

    assert reach(policy, "oss:ListParts") == ["acs:oss:*:*:data/runs/a/*"]
    assert reach(policy, "oss:ListMultipartUploads") == ["acs:oss:*:*:data"]


def test_no_action_and_no_bucket_is_a_pattern(node: Node, cloud: FakeAlicloud) -> None:
    policy = cloud.policy_of(node.session("job", ("data", "runs/a/", "upload"), ("sets", "c/", "read"))["AccessKeyId"])

    actions = [action for one in policy["Statement"] for action in [one["Action"]] if isinstance(action, str)]
    objects = [each for one in policy["Statement"] for each in one["Resource"] if each.startswith("acs:oss:")]
    assert not [action for action in actions if "*" in action]
    assert all("*" not in each.split(":", 4)[4][:-1] for each in objects)


def test_a_grant_of_too_many_places_is_refused_before_anything_is_sent(node: Node, cloud: FakeAlicloud) -> None:
    places = [("data", f"runs/{'a' * 50}{i}/", "write") for i in range(20)]

    with pytest.raises(ValueError, match="Alibaba Cloud takes 2048"):
        node.session("job", *places)

    assert cloud.assumed == []


@pytest.mark.parametrize("denial", ["NoPermission", "InvalidParameter.PolicyGrammar"])
def test_a_refusal_is_told_by_its_code(node: Node, cloud: FakeAlicloud, denial: str) -> None:
    cloud.denies = denial

    with pytest.raises(OSError, match=f"answers 403 {denial}"):
        node.session("ada", ("data", "tenants/ada/", "write"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("{}", "without AccessKeyId, AccessKeySecret, SecurityToken, Expiration"),
        ('{"Credentials": {"AccessKeyId": "a", "AccessKeySecret": "", "SecurityToken": 1}}', "without AccessKeySecret"),
        ('{"Credentials": []}', "without AccessKeyId"),
        ("[1]", "no JSON object"),
        ("<html>", "no JSON object"),
    ],
)
def test_an_answer_that_is_no_session_is_none(node: Node, cloud: FakeAlicloud, answer: str, words: str) -> None:
    cloud.says = answer

    with pytest.raises(OSError, match=words):
        node.session("ada", ("data", "tenants/ada/", "write"))


def test_another_secret_body_or_moment_is_refused_by_sts(alicloud: ModuleType, cloud: FakeAlicloud) -> None:
    """So the fake checks what it says that it checks."""
    role = {"AccessKeyId": "STS.NODE", "AccessKeySecret": "of the node", "SecurityToken": "token of the node"}
    now = alicloud.time.strftime("%Y-%m-%dT%H:%M:%SZ", alicloud.time.gmtime())
    forged = [
        (b"a=1", {**role, "AccessKeySecret": "another"}, now, b"a=1"),
        (b"a=1", role, now, b"a=2"),
        (b"a=1", role, "2020-01-01T00:00:00Z", b"a=1"),
    ]

    for i, (signed, credentials, moment, sent) in enumerate(forged):
        headers = alicloud.signed(cloud.address, signed, credentials, moment, f"nonce-{i}")
        with pytest.raises(OSError, match=r"answers 403 (SignatureDoesNotMatch|InvalidTimeStamp)"):
            alicloud.web.fetch(f"{cloud.address}/", "POST", headers, sent)

    assert (cloud.refused, cloud.assumed) == (3, [])


def test_a_name_of_a_session_is_one_that_sts_takes(alicloud: ModuleType) -> None:
    assert alicloud.session_name("a_b", "node=1,x") == "a_b@node-1-x"
    assert len(alicloud.session_name("a" * 31, "n" * 63)) == 64
