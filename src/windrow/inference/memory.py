"""Memory that processes share by a file descriptor.

It has no name: the system frees it when the last process that maps it is gone, however that ended.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import tempfile
import weakref
from math import prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float32]


class SharedMemory:
    """A number of bytes that begin as zeros. Pages that nobody touches take no memory.

    fd: what another process attaches by; -1 once `close_fd` was called.
    """

    def __init__(self, fd: int, num_bytes: int) -> None:
        self.fd = fd
        self.num_bytes = num_bytes
        self.address = _map(fd, num_bytes)
        """Where it lies in this process."""
        mapped = (ctypes.c_ubyte * num_bytes).from_address(self.address)
        # All views refer to this, so the mapping goes with the last of them. Unlike one of the module mmap it holds no
        # descriptor until then.
        weakref.finalize(mapped, _unmap, self.address, num_bytes).atexit = False
        self._bytes = memoryview(mapped).cast("B")
        self._words = self._bytes.cast("Q")

    @classmethod
    def create(cls, num_bytes: int) -> SharedMemory:
        """New memory, rounded up to whole pages."""
        num_bytes = -(-num_bytes // mmap.PAGESIZE) * mmap.PAGESIZE
        fd = _anonymous_file()
        try:
            os.ftruncate(fd, num_bytes)
            return cls(fd, num_bytes)
        except BaseException:
            os.close(fd)
            raise

    @classmethod
    def attach(cls, fd: int) -> SharedMemory:
        """Another process's memory; the descriptor is used up."""
        try:
            memory = cls(fd, os.fstat(fd).st_size)
        except BaseException:
            os.close(fd)
            raise
        memory.close_fd()
        return memory

    def words(self, first: int, count: int) -> memoryview[int]:
        """`count` unsigned numbers of 64 bits from word `first` on; a view."""
        return self._words[first : first + count]

    def floats(self, offset: int, shape: tuple[int, ...]) -> FloatArray:
        """An array from byte `offset` on; a view, which keeps the memory."""
        return np.frombuffer(self._bytes, np.float32, prod(shape), offset).reshape(shape)

    def text(self, offset: int, num_bytes: int) -> str:
        """UTF-8 from byte `offset` on."""
        return ctypes.string_at(self.address + offset, num_bytes).decode("utf-8", "replace")

    def put_text(self, offset: int, max_bytes: int, text: str) -> int:
        """Write `text`, cut off where it has to be; returns how many bytes that took."""
        data = text.encode("utf-8", "replace")[:max_bytes]
        ctypes.memmove(self.address + offset, data, len(data))
        return len(data)

    def close_fd(self) -> None:
        """Give the descriptor back; the memory stays mapped while a view of it is held."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("windrow", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:  # it has lost its name before this returns
        return os.dup(file.fileno())


_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = (
    *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
    ctypes.c_long,
)
_libc.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
_FAILED = ctypes.c_void_p(-1).value


def _map(fd: int, num_bytes: int) -> int:
    address = _libc.mmap(None, num_bytes, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    if address is None or address == _FAILED:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot map {num_bytes} bytes of shared memory: {os.strerror(number)}")
    return address


def _unmap(address: int, num_bytes: int) -> None:
    _libc.munmap(address, num_bytes)
