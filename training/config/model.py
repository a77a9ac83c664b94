"""Config of the models; `MODELS` is their registry."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from training.config.data import Content
from training.config.limits import Count, Fraction, Mistakes


@dataclass(frozen=True, kw_only=True)
class Model:
    """What every model can start from. reads: the samples that it takes.

    weights: a .safetensors or .pt file to start from; a classifier for another number of classes is left out.
    freeze: patterns of parameter names (`layer1.*`) that are not trained. compile: by torch.compile, which takes half a
    minute and pays on GPUs.
    """

    weights: Path | None = None
    freeze: tuple[str, ...] = ()
    compile: bool = False
    reads: ClassVar[Content]
    if TYPE_CHECKING:
        kind: str  # every subclass has its own


@dataclass(frozen=True, kw_only=True)
class Cnn(Model):
    """Small convolutional network for small images. Without norm no result depends on how a batch is split."""

    kind: Literal["cnn"] = "cnn"
    reads: ClassVar[Content] = "images"
    norm: Literal["none", "batch"] = "none"
    width: Count = 32
    channels_last: bool = True


@dataclass(frozen=True, kw_only=True)
class ResNet(Model):
    """Residual network for images (He et al. 2015), weights exchangeable with torchvision's."""

    kind: Literal["resnet18", "resnet50"]
    reads: ClassVar[Content] = "images"
    channels_last: bool = True


@dataclass(frozen=True, kw_only=True)
class Transformer(Model):
    """What the two text models share. width: numbers a token; each of `heads` sees width / heads of them."""

    layers: Count = 2
    heads: Count = 4
    width: Count = 128
    dropout: Fraction = 0.0

    def rules(self) -> Mistakes:
        if self.width % self.heads:
            yield "heads", f"must divide width = {self.width}"


@dataclass(frozen=True, kw_only=True)
class TextEncoder(Transformer):
    """BERT (Devlin et al. 2019) with a classifier, weights exchangeable with Hugging Face's.

    pooling: what stands for the text: the first token, as pretrained weights know it, or the mean of all tokens
    (Reimers and Gurevych 2019), from which fresh weights learn more.
    """

    kind: Literal["text-encoder"] = "text-encoder"
    reads: ClassVar[Content] = "documents"
    pooling: Literal["first", "mean"] = "first"


@dataclass(frozen=True, kw_only=True)
class Gpt(Transformer):
    """Decoder that predicts the next token, with rotary positions (Su et al. 2021)."""

    kind: Literal["gpt"] = "gpt"
    reads: ClassVar[Content] = "running text"

    def rules(self) -> Mistakes:
        yield from super().rules()
        if self.width % self.heads == 0 and self.width // self.heads % 2:
            yield "heads", f"leaves {self.width // self.heads} numbers a head; rotary positions need an even number"


MODELS = {
    Cnn: "training.models.cnn:build",
    ResNet: "training.models.resnet:build",
    TextEncoder: "training.models.bert:build",
    Gpt: "training.models.gpt:build",
}
