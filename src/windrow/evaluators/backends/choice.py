"""`backend="auto"`: measure what is installed, take the fastest that agrees with float32, remember the measurement.

Only speeds are remembered. Whether reduced precision agrees depends on the weights, so that is found out every time, by
evaluating a few hundred positions with the chosen backend and in float32.
"""

from __future__ import annotations

import logging
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from windrow.cores import OtherLoad
from windrow.errors import EvaluatorError, MissingExtraError, first_line, how_to_install
from windrow.evaluators.backends import memory
from windrow.evaluators.backends.agreement import Agreement, compare
from windrow.evaluators.backends.catalog import BACKENDS, Backend, cpu_has_bf16
from windrow.evaluators.backends.runner import Runner
from windrow.evaluators.backends.source import Network
from windrow.evaluators.network import NetworkEvaluator

EXACTNESS = {"f32": 0, "bf16": 1, "int8": 2}
WORTH = 1.03
"""A less exact backend must be this much faster than a more exact one to be taken."""
_NUM_ROUNDS = 5
_MAX_REASON = 300
"""Characters of the reason why a backend is refused or left out."""
_MAX_OTHER_CORES = 0.2
"""If other programs took more while backends were measured, the figures are used but not remembered."""
_BLOCK_S = 0.03
"""Each backend is timed for about this long, in turn with the others, in every round."""
_NUM_UPDATES = 7
_UPDATES_S = 0.5
"""Updates are timed so often, or for so long."""
_HOPELESS = 3.0
"""Who is this much slower than the best after a round takes no part in the next."""

_log = logging.getLogger("windrow")


@dataclass
class Measurement:
    """What is known about the backends for one network, machine and batch.

    rates: rows per second, of those that could be measured.
    updates: seconds an update of the weights takes, where that was asked for.
    left_out: why each of the others was not measured.
    """

    rates: dict[str, float] = field(default_factory=dict[str, float])
    updates: dict[str, float] = field(default_factory=dict[str, float])
    left_out: dict[str, str] = field(default_factory=dict[str, str])

    @staticmethod
    def from_json(content: dict[str, Any] | None) -> Measurement | None:
        """What `vars` gave; None if it is not that."""
        if content is None:
            return None
        kinds = {"rates": float, "updates": float, "left_out": str}
        for name, kind in kinds.items():
            table: Any = content.get(name)
            if not isinstance(table, dict) or not all(
                key in BACKENDS and isinstance(value, kind) for key, value in cast("dict[Any, Any]", table).items()
            ):
                return None
        return Measurement(*(content[name] for name in kinds)) if content["rates"] else None

    def ranking(self, max_update_s: float | None) -> list[str]:
        """Backends from best to worst: fastest first, the more exact of two that are equally fast."""
        left = {
            name: rate
            for name, rate in self.rates.items()
            if max_update_s is None or self.updates.get(name, float("inf")) <= max_update_s
        }
        ranked: list[str] = []
        while left:
            fastest = max(left.values())
            close = [name for name, rate in left.items() if rate * WORTH >= fastest]
            best = min(close, key=lambda name: (EXACTNESS[BACKENDS[name].precision], -left[name]))
            ranked.append(best)
            del left[best]
        return ranked


def choose(
    network: Network,
    backends: Sequence[Backend],
    *,
    batch: int,
    num_threads: int,
    is_exact_count: bool,
    max_update_s: float | None,
    use_cache: bool,
) -> tuple[Backend, Runner, str]:
    """The backend to use, the network in it, and the choice in words."""
    field_of_play = _Field(network, batch=batch, num_threads=num_threads, is_exact_count=is_exact_count)
    question = {
        **memory.machine_facts(),
        "network": network.signature,
        "candidates": sorted(backend.name for backend in backends),
        "batch": batch,
        "num_threads": num_threads,
        "with_updates": max_update_s is not None,
    }
    measured = Measurement.from_json(memory.recall(question)) if use_cache else None
    source = f"remembered in {memory.file_for(question)}"
    if measured is None:
        others = OtherLoad()
        measured = field_of_play.measure(backends, with_updates=max_update_s is not None)
        if (cores := others.cores()) > _MAX_OTHER_CORES:
            source = f"measured now, not remembered: other programs took {cores:.1f} cores"
        else:
            is_kept = use_cache and bool(measured.rates) and memory.remember(question, vars(measured))
            source = f"measured now, {source}" if is_kept else "measured now, not remembered"
    refused: dict[str, str] = {}
    for name in measured.ranking(max_update_s):
        try:
            runner = field_of_play.runner(BACKENDS[name])
            agreement = field_of_play.agreement(BACKENDS[name])
        except Exception as error:
            refused[name] = first_line(error)[:_MAX_REASON]
            continue
        if agreement is None or agreement.holds:
            text = _explain(name, measured, agreement, refused, batch, num_threads, max_update_s, source)
            _log.info("%s", text)
            return BACKENDS[name], runner, text
        refused[name] = f"does not agree with float32: {agreement}"
    reasons = "; ".join(f"{name}: {reason}" for name, reason in {**measured.left_out, **refused}.items())
    limit = "" if max_update_s is None else f" with updates in {max_update_s:g} s"
    if measured.rates and not refused and max_update_s is not None:
        reasons += "; ".join(f"{name} takes {took:.3f} s" for name, took in measured.updates.items())
    raise EvaluatorError(f"no backend can run {network.label}{limit}. {reasons}")


