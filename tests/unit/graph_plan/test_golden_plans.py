"""What stacks beside AWS declare, kept as text: a change of it is seen in review, and never by chance."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from graph_projects import REPOSITORY

from infra.clouds.base.resources import bundle
from infra.graph import canonical, plan_document

GOLDEN = Path(__file__).parent / "golden"
STACKS = ("aliyun-a100", "aliyun-spot", "aliyun-scc", "ack-gn7", "hybrid", "k8s-a100", "onprem-ib")


@pytest.mark.parametrize("stack", STACKS)
def test_the_plan_of_a_stack_beside_aws_is_the_golden_one(stack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundle, "packed", lambda _: b"playbooks")
    golden = GOLDEN / f"{stack}.json"

    document = plan_document(REPOSITORY, stack)
    del document["decisions"]  # the goldens are of what comes of them
    text = canonical(document).replace(str(REPOSITORY), "<root>")

    if os.environ.get("GPUFLEET_UPDATE_GOLDEN"):  # then read the difference, as git shows it
        golden.write_text(text)
    assert text == golden.read_text()
