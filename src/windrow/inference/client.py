"""The client of an inference server: an evaluator whose requests a server answers, usually in another process."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping
from math import prod
from time import monotonic_ns
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from windrow.errors import EvaluatorError
from windrow.evaluators.protocol import Evaluation, Evaluator, Halted, Observations, count_rows, flatten_rows
from windrow.inference.channel import (
    BUSY_SINCE,
    HALT,
    IS_WORKING,
    NUM_POSTED,
    TRANSPORT_NS,
    VERSIONS,
    Channel,
    Slot,
    State,
)

FloatArray: TypeAlias = npt.NDArray[np.float32]


class _Block:
    """A block of rows in shared memory: the observations, and the space for their logits and values."""

    def __init__(self, channel: Channel, start: int, num_rows: int, num_bytes: int) -> None:
        memory, facts = channel.memory, channel.facts
        observations, logits, values, _ = channel.block_bytes(num_rows)
        self.start, self.end, self.num_rows = start, start + num_bytes, num_rows
        self.logits_at, self.values_at = start + logits, start + values
        self.logits = memory.floats(self.logits_at, (num_rows, facts.num_actions))
        self.values = memory.floats(self.values_at, channel.value_shape(num_rows))
        rows = memory.floats(start + observations, (num_rows, facts.num_floats))
        self.owner = weakref.ref(rows)
        self.rows: FloatArray | None = rows  # until `allocate` returns them


class InferenceClient(Evaluator):
    """An evaluator that sends its requests to a server.

    Observations in memory from `allocate` are not copied. A client may be used by one thread at a time. `submit` raises
    `Halted` after the server was halted.

    Args:
        channel: the client's view of the memory shared with the server.
        model: name of the server's model that answers; None for the first.
        pipeline: recommended number of batches in flight.
    """

    divides_batches = True
    """The server divides batches: a request may have more rows than one call of the server's evaluator."""

    def __init__(self, channel: Channel, model: str | None = None, *, pipeline: int = 2) -> None:
        self._channel = channel
        models = channel.facts.models
        if model is not None and model not in models:
            raise EvaluatorError(f"the server has no model {model!r}; it has {', '.join(models)}")
        self._model = 0 if model is None else models.index(model)
        self.pipeline = pipeline
        self.reads_observations = channel.facts.reads_observations
        self._blocks: list[_Block] = []
        self._owner = os.getpid()

    def with_model(self, model: str) -> InferenceClient:
        """Return a client of the same channel for another model; both may have requests in flight at once."""
        other = InferenceClient(self._channel, model, pipeline=self.pipeline)
        other._blocks = self._blocks
        return other

    @property
    def version(self) -> int:
        """Version of the weights that gave the model's last answer to this client."""
        return self._channel.header[VERSIONS + self._model]

    # --- Evaluating -------------------------------------------------------------------------------------------

    def allocate(self, shape: tuple[int, ...]) -> FloatArray:
        """Allocate [rows, floats] in shared memory; the memory is free again when the array is deleted."""
        num_rows, num_floats = shape[0], prod(shape[1:])
        channel = self._channel
        if num_floats != channel.facts.num_floats:
            raise EvaluatorError(f"an observation has {channel.facts.num_floats} floats, not {num_floats}")
        self._settle_abandoned()
        *_, num_bytes = channel.block_bytes(num_rows)
        # A block without a reference is free, unless the server may still write to it.
        written = [id(block) for block, _ in channel.questions.values()]
        self._blocks[:] = [block for block in self._blocks if block.owner() is not None or id(block) in written]
        start, last = channel.arena
        for block in sorted(self._blocks, key=lambda block: block.start):
            if block.start - start >= num_bytes:
                break
            start = block.end
        if last - start < num_bytes:
            raise EvaluatorError(f"{num_rows} more rows do not fit into the memory shared with the inference server")
        block = _Block(channel, start, num_rows, num_bytes)
        self._blocks.append(block)
        rows, block.rows = block.rows, None
        assert rows is not None
        return rows

    def evaluate(self, observations: Observations) -> Evaluation:
        return self.submit(observations).result()

    def submit(self, observations: Observations) -> Question:
        """Send a request without waiting. The answer lies beside the observations until their memory is used again."""
        channel = self._channel
        header = channel.header
        if os.getpid() != self._owner:
            raise EvaluatorError(
                f"this client belongs to process {self._owner}, of which this process is a fork: open a channel for "
                "each process"
            )
        if header[HALT]:
            raise Halted
        header[BUSY_SINCE] = 0
        self._settle_abandoned()
        num_rows = count_rows(observations)
        block, first = self._locate(observations, num_rows)
        number = header[NUM_POSTED]
        slot = number % len(channel.slots)
        words = channel.slots[slot]
        # A slot with the same number belongs to a `submit` that was interrupted before the server could see it.
        if words[Slot.STATE] != State.FREE and words[Slot.NUMBER] != number:
            raise EvaluatorError(f"more than {len(channel.slots)} requests of a client are in flight at once")
        facts = channel.facts
        words[Slot.NUMBER] = number
        words[Slot.MODEL] = self._model
        words[Slot.NUM_ROWS] = num_rows
        words[Slot.NUM_PLACES] = max(block.num_rows, num_rows)
        words[Slot.OBSERVATIONS] = block.start + 4 * first * facts.num_floats
        words[Slot.LOGITS] = block.logits_at + 4 * first * facts.num_actions
        words[Slot.VALUES] = block.values_at + 4 * first * facts.num_values
        words[Slot.POSTED_NS] = now = monotonic_ns()
        words[Slot.STATE] = State.POSTED
        channel.questions[slot] = block, None
        header[IS_WORKING] = 1
        header[NUM_POSTED] = number + 1
        question = Question(self, channel, slot, block, first, num_rows)
        channel.questions[slot] = block, weakref.ref(question)
        channel.requests.ring()
        header[BUSY_SINCE] = now
        return question

    def rest(self) -> None:
        """Tell the server that no more requests come for now, so that it does not wait for one."""
        if self._channel.header[IS_WORKING]:
            self._channel.header[IS_WORKING] = 0
            self._channel.requests.ring()

    def close(self) -> None:
        """Close the descriptors; may be called more than once."""
        self._channel.close()

    # --- Inside -----------------------------------------------------------------------------------------------

    def receive(self, slot: int) -> int:
        """Wait for the answer in `slot`, free the slot, and return the state it was in."""
        channel = self._channel
        header, words = channel.header, channel.slots[slot]
        asked = monotonic_ns()
        header[BUSY_SINCE] = 0
        # There is one ring per answer. Rings for the answers in other slots are counted for their `receive`.
        if channel.is_hearing:  # an interrupt came between taking a ring and counting it
            channel.num_heard += 1
        while not (channel.num_heard and words[Slot.STATE] != State.POSTED):
            channel.is_hearing = True
            channel.answers.wait()
            channel.num_heard += 1
            channel.is_hearing = False
        now = monotonic_ns()
        header[BUSY_SINCE] = now
        if words[Slot.STATE] == State.ANSWERED:
            # Time to wake up; zero if the answer had arrived before this call.
            header[TRANSPORT_NS] += max(0, now - max(asked, words[Slot.DONE_NS]))
        state, words[Slot.STATE] = words[Slot.STATE], State.FREE
        channel.num_heard -= 1
        channel.questions.pop(slot, None)
        return state

    def _settle_abandoned(self) -> None:
        """Take the answers to requests whose caller was interrupted and does not wait for them any more."""
        channel = self._channel
        for slot, (_, reference) in list(channel.questions.items()):
            question: Question | None = None if reference is None else reference()
            if question is not None and not question.is_waiting:
                continue
            state = channel.slots[slot][Slot.STATE]
            if state == State.FREE:
                del channel.questions[slot]
            elif state == State.POSTED:
                channel.requests.ring()  # the interrupt may have come before the ring
            elif question is None:
                self.receive(slot)
            else:
                question.receive()

    def _locate(self, observations: Observations, num_rows: int) -> tuple[_Block, int]:
        """Return the block and first row of the observations; copy them if they are not in shared memory."""
        array = next(iter(observations.values())) if isinstance(observations, Mapping) else observations
        if isinstance(array, np.ndarray):  # pyright: ignore[reportUnnecessaryIsInstance]
            at = array.__array_interface__["data"][0] - self._channel.memory.address
            row_bytes = 4 * self._channel.facts.num_floats
            for block in self._blocks:
                if block.start <= at < block.start + block.num_rows * row_bytes:
                    return block, (at - block.start) // row_bytes
        rows = self.allocate((num_rows, self._channel.facts.num_floats))
        rows[:] = flatten_rows(observations)
        self._blocks[-1].rows = rows  # the only reference to them
        return self._blocks[-1], 0


