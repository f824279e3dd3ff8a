"""A residual tower as one kernel, and the check whether a search may use it instead of the module.

The kernel (`windrow.tensor.ops.tower_triton`) evaluates `windrow.nets.ResNet` in bfloat16. It is used if it supports
the network and the GPU, if Triton can compile it, and if its answers agree with those of the module in float32 within
the bounds of `windrow.evaluators.backends.agreement`. Otherwise the module itself is called.
"""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import EvaluatorError
from windrow.evaluators.backends.agreement import Agreement, compare
from windrow.evaluators.backends.source import copy_module
from windrow.nets.resnet import ResNet
from windrow.tensor.evaluators.from_host import Autocast
from windrow.tensor.evaluators.network import WeightCopy
from windrow.tensor.game import TensorGame, choose
from windrow.tensor.ops.tower_weights import PackedTower, why_not_packed
from windrow.tensor.tree.chance import pass_chance

CAPABILITY = 9, 0
"""Compute capability that the kernel needs: it uses instructions that only Hopper GPUs have."""
_NUM_POSITIONS = 512
_MOST_PLIES = 48
_log = logging.getLogger(__name__)


class FusedTower(WeightCopy):
    """A `ResNet` that one kernel evaluates: observations [B, ...] -> (logits [B, A], values [B]) in float32.

    Args:
        network: the network, on its device. Its weights are copied; `refresh` reads them again.
        kernels: "triton", or "torch" for the same function in plain torch ops, which runs on any device.
        dtype: type of the packed weights. The Triton kernel supports only bfloat16.
    """

    def __init__(self, network: ResNet, *, kernels: str = "triton", dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        self.network = network
        self._packed = PackedTower(network, dtype)
        self._evaluate: Any = import_module(f"windrow.tensor.ops.tower_{kernels}").evaluate

    def refresh(self) -> None:
        """Copy the network's current weights. Every search does this when it begins. Does not wait for the device."""
        self._packed.refresh()

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Return (logits [B, A], values [B] for the player to move) for the weights of the last `refresh`."""
        num_rows, device = len(observations), observations.device
        logits = torch.empty((num_rows, self._packed.weights.shape.num_actions), dtype=torch.float32, device=device)
        values = torch.empty(num_rows, dtype=torch.float32, device=device)
        self._evaluate(self._packed.weights, observations, logits, values)
        return logits, values


def fuse(evaluator: object, game: TensorGame, device: torch.device) -> tuple[FusedTower | None, str]:
    """Return the evaluator as one kernel and its agreement with float32, or None and the reason. Blocks.

    Args:
        evaluator: evaluator of a search; a module is moved to the device.
        game: the game whose positions it evaluates.
        device: device of the search.
    """
    found, reason = _fuse(evaluator, game, device)
    _log.info("%s: %s", "one kernel" if found is not None else "no single kernel", reason)
    return found, reason


def _fuse(evaluator: object, game: TensorGame, device: torch.device) -> tuple[FusedTower | None, str]:
    network, is_autocast = evaluator, False
    if isinstance(evaluator, Autocast):
        network, is_autocast = evaluator.module, evaluator.dtype == torch.bfloat16
    reason = why_not_packed(network) or _why_not_here(device)
    if reason is not None:
        return None, reason
    tower = cast("ResNet", network).to(device)
    kinds = {weight.dtype for weight in tower.parameters()}
    if kinds != {torch.bfloat16} and not (is_autocast and kinds == {torch.float32}):
        return None, "it does not compute in bfloat16"
    try:
        fused = FusedTower(tower)
        agreement = agreement_with_float32(fused, game, device)
    except EvaluatorError as error:
        return None, str(error)
    except Exception as error:  # an unknown version of Triton may raise anything
        first_line = f"{type(error).__name__}: {error}".splitlines()[0]
        return None, f"Triton cannot compile or run the kernel here ({first_line})"
    if not agreement.holds:
        return None, f"it does not agree with float32: {agreement}"
    return fused, str(agreement)


def _why_not_here(device: torch.device) -> str | None:
    if device.type != "cuda":
        return "the kernel needs a GPU"
    found = torch.cuda.get_device_capability(device)
    if found != CAPABILITY:
        wanted, has = (f"{major}.{minor}" for major, minor in (CAPABILITY, found))
        return f"the kernel needs compute capability {wanted}, and this GPU has {has}"
    try:
        import_module("windrow.tensor.ops.tower_triton")
    except (ImportError, AttributeError) as error:
        return f"this version of Triton lacks a feature that the kernel needs ({error})"
    return None


@torch.no_grad()
def agreement_with_float32(fused: FusedTower, game: TensorGame, device: torch.device) -> Agreement:
    """Compare the kernel's answers with the module's in float32, on positions of random games. Blocks."""
    shown, legal = random_positions(game, _NUM_POSITIONS, device)
    exact: Any = copy_module(fused.network).float().eval()
    with torch.backends.cudnn.flags(allow_tf32=False):
        wanted = exact(shown.float())
    fused.refresh()
    got = fused(shown)
    answers = [(logits.cpu().numpy(), values.cpu().numpy()) for logits, values in (wanted, got)]
    return compare(answers[0], answers[1], legal.cpu().numpy())


def random_positions(game: TensorGame, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return (observations [count, ...] float32, legal [count, A] bool) of unfinished positions after random moves."""
    generator = torch.Generator(device).manual_seed(0)
    state = pass_chance(game, game.initial(count, device), generator)
    plies = torch.arange(count, device=device) % _MOST_PLIES
    for ply in range(_MOST_PLIES - 1):
        draw = torch.rand((count, game.num_actions), device=device, generator=generator)
        after = game.step(state, torch.where(game.legal(state), draw, -1.0).argmax(1))
        after = pass_chance(game, after, generator)
        state = choose((ply < plies) & ~game.terminal(after), after, state)
    return cast("Tensor", game.observe(state)), game.legal(state)
