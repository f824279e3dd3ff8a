"""How much of the machine the page may take, whoever asks."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from windrow.errors import WindrowError
from windrow.memory import spare_memory


class RequestError(WindrowError, ValueError):
    """A request cannot be granted; the message is for whoever sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one page and all pages together may take."""

    max_message_bytes: int = 64 << 10
    """Longest message of a page; a longer one ends its connection."""
    max_waiting: int = 1024
    """Messages of a page that wait to be answered; one more ends its connection."""
    max_waiting_bytes: int = 1 << 20
    """Length of all these messages together."""
    max_connections: int = 128
    """Pages open at once."""
    max_sockets: int = 512
    """Connections of any kind at once; the others are closed before they have asked anything."""
    max_searches: int = 64
    """Searches that run at once, of all pages."""
    max_simulations: int = 5_000_000
    """Simulations that one request may ask for, and at which an analysis pauses."""
    max_seconds: float = 600.0
    """The same in time."""
    max_moves: int = 4096
    """Moves of a game."""
    max_nodes: int = 5_000
    """Nodes of a tree that one request may ask for."""
    max_mistakes: int = 50
    """Requests of one page that make no sense, before its connection is ended."""
    request_timeout_s: float = 10.0
    """From connecting to the end of the first request."""
    ping_s: float = 20.0
    """Seconds between two pings of a page, and from a ping to the answer without which the connection is cut."""
    updates_per_second: float = 20.0
    """Of what is known about a position, to one page."""


class MemoryLedger:
    """Memory for the trees of all pages: much for the first of them, and something for the last.

    Half of the memory is set aside in equal pieces, one for every tree that there may be. Of what is left of the other
    half, a tree takes a quarter on top of its piece.

    Args:
        total: bytes to lend; half of what the machine has to spare if None.
    """

    _MOST = 2 << 30

    def __init__(self, num_trees: int, total: int | None = None) -> None:
        total = spare_memory() // 2 if total is None else total
        self._piece = total // 2 // num_trees
        self._num_pieces, self._left = num_trees, total // 2
        self._lock = threading.Lock()

    def borrow(self) -> int:
        """Bytes for one tree.

        Raises:
            RequestError: there are as many trees as there may be.
        """
        with self._lock:
            if not self._num_pieces:
                raise RequestError("there is no memory left for another tree: close a page that is no longer needed")
            more = min(self._MOST, self._left // 4)
            self._num_pieces -= 1
            self._left -= more
            return self._piece + more

    def give_back(self, share: int) -> None:
        """What was borrowed is free again."""
        with self._lock:
            self._num_pieces += 1
            self._left += share - self._piece


class Counter:
    """How many of something there are now, never more than `most`."""

    def __init__(self, most: int) -> None:
        self._most, self._lock = most, threading.Lock()
        self.now = 0

    def enter(self) -> bool:
        """Count one more; False if there is no room."""
        with self._lock:
            if self.now >= self._most:
                return False
            self.now += 1
            return True

    def leave(self) -> None:
        """Count one less."""
        with self._lock:
            self.now -= 1
