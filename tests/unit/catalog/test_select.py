"""`gpufleet select` and `gpufleet catalog show`: the documents and what a person reads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from infra import catalog as tables
from ops.commands import select
from ops.commands.catalog import show as catalog
from ops.errors import CommandError

A100_ELSEWHERE = [kind.name for kind in tables.load().types if kind.cloud != "aws" and "A100" in (kind.gpu or "")]
GOLDEN = Path(__file__).parent / "golden"


def eight_a100() -> select.Document:
    return select.select(gpus=8, gpu_memory_gib=40, precision="bf16", fabric="required", region="us-east-1")


def test_the_document_of_a_choice_is_the_golden_one() -> None:
    assert eight_a100() == json.loads((GOLDEN / "select.json").read_text())


def test_the_text_of_a_choice_is_the_golden_one() -> None:
    assert select.text(eight_a100()) + "\n" == (GOLDEN / "select.txt").read_text()


def test_the_document_survives_json() -> None:
    document = eight_a100()

    assert json.loads(json.dumps(document, allow_nan=False)) == document


def test_an_estimate_is_marked_and_explained() -> None:
    text = select.text(eight_a100())

    assert "  ~9.94" in text
    assert "no bf16 measurement known: 73 % of its peak" in text


def test_a_ranking_of_measurements_only_explains_no_estimate() -> None:
    text = select.text(select.select(gpus=8, gpu_memory_gib=100, region="us-east-1"))

    assert "p5en.48xlarge" in text
    assert "~" not in text


def test_a_budget_that_buys_nothing_says_so_and_why() -> None:
    text = select.text(select.select(gpus=8, gpu_memory_gib=100, region="us-east-1", budget_usd_per_hour=1))

    assert "no type fits" in text
    assert "1 of it cost 63.30 USD/h, more than 1: p5en.48xlarge" in text


def test_a_family_is_named_once_where_all_its_sizes_share_the_reason() -> None:
    text = select.text(eight_a100())

    assert "22.4 GiB a GPU (A10G, sold as 24 GB), 40 GiB asked: g5.*\n" in text
    assert "no fabric between nodes: g6e.xlarge, g6e.2xlarge, g6e.4xlarge\n" in text


def test_a_region_without_prices_is_a_usage_error_with_one_line() -> None:
    with pytest.raises(CommandError) as refused:
        select.select(gpus=8, region="mars-1")

    assert refused.value.code == 2
    assert str(refused.value) == "no price is known in region 'mars-1'; the tables know us-east-1"


def test_an_ask_without_sense_is_a_usage_error() -> None:
    with pytest.raises(CommandError, match="gpus: 0 is too few") as refused:
        select.select(gpus=0, region="us-east-1")

    assert refused.value.code == 2


def test_a_type_is_shown_in_full_with_its_gpu_its_price_and_their_sources() -> None:
    document = catalog.show("p6-b300.48xlarge")
    text = catalog.text(document)

    assert [kind["name"] for kind in document["types"]] == ["p6-b300.48xlarge"]
    assert [gpu["name"] for gpu in document["gpus"]] == ["B300"]
    assert "fabric_on_first_card   no" in text
    assert "bf16_measured_share    0.7862" in text
    assert "142.416 USD/h in us-east-1 (2026-07-20, karpenter" in text


def test_a_whole_name_is_not_taken_for_the_beginning_of_others() -> None:
    assert {kind["gpu"] for kind in catalog.show("L4")["types"]} == {"L4"}
    assert [gpu["name"] for gpu in catalog.show("l4")["gpus"]] == ["L4", "L40S"]


def test_a_beginning_finds_types_and_gpus() -> None:
    document = catalog.show("a100")

    assert [kind["name"] for kind in document["types"]] == ["p4d.24xlarge", "p4de.24xlarge", *A100_ELSEWHERE]
    assert [gpu["name"] for gpu in document["gpus"]] == ["A100-SXM4-40GB", "A100-SXM4-80GB"]


def test_without_a_name_everything_is_shown() -> None:
    document = catalog.show()
    text = catalog.text(document)

    assert len(document["types"]) == len(tables.load().types)
    assert len(document["gpus"]) == len(tables.load().gpus)
    assert len(text.splitlines()) == len(document["types"]) + 1 + len(document["gpus"])


def test_an_unknown_figure_is_shown_as_unknown() -> None:
    assert "efa × ?" in catalog.text(catalog.show("p6e"))


def test_a_misspelt_name_is_a_usage_error_with_a_hint() -> None:
    with pytest.raises(CommandError, match=r"unknown name 'p4d\.24xlage'; did you mean 'p4d\.24xlarge'\?") as refused:
        catalog.show("p4d.24xlage")

    assert refused.value.code == 2


def test_a_name_like_no_other_is_told_where_all_are_listed() -> None:
    with pytest.raises(CommandError, match=r"^unknown name 'nope' \(`gpufleet catalog show` lists all\)$"):
        catalog.show("nope")


def test_every_document_of_the_catalogue_survives_json() -> None:
    document = catalog.show()

    assert json.loads(json.dumps(document, allow_nan=False)) == document
