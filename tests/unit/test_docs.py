"""The pages: every link leads somewhere, every file they name exists, and the picture shows today's imports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.structure.architecture import PICTURE, edges, shown_edges
from tools.structure.imports import tracked

REPOSITORY = Path(__file__).resolve().parents[2]
PAGES = tracked(REPOSITORY, "*.md")
TOP = ("infra", "ops", "training", "playbooks", "tools", "tests", "docs", "stacks", "requirements.txt")
LINK = re.compile(r"\]\(([^)\s]+)\)")
# `infra/spec/load.py`, `infra/spec/load.py:17`, `tests/unit/x.py::test_y`, `infra/policy/*.py`; no command.
NAMED = re.compile(rf"`((?:{'|'.join(TOP)})/[\w./*-]+)(?:::?[\w:]+)?`")
PLACEHOLDER = re.compile(r"\b[A-Z]{3,}\b")


def outside_code(text: str) -> str:
    """A page without its code blocks."""
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", outside_code(page.read_text(encoding="utf-8")), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """The relative links of a page that lead nowhere."""
    broken = []
    for link in LINK.findall(outside_code(page.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        if "://" in link or link.startswith("mailto:"):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    return broken


def missing_files(page: Path, root: Path) -> list[str]:
    """The files in backticks that are not there; names with a placeholder in capitals are left out."""
    named = NAMED.findall(outside_code(page.read_text(encoding="utf-8")))
    real = [path for path in named if not PLACEHOLDER.search(path)]
    return [path for path in real if not any(root.glob(path.rstrip("/")))]


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: str) -> None:
    assert broken_links(REPOSITORY / page) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there(page: str) -> None:
    assert missing_files(REPOSITORY / page, REPOSITORY) == []


def test_a_broken_link_and_a_missing_file_are_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n[a](#one-heading) [b](#other) [c](gone.md) [d](https://example.com)\n"
        "`infra/gone.py` and `infra/clouds/NEW/plan.py`\n```\n[e](gone.md) `infra/code.py`\n```\n"
    )

    assert broken_links(page) == ["#other", "gone.md"]
    assert missing_files(page, tmp_path) == ["infra/gone.py"]


def test_the_picture_shows_the_imports_of_today() -> None:
    shown = shown_edges((REPOSITORY / PICTURE).read_text(encoding="utf-8"))

    assert shown == edges(REPOSITORY), "run `python -m tools.structure.architecture`"
