"""That nothing of any cluster is of a type which recovery could not find again."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from graph_clusters import CLUSTERS  # pyright: ignore[reportMissingImports]: conftest.py finds it
from rendered import REPOSITORY, planned, render, shipped  # pyright: ignore[reportMissingImports]: conftest.py finds it

from infra import evaluate, spec
from ops.clouds.aws.adoption import UNTAGGED
from ops.clouds.aws.resource_ids import TAGGED
from ops.engine.state_repair import PROVIDERS


@pytest.mark.parametrize("stack", [*shipped(), *CLUSTERS])
def test_every_type_of_a_cluster_is_found_by_its_tag_or_by_what_it_belongs_to(stack: str, tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "Pulumi.yaml", tmp_path)
    text = CLUSTERS.get(stack)
    decided = planned(tmp_path, text, stack) if text else evaluate.decide(spec.load(REPOSITORY, stack))

    types = {node.type for node in render(decided, tmp_path).nodes.values() if node.custom}

    own = {type_ for type_ in types if type_.startswith(PROVIDERS)}  # the engine's: it is nowhere but in the state
    own |= {type_ for type_ in types if type_.startswith("kubernetes:")}  # applied anew, an object is the one it was
    assert types - own - TAGGED.keys() - UNTAGGED.keys() == set()
