"""Self-attention through torch's scaled dot product, which takes a flash kernel where the device has one."""

from __future__ import annotations

from functools import lru_cache

import torch
from torch import Tensor, nn
from torch.nn import functional

ROTARY_BASE = 10_000.0


class Attention(nn.Module):
    """Every token looks at all that the mask leaves; the names are those of Hugging Face's BERT."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.chance = heads, dropout
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """x [batch, tokens, width] → the same shape. mask: true where a token may be looked at; None: everywhere."""
        query, key, value = (
            part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.query, self.key, self.value)
        )
        chance = self.chance if self.training else 0.0
        seen = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=chance)
        return seen.transpose(1, 2).flatten(2)


class RotaryAttention(nn.Module):
    """Every token looks at itself and those before; queries and keys are turned by their place (Su et al. 2021)."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.chance = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """x [batch, tokens, width] → the same shape."""
        query, key, value = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        rotation = rotations(x.shape[1], query.shape[-1], x.device)
        chance = self.chance if self.training else 0.0
        seen = functional.scaled_dot_product_attention(
            rotated(query, *rotation), rotated(key, *rotation), value, dropout_p=chance, is_causal=True
        )
        return self.out(seen.transpose(1, 2).flatten(2))


@lru_cache(maxsize=8)
def rotations(length: int, width: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each place's angles: [length, width / 2]."""
    rates = ROTARY_BASE ** -(torch.arange(0, width, 2, device=device, dtype=torch.float32) / width)
    angles = torch.arange(length, device=device, dtype=torch.float32)[:, None] * rates
    return angles.cos(), angles.sin()


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """The first and second half of each head's numbers as the axes of planes, turned."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1).to(x.dtype)
