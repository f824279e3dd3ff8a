"""A small transformer as policy and value network: self-attention between the cells of a board.

    board [K, P, R, C] -> a token per cell -+                                          +-> 4 numbers a token -> logits
                                            +-> + position -> layers x (attention MLP) +
    flat  [K, F]       -> a token per part -+                                          +-> mean of the tokens -> values

Without a board, every number of the observation is a token.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

import torch
from torch import Tensor, nn
from torch.nn import functional

from windrow.errors import ConfigError
from windrow.nets.network import Network, Observation, ValueHead, count_entries, gather, make_head, split_observation

_POLICY_CHANNELS = 4
_GROWTH = 2
"""Width of a block's hidden layer, in widths of a token."""


class Transformer(Network):
    """Pre-norm transformer blocks over tokens with learned positions, then a policy and a value head.

    `Network` describes the facts of the game, and `TransformerConfig` the sizes. All boards must have the
    same size.

    Args:
        seed: seed of the initial weights. Equal seeds give equal weights, whatever else draws random numbers.
    """

    def __init__(
        self,
        observation: Observation,
        num_actions: int,
        *,
        width: int = 64,
        layers: int = 3,
        heads: int = 4,
        num_values: int = 1,
        seed: int = 0,
    ) -> None:
        super().__init__("transformer", observation, num_actions, num_values, width=width, layers=layers, heads=heads)
        if width % heads:
            raise ConfigError(f"width of a transformer must be a multiple of heads={heads}, not {width}")
        self._boards, self._flats = split_observation(observation)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            if self._boards:
                num_tokens = prod(self._boards[0][1][1:]) + len(self._flats)
                self.cells = nn.Linear(sum(shape[0] for _, shape in self._boards), width)
                self.flats = nn.ModuleList(nn.Linear(prod(shape), width) for _, shape in self._flats)
            else:
                num_tokens = count_entries(self._flats)
                self.scale = nn.Parameter(torch.randn(num_tokens, width) * width**-0.5)
            self.position = nn.Parameter(torch.randn(num_tokens, width) * width**-0.5)
            self.blocks = nn.ModuleList(TransformerBlock(width, heads) for _ in range(layers))
            self.norm = nn.LayerNorm(width)
            self.policy_tokens = nn.Linear(width, _POLICY_CHANNELS)
            self.policy = make_head(inputs=_POLICY_CHANNELS * num_tokens, outputs=num_actions)
            self.value = ValueHead(width, width, num_values)

    def answer(self, parts: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        x = self._tokens(parts) + self.position
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        policy = functional.relu(self.policy_tokens(x)).flatten(1)
        return self.policy(policy), self.bound_values(self.value(x.mean(1)))

    def _tokens(self, parts: Mapping[str, Tensor]) -> Tensor:
        """[K, tokens, width] The embedded tokens, without their positions."""
        if not self._boards:
            return gather(self._flats, parts, is_flat=True).unsqueeze(-1) * self.scale
        cells = self.cells(gather(self._boards, parts, is_flat=False).flatten(2).transpose(1, 2))
        flats = [
            layer(parts[name].flatten(1)).unsqueeze(1) for layer, (name, _) in zip(self.flats, self._flats, strict=True)
        ]
        return torch.cat([cells, *flats], 1) if flats else cells


class TransformerBlock(nn.Module):
    """Attention and a small MLP, each after a layer norm and with a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.mix = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, _GROWTH * width), nn.Linear(_GROWTH * width, width)
        for last in (self.mix, self.narrow):  # each block starts as the identity, like those of a `ResNet`
            nn.init.zeros_(last.weight)
            nn.init.zeros_(last.bias)

    def forward(self, x: Tensor) -> Tensor:
        """[K, tokens, width] in and out."""
        qkv = self.query_key_value(self.before_attention(x))
        query, key, value = qkv.unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)  # [K, heads, tokens, part]
        seen = functional.scaled_dot_product_attention(query, key, value)
        x = x + self.mix(seen.transpose(1, 2).flatten(2))
        return x + self.narrow(functional.gelu(self.widen(self.before_mlp(x))))
