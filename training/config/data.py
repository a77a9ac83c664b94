"""Config of the data sets and of image augmentation; `DATA_SETS` is their registry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from training.config.limits import Classes, Count, Fraction, Mistakes, Side, Weight, Whole
from training.config.toml_source import Limit

FOLDS = 5
Content = Literal["images", "documents", "running text"]
Fold = Annotated[int, Limit(lambda n: 0 <= n < FOLDS, f"must be 0 to {FOLDS - 1}")]


@dataclass(frozen=True, kw_only=True)
class Batching:
    """How a data set is cut into steps.

    global_batch: samples a step over all ranks, whatever their number.
    micro_batch: most samples a rank runs through the model at once; accumulation follows. 0: its whole share.
    workers: threads that prepare batches ahead; 0: in the loop, which is as fast for a set held in memory.
    fold: 0 to 4: judge by that fifth of the training set, trained on the others, and leave the held-out samples alone;
        for choosing settings.
    """

    global_batch: Count
    micro_batch: Whole = 0
    workers: Whole = 0
    fold: Fold | None = None
    if TYPE_CHECKING:
        kind: str  # every subclass has its own

    @property
    def content(self) -> Content | None:
        """What the samples are; None where only the files can tell."""
        return None

    def rules(self) -> Mistakes:
        if self.micro_batch > self.global_batch:
            yield "micro_batch", f"is larger than global_batch = {self.global_batch}"


@dataclass(frozen=True, kw_only=True)
class Mnist5k(Batching):
    """4,000 handwritten digits to train on and 1,000 held out, 28 × 28 pixels."""

    kind: Literal["mnist5k"] = "mnist5k"

    @property
    def content(self) -> Content:
        return "images"


@dataclass(frozen=True, kw_only=True)
class Synthetic(Batching):
    """Made-up images that can be learned: a pattern a class under noise. `held_out` of them are for evaluation."""

    kind: Literal["synthetic"] = "synthetic"
    samples: Count = 1024
    held_out: Count = 128
    classes: Classes = 10
    image_size: Side = 32
    channels: Count = 3

    @property
    def content(self) -> Content:
        return "images"


@dataclass(frozen=True, kw_only=True)
class Cifar10(Batching):
    """CIFAR-10 (Krizhevsky 2009): 50,000 colour images to train on and 10,000 held out, from its binary version.

    path: the folder with data_batch_1.bin to data_batch_5.bin and test_batch.bin.
    """

    kind: Literal["cifar10"] = "cifar10"
    path: Path

    @property
    def content(self) -> Content:
        return "images"


@dataclass(frozen=True, kw_only=True)
class ImageFolder(Batching):
    """JPEG and PNG files as ImageNet is laid out: `path`/train/CLASS/*.jpg and `path`/val/CLASS/*.jpg.

    image_size: side of what the model sees. unreadable: files that may be passed over, each named, before it is an
    error. decoder: pillow, by threads of the CPU; dali, by NVIDIA's library (`make dali`), on a GPU where there is one.
    """

    kind: Literal["imagefolder"] = "imagefolder"
    path: Path
    image_size: Side = 224
    unreadable: Whole = 0
    decoder: Literal["pillow", "dali"] = "pillow"

    @property
    def content(self) -> Content:
        return "images"


@dataclass(frozen=True, kw_only=True)
class Packed(Batching):
    """A folder that `python -m training pack` made, mapped into memory: images or text.

    length: tokens a training sample, where it holds running text.
    """

    kind: Literal["packed"] = "packed"
    path: Path
    length: Count = 256


@dataclass(frozen=True, kw_only=True)
class Spam(Batching):
    """SpamAssassin's e-mails, ham or spam, every fifth held out; fetched by `python -m training fetch spam`.

    length: tokens of an e-mail that are read. vocabulary: entries of the WordPiece vocabulary, made from the training
    e-mails. tokenizer: a tokenizer.json to use instead: the one of pretrained weights, which know no other tokens.
    """

    kind: Literal["spam"] = "spam"
    length: Annotated[int, Limit(lambda n: n >= 3, "must be 3 or more: [CLS] and [SEP] are two of them")] = 128
    vocabulary: Annotated[int, Limit(lambda n: 512 <= n <= 65536, "must be 512 to 65536")] = 8192
    tokenizer: Path | None = None

    @property
    def content(self) -> Content:
        return "documents"


@dataclass(frozen=True, kw_only=True)
class Text(Batching):
    """Running text for next-token prediction.

    source: a named set (`python -m training fetch`): the State of the Union addresses, the years from 2001 on held
    out, or Moby Dick, its last tenth held out. length: tokens a sample. tokens: bytes, or BPE of `vocabulary` entries
    made from the training part.
    """

    kind: Literal["text"] = "text"
    source: Literal["sotu", "moby-dick"]
    length: Count = 256
    tokens: Literal["bytes", "bpe"] = "bytes"
    vocabulary: Annotated[int, Limit(lambda n: 512 <= n <= 65536, "must be 512 to 65536")] = 4096

    @property
    def content(self) -> Content:
        return "running text"


@dataclass(frozen=True, kw_only=True)
class SyntheticText(Batching):
    """Made-up tokens that can be learned: kinds of text to tell apart or, with classes = 0, a next token."""

    kind: Literal["synthetic-text"] = "synthetic-text"
    samples: Count = 1024
    held_out: Count = 128
    length: Count = 64
    vocabulary: Annotated[int, Limit(lambda n: 8 <= n <= 65536, "must be 8 to 65536")] = 256
    classes: Whole = 0

    @property
    def content(self) -> Content:
        return "documents" if self.classes else "running text"


DATA_SETS = {
    Mnist5k: "training.data.datasets.mnist5k:load",
    Synthetic: "training.data.datasets.synthetic:load",
    Cifar10: "training.data.datasets.cifar:load",
    ImageFolder: "training.data.datasets.imagefolder:load",
    Packed: "training.data.datasets.packed:load",
    Spam: "training.data.datasets.spam:load",
    Text: "training.data.datasets.text_corpora:load",
    SyntheticText: "training.data.datasets.synthetic_text:load",
}


@dataclass(frozen=True, kw_only=True)
class Augment:
    """Random changes of training images, each a function of (seed, step, index).

    shift: most pixels of a move along each axis. warp: most that is added to each entry of the 2 × 2 map an image is
    turned, stretched and slanted by. flip: half of the images, left to right. brightness, contrast, saturation: most
    that a factor around 1 differs from it. randaugment: so many random operations an image (Cubuk et al. 2019), each
    as strong as magnitude, 0 to 1. mixup, cutmix: α of the Beta distribution an image's share is drawn from (Zhang et
    al. 2018, Yun et al. 2019); with both, one or the other.
    """

    shift: Annotated[int, Limit(lambda n: 0 <= n <= 32, "must be 0 to 32 pixels")] = 0
    warp: Annotated[float, Limit(lambda x: 0 <= x <= 0.5, "must be 0 to 0.5")] = 0.0
    flip: bool = False
    brightness: Fraction = 0.0
    contrast: Fraction = 0.0
    saturation: Fraction = 0.0
    randaugment: Annotated[int, Limit(lambda n: 0 <= n <= 8, "must be 0 to 8")] = 0
    magnitude: Annotated[float, Limit(lambda x: 0 <= x <= 1, "must be 0 to 1")] = 0.3
    mixup: Weight = 0.0
    cutmix: Weight = 0.0
