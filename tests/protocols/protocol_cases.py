"""Both ends of a protocol: a real process to talk to, and a server in this process for what it cannot show."""

from __future__ import annotations

import io
import json
import queue
import subprocess
import sys
import threading
from time import perf_counter
from types import TracebackType
from typing import Any

from windrow.config import SearchConfig
from windrow.protocols.analysis import AnalysisServer
from windrow.protocols.gomocup import Gomocup
from windrow.protocols.gomocup_brain import EvaluatorMaker

PATIENCE_S = 60.0
"""Nothing here takes so long; who waits longer waits for ever."""


class Talk:
    """A `windrow protocol ...` process, and lines to and from it."""

    def __init__(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "windrow", "protocol", *arguments]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
        )
        self._lines: queue.Queue[tuple[str, float] | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put((line.rstrip("\n"), perf_counter()))
        self._lines.put(None)

    def send(self, *lines: str) -> None:
        """Write lines."""
        assert self.process.stdin is not None
        self.process.stdin.write("".join(f"{line}\n" for line in lines))
        self.process.stdin.flush()

    def hear(self) -> str:
        """The next line."""
        return self.hear_timed()[0]

    def hear_timed(self) -> tuple[str, float]:
        """The next line, and when it came."""
        line = self._lines.get(timeout=PATIENCE_S)
        assert line is not None, f"the process has ended: {self.process.stderr.read() if self.process.stderr else ''}"
        return line

    def ask(self, *lines: str) -> str:
        """Write lines; the next line that comes."""
        self.send(*lines)
        return self.hear()

    def ask_timed(self, *lines: str) -> tuple[str, float]:
        """The same, with the seconds it took."""
        start = perf_counter()
        self.send(*lines)
        answer, end = self.hear_timed()
        return answer, end - start

    def ask_json(self, query: dict[str, Any]) -> dict[str, Any]:
        """The next answer after a query."""
        return json.loads(self.ask(json.dumps(query)))

    def hear_json(self) -> dict[str, Any]:
        """The next answer."""
        return json.loads(self.hear())

    def leave(self) -> tuple[int, list[str], str]:
        """Close the input and wait: exit code, lines not heard yet, stderr."""
        assert self.process.stdin is not None and self.process.stderr is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        code = self.process.wait(timeout=PATIENCE_S)
        self._reader.join(timeout=PATIENCE_S)
        rest = [line[0] for line in iter(self._lines.get_nowait, None) if line is not None]
        return code, rest, self.process.stderr.read()

    def __enter__(self) -> Talk:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._reader.join(timeout=PATIENCE_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                try:
                    stream.close()
                except BrokenPipeError:
                    continue


def hang_up(*arguments: str, lines: list[str]) -> tuple[str, int, str]:
    """Say something to a `windrow protocol ...` process, hear one line, and read no more: the line, its end, stderr."""
    command, pipe = [sys.executable, "-m", "windrow", "protocol", *arguments], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, bufsize=1) as process:
        assert process.stdin is not None and process.stdout is not None and process.stderr is not None
        try:
            process.stdin.write("".join(f"{line}\n" for line in lines))
            process.stdin.flush()
            answer = process.stdout.readline().rstrip("\n")
            process.stdout.close()
            return answer, process.wait(timeout=PATIENCE_S), process.stderr.read()
        finally:
            process.kill()


def play_script(commands: str | bytes, make_evaluator: EvaluatorMaker, **settings: Any) -> list[str]:
    """What a brain in this process answers to commands, until there are no more."""
    raw = commands.encode() if isinstance(commands, str) else commands
    answers = io.StringIO()
    config = SearchConfig(**{"num_simulations": 8, **settings})
    Gomocup(make_evaluator, "a test", config).run(io.BytesIO(raw), answers)
    return answers.getvalue().splitlines()


def analyse(game: Any, evaluator: object, *queries: Any, config: SearchConfig | None = None, **more: Any) -> list[Any]:
    """What a server in this process answers to queries: objects, or lines as they are."""
    lines = [query if isinstance(query, bytes) else json.dumps(query).encode() for query in queries]
    answers = io.StringIO()
    AnalysisServer(game, evaluator, config, **more).run(io.BytesIO(b"\n".join(lines)), answers)
    return [json.loads(line) for line in answers.getvalue().splitlines()]
