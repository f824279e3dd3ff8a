"""The memory that one client and the server share: a ring of request slots, and blocks of observations and answers.

    words    0        1         2      3      4           5        6           7            8 ..
             slots    working   halt   stop   attention   posted   busy since  transport ns versions of the models
    word     56       number of the last order that the worker completed
    slots    from word 64 on, 16 words each: see `Slot`
    texts    one per slot: the message of an evaluator's error
    floats   the rest: blocks of rows, [rows, floats] observations, [rows, A] logits, [rows, values]

Every word has one writer: the client posts and the server answers. A side reads what the other side wrote only after
the other side rang a doorbell (`Doorbell`), which orders the memory accesses.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from windrow.inference.doorbell import Doorbell
from windrow.inference.memory import SharedMemory

MAX_MODELS = 48
MAX_SLOTS = 64
TEXT_BYTES = 2048

# Header.
NUM_SLOTS, IS_WORKING, HALT, STOP, ATTENTION, NUM_POSTED, BUSY_SINCE, TRANSPORT_NS, VERSIONS = range(9)
DONE = VERSIONS + MAX_MODELS
_FIRST_SLOT_WORD = 64
_SLOT_WORDS = 16

_WORD_BYTES = 8
_TEXTS_AT = (_FIRST_SLOT_WORD + MAX_SLOTS * _SLOT_WORDS) * _WORD_BYTES
_FLOATS_AT = _TEXTS_AT + MAX_SLOTS * TEXT_BYTES
_ALIGNMENT = 64


class Slot:
    """The words of a slot."""

    STATE, MODEL, NUM_ROWS, NUM_PLACES, OBSERVATIONS, LOGITS, VALUES, VERSION = range(8)
    POSTED_NS, SENT_NS, DONE_NS, TEXT_LENGTH, NUMBER = range(8, 13)


class State:
    """The values of `Slot.STATE`."""

    FREE, POSTED, ANSWERED, FAILED, CANCELLED = range(5)


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """Sizes and models that both sides of a channel must know.

    num_floats: number of floats in an observation.
    num_actions: number of logits per row.
    num_values: number of values per row.
    reads_observations: whether any evaluator reads observations.
    models: names of the models, by number.
    """

    num_floats: int
    num_actions: int
    num_values: int
    reads_observations: bool
    models: tuple[str, ...]

    @property
    def row_floats(self) -> int:
        """Number of floats of one row: observation, logits and values."""
        return self.num_floats + self.num_actions + self.num_values


class Channel:
    """One side's view of the memory and doorbells that a client and the server share."""

    def __init__(self, facts: ChannelFacts, memory: SharedMemory, requests: Doorbell, answers: Doorbell) -> None:
        self.facts, self.memory, self.requests, self.answers = facts, memory, requests, answers
        self.header = memory.words(0, _FIRST_SLOT_WORD)
        self.slots = [
            memory.words(_FIRST_SLOT_WORD + slot * _SLOT_WORDS, _SLOT_WORDS) for slot in range(self.header[NUM_SLOTS])
        ]
        self.is_open = True
        self.num_heard = 0
        """Used by the client: number of rings received for answers that have not been taken yet."""
        self.is_hearing = False
        """Used by the client: whether it is waiting for a ring; still set later if an interrupt ended the wait."""
        self.questions: dict[int, tuple[Any, weakref.ref[Any] | None]] = {}
        """Used by the client, by slot: the block of a pending request, and its `Question` if that was made."""

    @classmethod
    def create(cls, facts: ChannelFacts, num_rows: int) -> Channel:
        """Create a channel with memory for `num_rows` rows in all blocks together."""
        num_bytes = _FLOATS_AT + num_rows * facts.row_floats * 4 + 3 * MAX_SLOTS * _ALIGNMENT
        memory = SharedMemory.create(num_bytes)
        memory.words(0, 1)[NUM_SLOTS] = MAX_SLOTS
        return cls(facts, memory, Doorbell.create(), Doorbell.create(one_by_one=True))

    @classmethod
    def attach(cls, facts: ChannelFacts, fds: list[int]) -> Channel:
        """Make the client's view, in the client's process, from copies of the server's `fds`."""
        memory, *bells = fds
        half = len(bells) // 2
        return cls(facts, SharedMemory.attach(memory), Doorbell(bells[:half]), Doorbell(bells[half:]))

    @property
    def fds(self) -> list[int]:
        """File descriptors with which another process attaches; valid until `close`."""
        return [self.memory.fd, *self.requests.fds, *self.answers.fds]

    @property
    def arena(self) -> tuple[int, int]:
        """First byte of the floats, and the byte after their last."""
        return _FLOATS_AT, self.memory.num_bytes

    def block_bytes(self, num_rows: int) -> tuple[int, int, int, int]:
        """Offsets of observations, logits and values in a block of `num_rows` rows, and its size; all in bytes."""
        logits = _aligned(num_rows * self.facts.num_floats * 4)
        values = logits + _aligned(num_rows * self.facts.num_actions * 4)
        return 0, logits, values, values + _aligned(num_rows * self.facts.num_values * 4)

    def value_shape(self, num_rows: int) -> tuple[int, ...]:
        """Shape of the values: [rows], or [rows, players] if there is one value per player."""
        return (num_rows, self.facts.num_values) if self.facts.num_values > 1 else (num_rows,)

    def text(self, slot: int) -> str:
        """Read the message of the error that the evaluator raised."""
        return self.memory.text(_TEXTS_AT + slot * TEXT_BYTES, self.slots[slot][Slot.TEXT_LENGTH])

    def put_text(self, slot: int, text: str) -> None:
        """Write the message of the error that the evaluator raised."""
        self.slots[slot][Slot.TEXT_LENGTH] = self.memory.put_text(_TEXTS_AT + slot * TEXT_BYTES, TEXT_BYTES, text)

    def close(self) -> None:
        """Close the descriptors; the memory stays mapped until its last view is gone. May be called more than once."""
        self.is_open = False
        self.memory.close_fd()
        self.requests.close()
        self.answers.close()


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
