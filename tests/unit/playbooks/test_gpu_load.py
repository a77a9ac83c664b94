"""What nodes tell CloudWatch of their GPUs' load, against a DCGM exporter's page and moto, and what acts on it."""

from __future__ import annotations

import http.server
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from infra.clouds.aws.plan.model import AwsPlan
from infra.evaluate import decide
from infra.graph import plan_document
from infra.plan.model import LoadMetric
from infra.spec import load

REPOSITORY = Path(__file__).parents[3]
PAGE = """# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-0",modelName="NVIDIA L4",Hostname="ip-10-44-1-10"} 90
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-1",modelName="NVIDIA L4",Hostname="ip-10-44-1-10"} 70
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-0",modelName="NVIDIA L4",Hostname="ip-10-44-1-10"} 61
"""


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "x")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    file = REPOSITORY / "playbooks/roles/gpu_load/files/gpu_load.py"
    spec = importlib.util.spec_from_file_location("gpu_load_program", file)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with mock_aws():
        yield module


@contextmanager
def exporter(page: str) -> Iterator[str]:
    """A DCGM exporter with this page; yields its address."""

    class Page(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(page.encode())

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Says nothing."""

    server = http.server.HTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()


def plan() -> AwsPlan:
    decided = decide(load(REPOSITORY, "inference-g6"))
    assert isinstance(decided, AwsPlan)
    return decided


def told_load() -> LoadMetric:
    (group,) = plan().groups
    assert group.load
    return group.load


def test_the_mean_that_scaling_reads_is_that_of_every_gpu(program: Any) -> None:
    metric = told_load()
    asked = {"namespace": metric.namespace, "name": metric.name, "dimensions": metric.dimensions}
    with exporter(PAGE) as address:
        program.tell({**asked, "region": "us-east-1", "exporter": address})

    (policy,) = (
        row["inputs"]["targetTrackingConfiguration"]["customizedMetricSpecification"]
        for row in plan_document(REPOSITORY, "inference-g6")["resources"]
        if row["type"] == "aws:autoscaling/policy:Policy"
    )
    now = datetime.now(UTC)
    read = boto3.client("cloudwatch", region_name="us-east-1").get_metric_statistics(
        Namespace=policy["namespace"],
        MetricName=policy["metricName"],
        Dimensions=[{"Name": each["name"], "Value": each["value"]} for each in policy["metricDimensions"]],
        Statistics=[policy["statistic"]],
        Period=3600,
        StartTime=now - timedelta(hours=1),
        EndTime=now + timedelta(hours=1),
    )
    assert [point["Average"] for point in read["Datapoints"]] == [80]


def test_nothing_is_told_where_no_gpu_is_shown(program: Any) -> None:
    with exporter("# HELP DCGM_FI_DEV_GPU_TEMP C\n") as address, pytest.raises(SystemExit, match="shows no DCGM_FI"):
        program.tell({"exporter": address})

    assert boto3.client("cloudwatch", region_name="us-east-1").list_metrics()["Metrics"] == []


def test_nodes_may_tell_it_in_the_namespace_that_scaling_reads_and_in_no_other() -> None:
    (may,) = (each for each in plan().permissions if "cloudwatch:PutMetricData" in each.actions)

    assert (may.actions, may.equals) == (
        ("cloudwatch:PutMetricData",),
        {"cloudwatch:namespace": told_load().namespace},
    )


def test_a_group_of_a_fixed_size_tells_nobody(program: Any) -> None:
    decided = decide(load(REPOSITORY, "a100-prod"))

    assert isinstance(decided, AwsPlan)
    assert [group.load for group in decided.groups] == [None, None]
    assert not any("cloudwatch:PutMetricData" in each.actions for each in decided.permissions)
