"""SpamAssassin's public e-mails: 4,150 of ham and 1,896 of spam; bodies only.

Headers are left out: they tell the collections apart by dates and servers. E-mails whose words are the same lie on one
side of the split, and of a fold.
"""

from __future__ import annotations

import hashlib
import html
import re

import numpy as np
import tokenizers

from training.config.data import Spam
from training.data import cache, download, tokens
from training.data.text import Documents, TextSet

HELD_OUT = 5  # one in so many
TAG, SPACE = re.compile(r"<[^>]*>"), re.compile(r"\s+")
CHARACTERS = 4000  # of a body that are looked at


def load(config: Spam, seed: int) -> TextSet:
    """Four fifths to train on, one held out; the vocabulary is made from the first, or given. Raises DataError."""
    texts, labels, families, held_out = emails()
    if config.tokenizer:
        tokenizer = tokens.given(config.tokenizer)
        vocabulary = tokens.vocabulary(tokenizer)
    else:
        training = [text for text, held in zip(texts, held_out, strict=True) if not held]
        tokenizer, vocabulary = tokens.wordpiece(training, config.vocabulary), config.vocabulary
    made_by = tokens.sha256(tokenizer)
    name = cache.named("spam", tokenizers.__version__, made_by, config.length, texts)
    rows = cache.array(name, lambda: tokens.documents(tokenizer, texts, config.length))
    whole = Documents(tokens=rows, labels=labels, families=families)
    train, judged = (whole.only(which) for which in (~held_out, held_out))
    about = {"vocabulary": vocabulary, "length": config.length, "classes": 2, "tokenizer": made_by}
    return TextSet(train=train, held_out=judged, **about)


def emails() -> tuple[list[str], np.ndarray, np.ndarray, np.ndarray]:
    """Bodies, whether each is spam (1) or not (0), which copies are of one e-mail, and whether it is held out."""
    texts: list[str] = []
    labels: list[int] = []
    digests: list[str] = []
    for name, content in download.files("spam"):
        if name.startswith("data/") and name.endswith(".txt"):
            text = body(content)
            texts.append(text)
            labels.append(int("/spam-" in name))
            digests.append(hashlib.sha256(normalized_words(text)).hexdigest())
    _, families = np.unique(np.array(digests, dtype=str), return_inverse=True)
    held_out = np.array([int(digest[:2], 16) % HELD_OUT == 0 for digest in digests])
    return texts, np.array(labels), families, held_out


def body(content: bytes) -> str:
    """What follows the headers, without HTML's tags."""
    _, _, text = content.decode("latin-1").replace("\r\n", "\n").partition("\n\n")
    return SPACE.sub(" ", html.unescape(TAG.sub(" ", text)))[:CHARACTERS]


def normalized_words(text: str) -> bytes:
    """What two copies of one e-mail to different people share: its words without numbers, up to a length."""
    return " ".join(re.findall(r"[a-z]{3,}", text.lower())[:60]).encode()
