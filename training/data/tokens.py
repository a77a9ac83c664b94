"""Tokenizers: bytes, and WordPiece or BPE vocabularies trained on the training part by `tokenizers`."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import tokenizers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from training.data import cache
from training.data.images import DataError
from training.data.text import PADDING

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]  # padding is token 0
MOST = 2**16  # token numbers that 16 bits hold
LONGEST_WORD = 100  # characters; longer ones, such as lines of encoded files, are [UNK]


def bytes_of(text: str) -> npt.NDArray[np.uint8]:
    """UTF-8: a vocabulary of 256."""
    return np.frombuffer(text.encode(), dtype=np.uint8)


def wordpiece(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """A vocabulary as BERT has it: lower case, words cut at spaces and punctuation, [CLS] in front and [SEP] behind."""

    def make() -> Tokenizer:
        # The trainer numbers letters in the order of a hash map, another one in each process, and goes by the numbers
        # where two merges are as frequent. Only special tokens are numbered as they are given: so the letters are some.
        letters = sorted(pieces(texts, 0, []))
        tokenizer = wordpiece_tokenizer(pieces(texts, vocabulary, [*SPECIAL, *letters]))
        tokenizer.add_special_tokens(SPECIAL)
        return tokenizer

    return cached("wordpiece", wordpiece_tokenizer({}), texts, vocabulary, make)


def pieces(texts: Sequence[str], most: int, first: list[str]) -> dict[str, int]:
    """Numbered WordPieces of the texts, these in front; never fewer than the texts have letters."""
    trained = wordpiece_tokenizer({})
    trainer = trainers.WordPieceTrainer(vocab_size=most, special_tokens=first, show_progress=False)
    trained.train_from_iterator(texts, trainer)
    return trained.get_vocab()


def wordpiece_tokenizer(known: dict[str, int]) -> Tokenizer:
    """Cuts text into the pieces that are known."""
    tokenizer = Tokenizer(models.WordPiece(known, unk_token="[UNK]", max_input_chars_per_word=LONGEST_WORD))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    return tokenizer


def bpe(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """Byte pairs as GPT-2 has them: any text can be written."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()

    def make() -> Tokenizer:
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        tokenizer.train_from_iterator(
            texts, trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
        )
        return tokenizer

    return cached("bpe", tokenizer, texts, vocabulary, make)


def given(path: Path) -> Tokenizer:
    """The tokenizer of a file of Hugging Face's; raises DataError where it is none, or not of a kind that fits here."""
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library has no narrower one
        why = str(error).splitlines()[0]
        raise DataError(f"data.tokenizer {path} cannot be read: {why}; give the tokenizer.json of a model") from error
    largest, padding = vocabulary(tokenizer) - 1, tokenizer.id_to_token(PADDING)
    if padding != SPECIAL[PADDING] or largest >= MOST:
        mistake = f"has tokens up to {largest}, the first one {padding}"
        raise DataError(
            f"data.tokenizer {path} {mistake}; "
            f"they may go up to {MOST - 1}, the first one {SPECIAL[PADDING]}, as in BERT"
        )
    tokenizer.no_padding()
    return tokenizer


def sha256(tokenizer: Tokenizer) -> str:
    """Over all that decides which tokens a text becomes; taken before truncation is set, which is part of it."""
    return hashlib.sha256(tokenizer.to_str().encode()).hexdigest()


def vocabulary(tokenizer: Tokenizer) -> int:
    """Entries of an embedding that has every token: more than there are tokens where numbers are left out."""
    return max(tokenizer.get_vocab().values(), default=-1) + 1


def cached(
    kind: str, untrained: Tokenizer, texts: Sequence[str], vocabulary: int, make: Callable[[], Tokenizer]
) -> Tokenizer:
    """The tokenizer made from these texts: from the cache, or made and kept there."""
    name = cache.named(kind, tokenizers.__version__, untrained.to_str(), SPECIAL, texts, vocabulary)
    return cache.cached(f"{name}.json", lambda: make().to_str().encode(), lambda path: Tokenizer.from_file(str(path)))


def documents(tokenizer: Tokenizer, texts: Sequence[str], length: int) -> npt.NDArray[np.uint16]:
    """Tokens [texts, length]: cut at length, padded with 0."""
    tokenizer.enable_truncation(length)
    rows = np.zeros((len(texts), length), dtype=np.uint16)
    for row, encoded in zip(rows, tokenizer.encode_batch(texts), strict=True):
        row[: len(encoded.ids)] = encoded.ids
    return rows


def running(tokenizer: Tokenizer, text: str) -> npt.NDArray[np.uint16]:
    """All tokens of one text."""
    return np.array(tokenizer.encode(text).ids, dtype=np.uint16)
