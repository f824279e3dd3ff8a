"""Waiting for many descriptors at once."""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import suppress
from math import inf

_MAX_SELECT_FD = 1024
_FINE_S = 0.02
"""Waits up to this are kept exactly: epoll itself counts in whole milliseconds."""


class Watcher:
    """Calls back when a descriptor can be read. Of epoll where there is one: it is asked for every batch."""

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._is_fine = self._epoll is not None and self._epoll.fileno() < _MAX_SELECT_FD

    def add(self, fd: int, callback: Callable[[], None]) -> None:
        """Watch a descriptor."""
        self._callbacks[fd] = callback
        if self._epoll is not None:
            self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Watch it no longer; it may be closed already."""
        if fd in self._callbacks:
            if self._epoll is not None:
                with suppress(OSError, ValueError):
                    self._epoll.unregister(fd)
            self._callbacks.pop(fd, None)

    def poll(self, timeout_s: float) -> None:
        """Wait for at most `timeout_s` seconds, which may be infinite, and call back for all that can be read."""
        if self._epoll is not None:
            if self._is_fine and 0.0 < timeout_s < _FINE_S:
                select.select([self._epoll], [], [], timeout_s)
                timeout_s = 0.0
            ready = [fd for fd, _ in self._epoll.poll(-1 if timeout_s == inf else timeout_s)]
        else:
            ready, _, _ = select.select(list(self._callbacks), [], [], None if timeout_s == inf else timeout_s)
        for fd in ready:
            # One callback may have ended what another was for.
            if (callback := self._callbacks.get(fd)) is not None:
                callback()

    def close(self) -> None:
        """Watch nothing any more."""
        self._callbacks.clear()
        if self._epoll is not None:
            self._epoll.close()
