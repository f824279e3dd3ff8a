"""The root positions of a search: planted in the engine, moved, and numbered for their random numbers."""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, cast

import numpy as np

from windrow import _core
from windrow.config import SearchConfig
from windrow.errors import GameError, SearchError
from windrow.evaluators.cache import mix_version
from windrow.games.core_game import CoreGame, State
from windrow.search.checks import check_apply, check_many, check_searchable
from windrow.search.engine import Engine, Order
from windrow.search.forest import raise_in_words

_NO_POSITION = "there is no position yet: call run(state) first"


class RootPositions:
    """The roots of one `Search`. Every root has `config.trees_per_root` neighbouring trees in the engine.

    Args:
        game: the rules.
        own_game: the user's own object that `game` wraps; None for other games.
        config: settings of the search.
        engine: the engine that holds the trees.
    """

    def __init__(self, game: CoreGame, own_game: Any, config: SearchConfig, engine: Engine) -> None:
        self._game, self._own_game, self._config, self._engine = game, own_game, config, engine
        self._copies = config.trees_per_root
        self.is_planted = False
        """Whether there are trees to continue from. An interrupt during planting leaves none."""
        self.is_single = True
        """Whether one state was given instead of a list."""
        self.num_changes = 0
        """Counts changes of the roots and searches, so that a stream knows whether the roots are still its own."""
        self.num_searches = 0
        """Number of searches begun."""
        self._states: list[State] = []
        self._after_move: tuple[int, list[State]] = (-1, [])
        """The roots after the move in progress, and the value that the engine's `num_advances` has then."""

    @property
    def states(self) -> list[State]:
        """The positions, also after an interrupt that came before this object recorded a move."""
        number, after = self._after_move
        if number == self._engine.num_advances:
            self._states, self._after_move = after, (-1, [])
        return self._states

    def per_tree(self) -> list[State]:
        """The position at the root of every tree."""
        return self._repeated(self.states)

    def in_users_terms(self, state: State) -> Any:
        """A position in the representation of the user's own class."""
        return state if self._own_game is None else state.data

    def plant(self, states: Any) -> None:
        """Make `states`, one or many, the roots of fresh trees."""
        is_single = isinstance(states, State) or (self._own_game is not None and not isinstance(states, list))
        if not is_single and not isinstance(states, Iterable):
            raise GameError(f"run takes a state or a list of states, not {states!r:.100}")
        if self._own_game is not None and not is_single:
            check_many(self._game, cast("list[Any]", states))
        given: list[Any] = [states] if is_single else list(cast("Iterable[Any]", states))
        if not given:
            raise SearchError("the list of states is empty: give at least one position to search")
        roots = [self._as_root(tree, state) for tree, state in enumerate(given)]
        check_searchable(self._game, roots)
        if self._engine.capabilities.asks_game_here:
            check_apply(self._game, roots[0])
        self.is_planted = False
        planted = self._repeated(roots)
        try:
            self._engine.plant(planted)
        except _core.GameFault as error:
            raise_in_words(error, self._game, planted)
        self._states, self._after_move, self.is_single = roots, (-1, []), is_single
        self.is_planted = True

    def check_planted(self) -> None:
        """Raise `SearchError` if there is no position yet."""
        if not self.is_planted:
            raise SearchError(_NO_POSITION)

    def check_unchanged(self, num_changes: int) -> None:
        """Raise `SearchError` if the roots are no longer those of a stream that has not begun."""
        if num_changes != self.num_changes:
            raise SearchError(
                "this stream has lost its roots, because its search was used by run, stream or advance before the "
                "stream's first result. Ask a stream for its first result before you use the search for something else"
            )

    def advance(self, actions: int | Iterable[int]) -> None:
        """Play an action at every root."""
        self.check_planted()
        before = self.states
        moves = [index(action) for action in (actions if isinstance(actions, Iterable) else [actions])]
        if len(moves) != len(before):
            raise SearchError(f"advance needs one action per tree: {len(before)}, not {len(moves)}")
        # All are tried before any tree is changed.
        after = [self._game.apply(state, action) for state, action in zip(before, moves, strict=True)]
        self.num_changes += 1
        self._after_move = self._engine.num_advances + 1, after
        try:
            self._engine.advance(np.array(moves, np.int64).repeat(self._copies))
        except _core.GameFault as error:
            raise_in_words(error, self._game, self.per_tree())

    def order(self, budget: int, evaluator_number: int) -> Order:
        """The next search of all trees: `budget` simulations a root, divided among its trees."""
        num_roots, copies = len(self.states), self._copies
        budgets = np.full(num_roots * copies, budget // copies, np.int64)
        if copies > 1:
            budgets.reshape(num_roots, copies)[:, : budget % copies] += 1
        if self._config.random_key == "tree":
            keys = np.arange(num_roots * copies, dtype=np.uint32)
            counts = np.full(num_roots * copies, self.num_searches, np.uint32)
        else:
            drawn = [self._hashed_key(tree) for tree in range(num_roots * copies)]
            keys, counts = (np.array(column, np.uint32) for column in zip(*drawn, strict=True))
        return Order(budgets, keys, counts, mix_version(evaluator_number, self._engine.version))

    def result_key(self, root: int) -> tuple[int, int]:
        """The (tree, move) under which a root's move is drawn, once its search has begun."""
        if self._config.random_key == "tree":
            return root, self.num_searches - 1
        return self._hashed_key(root * self._copies)

    def _hashed_key(self, tree: int) -> tuple[int, int]:
        """The (tree, move) under which a tree's random numbers are drawn if its position decides them."""
        key = self._game.hash(self._states[tree // self._copies])
        return (key + tree % self._copies) & 0xFFFFFFFF, key >> 32 & 0xFFFFFFFF

    def _as_root(self, tree: int, state: Any) -> State:
        if isinstance(state, State):
            if state.game is self._game or state.game == self._game:
                return state
        elif self._own_game is not None:
            return State(self._game, state)
        hint = "; game.state_from_moves(text) makes a state from moves" if isinstance(state, str) else ""
        raise GameError(f"state {tree} is not a state of {self._game!r}: {state!r:.200}{hint}")

    def _repeated(self, roots: list[State]) -> list[State]:
        return [root for root in roots for _ in range(self._copies)]
