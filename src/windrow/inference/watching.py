"""The watcher, which waits for many file descriptors at once."""

from __future__ import annotations

import select
from collections.abc import Callable
from contextlib import suppress
from math import inf

_MAX_SELECT_FD = 1024
_FINE_S = 0.02
"""Waits shorter than this use select, which is exact; epoll counts in whole milliseconds."""


class Watcher:
    """Calls a function when a descriptor can be read. It uses epoll where possible, since it polls for every batch."""

    def __init__(self) -> None:
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._epoll = select.epoll() if hasattr(select, "epoll") else None
        self._is_fine = self._epoll is not None and self._epoll.fileno() < _MAX_SELECT_FD

    def add(self, fd: int, callback: Callable[[], None]) -> None:
        """Call `callback` from `poll` whenever `fd` can be read."""
        self._callbacks[fd] = callback
        if self._epoll is not None:
            self._epoll.register(fd, select.EPOLLIN)

    def remove(self, fd: int) -> None:
        """Stop watching a descriptor, which may be closed already."""
        if fd in self._callbacks:
            if self._epoll is not None:
                with suppress(OSError, ValueError):
                    self._epoll.unregister(fd)
            self._callbacks.pop(fd, None)

    def poll(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` seconds, which may be infinite; call back for every descriptor that can be read."""
        if self._epoll is not None:
            if self._is_fine and 0.0 < timeout_s < _FINE_S:
                select.select([self._epoll], [], [], timeout_s)
                timeout_s = 0.0
            ready = [fd for fd, _ in self._epoll.poll(-1 if timeout_s == inf else timeout_s)]
        else:
            ready, _, _ = select.select(list(self._callbacks), [], [], None if timeout_s == inf else timeout_s)
        for fd in ready:
            # A callback may have removed a descriptor that comes later in this loop.
            if (callback := self._callbacks.get(fd)) is not None:
                callback()

    def close(self) -> None:
        """Stop watching all descriptors."""
        self._callbacks.clear()
        if self._epoll is not None:
            self._epoll.close()
