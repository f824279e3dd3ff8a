"""A server for tests, started as a user does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from websockets.sync.client import ClientConnection, connect


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
def serve(*arguments: str, command: str = "play", port: int = 0, is_expected_to_end: bool = False) -> Iterator[Served]:
    """`windrow play ...`, on any free port if none is given."""
    line = [sys.executable, "-m", "windrow", command, *arguments, "--no-open", "--port", str(port)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None and process.stderr is not None
        link = process.stdout.readline().strip()
        if not link:
            raise RuntimeError(process.stderr.read())
        yield Served(link, process)
        assert is_expected_to_end or process.poll() is None, "the server has ended by itself"
    finally:
        process.terminate()
        process.communicate(timeout=20)


class Client:
    """A page without a browser: asks, and keeps the updates that come in between."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._number = 0
        self.updates: list[dict[str, Any]] = []
        self.welcome = self.receive()

    def receive(self) -> dict[str, Any]:
        return json.loads(self._socket.recv(timeout=60))

    def send(self, **message: Any) -> int:
        self._number += 1
        self._socket.send(json.dumps({**message, "id": self._number}))
        return self._number

    def ask(self, **message: Any) -> dict[str, Any]:
        """The answer, an error too."""
        number = self.send(**message)
        while True:
            answer = self.receive()
            if answer.get("id") == number:
                return answer
            self.updates.append(answer)

    def next_update(self) -> dict[str, Any]:
        return self.updates.pop(0) if self.updates else self.receive()

    def last_update(self) -> dict[str, Any]:
        """The one that ends a search."""
        while not (update := self.next_update())["last"]:
            pass
        return update
