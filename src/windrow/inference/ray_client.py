"""The client of a fleet: an evaluator whose requests are answered by actors on a Ray cluster.

A request goes to the actor that has the fewest requests of this client. If the actor dies, the client sends the request
to another actor. The dead actor gets no requests until it answers `hello`, a call that Ray delivers after the restart.
While no actor is available, requests are parked in the client.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from time import perf_counter
from typing import Any, TypeAlias
from weakref import WeakSet

import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError, GameError, WindrowError
from windrow.evaluators.protocol import Evaluator, Observations, count_rows, flatten_rows
from windrow.inference.ray_actor import Answer
from windrow.inference.ray_cluster import load_ray
from windrow.inference.ray_stats import LinkStats

FloatArray: TypeAlias = npt.NDArray[np.float32]

_MAX_SENDS = 5
"""Number of actors that may die with a request before the request fails, since it probably causes the crashes."""
_MAX_ERRORS_IN_A_ROW = 3
"""Number of successive evaluator errors after which an actor is restarted, if other actors have no errors."""


@dataclass(frozen=True, slots=True)
class FleetFacts:
    """Facts about a fleet that its clients must know.

    models: names of the models; the first is the default.
    patience_s: seconds that requests wait for an actor to restart when no actor is available.
    """

    num_actions: int
    num_values: int
    models: tuple[str, ...]
    reads_observations: tuple[bool, ...]
    takes_states: tuple[bool, ...]
    patience_s: float


@dataclass(slots=True, eq=False)
class _Link:
    """This client's state of one actor."""

    handle: Any
    stats: LinkStats
    is_in: bool = True
    """Whether the actor gets requests."""
    is_gone: bool = False
    """Whether the actor is dead for good."""
    life: int = 0
    """Number of times the actor was lost; requests of an earlier life do not report the loss again."""
    hello: Any = None
    """The pending call that returns when the actor has restarted."""
    errors_in_a_row: int = 0
    busy_s: float | None = None
    """Busy time in seconds from the actor's last answer."""


@dataclass(eq=False)
class RayQuestion:
    """A request in flight.

    version: version of the weights that answered it, after it is done.
    """

    client: RayEvaluator
    rows: npt.NDArray[Any]
    version: int = 0
    is_done: bool = False
    link: Any = None
    life: int = 0
    ref: Any = None
    asked_s: float = 0.0
    num_sends: int = 0
    block: FloatArray | None = None
    error: WindrowError | None = None
    lost_to: list[str] = field(default_factory=list[str])

    def result(self) -> tuple[FloatArray, FloatArray]:
        """Wait for logits [K, A] and values [K] or [K, players]; read-only."""
        while not self.is_done:
            self.client.wait([self])
        if self.error is not None:
            raise self.error
        if self.block is None:
            raise EvaluatorError("this request was cancelled")
        facts = self.client.facts
        logits, values = self.block[:, : facts.num_actions], self.block[:, facts.num_actions :]
        return logits, values[:, 0] if facts.num_values == 1 else values

    def cancel(self) -> None:
        """Cancel the request."""
        self.client.forget(self)


