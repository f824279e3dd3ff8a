"""A residual tower as one kernel, and whether a search may take it in place of the module.

The kernel (`windrow.tensor.ops.tower_triton`) evaluates `windrow.nets.ResNet` in bfloat16. It is taken where the
network and the GPU are known to it, where Triton compiles it, and where its answers agree with those of the module in
float32 within the bounds of `windrow.evaluators.backends.agreement`. Everything else is called as it is.
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
"""The kernel's instructions are those of Hopper GPUs alone."""
_NUM_POSITIONS = 512
_MOST_PLIES = 48
_log = logging.getLogger(__name__)


class FusedTower(WeightCopy):
    """A `ResNet` whose answers come from one kernel: observations [B, ...] -> (logits [B, A], values [B]) in float32.

    Args:
        network: on its device; its own tensors are read, and kept.
        kernels: "triton", or "torch" for the twin, which runs anywhere.
        dtype: of the packed weights; the kernel knows bfloat16.
    """

    def __init__(self, network: ResNet, *, kernels: str = "triton", dtype: torch.dtype = torch.bfloat16) -> None:
        super().__init__()
        self.network = network
        self._packed = PackedTower(network, dtype)
        self._evaluate: Any = import_module(f"windrow.tensor.ops.tower_{kernels}").evaluate

    def refresh(self) -> None:
        """Take the network's weights as they are now. A search does so when it begins; nothing waits for the device."""
        self._packed.refresh()

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """(logits [B, A], values [B] for the player to move), by the weights of the last `refresh`."""
        num_rows, device = len(observations), observations.device
        logits = torch.empty((num_rows, self._packed.weights.shape.num_actions), dtype=torch.float32, device=device)
        values = torch.empty(num_rows, dtype=torch.float32, device=device)
        self._evaluate(self._packed.weights, observations, logits, values)
        return logits, values


def fuse(evaluator: object, game: TensorGame, device: torch.device) -> tuple[FusedTower | None, str]:
    """(the evaluator as one kernel, or None; how far it agrees with float32, or why it is not taken). Blocks.

    Args:
        evaluator: as a search is given it; a module is moved to the device.
        game: whose positions it is to evaluate.
        device: where.
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
    except Exception as error:  # a Triton that this was not written for fails in ways of its own
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
        return f"this Triton lacks what the kernel is written in ({error})"
    return None


@torch.no_grad()
def agreement_with_float32(fused: FusedTower, game: TensorGame, device: torch.device) -> Agreement:
    """How the kernel's answers agree with the module's in float32, on positions of random games. Blocks."""
    shown, legal = random_positions(game, _NUM_POSITIONS, device)
    exact: Any = copy_module(fused.network).float().eval()
    with torch.backends.cudnn.flags(allow_tf32=False):
        wanted = exact(shown.float())
    fused.refresh()
    got = fused(shown)
    answers = [(logits.cpu().numpy(), values.cpu().numpy()) for logits, values in (wanted, got)]
    return compare(answers[0], answers[1], legal.cpu().numpy())


def random_positions(game: TensorGame, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """(observations [count, ...] float32, legal [count, A] bool) of unfinished positions after random moves."""
    generator = torch.Generator(device).manual_seed(0)
    state = pass_chance(game, game.initial(count, device), generator)
    plies = torch.arange(count, device=device) % _MOST_PLIES
    for ply in range(_MOST_PLIES - 1):
        draw = torch.rand((count, game.num_actions), device=device, generator=generator)
        after = game.step(state, torch.where(game.legal(state), draw, -1.0).argmax(1))
        after = pass_chance(game, after, generator)
        state = choose((ply < plies) & ~game.terminal(after), after, state)
    return cast("Tensor", game.observe(state)), game.legal(state)