class Question:
    """A request in flight.

    version: version of the weights that answered it, after `result` has returned.
    """

    def __init__(
        self, client: InferenceClient, channel: Channel, slot: int, block: _Block, first: int, num_rows: int
    ) -> None:
        self._client, self._channel, self._slot = client, channel, slot
        self._block, self._first, self._num_rows = block, first, num_rows
        self._is_copied, self._rows = block.rows is not None, block.owner()  # this reference keeps the block
        block.rows = None
        self._state = State.POSTED
        self._text = ""
        self.version = 0
        self.is_waiting = False
        """Whether a caller waits for the answer; still set later if an interrupt ended the wait."""

    def result(self) -> tuple[FloatArray, FloatArray]:
        """Wait for logits [K, A] and values [K] or [K, players]; they are in shared memory if the observations are."""
        if self._state == State.POSTED:
            self.receive()
        if self._state == State.FAILED:
            raise EvaluatorError(self._text)
        if self._state == State.CANCELLED:
            raise Halted
        rows = slice(self._first, self._first + self._num_rows)
        logits, values = self._block.logits[rows], self._block.values[rows]
        if self._is_copied:
            return np.array(logits), np.array(values)
        return logits, values

    def receive(self) -> None:
        """Wait for the answer and take its state."""
        self.is_waiting = True
        self._state = self._client.receive(self._slot)
        self.version = self._channel.slots[self._slot][Slot.VERSION]
        if self._state == State.FAILED:
            self._text = self._channel.text(self._slot)
        self.is_waiting = False
