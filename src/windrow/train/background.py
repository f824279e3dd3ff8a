"""Learning beside playing: a function on a thread of its own, and who gets how many threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

from windrow.cores import num_cores


class Background:
    """Runs `fn(is_wanted)` on a thread while a `with` block does something else.

    Leaving the block waits for the function; leaving it by an exception tells it to end, through `is_wanted`, first.
    """

    def __init__(self, fn: Callable[[Callable[[], bool]], dict[str, float]]) -> None:
        self._fn = fn
        self._is_wanted = True
        self._result: dict[str, float] = {}
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="windrow-learner", daemon=True)

    @property
    def is_running(self) -> bool:
        """Whether the function has not ended."""
        return self._thread.is_alive()

    def stop(self) -> None:
        """Tell the function to end soon."""
        self._is_wanted = False

    def result(self) -> dict[str, float]:
        """What the function gave; what it raised is raised here."""
        if self._error is not None:
            raise self._error
        return self._result

    def __enter__(self) -> Background:
        self._thread.start()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None:
            self.stop()
        self._thread.join()

    def _run(self) -> None:
        try:
            self._result = self._fn(lambda: self._is_wanted)
        except BaseException as error:  # it belongs to whoever asks for the result
            self._error = error


def share_threads(num_threads: int | None, *, overlap: bool) -> tuple[int, int]:
    """Threads for evaluating and for learning: all for both in turn, or half for each side by side."""
    if num_threads is None:
        num_threads = num_cores()
    if not overlap:
        return num_threads, num_threads
    for_learning = max(1, num_threads // 2)
    return max(1, num_threads - for_learning), for_learning
