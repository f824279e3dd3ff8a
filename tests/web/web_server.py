"""A server for tests, started as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import ClientConnection, connect

_PATIENCE_S = 60.0
"""What every wait here is bounded by; each says what it has waited for."""


@dataclass(frozen=True)
class Served:
    """A page that is being served."""

    link: str
    process: subprocess.Popen[str]

    @property
    def host(self) -> str:
        return urlsplit(self.link).netloc

    @property
    def origin(self) -> str:
        return f"http://{self.host}"

    @property
    def rss(self) -> int:
        """Bytes of memory that the server has in use."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * 4096

    def socket(self, **options: Any) -> Any:
        """A socket as the page opens it."""
        # A client that is busy elsewhere does not answer pings; that is not what is tested.
        calm = {"ping_interval": None, "compression": None, "max_size": None, "open_timeout": 60}
        options = {"origin": self.origin, **calm, **options}
        return connect(f"ws://{self.host}/socket", **options)


@contextmanager
def serve(
    *arguments: str,
    command: str = "play",
    evaluator: str | None = "rollout",
    port: int = 0,
    is_expected_to_end: bool = False,
) -> Iterator[Served]:
    """`windrow play ...`, on any free port if none is given; evaluator: of the board page, or None for the default."""
    chosen = ["--checkpoint", evaluator] if command == "play" and evaluator else []
    line = [sys.executable, "-m", "windrow", command, *arguments, *chosen, "--no-open", "--port", str(port)]
    # Into a file: a pipe that nobody reads would stop a server that has much to say.
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=said, text=True)
        try:
            link = read_line(process).strip()
            if not link:
                raise RuntimeError(f"no link came from {' '.join(line)}: {_all_of(said)}")
            yield Served(link, process)
            assert is_expected_to_end or process.poll() is None, f"the server has ended by itself: {_all_of(said)}"
        finally:
            process.terminate()
            try:
                process.communicate(timeout=20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate(timeout=20)
                raise AssertionError(f"the server does not end when it is told to: {_all_of(said)}") from None


def read_line(process: subprocess.Popen[str]) -> str:
    """The next line of what a process prints; empty if it ends, or says nothing for too long."""
    stdout, lines = process.stdout, list[str]()
    assert stdout is not None
    reader = threading.Thread(target=lambda: lines.append(stdout.readline()), daemon=True)
    reader.start()
    reader.join(_PATIENCE_S)
    return lines[0] if lines else ""


def _all_of(file: Any) -> str:
    file.seek(0)
    return file.read()


class Client:
    """A page without a browser: asks, and keeps the updates that come in between."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.updates: list[dict[str, Any]] = []
        self.welcome = self.receive()

    def receive(self, left: float = _PATIENCE_S) -> dict[str, Any]:
        return json.loads(self._socket.recv(timeout=max(0.0, left)))

    def send(self, **message: Any) -> int:
        self._number += 1
        self._socket.send(json.dumps({**message, "id": self._number}))
        return self._number

    def ask(self, **message: Any) -> dict[str, Any]:
        """The answer, an error too."""
        number, deadline = self.send(**message), time.monotonic() + _PATIENCE_S
        while (left := deadline - time.monotonic()) > 0:
            answer = self.receive(left)
            if answer.get("id") == number:
                return answer
            self.updates.append(answer)
        raise TimeoutError(f"no answer in {_PATIENCE_S:.0f} s to {message}, but {len(self.updates)} updates")

    def next_update(self) -> dict[str, Any]:
        return self.updates.pop(0) if self.updates else self.receive()

    def last_update(self) -> dict[str, Any]:
        """The one that ends a search."""
        deadline = time.monotonic() + _PATIENCE_S
        while not (update := self.next_update())["last"]:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the search has not ended in {_PATIENCE_S:.0f} s; it says {update['stats']}")
        return update
