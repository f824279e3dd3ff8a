"""The check of a network of your own: its inputs, its outputs, and whether gradients reach its parameters.

The check uses real positions of the game. Besides shapes and ranges it finds two defects that raise no error: a network
that mixes the rows of a batch (attention without `batch_first=True`, a softmax over the wrong dimension), and a network
whose output loses a dimension if the batch has one row (`squeeze()` without a dimension).
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import EvaluatorError, first_line
from windrow.evaluators.positions import random_positions
from windrow.evaluators.protocol import parts_of
from windrow.games.python_game import as_core_game

_NUM_ROWS = 6
_TOLERANCE = 1e-3
"""Allowed relative and absolute difference between the outputs for a row in batches of different sizes (rounding)."""


def check_network(net: Any, game: Any, *, name: str = "") -> None:
    """Run a network forwards and backwards on positions of a game. Its weights, gradients and mode stay unchanged.

    Args:
        net: a `torch.nn.Module`, called as `net(observations [K, ...])`, or `net(board=..., flat=...)` for a game with
            named observations.
        game: the game that the network is made for.
        name: name of the network in error messages. "": the name of its class.

    Raises:
        EvaluatorError: the network breaks the contract; the message says what to change.
    """
    game = as_core_game(game)
    name = name or type(net).__name__
    shown = random_positions(game, _NUM_ROWS).observations
    device = next((one.device for one in net.parameters()), torch.device("cpu"))
    rows = {part: torch.as_tensor(array).to(device) for part, array in parts_of(shown).items()}
    modes = {part: part.training for part in net.modules()}
    grads = [(one, one.grad) for one in net.parameters()]
    buffers = {one: buffer.clone() for one, buffer in net.named_buffers()}
    try:
        net.eval()
        with torch.no_grad():
            logits, values = _answer(net, rows, game, name)
            _check_numbers(logits, values, name)
            first = _answer(net, {part: tensor[:1] for part, tensor in rows.items()}, game, name)
        for what, alone, among in (("logits", first[0], logits[:1]), ("values", first[1], values[:1])):
            if not torch.allclose(alone, among, rtol=_TOLERANCE, atol=_TOLERANCE):
                raise EvaluatorError(
                    f"{name} gives different {what} for a position alone and in a batch of {_NUM_ROWS}: rows of a "
                    "batch must not influence each other. Set batch_first=True in attention layers, and check the dim "
                    "of every softmax and mean"
                )
        net.train()
        logits, values = _answer(net, rows, game, name)
        _check_learning(net, logits, values, name)
    finally:
        for part, mode in modes.items():
            part.training = mode
        for one, grad in grads:
            one.grad = grad
        with torch.no_grad():
            for one, buffer in net.named_buffers():
                buffer.copy_(buffers[one])


def _answer(net: Any, rows: dict[str, Tensor], game: Any, name: str) -> tuple[Tensor, Tensor]:
    """Call the network on a batch, check the shapes, and return logits [K, A] and values [K] or [K, players]."""
    num_rows = next(iter(rows.values())).shape[0]
    given = ", ".join(f"{part or 'observations'} {list(tensor.shape)}" for part, tensor in rows.items())
    try:
        answer: Any = net(rows[""]) if "" in rows else net(**rows)
    except Exception as error:
        call = "forward(observations)" if "" in rows else f"forward({', '.join(rows)})"
        raise EvaluatorError(
            f"{name} cannot be called: {call} raised {type(error).__name__}: {first_line(error)}. Its input for "
            f"{game!r} was {given} in float32"
        ) from error
    parts = list(cast("tuple[Any, ...]", answer)) if isinstance(answer, tuple | list) else []
    if len(parts) != 2 or not all(isinstance(one, Tensor) for one in parts):
        given = (
            f"({', '.join(type(one).__name__ for one in parts)})"
            if parts
            else f"one {type(cast('object', answer)).__name__}"
        )
        raise EvaluatorError(f"{name} must return (logits, values), two tensors, not {given}")
    logits, values = cast("Tensor", parts[0]).float(), cast("Tensor", parts[1]).float()
    wanted = (num_rows, game.num_actions)
    if tuple(logits.shape) != wanted:
        raise EvaluatorError(
            f"{name} returns logits of shape {list(logits.shape)} for {num_rows} positions, but {game!r} has "
            f"{game.num_actions} actions: the shape must be {list(wanted)}, one logit per action, legal or not"
        )
    if game.num_values == 1 and tuple(values.shape) == (num_rows, 1):
        values = values[:, 0]
    wanted = (num_rows,) if game.num_values == 1 else (num_rows, game.num_values)
    if tuple(values.shape) != wanted:
        how = (
            "one value per position, for the player to move"
            if game.num_values == 1
            else "one value per player, the player to move first"
        )
        raise EvaluatorError(
            f"{name} returns values of shape {list(values.shape)} for {num_rows} positions, but {game!r} needs "
            f"{list(wanted)}: {how}"
        )
    return logits, values


def _check_numbers(logits: Tensor, values: Tensor, name: str) -> None:
    for what, tensor in (("logits", logits), ("values", values)):
        if not bool(torch.isfinite(tensor).all()):
            raise EvaluatorError(
                f"{name} returns {what} that are NaN or infinite with its initial weights: check their initialization"
            )
    if float(values.abs().max()) > 1:
        raise EvaluatorError(
            f"{name} returns a value of size {float(values.abs().max()):.3g}: values must be in [-1, 1], so end with "
            "torch.tanh"
        )


def _check_learning(net: Any, logits: Tensor, values: Tensor, name: str) -> None:
    for what, tensor in (("logits", logits), ("values", values)):
        if not tensor.requires_grad:
            raise EvaluatorError(
                f"{name} cannot learn: no gradient flows from its {what} to its parameters. Register layers as "
                "attributes or in an nn.ModuleList, and remove no_grad and detach"
            )
    (logits.square().mean() + values.square().mean()).backward()
