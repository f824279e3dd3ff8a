"""The contest of candidates: rounds of samples, in which the better ones go on."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any, TypeAlias

from windrow.errors import ConfigError, WindrowError
from windrow.games.core_game import CoreGame, State
from windrow.tune.choice import Measured, combine_turns, survivors
from windrow.tune.measurement import NOTHING, Sample, Sampler
from windrow.tune.network import NetworkCurve, different_positions
from windrow.tune.price import Price
from windrow.tune.space import Candidate, Space

Progress: TypeAlias = Callable[[float, str], None]
"""Called with the share of the time that is over, 0 to 1, and what is being done."""

_PARTS = (0.35, 0.25, 0.40)
"""Of the time: for the coarse candidates, the refined ones, and the finals."""
_SAMPLE_S = (0.1, 0.6)
"""Shortest and longest sample before the finals."""
_NUM_REFINED = 4
"""Candidates around which is looked closer."""
_NUM_SECOND = 10
_NUM_FINALISTS = 4
_MAX_FINALISTS = 6
_FINAL_TURNS = 8
_OVERHEAD_S = 0.1
"""What a sample takes besides: planting, growing, starting."""
_MIN_STATES = 64
_MIDDLE = 0.5
_BEGINNINGS = (0.5, 0.0, 0.75, 0.25, 0.625, 0.125, 0.875, 0.375)
"""Where in the budget samples begin: before the finals half-way, in the finals evenly spread."""


@dataclass
class Contest:
    """Candidates, and what is known of each."""

    game: CoreGame
    space: Space
    price: Price
    evaluator: Any
    """As it is used in the end."""
    sampled: Any
    """The same, with a shortcut if it has one."""
    curve: NetworkCurve | None
    module: Any = None
    """The network, for engines that take one to their device."""
    fleet: Any = None
    """The evaluator for engines that ask inference actors."""
    samples: dict[Candidate, Sample] = field(default_factory=dict[Candidate, Sample])
    counts: dict[Candidate, int] = field(default_factory=dict[Candidate, int])
    final: dict[Candidate, float] = field(default_factory=dict[Candidate, float])
    alone: dict[Candidate, float] = field(default_factory=dict[Candidate, float])
    failures: dict[Candidate, str] = field(default_factory=dict[Candidate, str])
    _compiled: dict[Candidate, Sampler] = field(default_factory=dict[Candidate, Sampler])

    def begin(self, start: float, seconds: float, tell: Progress) -> None:
        """From when the time counts, how much there is, and whom to tell."""
        self._start, self._seconds, self._tell = start, seconds, tell
        self._states = different_positions(self.game, max(self.space.num_positions or 0, _MIN_STATES))

    def run(self) -> None:
        """All rounds."""
        left = max(self._deadline() - perf_counter(), 1.0)
        coarse = self.space.coarse(self.efficiency)
        references = self.space.references()
        if not coarse:
            raise ConfigError("there is nothing to choose from: name other engines, or more positions")
        first = self._round(references + coarse, _PARTS[0] * left)
        adjusted = {candidate: rate for candidate, rate in first.items() if candidate not in references}
        if not adjusted:
            reasons = "; ".join(dict.fromkeys(self.failures.values()))
            raise ConfigError(f"no candidate could be measured: {reasons}")
        best = survivors(adjusted, _NUM_REFINED, near=1.0)[:_NUM_REFINED]
        closer = [other for candidate in best for other in self.space.around(candidate)]
        kept = survivors(adjusted, max(_NUM_REFINED, len(adjusted) // 2), near=0.9)[:_NUM_SECOND]
        self._round([*kept, *(other for other in dict.fromkeys(closer) if other not in adjusted)], _PARTS[1] * left)
        adjusted = {candidate: self._adjusted(candidate) for candidate in self.samples if candidate not in references}
        finalists = survivors(adjusted, _NUM_FINALISTS, near=0.97)[:_MAX_FINALISTS]
        self._finals(finalists)

    def close(self) -> None:
        """Let go of what was kept."""
        for sampler in self._compiled.values():
            sampler.close()
        self._compiled.clear()

    def table(self) -> list[Measured]:
        """All that was measured."""
        references = set(self.space.references())
        rows: list[Measured] = []
        for candidate, sample in self.samples.items():
            efficiency = self.efficiency(candidate)
            in_finals = self.final.get(candidate)
            mean_rows = sample.nn_positions / max(sample.nn_batches, 1)
            alone = self.alone.get(candidate)
            if alone is None and self.curve is not None:
                alone = self.curve.rate(mean_rows)
            rate = sample.simulations_per_second if in_finals is None else in_finals / efficiency
            rows.append(
                Measured(
                    candidate=candidate,
                    simulations_per_second=rate,
                    efficiency=efficiency,
                    batch_fill=sample.nn_positions / sample.places if sample.places else 0.0,
                    mean_rows=mean_rows,
                    network_share=None if alone is None else sample.nn_positions / sample.seconds / alone,
                    num_samples=self.counts[candidate],
                    is_finalist=in_finals is not None,
                    is_reference=candidate in references,
                )
            )
        return rows

    def efficiency(self, candidate: Candidate) -> float:
        """What one of its simulations is worth."""
        base = self.space.base
        return self.price.efficiency(
            candidate.leaves_per_tree,
            base.num_simulations or 1,
            in_flight=base.in_flight,
            on_collision=candidate.on_collision or base.on_collision,
        )

    # --- Rounds -----------------------------------------------------------------------------------------------------

    def _round(self, candidates: Sequence[Candidate], seconds: float) -> dict[Candidate, float]:
        """One sample of each; adjusted rates of those that could be measured before the time was over."""
        end = min(perf_counter() + seconds, self._deadline())
        order = list(candidates)
        random.Random(len(order)).shuffle(order)  # so that what lies side by side is not measured side by side
        order.sort(key=self._precedence)
        references = self.space.references()
        found: dict[Candidate, float] = {}
        for place, candidate in enumerate(order):
            now = perf_counter()
            if now >= end and any(known not in references for known in found):
                break  # something must have been measured, however little time there is
            share = (end - now) / (len(order) - place) - _OVERHEAD_S
            length = min(max(share, _SAMPLE_S[0]), _SAMPLE_S[1])
            self._tell(self._share(), candidate.in_words())
            try:
                sampler = self._open(candidate)
            except WindrowError as error:
                self.failures[candidate] = f"{candidate.engine}: {error}"
                continue
            try:
                self._take(candidate, sampler, length, begin=_MIDDLE)
                found[candidate] = self._adjusted(candidate)
            finally:
                self._release(candidate, sampler)
        return found

    def _finals(self, finalists: Sequence[Candidate]) -> None:
        """The last few, turn by turn until the time is over."""
        turns: list[dict[Candidate, float]] = []
        with ExitStack() as stack:
            samplers: dict[Candidate, Sampler] = {}
            for candidate in finalists:
                samplers[candidate] = self._open(candidate)
                stack.callback(self._release, candidate, samplers[candidate])
            left = max(self._deadline() - perf_counter(), 0.0)
            length = min(max(left / (_FINAL_TURNS * len(finalists)) - _OVERHEAD_S, _SAMPLE_S[0]), 2.0)
            for turn in range(_FINAL_TURNS):
                order = finalists if turn % 2 == 0 else finalists[::-1]
                took = perf_counter()
                rates: dict[Candidate, float] = {}
                for candidate in order:
                    self._tell(self._share(), f"finals: {candidate.in_words()}")
                    begin = _BEGINNINGS[turn % len(_BEGINNINGS)]
                    sample = self._take(candidate, samplers[candidate], length, begin=begin)
                    rates[candidate] = sample.simulations_per_second * self.efficiency(candidate)
                turns.append(rates)
                now = perf_counter()
                if now + (now - took) > self._deadline():
                    break
            for candidate, sampler in samplers.items():
                if candidate.able.evaluator == "device":
                    self.alone[candidate] = sampler.evaluator.rate(self.game, candidate.rows, seconds=0.2)
        self.final = combine_turns(turns)

    def _take(self, candidate: Candidate, sampler: Sampler, seconds: float, *, begin: float) -> Sample:
        sample = sampler.sample(seconds, begin=begin)
        self.samples[candidate] = self.samples.get(candidate, NOTHING) + sample
        self.counts[candidate] = self.counts.get(candidate, 0) + 1
        return sample

    def _adjusted(self, candidate: Candidate) -> float:
        return self.samples[candidate].simulations_per_second * self.efficiency(candidate)

    def _open(self, candidate: Candidate) -> Sampler:
        if candidate in self._compiled:
            return self._compiled[candidate]
        base, place = self.space.base, candidate.able.evaluator
        evaluator = self.fleet if place == "actors" else self.sampled
        if place == "device":
            from windrow.tensor.evaluators.network_call import DeviceNetwork

            evaluator = DeviceNetwork(self.module, getattr(base.engine, "device", "auto"))
        sampler = Sampler(self.game, evaluator, base, candidate, self._positions(candidate.num_trees))
        if candidate.able.is_compiled:
            self._compiled[candidate] = sampler
        return sampler

    def _release(self, candidate: Candidate, sampler: Sampler) -> None:
        if candidate not in self._compiled:  # those are kept for the next round
            sampler.close()

    def _precedence(self, candidate: Candidate) -> tuple[int, int]:
        """What is only compared with goes first, so that it is there; what must be compiled last, the largest first."""
        if candidate in self.space.references():
            return 0, 0
        return (2, -candidate.num_trees) if candidate.able.is_compiled else (1, 0)

    def _positions(self, count: int) -> list[State]:
        if count > len(self._states):
            self._states = different_positions(self.game, 2 * count)
        return self._states[:count]

    def _deadline(self) -> float:
        return self._start + self._seconds

    def _share(self) -> float:
        return min(1.0, (perf_counter() - self._start) / self._seconds)
