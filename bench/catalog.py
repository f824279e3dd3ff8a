"""All benchmarks by name, and the suites made of them.

To add one: write `bench/NAME.py` with the command line of `report.run_alone`, name it here, and put it into a suite.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from machine import ROOT, num_cores

FOLDER = Path(__file__).parent
PEERS_PYTHON = ROOT / ".venv-peers" / "bin" / "python"


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One program of this folder.

    what: it measures.
    about_s: what it takes, on two quiet cores or one H200.
    needs: names of `NEEDS`; without one of them it is left out.
    """

    what: str
    about_s: float
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """Benchmarks that belong together.

    limit_s: one that would not be done by then is left out, and the results say so.
    """

    what: str
    benchmarks: tuple[str, ...]
    limit_s: float = float("inf")

    @property
    def about_s(self) -> float:
        """What all of them take, as far as the limit lets them."""
        return min(self.limit_s, sum(BENCHMARKS[name].about_s for name in self.benchmarks))


BENCHMARKS: Mapping[str, Benchmark] = {
    "import_time": Benchmark(what="import windrow", about_s=10),
    "tree_speed": Benchmark(what="trees without a network", about_s=25),
    "chess_perft": Benchmark(what="legal moves of chess", about_s=15),
    "threads": Benchmark(what="two threads against one", about_s=30, needs=("two cores",)),
    "network_share": Benchmark(what="a search's share of its network's speed", about_s=65, needs=("torch",)),
    "backends": Benchmark(what="runtimes of the network, and what auto takes", about_s=165, needs=("torch",)),
    "weight_update": Benchmark(what="new weights into a backend", about_s=40, needs=("torch",)),
    "naive_selfplay": Benchmark(what="self-play against the naive way", about_s=95, needs=("torch",)),
    "selfplay": Benchmark(what="self-play's share of its network's speed", about_s=50, needs=("torch",)),
    "shared_cores": Benchmark(what="self-play beside a busy loop", about_s=90, needs=("torch", "two cores")),
    "cache": Benchmark(what="the prediction cache", about_s=105, needs=("torch",)),
    "game_kinds": Benchmark(what="games in C++, compiled, in Python", about_s=25, needs=("numba",)),
    "openspiel_adapter": Benchmark(what="OpenSpiel's games through windrow", about_s=20, needs=("OpenSpiel",)),
    "multiprocess": Benchmark(what="worker processes", about_s=70, needs=("two cores",)),
    "transport": Benchmark(what="rows to another process and back", about_s=5, needs=("two cores",)),
    "tune": Benchmark(what="windrow tune against an exhaustive grid", about_s=200, needs=("torch",)),
    "peers_tree": Benchmark(what="trees alone, beside others' trees", about_s=80, needs=("the peers",)),
    "peers": Benchmark(what="searches with a network, beside others'", about_s=180, needs=("torch", "the peers")),
    "learner": Benchmark(what="training steps", about_s=300, needs=("torch",)),
    "training": Benchmark(what="three minutes of training on the CPU", about_s=200, needs=("torch", "safetensors")),
    "solver": Benchmark(what="the Connect-4 solver", about_s=120),
    "proofs": Benchmark(what="what proofs save in Connect-4", about_s=15),
    "graph_search": Benchmark(what="search of a graph against search of a tree", about_s=60, needs=("numba",)),
    "tensor": Benchmark(what="whole searches on the GPU", about_s=170, needs=("a GPU",)),
    "tower": Benchmark(what="the network in one kernel against torch.compile", about_s=115, needs=("a GPU",)),
    "tensor_training": Benchmark(what="training on the GPU for two minutes", about_s=200, needs=("a GPU",)),
    "cuda_search": Benchmark(what="trees on the CPU, the network on the GPU", about_s=40, needs=("a GPU",)),
    "ray_engine": Benchmark(what="the Ray engine", about_s=100, needs=("torch", "Ray")),
    "scaling": Benchmark(what="what a cluster would reach", about_s=25, needs=("torch", "Ray")),
    "analysis_queries": Benchmark(what="overlapping queries of the analysis protocol", about_s=60, needs=("torch",)),
    "gomocup": Benchmark(what="move times of the Gomocup protocol", about_s=120),
    "web": Benchmark(what="the board page", about_s=35, needs=("FastAPI",)),
}

SUITES: Mapping[str, Suite] = {
    "quick": Suite(
        what="the main figures of this machine, in two minutes",
        benchmarks=("import_time", "tree_speed", "network_share"),
    ),
    "cpu": Suite(
        what="every figure of one machine without a GPU: two cores, at most 15 minutes",
        benchmarks=(
            *("import_time", "tree_speed", "threads", "network_share", "backends", "weight_update"),
            *("naive_selfplay", "selfplay", "cache", "game_kinds", "openspiel_adapter", "transport", "multiprocess"),
        ),
        limit_s=890,
    ),
    "peers": Suite(
        what="windrow beside mctx + pgx, OpenSpiel's searches and LightZero's tree: same game, network and budget",
        benchmarks=("peers_tree", "peers"),
    ),
    "gpu": Suite(
        what="searches on one GPU: trees as tensors, and trees on the CPU; at most 5 minutes on an H200",
        benchmarks=("tensor", "cuda_search"),
        limit_s=295,
    ),
    "gpu-training": Suite(
        what="how strong two minutes of training on one GPU make a player",
        benchmarks=("tensor_training",),
    ),
    "training": Suite(what="how strong three minutes of training make a player", benchmarks=("training",)),
    "services": Suite(
        what="Ray, the protocols and the page",
        benchmarks=("ray_engine", "scaling", "analysis_queries", "gomocup", "web"),
    ),
}


def _module(name: str) -> Callable[[], bool]:
    return lambda: importlib.util.find_spec(name) is not None


def _has_gpu() -> bool:
    code = "import torch, sys; sys.exit(not torch.cuda.is_available())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=False).returncode == 0


NEEDS: Mapping[str, tuple[Callable[[], bool], str]] = {
    "two cores": (lambda: num_cores() > 1, "there is one core only"),
    "torch": (_module("torch"), 'pip install ".[torch]" in the checkout'),
    "safetensors": (_module("safetensors"), 'pip install ".[train]" in the checkout'),
    "numba": (_module("numba"), 'pip install ".[numba]" in the checkout'),
    "OpenSpiel": (_module("pyspiel"), 'pip install ".[openspiel]" in the checkout'),
    "Ray": (_module("ray"), 'pip install ".[ray]" in the checkout'),
    "FastAPI": (_module("fastapi"), 'pip install ".[web]" in the checkout'),
    "a GPU": (_has_gpu, "torch finds no CUDA device"),
    "the peers": (lambda: peers_python() is not None, "make bench-peers installs them"),
}
"""What a benchmark may need: whether it is there, and what to do if not."""


def peers_python() -> Path | None:
    """The interpreter that has peers-requirements.txt installed; None if there is none."""
    python = Path(os.environ.get("WINDROW_PEERS_PYTHON", PEERS_PYTHON))
    return python if python.exists() else None


def missing(benchmark: str) -> str | None:
    """Why a benchmark cannot run here; None if it can."""
    for need in BENCHMARKS[benchmark].needs:
        is_there, advice = NEEDS[need]
        if not is_there():
            return f"needs {need} ({advice})"
    return None


def benchmarks_of(names: list[str]) -> list[str]:
    """Suites and benchmarks by name, as benchmarks; each once."""
    found = [name for chosen in names for name in (SUITES[chosen].benchmarks if chosen in SUITES else (chosen,))]
    return list(dict.fromkeys(found))
