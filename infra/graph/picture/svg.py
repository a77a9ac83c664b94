"""SVG by a few strokes: boxes, texts that keep within a width, arrows. Coordinates are whole pixels.

Which font a viewer has is not known, so a text's width is reckoned with that of DejaVu Sans, the widest of the usual
ones; a test measures every text of a picture with it.
"""

from __future__ import annotations

from html import escape

from infra.printable import escaped

STYLE = """
text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial, "DejaVu Sans", sans-serif; fill: #1f2328 }
.muted { fill: #59636e } .strong { font-weight: 600 } .ways { stroke: #59636e; fill: none; stroke-width: 1.5 }
.page { fill: #ffffff } .network { fill: #f6f8fa; stroke: #8c959f } .zone { fill: none; stroke: #8c959f }
.card, .note { fill: #ffffff; stroke: #8c959f } .public { fill: #dafbe1; stroke: #4ac26b }
.private { fill: #ddf4ff; stroke: #54aeff } .fabric { fill: #fff1e5; stroke: #fb8f44 } .plain { fill: #eaeef2 }
.node { fill: #eaeef2; stroke: #59636e } .maybe { fill: none; stroke: #59636e; stroke-dasharray: 3 2 }
.gpu { fill: #2da44e } .interface { fill: #218bff } .efa-only { fill: #e16f24 } .efa { fill: #8250df }
.head { fill: #59636e }
@media (prefers-color-scheme: dark) {
text { fill: #f0f6fc } .muted { fill: #9198a1 } .ways { stroke: #9198a1 } .page { fill: #0d1117 }
.network { fill: #151b23; stroke: #656c76 } .zone { stroke: #656c76 } .card, .note { fill: #0d1117; stroke: #656c76 }
.public { fill: #12261e; stroke: #238636 } .private { fill: #121d2f; stroke: #1f6feb }
.fabric { fill: #2d1b0e; stroke: #bd561d } .plain { fill: #212830 } .node { fill: #212830; stroke: #9198a1 }
.maybe { stroke: #9198a1 } .gpu { fill: #3fb950 } .interface { fill: #58a6ff } .efa-only { fill: #f0883e }
.efa { fill: #ab7df8 } .head { fill: #9198a1 }
}
"""

# Widths of DejaVu Sans, of the size, rounded up.
NARROWER = {0.3: "'IJijl", 0.4: " !(),-./:;[\\]ft|·", 0.5: '"*_`r–', 0.6: "?FLcksvxyz"}
WIDER = {0.8: "&DGHNOQU", 0.9: "#+<=>M^w~×→≤", 1.0: "%@Wm…"}
WIDTHS = {character: width for table in (NARROWER, WIDER) for width, all_of in table.items() for character in all_of}
USUAL, UNKNOWN, BOLDER = 0.7, 1.0, 1.16


def width(text: str, size: int, *, strong: bool = False) -> float:
    """Of a text, in pixels, at most."""
    each = (WIDTHS.get(character, USUAL if character.isascii() else UNKNOWN) for character in text)
    return sum(each) * size * (BOLDER if strong else 1)


def cut(text: str, room: int, size: int, *, strong: bool = False) -> str:
    """As much of the text as the room has; what is left out shows as an ellipsis."""
    if width(text, size, strong=strong) <= room:
        return text
    shown = text
    while shown and width(shown + "…", size, strong=strong) > room:
        shown = shown[:-1]
    return shown.rstrip() + "…"


def wrapped(text: str, room: int, size: int) -> list[str]:
    """The text in lines no wider than the room, broken at its points, else between words; a wider word is cut."""
    lines: list[str] = []
    for part in text.split(" · "):
        if lines and width(f"{lines[-1]} · {part}", size) <= room:
            lines[-1] += f" · {part}"
        else:
            lines += _words(part, room, size)
    return lines


def _words(text: str, room: int, size: int) -> list[str]:
    lines: list[str] = []
    for word in text.split(" "):
        if lines and width(f"{lines[-1]} {word}", size) <= room:
            lines[-1] += f" {word}"
        else:
            lines.append(cut(word, room, size))
    return lines


class Canvas:
    """What was drawn, in order: the later stands above the earlier."""

    def __init__(self) -> None:
        self.shapes: list[str] = []

    def box(self, x: int, y: int, wide: int, high: int, kind: str, *, round_by: int = 6) -> None:
        """kind: its class in the style."""
        size = f'width="{wide}" height="{high}" rx="{round_by}"'
        self.shapes.append(f'<rect x="{x}" y="{y}" {size} class="{kind}"/>')

    def text(
        self,
        x: int,
        y: int,
        text: str,
        room: int,
        *,
        size: int = 12,
        kind: str = "",
        strong: bool = False,
        end: bool = False,
    ) -> None:
        """y: of the baseline. end: x is where it ends."""
        kinds = " ".join(filter(None, [kind, "strong" if strong else ""]))
        shown = escape(cut(escaped(text), room, size, strong=strong), quote=False)
        looks = (f' class="{kinds}"' if kinds else "") + (' text-anchor="end"' if end else "")
        self.shapes.append(f'<text x="{x}" y="{y}" font-size="{size}"{looks}>{shown}</text>')

    def arrow(self, x: int, y: int, to_x: int) -> None:
        """A way from left to right."""
        self.shapes.append(f'<path d="M{x} {y}H{to_x - 1}m-6 -4l6 4l-6 4" class="ways"/>')

    def document(self, wide: int, high: int, title: str, description: str) -> str:
        """title, description: for those who do not see the picture."""
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{wide}" height="{high}" '
                f'viewBox="0 0 {wide} {high}" role="img">',
                f"<title>{escape(escaped(title), quote=False)}</title>",
                f"<desc>{escape(escaped(description), quote=False)}</desc>",
                f"<style>{STYLE}</style>",
                f'<rect width="{wide}" height="{high}" class="page"/>',
                *self.shapes,
                "</svg>\n",
            ]
        )
