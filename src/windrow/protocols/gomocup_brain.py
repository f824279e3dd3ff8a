"""What thinks behind the Gomocup protocol: one search, kept from move to move."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from windrow.config import SearchConfig
from windrow.errors import ConfigError, GameError, WindrowError
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.games.registry import make_game
from windrow.protocols.gomocup_board import Stone, build_state
from windrow.protocols.thinker import Thinker
from windrow.search import SearchResult

EvaluatorMaker: TypeAlias = Callable[[CoreGame], object]
"""The evaluator for a game; raises a WindrowError if there is none."""

RULES = ("freestyle", "standard")

_WARM_UP_SIMULATIONS = 32
_MEMORY_SLACK = 16 << 20
"""Bytes that the process may still need beside its trees."""
_MIN_TREE_MEMORY = 4 << 20


class Brain:
    """Searches positions of Gomoku one after another, using again what it found before.

    Args:
        make_evaluator: the evaluator for a board of some size and rule.
        config: how to search; without a budget of simulations, time alone ends a search.
    """

    def __init__(self, make_evaluator: EvaluatorMaker, config: SearchConfig) -> None:
        self._make_evaluator, self._config = make_evaluator, config
        self._evaluators: dict[tuple[int, str], tuple[CoreGame, object]] = {}
        self._thinker: Thinker | None = None
        self._max_memory = 0
        self._delay_s = 0.0

    @property
    def delay_s(self) -> float:
        """How long a search goes on after its time is up, about."""
        return self._delay_s if self._thinker is None else self._thinker.delay_s

    def prepare(self, size: int, rule: str | None) -> None:
        """Get everything ready for boards of a size, so that the first move does not pay for it.

        Args:
            size: of the board.
            rule: None if it is not known yet: then the first for which there is an evaluator.

        Raises:
            WindrowError: the board is too small or too large, or the evaluator is not for it.
        """
        reasons: list[WindrowError] = []
        for name in RULES if rule is None else (rule,):
            try:
                thinker = self._ready_thinker(self.game(size, name))
            except WindrowError as error:
                reasons.append(error)
                continue
            thinker.warm_up(_WARM_UP_SIMULATIONS)
            return
        raise reasons[0]

    def game(self, size: int, rule: str) -> CoreGame:
        """The rules, once there is an evaluator for them."""
        if (size, rule) not in self._evaluators:
            game = make_game("gomoku", size=size, rule=rule)
            self._evaluators[size, rule] = game, self._make_evaluator(game)
        return self._evaluators[size, rule][0]

    def set_max_memory(self, num_bytes: int) -> None:
        """The most memory the whole process may take; 0: no limit. Holds from the next search on."""
        if num_bytes != self._max_memory:
            self._max_memory = num_bytes
            self.forget()

    def position(self, game: CoreGame, stones: list[Stone]) -> State:
        """The position of `stones`, in which this brain is to move.

        Raises:
            GameError: there is no such position, or the game is over in it.
        """
        state = build_state(game, stones)
        if game.to_play(state) == TERMINAL:
            raise GameError("the game is over")
        return state

    def think(
        self, state: State, stones: list[Stone], seconds: float, tell: Callable[[int], None] | None = None
    ) -> SearchResult:
        """Search a position for about `seconds`.

        Args:
            state: the position.
            stones: that of these stones.
            seconds: when to end.
            tell: called again and again with the best move so far.

        Raises:
            ConfigError: the memory that is allowed does not suffice.
        """

        def hear(result: SearchResult) -> None:
            if tell is not None:
                tell(result.best_action)

        return self._ready_thinker(state.game).think(state, _moves(stones), seconds=seconds, tell=hear)

    def follow(self, stones: list[Stone]) -> None:
        """Move the root to the position of `stones` if the tree has it, so that the next search begins there."""
        if self._thinker is not None:
            self._thinker.follow(_moves(stones))

    def stop(self) -> None:
        """End the present search; callable from any thread."""
        if (thinker := self._thinker) is not None:
            thinker.stop()

    def forget(self) -> None:
        """Free the tree."""
        if self._thinker is not None:
            self._delay_s = self._thinker.delay_s
            self._thinker.close()
        self._thinker = None

    def close(self) -> None:
        """Free the tree and what evaluates."""
        self.forget()
        for _, evaluator in self._evaluators.values():
            close = getattr(evaluator, "close", None)
            if callable(close):
                close()
        self._evaluators.clear()

    def _ready_thinker(self, game: CoreGame) -> Thinker:
        if self._thinker is not None and self._thinker.game == game:
            return self._thinker
        self.forget()
        _, evaluator = self._evaluators[game.options["size"], game.options["rule"]]  # pyright: ignore[reportArgumentType]
        config = self._config
        if self._max_memory:
            config = config.replace(max_memory=self._tree_memory(config.max_memory))
        self._thinker = Thinker(game, evaluator, config)
        self._thinker.delay_s = self._delay_s
        return self._thinker

    def _tree_memory(self, wanted: int | None) -> int:
        """What the limit leaves for the tree, once the process itself has its part."""
        left = self._max_memory - resident_bytes() - _MEMORY_SLACK
        if left < _MIN_TREE_MEMORY:
            needed = self._max_memory - left + _MIN_TREE_MEMORY
            raise ConfigError(f"max_memory is {self._max_memory} bytes, but at least {needed} are needed")
        return min(left, wanted or left)


def _moves(stones: list[Stone]) -> list[int]:
    return [stone.action for stone in stones]


def resident_bytes() -> int:
    """Memory of this process at present."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        # The most it ever had is all that other systems tell: macOS in bytes, the others in KiB.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if platform.system() == "Darwin" else 1024)
