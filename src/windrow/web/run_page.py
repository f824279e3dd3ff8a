"""What the page of a run is told: messages of JSON, the same for `windrow watch` and `windrow report`."""

from __future__ import annotations

import shlex
from itertools import islice
from typing import Any

from windrow.errors import GameError
from windrow.games.core_game import CoreGame
from windrow.games.registry import GAMES
from windrow.nets.config import KINDS, describe_network
from windrow.train.config import spell_game
from windrow.web.limits import RequestError
from windrow.web.pictures import draw
from windrow.web.run_data import PlayedGame, RunData
from windrow.web.run_openings import describe_openings
from windrow.web.run_progress import describe_progress, explain_speed, simulations_per_move
from windrow.web.run_samples import choose_games, is_drawn, steps
from windrow.web.run_settings import describe_settings

_MAX_POINTS = 600
"""Points of one metric; in a longer run each stands for several iterations."""
_MAX_SERIES = 500
"""Metrics that a page is told of; a run of windrow has some dozens."""
_TOTALS = {"games", "positions", "steps", "total_s"}
"""Metrics of the whole run so far, of which no mean is taken."""
_NUM_NEWEST = 60
"""Games in the list, after the samples."""
_MAX_FRAMES = 400
"""Positions shown of one game."""


def describe_run(run: RunData) -> dict[str, Any]:
    """The run in a few words, commands for it, its settings, and what is missing or damaged."""
    return {
        "type": "run",
        "title": f"{_spell_game(run)}: {run.folder.resolve().name}",
        "facts": {name: fact for name, fact in _facts(run).items() if fact},
        "commands": _commands(run),
        "settings": describe_settings(run),
        "notes": run.notes,
    }


def _facts(run: RunData) -> dict[str, str]:
    network, search, selfplay = run.section("network"), run.section("search"), run.section("selfplay")
    checkpoint = run.checkpoint
    weights = f", {checkpoint.num_weights:,} weights" if checkpoint else ""
    return {
        "game": repr(run.game) if run.game else str(run.settings.get("game")),
        "network": f"{describe_network(network)}{weights}" if network else "",
        "search": f"{search.get('num_simulations')} simulations, {search.get('root')} root" if search else "",
        "games at once": str(selfplay.get("num_slots", "")),
        "checkpoint": checkpoint.path if checkpoint else "none yet",
        "trained by": f"windrow {checkpoint.version}" if checkpoint else "",
    }


def _commands(run: RunData) -> dict[str, str]:
    """What to do next with the run, as commands to copy."""
    folder, name = str(run.folder), _spell_game(run)
    is_own = run.game is not None and run.game.name not in GAMES
    kind = str(run.section("network").get("kind", "resnet"))
    network = [] if kind in KINDS else ["--network", kind]
    resume, play = ["train", *([name] if is_own else []), "--resume", folder], ["play", name, "--checkpoint", folder]
    commands = {"play against it": play} if run.checkpoint else {}
    commands |= {"resume training": resume}
    return {what: shlex.join(["windrow", *command, *network]) for what, command in commands.items()}


def _spell_game(run: RunData) -> str:
    name = str(run.settings.get("game", "game"))
    return name if run.game is None else spell_game(name, run.section("game_options"))


# --- Metrics -----------------------------------------------------------------------------------------------------


def describe_metrics(run: RunData) -> dict[str, Any]:
    """Every metric over the iterations, how far the run is, the findings, and notes on what is left out.

    In a long run a point stands for up to `mean_of` iterations: it is their mean, at the last of them.
    """
    notes, series = [*run.metrics_notes], dict[str, list[tuple[int, float]]]()
    # Later games improve earlier ratings, so the curve is the newest fit and not what the metrics said at the time.
    rated = {name for line in run.ratings for name in line}
    metrics = [{**line, **simulations_per_move(line)} for line in run.metrics]
    for lines, left_out in ((metrics, rated), (run.ratings, set[str]())):
        for line in lines:
            for name in line.keys() - left_out - {"iteration"}:
                series.setdefault(name, []).append((int(line["iteration"]), line[name]))
    names = sorted(series)
    if len(names) > _MAX_SERIES:
        notes.append(f"{_MAX_SERIES} of {len(names)} metrics are shown.")
        names = names[:_MAX_SERIES]
    return {
        "type": "metrics",
        "series": {name: _thin(series[name], is_total=name in _TOTALS) for name in names},
        "newest": {name: series[name][-1][1] for name in names},
        "progress": describe_progress(run),
        "speed": explain_speed(run),
        "findings": [finding.to_dict() for finding in run.findings],
        "mean_of": max([1, *(_group_size(len(series[name])) for name in names)]),
        "notes": notes,
    }


