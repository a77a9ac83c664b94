"""What a person sees of the engine's report when a deployment fails."""

from __future__ import annotations

from ops.engine.pulumi import diagnostics

PORT_TAKEN = """\
    pulumi-python:dynamic/gpufleet:Node node-1  error: resource 'node-1': property port value {2222} has a problem
Diagnostics:
  pulumi-python:dynamic/gpufleet:Node (node-1):
    error: gpufleet:Node resource 'node-1': property port value {2222} has a problem: port 2222 is in use: end that

  pulumi:pulumi:Stack (gpufleet-local):
    error: update failed

Resources:
    + 4 created
"""
TWO_LINES = """\
Diagnostics:
  pulumi:pulumi:Stack (gpufleet-local):
    error: stacks/Pulumi.local.yaml:3 cluster.isolation: must be one of: process, machine
    stacks/Pulumi.local.yaml:5 cluster.nodes[0].count: must be 1 or more

Resources:
    1 errored
"""


def test_an_error_is_told_once_and_without_the_engines_wrapping() -> None:
    assert diagnostics("\n" + PORT_TAKEN) == ["port 2222 is in use: end that"]


def test_an_error_of_several_lines_stays_whole() -> None:
    assert diagnostics("\n" + TWO_LINES) == [
        "stacks/Pulumi.local.yaml:3 cluster.isolation: must be one of: process, machine",
        "stacks/Pulumi.local.yaml:5 cluster.nodes[0].count: must be 1 or more",
    ]


def test_a_log_without_a_report_has_no_error_lines() -> None:
    assert diagnostics("$ pulumi up\nkilled\n") == []
