"""The picture of a plan: well formed, the same each time, and no text outside its box."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from graph_projects import REPOSITORY, shipped
from PIL import ImageFont

from infra.evaluate import decide
from infra.graph.picture import draw
from infra.graph.picture.layout import drawn
from infra.graph.picture.scene import Band, Card, Machines, Note, Scene
from infra.spec import load

NAMESPACE = "{http://www.w3.org/2000/svg}"
PICTURES = REPOSITORY / "docs" / "pictures"
NAUGHTY = "<b>&\"'</b>"
LONG = "w" * 200


@cache
def font(size: int, *, strong: bool) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, the widest of the fonts that a viewer may show the picture in."""
    name = "DejaVuSans-Bold.ttf" if strong else "DejaVuSans.ttf"
    return ImageFont.truetype(Path(mpl.get_data_path(), "fonts", "ttf", name), size * 10)


def picture(stack: str) -> str:
    return draw(decide(load(REPOSITORY, stack)))


def scene(**changes: object) -> Scene:
    machines = Machines(least=1, most=40, gpus=8, cards=("interface", *["efa-only"] * 32))
    card = Card(title="a", right="1.00 USD/h", size="1 × x", lines=("one · two",), machines=machines)
    plain = Scene(
        title="s",
        subtitle="sub",
        price=("1.00 USD/h", "730 USD/month"),
        network="VPC",
        zones=("z",),
        bands=(Band(kind="fabric", labels={0: "fabric 10.0.0.0/24"}, cards=(card,)),),
        entrances=(Note(title="people", lines=("SSH",), to="a"),),
        outside=(Note(title="bucket", lines=("→ /data",)),),
        footer=("price: 1.00",),
    )
    return replace(plain, **changes)  # pyright: ignore[reportArgumentType]


def texts(svg: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(svg) if each.tag == f"{NAMESPACE}text"]


def overflowing(svg: str) -> list[str]:
    """The texts that, in DejaVu Sans, leave the uppermost box below the point that they hang on."""
    root = ElementTree.fromstring(svg)
    boxes = [
        [int(each.get(key, "0")) for key in ("x", "y", "width", "height")] for each in root.iter(f"{NAMESPACE}rect")
    ]
    found = []
    for each in texts(svg):
        size, strong = int(each.get("font-size", "0")), "strong" in each.get("class", "")
        x, y = int(each.get("x", "0")), int(each.get("y", "0"))
        wide = font(size, strong=strong).getlength(each.text or "") / 10
        start = x - wide if each.get("text-anchor") == "end" else x
        around = [box for box in boxes if box[0] <= x <= box[0] + box[2] and box[1] <= y <= box[1] + box[3]]
        left, top, width, height = around[-1]
        if start < left or start + wide > left + width or y - size < top or y > top + height:
            found.append(each.text or "")
    return found


@pytest.mark.parametrize("stack", shipped())
def test_no_text_leaves_its_box(stack: str) -> None:
    svg = picture(stack)

    assert len(texts(svg)) > 8
    assert overflowing(svg) == []


@pytest.mark.parametrize("stack", shipped())
def test_every_group_stands_in_the_picture_with_its_price(stack: str) -> None:
    plan = decide(load(REPOSITORY, stack))
    said = {each.text for each in texts(draw(plan))}

    for group in plan.groups:
        assert group.name in said
    for item in plan.cost.items:
        if item.hourly and item.name in {group.name for group in plan.groups}:
            assert f"{item.hourly:,.2f} {plan.cost.currency}/h" in said


def test_the_same_plan_is_the_same_picture() -> None:
    assert picture("a100-prod") == picture("a100-prod")


@pytest.mark.parametrize(
    "file", sorted({*PICTURES.glob("*.svg")} - {PICTURES / "architecture.svg"}), ids=lambda file: file.stem
)
def test_a_picture_of_the_pages_is_what_the_command_draws(file: Path) -> None:
    """Renew: gpufleet plan STACK --picture docs/pictures/STACK.svg"""
    assert file.read_text() == picture(file.stem)


def test_a100_prod_shows_its_four_nodes_of_eight_gpus_with_their_cards() -> None:
    root = ElementTree.fromstring(picture("a100-prod"))
    kinds = [each.get("class") for each in root.iter(f"{NAMESPACE}rect")]

    assert kinds.count("gpu") == 4 * 8
    assert kinds.count("efa-only") == 4
    assert kinds.count("node") == 4 + 1


def test_nodes_that_only_may_come_are_dashed() -> None:
    root = ElementTree.fromstring(picture("inference-g6"))
    kinds = [each.get("class") for each in root.iter(f"{NAMESPACE}rect")]

    assert (kinds.count("node"), kinds.count("maybe")) == (1, 5)


def test_a_group_of_forty_is_drawn_by_eight_and_a_number() -> None:
    assert "and 32 more" in {each.text for each in texts(drawn(scene()))}


@pytest.mark.parametrize("word", [NAUGHTY, LONG, "模型" * 60, "]]>"])
def test_any_word_stays_text_and_inside(word: str) -> None:
    machines = Machines(least=1, most=1, gpus=0)
    card = Card(title=word, right="no price", size=word, lines=(word, f"a · {word}"), machines=machines)
    note = Note(title=word, lines=(word,))
    svg = drawn(
        scene(
            title=word,
            subtitle=word,
            network=word,
            zones=(word,),
            bands=(Band(kind="public", labels={0: word}, cards=(card, card)),),
            entrances=(note,),
            outside=(note,),
            footer=(word,),
        )
    )

    assert ElementTree.fromstring(svg).find(f"{NAMESPACE}b") is None
    if word.isascii():  # DejaVu Sans has no other glyphs to measure with
        assert overflowing(svg) == []


def test_cards_never_cover_each_other() -> None:
    spans = [(0, 0), (0, 2), (1, 1), (2, 2), (0, 2)]
    cards = tuple(Card(title=str(number), lines=("x",), zones=zones) for number, zones in enumerate(spans))
    band = Band(kind="private", labels=dict(enumerate("abc")), cards=cards)
    svg = drawn(scene(zones=("a", "b", "c"), bands=(band,)))

    drawn_cards = [each for each in ElementTree.fromstring(svg) if each.get("class") == "card"]
    places = [[int(each.get(key, "0")) for key in ("x", "y", "width", "height")] for each in drawn_cards]
    assert len(places) == 5
    for number, (x, y, wide, high) in enumerate(places):
        for left, top, width, height in places[number + 1 :]:
            assert x + wide <= left or left + width <= x or y + high <= top or top + height <= y


def test_commands_of_this_computer_and_of_root_stand_below_the_picture() -> None:
    said = " ".join(each.text or "" for each in texts(picture("onprem-ib")))

    assert "runs on this computer: up, for each host that does not answer: ipmitool -I lanplus" in said
    assert "runs on nodes as root: up, on every node: ansible-playbook" in said


def test_it_is_told_to_those_who_do_not_see_it_and_changes_with_the_dark() -> None:
    svg = picture("a100-prod")

    assert "<title>a100-prod: aws us-east-1d" in svg
    assert "prefers-color-scheme: dark" in svg
