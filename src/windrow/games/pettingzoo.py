"""Turn-based environments of PettingZoo: `make_game("pettingzoo:connect_four_v3")`.

An environment has one state, which its `step` changes; a game has many, which nothing changes. So every move is played
in a copy of the environment. That makes this the slowest way to bring a game (tens of microseconds a move and more),
and it is refused in words where it cannot be right: where cards are dealt or moves are hidden, where there is no action
mask, where agents act at the same time, where a copy does not go on like its original.

What is taken over:

- Agents, in the order of `possible_agents`, are the players 0, 1, ...
- `observation["action_mask"]` says what is legal, `observation["observation"]`, as float32, is what the agent to move
  sees. Boards of PettingZoo's have their planes last, [rows, columns, planes]; windrow's, and networks', have them
  first, so they are turned round unless `planes_last=False`.
- Rewards of all steps are added up, divided by `scale` and cut off at -1 and 1.
"""

from __future__ import annotations

import copy
import pkgutil
import random
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from operator import index
from typing import Any, TypeAlias, cast

import numpy as np

from windrow.errors import GameError, MissingExtraError, how_to_install
from windrow.games.protocol import TERMINAL, FloatArray, Shape
from windrow.spelling import explain_unknown

PREFIX = "pettingzoo:"

Step: TypeAlias = tuple[object, ...]
"""What can be seen of an environment between two moves."""

_HIDDEN = {
    "gin_rummy": "deals cards that others do not see",
    "hanabi": "deals cards that others do not see",
    "leduc_holdem": "deals cards that others do not see",
    "rps": "hides a choice from the agent that chooses next",
    "texas_holdem": "deals cards that others do not see",
    "texas_holdem_no_limit": "deals cards that others do not see",
}
_NUM_PROBED_GAMES = 3
_NUM_PROBED_PLIES = 60
_ROUNDING = 1e-6


class PettingZooState:
    """A position: an environment that nobody steps any more.

    env: the environment; look at it, but do not change it.
    moves: the actions that led here.
    totals: the sum of rewards, by player.
    """

    __slots__ = ("_seen", "env", "game", "moves", "totals")

    def __init__(self, game: PettingZooGame, env: Any, moves: tuple[int, ...], totals: tuple[float, ...]) -> None:
        self.game, self.env, self.moves, self.totals = game, env, moves, totals
        self._seen: Any = None

    def seen(self) -> Any:
        """What the agent to move observes, mask included; asked for once."""
        if self._seen is None:
            self._seen = self.env.observe(self.env.agent_selection)
        return self._seen

    def __reduce__(self) -> tuple[object, ...]:
        # Environments are often pickled by their constructor's arguments, without what has happened in them.
        return _replay, (self.game, self.moves)

    def __repr__(self) -> str:
        player = self.game.to_play(self)
        status = "over" if player == TERMINAL else f"{self.env.agent_selection} to move"
        return f"<{self.game.name} after {' '.join(map(str, self.moves)) or 'no move'}: {status}>"


