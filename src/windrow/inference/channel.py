"""What one client and the server share: a ring of requests, and memory for observations and answers.

    words    0        1         2      3      4           5        6           7            8 ..
             slots    working   halt   stop   attention   posted   busy since  transport ns versions of the models
    word     56       number of the last order that is done
    slots    from word 64 on, 16 words each: see the names below
    texts    one per slot, what an evaluator raised
    floats   the rest: blocks of rows, [rows, floats] observations, [rows, A] logits, [rows, values]

Every word has one writer: the client posts and the server answers. A request is seen by the other side only after a
doorbell was rung and heard, which orders the memory.
"""

from __future__ import annotations

import weakref
from dataclasses import asdict, dataclass
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
# Within a slot.
STATE, MODEL, NUM_ROWS, NUM_PLACES, OBSERVATIONS, LOGITS, VALUES, VERSION = range(8)
POSTED_NS, SENT_NS, DONE_NS, TEXT_LENGTH, NUMBER = range(8, 13)
# Values of STATE.
FREE, POSTED, ANSWERED, FAILED, CANCELLED = range(5)

_WORD_BYTES = 8
_TEXTS_AT = (_FIRST_SLOT_WORD + MAX_SLOTS * _SLOT_WORDS) * _WORD_BYTES
_FLOATS_AT = _TEXTS_AT + MAX_SLOTS * TEXT_BYTES
_ALIGNMENT = 64


@dataclass(frozen=True, slots=True)
class ChannelFacts:
    """What both sides must know.

    num_floats: of one observation.
    num_actions: of one row of logits.
    num_values: of one row of values.
    reads_observations: whether anyone looks at observations.
    models: names, by number.
    """

    num_floats: int
    num_actions: int
    num_values: int
    reads_observations: bool
    models: tuple[str, ...]

    @property
    def row_floats(self) -> int:
        """Of everything about one row."""
        return self.num_floats + self.num_actions + self.num_values

    def to_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)


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
        """The client's: rings heard whose answers have not been taken yet."""
        self.is_hearing = False
        """The client's: whether it is about to hear a ring; still so afterwards if an interrupt came in between."""
        self.questions: dict[int, tuple[Any, weakref.ref[Any] | None]] = {}
        """The client's, by slot: the rows of a question that is out, and who waits for the answer, if anybody does."""

    @classmethod
    def create(cls, facts: ChannelFacts, num_rows: int) -> Channel:
        """A new channel with room for `num_rows` rows in all its blocks together."""
        num_bytes = _FLOATS_AT + num_rows * facts.row_floats * 4 + 3 * MAX_SLOTS * _ALIGNMENT
        memory = SharedMemory.create(num_bytes)
        memory.words(0, 1)[NUM_SLOTS] = MAX_SLOTS
        return cls(facts, memory, Doorbell.create(), Doorbell.create(one_by_one=True))

    @classmethod
    def attach(cls, facts: ChannelFacts, fds: list[int]) -> Channel:
        """The client's view, in its own process, of what `fds` of the server's view were sent to."""
        memory, *bells = fds
        half = len(bells) // 2
        return cls(facts, SharedMemory.attach(memory), Doorbell(bells[:half]), Doorbell(bells[half:]))

    @property
    def fds(self) -> list[int]:
        """What another process attaches by, until `close_memory_fd`."""
        return [self.memory.fd, *self.requests.fds, *self.answers.fds]

    @property
    def arena(self) -> tuple[int, int]:
        """First and last byte of the floats."""
        return _FLOATS_AT, self.memory.num_bytes

    def block_bytes(self, num_rows: int) -> tuple[int, int, int, int]:
        """Of a block of rows: where observations, logits and values begin in it, and how long it is."""
        logits = _aligned(num_rows * self.facts.num_floats * 4)
        values = logits + _aligned(num_rows * self.facts.num_actions * 4)
        return 0, logits, values, values + _aligned(num_rows * self.facts.num_values * 4)

    def value_shape(self, num_rows: int) -> tuple[int, ...]:
        """[rows], or [rows, players] if there is a value per player."""
        return (num_rows, self.facts.num_values) if self.facts.num_values > 1 else (num_rows,)

    def text(self, slot: int) -> str:
        """What the evaluator raised."""
        return self.memory.text(_TEXTS_AT + slot * TEXT_BYTES, self.slots[slot][TEXT_LENGTH])

    def put_text(self, slot: int, text: str) -> None:
        """Say what the evaluator raised."""
        self.slots[slot][TEXT_LENGTH] = self.memory.put_text(_TEXTS_AT + slot * TEXT_BYTES, TEXT_BYTES, text)

    def close(self) -> None:
        """Give the descriptors back; the memory goes with the last view of it."""
        self.is_open = False
        self.memory.close_fd()
        self.requests.close()
        self.answers.close()


def _aligned(num_bytes: int) -> int:
    return -(-num_bytes // _ALIGNMENT) * _ALIGNMENT
