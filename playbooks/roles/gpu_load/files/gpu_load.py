"""Run on a node once a minute: tells CloudWatch how busy each of its GPUs is, as the DCGM exporter shows it.

Its argument is a JSON file: the metric's namespace, name and dimensions, its region, and the exporter's address. A
point holds every GPU's figure, so that the metric's average over a group is that of its GPUs. Exits with 1 and tells
nothing where the exporter shows nothing: an invented load would add or remove nodes. Sources: DCGM exporter,
default-counters.csv; CloudWatch API, PutMetricData and MetricDatum (Values).
"""

import json
import sys
import urllib.request
from pathlib import Path

import boto3

FIGURE = "DCGM_FI_DEV_GPU_UTIL"
MOST_SECONDS = 10


def loads(shown):
    """The percentages in what the exporter shows, a GPU each; the value is a line's last word."""
    figures = [float(line.split()[-1]) for line in shown.splitlines() if line.startswith(FIGURE + "{")]
    if not figures:
        sys.exit(f"the DCGM exporter shows no {FIGURE}: is nvidia-dcgm running?")
    return figures


def tell(config):
    with urllib.request.urlopen(config["exporter"], timeout=MOST_SECONDS) as answer:
        values = loads(answer.read().decode())
    datum = {
        "MetricName": config["name"],
        "Dimensions": [{"Name": name, "Value": value} for name, value in config["dimensions"].items()],
        "Values": values,
        "Unit": "Percent",
    }
    boto3.client("cloudwatch", region_name=config["region"]).put_metric_data(
        Namespace=config["namespace"], MetricData=[datum]
    )


if __name__ == "__main__":
    tell(json.loads(Path(sys.argv[1]).read_text()))
