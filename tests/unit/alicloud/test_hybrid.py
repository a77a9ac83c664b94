"""A stack that goes on with what another one keeps: what is copied, what it costs, and who holds the keys."""

from __future__ import annotations

import pytest
from ali_clusters import REPOSITORY, Project

from infra.clouds.alicloud.plan.model import AlicloudPlan
from infra.clouds.alicloud.resources.copies import copied_from
from infra.evaluate import decide
from infra.graph import render
from infra.handover import Copied, Handover
from infra.spec import SpecError, load
from ops.clouds.alicloud import copies
from ops.errors import CommandError

COPY = "{stack: a100-prod, storage: data, prefix: runs/gpt, to: models, gib_per_month: 500}"
MODELS = "[{name: models, kind: bucket, mount: /models}]"
ALIBABA = {"ALIBABA_CLOUD_ACCESS_KEY_ID": "ali", "ALIBABA_CLOUD_ACCESS_KEY_SECRET": "secret"}


def hybrid() -> AlicloudPlan:
    plan = decide(load(REPOSITORY, "hybrid"))
    assert isinstance(plan, AlicloudPlan)
    return plan


def told(bucket: str = "data-0a1b2c3") -> Handover:
    cluster = render(REPOSITORY, "hybrid").outputs["cluster"]
    one = Copied(stack="a100-prod", cloud="aws", region="us-east-1", bucket=bucket, prefix="runs/gpt", to="models")
    return Handover.model_validate({**cluster, "copies": [one]})


def test_what_leaves_aws_is_priced_without_the_gigabytes_that_are_free() -> None:
    (plan,) = hybrid().copies

    assert plan.usd_per_month == pytest.approx((500 * 1.073741824 - 100) * 0.09, abs=0.005)


def test_the_price_of_a_little_is_nothing(ali: Project) -> None:
    plan = ali.plan(storage=MODELS, copies=f"[{COPY.replace('500', '90')}]")

    assert plan.copies[0].usd_per_month == 0.0


def test_a_copy_goes_to_a_bucket_of_the_stack(ali: Project) -> None:
    with pytest.raises(
        SpecError, match=r"cluster\.copies\[0\]\.to: 'model' is none of `storage`; did you mean 'models'"
    ):
        ali.plan(storage=MODELS, copies=f"[{COPY.replace('to: models', 'to: model')}]")


def test_the_handover_tells_where_the_other_stack_keeps_it() -> None:
    (plan,) = hybrid().copies
    other = {"cloud": "aws", "region": "us-east-1", "storage": [{"name": "data", "source": "data-0a1b2c3"}]}

    assert copied_from(plan, other) == told().copies[0]
    assert copied_from(plan, {}).bucket == ""


def test_rclone_is_told_both_ends_and_no_key_stands_in_a_command() -> None:
    cluster = told()
    (one,) = cluster.copies

    source, target = copies.endpoints(cluster, one)
    environment = copies.environment(cluster, one, {**ALIBABA, "AWS_PROFILE": "train"})

    assert source == "from:data-0a1b2c3/runs/gpt"
    assert target == "to:${storage-models-bucket.bucket}/runs/gpt"
    assert environment["RCLONE_CONFIG_FROM_ENV_AUTH"] == "true"
    assert environment["RCLONE_CONFIG_TO_ENDPOINT"] == "oss-cn-beijing.aliyuncs.com"
    assert environment["RCLONE_CONFIG_TO_SECRET_ACCESS_KEY"] == "secret"
    assert "secret" not in f"{source} {target} {copies.OPTIONS}"


def test_what_the_caller_has_set_of_rclone_wins_and_aws_authorities_get_rclones_name() -> None:
    cluster = told()
    own = {**ALIBABA, "RCLONE_CONFIG_TO_ENDPOINT": "oss-accelerate.aliyuncs.com", "AWS_CA_BUNDLE": "/etc/ours.pem"}

    environment = copies.environment(cluster, cluster.copies[0], own)

    assert environment["RCLONE_CONFIG_TO_ENDPOINT"] == "oss-accelerate.aliyuncs.com"
    assert environment["RCLONE_CA_CERT"] == "/etc/ours.pem"
    assert "AWS_CA_BUNDLE" not in environment


def test_nothing_is_copied_before_the_other_stack_is_up() -> None:
    cluster = told(bucket="")

    with pytest.raises(CommandError, match="a100-prod does not export that bucket yet; run `gpufleet up a100-prod`"):
        copies.endpoints(cluster, cluster.copies[0])


def test_without_keys_of_alibaba_cloud_one_line_says_which() -> None:
    cluster = told()

    with pytest.raises(CommandError, match="set ALIBABA_CLOUD_ACCESS_KEY_ID"):
        copies.environment(cluster, cluster.copies[0], {})


def test_nodes_know_of_no_copy() -> None:
    """They would need the keys of two clouds."""
    machines = render(REPOSITORY, "hybrid").of("EcsLaunchTemplate")

    assert machines
    assert not any("a100-prod" in str(node.inputs) for node in machines)
