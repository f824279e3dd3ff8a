"""The doorbell, which wakes another process: a counter in the system. One side raises it and the other waits for it."""

from __future__ import annotations

import os
from collections.abc import Sequence


class Doorbell:
    """A signal from one process to another. It is an eventfd, or a pipe on systems without eventfd.

    A ring also orders memory accesses: after `wait`, a process sees everything written before the ring.
    """

    def __init__(self, fds: Sequence[int]) -> None:
        self._hear, self._ring = fds[0], fds[-1]
        self.fds = tuple(fds)
        """File descriptors from which another process makes its own end."""

    @classmethod
    def create(cls, *, one_by_one: bool = False) -> Doorbell:
        """Create a doorbell; with `one_by_one` each `wait` takes one ring, otherwise it takes all rings."""
        if hasattr(os, "eventfd"):
            return cls([os.eventfd(0, os.EFD_CLOEXEC | (os.EFD_SEMAPHORE if one_by_one else 0))])
        return cls(os.pipe())

    def fileno(self) -> int:
        """Return the descriptor that is readable while there is a ring to take."""
        return self._hear

    def ring(self) -> None:
        """Wake the other side; never blocks."""
        if self._hear == self._ring:
            os.eventfd_write(self._ring, 1)
        else:
            os.write(self._ring, b"\0")

    def wait(self, *, take_all: bool = False) -> None:
        """Block until there is a ring, and take it. For a pipe, `take_all` decides whether all rings are taken."""
        if self._hear == self._ring:
            os.eventfd_read(self._hear)
        else:
            os.read(self._hear, 4096 if take_all else 1)

    def close(self) -> None:
        """Close this side's descriptors; may be called more than once."""
        fds, self.fds = self.fds, ()  # first: a descriptor closed twice could belong to another file by then
        for fd in set(fds):
            os.close(fd)
