"""One trainer per run folder: a lock that the operating system gives up when its process ends, however it ends.

The lock is `flock` on the file `run.lock`, held open for the life of the run. What is written in the file only names
the holder in error messages, so a file that a killed trainer has left behind locks nothing.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import socket
import sys
import warnings
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any
from weakref import WeakSet

from windrow.errors import ConfigError, TrainingError
from windrow.files import open_regular, parse_object
from windrow.train.disk import explain_write, writing

FILE = "run.lock"

_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP}
"""What `flock` says on network file systems without locks."""


class RunLock:
    """The right to write into the folder of a run, from now until `release`.

    Raises:
        TrainingError: another run has it; the message names the process.
        CheckpointError: the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / FILE
        self._file = -1
        with writing(path):
            # Not through a link, which could lead out of the folder to a file that matters to somebody.
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o666)
        _open_locks.add(self)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _describe_holder(self._file)
            self.release()
            raise TrainingError(
                f"{folder} is in use by {holder}: wait until that run ends or stop it, or train in another folder"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                self.release()
                raise explain_write(path, error) from error
            warnings.warn(
                f"the file system of {folder} has no locks: make sure that no other process trains there",
                RuntimeWarning,
                stacklevel=3,
            )
        with suppress(OSError):  # on a full disk, say: the lock holds without its description
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, json.dumps(_describe_self()).encode(), 0)

    @classmethod
    def for_new_run(cls, folder: Path) -> RunLock:
        """The same for a folder that is made if need be, and must not hold a run yet."""
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        lock = cls(folder)
        if (folder / "config.json").exists():
            lock.release()
            raise ConfigError(f"{folder} holds a run already: go on with it, --resume {folder}, or take another folder")
        return lock

    def release(self) -> None:
        """Let others have the folder; may be called more than once."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __del__(self) -> None:
        self.release()


_open_locks: WeakSet[RunLock] = WeakSet()


def _leave_to_parent() -> None:
    """Close the descriptors in a forked child: a worker must not keep the lock when the trainer is gone."""
    for lock in list(_open_locks):
        lock.release()


os.register_at_fork(after_in_child=_leave_to_parent)


def is_trainer_alive(folder: Path) -> bool | None:
    """Whether the process that last trained in `folder` still exists; None where that is not known.

    It is not known on another machine. The lock itself is not tried: a trainer that begins now would be refused.
    """
    try:
        with open_regular(folder / FILE) as file:
            found = _read_holder(file.fileno())
        pid = found.get("pid")
        if found.get("host") != socket.gethostname() or not isinstance(pid, int) or pid <= 0:
            return None
        os.kill(pid, 0)
    except PermissionError:
        return True  # another user's
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return None
    return True


def _read_holder(file: int) -> dict[str, Any]:
    """What the process that has the lock wrote about itself; empty if that cannot be read."""
    try:
        return parse_object(os.pread(file, 1 << 16, 0)) or {}
    except OSError:
        return {}


def _describe_self() -> dict[str, Any]:
    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    since = datetime.now().astimezone().isoformat(sep=" ", timespec="seconds")
    return {"pid": os.getpid(), "host": socket.gethostname(), "command": command, "since": since}


def _describe_holder(file: int) -> str:
    """The process that has the lock, as it has described itself."""
    facts = {name: _printable(value) for name, value in _read_holder(file).items()}
    if not facts:
        return "another process"  # which has not described itself yet
    host = "" if facts.get("host") == socket.gethostname() else f" on {facts.get('host')}"
    if facts.get("pid") == str(os.getpid()) and not host:
        return f"this process (pid {os.getpid()}), by a run that was not closed"
    return f"process {facts.get('pid')}{host} ({facts.get('command')}) since {facts.get('since')}"


def _printable(value: object) -> str:
    return "".join(letter for letter in f"{value!s:.200}" if letter.isprintable())
