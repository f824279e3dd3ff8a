"""What a game is for the tensor engine: batched torch functions over states made of tensors.

A state is a dataclass, a named tuple, a dict or a tuple of tensors, or one tensor; every tensor has the batch as its
first dimension. Functions are pure torch ops without Python that looks at data: no `if` on a tensor, no `.item()`, no
shape that depends on values. So that a whole batch steps at once, finished games and rows that nobody asked about are
stepped too; what comes out for them is thrown away, but it must come out.
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
"""Rows of the trial run in `check_game`: not 1, not 2, so that a batch is not taken for players or planes."""


@runtime_checkable
class TensorGame(Protocol):
    """The rules of a game of two players, for B positions at a time.

    num_actions: A; actions are the integers from 0 to A - 1.
    num_players: 2.
    observation: the shape of one observation, or named shapes, as in `windrow.Game`.
    """

    @property
    def num_actions(self) -> int:
        """A."""
        ...

    @property
    def num_players(self) -> int:
        """How many players there are."""
        ...

    @property
    def observation(self) -> Shape | Mapping[str, Shape]:
        """One shape, or named shapes."""
        ...

    def initial(self, batch: int, device: torch.device | str = "cpu") -> TensorState:
        """`batch` games at their beginning."""
        ...

    def step(self, state: TensorState, action: Tensor) -> TensorState:
        """The states after `action` [B] int64; `state` itself is not changed. Anything where a game is over."""
        ...

    def to_play(self, state: TensorState) -> Tensor:
        """[B] integers: the player to move, 0 or 1, or CHANCE; anything where a game is over."""
        ...

    def terminal(self, state: TensorState) -> Tensor:
        """[B] bool: is the game over?"""
        ...

    def returns(self, state: TensorState) -> Tensor:
        """[B, players] float32 in [-1, 1], which sum to zero; anything where a game is not over."""
        ...

    def legal(self, state: TensorState) -> Tensor:
        """[B, A] bool; at least one in a row where a player is to move."""
        ...

    def observe(self, state: TensorState) -> Observations:
        """[B, *observation] float32, seen by the player to move; a dict of such if there are several."""
        ...


@runtime_checkable
class ChanceGame(TensorGame, Protocol):
    """A game in which chance moves too: where `to_play` gives CHANCE, one of a list of outcomes happens.

    num_outcomes: O; outcomes are the integers from 0 to O - 1, in the order of the list.
    max_draws: optional: how often chance may move before a player does or the game ends; 1 if it is left out.
    outcome_numbers: optional: [O] what the same game in C++ or Python calls the outcomes.

    `step` is called where chance is to move, `outcomes` and `happen` where it is not: as with finished games, what
    comes out for such rows is thrown away, but it must come out.
    """

    @property
    def num_outcomes(self) -> int:
        """O."""
        ...

    def outcomes(self, state: TensorState) -> Tensor:
        """[B, O] float32: how likely each outcome is, 0 if it is impossible; a row sums to 1."""
        ...

    def happen(self, state: TensorState, outcome: Tensor) -> TensorState:
        """The states after `outcome` [B] int64 of chance; `state` itself is not changed."""
        ...


def as_chance_game(game: TensorGame) -> ChanceGame | None:
    """The game, if chance moves in it."""
    return game if isinstance(game, ChanceGame) else None


def max_draws_of(game: TensorGame) -> int:
    """How many nodes of chance may follow each other; 0 in a game without chance."""
    return int(getattr(game, "max_draws", 1)) if isinstance(game, ChanceGame) else 0


def outcome_numbers_of(game: TensorGame) -> list[int]:
    """[O] what the game in C++ or Python calls the outcomes of chance; empty in a game without chance."""
    return list(getattr(game, "outcome_numbers", range(getattr(game, "num_outcomes", 0))))


def num_edges_of(game: TensorGame) -> int:
    """The most children that a node may have: actions, or outcomes of chance."""
    return max(game.num_actions, game.num_outcomes) if isinstance(game, ChanceGame) else game.num_actions


def is_chance(game: TensorGame, state: TensorState) -> Tensor:
    """[B] bool: chance is to move."""
    return (game.to_play(state) == CHANCE) & ~game.terminal(state)


# --- States as lists of tensors -------------------------------------------------------------------------------------


def tensors_of(state: TensorState) -> list[Tensor]:
    """The tensors of a state, in a fixed order."""
    if isinstance(state, Tensor):
        return [state]
    if is_dataclass(state) and not isinstance(state, type):
        return [getattr(state, field.name) for field in fields(state)]
    if isinstance(state, Mapping):
        return list(cast("Mapping[str, Tensor]", state).values())
    if isinstance(state, tuple | list):
        return list(cast("tuple[Tensor, ...]", state))
    raise GameError(
        f"a state is a dataclass, a dict, a tuple of tensors, or a tensor, not {type(state).__name__}; "
        "let `initial` return one of those"
    )


def like(state: TensorState, tensors: list[Tensor]) -> TensorState:
    """A state of the same kind made of other tensors."""
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
    """The state with every tensor changed."""
    return like(state, [change(tensor) for tensor in tensors_of(state)])


def rows(state: TensorState, index: Any) -> TensorState:
    """Some rows of a batch: `index` is a slice, a list or a tensor."""
    return each(state, lambda tensor: tensor[index])


def stack(states: list[TensorState]) -> TensorState:
    """Batches one after the other as one batch."""
    columns = zip(*(tensors_of(state) for state in states), strict=True)
    return like(states[0], [torch.cat(column) for column in columns])


def choose(condition: Tensor, yes: TensorState, no: TensorState) -> TensorState:
    """Row by row, one state or the other; `condition` is [B] bool."""
    parts = zip(tensors_of(yes), tensors_of(no), strict=True)
    return like(yes, [torch.where(condition.view(-1, *[1] * (one.dim() - 1)), one, other) for one, other in parts])


def observation_size(game: TensorGame) -> int:
    """Floats of one observation, all its parts together."""
    shape = game.observation
    return sum(prod(part) for part in shape.values()) if isinstance(shape, Mapping) else prod(shape)


# --- Is this a game? ------------------------------------------------------------------------------------------------


def check_game(game: Any) -> None:
    """Run a small batch on paper, and raise `GameError` unless every answer has the promised shape and type.

    Nothing is computed: the tensors are fakes that know their shapes only, so that a function which looks at data (and
    would make the GPU wait for the host in every step) is found here, on any machine.
    """
    if not isinstance(game, TensorGame):
        missing = [name for name in _MEMBERS if not hasattr(game, name)]
        raise GameError(
            f"{type(game).__name__} is no TensorGame: it lacks {', '.join(missing)}. Games in C++ or Python have the "
            "other engines; `windrow.tensor.make_game` makes the built-in ones for this engine"
        )
    if game.num_players != 2:
        raise GameError(f"the tensor engine plays games of two players so far, not {game.num_players}")
    from torch._subclasses.fake_tensor import FakeTensorMode  # PyTorch's own way to run without data

    with FakeTensorMode(allow_non_fake_inputs=True):
        batch, num_actions = _PROBE_BATCH, game.num_actions
        state = _call(game, "initial", batch, "cpu")
        before = tensors_of(state)
        for tensor in before:
            if not isinstance(cast("Any", tensor), Tensor) or tensor.dim() == 0 or tensor.shape[0] != batch:
                raise GameError(f"{_name(game)}.initial: every tensor needs the batch ({batch} here) as its first size")
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
            raise GameError(f"{_name(game)}.to_play must give integers, not {player.dtype}")
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
    """Has it chance? Then all of it."""
    missing = [name for name in _CHANCE_MEMBERS if not hasattr(game, name)]
    if len(missing) == len(_CHANCE_MEMBERS):
        return False
    if missing:
        has = [name for name in _CHANCE_MEMBERS if name not in missing]
        raise GameError(
            f"{_name(game)} has {', '.join(has)}, so chance moves in it; but it lacks {', '.join(missing)}: see "
            "windrow.tensor.ChanceGame"
        )
    for name, count in (("num_outcomes", game.num_outcomes), ("max_draws", getattr(game, "max_draws", 1))):
        if not isinstance(count, int) or count < 1:
            raise GameError(f"{_name(game)}.{name} must be an integer from 1 on, not {count!r}")
    return True


_CHANCE_MEMBERS = ("num_outcomes", "outcomes", "happen")
_MEMBERS = (
    *("num_actions", "num_players", "observation", "initial", "step", "to_play", "terminal", "returns"),
    *("legal", "observe"),
)
# How PyTorch's tensors without data say that a value was asked for, or a shape that depends on values.
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
                "index): write it with torch.where, so that the GPU need not wait for the host"
            ) from error
        raise GameError(f"{_name(game)}.{method} failed on a batch of {_PROBE_BATCH}: {error}") from error


def _expect_like(game: Any, method: str, before: list[Tensor], after: Any) -> None:
    for old, new in zip(before, tensors_of(after), strict=True):
        if old.shape != new.shape or old.dtype != new.dtype:
            raise GameError(
                f"{_name(game)}.{method} must return tensors as it got them: {tuple(old.shape)} {old.dtype} "
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
