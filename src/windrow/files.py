"""Files: reading untrusted ones (regular, fitting into memory, JSON of any kind), and writing those that save time."""

from __future__ import annotations

import errno
import json
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from windrow.memory import spare_memory

_SMALL = 1 << 20
"""Size in bytes up to which a file is read without a check of the free memory."""


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading in binary.

    Raises:
        OSError: the file cannot be opened, or it is a pipe, a device or a folder, from which reading might never end.
    """
    # Without O_NONBLOCK, opening a pipe that nobody writes to would block.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")  # closes the handle itself if it fails


def read_regular(path: str | os.PathLike[str]) -> bytes:
    """Return the contents of a regular file.

    Raises:
        OSError: the file cannot be read, is not a regular file, or is larger than the free memory.
    """
    with open_regular(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > _SMALL and size > spare_memory():
            raise OSError(errno.EFBIG, f"its {size:,} bytes do not fit into memory", str(path))
        return file.read()


def cache_folder() -> Path:
    """Return the folder for what windrow can find out again: `$XDG_CACHE_HOME/windrow`, or `~/.cache/windrow`."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The specification says to ignore relative paths.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "windrow"


def write_cached(file: Path, text: str) -> bool:
    """Write a file whole or not at all, with its folder; False if that is not possible, which is no reason to fail."""
    draft: str | None = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        handle, draft = tempfile.mkstemp(dir=file.parent, prefix=file.stem, suffix=".part")
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
        os.replace(draft, file)
    except OSError:
        if draft is not None:
            with suppress(OSError):
                os.unlink(draft)
        return False
    return True


def parse_object(text: str | bytes) -> dict[str, Any] | None:
    """Return the object that `text` describes in JSON; None if it is anything else."""
    try:
        found: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else None


def parse_lines(data: bytes) -> list[dict[str, Any]]:
    """Return the objects in lines of JSON; other lines, such as one torn by a kill, are skipped."""
    lines = data.decode(errors="replace").splitlines()
    return [found for line in lines if (found := parse_object(line)) is not None]
