"""How far a run is, how long it will take, and why it plays fewer games per second than it did at first."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from windrow.train.run_lock import FILE as LOCK
from windrow.train.run_lock import is_trainer_alive
from windrow.web.run_data import METRICS, RunData
from windrow.web.run_metrics import is_number

_PACE_OVER = 10
"""Newest iterations whose mean duration is expected of the next ones."""
_MIN_ITERATIONS = 5
"""Iterations with games from which their speed is explained."""
_MIN_CHANGE = 1.1
"""Factor by which a number must change to be named as a cause."""

Lines = Sequence[dict[str, float]]


def describe_progress(run: RunData) -> dict[str, Any]:
    """How far the run is.

    Returns:
        iteration, total_s: of the newest line of the metrics; 0 without one.
        share: how much of the run that is, from 0 to 1; None for a run without an end.
        left_s: seconds until the end, from now on; None if that is not known.
        age_s: seconds since the line was written; None if that is not known.
        pace_s: mean duration of the newest iterations.
        is_alive: whether the process that trained exists; None if that is not known.
    """
    newest = run.metrics[-1] if run.metrics else {}
    iteration, total_s = newest.get("iteration", 0.0), max(newest.get("total_s", 0.0), 0.0)
    recent = [line["total_s"] for line in run.metrics[-_PACE_OVER - 1 :] if "total_s" in line]
    pace_s = max((recent[-1] - recent[0]) / (len(recent) - 1), 0.0) if len(recent) > 1 else total_s
    shares, left = list[float](), list[float]()
    if (limit_s := _limit(run, "time_limit_s")) is not None:
        shares.append(total_s / limit_s)
        left.append(limit_s - total_s)
    if (num_iterations := _limit(run, "num_iterations")) is not None:
        shares.append(iteration / num_iterations)
        left += [(num_iterations - iteration) * pace_s] if pace_s else []
    age_s = _age(run)
    return {
        "iteration": iteration,
        "total_s": total_s,
        "share": min(max(shares), 1.0) if shares else None,
        "left_s": max(min(left) - (age_s or 0.0), 0.0) if left else None,
        "age_s": age_s,
        "pace_s": pace_s,
        "is_alive": is_trainer_alive(run.folder),
    }


def _limit(run: RunData, name: str) -> float | None:
    limit = run.settings.get(name)
    return float(limit) if is_number(limit) and limit > 0 else None


def _age(run: RunData) -> float | None:
    """Seconds since the metrics were written, or since training began if that was later."""
    times = list[float]()
    for name in (METRICS, LOCK):
        with suppress(OSError):
            times.append((run.folder / name).stat().st_mtime)
    return max(time.time() - max(times), 0.0) if times else None


# --- Speed -------------------------------------------------------------------------------------------------------


def explain_speed(run: RunData) -> str:
    """Why games per second fell from the first iterations to the newest, in a sentence; empty if they did not."""
    lines = [line for line in run.metrics if line.get("games_per_s", 0.0) > 0 and line.get("selfplay_s", 0.0) > 0]
    if len(lines) < _MIN_ITERATIONS:
        return ""
    size = len(lines) // _MIN_ITERATIONS
    first, last = _speeds(lines[:size]), _speeds(lines[-size:])

    def change(name: str, *, is_fall: bool = False) -> str:
        """From which value to which, if it is a change that makes games slower."""
        before, after = first.get(name, 0.0), last.get(name, 0.0)
        larger, smaller = (before, after) if is_fall else (after, before)
        return f"from {_spell(before)} to {_spell(after)}" if larger > _MIN_CHANGE * smaller > 0 else ""

    if not (fall := change("games_per_s", is_fall=True)):
        return ""
    causes = list[str]()
    if longer := change("game_length"):
        causes.append(f"games became longer ({longer} moves)")
    if deeper := change("simulations_per_move"):
        is_planned = _limit(run, "early_simulations") is not None
        causes.append(f"moves got more simulations ({deeper}{', as early_simulations plans' if is_planned else ''})")
    if slower := change("simulations_per_s", is_fall=True):
        why = "the machine was busier, or more of them needed the network"
        causes.append(f"self-play ran fewer simulations per second ({slower}; {why})")
    because = " because " + " and ".join(causes) if causes else "; the metrics do not say why"
    return f"From the first to the last fifth of the iterations, games per second fell {fall}{because}."


def _speeds(lines: Lines) -> dict[str, float]:
    """Speeds of some iterations together, and what explains them."""
    names = ("games_per_s", "moves_per_s", "simulations_per_s")
    seconds = max(sum(line["selfplay_s"] for line in lines), 1e-9)
    speeds = {name: sum(line.get(name, 0.0) * line["selfplay_s"] for line in lines) / seconds for name in names}
    games = [(line["games_per_s"] * line["selfplay_s"], line.get("game_length", 0.0)) for line in lines]
    num_games = max(sum(count for count, _ in games), 1e-9)
    speeds["game_length"] = sum(count * length for count, length in games) / num_games
    return speeds | simulations_per_move(speeds)


def simulations_per_move(line: dict[str, float]) -> dict[str, float]:
    """The mean simulations of a move, by name, if the line of metrics gives them."""
    moves, simulations = line.get("moves_per_s", 0.0), line.get("simulations_per_s", 0.0)
    ratio = simulations / moves if moves > 0 else 0.0
    return {"simulations_per_move": ratio} if is_number(ratio) and ratio > 0 else {}


def _spell(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