class _Field:
    """The candidates, built when asked for, and what they are judged by."""

    def __init__(self, network: Network, *, batch: int, num_threads: int, is_exact_count: bool) -> None:
        self._network, self._batch, self._num_threads = network, batch, num_threads
        self._is_exact_count = is_exact_count
        self._built: dict[str, tuple[Runner, NetworkEvaluator]] = {}
        self._exact: tuple[Any, Any] | None = None

    def runner(self, backend: Backend) -> Runner:
        """The network in that backend."""
        return self._build(backend)[0]

    def agreement(self, backend: Backend) -> Agreement | None:
        """How it agrees with float32; None if there are no positions and it computes in float32 anyway."""
        positions = self._network.held_out
        if positions is None:
            if backend.precision == "f32":
                return None
            raise EvaluatorError("its agreement with float32 cannot be measured without positions: pass game=...")
        if self._exact is None:
            self._exact = self._build(_standard(self._network))[1].evaluate(positions.observations)
        answer = self._build(backend)[1].evaluate(positions.observations)
        return compare(self._exact, answer, positions.legal)

    def measure(self, backends: Sequence[Backend], *, with_updates: bool) -> Measurement:
        """Build and time all of them."""
        measured = Measurement()
        calls: dict[str, Callable[[], object]] = {}
        for backend in backends:
            if (reason := self._unfit(backend)) is not None:
                measured.left_out[backend.name] = reason
                continue
            try:
                agreement = self.agreement(backend)
                if agreement is not None and not agreement.holds and backend.precision == "f32":
                    raise EvaluatorError(f"its answers differ from float32: {agreement}")
                calls[backend.name] = self._call(backend)
            except Exception as error:  # a backend that fails is one that is not chosen
                measured.left_out[backend.name] = first_line(error)[:_MAX_REASON]
        measured.rates = {name: self._batch / seconds for name, seconds in _time_in_turn(calls).items()}
        if with_updates and measured.rates:
            weights = self._network.weights()
            measured.updates = {name: _time_update(self._built[name][1], weights) for name in measured.rates}
        return measured

    def _unfit(self, backend: Backend) -> str | None:
        """Why a backend need not be tried."""
        if (reason := backend.missing()) is not None:
            return reason
        if self._network.module is None and not backend.takes_onnx:
            return "it runs PyTorch modules, not ONNX files"
        if backend.name == "torch-bf16" and not cpu_has_bf16():
            return "this CPU has no bfloat16 instructions"
        return None

    def _build(self, backend: Backend) -> tuple[Runner, NetworkEvaluator]:
        if backend.name not in self._built:
            runner = backend.make(self._network, num_threads=self._num_threads, is_exact_count=self._is_exact_count)
            evaluator = NetworkEvaluator(self._network, runner, backend, num_threads=self._num_threads, choice="")
            self._built[backend.name] = runner, evaluator
        return self._built[backend.name]

    def _call(self, backend: Backend) -> Callable[[], object]:
        _, evaluator = self._build(backend)
        positions = self._network.held_out
        if positions is None:
            raise EvaluatorError(
                "backends are measured on positions, and there are none: pass game=... or positions=..."
            )
        observations = positions.repeat(self._batch)
        return lambda: evaluator.evaluate(observations)


def _standard(network: Network) -> Backend:
    """The backend whose answers count as exact."""
    names = ("torch",) if network.module is not None else ("onnxruntime", "openvino")
    for name in names:
        if BACKENDS[name].missing() is None:
            return BACKENDS[name]
    raise MissingExtraError(f"{network.label} needs a runtime: {how_to_install('onnx')}")


def _time_in_turn(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Seconds per call, the best of several rounds in which all take turns: what disturbs, disturbs all alike."""
    best: dict[str, float] = {}
    repeats: dict[str, int] = {}
    for name, call in calls.items():
        call()  # compiles for this batch
        best[name] = _time_block(call, 1)
        repeats[name] = max(1, min(1000, int(_BLOCK_S / best[name])))
    for _ in range(_NUM_ROUNDS):
        fastest = min(best.values(), default=0.0)
        for name, call in calls.items():
            if best[name] <= _HOPELESS * fastest:
                # OpenMP's threads spin for a while in wait of more work.
                time.sleep(0.002)
                best[name] = min(best[name], _time_block(call, repeats[name]))
    return best


def _time_block(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def _time_update(evaluator: NetworkEvaluator, weights: Any) -> float:
    """Seconds of an update, the median of a few; to the weights it has, so that nothing changes.

    Not the best, as with rates: those only compare, but a limit is to hold for updates as they come.
    """
    known = evaluator.weight_names()
    own = {name: value for name, value in weights.items() if name in known}
    taken: list[float] = []
    while len(taken) < _NUM_UPDATES and sum(taken) < _UPDATES_S:
        taken.append(_time_block(lambda: evaluator.update(own), 1))
    return statistics.median(taken)


def _explain(
    name: str,
    measured: Measurement,
    agreement: Agreement | None,
    refused: dict[str, str],
    batch: int,
    num_threads: int,
    max_update_s: float | None,
    source: str,
) -> str:
    others = sorted(measured.rates.items(), key=lambda item: -item[1])
    rates = ", ".join(f"{other} {rate:,.0f}" for other, rate in others)
    lines = [
        f"{name}: best of {len(others)} at batch {batch} with {num_threads} thread{'s' if num_threads > 1 else ''} "
        f"({source}).",
        f"Positions per second: {rates}.",
    ]
    if agreement is not None:
        lines.append(f"Agreement with float32: {agreement}.")
    if max_update_s is not None:
        updates = ", ".join(f"{other} {1e3 * took:.0f} ms" for other, took in measured.updates.items())
        lines.append(f"Updates of the weights, {1e3 * max_update_s:g} ms allowed: {updates}.")
    lines += [f"Refused: {other}, {reason}." for other, reason in refused.items()]
    lines += [f"Left out: {other}, {reason}." for other, reason in measured.left_out.items()]
    return "\n".join(lines)
