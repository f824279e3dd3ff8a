"""Is the windrow that is installed here whole? Prints what it found and exits 0 if so.

    python .ci/smoke.py        # needs windrow[cli], and no file of the repository

`make release-check` and the builders of the wheels run this where nothing but the wheel is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from importlib import metadata, resources
from pathlib import Path

import windrow
from windrow.evaluators import HashEvaluator, RolloutEvaluator
from windrow.reference import ReferenceSearch

DATA = (
    "py.typed",
    "_core.pyi",
    "play/data/connect4_solved.txt",
    "train/configs/connect4.toml",
    "train/configs/tensor/connect4.toml",
    "web/static/index.html",
    "web/static/play.js",
)
"""One of every kind of file that is no module; `make release-check` compares them all."""


def check_files() -> None:
    """The files beside the modules came along."""
    package = resources.files("windrow")
    missing = [name for name in DATA if not package.joinpath(name).is_file()]
    assert not missing, f"not installed: {', '.join(missing)}"
    assert Path(str(package)).is_relative_to(sysconfig.get_path("platlib")), f"this is another windrow: {package}"


def check_search() -> None:
    """A search wins where it can, and the native core and worker processes agree with the reference."""
    game = windrow.make_game("tictactoe")
    state = game.state_from_moves("a1 b1 a2 b2")  # a3 wins
    config = windrow.SearchConfig(num_simulations=200, seed=1)
    best = windrow.Search(game, RolloutEvaluator(), config).run(state).best_action
    assert game.action_name(best) == "a3", f"the winning move is a3, not {game.action_name(best)}"

    config = config.replace(leaves_per_tree=1)
    root = ReferenceSearch(game, HashEvaluator(7), config).run(state)
    expected = dict(zip(root.actions, root.edge_visits.tolist(), strict=True))
    for settings in ({"engine": "sequential"}, {"engine": "multiprocess", "num_workers": 2}):
        with windrow.Search(game, HashEvaluator(7), config.replace(**settings)) as search:
            result = search.run([state])[0]
        visits = {action: int(result.visits[action]) for action in expected}
        assert visits == expected, f"{settings['engine']} gives {visits}, the reference {expected}"


def check_command() -> None:
    """The command runs, and knows its version."""
    found = shutil.which("windrow", path=str(Path(sys.executable).parent))
    assert found is not None, "there is no command windrow beside this Python"
    for arguments, expected in (
        (["--version"], f"windrow {windrow.__version__}"),
        (["--help"], "Usage: windrow"),
        (["search", "connect4", "--moves", "4453", "--sims", "100"], "visits"),
    ):
        run = subprocess.run([found, *arguments], capture_output=True, text=True)
        assert run.returncode == 0 and expected in run.stdout, f"{arguments}: {run.stdout}{run.stderr}"
    run = subprocess.run([found, "bench", "suite", "quick"], capture_output=True, text=True)
    assert run.returncode == 1 and "clone the repository" in run.stderr, f"bench suite: {run.stdout}{run.stderr}"


def main() -> None:
    """Run all checks."""
    assert windrow.__version__ == metadata.version("windrow-mcts")
    check_files()
    check_search()
    check_command()
    print(f"windrow {windrow.__version__} works with Python {sys.version.split()[0]} on {sysconfig.get_platform()}")


if __name__ == "__main__":
    main()
