"""The handover survives being a stack output and a file."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from infra.catalog import load
from infra.handover import Access, Environment, Group, Handover, Node, Storage, Store
from infra.plan.model import GroupPlan

GPUS = (None, "T4", "H100-SXM5-80GB")

HANDOVER = Handover(
    stack="local",
    cloud="local",
    region=None,
    access=Access(user="ops", key_file="/k", known_hosts_file="/h"),
    nodes=(Node(name="node-1", group="node", address="10.0.0.11", port=22, host_key="ssh-ed25519 A", prefix="/"),),
    groups=(Group(name="node", count=1, gpu=None, gpus_per_node=0, fabric="tcp"),),
    storage=(Storage(name="data", path="/data"),),
    store=Store(host="control", address="10.0.0.1"),
    environment=Environment(python="/venv/bin/python"),
)


def test_a_handover_is_read_back_as_it_was_told() -> None:
    assert Handover.model_validate_json(json.dumps(HANDOVER.to_json())) == HANDOVER


def test_numbers_that_the_engine_made_fractions_are_whole_again() -> None:
    told = HANDOVER.to_json()
    told["nodes"][0]["port"] = 22.0

    assert Handover.model_validate(told) == HANDOVER


def test_a_handover_of_another_version_is_refused() -> None:
    with pytest.raises(ValidationError, match="version"):
        Handover.model_validate({**HANDOVER.to_json(), "version": 2})


def test_a_group_tells_the_peaks_of_its_gpu_that_the_tables_know() -> None:
    told = {
        gpu: Group.of(GroupPlan(name="g", count=1, gpu=gpu, gpus_per_node=8, fabric="tcp", nodes=())) for gpu in GPUS
    }

    assert told[None].gpu_tflops == {}
    assert told["T4"].gpu_tflops == {"fp32": 8.1, "fp16": 65.0}
    assert told["H100-SXM5-80GB"].gpu_tflops["bf16"] == load().gpu("H100-SXM5-80GB").bf16_dense_tflops
