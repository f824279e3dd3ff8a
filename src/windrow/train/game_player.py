"""Games of an evaluator against itself, in slots: each is played to its end, and a free slot takes the next game.

    take_number ──► slot: opening, search, move, ... ──► GameRecord ──► on_finish

Every tree searches on its own terms: it moves as soon as its own search has ended, whatever the others do, so that the
network's batches stay full from the first game to the last. Games are numbered from outside, and a game's number is the
key of all its random numbers: a game is the same whoever plays it, and beside whatever others.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.config import SearchConfig
from windrow.engines import HostOptions
from windrow.evaluators.cache import PredictionCache, mix_version
from windrow.evaluators.port import EvaluatorPort
from windrow.games.chance import pass_chance
from windrow.games.core_game import CoreGame, Rows, State
from windrow.games.protocol import CHANCE, TERMINAL
from windrow.numerics import Purpose, Stream, uniforms
from windrow.search.engines.vectorized import schedule_many
from windrow.search.forest import make_forest, raise_in_words
from windrow.search.growth import Growth
from windrow.train.records import GameRecord
from windrow.train.resignation import Resignation, Watch
from windrow.train.selfplay_config import SelfPlayConfig, SelfPlayStats

IntArray: TypeAlias = npt.NDArray[np.int32]


@dataclass(slots=True)
class _Slot:
    """One game in progress."""

    number: int
    initial: bytes  # the moves that led to where it began, packed
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
    is_proven: list[bool] = field(default_factory=list[bool])


class GamePlayer:
    """Plays games in the slots of one forest, in this process.

    Args:
        evaluator: priors and values; its weights may be updated between two rounds.
        search: how moves are searched, whatever its engine.
        take_number: gives the number of a game to start now, or None if there is none.
        on_finish: takes the record of a game that has ended.
        resignation: when games are given up; it learns from them.
        stats: counts what is done here; `games`, `repeated_games` and `total_s` are for whoever takes the records.
        cache: evaluations to use again; None for one of its own if `search.cache_memory` asks for it.
        first_version: what records call the weights that the evaluator has now; updates count from there.
    """

    def __init__(
        self,
        game: CoreGame,
        evaluator: object,
        search: SearchConfig,
        config: SelfPlayConfig,
        *,
        take_number: Callable[[], int | None],
        on_finish: Callable[[GameRecord], None],
        resignation: Resignation,
        stats: SelfPlayStats,
        cache: PredictionCache | None = None,
        first_version: int = 0,
    ) -> None:
        self.game, self.search, self.config = game, search, config
        self._take_number, self._on_finish = take_number, on_finish
        self.resignation, self.stats = resignation, stats
        if cache is None and search.cache_memory:
            cache = PredictionCache(search.cache_memory)
        if cache is not None:
            cache.claim(game)
        self._cache_number = 0 if cache is None else cache.number_of(evaluator)
        self._port = EvaluatorPort(game, evaluator, max_batch=search.options_for(HostOptions).max_batch)
        self._schedule = schedule_many(search, config.num_slots, evaluator_pipeline=self._port.pipeline)
        self._forest = make_forest(game, search, self._schedule, config.num_slots, cache)
        self.num_simulations: int = search.num_simulations or 0
        """Budget of a full search; another one holds from the next moves on."""
        self.told_version: int | None = None
        """What records call the present weights, where the evaluator does not count its versions."""
        self._first_version = first_version - self._port.version
        self._slots: dict[int, _Slot] = {}

    @property
    def version(self) -> int:
        """What records call the present weights."""
        return self._first_version + self._port.version if self.told_version is None else self.told_version

    @property
    def num_in_progress(self) -> int:
        """Games started and not finished."""
        return len(self._slots)

    def drop_games(self) -> None:
        """Forget the games in progress."""
        self._forest.uproot_many(np.arange(self.config.num_slots, dtype=np.int32))
        self._slots.clear()

    def raise_in_words(self, error: Exception) -> None:
        """Say where in a game something went wrong, a `_core.BadEvaluation` or a `_core.GameFault`."""
        raise_in_words(error, self.game, self._root_states())

    # --- The loop ---------------------------------------------------------------------------------------------

    def fill_slots(self) -> None:
        """Start games in all free slots, as long as there are games to start."""
        self._start_games(np.setdiff1d(np.arange(self.config.num_slots, dtype=np.int32), list(self._slots)))

    def rounds(self) -> Generator[None, None, None]:
        """Select, evaluate, complete and move, as long as there are games; yields after every batch."""
        stats, growth = self.stats, Growth(self._forest, self._port, self._schedule, lambda: False)
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
        policies, values, actions, is_proven = forest.choose_moves(trees, warm, keys, plies)
        forest.advance_many(trees, actions.astype(np.int64))
        for slot, action in zip(slots, actions.tolist(), strict=True):
            slot.actions.append(action)
        states, to_play = self._after_chance(trees, slots)
        half = policies.astype(np.float16)
        goes_on = np.zeros(len(slots), bool)
        for row, slot in enumerate(slots):
            slot.is_recorded.append(slot.is_full)
            slot.root_values.append(value := float(values[row]))
            slot.is_proven.append(bool(is_proven[row]))
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
            is_proven=np.array(slot.is_proven, bool),
            returns=np.array(returns, np.float32),
            versions=(slot.first_version, self.version),
            resigned_by=resigned_by,
            outcomes=np.array(slot.outcomes, np.int64),
            outcome_plies=np.array(slot.outcome_plies, np.uint32),
        )
        stats = self.stats
        stats.recorded_moves += len(policy)
        stats.resigned_games += resigned_by >= 0
        stats.first_player_wins += returns[0] > 0
        stats.draws += len(returns) == 2 and returns[0] == returns[1]
        self._on_finish(record)

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
            start = self.game.pack_start(moves)
            player = self.game.to_play(state)
            self._slots[tree] = _Slot(number, start, ply, self.version, Watch(is_checked), player)
            started.append(tree)
            initial.append(state)
        if started:
            chosen = np.array(started, np.int32)
            rows = self.game.rows_of(initial)
            self._forest.reset_many(chosen, self.game.to_references(rows))
            self._begin(chosen)

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
        budgets = np.where(is_full, self.num_simulations, config.fast_simulations).astype(np.int64)
        version = mix_version(self._cache_number, self._port.version)
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
