"""BERT (Devlin et al. 2019) with a classifier, under the state-dict keys of Hugging Face's
BertForSequenceClassification."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from training.config.model import TextEncoder as Config
from training.data.text import PADDING, TextSet
from training.models.attention import Attention

EPS = 1e-12  # of the norms
SPREAD = 0.02  # standard deviation of new weights


class Embeddings(nn.Module):
    """Tokens, places and the first type of text, added up and normed."""

    def __init__(self, vocabulary: int, length: int, width: int, dropout: float) -> None:
        super().__init__()
        self.word_embeddings = nn.Embedding(vocabulary, width)
        self.position_embeddings = nn.Embedding(length, width)
        self.token_type_embeddings = nn.Embedding(2, width)
        self.LayerNorm = nn.LayerNorm(width, eps=EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens: Tensor) -> Tensor:
        places = self.position_embeddings.weight[: tokens.shape[1]] + self.token_type_embeddings.weight[0]
        return self.dropout(self.LayerNorm(self.word_embeddings(tokens) + places))


class Output(nn.Module):
    """Back to the model's width, added to what went in, then normed."""

    def __init__(self, inputs: int, width: int, dropout: float) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, width)
        self.LayerNorm = nn.LayerNorm(width, eps=EPS)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden: Tensor, residual: Tensor) -> Tensor:
        return self.LayerNorm(self.dropout(self.dense(hidden)) + residual)


class Attended(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.self = Attention(width, heads, dropout)
        self.output = Output(width, width, dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        return self.output(self.self(x, mask), x)


class Intermediate(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, 4 * width)

    def forward(self, x: Tensor) -> Tensor:
        return functional.gelu(self.dense(x))


class Layer(nn.Module):
    """Attention, and a feed-forward network of four times the width."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = Attended(width, heads, dropout)
        self.intermediate = Intermediate(width)
        self.output = Output(4 * width, width, dropout)

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        x = self.attention(x, mask)
        return self.output(self.intermediate(x), x)


class Encoder(nn.Module):
    def __init__(self, layers: int, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.layer = nn.ModuleList([Layer(width, heads, dropout) for _ in range(layers)])

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        for layer in self.layer:
            x = layer(x, mask)
        return x


class Pooler(nn.Module):
    """Pools a text: its first token, or the mean of its tokens."""

    def __init__(self, width: int, pooling: str) -> None:
        super().__init__()
        self.pooling = pooling
        self.dense = nn.Linear(width, width)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        """x [batch, tokens, width], text [batch, tokens]: true where there is one → [batch, width]."""
        pooled = x[:, 0]
        if self.pooling == "mean":  # an empty text may have no token
            pooled = (x * text[..., None]).sum(1) / text.sum(1, keepdim=True).clamp(min=1)
        return torch.tanh(self.dense(pooled))


class Bert(nn.Module):
    def __init__(
        self, *, vocabulary: int, length: int, layers: int, heads: int, width: int, dropout: float, pooling: str
    ) -> None:
        super().__init__()
        self.embeddings = Embeddings(vocabulary, length, width, dropout)
        self.encoder = Encoder(layers, width, heads, dropout)
        self.pooler = Pooler(width, pooling)

    def forward(self, tokens: Tensor) -> Tensor:
        text = tokens != PADDING
        return self.pooler(self.encoder(self.embeddings(tokens), padding_mask(text)), text)


def padding_mask(text: Tensor) -> Tensor | None:
    """Where attention may look, of text [batch, tokens]; None where nothing is padded, since it is quicker unasked. A
    GPU's answer to that would have to be waited for."""
    return None if text.device.type == "cpu" and bool(text.all()) else text[:, None, None, :]


class TextEncoder(nn.Module):
    """Text of up to `length` tokens → one of `classes`."""

    def __init__(
        self,
        *,
        vocabulary: int,
        length: int,
        classes: int,
        layers: int,
        heads: int,
        width: int,
        dropout: float,
        pooling: str,
    ) -> None:
        super().__init__()
        shape = {"layers": layers, "heads": heads, "width": width}
        self.bert = Bert(vocabulary=vocabulary, length=length, **shape, dropout=dropout, pooling=pooling)
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(width, classes)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=SPREAD)
            if isinstance(module, nn.Linear):
                nn.init.zeros_(module.bias)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens [batch, up to length], padded at the end → logits [batch, classes]."""
        return self.classifier(self.dropout(self.bert(tokens)))


def build(config: Config, data: TextSet) -> TextEncoder:
    """The encoder for documents of this vocabulary, length and number of classes."""
    sizes = {"vocabulary": data.vocabulary, "length": data.length, "classes": data.classes}
    shape = {"layers": config.layers, "heads": config.heads, "width": config.width}
    return TextEncoder(**sizes, **shape, dropout=config.dropout, pooling=config.pooling)
