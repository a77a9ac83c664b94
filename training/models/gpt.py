"""A GPT: pre-norm blocks, rotary positions, no biases, the last layer's weights shared with the embedding."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from training.config.model import Gpt as Config
from training.data.text import TextSet
from training.models.attention import RotaryAttention

SPREAD = 0.02  # standard deviation of new weights, as in GPT-2


class Block(nn.Module):
    """Attention to earlier tokens, then a feed-forward network of four times the width."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width, bias=False)
        self.attention = RotaryAttention(width, heads, dropout)
        self.norm2 = nn.LayerNorm(width, bias=False)
        self.up = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(4 * width, width, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.dropout(self.attention(self.norm1(x)))
        return x + self.dropout(self.down(functional.gelu(self.up(self.norm2(x)))))


class Gpt(nn.Module):
    """Next-token prediction. 12 layers of 12 heads, width 768 and 50,304 entries have 123,587,328 parameters."""

    def __init__(self, *, vocabulary: int, layers: int, heads: int, width: int, dropout: float) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.dropout = nn.Dropout(dropout)
        blocks = [Block(width, heads, dropout) for _ in range(layers)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(width, bias=False)
        for module in self.modules():
            if isinstance(module, nn.Linear | nn.Embedding):
                nn.init.normal_(module.weight, std=SPREAD)
        for block in blocks:
            for last in (block.attention.out, block.down):  # what adds up over the layers starts smaller (GPT-2)
                nn.init.normal_(last.weight, std=SPREAD / (2 * layers) ** 0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """Tokens [batch, length] → logits of the next token at every place [batch, length, vocabulary]."""
        x = self.norm(self.blocks(self.dropout(self.embedding(tokens))))
        return functional.linear(x, self.embedding.weight)


def build(config: Config, data: TextSet) -> Gpt:
    """The decoder for tokens of this vocabulary."""
    shape = {"layers": config.layers, "heads": config.heads, "width": config.width}
    return Gpt(vocabulary=data.vocabulary, **shape, dropout=config.dropout)
