"""The multiprocess engine where Linux's own calls are missing, as on macOS: pipes, files and select do the same.

A `sitecustomize` takes the calls away before anything is imported, in the program and in its workers.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WITHOUT_LINUX = """
import os, select
for name in ("eventfd", "eventfd_read", "eventfd_write", "memfd_create", "pidfd_open", "sched_getaffinity",
             "sched_setaffinity"):
    delattr(os, name)
del select.epoll
"""

PROGRAM = """
import os, signal, sys
assert not hasattr(os, "eventfd"), "sitecustomize was not read"
from windrow import Search, SearchConfig, make_game
from windrow.engines import Multiprocess
from windrow.evaluators import HashEvaluator

game = make_game("connect4")
states = [game.state_from_moves(moves) for moves in ("", "4", "44", "445", "4453", "3")]
config = SearchConfig(num_simulations=60, seed=3)
expected = [r.visits.tolist() for r in Search(game, HashEvaluator(1), config.replace(engine="vectorized")).run(states)]
with Search(game, HashEvaluator(1), config.replace(engine=Multiprocess(num_workers=2))) as search:
    results = search.run(states)
    assert [result.visits.tolist() for result in results] == expected
    os.kill(results[0].stats.workers[0].pid, signal.SIGKILL)
    again = search.run(states)
    assert [result.visits.tolist() for result in again] == expected
    workers = [worker.pid for worker in again[0].stats.workers]
for pid in workers:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        continue
    raise AssertionError(f"worker {pid} is left")
print("equal")
"""


def test_workers_without_the_calls_of_linux(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(WITHOUT_LINUX, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout) == (0, "equal\n"), run.stderr
