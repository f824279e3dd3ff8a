"""The interface of a game for the tensor engine: batched torch functions over states made of tensors.

A state is a dataclass, a named tuple, a dict or a tuple of tensors, or one tensor. The first dimension of every tensor
is the batch. Functions are pure torch ops without Python that looks at values: no `if` on a tensor, no `.item()`, no
shape that depends on values. A function is always called on the whole batch, which includes finished games and unused
rows. The results for those rows are discarded, but the function must return them without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from math import prod
from typing import Any, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import torch
from torch import Tensor

from windrow.errors import GameError
from windrow.games.protocol import CHANCE, Shape

TensorState: TypeAlias = Any
Observations: TypeAlias = "Tensor | Mapping[str, Tensor]"

_PROBE_BATCH = 3
"""Batch size of the trial run in `check_game`. 1 and 2 could be confused with the number of players or planes."""


@runtime_checkable
class TensorGame(Protocol):
    """The rules of a two-player game, for B positions at a time.

    num_actions: A; actions are the integers from 0 to A - 1.
    num_players: 2.
    observation: the shape of one observation, or named shapes, as in `windrow.Game`.
    """

    @property
    def num_actions(self) -> int:
        """Number of actions, A."""
        ...

    @property
    def num_players(self) -> int:
        """Number of players."""
        ...

    @property
    def observation(self) -> Shape | Mapping[str, Shape]:
        """Shape of one observation, or several shapes by name."""
        ...

    def initial(self, batch: int, device: torch.device | str = "cpu") -> TensorState:
        """Return the initial states of `batch` games."""
        ...

    def step(self, state: TensorState, action: Tensor) -> TensorState:
        """Return the states after `action` [B] int64. `state` itself must not change.

        Rows of finished games may hold anything.
        """
        ...

    def to_play(self, state: TensorState) -> Tensor:
        """Return the player to move, 0 or 1, or CHANCE, as [B] integers. Rows of finished games may hold anything."""
        ...

    def terminal(self, state: TensorState) -> Tensor:
        """Return which games are over, as [B] bool."""
        ...

    def returns(self, state: TensorState) -> Tensor:
        """Return the results of finished games as [B, players] float32 in [-1, 1]; a row sums to zero.

        Rows of unfinished games may hold anything.
        """
        ...

    def legal(self, state: TensorState) -> Tensor:
        """Return the legal actions as [B, A] bool. Where a player is to move, at least one action is legal."""
        ...

    def observe(self, state: TensorState) -> Observations:
        """Return observations [B, *observation] float32, as the player to move sees the positions.

        If the shapes are named, return a dict of tensors.
        """
        ...


@runtime_checkable
class ChanceGame(TensorGame, Protocol):
    """A game with chance: where `to_play` returns CHANCE, one of a list of outcomes happens.

    num_outcomes: O; outcomes are the integers from 0 to O - 1, in the order of the list.
    max_draws: optional; the maximum number of chance moves in a row. Default: 1.
    outcome_numbers: optional; [O] the numbers of the outcomes in the same game in C++ or Python.

    `step` is also called for rows where chance is to move, and `outcomes` and `happen` for rows where a player is to
    move. As with finished games, these results are discarded, but the functions must return them without an error.
    """

    @property
    def num_outcomes(self) -> int:
        """Number of outcomes, O."""
        ...

    def outcomes(self, state: TensorState) -> Tensor:
        """Return the probability of each outcome as [B, O] float32, 0 if it is impossible. A row sums to 1."""
        ...

    def happen(self, state: TensorState, outcome: Tensor) -> TensorState:
        """Return the states after the chance `outcome` [B] int64. `state` itself must not change."""
        ...


def as_chance_game(game: TensorGame) -> ChanceGame | None:
    """Return the game if it has chance moves, otherwise None."""
    return game if isinstance(game, ChanceGame) else None


def max_draws_of(game: TensorGame) -> int:
    """Return the maximum number of chance nodes in a row; 0 for a game without chance."""
    return int(getattr(game, "max_draws", 1)) if isinstance(game, ChanceGame) else 0


def outcome_numbers_of(game: TensorGame) -> list[int]:
    """Return the numbers of the O outcomes in the same game in C++ or Python; empty for a game without chance."""
    return list(getattr(game, "outcome_numbers", range(getattr(game, "num_outcomes", 0))))


def num_edges_of(game: TensorGame) -> int:
    """Return the maximum number of children of a node: the larger of the numbers of actions and of chance outcomes."""
    return max(game.num_actions, game.num_outcomes) if isinstance(game, ChanceGame) else game.num_actions


def is_chance(game: TensorGame, state: TensorState) -> Tensor:
    """Return where chance is to move, as [B] bool."""
    return (game.to_play(state) == CHANCE) & ~game.terminal(state)


# --- States as lists of tensors -------------------------------------------------------------------------------------


def tensors_of(state: TensorState) -> list[Tensor]:
    """Return the tensors of a state in a fixed order."""
    if isinstance(state, Tensor):
        return [state]
    if is_dataclass(state) and not isinstance(state, type):
        return [getattr(state, field.name) for field in fields(state)]
    if isinstance(state, Mapping):
        return list(cast("Mapping[str, Tensor]", state).values())
    if isinstance(state, tuple | list):
        return list(cast("tuple[Tensor, ...]", state))
    raise GameError(
        f"a state must be a dataclass, a dict or a tuple of tensors, or one tensor, not {type(state).__name__}: change "
        "what `initial` returns"
    )


def like(state: TensorState, tensors: list[Tensor]) -> TensorState:
    """Return a state of the same type that consists of the given tensors."""
    if isinstance(state, Tensor):
        return tensors[0]
    if is_dataclass(state) and not isinstance(state, type):
        names = [field.name for field in fields(state)]
        return replace(state, **dict(zip(names, tensors, strict=True)))
    if isinstance(state, Mapping):
        return dict(zip(cast("Mapping[str, Tensor]", state), tensors, strict=True))
    kind = cast("Any", type(cast("Any", state)))
    return kind(*tensors) if hasattr(kind, "_fields") else kind(tensors)


def each(state: TensorState, change: Callable[[Tensor], Tensor]) -> TensorState:
    """Return the state with `change` applied to every tensor."""
    return like(state, [change(tensor) for tensor in tensors_of(state)])


def rows(state: TensorState, index: Any) -> TensorState:
    """Return some rows of a batch; `index` is a slice, a list or a tensor."""
    return each(state, lambda tensor: tensor[index])


def stack(states: list[TensorState]) -> TensorState:
    """Concatenate batches into one batch."""
    columns = zip(*(tensors_of(state) for state in states), strict=True)
    return like(states[0], [torch.cat(column) for column in columns])


def choose(condition: Tensor, yes: TensorState, no: TensorState) -> TensorState:
    """Return the rows of `yes` where `condition` [B] bool is true, and those of `no` elsewhere."""
    parts = zip(tensors_of(yes), tensors_of(no), strict=True)
    return like(yes, [torch.where(condition.view(-1, *[1] * (one.dim() - 1)), one, other) for one, other in parts])


def observation_size(game: TensorGame) -> int:
    """Return the number of floats in one observation, including all its named parts."""
    shape = game.observation
    return sum(prod(part) for part in shape.values()) if isinstance(shape, Mapping) else prod(shape)


# --- Is this a game? ------------------------------------------------------------------------------------------------


def check_game(game: Any) -> None:
    """Call every function on a small batch, and raise `GameError` if a result has the wrong shape or type.

    Nothing is computed: the tensors are fake tensors with shapes but no values. The check therefore finds, on any
    machine, functions that look at values and would make the GPU wait for the host in every step.
    """
    if not isinstance(game, TensorGame):
        missing = [name for name in _MEMBERS if not hasattr(game, name)]
        raise GameError(
            f"{type(game).__name__} is no TensorGame: it lacks {', '.join(missing)}. Games in C++ or Python need "
            "another engine; `windrow.tensor.make_game` makes the built-in games for this one"
        )
    if game.num_players != 2:
        raise GameError(f"the tensor engine supports games with two players so far, not {game.num_players}")
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode(allow_non_fake_inputs=True):
        batch, num_actions = _PROBE_BATCH, game.num_actions
        state = _call(game, "initial", batch, "cpu")
        before = tensors_of(state)
        for tensor in before:
            if not isinstance(cast("Any", tensor), Tensor) or tensor.dim() == 0 or tensor.shape[0] != batch:
                raise GameError(
                    f"{_name(game)}.initial: the first dimension of every tensor must be the batch ({batch} here)"
                )
        state = _call(game, "step", state, torch.zeros(batch, dtype=torch.int64))
        _expect_like(game, "step", before, state)
        if _check_chance(game):
            _expect(game, "outcomes", _call(game, "outcomes", state), (batch, game.num_outcomes), torch.float32)
            state = _call(game, "happen", state, torch.zeros(batch, dtype=torch.int64))
            _expect_like(game, "happen", before, state)
        _expect(game, "terminal", _call(game, "terminal", state), (batch,), torch.bool)
        _expect(game, "legal", _call(game, "legal", state), (batch, num_actions), torch.bool)
        _expect(game, "returns", _call(game, "returns", state), (batch, 2), torch.float32)
        player = _call(game, "to_play", state)
        if player.dtype.is_floating_point or player.dtype == torch.bool:
            raise GameError(f"{_name(game)}.to_play must return integers, not {player.dtype}")
        _expect(game, "to_play", player, (batch,), player.dtype)
        shown: Any = _call(game, "observe", state)
        wanted: Any = game.observation
        if isinstance(wanted, Mapping) != isinstance(shown, Mapping):
            kind = "named tensors" if isinstance(wanted, Mapping) else "one tensor"
            raise GameError(f"{_name(game)}.observe must return {kind}, as `observation` says")
        shapes = cast("Mapping[str, Shape]", wanted) if isinstance(wanted, Mapping) else {"": cast("Shape", wanted)}
        for name, shape in shapes.items():
            part = cast("Any", shown).get(name) if isinstance(shown, Mapping) else shown
            _expect(game, "observe", part, (batch, *shape), torch.float32)


def _check_chance(game: Any) -> TypeGuard[ChanceGame]:
    """Return whether the game has chance moves; raise `GameError` if it has only some of their functions."""
    missing = [name for name in _CHANCE_MEMBERS if not hasattr(game, name)]
    if len(missing) == len(_CHANCE_MEMBERS):
        return False
    if missing:
        has = [name for name in _CHANCE_MEMBERS if name not in missing]
        raise GameError(
            f"{_name(game)} has {', '.join(has)}, so it is a game with chance, but it lacks {', '.join(missing)}: see "
            "windrow.tensor.ChanceGame"
        )
    for name, count in (("num_outcomes", game.num_outcomes), ("max_draws", getattr(game, "max_draws", 1))):
        if not isinstance(count, int) or count < 1:
            raise GameError(f"{_name(game)}.{name} must be an integer of at least 1, not {count!r}")
    return True


_CHANCE_MEMBERS = ("num_outcomes", "outcomes", "happen")
_MEMBERS = (
    *("num_actions", "num_players", "observation", "initial", "step", "to_play", "terminal", "returns"),
    *("legal", "observe"),
)
# Exceptions of PyTorch's fake tensors if a function reads a value, or needs a shape that depends on values.
_LOOKS_AT_DATA = ("DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode")


def _name(game: Any) -> str:
    return type(game).__name__


def _call(game: Any, method: str, *arguments: Any) -> Any:
    try:
        return getattr(game, method)(*arguments)
    except GameError:
        raise
    except Exception as error:
        if type(error).__name__ in _LOOKS_AT_DATA:
            raise GameError(
                f"{_name(game)}.{method} looks at the values of a tensor (`if`, `.item()`, `.nonzero()`, a mask as "
                "index): use torch.where instead, so that the GPU does not wait for the host"
            ) from error
        raise GameError(f"{_name(game)}.{method} failed on a batch of {_PROBE_BATCH}: {error}") from error


def _expect_like(game: Any, method: str, before: list[Tensor], after: Any) -> None:
    for old, new in zip(before, tensors_of(after), strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise GameError(
                f"{_name(game)}.{method} must keep the shapes and types of the tensors: {tuple(old.shape)} {old.dtype} "
                f"became {tuple(new.shape)} {new.dtype}"
            )


def _expect(game: Any, method: str, got: Any, shape: tuple[int, ...], dtype: torch.dtype) -> None:
    if not isinstance(got, Tensor):
        raise GameError(f"{_name(game)}.{method} must return a tensor, not {type(got).__name__}")
    if tuple(got.shape) != shape or got.dtype != dtype:
        raise GameError(
            f"{_name(game)}.{method} must return {shape} {dtype} for a batch of {_PROBE_BATCH}, "
            f"not {tuple(got.shape)} {got.dtype}"
        )
