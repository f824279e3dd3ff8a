"""Lines of text between programs: input is read by a thread of its own, so that it is heard while a search runs."""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from time import perf_counter
from typing import IO, Any, TextIO

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Line:
    """A line of input, without its end.

    text: what it says; bytes that are not UTF-8 are replaced.
    arrived: when its end was read, of `perf_counter`.
    is_cut: it was longer than allowed, and the rest is lost.
    """

    text: str
    arrived: float
    is_cut: bool = False


class LineReader:
    """Reads lines from a stream, from the moment it is made to the end of the stream.

    CR, LF and CR LF end a line; empty lines are left out.

    Args:
        stream: a binary stream. If it has a file descriptor, that is read directly: a thread that waits inside a
            buffered stream would stop Python from ending.
        max_length: bytes of a line; what is beyond is dropped.
        on_line: called in the reading thread with every line, before it is queued; returns False to keep it out of the
            queue.
        keeps_empty: empty lines are kept, for protocols in which they mean something; CR alone then ends no line.
    """

    def __init__(
        self,
        stream: IO[bytes],
        *,
        max_length: int,
        on_line: Callable[[Line], bool] | None = None,
        keeps_empty: bool = False,
    ) -> None:
        self._stream, self._max_length, self._on_line = stream, max_length, on_line
        self._keeps_empty = keeps_empty
        self._lines: SimpleQueue[Line | None] = SimpleQueue()
        self.has_ended = False
        """Whether the last line was taken and no other will come."""
        self.is_exhausted = False
        """Whether the stream has ended; lines that are not taken yet may be left."""
        self._thread = threading.Thread(target=self._read_all, name="windrow-input", daemon=True)
        self._thread.start()

    def take(self, *, timeout_s: float | None = None) -> Line | None:
        """The next line; None if there is none within `timeout_s` (None: waits), or there will be none any more."""
        if self.has_ended:
            return None
        try:
            line = self._lines.get_nowait() if timeout_s == 0 else self._lines.get(timeout=timeout_s)
        except Empty:
            return None
        self.has_ended = line is None
        return line

    @property
    def has_lines(self) -> bool:
        """Whether a line waits to be taken."""
        return not self._lines.empty()

    def join(self, timeout_s: float | None = None) -> None:
        """Wait until the stream has ended, or for `timeout_s`."""
        self._thread.join(timeout_s)

    def _read_all(self) -> None:
        try:
            for raw, is_cut in split_lines(self._chunks(), self._max_length, keeps_empty=self._keeps_empty):
                line = Line(raw.decode("utf-8", errors="replace"), perf_counter(), is_cut)
                if self._on_line is None or self._on_line(line):
                    self._lines.put(line)
        finally:
            self.is_exhausted = True
            self._lines.put(None)

    def _chunks(self) -> Iterator[bytes]:
        try:
            descriptor = self._stream.fileno()
        except (OSError, ValueError, AttributeError):
            # A stream in memory, as tests have them.
            yield from iter(lambda: self._stream.read(_CHUNK), b"")
            return
        while True:
            try:
                chunk = os.read(descriptor, _CHUNK)
            except OSError:  # whoever wrote is gone
                return
            if not chunk:
                return
            yield chunk


def split_lines(chunks: Iterator[bytes], max_length: int, *, keeps_empty: bool = False) -> Iterator[tuple[bytes, bool]]:
    """The lines, without empty ones unless `keeps_empty`, and of each whether it was longer than allowed and is cut."""
    rest, is_cut = b"", False
    for chunk in chunks:
        # One kind of line end makes CR LF an empty line more, which is left out like any other.
        *lines, rest = (rest + (chunk if keeps_empty else chunk.replace(b"\r", b"\n"))).split(b"\n")
        for line in lines:
            if keeps_empty:
                line = line.removesuffix(b"\r")
            if line or keeps_empty:
                yield line[:max_length], is_cut or len(line) > max_length
            is_cut = False
        if len(rest) > max_length:
            rest, is_cut = rest[:max_length], True
    if rest:
        yield rest, is_cut


class LineWriter:
    """Writes lines, each at once, from any thread."""

    def __init__(self, stream: TextIO | Any) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._poll: select.poll | None = None
        try:
            poll = select.poll()
            poll.register(stream.fileno(), 0)  # nothing but that the other end is gone
            self._poll = poll
        except (OSError, ValueError, AttributeError):
            pass  # a stream in memory, or a system without poll: a failing write tells it later

    def check_reader(self) -> None:
        """Notice early, without writing, that nobody reads what is written here.

        Raises:
            BrokenPipeError: whoever did is gone.
        """
        if self._poll is not None and self._poll.poll(0):
            raise BrokenPipeError("nobody reads the answers any more")

    def write(self, text: str) -> None:
        """Write one line; line breaks within it become spaces, so that it stays one, and it is ASCII on every pipe."""
        self.write_block(" ".join(text.splitlines()))

    def write_block(self, text: str) -> None:
        """Write text with its line breaks, and one more; in ASCII."""
        block = text.encode("ascii", errors="backslashreplace").decode("ascii")
        with self._lock:
            self._stream.write(block + "\n")
            self._stream.flush()
