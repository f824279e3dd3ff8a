"""The terminal output of training: progress bars and one line per iteration."""

from __future__ import annotations

import math
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from windrow.cli.output import counted, stderr
from windrow.train.progress import simulation_range

if TYPE_CHECKING:
    from windrow.train.config import TrainConfig
    from windrow.train.fit import Forecast, Measurement

_COLUMNS = (
    ("iteration", "{:.0f}", "iter", 4),
    ("games", "{:,.0f}", "games", 8),
    ("games_per_s", "{:.1f}", "games/s", 7),
    ("nn_positions_per_s", "{:,.0f}", "positions/s", 11),
    ("game_length", "{:.1f}", "length", 6),
    ("loss", "{:.3f}", "loss", 6),
    ("value_error", "{:.3f}", "v.err", 5),
    ("policy_entropy", "{:.3f}", "entropy", 7),
    ("solved_policy", "{:.1%}", "solved", 6),
)
"""Metrics with their formats, titles and widths; 80 columns with the time."""
_LINES_PER_HEADER = 25
_LEARNER_BOUND = 1.25
"""Ratio of learning time to self-play time above which learning counts as the bottleneck."""
_ABSENT = ("not installed: pip install", "finds no GPU")


class TrainingDisplay:
    """Progress of a run on stderr; only the lines if stderr is no terminal."""

    def __init__(
        self,
        run: Any,
        header: Sequence[str] = (),
        *,
        is_quiet: bool = False,
        is_verbose: bool = False,
        is_saved: bool = True,
    ) -> None:
        self._run, self._header, self._is_verbose, self._is_saved = run, header, is_verbose, is_saved
        self._console = stderr()
        self._is_quiet = is_quiet
        self._num_lines = 0
        self._progress = Progress(
            TextColumn("{task.description:>9}"),
            BarColumn(),
            TextColumn("{task.fields[note]}"),
            TimeElapsedColumn(),
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
            first, last = simulation_range(config)
            budget = f"{first} to {last} simulations" if first < last else counted(last, "simulation")
            what = f"{self._run.game.name}: {config.network.in_words()} on {self._run.strategy.backend}"
            where = f"run {self._run.folder}" if self._is_saved else "not saved"
            whole = f"{what}, {budget}, {where}"
            fits = self._is_verbose or len(whole) <= self._console.width
            self._console.print(whole if fits else f"{what}, {where}", markup=False)
            if counters.iteration:
                self._console.print(
                    f"continues after iteration {counters.iteration}, {counted(counters.games, 'game')}"
                )
            for line in self._header:
                self._console.print(line, markup=False)
            if self._is_verbose:
                at_once = counted(config.selfplay.num_slots, "game")
                self._console.print(
                    f"{self._run.game!r}, {config.search.root} root, {at_once} at once, "
                    f"{config.games_per_iteration} per iteration\n{_in_short(self._run.strategy.choice)}",
                    style="dim",
                    markup=False,
                )
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def on_event(self, kind: str, numbers: dict[str, float]) -> None:
        """Update the bars: a game has ended or a learning step was taken."""
        done, total = numbers["done"], numbers["of"]
        note = f"{done:.0f}/{total:.0f} {kind}" + (f", loss {numbers['loss']:.3f}" if "loss" in numbers else "")
        self._progress.update(self._phases[kind], completed=min(done, total), total=total, note=note)
        self._progress.update(self._whole, completed=self._done(), note=self._time_left())

    def _done(self) -> float:
        """Share of the run that is done; within an iteration it follows the clock."""
        limit = self._run.config.time_limit_s
        elapsed = self._start_s + perf_counter() - self._start
        return max(self._run.progress, min(elapsed / limit, 1.0) if limit else 0.0)

    def on_iteration(self, report: Any) -> None:
        """Print the line of an iteration that has ended."""
        self._progress.update(self._whole, completed=self._done(), note=self._time_left())
        if self._is_quiet:
            return
        is_timed = self._time_left() != ""
        if self._num_lines % _LINES_PER_HEADER == 0:
            titles = [f"{title:>{width}}" for _, _, title, width in _COLUMNS]
            self._console.print(" ".join([*titles, f"{'left' if is_timed else 'time':>7}"]), style="bold")
        self._num_lines += 1
        metrics = {"iteration": report.iteration, **report.metrics}
        cells = [
            f"{form.format(metrics[name]) if name in metrics else '-':>{width}}" for name, form, _, width in _COLUMNS
        ]
        time = self._time_left().partition(" ")[0] if is_timed else clock(report.metrics["total_s"])
        self._console.print(" ".join([*cells, f"{time:>7}"]))
        if report.rating is not None:
            self._console.print(str(report.rating), style="green", markup=False)
        for found in report.findings:
            if found.name == "no_steps" and self._run.is_over:
                continue  # the command ends with it
            self._console.print(f"{found.evidence} {found.remedy}", style="yellow", markup=False)

    def _time_left(self) -> str:
        """Time until the run ends: exact with a time limit, otherwise estimated from the run so far."""
        done, counters, config = self._done(), self._run.counters, self._run.config
        if config.time_limit_s is not None:
            return f"{clock(max(config.time_limit_s * (1 - done), 0.0))} left"
        if config.num_iterations is not None and counters.total_s and done:
            return f"{clock(counters.total_s * (1 / done - 1))} left"
        return ""


def _in_short(choice: str) -> str:
    """Why this backend was chosen; the backends this machine lacks are only counted."""
    lines = choice.splitlines()
    kept = [line for line in lines if not (line.startswith("Left out: ") and any(what in line for what in _ABSENT))]
    if len(kept) < len(lines):
        missing = counted(len(lines) - len(kept), "backend is", "backends are")
        kept.append(f"{missing} not available on this machine (windrow info lists them).")
    return "\n".join(kept)


def clock(seconds: float) -> str:
    """A duration as `1:05` or `2:03:04`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def describe_forecast(
    expected: Forecast, measured: Measurement, config: TrainConfig, *, num_changed: int = 0
) -> list[str]:
    """Two lines: the forecast of a run, and its bottleneck.

    num_changed: settings of a shipped config that were changed to fit the run's time; --verbose lists them.
    """
    lines = [
        f"forecast: {counted(expected.iterations, 'iteration')}, {_short(expected.games, 'game')}, "
        f"{_short(expected.positions, 'position')}, learning from {clock(expected.learning_begins_s)}"
    ]
    what, remedy = _bottleneck(expected, measured)
    if measured.is_endless:
        lines.append("random games do not end; if the network's games do not either: --set selfplay.max_plies=500")
    elif expected.learning_begins_s > 0.2 * (config.time_limit_s or math.inf):
        lines.append(f"this time is short for the game; try --time {math.ceil(expected.learning_begins_s / 3)}m")
    elif num_changed:
        lines.append(f"{what}; {counted(num_changed, 'setting')} adapted to --time (-v)")
    else:
        lines.append(f"{what}{remedy}")
    return lines


def _bottleneck(expected: Forecast, measured: Measurement) -> tuple[str, str]:
    """The bottleneck of a run and its remedy."""
    ratio, share = expected.learning_ratio, expected.rules_share
    if ratio > _LEARNER_BOUND:
        return f"learning takes {ratio:.1f}x as long as self-play", "; lower samples_per_position"
    if share < 0.5:
        return f"the network takes {1 - share:.0%} of self-play", "; a smaller one is faster"
    if measured.is_python:
        return f"Python rules and trees take {share:.0%} of self-play", "; compile: docs/your-own-game.md"
    return f"rules and trees take {share:.0%} of self-play", ", the network the rest"


def _short(count: float, noun: str) -> str:
    """A short count such as `1 game`, `7,660 games`, `308k games` or `2.5M games`."""
    if count < 1e4:
        return counted(round(count), noun)
    return f"{count / 1e3:.0f}k {noun}s" if count < 1e6 else f"{count / 1e6:.1f}M {noun}s"
