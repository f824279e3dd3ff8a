"""What every test shares: hypothesis profiles and the --update-golden option."""

from __future__ import annotations

import os
import signal
import tempfile

import hypothesis
import pytest

# What windrow remembers between runs (which backend was fastest) is not to come from, or stay on, the user's machine.
_CACHE = tempfile.TemporaryDirectory(prefix="windrow-tests-")
os.environ["XDG_CACHE_HOME"] = _CACHE.name

# A shell lets what it starts with & ignore Ctrl-C, and so would every process that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# "ci" draws the same cases every time: a failure on one machine is a failure on all. "explore" draws new ones, and
# more of them: HYPOTHESIS_PROFILE=explore make test
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True, max_examples=1000)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="rewrite the golden files with what the code says now (make golden); review the diff",
    )


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """True when golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))
