"""What every test shares: hypothesis profiles, the order of the files and the --update-golden option."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from windrow import engine_registry

# What windrow remembers between runs (which backend was fastest) is not to come from, or stay on, the user's machine.
_CACHE = tempfile.TemporaryDirectory(prefix="windrow-tests-")
os.environ["XDG_CACHE_HOME"] = _CACHE.name

# COLUMNS is the width of windrow's output, and pytest-xdist sets it in its workers.
os.environ.pop("COLUMNS", None)

# A shell lets what it starts with & ignore Ctrl-C, and so would every process that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# "ci" draws the same cases every time: a failure on one machine is a failure on all. "explore" draws new ones, and
# more of them: HYPOTHESIS_PROFILE=explore make test
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

# The files that take longest, longest first (100 to 10 seconds of a core); `pytest --durations` finds others. They come
# first, so that no process of `make test` begins one of them while the others have nothing left to do.
LONGEST = (
    "test_docs.py",
    *("evaluators/test_backends.py", "search/test_agreement.py", "search/test_multiprocess_faults.py"),
    *("search/test_multiprocess.py", "cli/test_cli_train.py", "evaluators/test_loading.py", "train/test_run.py"),
    *("search/test_engine_registry.py", "protocols/test_gomocup.py", "games/test_compiled_game.py"),
    *("tune/test_tuning.py", "search/test_cache.py", "web/test_web_cli.py", "train/test_hostile_checkpoints.py"),
    *("cli/test_cli_suites.py", "evaluators/test_backend_choice.py", "train/test_standard_settings.py"),
    *("cli/test_cli_app.py", "train/test_multiprocess_selfplay.py", "cli/test_cli_tune.py"),
    *("cli/test_cli_report.py", "games/test_check_game.py", "tensor/test_tensor_chance.py", "train/test_run_lock.py"),
    *("cli/test_cli_train_tensor.py", "tensor/test_tensor_facade.py", "tensor/test_tensor_search.py"),
    *("tensor/test_tensor_training.py", "tensor/test_tensor_flight.py", "tensor/test_tensor_reuse.py"),
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the files that take longest first; the order within a file stays."""
    ranks = {Path(__file__).parent / name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files with what the code says now (make golden); review the diff",
    )


@pytest.fixture(autouse=True)
def own_registry_of_engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget after a test the engines that it registered."""
    monkeypatch.setattr("windrow.engine_registry.ENGINES", dict(engine_registry.ENGINES))


@pytest.fixture(autouse=True)
def own_modules(request: pytest.FixtureRequest) -> Iterator[None]:
    """Forget after a test the modules that it imported from its own folder: the next one may call a file the same."""
    if "tmp_path" not in request.fixturenames:
        yield
        return
    folder: Path = request.getfixturevalue("tmp_path")
    before, path = set(sys.modules), list(sys.path)
    yield
    for name in sys.modules.keys() - before:
        if folder in Path(getattr(sys.modules[name], "__file__", None) or "").parents:
            del sys.modules[name]
    sys.path[:] = [place for place in sys.path if place in path or folder not in [Path(place), *Path(place).parents]]


@pytest.fixture
def one_core(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let windrow see one core: a small network runs faster on one thread, and on a busy machine much faster."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0}, raising=False)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread: threads that wait for each other are slow on a busy machine."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """True when golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))
