"""Where everything of a scene stands: from the top down, each part as high as what it holds."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from infra.graph.picture.scene import Band, Card, Machines, Note, Scene
from infra.graph.picture.svg import Canvas, width, wrapped

PAD, GAP, LINE = 12, 14, 17  # inside a box, between boxes, from text to text
ENTRANCE, OUTSIDE, WAY = 170, 220, 44  # columns beside the network, and the arrow between
ZONE_ALONE, ZONE_BESIDE = 680, 360
LEAST_CARD = 300  # a card narrower than this has no neighbour
HEADER, ZONE_HEAD, BAND_HEAD = 64, 24, 24
NODE_WIDE, NODE_HIGH, MOST_NODES = 42, 28, 8
SLOT, SLOT_GAP = 7, 2


@dataclass(frozen=True)
class Placed:
    """A card and where it stands."""

    card: Card
    x: int
    y: int
    wide: int
    high: int


def drawn(scene: Scene) -> str:
    """The scene as an SVG document."""
    canvas = Canvas()
    left = PAD + (ENTRANCE + WAY if scene.entrances else 0)
    zone_wide = ZONE_ALONE if len(scene.zones) == 1 else ZONE_BESIDE
    network_wide = PAD * 2 + len(scene.zones) * zone_wide + (len(scene.zones) - 1) * GAP
    right = left + network_wide
    wide = right + (WAY + OUTSIDE if scene.outside else 0) + PAD
    columns = [left + PAD + place * (zone_wide + GAP) for place in range(len(scene.zones))]

    top = HEADER
    cards_top = top + LINE + PAD + ZONE_HEAD
    bands, bottom = _bands(scene.bands, columns, zone_wide, cards_top)
    network_high = bottom + PAD * 2 - top
    notes = [_note_lines(note) for note in scene.outside]
    outside_high = sum(_note_high(lines) + GAP for lines in notes) - GAP
    network_high = max(network_high, outside_high)

    _header(canvas, scene, wide)
    canvas.box(left, top, network_wide, network_high, "network")
    canvas.text(left + PAD, top + LINE + 2, scene.network, network_wide - 2 * PAD, strong=True)
    for x, zone in zip(columns, scene.zones, strict=True):
        canvas.box(x, top + LINE + PAD, zone_wide, network_high - LINE - PAD * 2, "zone")
        canvas.text(x + PAD, top + LINE * 2 + PAD, zone, zone_wide - 2 * PAD, kind="muted")
    for band, (y, high, placed) in zip(scene.bands, bands, strict=True):
        for place, label in band.labels.items():
            canvas.box(columns[place] + PAD, y, zone_wide - 2 * PAD, high, band.kind)
            canvas.text(columns[place] + PAD * 2, y + LINE, label, zone_wide - 4 * PAD)
        for each in placed:
            _card(canvas, each)
    _entrances(canvas, scene, [each for _, _, placed in bands for each in placed], left)
    _outside(canvas, scene, right, top)
    y = _footer(canvas, scene, wide, top + network_high + GAP)
    return canvas.document(wide, y + PAD, f"{scene.title}: {scene.subtitle}", "; ".join([*scene.price, *scene.footer]))


def _header(canvas: Canvas, scene: Scene, wide: int) -> None:
    large, small = scene.price
    money = max(int(width(large, 18, strong=True)), int(width(small, 12))) + 1
    room = wide - 3 * PAD - money
    canvas.text(PAD, 28, scene.title, room, size=18, strong=True)
    canvas.text(PAD, 48, scene.subtitle, room, kind="muted")
    canvas.text(wide - PAD, 28, large, money, size=18, strong=True, end=True)
    canvas.text(wide - PAD, 48, small, money, kind="muted", end=True)


def _bands(
    bands: tuple[Band, ...], columns: list[int], zone_wide: int, top: int
) -> tuple[list[tuple[int, int, list[Placed]]], int]:
    """Each band's y, height and cards, and where the last one ends."""
    placed_bands: list[tuple[int, int, list[Placed]]] = []
    y = top
    for band in bands:
        placed, bottom = _shelves(band.cards, columns, zone_wide, y + BAND_HEAD)
        placed_bands.append((y, bottom - y, placed))
        y = bottom + GAP
    return placed_bands, y - GAP


