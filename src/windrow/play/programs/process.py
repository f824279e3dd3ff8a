"""One outside program as a process: lines to it, lines from it, and its end.

The process is in a session of its own, so that Ctrl-C in the terminal reaches windrow alone, which then ends it. It
ends with windrow in any case: its input closes, and on Linux the kernel kills it if windrow is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import perf_counter

from windrow.errors import ProgramError
from windrow.text_lines import Line, LineReader

_MAX_LINE = 1 << 20
_NUM_ERROR_LINES = 12
"""Lines of stderr that a message quotes."""
_LEAVE_S = 0.5
"""Time that a program has to end by itself before it is killed."""

# PR_SET_PDEATHSIG is 1; if windrow has ended before the call, the process has another parent already.
_LAUNCH = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() != int(sys.argv[1]): os._exit(1)
os.execv(sys.argv[2], sys.argv[2:])
"""


class ProgramProcess:
    """A running program.

    Args:
        command: the program's path and its arguments.
        folder: working directory; None: windrow's own.
        environment: variables that are set in addition to windrow's.
        is_noise: whether a line of its output is of no interest. Called in the reading thread.

    Raises:
        ProgramError: it cannot be started.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        is_noise: Callable[[str], bool] | None = None,
    ) -> None:
        self.name = os.path.basename(command[0])
        self._errors: deque[str] = deque(maxlen=_NUM_ERROR_LINES)
        words = [*command]
        if sys.platform == "linux" and sys.executable:
            words = [sys.executable, "-I", "-S", "-c", _LAUNCH, str(os.getpid()), *command]

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                words,
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                start_new_session=True,
            )

        try:
            # The kernel's signal follows the thread that starts a process, so that thread must live as long as windrow.
            self._process = _launcher(os.getpid()).submit(start).result()
        except OSError as error:
            raise ProgramError(f"{command[0]} could not be started: {error.strerror or error}") from None
        assert self._process.stdout is not None and self._process.stderr is not None
        self._reader = LineReader(
            self._process.stdout,
            max_length=_MAX_LINE,
            on_line=None if is_noise is None else lambda line: not is_noise(line.text),
            keeps_empty=True,
        )
        self._error_reader = LineReader(self._process.stderr, max_length=_MAX_LINE, on_line=self._note_error)

    def send(self, *lines: str) -> None:
        """Write lines.

        Raises:
            ProgramError: the program has ended.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
        except (OSError, ValueError):
            raise ProgramError(f"{self.name} has ended{self._last_words()}") from None

    def receive(self, deadline: float) -> str:
        """The next line, without white space at its end; waits until `deadline`, a time of `perf_counter`.

        Raises:
            ProgramError: there was none in time, or the program has ended.
        """
        line = self._reader.take(timeout_s=max(deadline - perf_counter(), 0.001))
        if line is not None:
            return line.text.rstrip()
        if self._reader.has_ended:
            raise ProgramError(f"{self.name} has ended{self._last_words()}")
        raise ProgramTimeout(f"{self.name} did not answer in time{self._last_words(may_wait=False)}")

    def drain(self) -> None:
        """Forget the lines that have come and were not asked for."""
        while self._reader.take(timeout_s=0) is not None:
            pass

    def close(self, *farewell: str) -> None:
        """Write the lines of `farewell`, close the input, and kill what has not ended soon; callable more than once."""
        process = self._process
        if process.poll() is None:
            with suppress(ProgramError):
                self.send(*farewell)
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        with suppress(OSError):
            process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_S)
        with suppress(OSError):  # also what the program has started itself
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        self._reader.join(_LEAVE_S)
        self._error_reader.join(_LEAVE_S)
        process.stdout.close()
        process.stderr.close()

    def _note_error(self, line: Line) -> bool:
        self._errors.append(line.text.rstrip())
        return False

    def _last_words(self, *, may_wait: bool = True) -> str:
        """The exit status and the end of stderr, as the end of a message."""
        status = ""
        if may_wait:
            with suppress(subprocess.TimeoutExpired):
                code = self._process.wait(_LEAVE_S)
                status = f" by signal {-code}" if code < 0 else f" with exit status {code}"
            self._error_reader.join(timeout_s=_LEAVE_S)
        text = "\n".join(line for line in self._errors if line)
        return f"{status}; it wrote to stderr:\n{text}" if text else status


class ProgramTimeout(ProgramError):
    """A program did not answer in time."""


@cache
def _launcher(_process_id: int) -> ThreadPoolExecutor:
    """The thread that starts programs; a forked process has its own."""
    return ThreadPoolExecutor(1, thread_name_prefix="windrow-launch")
