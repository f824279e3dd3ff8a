"""Waking another process: a counter in the system that one side raises and the other waits for."""

from __future__ import annotations

import os
from collections.abc import Sequence


class Doorbell:
    """Rung by one process, heard by another. Both sides may hold it; made of an eventfd, or of a pipe without those.

    A ring also orders memory: what was written before it is there for who has heard it.
    """

    def __init__(self, fds: Sequence[int]) -> None:
        self._hear, self._ring = fds[0], fds[-1]
        self.fds = tuple(fds)
        """What another process makes its own end of."""

    @classmethod
    def create(cls, *, one_by_one: bool = False) -> Doorbell:
        """A new one; with `one_by_one` each `wait` takes one ring, else it takes all there are."""
        if hasattr(os, "eventfd"):
            return cls([os.eventfd(0, os.EFD_CLOEXEC | (os.EFD_SEMAPHORE if one_by_one else 0))])
        return cls(os.pipe())

    def fileno(self) -> int:
        """Readable when it was rung."""
        return self._hear

    def ring(self) -> None:
        """Wake the other side; never blocks."""
        if self._hear == self._ring:
            os.eventfd_write(self._ring, 1)
        else:
            os.write(self._ring, b"\0")

    def wait(self, *, take_all: bool = False) -> None:
        """Block until it was rung, and take that ring (of a pipe: all rings, with `take_all`)."""
        if self._hear == self._ring:
            os.eventfd_read(self._hear)
        else:
            os.read(self._hear, 4096 if take_all else 1)

    def close(self) -> None:
        """Give this side's descriptors back; may be called more than once."""
        fds, self.fds = self.fds, ()  # first: a number that is closed twice may be somebody else's by then
        for fd in set(fds):
            os.close(fd)