class PettingZooGame:
    """A turn-based environment as a game, `PettingZooGame("connect_four_v3")`.

    Fulfils `Game`. May be pickled if what it was made of may.

    Args:
        env: the name of an environment of `pettingzoo.classic`, or a function that makes an `AECEnv`.
        scale: what rewards are divided by.
        zero_sum: whether one of two players wins what the other loses; None finds out in some random games.
        planes_last: whether observations of three dimensions have their planes last.
        seed: for `reset`.
        options: for the environment.

    Raises:
        GameError: there is no such environment, or it is not one that can be searched; the message says why.
        MissingExtraError: PettingZoo, or what this environment needs, is not installed.
    """

    def __init__(
        self,
        env: str | Callable[..., Any],
        *,
        scale: float = 1.0,
        zero_sum: bool | None = None,
        planes_last: bool = True,
        seed: int = 0,
        **options: Any,
    ) -> None:
        self._source: str | Callable[..., Any] = env
        self._settings = {"scale": scale, "zero_sum": zero_sum, "planes_last": planes_last, "seed": seed, **options}
        if isinstance(env, str):
            label = env.strip().removeprefix(PREFIX).removeprefix("classic/").replace("-v", "_v")
            self.name = f"{PREFIX}{label}"
            make = _find(label)
        else:
            self.name, make = f"{PREFIX}{getattr(env, '__name__', 'environment')}", env
        self._make: Callable[[], Any] = lambda: _unwrapped(make(**options), self.name)
        self._scale, self._seed = scale, seed

        first = self._fresh(seed)
        self.num_players = len(first.possible_agents)
        self.num_actions = _num_actions(first, self.name)
        shape = _observation_shape(first, self.name)
        self._has_planes_last = planes_last and len(shape) == 3
        self.observation: Shape = (shape[2], shape[0], shape[1]) if self._has_planes_last else shape
        self._players = {agent: player for player, agent in enumerate(first.possible_agents)}
        # What never changes need not be copied with every move.
        self._shared = [
            getattr(first, name) for name in ("action_spaces", "observation_spaces") if hasattr(first, name)
        ]
        self._first = PettingZooState(self, first, (), (0.0,) * self.num_players)
        totals = self._probe()
        sums = [abs(sum(values)) for values in totals]
        self.zero_sum: bool = self.num_players == 2 and (
            zero_sum if zero_sum is not None else all(value <= _ROUNDING for value in sums)
        )

    def __repr__(self) -> str:
        return f"PettingZooGame({self.name.removeprefix(PREFIX)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PettingZooGame):
            return NotImplemented
        return (self._source, self._settings) == (other._source, other._settings)

    def __hash__(self) -> int:
        return hash(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self._source, self._settings)

    # Rules.

    def initial_state(self) -> PettingZooState:
        """The environment after its reset."""
        return self._first

    def to_play(self, state: PettingZooState) -> int:
        """The player whose agent is selected, or `TERMINAL`."""
        return TERMINAL if _is_over(state.env) else self._players[state.env.agent_selection]

    def legal_actions(self, state: PettingZooState) -> list[int]:
        """The actions the mask allows, ascending; none in a finished game."""
        if _is_over(state.env):
            return []
        found: list[int] = np.flatnonzero(state.seen()["action_mask"]).tolist()
        return found

    def apply(self, state: PettingZooState, action: int) -> PettingZooState:
        """The state after `action`, played in a copy of the environment."""
        env = _copy(state.env, self._shared)
        totals = list(state.totals)
        action = index(action)
        self._move(env, action, totals)
        return PettingZooState(self, env, (*state.moves, action), tuple(totals))

    def _move(self, env: Any, action: int, totals: list[float]) -> None:
        """Play an action, and then the empty steps of agents that are out; add the rewards to `totals`."""
        _step(env, action, self._players, totals)
        while not _is_over(env) and (env.terminations[env.agent_selection] or env.truncations[env.agent_selection]):
            _step(env, None, self._players, totals)

    def returns(self, state: PettingZooState) -> list[float]:
        """All rewards of each player, scaled and cut off at -1 and 1, for a finished game."""
        values = [min(max(total / self._scale, -1.0), 1.0) for total in state.totals]
        if self.zero_sum and abs(sum(values)) > _ROUNDING:
            raise GameError(
                f"{self.name} ended with {values}, which do not sum to zero: make the game with zero_sum=False."
            )
        return values

    def observe(self, state: PettingZooState) -> FloatArray:
        """What the agent to move sees, in a finished game the agent that is selected; of shape `observation`."""
        board: FloatArray = np.asarray(state.seen()["observation"], np.float32)
        turned = np.moveaxis(board, 2, 0) if self._has_planes_last else board
        return np.array(turned, np.float32, order="C")

    # Whether it can be right.

    def _fresh(self, seed: int) -> Any:
        env = self._make()
        env.reset(seed=seed)
        return env

    def _probe(self) -> list[tuple[float, ...]]:
        """Play random games in one environment, in another with another seed, and by copies; all must be the same.

        Returns the rewards of the games that ended.
        """
        ended: list[tuple[float, ...]] = []
        for number in range(_NUM_PROBED_GAMES):
            moves, straight = self._play(random.Random(number))
            _, other = self._play(random.Random(number), seed=self._seed + 1 + number)
            if other != straight:
                raise GameError(
                    f"{self.name} is not the same after reset with another seed: chance moves inside of it (cards are "
                    "dealt, dice thrown), where a search cannot see it."
                )
            states = [self._first]
            for move in moves:
                states.append(self.apply(states[-1], move))
            # Looked at when all of them are made, so that what they share is seen as well.
            copied = [self._look(state.env, state.totals) for state in states]
            if copied != straight:
                raise GameError(f"a copy of {self.name} does not go on like its original; a search needs copies.")
            if _is_over(states[-1].env):
                ended.append(states[-1].totals)
        return ended

    def _play(self, draw: random.Random, *, seed: int | None = None) -> tuple[list[int], list[Step]]:
        """Random moves in a fresh environment without copies, and what was seen before and after them."""
        env = self._fresh(self._seed if seed is None else seed)
        totals = [0.0] * self.num_players
        moves: list[int] = []
        steps = [self._look(env, totals)]
        while not _is_over(env) and len(moves) < _NUM_PROBED_PLIES:
            mask = env.observe(env.agent_selection)["action_mask"]
            legal: list[int] = np.flatnonzero(mask).tolist()
            if not legal:
                raise GameError(f"{self.name} allows no action in a game that is not over.")
            moves.append(draw.choice(legal))
            self._move(env, moves[-1], totals)
            steps.append(self._look(env, totals))
        return moves, steps

    def _look(self, env: Any, totals: Sequence[float]) -> Step:
        if _is_over(env):
            return (TERMINAL, tuple(totals))
        seen = env.observe(env.agent_selection)
        parts = (np.asarray(seen[name]) for name in ("observation", "action_mask"))
        return (self._players[env.agent_selection], tuple(totals), *(part.tobytes() for part in parts))