class RayEvaluator(Evaluator):
    """An evaluator that sends each request to the actor of a fleet with the fewest requests of this client.

    `InferenceFleet.client` makes it. It can be pickled and passed to other Ray actors and tasks; each copy counts its
    own requests. It may be used by one thread at a time. An error of the remote evaluator is raised here. The death of
    an actor only costs time, unless no actor is left.

    version: newest version of the weights that answered this client, or that its fleet has set in this process.
    pipeline: recommended number of batches in flight: per actor, one that is evaluated and one in transport.
    reads_observations: whether the evaluator reads observations; otherwise none are sent.
    takes_states: whether `submit` takes states, uint8 [K, state_bytes], instead of observations.
    """

    def __init__(self, facts: FleetFacts, handles: Sequence[Any], cargo: Any, model: int, version: int) -> None:
        self.facts, self.model, self.version = facts, model, version
        self._cargo = cargo  # restarted actors make their evaluators from it
        self._ray = load_ray()
        self._links = [_Link(handle, LinkStats(actor)) for actor, handle in enumerate(handles)]
        self._id = int.from_bytes(os.urandom(7), "little")
        self._parked: list[RayQuestion] = []
        # Weak references: a request whose caller was interrupted disappears and is not counted any more.
        self._out: WeakSet[RayQuestion] = WeakSet()
        self._owner = os.getpid()
        self._all_out_since: float | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        handles = [link.handle for link in self._links]
        return RayEvaluator, (self.facts, handles, self._cargo, self.model, self.version)

    def __repr__(self) -> str:
        name = self.facts.models[self.model]
        return f"<RayEvaluator of {len(self._links)} actors{f', model {name}' if name else ''}>"

    @property
    def pipeline(self) -> int:
        """Recommended number of batches in flight."""
        return 2 * len(self._links)

    @property
    def reads_observations(self) -> bool:
        """Whether the evaluator reads observations."""
        return self.facts.reads_observations[self.model]

    @property
    def takes_states(self) -> bool:
        """Whether `submit` takes states instead of observations."""
        return self.facts.takes_states[self.model]

    @property
    def links(self) -> list[LinkStats]:
        """Statistics of every actor as seen by this client; copies."""
        return [replace(link.stats) for link in self._links]

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Allocate memory for observations: an ordinary array of `shape`."""
        return np.empty(shape, np.float32)

    # --- Asking -----------------------------------------------------------------------------------------------

    def evaluate(self, observations: Observations) -> tuple[FloatArray, FloatArray]:
        return self.submit(observations).result()

    def submit(self, observations: Observations) -> RayQuestion:
        """Send a request without waiting. The observations must not be changed until the request is done."""
        if os.getpid() != self._owner:
            raise EvaluatorError(
                f"this client belongs to process {self._owner}, of which this process is a fork: its connection to "
                "Ray cannot be used here"
            )
        if self.takes_states or self.reads_observations:
            rows = flatten_rows(observations)
        else:
            rows = np.empty((count_rows(observations), 0), np.float32)
        question = RayQuestion(self, np.ascontiguousarray(rows))
        self._send(question)
        return question

    def wait(self, questions: Sequence[RayQuestion], timeout_s: float | None = None) -> list[RayQuestion]:
        """Wait until a request is done, or for `timeout_s` seconds; return those of `questions` that are done."""
        deadline = None if timeout_s is None else perf_counter() + timeout_s
        while questions and not any(question.is_done for question in questions):
            left_s = None if deadline is None else max(0.0, deadline - perf_counter())
            self._turn(questions, left_s)
            if deadline is not None and perf_counter() >= deadline:
                break
        return [question for question in questions if question.is_done]

    def forget(self, question: RayQuestion) -> None:
        """Cancel a request. Its actor is told, and skips the request if it has not started it."""
        if question.is_done:
            return
        question.is_done = True
        if question in self._parked:
            self._parked.remove(question)
        if question.ref is not None:
            ref, question.ref = question.ref, None
            self._out.discard(question)
            self._ray.cancel(ref)

    # --- Inside -----------------------------------------------------------------------------------------------

    def _send(self, question: RayQuestion) -> None:
        """Send a request to the actor with the fewest requests, or park it if no actor is available."""
        present = [link for link in self._links if link.is_in]
        for link in self._links:
            if not link.is_in and not link.is_gone and link.hello is None:
                self._ask_back(link)  # an interrupt prevented this call earlier
        if not present:
            self._parked.append(question)
            if self._all_out_since is None:
                self._all_out_since = perf_counter()
            return
        num_out = Counter((id(other.link), other.life) for other in self._out)
        link = min(present, key=lambda link: (num_out[id(link), link.life], link.stats.requests))
        question.link, question.life = link, link.life
        question.asked_s = perf_counter()
        question.num_sends += 1
        question.ref = link.handle.evaluate.remote((question.rows, self.model, self._id))
        self._out.add(question)

    def _turn(self, questions: Sequence[RayQuestion], timeout_s: float | None) -> None:
        """Wait at most `timeout_s` seconds for answers to requests or `hello` calls, and handle them."""
        waited_for: dict[Any, RayQuestion | _Link] = {}
        for question in questions:
            if question.ref is not None:
                waited_for[question.ref] = question
        for link in self._links:
            if link.hello is not None:
                waited_for[link.hello] = link
        if self._parked:
            patience_s = self._patience()
            if patience_s <= 0.0 or not waited_for:
                self._give_up()
                return
            timeout_s = patience_s if timeout_s is None else min(timeout_s, patience_s)
        refs = list(waited_for)
        # Wait for one, then take all that have arrived: requests of one batch are answered at the same time.
        ready, _ = self._ray.wait(refs, num_returns=1, timeout=_whole_ms(timeout_s))
        if ready and len(refs) > 1:
            ready, _ = self._ray.wait(refs, num_returns=len(refs), timeout=0)
        for ref in ready:
            found = waited_for[ref]
            if isinstance(found, _Link):
                self._welcome(found)
            else:
                self._settle(found)

    def _settle(self, question: RayQuestion) -> None:
        """Take the answer to a request, or send the request again if its actor was lost."""
        errors, link = self._ray.exceptions, question.link
        try:
            answer: Answer = self._ray.get(question.ref)
        except errors.RayTaskError as error:  # raised by the actor itself: sending the request again would not help
            self._finish(question, EvaluatorError(f"inference actor {link.stats.actor} raised: {error}"))
            return
        except errors.RayError as error:
            self._ask_again(question, error)
            return
        if answer.is_blank:
            self._ask_again(question, EvaluatorError(answer.error))
            return
        stats = link.stats
        stats.requests += 1
        stats.rows += len(question.rows)
        stats.latency_s += perf_counter() - question.asked_s
        stats.wait_s += answer.wait_s
        stats.inference_s += answer.inference_s
        stats.batches += len(question.rows) / max(answer.batch_rows, 1)
        stats.queued_rows += answer.queued_rows
        stats.max_queued_rows = max(stats.max_queued_rows, answer.queued_rows)
        before_s = answer.busy_s - answer.inference_s if link.busy_s is None else link.busy_s
        stats.busy_s += max(0.0, answer.busy_s - before_s)  # answers may arrive out of order
        link.busy_s = max(link.busy_s or 0.0, answer.busy_s)
        question.version = answer.version
        self.version = max(self.version, answer.version)
        if answer.block is None:
            stats.errors += 1
            stats.last_error = answer.error
            link.errors_in_a_row += 1
            self._finish(question, (GameError if answer.is_game_error else EvaluatorError)(answer.error))
            self._suspect(link)
            return
        link.errors_in_a_row = 0
        question.block = answer.block
        self._finish(question, None)

    def _ask_again(self, question: RayQuestion, error: Exception) -> None:
        """Send a request again after its actor was lost, up to `_MAX_SENDS` times."""
        link = question.link
        self._lose(link, question.life, error)
        question.ref = None
        question.lost_to.append(f"actor {link.stats.actor}: {link.stats.last_error}")
        if question.num_sends < _MAX_SENDS:
            self._send(question)
            return
        text = f"{question.num_sends} inference actors in a row were lost with {len(question.rows)} positions"
        self._finish(question, EvaluatorError("; ".join([text, *question.lost_to])))

    def _finish(self, question: RayQuestion, error: WindrowError | None) -> None:
        question.is_done, question.error, question.ref = True, error, None
        self._out.discard(question)

    def _lose(self, link: _Link, life: int, error: Exception) -> None:
        """Send no more requests to an actor until it has restarted."""
        if link.life != life:
            return  # this loss has been handled already
        link.life += 1
        link.is_in, link.errors_in_a_row, link.busy_s = False, 0, None
        link.stats.failures += 1
        link.stats.last_error = _in_words(error)
        self._ask_back(link)

    def _ask_back(self, link: _Link) -> None:
        # Ray delivers the call after the actor has restarted, even if that takes several restarts.
        link.hello = link.handle.hello.options(max_task_retries=-1).remote([self._cargo])

    def _welcome(self, link: _Link) -> None:
        """Handle the result of `hello`: the actor has restarted, or it will not restart."""
        ref, link.hello = link.hello, None
        try:
            greeting = self._ray.get(ref)
        except self._ray.exceptions.RayError as error:
            link.stats.last_error = _in_words(error)
            link.is_gone = isinstance(error, self._ray.exceptions.ActorDiedError)
            if not link.is_gone:
                self._ask_back(link)
            return
        if greeting.error:
            link.stats.last_error = greeting.error
            link.is_gone = True
            return
        link.is_in = True
        self._all_out_since = None
        parked, self._parked = self._parked, []
        for question in parked:
            self._send(question)

    def _suspect(self, link: _Link) -> None:
        """Restart an actor whose evaluator fails repeatedly while the evaluator of another actor works."""
        others = [other for other in self._links if other is not link and other.is_in and other.stats.requests]
        if link.errors_in_a_row >= _MAX_ERRORS_IN_A_ROW and any(other.errors_in_a_row == 0 for other in others):
            self._ray.kill(link.handle, no_restart=False)
            self._lose(link, link.life, EvaluatorError(link.stats.last_error))

    def _patience(self) -> float:
        """Seconds that parked requests still wait for an actor."""
        if all(link.is_gone for link in self._links):
            return 0.0
        since = perf_counter() if self._all_out_since is None else self._all_out_since
        return self.facts.patience_s - (perf_counter() - since)

    def _give_up(self) -> None:
        """Fail all parked requests, because no actor is left."""
        of_each = [f"actor {link.stats.actor}: {link.stats.last_error or 'no answer'}" for link in self._links]
        parked, self._parked = self._parked, []
        self._all_out_since = None
        for question in parked:
            self._finish(question, EvaluatorError(f"no inference actor is left ({'; '.join(of_each)})"))


def _whole_ms(timeout_s: float | None) -> float | None:
    """Round a timeout up to whole milliseconds: Ray rounds down, so a wait of less than 1 ms would not wait at all."""
    return None if timeout_s is None else (ceil(1e3 * timeout_s) + 0.5) / 1e3 if timeout_s > 0 else 0.0


def _in_words(error: Exception) -> str:
    """Return an error of Ray as one line of at most about 300 characters."""
    first = " ".join(str(error).split())
    return f"{type(error).__name__}: {first[:300]}"