def _group_size(num_points: int) -> int:
    return -(-num_points // _MAX_POINTS)


def _thin(pairs: list[tuple[int, float]], *, is_total: bool) -> list[list[float]]:
    """At most `_MAX_POINTS` points: means of as many in a row as that takes, named by the last of them."""
    size = _group_size(len(pairs))
    groups = [pairs[start : start + size] for start in range(0, len(pairs), size)]
    if is_total:
        return [list(group[-1]) for group in groups]
    return [[group[-1][0], sum(value for _, value in group) / len(group)] for group in groups]


# --- Games -------------------------------------------------------------------------------------------------------


def describe_games(run: RunData) -> dict[str, Any]:
    """Games to click through, some chosen ones and the newest; and the opening tree."""
    if run.game is None:
        return {"type": "games", "samples": [], "newest": [], "openings": None}
    samples = choose_games(run.game, run.games)
    return {
        "type": "games",
        "samples": [
            {"title": sample.title, "reason": sample.reason, "frame": sample.frame, **_summarize(sample.game)}
            for sample in samples
        ],
        "newest": [_summarize(played) for played in run.games[:_NUM_NEWEST]],
        "openings": describe_openings(run.game, run.games),
    }


def describe_game(run: RunData, number: int) -> dict[str, Any]:
    """One game, position by position; values are for the first player.

    Raises:
        RequestError: there is no such game among the newest, or it cannot be played by the rules of the run's game.
    """
    played = next((played for played in run.games if played.number == number), None)
    if played is None or run.game is None:
        raise RequestError(f"game {number} is not among the newest of this run")
    try:
        moves = run.game.moves_to_text(played.all_moves, run.game.unpack_start(played.initial))
        frames = _frames(run.game, played)
    except (GameError, ValueError, IndexError) as error:
        reason = str(error).partition("\n")[0]
        raise RequestError(f"game {number} does not fit the game in the run's settings: {reason}") from error
    return {"type": "game", **_summarize(played), "moves": moves, "frames": frames}


def _summarize(played: PlayedGame) -> dict[str, Any]:
    returns, best = played.returns, max(played.returns)
    winners = " and ".join(str(player + 1) for player, value in enumerate(returns) if value == best)
    result = f"player{'s' if ' ' in winners else ''} {winners} {'win' if ' ' in winners else 'wins'}"
    if played.resigned_by >= 0:
        result = f"player {played.resigned_by + 1} resigned"
    elif is_drawn(played):
        result = "drawn"
    elif len(returns) == 1:
        result = f"result {best:.3g}"
    return {"number": played.number, "iteration": played.iteration, "length": len(played.actions), "result": result}


def _frames(game: CoreGame, played: PlayedGame) -> list[dict[str, Any]]:
    """The positions of a game; each with the move that led to it and what the search thought before it was made."""
    start = game.unpack_start(played.initial)
    # In a game of chance the first move comes after the first dice, so that no two games begin alike.
    is_start = game.chance != "none" or game.hash(start) == game.hash(game.initial_state())
    first = "The beginning" if is_start else "After random opening moves"
    frames: list[dict[str, Any]] = [{"name": first, "mover": -1, "value": None, **_look(game, start)}]
    for step in islice(steps(game, played), _MAX_FRAMES):
        name, value = game.move_name(step.before, step.move), None if step.value is None else round(step.value, 3)
        frames.append({"name": name, "mover": step.mover, "value": value, **_look(game, step.after, step.before)})
    return frames


def _look(game: CoreGame, state: Any, before: Any = None) -> dict[str, Any]:
    """A position as the page draws it; nobody can move in it."""
    picture = draw(game, state, before)
    return {"rendering": game.render(state), "picture": {**picture, "places": {}} if "places" in picture else picture}
