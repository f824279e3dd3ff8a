"""What README.md and docs/benchmarks.md claim, and the figures that show it: text made from the files of bench/results.

A claim names its figures by benchmark and name; one that is not in the results is an error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from machine import ROOT
from report import Figure, number, read_figures
from results_page import table

RESULTS = ROOT / "bench" / "results"
BACKENDS = ("torch", "torch-compile", "onnxruntime", "openvino", "openvino-bf16", "openvino-int8")
UNITS = {"x": " times", "ms": " ms", "us": " us", "s": " s"}
"""As the tables write them; a claim says the others itself."""
CONTENDERS = ("mctx", "2 x mctx", "OpenSpiel")


@dataclass(frozen=True, slots=True)
class Results:
    """One file: how it came about, and its figures by benchmark and name."""

    facts: Mapping[str, Any]
    figures: Mapping[tuple[str, str], Figure]

    @classmethod
    def read(cls, suite: str) -> Results:
        """bench/results/SUITE.json."""
        path = RESULTS / f"{suite}.json"
        facts = json.loads(path.read_text(encoding="utf-8"))
        return cls(facts, {(figure.benchmark, figure.name): figure for figure in read_figures(path)})

    def find(self, benchmark: str, name: str) -> Figure:
        """A figure, which must be there."""
        try:
            return self.figures[benchmark, name]
        except KeyError:
            known = [known for owner, known in self.figures if owner == benchmark]
            raise SystemExit(
                f"bench/results/{self.facts['suite']}.json has no figure {name!r} of {benchmark}; it has {known}"
            ) from None

    @property
    def origin(self) -> str:
        """Command, machine, versions and commit in one sentence."""
        machine = self.facts["machine"]
        where = machine.get("gpu") or f"{machine['cores']} cores of {machine['cpu']}"
        versions = f"Python {machine['python']}, PyTorch {machine['torch']}"
        runs = f", {self.facts['num_runs']} runs" if self.facts.get("num_runs", 1) > 1 else ""
        when = f"commit {machine['commit']}; {self.facts['began'][:10]}"
        return f"`{self.facts['command']}`{runs}: {where}; {versions}; {when}."


@dataclass(frozen=True, slots=True)
class Row:
    """A claim: what was measured, by which benchmark, and the figures that say it."""

    claim: str
    benchmark: str
    figures: tuple[str, ...]

    def cells(self, results: Results) -> tuple[str, ...]:
        """For the table: claim, values, spreads, the benchmark."""
        found = [results.find(self.benchmark, name) for name in self.figures]
        *others, last = map(value, found)
        unit = UNITS.get(found[0].unit, "")  # the figures of a row have the same: said once
        values = ", ".join([*(other.removesuffix(unit) for other in others), last])
        return (self.claim, values, "; ".join(map(spread, found)), f"`{self.benchmark}`")


def value(figure: Figure) -> str:
    """With a unit where the claim does not say it."""
    doubt = " (unclear: noisy)" if figure.is_unclear else ""
    return f"{number(figure.value)}{doubt}{UNITS.get(figure.unit, '')}"


def spread(figure: Figure) -> str:
    """The lowest and the highest, or the standard error."""
    if figure.standard_error is not None:
        return f"± {number(figure.standard_error)}"
    return f"{number(figure.low)} to {number(figure.high)}" if len(figure.samples) > 1 else "one run"


def percent(figure: Figure) -> str:
    """A share with its standard error."""
    return f"{100 * figure.value:.1f} ± {100 * (figure.standard_error or 0.0):.1f} %"


CPU_ROWS = (
    Row(
        "simulations per second through the Python API, one core, no network: Connect-4, 256 trees, 64 and 400 "
        "simulations",
        "tree_speed",
        ("tree speed, Connect-4, 64 simulations", "tree speed, Connect-4, 400 simulations"),
    ),
    Row("cost of a simulation at 6,400, against 400", "tree_speed", ("cost per simulation, 6,400 against 400",)),
    Row("two threads against one, 512 trees", "threads", ("2 threads against 1, connect4, 512 trees",)),
    Row(
        "with a 64-channel 5-block ResNet, 64 trees: share of the network's own throughput, one and two threads",
        "network_share",
        tuple(f"share of the network's throughput, {count}, 64 trees, start" for count in ("1 thread", "2 threads")),
    ),
    Row(
        "positions per second of that network at batch 128, two threads: PyTorch as it is and compiled, ONNX "
        "Runtime, OpenVINO f32, bf16, int8",
        "backends",
        tuple(f"{backend}, 2 threads, batch 128" for backend in BACKENDS),
    ),
    Row(
        "new weights into the backend that `load(..., max_update_s=0.05)` takes",
        "weight_update",
        ('update of the backend "auto" takes for self-play',),
    ),
    Row(
        "a prediction cache in the first ten plies of self-play: fresh trees, kept subtrees",
        "cache",
        tuple(f"self-play with a cache, first 10 plies, {way}" for way in ("fresh trees", "kept subtrees")),
    ),
    Row(
        "self-play games per second against the naive way (batch 1, policy and value asked separately), one thread",
        "naive_selfplay",
        ("Search: games/s against the naive way, 1 torch thread",),
    ),
    Row(
        "self-play's share of the network's own throughput, 128 games at once, the fastest backend",
        "selfplay",
        ("self-play share of the network, 128 games",),
    ),
    Row(
        "Connect-4 compiled from Python against the C++ game, 256 trees",
        "game_kinds",
        ("compiled game against built in, 256 trees",),
    ),
    Row("Connect-4 as a plain Python class, simulations per second", "game_kinds", ("plain Python game, 256 trees",)),
    Row(
        "OpenSpiel's Connect-4 searched by windrow against OpenSpiel's own Python search, 64 and 400 simulations",
        "openspiel_adapter",
        tuple(f"OpenSpiel's Connect-4, {count} simulations, against OpenSpiel's Python MCTS" for count in (64, 400)),
    ),
    Row(
        "a game in plain Python on two worker processes, against one core",
        "multiprocess",
        ("plain Python game, 2 workers against one core",),
    ),
    Row("`import windrow`, most of it NumPy", "import_time", ("import windrow",)),
)
PEER_ROWS = (
    Row(
        "with the ResNet, 64 games x 64 simulations, int8 (agrees with f32 within stated bounds): windrow against one "
        "process of mctx + pgx, two, and OpenSpiel's Python search",
        "peers",
        tuple(f"windrow against {name}" for name in CONTENDERS),
    ),
    Row(
        "with the ResNet in f32: windrow against the same three",
        "peers",
        tuple(f"windrow, f32, against {name}" for name in CONTENDERS),
    ),
    *(
        Row(
            f"trees alone, one core, 64 positions, {count} simulations: windrow against mctx + pgx, LightZero's C++ "
            "tree (which steps no game), OpenSpiel's Python search",
            "peers_tree",
            tuple(
                f"windrow against {name}, trees alone, {count} simulations"
                for name in ("mctx", "LightZero", "OpenSpiel, Python")
            ),
        )
        for count in (64, 400)
    ),
    *(
        Row(
            f"trees alone with a random game for every leaf, {count} simulations: windrow with all positions at once, "
            "and one by one, against OpenSpiel's C++ search",
            "peers_tree",
            tuple(
                f"{ours} against OpenSpiel, C++, trees alone, {count} simulations"
                for ours in ("windrow, rollouts", "windrow, rollouts one by one")
            ),
        )
        for count in (64, 400)
    ),
)
GPU_SIZES = {
    "1,024 x 64": "1024 games x 64",
    "1,024 x 400": "1024 games x 400",
    "4,096 x 64": "4096 games x 64",
    "Gomoku 15x15, 512 x 64": "Gomoku 15x15, 512 games x 64",
}
GPU_HEADER = (
    "games x simulations",
    "network alone, positions/s",
    "search, positions/s",
    "share of the network",
    "tree and game, per step",
)
GPU_RATIOS = {
    "times eager torch ops, 1024 x 64": "the same search in eager torch ops (1,024 x 64)",
    "times mctx + pgx, 1024 x 400": "mctx + pgx (1,024 x 400)",
}


def table_of_claims(suite: str, rows: Sequence[Row]) -> str:
    """How the results came about, in a sentence, and a table of claims."""
    results = Results.read(suite)
    body = table(("", "median", "lowest to highest", "benchmark"), [row.cells(results) for row in rows])
    return f"{results.origin}\n\n{body}"


def gpu_claims() -> str:
    """The table of sizes, and the ratios to others, as far as they were there."""
    results = Results.read("gpu")
    rows: list[tuple[str, ...]] = []
    for title, size in GPU_SIZES.items():
        own, search, step = (
            results.find("tensor", f"{what}, {size}") for what in ("network alone", "search", "tree and game")
        )
        share = results.find("tensor", f"share of the network's speed, {size}")
        share_text = f"{share.value:.3f} ({share.low:.3f} to {share.high:.3f})"
        rates = [f"{value(rate)} ({spread(rate)})" for rate in (own, search)]
        rows.append((title, *rates, share_text, f"{value(step)} ({spread(step)})"))
    parts = [results.origin, table(GPU_HEADER, rows)]
    found = {words: results.figures.get(("tensor", name)) for name, words in GPU_RATIOS.items()}
    ratios = [f"{value(one)} ({spread(one)}) as fast as {words}" for words, one in found.items() if one is not None]
    if ratios:
        parts.append(f"At these sizes it is {' and '.join(ratios)}.")
    return "\n\n".join(parts)


def gpu_training_claims() -> str:
    """What two minutes on a GPU gave."""
    results = Results.read("gpu-training")
    names = ("right moves with 400 simulations", "right moves, bare policy")
    searched, bare = (results.find("tensor_training", name) for name in names)
    return (
        f"{results.origin}\n\nTraining on the device takes Connect-4 from random weights to {percent(searched)} of the "
        f"solved positions right with 400 simulations, and {percent(bare)} with the bare policy ({searched.note}; "
        "compilation excluded)."
    )


def training_claims() -> str:
    """What three minutes gave."""
    results = Results.read("training")
    names = ("games played", "right moves, 100 simulations", "right moves, rollout:1000", "score against rollout:400")
    games, right, yardstick, score = (results.find("training", name) for name in names)
    return (
        f"{results.origin}\n\nThree minutes of training gave a player after {games.value:,.0f} games (`make demo`; one "
        f"run). With 100 simulations it keeps the theoretical result in {percent(right)} of 600 solved Connect-4 "
        f"positions; `rollout:1000` does in {percent(yardstick)}. It scores {percent(score)} against `rollout:400` "
        f"({score.note.partition(';')[0]})."
    )


def headlines() -> str:
    """The three rows of README.md, each with its machine."""
    cpu, gpu, learned = Results.read("peers"), Results.read("gpu"), Results.read("training")
    ratio = cpu.find("peers", "windrow against 2 x mctx")
    rate, peer = gpu.find("tensor", "search, 1024 games x 400"), gpu.find("tensor", "times mctx + pgx, 1024 x 400")
    right, games = learned.find("training", "right moves, 100 simulations"), learned.find("training", "games played")
    cores = f"{cpu.facts['machine']['cores']} cores"
    rows = [
        (
            "64 games x 64 simulations with a 64-channel ResNet (int8), against two processes of mctx + pgx",
            cores,
            f"{value(ratio)} as fast ({spread(ratio)})",
        ),
        (
            "1,024 games x 400 simulations on the device with the same network in bfloat16, against mctx + pgx",
            gpu.facts["machine"]["gpu"].partition(",")[0],
            f"{value(rate)} positions/s, {value(peer)} as fast ({spread(peer)})",
        ),
        (
            "`make demo`: three minutes of training from random weights, share of 600 solved Connect-4 positions "
            "in which the player keeps the theoretical result",
            cores,
            f"{percent(right)} after {games.value:,.0f} games",
        ),
    ]
    return table(("Connect-4", "machine", "result"), rows)
