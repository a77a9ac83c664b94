"""The `commit-msg` hook: refuses a subject that is too long or is not in the imperative.

Git gives it the file that holds the message: `python tools/commit_message.py FILE`. Merges and reverts have the subject
that Git gives them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

MOST_CHARACTERS = 72  # what `git log --oneline` and a mail's subject show whole
NO_VERB_FORMS = frozenset({"bring", "embed", "exceed", "feed", "need", "ping", "proceed", "seed", "shed", "shred"})
NO_VERB_FORMS |= {"sing", "speed", "spring", "string", "swing", "wed", "weed", "wing"}  # end so, and are imperatives
FREE = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")


def mistakes(message: str) -> Iterator[str]:
    """What is wrong with a commit's message; lines that begin with # are Git's own comments."""
    lines = [line.rstrip() for line in message.splitlines() if not line.startswith("#")]
    subject = lines[0] if lines else ""
    if not subject:
        yield "the subject is empty: say what the commit does"
        return
    if FREE.match(subject):
        return
    if len(subject) > MOST_CHARACTERS:
        yield f"the subject has {len(subject)} characters, at most {MOST_CHARACTERS}: move the reason into the body"
    first = re.split(r"\W", subject)[0].lower()
    if first.endswith(("ed", "ing")) and first not in NO_VERB_FORMS:
        yield f"the subject begins with {first!r}: write what the commit does, as in `Add`, `Fix`, `Rename`"
    if subject.endswith("."):
        yield "the subject ends with a full stop: leave it out"
    if len(lines) > 1 and lines[1]:
        yield "the second line is not empty: it separates the subject from the body"


def main(path: str) -> int:
    """Returns 0 for a message that is right, 1 for one that is not, after a line for each mistake."""
    lines = list(mistakes(Path(path).read_text(encoding="utf-8")))
    print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
