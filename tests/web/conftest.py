"""What the tests of the page share: a browser if there is one, and servers."""

from __future__ import annotations

import faulthandler
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import FrameType

import pytest

if find_spec("fastapi") is None or find_spec("websockets") is None:
    collect_ignore_glob = ["test_*.py"]  # the web extra is not installed
else:
    from web_browser import Browser, find_chromium
    from web_server import Served, serve

SCREENSHOTS = Path(__file__).parent.parent.parent / "build" / "screenshots"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Whatever uses the browser has its marker."""
    for item in items:
        if "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.browser)


MOST_S = 240.0
"""Longer than any test takes, or what it sets up, also on a busy machine: what takes longer hangs."""


@contextmanager
def bounded(item: pytest.Item, what: str) -> Iterator[None]:
    """Raise where the test is after `MOST_S`, with the stacks of all threads, instead of waiting for ever."""

    def stop(number: int, frame: FrameType | None) -> None:
        faulthandler.dump_traceback(sys.__stderr__ or sys.stderr)
        raise TimeoutError(f"{what} of {item.nodeid} has taken {MOST_S:.0f} s: it hangs; stacks are on stderr")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, MOST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    with bounded(item, "the preparation"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    with bounded(item, "the run"):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    with bounded(item, "the end"):
        return (yield)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = find_chromium()
    if program is None:
        pytest.skip("there is no Chromium: apt-get install chromium, or name one in $CHROMIUM")
    with tempfile.TemporaryDirectory(prefix="windrow-chromium-", ignore_cleanup_errors=True) as folder:
        started = Browser(program, Path(folder))
        try:
            yield started
        finally:
            started.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    return SCREENSHOTS


@pytest.fixture(scope="session")
def connect4() -> Iterator[Served]:
    with serve("connect4") as served:
        yield served


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a network that is too small to learn anything, quickly; not to be changed."""
    from windrow.train import TrainConfig, TrainingRun

    folder = tmp_path_factory.mktemp("runs") / "small"
    settings = {
        "game": "connect4",
        "num_iterations": 3,
        "games_per_iteration": 8,
        "min_positions": 10,
        "overlap": False,
        "backend": "torch",
        "num_threads": 1,
        "network": {"channels": 4, "blocks": 1},
        "search": {"num_simulations": 4},
        "selfplay": {"num_slots": 8},
        "learner": {"batch_size": 8},
    }
    run = TrainingRun.create(folder, TrainConfig.from_dict(settings))
    for _ in run.iterations():
        pass
    run.close()
    return folder
