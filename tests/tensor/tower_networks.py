"""Networks for the tests of the fused tower: weights that matter everywhere, and answers as large as trained ones."""

from __future__ import annotations

from typing import Any

import torch

from windrow.nets import ResNet, fold

CASES: dict[str, tuple[tuple[int, int, int], int, dict[str, Any]]] = {
    "6x7": ((2, 6, 7), 7, {}),
    "8x8": ((2, 8, 8), 64, {"blocks": 2}),
    "narrow": ((5, 5, 8), 70, {"channels": 32, "blocks": 3, "policy_channels": 2, "value_hidden": 24}),
    "tiny": ((2, 3, 3), 9, {"channels": 24, "blocks": 1, "policy_channels": 5, "value_channels": 3}),
    "odd": ((16, 7, 2), 65, {"blocks": 1, "value_channels": 1}),
}
"""Observation, actions, settings: full tiles and not, even and odd numbers of rows, one and two tiles of actions."""


def make_network(case: str, *, is_folded: bool = True, seed: int = 0) -> ResNet:
    """A network in evaluation mode, in float32 on the CPU."""
    observation, num_actions, settings = CASES[case]
    network = ResNet(observation, num_actions, seed=seed, **settings)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in network.state_dict().items():
            if name.endswith("norm.weight"):
                tensor.fill_(0.5 if ".second." in name else 1.0)
                tensor.mul_(0.8 + 0.4 * torch.rand(tensor.shape, generator=generator))
            elif name.endswith("running_var"):
                tensor.copy_(0.5 + torch.rand(tensor.shape, generator=generator))
            elif name.endswith(("bias", "running_mean")):
                tensor.normal_(0.0, 0.1, generator=generator)
            elif name in ("policy.weight", "value.weight"):
                tensor.normal_(0.0, tensor.shape[1] ** -0.5, generator=generator)
    network.eval().requires_grad_(False)
    return fold(network) if is_folded else network  # type: ignore[return-value]


def draw_boards(case: str, count: int, seed: int = 0) -> torch.Tensor:
    """[count, planes, rows, columns] of zeros and ones."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, 2, (count, *CASES[case][0]), generator=generator).float()


def distance(got: torch.Tensor, wanted: torch.Tensor) -> float:
    """Of two answers, relative to the second's size; NaN counts as far."""
    far = ((got.float() - wanted.float()).norm() / wanted.float().norm()).item()
    return far if far == far else float("inf")
