"""Memory that processes share through a file descriptor.

The memory has no name: the system frees it after the last process that maps it has ended, even if that process crashed.
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
    """Shared memory, initially zeros. The system provides a page when it is first used.

    fd: file descriptor with which another process attaches; -1 after `close_fd`.
    """

    def __init__(self, fd: int, num_bytes: int) -> None:
        self.fd = fd
        self.num_bytes = num_bytes
        self.address = _map(fd, num_bytes)
        """Address of the memory in this process."""
        mapped = (ctypes.c_ubyte * num_bytes).from_address(self.address)
        # Every view refers to `mapped`, so the mapping ends with the last view. A mapping of the module mmap would hold
        # a descriptor until then.
        weakref.finalize(mapped, _unmap, self.address, num_bytes).atexit = False
        self._bytes = memoryview(mapped).cast("B")
        self._words = self._bytes.cast("Q")

    @classmethod
    def create(cls, num_bytes: int) -> SharedMemory:
        """Create new memory, with `num_bytes` rounded up to whole pages."""
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
        """Map another process's memory and close the descriptor."""
        try:
            memory = cls(fd, os.fstat(fd).st_size)
        except BaseException:
            os.close(fd)
            raise
        memory.close_fd()
        return memory

    def words(self, first: int, count: int) -> memoryview[int]:
        """Return a view of `count` unsigned 64-bit integers, starting at word `first`."""
        return self._words[first : first + count]

    def floats(self, offset: int, shape: tuple[int, ...]) -> FloatArray:
        """Return an array of `shape` that starts at byte `offset`; the array is a view and keeps the memory mapped."""
        return np.frombuffer(self._bytes, np.float32, prod(shape), offset).reshape(shape)

    def text(self, offset: int, num_bytes: int) -> str:
        """Decode `num_bytes` bytes of UTF-8 that start at byte `offset`."""
        return ctypes.string_at(self.address + offset, num_bytes).decode("utf-8", "replace")

    def put_text(self, offset: int, max_bytes: int, text: str) -> int:
        """Write `text` at byte `offset`, truncated to `max_bytes`; return the number of bytes written."""
        data = text.encode("utf-8", "replace")[:max_bytes]
        ctypes.memmove(self.address + offset, data, len(data))
        return len(data)

    def close_fd(self) -> None:
        """Close the descriptor; the memory stays mapped while a view of it exists."""
        if self.fd >= 0:
            fd, self.fd = self.fd, -1
            os.close(fd)


def _anonymous_file() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("windrow", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:  # the file has no name
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
