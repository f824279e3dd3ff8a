"""Messages between a process and its workers: pickled objects over a Unix socket, descriptors beside them.

For orders and results, a few per search; observations and their answers go through shared memory.
"""

from __future__ import annotations

import pickle
import socket
import struct
import threading
from collections.abc import Sequence
from typing import Any

_HEADER = struct.Struct("<QI")
_MAX_FDS = 16
_CHUNK = 1 << 20


class Control:
    """One end of the line. `receive` raises EOFError when the other end is gone, `send` OSError."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lock = threading.Lock()
        self._buffer = bytearray()

    @classmethod
    def create(cls) -> tuple[Control, socket.socket]:
        """One end, and the other's socket, whose descriptor is for another process."""
        mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(mine), other

    def fileno(self) -> int:
        """Readable when there is a message, or nobody at the other end."""
        return self._socket.fileno()

    def send(self, message: object, fds: Sequence[int] = ()) -> None:
        """Send a message; the receiver gets descriptors of its own. Callable from any thread."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        header = _HEADER.pack(len(data), len(fds))
        with self._lock:
            if fds:
                socket.send_fds(self._socket, [header], list(fds))
            else:
                self._socket.sendall(header)
            self._socket.sendall(data)

    def receive(self) -> tuple[Any, list[int]]:
        """Block until a message is there; the message and its descriptors."""
        header, fds = b"", list[int]()
        while len(header) < _HEADER.size:
            part, more, _, _ = socket.recv_fds(self._socket, _HEADER.size - len(header), _MAX_FDS)
            if not part:
                raise EOFError("the other process is gone")
            header += part
            fds += more
        length, _ = _HEADER.unpack(header)
        data = bytearray()
        while len(data) < length:
            part = self._socket.recv(min(_CHUNK, length - len(data)))
            if not part:
                raise EOFError("the other process is gone")
            data += part
        return pickle.loads(data), fds

    def receive_ready(self) -> tuple[list[bytes], bool]:
        """The messages that are there, still pickled, and whether the other end is still there; never blocks."""
        is_there = True
        while True:
            try:
                part = self._socket.recv(_CHUNK, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:
                part = b""
            if not part:
                is_there = False
                break
            self._buffer += part
        messages: list[bytes] = []
        while len(self._buffer) >= _HEADER.size:
            length, _ = _HEADER.unpack_from(self._buffer)
            end = _HEADER.size + length
            if len(self._buffer) < end:
                break
            messages.append(bytes(self._buffer[_HEADER.size : end]))
            del self._buffer[:end]
        return messages, is_there

    def set_timeout(self, timeout_s: float) -> None:
        """Let `send` give up, with an OSError, when nobody has read for so long."""
        seconds = int(timeout_s)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, 0))

    def close(self) -> None:
        """Hang up; may be called more than once."""
        self._socket.close()
