"""Short searches that are interrupted at random moments, and what must be true after each."""

from __future__ import annotations

import random
import statistics
import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from search_cases import check_invariants, in_flight

from interrupts import Watchdog, alarms_are_interrupts, is_interrupted, is_interrupted_at
from windrow import Search


@dataclass
class Figures:
    """What a drill saw."""

    interrupts: int = 0
    calls: int = 0
    unplanted: int = 0
    slowest_s: float = 0.0
    restarts: int = 0


class Drill:
    """Short searches that are interrupted, and what must be true after each.

    Args:
        search: whose calls are interrupted.
        states: what it searches.
        want: the visits of an undisturbed `run(states)`; None if they depend on timing.
        watchdog: told of every step.
    """

    def __init__(self, search: Search, states: list[Any], want: list[list[int]] | None, watchdog: Watchdog) -> None:
        self._search, self._states, self._want, self._watchdog = search, states, want, watchdog
        self._budget: int = search.config.num_simulations or 0
        self.figures = Figures()

    def run(self, num_interrupts: int, seed: int) -> Figures:
        """Go on until so many calls have been interrupted."""
        rng, calls = random.Random(seed), [self._run, self._go_on, self._stream, self._advance]
        self._run()
        durations = {}
        for call in calls:
            times = []
            for _ in range(5):
                self._watchdog.step()
                start = time.perf_counter()
                call()
                times.append(time.perf_counter() - start)
                self._search.run(self._states)
            durations[call] = statistics.median(times)
        figures = self.figures
        with alarms_are_interrupts():
            while figures.interrupts < num_interrupts:
                self._watchdog.step()
                call = rng.choice(calls)
                start = time.monotonic()
                figures.calls += 1
                figures.interrupts += is_interrupted(call, rng.uniform(0.0, 1.1 * durations[call]))
                self._check(is_thorough=figures.calls % 10 == 0)
                figures.slowest_s = max(figures.slowest_s, time.monotonic() - start)
        return figures

    def run_exhaustively(self, step: int) -> int:
        """Interrupt every call at every `step`-th moment at which that can happen; how many that were."""
        num_interrupts = 0
        for call in (self._run, self._go_on, self._stream, self._advance):
            number = 1
            while is_interrupted_at(call, number):
                self._watchdog.step()
                num_interrupts += 1
                self._check(is_thorough=num_interrupts % 50 == 0)
                number += step
            self._check(is_thorough=True)
        return num_interrupts

    # --- What is interrupted ------------------------------------------------------------------------------------

    def _run(self) -> None:
        self._search.run(self._states)

    def _go_on(self) -> None:
        self._search.run(num_simulations=self._budget // 2)

    def _stream(self) -> None:
        for _ in self._search.stream(self._states, interval_s=0.0):
            pass

    def _advance(self) -> None:
        # Whatever was found or not, a legal move.
        game = self._search.game
        self._search.advance([game.legal_actions(state)[-1] for state in self._search.states])

    # --- What must be true afterwards ---------------------------------------------------------------------------

    def _check(self, *, is_thorough: bool) -> None:
        search, game = self._search, self._search.game
        if not search.is_planted:
            self.figures.unplanted += 1  # the interrupt came while the trees were planted
        else:
            assert in_flight(search) == 0
            if is_thorough:
                for tree in range(len(self._states)):
                    check_invariants(search, tree)
            before = [search.node(tree=tree) for tree in range(len(self._states))]
            num_before = [0 if node is None else int(node.edge_visits.sum()) for node in before]
            results = search.run(num_simulations=3)
            num_after = [int(result.visits.sum()) for result in results]
            assert num_after == [count + 3 for count in num_before], (num_before, num_after)
            for state, result in zip(search.states, results, strict=True):
                assert result.state == state
                assert set(np.flatnonzero(result.visits).tolist()) <= set(game.legal_actions(state))
            self.figures.restarts += results[0].stats.restarts
        results = search.run(self._states)
        self.figures.restarts += results[0].stats.restarts
        assert [int(result.visits.sum()) for result in results] == [self._budget] * len(self._states)
        if self._want is not None:
            assert [result.visits.tolist() for result in results] == self._want
        else:
            assert in_flight(search) == 0
            check_invariants(search)
