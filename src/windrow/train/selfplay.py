"""Games of a network against itself: many at once, and a finished one is replaced at once.

    selfplay = SelfPlay(game, evaluator, SearchConfig(num_simulations=64, dirichlet_fraction=0.25), SelfPlayConfig())
    for record in selfplay.play(1000):
        replay.add(record)

Every tree searches on its own terms: it moves as soon as its own search has ended, whatever the others do, so that the
network's batches stay full from the first game to the last.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from windrow import _core
from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.evaluators.cache import PredictionCache, mix_version
from windrow.games.chance import pass_chance
from windrow.games.core_game import CoreGame, Rows, State
from windrow.games.protocol import CHANCE, TERMINAL, Game
from windrow.games.python_game import as_core_game
from windrow.gumbel import warn_of_equal_games
from windrow.inference.port import EvaluatorPort
from windrow.numerics import Purpose, Stream, uniforms
from windrow.search.checks import check_apply
from windrow.search.engines import find_engine
from windrow.search.engines.vectorized import schedule_many
from windrow.search.forest import make_forest, raise_in_words
from windrow.search.growth import Growth
from windrow.train.ray_config import RayConfig
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation, Watch
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats

__all__ = ["SelfPlay", "SelfPlayConfig", "SelfPlayStats"]

IntArray: TypeAlias = npt.NDArray[np.int32]
_Kind = TypeVar("_Kind", bound="SelfPlay")

_MAX_REMEMBERED_GAMES = 1 << 18


@dataclass(slots=True)
class _Slot:
    """One game in progress."""

    number: int
    initial: bytes  # the state it began with, packed
    ply: int
    first_version: int
    watch: Watch
    player: int  # to move
    is_full: bool = True
    actions: list[int] = field(default_factory=list[int])
    outcomes: list[int] = field(default_factory=list[int])
    outcome_plies: list[int] = field(default_factory=list[int])
    is_recorded: list[bool] = field(default_factory=list[bool])
    policies: list[npt.NDArray[np.float16]] = field(default_factory=list[Any])
    root_values: list[float] = field(default_factory=list[float])


class SelfPlay:
    """Plays a game against itself.

    Games are numbered from `next_game` on, and a game's number is the key of all its random numbers: with an evaluator
    that answers the same to the same batches, the same games are played whatever came before.

    `search.engine` says where they are played: "vectorized" (or "auto") in this process, "multiprocess" in worker
    processes, "ray" on a cluster.

    Args:
        game: the rules.
        evaluator: priors and values; its weights may be updated between two games that `play` gives. For
            `engine="ray"` a network is given as `PortableNetwork`.
        search: how moves are searched: budget, noise or `root="gumbel"`, temperature, seed. A Gumbel root needs
            `gumbel_scale=1` here: without it games that begin alike go on alike.
        config: how games are played; None for the defaults.
        cache: evaluations to use again; None for one of its own if `search.cache_memory` asks for it. Workers take no
            cache: `search.cache_memory` is divided among them.
        next_game: the number of the next game to start.
        first_version: what records call the weights that the evaluator has now; updates count from there.
        resign_margins: `resignation.margins` of an earlier run, to go on from.
        ray: where on a cluster everything goes; for `engine="ray"` alone.

    Raises:
        ConfigError: the settings cannot be followed; the message says which.
    """

    def __new__(
        cls: type[_Kind],
        game: CoreGame | Game,
        evaluator: object,
        search: SearchConfig,
        config: SelfPlayConfig | None = None,
        *,
        cache: PredictionCache | None = None,
        next_game: int = 0,
        first_version: int = 0,
        resign_margins: tuple[float, ...] | list[float] = (),
        ray: RayConfig | None = None,
    ) -> _Kind:
        """With `engine="multiprocess"` or "ray", the one of `windrow.train.multiprocess` or `ray_selfplay`."""
        if ray is not None and search.engine != "ray":
            raise ConfigError(f'ray= says where on a cluster games are played: set engine="ray", not {search.engine!r}')
        if cls is not SelfPlay:
            return object.__new__(cls)
        warn_of_equal_games(search)  # here, and not where workers make their own: they would all say it
        kind: Any = cls
        if search.engine == "multiprocess":
            from windrow.train.multiprocess import MultiprocessSelfPlay as kind
        if search.engine == "ray":
            from windrow.train.ray_selfplay import RaySelfPlay as kind
        return object.__new__(kind)

    def __init__(
        self,
        game: CoreGame | Game,
        evaluator: object,
        search: SearchConfig,
        config: SelfPlayConfig | None = None,
        *,
        cache: PredictionCache | None = None,
        next_game: int = 0,
        first_version: int = 0,
        resign_margins: tuple[float, ...] | list[float] = (),
        ray: RayConfig | None = None,
    ) -> None:
        self.game, self.config = game, config = settle(game, search, config)
        if search.engine == "tensor":
            raise ConfigError(
                "self-play on the device is part of `windrow train GAME --engine tensor` (TensorTraining) and of "
                'windrow.tensor.TensorSelfPlay; here set engine="vectorized" (--engine vectorized)'
            )
        if search.engine not in ("auto", "vectorized"):
            raise ConfigError(
                'self-play runs many trees at once: set engine="vectorized", "multiprocess" or "ray", '
                f"not {search.engine!r}"
            )
        self.search = search
        if cache is None and search.cache_memory:
            cache = PredictionCache(search.cache_memory)
        if cache is not None:
            cache.claim(game)
        self.cache = cache
        self._number = 0 if cache is None else cache.number_of(evaluator)
        self._port = EvaluatorPort(game, evaluator, max_batch=search.max_batch)
        self.schedule = schedule_many(search, config.num_slots, evaluator_pipeline=self._port.pipeline)
        self._forest = make_forest(game, search, self.schedule, config.num_slots, cache)
        self._num_simulations: int = search.num_simulations or 0
        self._slots: dict[int, _Slot] = {}
        self._next_game = next_game
        self._first_version = first_version - self._port.version
        self._games_to_start: float = 0
        self._finished: deque[GameRecord] = deque()
        self._seen: dict[bytes, None] = {}
        self.resignation = Resignation.of(config, resign_margins)
        self.stats = SelfPlayStats()

    @property
    def next_game(self) -> int:
        """The number of the next game to start."""
        return self._next_game

    @property
    def version(self) -> int:
        """What records call the present weights."""
        return self._first_version + self._port.version

    @property
    def num_simulations(self) -> int:
        """Budget of a full search; another one holds from the next moves on."""
        return self._num_simulations

    @num_simulations.setter
    def num_simulations(self, value: int) -> None:
        self._num_simulations = value

    @property
    def num_in_progress(self) -> int:
        """Games started and not finished."""
        return len(self._slots)

    def play(
        self, num_games: int, *, refill: bool = True, until: Callable[[], bool] | None = None
    ) -> Iterator[GameRecord]:
        """Play until `num_games` more games have finished; yields each as it does.

        Args:
            num_games: how many to give.
            refill: put a new game into a free slot at once, so that others are in progress when this ends; the next
                `play` goes on with them. Otherwise exactly `num_games` are started and all of them end here, the last
                ones in smaller batches: that is what a reproducible run needs.
            until: asked again and again, also while no game finishes; play ends early once it says True.
        """
        if num_games < 1:
            raise ConfigError(f"num_games must be at least 1, not {num_games}")
        if not refill and self._slots:
            raise ConfigError(f"{len(self._slots)} games are in progress: refill=False is for play from the start")
        self._games_to_start = float("inf") if refill else num_games
        return self._play(num_games, until)

    def close(self) -> None:
        """Free the trees; may be called more than once."""
        self.drop_games()

    def drop_games(self) -> None:
        """Forget the games in progress."""
        self._forest.uproot_many(np.arange(self.config.num_slots, dtype=np.int32))
        self._slots.clear()
        self._finished.clear()

    # --- The loop ---------------------------------------------------------------------------------------------

    def _play(self, num_games: int, until: Callable[[], bool] | None) -> Generator[GameRecord, None, None]:
        started = perf_counter()
        before = self.stats.total_s
        num_given = 0
        self._fill_slots()
        rounds = self._rounds()
        try:
            while num_given < num_games and not (until is not None and until()):
                if self._finished:
                    num_given += 1
                    self.stats.total_s = before + perf_counter() - started
                    record = self._finished[0]
                    del self._finished[0]  # not by a call, after which an interrupt may come
                    yield record
                    # What the caller does with a game is not self-play's time.
                    started = perf_counter() - (self.stats.total_s - before)
                else:
                    next(rounds)
        except (_core.BadEvaluation, _core.GameFault) as error:
            raise_in_words(error, self.game, self._root_states())
        finally:
            rounds.close()
            self.stats.total_s = before + perf_counter() - started

    def _rounds(self) -> Generator[None, None, None]:
        """Select, evaluate, complete and move, as long as there are games; yields after every batch."""
        stats, growth = self.stats, Growth(self._forest, self._port, self.schedule, lambda: False)
        before = self._spent()
        # Growing ends when no search has anything left to select; the moves that follow begin new ones.
        while self._slots:
            with closing(growth.grow_all()) as batches:
                for _ in batches:
                    self._account(before)
                    stats.nn_places += growth.num_places
                    growth.num_places = 0
                    self._move_finished()
                    yield
                    before = self._spent()
            self._move_finished()
            yield

    def _move_finished(self) -> None:
        finished = self._forest.take_finished()
        if len(finished):
            self._move(finished)

    def _spent(self) -> tuple[tuple[float, float, float], float, int, int]:
        port = self._port
        return self._forest.seconds(), port.seconds, port.num_batches, port.num_rows

    def _account(self, before: tuple[tuple[float, float, float], float, int, int]) -> None:
        """Add what was spent since `before` to the stats."""
        stats, after = self.stats, self._spent()
        stats.select_s += after[0][0] - before[0][0]
        stats.encode_s += after[0][1] - before[0][1]
        stats.complete_s += after[0][2] - before[0][2]
        stats.evaluate_s += after[1] - before[1]
        stats.nn_batches += after[2] - before[2]
        stats.nn_positions += after[3] - before[3]

    # --- Moving -----------------------------------------------------------------------------------------------

    def _move(self, trees: IntArray) -> None:
        """Play a move in each of `trees`, whose searches have ended, and begin what comes next."""
        forest, stats = self._forest, self.stats
        slots = [self._slots[int(tree)] for tree in trees]
        totals = forest.totals(trees)
        stats.simulations += totals["simulations"]
        stats.evaluations += totals["evaluations"]
        keys, plies = self._keys(slots)
        warm = np.where(plies < self.config.temperature_plies, self.search.temperature, self.config.late_temperature)
        policies, values, actions = forest.harvest(trees, warm, keys, plies)
        forest.advance_many(trees, actions.astype(np.int64))
        for slot, action in zip(slots, actions.tolist(), strict=True):
            slot.actions.append(action)
        states, to_play = self._after_chance(trees, slots)
        half = policies.astype(np.float16)
        goes_on = np.zeros(len(slots), bool)
        for row, slot in enumerate(slots):
            slot.is_recorded.append(slot.is_full)
            slot.root_values.append(value := float(values[row]))
            if slot.is_full:
                slot.policies.append(half[row])
            slot.ply += 1
            player, slot.player = slot.player, int(to_play[row])
            resigns = self.config.resign_below is not None and self.resignation.would_resign(slot.watch, player, value)
            if to_play[row] == TERMINAL:
                returns = self.game.returns(self.game.state_of(states[row]))
                self.resignation.learn(slot.watch, returns)
                self._finish(slot, returns, resigned_by=-1)
            elif resigns:
                self._finish(slot, [-1.0 if who == player else 1.0 for who in range(2)], resigned_by=player)
            elif self.config.max_plies is not None and len(slot.actions) >= self.config.max_plies:
                self._finish(slot, [0.0] * self.game.num_players, resigned_by=-1)
            else:
                goes_on[row] = True
                continue
            del self._slots[int(trees[row])]
        stats.moves += len(slots)
        if not self.config.reuse_tree and goes_on.any():
            forest.reset_many(trees[goes_on], self.game.to_references(states[goes_on]))
        self._begin(trees[goes_on])
        if not goes_on.all():
            forest.uproot_many(trees[~goes_on])
            self._start_games(trees[~goes_on])

    def _after_chance(self, trees: IntArray, slots: list[_Slot]) -> tuple[Rows, npt.NDArray[np.int8]]:
        """The positions at the roots and who is to move, once chance has done what it does."""
        forest, game = self._forest, self.game
        states = game.roots_of(forest, trees)
        to_play = game.to_play_many(states)
        num_draws = 0
        while (waiting := np.flatnonzero(to_play == CHANCE)).size:
            outcomes = np.empty(len(waiting), np.int64)
            rows: list[int] = waiting.tolist()
            for place, row in enumerate(rows):
                slot = slots[row]
                seed = self._dice(slot.number, slot.ply + 1, num_draws)
                outcomes[place] = game.sample_outcome(game.state_of(states[row]), seed)
                slot.outcomes.append(int(outcomes[place]))
                slot.outcome_plies.append(len(slot.actions))
            forest.advance_many(trees[waiting], outcomes)
            states = game.roots_of(forest, trees)
            to_play = game.to_play_many(states)
            num_draws += 1
        return states, to_play

    def _dice(self, number: int, ply: int, draw: int) -> int:
        """64 random bits for what chance does before move `ply` of a game, the `draw`-th time in a row."""
        return Stream(self.search.seed, number & 0xFFFFFFFF, ply, Purpose.DICE, draw).next_bits()

    def _finish(self, slot: _Slot, returns: list[float], *, resigned_by: int) -> None:
        actions = np.array(slot.actions, np.uint16)
        policy = np.array(slot.policies, np.float16).reshape(-1, self.game.num_actions)
        record = GameRecord(
            number=slot.number,
            actions=actions,
            initial=slot.initial,
            is_recorded=np.array(slot.is_recorded, bool),
            policy=policy,
            root_value=np.array(slot.root_values, np.float16),
            returns=np.array(returns, np.float32),
            versions=(slot.first_version, self.version),
            resigned_by=resigned_by,
            outcomes=np.array(slot.outcomes, np.int64),
            outcome_plies=np.array(slot.outcome_plies, np.uint32),
        )
        stats = self.stats
        stats.games += 1
        stats.recorded_moves += len(policy)
        stats.resigned_games += resigned_by >= 0
        stats.first_player_wins += returns[0] > 0
        stats.draws += len(returns) == 2 and returns[0] == returns[1]
        self._count_repeated(record)
        self._finished.append(record)

    def _count_repeated(self, record: GameRecord) -> None:
        """Count a game that was played before, move for move, as far as memory goes back."""
        moves = record.initial + record.actions.tobytes() + record.outcomes.tobytes()
        if moves in self._seen:
            self.stats.repeated_games += 1
        else:
            self._seen[moves] = None
            if len(self._seen) > _MAX_REMEMBERED_GAMES:
                del self._seen[next(iter(self._seen))]

    # --- Starting ---------------------------------------------------------------------------------------------

    def _start_games(self, trees: IntArray) -> None:
        """Put new games into free slots, as long as there are games to start."""
        started: list[int] = []
        initial: list[State] = []
        for tree in trees.tolist():
            number = self._take_number()
            if number is None:
                break
            state, moves, ply = self._opening(number)
            is_checked = self._uniform(number, Purpose.RESIGNATION) < self.config.resign_check_fraction
            start = self.game.pack_start(moves, state)
            player = self.game.to_play(state)
            self._slots[tree] = _Slot(number, start, ply, self.version, Watch(is_checked), player)
            started.append(tree)
            initial.append(state)
        if started:
            chosen = np.array(started, np.int32)
            rows = self.game.rows_of(initial)
            self._forest.reset_many(chosen, self.game.to_references(rows))
            self._begin(chosen)

    def _take_number(self) -> int | None:
        """The number of a game to start now; None if there is none to start."""
        if self._games_to_start < 1:
            return None
        self._games_to_start -= 1
        self._next_game += 1
        return self._next_game - 1

    def _fill_slots(self) -> None:
        """Start games in all free slots, as long as there are games to start."""
        self._start_games(np.setdiff1d(np.arange(self.config.num_slots, dtype=np.int32), list(self._slots)))

    def _begin(self, trees: IntArray) -> None:
        """Start the searches of the present positions of `trees`."""
        if not len(trees):
            return
        config, search = self.config, self.search
        slots = [self._slots[int(tree)] for tree in trees]
        keys, plies = self._keys(slots)
        if config.full_fraction < 1.0:
            is_full = uniforms(search.seed, keys, plies, Purpose.PLAYOUT_CAP) < config.full_fraction
            for slot, full in zip(slots, is_full.tolist(), strict=True):
                slot.is_full = full
        else:
            is_full = np.ones(len(slots), bool)
        budgets = np.where(is_full, self._num_simulations, config.fast_simulations).astype(np.int64)
        version = mix_version(self._number, self._port.version)
        self._forest.begin_many(trees, budgets, keys, plies, is_full, version)

    def _opening(self, number: int) -> tuple[State, list[int], int]:
        """Where a game starts, all moves that led there, and how many of them were random ones of players."""
        game = self.game
        state, moves = self._pass_chance(number, 0, game.initial_state())
        num_moves = int(self._uniform(number, Purpose.OPENING) * (self.config.opening_plies + 1))
        for ply in range(num_moves):
            legal = game.legal_actions(state)
            draw = self._uniform(number, Purpose.OPENING, move=ply + 1)
            action = legal[int(draw * len(legal))]
            after, outcomes = self._pass_chance(number, ply + 1, game.apply(state, action))
            if game.to_play(after) == TERMINAL:
                return state, moves, ply  # a game needs at least one move of its own
            state, moves = after, [*moves, action, *outcomes]
        return state, moves, num_moves

    def _pass_chance(self, number: int, ply: int, state: State) -> tuple[State, list[int]]:
        """The state once chance has done what it does before move `ply` of a game, and that."""
        return pass_chance(self.game, state, lambda draw: self._dice(number, ply, draw))

    # --- Small things -----------------------------------------------------------------------------------------

    def _keys(self, slots: list[_Slot]) -> tuple[npt.NDArray[np.uint32], npt.NDArray[np.uint32]]:
        """The keys of the random numbers of the present moves: number of the game, and ply."""
        return (
            np.array([slot.number & 0xFFFFFFFF for slot in slots], np.uint32),
            np.array([slot.ply for slot in slots], np.uint32),
        )

    def _uniform(self, number: int, purpose: Purpose, *, move: int = 0) -> float:
        return Stream(self.search.seed, number & 0xFFFFFFFF, move, purpose, 0).next_uniform()

    def _root_states(self) -> list[State]:
        planted = np.array(sorted(self._slots), np.int32)
        states = [self.game.initial_state()] * self.config.num_slots
        for tree, row in zip(planted.tolist(), self.game.roots_of(self._forest, planted), strict=True):
            states[tree] = self.game.state_of(row)
        return states


def settle(
    game: CoreGame | Game, search: SearchConfig, config: SelfPlayConfig | None
) -> tuple[CoreGame, SelfPlayConfig]:
    """The game and the config as every kind of self-play uses them; settings that it cannot follow are refused."""
    if search.num_simulations is None or search.time_limit_s is not None:
        raise ConfigError("self-play counts simulations: set num_simulations, and no time_limit_s")
    if search.trees_per_root > 1:
        raise ConfigError("self-play has a tree for every game: set trees_per_root=1")
    game = as_core_game(game)
    if find_engine(search.engine).capabilities.asks_game_here:
        check_apply(game, game.initial_state())
    config = SelfPlayConfig() if config is None else config
    if config.resign_below is not None and game.num_players != 2:
        raise ConfigError(f"resign_below is for games of two players: leave it out, {game!r} has {game.num_players}")
    return game, config
