"""Files of a run: reading and writing whole ones, so that what was there before is still there when that fails."""

from __future__ import annotations

import errno
import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from windrow.errors import CheckpointError
from windrow.files import read_regular

_ADVICE = {
    errno.ENOSPC: "the disk is full: make room and go on",
    errno.EDQUOT: "your quota is used up: make room and go on",
    errno.EFBIG: "a file may not be that large here (see ulimit -f)",
    errno.ENOTDIR: "a part of the path is a file: choose another folder",
}


def explain_write(path: Path, error: OSError) -> CheckpointError:
    """What to raise when `path` cannot be written."""
    reason = error.strerror or str(error)
    advice = _ADVICE.get(error.errno or 0, f"{reason}: choose a folder that you may write to")
    return CheckpointError(f"{path} cannot be written: {advice}")


@contextmanager
def writing(path: Path) -> Generator[None, None, None]:
    """Turn an `OSError` of the block, which writes or deletes `path`, into a `CheckpointError` with advice."""
    try:
        yield
    except OSError as error:
        raise explain_write(path, error) from error


def read_whole(path: Path) -> bytes:
    """The contents of a file.

    Raises:
        CheckpointError: it cannot be read.
    """
    try:
        return read_regular(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error


def sync_folder(folder: Path) -> None:
    """Wait until the disk knows the names in `folder`."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_file(path: Path, data: bytes) -> None:
    """Write a new file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, text: str) -> None:
    """Put `text` in the place of whatever `path` holds: all of it or, whatever happens, nothing.

    Raises:
        CheckpointError: it cannot be written.
    """
    fresh = path.with_name(f".{path.name}.new")  # beside it, so that a reader never sees half of it
    try:
        write_file(fresh, text.encode())
        os.replace(fresh, path)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink()
        raise explain_write(path, error) from error
