"""Draws docs/pictures/architecture.svg from the imports: `python -m tools.structure.architecture`.

Each package is a column, each layer of `tools.structure.walls.LAYERS` a row, each box a folder or a file directly in
its package. A line leads from an importer down to what it imports; one that follows from two others is left out.
Imports against the layers are dashed and red.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path

from tools.structure.imports import PACKAGES, Graph, file_graph, grouped, package_files
from tools.structure.walls import LAYERS, layer

PICTURE = "docs/pictures/architecture.svg"
BOX_WIDTH, BOX_HEIGHT, GAP, ROW, MARGIN, HEADER = 118, 30, 14, 78, 28, 44  # pixels

STYLE = """
text { font: 12px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1f2328 }
.name { font-weight: 600; font-size: 15px } .page { fill: #ffffff } .package { fill: #f6f8fa; stroke: #8c959f }
.folder { fill: #ddf4ff; stroke: #54aeff } .file { fill: #ffffff; stroke: #8c959f }
path { fill: none; stroke: #59636e; stroke-width: 1.2 } path.upward { stroke: #cf222e; stroke-dasharray: 5 3 }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .page { fill: #0d1117 } .package { fill: #151b23; stroke: #656c76 }
.folder { fill: #121d2f; stroke: #1f6feb } .file { fill: #212830; stroke: #656c76 } path { stroke: #9198a1 }
path.upward { stroke: #f85149 }
}
"""

Edge = tuple[str, str]


@dataclass(frozen=True)
class Box:
    """A folder or file, and where it is drawn: x of its centre, y of its upper edge."""

    name: str
    x: int
    y: int

    def svg(self) -> str:
        kind = "file" if self.name.endswith(".py") else "folder"
        label = self.name.partition("/")[2]
        left, baseline = self.x - BOX_WIDTH // 2, self.y + BOX_HEIGHT // 2 + 4
        size = f'x="{left}" y="{self.y}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6"'
        text = f'<text x="{self.x}" y="{baseline}" text-anchor="middle">{escape(label)}</text>'
        return f'<rect {size} class="{kind}"/>{text}'


def package_graph(root: Path, package: str) -> Graph:
    """The imports between the boxes of a package, of what runs when a file loads."""
    graph = file_graph(root, package_files(root, [package]))
    return grouped(graph, {file: "/".join(file.split("/")[:2]) for file in graph})


def other_packages(root: Path, package: str) -> list[str]:
    """The packages that a package imports anywhere, also inside functions."""
    graph = file_graph(root, package_files(root), module_level=False)
    targets = {target.partition("/")[0] for file in graph if file.startswith(f"{package}/") for target in graph[file]}
    return sorted(targets - {package})


def edges(root: Path) -> set[Edge]:
    """What the picture shows: importer and imported, without what follows from two other lines."""
    return {edge for package in PACKAGES for edge in package_edges(root, package)}


def package_edges(root: Path, package: str) -> set[Edge]:
    """The same of one package: imports down the layers as few as say all of them, and every import upwards."""
    graph, rank = package_graph(root, package), partial(layer, layers=LAYERS[package])
    down = {node: {target for target in targets if rank(node) >= rank(target)} for node, targets in graph.items()}
    up = {(node, target) for node, targets in graph.items() for target in targets - down[node]}
    return {edge for edge in {*reduced(down), *up} if not any(name.endswith("__init__.py") for name in edge)}


def reduced(graph: Graph) -> Iterator[Edge]:
    """The edges of a graph that no longer path implies."""
    for node, targets in graph.items():
        for target in targets:
            if not any(target in reachable(graph, other, node) for other in targets - {target}):
                yield node, target


def reachable(graph: Graph, start: str, without: str) -> set[str]:
    """What can be reached from `start` without passing `without`."""
    seen, rest = set[str](), [start]
    while rest:
        new = graph[rest.pop()] - seen - {without}
        seen |= new
        rest += new
    return seen


def shown_edges(svg: str) -> set[Edge]:
    """The edges of a picture that was drawn before."""
    return {(importer, imported) for importer, imported in re.findall(r'data-edge="(\S+) (\S+)"', svg)}


def draw(root: Path) -> str:
    """The picture as an SVG document."""
    shapes: list[str] = []
    left = MARGIN
    height = HEADER + max(len(layers) for layers in LAYERS.values()) * ROW + MARGIN
    for package in PACKAGES:
        boxes = list(place(package_graph(root, package), package, left))
        right = max(box.x for box in boxes) + BOX_WIDTH // 2 + MARGIN
        shapes += frame(root, package, left, right - left, height)
        shapes += lines(boxes, sorted(package_edges(root, package)), LAYERS[package])
        shapes += [box.svg() for box in boxes]
        left = right + MARGIN
    size = f'width="{left}" height="{height + MARGIN}" viewBox="0 0 {left} {height + MARGIN}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">\n<title>Imports between folders</title>'
    page = f'<rect width="{left}" height="{height + MARGIN}" class="page"/>'
    return "\n".join([head, f"<style>{STYLE}</style>", page, *shapes, "</svg>\n"])


def place(graph: Graph, package: str, left: int) -> Iterator[Box]:
    """The boxes of a package, its highest layer first, each layer in the middle of the column."""
    rows: list[list[str]] = [[] for _ in LAYERS[package]]
    for name in sorted(graph):
        if not name.endswith("__init__.py"):
            rows[layer(name, LAYERS[package])].append(name)
    wide = max(len(row) for row in rows) * (BOX_WIDTH + GAP) - GAP
    for number, row in enumerate(reversed(rows)):
        start = left + MARGIN + (wide - len(row) * (BOX_WIDTH + GAP) + GAP) // 2
        for i, name in enumerate(row):
            yield Box(name, start + i * (BOX_WIDTH + GAP) + BOX_WIDTH // 2, HEADER + MARGIN + number * ROW)


def frame(root: Path, package: str, left: int, width: int, height: int) -> list[str]:
    """The frame of a package with its name and the other packages it imports."""
    others = other_packages(root, package)
    note = f"imports {' and '.join(others)}" if others else "imports no other package"
    return [
        f'<rect x="{left}" y="{MARGIN // 2}" width="{width}" height="{height}" rx="8" class="package"/>',
        f'<text x="{left + 14}" y="{MARGIN // 2 + 26}" class="name">{package}/</text>',
        f'<text x="{left + 110}" y="{MARGIN // 2 + 26}">{note}</text>',
    ]


def lines(boxes: Iterable[Box], drawn: Iterable[Edge], layers: tuple[tuple[str, ...], ...]) -> Iterator[str]:
    """A curve for each edge, from the lower side of the importer to the upper side of what it imports."""
    at, rank = {box.name: box for box in boxes}, partial(layer, layers=layers)
    for importer, imported in drawn:
        a, b = at[importer], at[imported]
        upward = rank(importer) < rank(imported)
        start, end, bend = (a.y, b.y + BOX_HEIGHT, -ROW // 2) if upward else (a.y + BOX_HEIGHT, b.y, ROW // 2)
        curve = f"M{a.x} {start}C{a.x} {start + bend} {b.x} {end - bend} {b.x} {end}"
        kind = ' class="upward"' if upward else ""
        yield f'<path d="{curve}" data-edge="{importer} {imported}"{kind}/>'


def main() -> int:
    """Writes the picture; returns 0."""
    root = Path(__file__).resolve().parents[2]
    (root / PICTURE).write_text(draw(root), encoding="utf-8")
    print(f"wrote {PICTURE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
