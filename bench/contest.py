"""Programs that measure in turns: each a process of its own, ready and warm before the first round.

Ratios are taken within a round, so that a busy moment of the machine falls on both sides alike. What a program does is
in peer_child.py; it may run in an environment of its own.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import numpy as np
from catalog import peers_python
from machine import Samples, busy_s
from report import Figure

FOLDER = Path(__file__).parent

KEEP_FREED_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(1 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(2**31 - 1),
    "MALLOC_TOP_PAD_": str(64 << 20),
}
"""For all programs, what `machine.keep_freed_memory` does for one."""


class Child:
    """One process: made ready, then told when to measure."""

    def __init__(self, python: Path, program: str, folder: Path, *options: str) -> None:
        self.python, self.program, self.options = python, program, options
        command = [str(python), str(FOLDER / f"{program}.py"), str(folder), *options]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **KEEP_FREED_MEMORY, "TF_CPP_MIN_LOG_LEVEL": "3"},  # XLA's remarks on its compiler
        )
        self.facts: dict[str, Any] = {}
        self.rounds: list[dict[str, Any]] = []

    def is_ready(self) -> bool:
        """Wait until it is warm; False if it has failed."""
        try:
            self.facts = self.read()
        except subprocess.CalledProcessError:
            return False
        return True

    def answers(self) -> np.ndarray:
        """[games, A + 1] as `right_answers`, by its own network."""
        return np.column_stack([np.array(self.facts.pop("logits")), np.array(self.facts.pop("values"))])

    def begin(self) -> None:
        """Let it measure a round."""
        assert self._process.stdin is not None
        self._process.stdin.write("measure\n")
        self._process.stdin.flush()

    def read(self) -> dict[str, Any]:
        """Its next line; blocks."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise subprocess.CalledProcessError(self._process.wait(), self.program)
        return json.loads(line)

    def close(self) -> None:
        """Let it end."""
        self._process.communicate()


@dataclass
class Contender:
    """One row of the table: one process, or several that measure at the same time."""

    name: str
    children: list[Child]
    rates: list[float] = field(default_factory=list)
    others: list[float] = field(default_factory=list)
    """Cores that other programs used meanwhile."""

    def measure(self) -> None:
        """A round."""
        sleep(0.2)  # whoever was at work before has come to rest
        busy, start = busy_s(), perf_counter()
        for child in self.children:
            child.begin()
        rounds = [child.read() for child in self.children]
        elapsed = perf_counter() - start
        own = sum(measured["cpu_s"] for measured in rounds)
        self.others.append(max(0.0, (busy_s() - busy - own) / elapsed))
        self.rates.append(sum(measured["rate"] for measured in rounds))
        for child, measured in zip(self.children, rounds, strict=True):
            child.rounds.append(measured)

    def is_ready(self) -> bool:
        """Wait until all its processes are warm; False if one has failed."""
        return all([child.is_ready() for child in self.children])

    def close(self) -> None:
        """Let them end."""
        for child in self.children:
            child.close()

    @property
    def cores(self) -> float:
        """That it used."""
        return sum(child.rounds[-1]["cpu_s"] / child.rounds[-1]["wall_s"] for child in self.children)


@contextmanager
def task_folder(games: Sequence[Sequence[int]], num_simulations: int, weights: Mapping[str, Any]) -> Iterator[Path]:
    """What programs are told to do, as files: see `peer_child.Task`."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "weights.npz", **weights)
        task = {"games": games, "num_simulations": num_simulations}
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        yield folder


def find_peers() -> Path | None:
    """The interpreter that has the others; says so if there is none."""
    python = peers_python()
    if python is None:
        print("the others are left out: `make bench-peers` installs them")
    return python


def keep_ready(contenders: Sequence[Contender], *, is_required: bool = False) -> list[Contender]:
    """Wait until all are warm or have failed, and leave out those that have; if they are required, that is an error."""
    ready: list[Contender] = []
    for contender in contenders:
        if contender.is_ready():
            ready.append(contender)
        elif is_required:
            raise RuntimeError(f"{contender.name} does not start (see above)")
        else:
            python = contender.children[0].python
            print(f"{contender.name} is left out: it does not start with {python} (see above)")
    return ready


def take_turns(contenders: Sequence[Contender], num_rounds: int) -> None:
    """All of them, round after round; they end whatever happens."""
    try:
        for _ in range(num_rounds):
            for contender in contenders:
                contender.measure()
    finally:
        for contender in contenders:
            contender.close()


def ratio_figure(name: str, ours: Contender, theirs: Contender, target: float | None = None) -> Figure:
    """How many times as fast ours is."""
    ratios = [one / other for one, other in zip(ours.rates, theirs.rates, strict=True)]
    noise = [max(pair) for pair in zip(ours.others, theirs.others, strict=True)]
    is_unclear = target is not None and Samples(ratios, noise, len(ratios)).leaves_open(ratios, target)
    return Figure.of(name, ratios, unit="x", at_least=target, note="median of rounds", is_unclear=is_unclear)


def rate_figure(name: str, contender: Contender) -> Figure:
    """Its speed."""
    versions = contender.children[0].facts["versions"]
    named = ", ".join(f"{package} {version}" for package, version in versions.items() if package != "numpy")
    return Figure.of(name, contender.rates, unit="sims/s", note=f"median of rounds; {named}")


def print_children(contenders: Sequence[Contender]) -> None:
    """One line of JSON per process: what it is and what it measured."""
    print()
    for contender in contenders:
        for number, child in enumerate(contender.children, start=1):
            rates = [round(measured["rate"], 1) for measured in child.rounds]
            content = {
                "program": contender.name,
                "process": number,
                "options": child.options,
                "median": statistics.median(rates),
                "rates": rates,
                **child.facts,
                "last_round": {key: np.round(value, 3).tolist() for key, value in child.rounds[-1].items()},
            }
            print(json.dumps(content))


def table_row(contender: Contender, figure: Figure | None) -> tuple[str, ...]:
    """Of one contender: name, rate, spread, cores, ratio, target, others."""
    return (
        contender.name,
        f"{statistics.median(contender.rates):,.0f}",
        f"{min(contender.rates):,.0f}-{max(contender.rates):,.0f}",
        f"{contender.cores:.2f}",
        "" if figure is None else f"{figure.value:.2f} x",
        "" if figure is None else figure.target,
        f"{statistics.median(contender.others):.2f}",
    )


TABLE_HEADER = ("program", "simulations/s", "lowest-highest", "cores", "windrow is faster", "target", "others' cores")