def _shelves(cards: tuple[Card, ...], columns: list[int], zone_wide: int, top: int) -> tuple[list[Placed], int]:
    """Cards of the same zones side by side where there is room, the others each below what it would cover."""
    floor = [top] * len(columns)  # how far down each zone is taken
    spans = Counter(card.zones for card in cards)
    placed: list[Placed] = []
    for zones, many in spans.items():
        first, last = zones
        x, whole = columns[first] + PAD * 2, columns[last] - columns[first] + zone_wide - PAD * 4
        beside = max(1, min(many, (whole + GAP) // (LEAST_CARD + GAP)))
        wide = (whole - GAP * (beside - 1)) // beside
        row = [card for card in cards if card.zones == zones]
        for start in range(0, many, beside):
            shelf = row[start : start + beside]
            y = max(floor[first : last + 1])
            here = [Placed(card, x + i * (wide + GAP), y, wide, _card_high(card, wide)) for i, card in enumerate(shelf)]
            placed += here
            floor[first : last + 1] = [y + PAD + max(each.high for each in here)] * (last - first + 1)
    return placed, max(floor)


def _aside(machines: Machines | None, wide: int) -> int:
    """How far the text of a card stands to the right of its machines; 0: below them."""
    return _strip(machines) + GAP * 2 if machines and wide >= 2 * LEAST_CARD else 0


def _strip(machines: Machines) -> int:
    """The width of the machines, and of the cards of one."""
    nodes = min(machines.most, MOST_NODES) * (NODE_WIDE + 6)
    return max(nodes, min(len(machines.cards), 20) * (SLOT + SLOT_GAP), 240)


def _machines_high(machines: Machines | None) -> int:
    if machines is None:
        return 0
    return (
        NODE_HIGH
        + 8
        + (LINE if machines.most > MOST_NODES else 0)
        + (_slot_rows(machines) * 10 + LINE + 4 if machines.cards else 0)
    )


def _slot_rows(machines: Machines) -> int:
    return -(-len(machines.cards) // 20)


def _texts(card: Card, wide: int) -> list[str]:
    room = wide - 2 * PAD - _aside(card.machines, wide)
    return [line for text in card.lines for line in wrapped(text, room, 12)]


def _card_high(card: Card, wide: int) -> int:
    head = LINE * (2 if card.size else 1) + PAD
    machines, texts = _machines_high(card.machines), len(_texts(card, wide)) * LINE
    return head + (max(machines, texts) if _aside(card.machines, wide) else machines + texts) + PAD


def _card(canvas: Canvas, placed: Placed) -> None:
    card, x, y = placed.card, placed.x + PAD, placed.y + LINE + 4
    canvas.box(placed.x, placed.y, placed.wide, placed.high, "card")
    money = int(width(card.right, 12)) + 1
    room = placed.wide - 2 * PAD
    canvas.text(x, y, card.title, room - money - (GAP if card.right else 0), size=14, strong=True)
    if card.right:
        canvas.text(x + room, y, card.right, money, end=True)
    if card.size:
        y += LINE
        canvas.text(x, y, card.size, room)
    y += PAD - 2
    if card.machines:
        _machines(canvas, card.machines, x, y)
    aside = _aside(card.machines, placed.wide)
    y += 0 if aside else _machines_high(card.machines)
    for number, line in enumerate(_texts(card, placed.wide)):
        canvas.text(x + aside, y + 11 + number * LINE, line, room - aside, kind="muted")


def _machines(canvas: Canvas, machines: Machines, x: int, y: int) -> None:
    """The nodes, those that only may be there in dashes, and below them the cards of one."""
    for number in range(min(machines.most, MOST_NODES)):
        at = x + number * (NODE_WIDE + 6)
        sure = number < machines.least
        canvas.box(at, y, NODE_WIDE, NODE_HIGH, "node" if sure else "maybe", round_by=3)
        if machines.gpus == 0:
            canvas.box(at + 6, y + NODE_HIGH - 8, NODE_WIDE - 12, 3, "head", round_by=1)
        for gpu in range(min(machines.gpus, 8)):
            canvas.box(at + 6 + gpu % 4 * 8, y + 6 + gpu // 4 * 9, 6, 7, "gpu", round_by=1)
    y += NODE_HIGH + 8
    if machines.most > MOST_NODES:
        canvas.text(x, y + 9, f"and {machines.most - MOST_NODES:,} more", 240, kind="muted")
        y += LINE
    for number, kind in enumerate(machines.cards):
        canvas.box(x + number % 20 * (SLOT + SLOT_GAP), y + number // 20 * 10, SLOT, SLOT, kind, round_by=1)
    if machines.cards:
        kinds = Counter(machines.cards)
        each = ", ".join(f"{many} {machines.kinds.get(kind, kind)}" for kind, many in kinds.items())
        canvas.text(x, y + _slot_rows(machines) * 10 + 11, f"{each} a node", 240, size=11, kind="muted")


def _note_lines(note: Note, wide: int = OUTSIDE) -> list[str]:
    return [part for line in note.lines for part in wrapped(line, wide - 2 * PAD, 12)]


def _note_high(lines: list[str]) -> int:
    return LINE * (1 + len(lines)) + PAD + 4


def _note(canvas: Canvas, note: Note, x: int, y: int, wide: int) -> int:
    """Draws it and tells its height."""
    lines = _note_lines(note, wide)
    high = _note_high(lines)
    canvas.box(x, y, wide, high, "note")
    canvas.text(x + PAD, y + LINE + 2, note.title, wide - 2 * PAD, strong=True)
    for number, line in enumerate(lines):
        canvas.text(x + PAD, y + LINE * (number + 2) + 2, line, wide - 2 * PAD, kind="muted")
    return high


def _entrances(canvas: Canvas, scene: Scene, placed: list[Placed], left: int) -> None:
    """Each beside what it leads to."""
    y = HEADER
    for note in scene.entrances:
        target = next((each for each in placed if each.card.title == note.to), None)
        high = _note_high(_note_lines(note, ENTRANCE))
        y = max(y, target.y + 40 - high // 2) if target else y
        _note(canvas, note, PAD, y, ENTRANCE)
        canvas.arrow(PAD + ENTRANCE, y + high // 2, target.x if target else left)
        y += high + GAP


def _outside(canvas: Canvas, scene: Scene, right: int, top: int) -> None:
    y = top
    for note in scene.outside:
        high = _note(canvas, note, right + WAY, y, OUTSIDE)
        canvas.arrow(right, y + high // 2, right + WAY)
        y += high + GAP


def _footer(canvas: Canvas, scene: Scene, wide: int, y: int) -> int:
    for text in scene.footer:
        for line in wrapped(text, wide - 2 * PAD, 12):
            y += LINE
            canvas.text(PAD, y, line, wide - 2 * PAD, kind="muted")
    return y
