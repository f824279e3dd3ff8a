"""A `windrow protocol ...` process, measured from outside, on its pipes, as a client sees it."""

from __future__ import annotations

import subprocess
import sys


class Client:
    """A `windrow protocol ...` process."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "windrow", "protocol", *arguments]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, *lines: str) -> None:
        """Write lines."""
        assert self._process.stdin is not None
        self._process.stdin.write("".join(f"{line}\n" for line in lines))
        self._process.stdin.flush()

    def hear(self) -> str:
        """The next line."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()

    def ask(self, *lines: str) -> str:
        """Write lines and wait for one."""
        self.send(*lines)
        return self.hear()

    def close(self) -> None:
        """Close the input and wait for the end."""
        self._process.communicate(timeout=60)
