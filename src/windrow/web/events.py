"""Event files as TensorBoard reads them, read on as they grow; without TensorBoard.

A file is a row of records, each a protocol buffer `Event`:

    length u64 | CRC-32C of the length u32 | event | CRC-32C of the event u32

Of an event only its step and its scalars matter here, and whether a session began at that step: a run that goes on
after a restart says so, and what earlier files have of that step and later ones is no longer true.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from windrow.files import open_regular
from windrow.train.report_metrics import MAX_NAME, MAX_NUMBER

_LENGTH = struct.Struct("<QI")
_TRAILER = 4
_MAX_RECORD = 16 << 20
_MAX_FILE = 256 << 20
"""Bytes read of one file."""
_MAX_TAGS = 1000
_SESSION_START = 1
# Of protocol buffers: how a field is written.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class EventFolder:
    """The scalars of a run by tag and step.

    Args:
        folder: where the event files are; it may not be there yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, int] = {}
        self._skipped: dict[str, str] = {}
        self._num_unread = 0
        self.scalars: dict[str, dict[int, float]] = {}
        """By tag, the newest value at each step."""

    def poll(self) -> bool:
        """Read what is new; whether there was anything."""
        before = dict(self._read), len(self._skipped)
        for path in sorted(self._folder.glob("*tfevents*")):
            if path.name in self._skipped:
                continue
            try:
                with open_regular(path) as file:
                    self._read_on(path, file)
            except FileNotFoundError:
                continue  # gone again
            except OSError as error:
                self._skipped[path.name] = error.strerror or "it cannot be read"
        return (self._read, len(self._skipped)) != before

    @property
    def notes(self) -> list[str]:
        """What could not be read, in sentences."""
        notes = [f"The event file {name} is left out from some place on: {why}." for name, why in self._skipped.items()]
        if self._num_unread:
            notes.append(f"{self._num_unread} records of the event files could not be read.")
        return notes

    def _read_on(self, path: Path, file: BinaryIO) -> None:
        """Read the records of a file that were not there before, a part of it at a time."""
        position = self._read.get(path, 0)
        file.seek(position)
        while data := file.read(_LENGTH.size + _MAX_RECORD + _TRAILER):
            used = self._take(data, path.name)
            self._read[path] = position = position + used
            if not used or path.name in self._skipped:
                return
            if position > _MAX_FILE:
                self._skipped[path.name] = f"it has more than {_MAX_FILE >> 20} MiB"
                return
            file.seek(position)

    def _take(self, data: bytes, name: str) -> int:
        """Read the whole records at the front of `data`; how many bytes they are."""
        position = 0
        while position + _LENGTH.size <= len(data):
            length, check = _LENGTH.unpack_from(data, position)
            if length > _MAX_RECORD or _masked(_crc32c(data[position : position + 8])) != check:
                self._skipped[name] = "it is damaged"  # nothing behind this can be trusted
                break
            end = position + _LENGTH.size + length
            if end + _TRAILER > len(data):
                break  # not written to its end yet
            self._take_event(data[position + _LENGTH.size : end])
            position = end + _TRAILER
        return position

    def _take_event(self, event: bytes) -> None:
        step, is_start, scalars = 0, False, list[tuple[str, float]]()
        try:
            for field, kind, value in _fields(event):
                if field == 2 and isinstance(value, int):
                    step = value
                elif field == 5 and kind == _BYTES and isinstance(value, bytes):
                    scalars += _scalars(value)
                elif field == 7 and isinstance(value, bytes):
                    is_start = any(number == 1 and status == _SESSION_START for number, _, status in _fields(value))
        except (IndexError, struct.error, UnicodeDecodeError):
            step = -1
        if not 0 <= step <= MAX_NUMBER:
            self._num_unread += 1  # not an event; the ones around it are
            return
        if is_start:
            for values in self.scalars.values():
                for later in [known for known in values if known >= step]:
                    del values[later]
        for tag, number in scalars:
            if len(tag) <= MAX_NAME and (tag in self.scalars or len(self.scalars) < _MAX_TAGS):
                self.scalars.setdefault(tag, {})[step] = number


def _scalars(summary: bytes) -> Iterator[tuple[str, float]]:
    """Tags and numbers of a `Summary`."""
    for field, _, entry in _fields(summary):
        if field != 1 or not isinstance(entry, bytes):
            continue
        tag, number = "", None
        for name, kind, value in _fields(entry):
            if name == 1 and isinstance(value, bytes):
                tag = value.decode()
            elif name == 2 and kind == _FIXED32 and isinstance(value, bytes):
                (number,) = struct.unpack("<f", value)
        if tag and number is not None:
            yield tag, number


def _fields(message: bytes) -> Iterator[tuple[int, int, int | bytes]]:
    """The fields of a protocol buffer: number, how it is written, value."""
    position = 0
    while position < len(message):
        key, position = _varint(message, position)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, position = _varint(message, position)
            yield field, kind, value
            continue
        if kind == _BYTES:
            size, position = _varint(message, position)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
        else:
            raise struct.error(f"a field of kind {kind}")
        if position + size > len(message):
            raise struct.error("a field that is longer than its message")
        yield field, kind, message[position : position + size]
        position += size


def _varint(message: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, position
        shift += 7
        if shift > 63:
            raise struct.error("a number that does not end")


def _make_table() -> list[int]:
    table: list[int] = []
    for byte in range(256):
        word = byte
        for _ in range(8):
            word = word >> 1 ^ (0x82F63B78 if word & 1 else 0)
        table.append(word)
    return table


_TABLE = _make_table()


def _crc32c(data: bytes) -> int:
    word = 0xFFFFFFFF
    for byte in data:
        word = word >> 8 ^ _TABLE[(word ^ byte) & 255]
    return word ^ 0xFFFFFFFF


def _masked(check: int) -> int:
    """A check sum as these files store it, so that one of check sums is not trivial."""
    return ((check >> 15 | check << 17) + 0xA282EAD8) & 0xFFFFFFFF
