"""Whether a network keeps its contract: what it takes, what it gives, and that it can learn.

The batches are real positions of the game. Besides shapes and ranges the check finds two defects that no error would
show: a network that mixes the rows of a batch (attention without `batch_first=True`, a softmax over the wrong
dimension), and one whose answer loses a dimension when the batch has one row (`squeeze()` without a dimension).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import torch
from torch import Tensor

from windrow.errors import EvaluatorError
from windrow.evaluators.positions import random_positions
from windrow.games.python_game import as_core_game

_NUM_ROWS = 6
_TOLERANCE = 1e-3
"""Most that rounding may change an answer when the batch has another size."""


def check_network(net: Any, game: Any, *, name: str = "") -> None:
    """Try a network on positions of a game; nothing about it changes.

    Args:
        net: a `torch.nn.Module`, called as `net(observations [K, ...])`, or `net(board=..., flat=...)` for a game with
            named observations.
        game: what it is to play.
        name: what messages call it. "" for its class.

    Raises:
        EvaluatorError: it breaks the contract; the message says what to change.
    """
    game = as_core_game(game)
    name = name or type(net).__name__
    shown = random_positions(game, _NUM_ROWS).observations
    device = next((one.device for one in net.parameters()), torch.device("cpu"))
    parts = shown if isinstance(shown, Mapping) else {"": shown}
    rows = {part: torch.as_tensor(array).to(device) for part, array in parts.items()}
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
                    f"{name} gives other {what} for a position alone than in a batch of {_NUM_ROWS}: rows of a batch "
                    "must not see each other. Attention needs batch_first=True, and softmax and mean the right dim"
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
    """What the network says, values always [K] or [K, values]."""
    num_rows = next(iter(rows.values())).shape[0]
    given = ", ".join(f"{part or 'observations'} {list(tensor.shape)}" for part, tensor in rows.items())
    try:
        answer: Any = net(rows[""]) if "" in rows else net(**rows)
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else ""
        call = "forward(observations)" if "" in rows else f"forward({', '.join(rows)})"
        raise EvaluatorError(
            f"{name} cannot be called: {call} of {game!r} was given {given} float32, and raised "
            f"{type(error).__name__}: {reason}"
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
            f"{name} gives logits {list(logits.shape)} for {num_rows} positions, but {game!r} has {game.num_actions} "
            f"actions: logits must be {list(wanted)}, one for each action, legal or not"
        )
    if game.num_values == 1 and tuple(values.shape) == (num_rows, 1):
        values = values[:, 0]
    wanted = (num_rows,) if game.num_values == 1 else (num_rows, game.num_values)
    if tuple(values.shape) != wanted:
        how = (
            "one for each, for the player to move" if game.num_values == 1 else "one per player, the one to move first"
        )
        raise EvaluatorError(
            f"{name} gives values {list(values.shape)} for {num_rows} positions, but {game!r} needs "
            f"{list(wanted)}: {how}"
        )
    return logits, values


def _check_numbers(logits: Tensor, values: Tensor, name: str) -> None:
    for what, tensor in (("logits", logits), ("values", values)):
        if not bool(torch.isfinite(tensor).all()):
            raise EvaluatorError(f"{name} gives {what} that are NaN or infinite with its first weights")
    if float(values.abs().max()) > 1:
        raise EvaluatorError(
            f"{name} gives a value of {float(values.abs().max()):.3g}: values are in [-1, 1], so end with torch.tanh"
        )


def _check_learning(net: Any, logits: Tensor, values: Tensor, name: str) -> None:
    for what, tensor in (("logits", logits), ("values", values)):
        if not tensor.requires_grad:
            raise EvaluatorError(
                f"{name} cannot learn: no gradient goes from its {what} to its parameters. Register layers as "
                "attributes or in an nn.ModuleList, and leave out no_grad and detach"
            )
    (logits.square().mean() + values.square().mean()).backward()
