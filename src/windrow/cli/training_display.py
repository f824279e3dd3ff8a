"""What a person sees while a network trains: two bars, and a line per iteration."""

from __future__ import annotations

from time import perf_counter
from types import TracebackType
from typing import Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from windrow.cli.output import stderr

_COLUMNS = (
    ("iteration", "{:.0f}", "iter"),
    ("games", "{:.0f}", "games"),
    ("games_per_s", "{:.1f}", "games/s"),
    ("nn_positions_per_s", "{:,.0f}", "positions/s"),
    ("game_length", "{:.1f}", "length"),
    ("loss", "{:.3f}", "loss"),
    ("value_error", "{:.3f}", "value err"),
    ("policy_entropy", "{:.3f}", "entropy"),
    ("solved_policy", "{:.1%}", "solved"),
    ("total_s", "{:.0f}", "seconds"),
)
_LINES_PER_HEADER = 25
_ABSENT = ("not installed: pip install", "finds no GPU")


class TrainingDisplay:
    """Progress of a run on stderr; where that is no terminal, only the lines."""

    def __init__(self, run: Any, *, is_quiet: bool = False) -> None:
        self._run = run
        self._console = stderr()
        self._is_quiet = is_quiet
        self._num_lines = 0
        self._progress = Progress(
            TextColumn("{task.description:>9}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
            transient=True,
            disable=is_quiet or not self._console.is_terminal,
        )
        has_end = run.config.num_iterations is not None or run.config.time_limit_s is not None
        self._whole = self._progress.add_task("training", total=1.0 if has_end else None, note="", start=True)
        self._phases = {
            "games": self._progress.add_task("playing", total=None, note=""),
            "steps": self._progress.add_task("learning", total=None, note=""),
        }
        self._start, self._start_s = perf_counter(), run.counters.total_s

    def __enter__(self) -> TrainingDisplay:
        if not self._is_quiet:
            config, counters = self._run.config, self._run.counters
            self._console.print(
                f"{self._run.game!r}, network {config.network.in_words()}, "
                f"{config.search.num_simulations} simulations ({config.search.root} root), "
                f"{config.selfplay.num_slots} games at once; run {self._run.folder}",
                markup=False,
            )
            self._console.print(_in_short(self._run.strategy.choice), style="dim", markup=False)
            if counters.iteration:
                self._console.print(f"goes on after iteration {counters.iteration}, {counters.games:,} games")
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def on_event(self, kind: str, numbers: dict[str, float]) -> None:
        """Something small has happened: a game has ended, a step was taken."""
        done, total = numbers["done"], numbers["of"]
        note = f"{done:.0f}/{total:.0f} {kind}" + (f", loss {numbers['loss']:.3f}" if "loss" in numbers else "")
        self._progress.update(self._phases[kind], completed=min(done, total), total=total, note=note)
        self._progress.update(self._whole, completed=self._done())

    def _done(self) -> float:
        """Share of the run; within an iteration only the clock goes on."""
        limit = self._run.config.time_limit_s
        elapsed = self._start_s + perf_counter() - self._start
        return max(self._run.progress, min(elapsed / limit, 1.0) if limit else 0.0)

    def on_iteration(self, report: Any) -> None:
        """An iteration has ended."""
        self._progress.update(self._whole, completed=self._done(), note=f"iteration {report.iteration}")
        if self._is_quiet:
            return
        if self._num_lines % _LINES_PER_HEADER == 0:
            self._console.print("  ".join(f"{title:>11}" for _, _, title in _COLUMNS), style="bold")
        self._num_lines += 1
        metrics = {"iteration": report.iteration, **report.metrics}
        cells = [form.format(metrics[name]) if name in metrics else "-" for name, form, _ in _COLUMNS]
        self._console.print("  ".join(f"{cell:>11}" for cell in cells))
        for found in report.findings:
            self._console.print(f"{found.evidence} {found.remedy}", style="yellow", markup=False)

    def finish(self) -> None:
        """Take the bars away before the summary."""
        self._progress.stop()


def _in_short(choice: str) -> str:
    """Why this backend, less what this machine has not: `windrow info` lists that."""
    lines = choice.splitlines()
    kept = [line for line in lines if not (line.startswith("Left out: ") and any(what in line for what in _ABSENT))]
    if len(kept) < len(lines):
        kept.append(f"Left out: {len(lines) - len(kept)} that this machine has not; windrow info lists them.")
    return "\n".join(kept)
