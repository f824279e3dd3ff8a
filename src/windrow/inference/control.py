"""Messages between a process and its workers: pickled objects over a Unix socket, with file descriptors if needed.

The messages are orders and results, a few per search; observations and answers travel through shared memory.

A message takes several system calls. An exception between two of them, such as an interrupt, leaves half a message in
the socket, and the receiver could not find the beginning of the next message. The connection therefore counts as broken
from the first of these calls until the last one has returned.
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
    """One end of the connection.

    If the other end is closed or the connection is broken, `receive` raises EOFError and `send` raises OSError.

    last_number: number of the last numbered message that was sent completely.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lock = threading.Lock()
        self._buffer = bytearray()
        self._is_sending = self._is_receiving = False
        self.last_number = 0

    @classmethod
    def create(cls) -> tuple[Control, socket.socket]:
        """Make one end, and the socket of the other end, whose descriptor is for another process."""
        mine, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        return cls(mine), other

    def fileno(self) -> int:
        """Return the descriptor, which is readable if there is a message or the other end is closed."""
        return self._socket.fileno()

    @property
    def is_broken(self) -> bool:
        """Whether an exception interrupted a `send` or a receive; valid only while neither is in progress."""
        return self._is_sending or self._is_receiving

    def send(self, message: object, fds: Sequence[int] = (), *, number: int = 0) -> None:
        """Send a message; the receiver gets copies of the descriptors. Callable from any thread; may block."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        header = _HEADER.pack(len(data), len(fds))
        with self._lock:
            if self._is_sending:
                raise BrokenPipeError("an earlier message was cut off: the connection cannot be used any more")
            self._is_sending = True
            if fds:
                socket.send_fds(self._socket, [header], list(fds))
            else:
                self._socket.sendall(header)
            self._socket.sendall(data)
            self.last_number = number or self.last_number
            self._is_sending = False

    def receive(self) -> tuple[Any, list[int]]:
        """Block until a message arrives; return the message and its descriptors."""
        self._begin_receiving()
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
        self._is_receiving = False
        return pickle.loads(data), fds

    def receive_ready(self) -> tuple[list[bytes], bool]:
        """Return the messages that have arrived, pickled, and whether the connection is still open; never blocks."""
        if self._is_receiving:
            return [], False
        self._is_receiving = is_there = True
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
        self._is_receiving = False
        return messages, is_there

    def _begin_receiving(self) -> None:
        if self._is_receiving:
            raise EOFError("an earlier message was cut off: the connection cannot be used any more")
        self._is_receiving = True

    def set_timeout(self, timeout_s: float) -> None:
        """Make `send` raise an OSError if the other end has not read for `timeout_s` seconds."""
        seconds = int(timeout_s)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", seconds, 0))

    def close(self) -> None:
        """Close the connection; may be called more than once."""
        self._socket.close()