def _is_over(env: Any) -> bool:
    return all(env.terminations[agent] or env.truncations[agent] for agent in env.agents)


def _step(env: Any, action: int | None, players: Mapping[Any, int], totals: list[float]) -> None:
    env.step(action)
    for agent, reward in env.rewards.items():
        totals[players[agent]] += float(reward)


def _copy(env: Any, shared: Sequence[Any]) -> Any:
    """The same environment once more.

    Not by `copy.deepcopy(env)`: most environments derive from `EzPickle`, which makes a new one by the constructor.
    """
    memo: dict[int, Any] = {id(part): part for part in shared}
    if hasattr(env, "__deepcopy__"):
        return copy.deepcopy(env, memo)
    twin: Any = object.__new__(cast("type[Any]", type(env)))
    memo[id(env)] = twin
    twin.__dict__.update(copy.deepcopy(env.__dict__, memo))
    return twin


def _replay(game: PettingZooGame, moves: tuple[int, ...]) -> PettingZooState:
    state = game.initial_state()
    for move in moves:
        state = game.apply(state, move)
    return state


def _restore(source: str | Callable[..., Any], settings: dict[str, Any]) -> PettingZooGame:
    return PettingZooGame(source, **settings)


# --- Loading ------------------------------------------------------------------------------------------------------


def _find(name: str) -> Callable[..., Any]:
    """The function that makes the environment called `name`."""
    stem = name.rpartition("_v")[0] or name
    if stem in _HIDDEN:
        raise GameError(f"{name} {_HIDDEN[stem]}; only games in which everybody sees everything can be searched.")
    try:
        classic = import_module("pettingzoo.classic")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "pettingzoo":
            raise
        raise MissingExtraError(f"environments need PettingZoo: {how_to_install('pettingzoo')}") from error
    known = [found.name for found in pkgutil.iter_modules(classic.__path__) if "_v" in found.name]
    if name not in known:
        raise GameError(f"PettingZoo has no {name!r}. {explain_unknown(name, known, what='classic environments')}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a newer PettingZoo has another way to make environments as well
            module: Any = import_module(f"pettingzoo.classic.{name}")
    except ModuleNotFoundError as error:
        raise MissingExtraError(f'{name} needs {error.name}: pip install "pettingzoo[classic]"') from error
    if not hasattr(module, "env"):
        raise GameError(f"{name} has no turn-based environment, only one in which all agents act at the same time.")
    make: Callable[..., Any] = module.env
    return make


def _unwrapped(env: Any, name: str) -> Any:
    """The environment inside of its wrappers, which check what the adapter knows and are slow to copy."""
    inner: Any = getattr(env, "unwrapped", env)
    if not all(hasattr(inner, attribute) for attribute in ("agent_iter", "observe", "possible_agents", "step")):
        raise GameError(f"{name} is no turn-based environment (AECEnv); agents that act at the same time cannot work.")
    return inner


def _num_actions(env: Any, name: str) -> int:
    counts: set[int] = set()
    for agent in env.possible_agents:
        space = env.action_space(agent)
        if type(space).__name__ != "Discrete" or getattr(space, "start", 0) != 0:
            raise GameError(f"{name} has actions {space} for {agent}; only numbers from 0 on, Discrete(n), work.")
        counts.add(int(space.n))
    if len(counts) != 1:
        raise GameError(f"{name} has agents with different numbers of actions: {sorted(counts)}.")
    return counts.pop()


def _observation_shape(env: Any, name: str) -> Shape:
    seen: object = env.observe(env.agent_selection)
    parts: Mapping[str, Any] = cast("Mapping[str, Any]", seen) if isinstance(seen, Mapping) else {}
    if "action_mask" not in parts or "observation" not in parts:
        raise GameError(f'{name} has no observation["action_mask"]: without it nobody knows which actions are legal.')
    return tuple(np.shape(parts["observation"]))
