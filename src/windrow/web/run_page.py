"""What the page of a run is told: messages of JSON, the same for `windrow watch` and `windrow report`."""

from __future__ import annotations

import json
import random
import shlex
from collections.abc import Iterator, Sequence
from typing import Any, cast

from windrow.errors import GameError
from windrow.games.core_game import CoreGame
from windrow.games.registry import GAMES
from windrow.nets.config import KINDS, describe_network
from windrow.train.config import TrainConfig
from windrow.web.limits import RequestError
from windrow.web.pictures import draw
from windrow.web.run_data import PlayedGame, RunData
from windrow.web.run_metrics import is_number
from windrow.web.run_openings import describe_openings

_MAX_POINTS = 600
"""Points of one metric; in a longer run each stands for several iterations."""
_MAX_SERIES = 500
"""Metrics that a page is told of; a run of windrow has some dozens."""
_TOTALS = {"games", "positions", "steps", "total_s"}
"""Metrics of the whole run so far, of which no mean is taken."""
_NUM_NEWEST = 60
"""Games in the list, after the samples."""
_NUM_SAMPLED = 256
"""Newest games that the samples are chosen from."""
_MAX_FRAMES = 400
"""Positions shown of one game."""


def describe_run(run: RunData) -> dict[str, Any]:
    """The run in a few words, its settings, and what is missing or damaged."""
    return {
        "type": "run",
        "title": f"{run.settings.get('game', 'game')}: {run.folder.resolve().name}",
        "facts": {name: fact for name, fact in _facts(run).items() if fact},
        "settings": list(_setting_rows(run.settings)),
        "notes": run.notes,
    }


def _facts(run: RunData) -> dict[str, str]:
    network, search, selfplay = run.section("network"), run.section("search"), run.section("selfplay")
    checkpoint, name = run.checkpoint, str(run.settings.get("game"))
    weights = f", {checkpoint.num_weights:,} weights" if checkpoint else ""
    named = [] if run.game is None or run.game.name in GAMES else [run.game.name]
    kind = str(network.get("kind", "resnet"))
    own = [] if kind in KINDS else ["--network", kind]
    return {
        "game": repr(run.game) if run.game else name,
        "network": f"{describe_network(network)}{weights}" if network else "",
        "search": f"{search.get('num_simulations')} simulations, {search.get('root')} root" if search else "",
        "games at once": str(selfplay.get("num_slots", "")),
        "checkpoint": checkpoint.path if checkpoint else "none yet",
        "trained by": f"windrow {checkpoint.version}" if checkpoint else "",
        "go on": shlex.join(["windrow", "train", *named, "--resume", str(run.folder), *own]),
        "play": shlex.join(["windrow", "play", name, str(run.folder), *own]) if checkpoint else "",
    }


def _setting_rows(settings: dict[str, Any]) -> Iterator[list[str]]:
    """Name, value and, where it is another, the default of each setting; those of sections last."""
    defaults = dict(_flatten(TrainConfig().to_dict()))
    for name, value in sorted(_flatten(settings), key=lambda item: "." in item[0]):
        shown, default = _spell(value), _spell(defaults[name]) if name in defaults else ""
        yield [name, shown, "" if shown == default else default]


def _flatten(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict) and value:
            yield from _flatten(cast("dict[str, Any]", value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _spell(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, default=str)


# --- Metrics -----------------------------------------------------------------------------------------------------


def describe_metrics(run: RunData) -> dict[str, Any]:
    """Every metric over the iterations, its newest value, the findings, and notes on what is left out.

    In a long run a point stands for up to `mean_of` iterations: it is their mean, at the last of them.
    """
    notes, series = [*run.metrics_notes], dict[str, list[tuple[int, float]]]()
    # Later games improve earlier ratings, so the curve is the newest fit and not what the metrics said at the time.
    rated = {name for line in run.ratings for name in line}
    for lines, left_out in ((run.metrics, rated), (run.ratings, set[str]())):
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
    newest = sorted(run.games, key=lambda played: -played.number)[:_NUM_NEWEST]
    return {
        "type": "games",
        "samples": [_summarize(label, played) for label, played in choose_games(run.games).items()],
        "newest": [_summarize("", played) for played in newest],
        "openings": describe_openings(run.game, run.games) if run.game is not None else None,
    }


def choose_games(games: Sequence[PlayedGame]) -> dict[str, PlayedGame]:
    """The shortest, the longest, a drawn and a random one of the newest games, by what they are; none of them twice."""
    left = [game for game in games[:_NUM_SAMPLED] if game.actions]
    # A generator of its own, so that the same run gives the same page.
    dice = random.Random(left[0].iteration if left else 0)
    chosen: dict[str, PlayedGame] = {}

    def take(label: str, game: PlayedGame) -> None:
        chosen[label] = game
        left.remove(game)

    if left:
        take("Shortest game", min(left, key=_length))
    if left:
        take("Longest game", max(left, key=_length))
    if drawn := [game for game in left if not any(game.returns)]:
        take("Drawn game", dice.choice(drawn))
    if left:
        take("Random game", dice.choice(left))
    return chosen


def _length(played: PlayedGame) -> int:
    return len(played.actions)


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
    return {"type": "game", **_summarize("", played), "moves": moves, "frames": frames}


def _summarize(label: str, played: PlayedGame) -> dict[str, Any]:
    best = max(played.returns)
    result = "drawn" if not any(played.returns) else f"player {played.returns.index(best) + 1} wins"
    if played.resigned_by >= 0:
        result = f"player {played.resigned_by + 1} resigned"
    return {
        "label": label,
        "number": played.number,
        "iteration": played.iteration,
        "length": len(played.actions),
        "result": result,
    }


def _frames(game: CoreGame, played: PlayedGame) -> list[dict[str, Any]]:
    """The positions of a game; each with the move that led to it and what the search thought before it was made."""
    state = game.unpack_start(played.initial)
    # In a game of chance the first move comes after the first dice, so that no two games begin alike.
    is_start = game.chance != "none" or game.hash(state) == game.hash(game.initial_state())
    first = "The beginning" if is_start else "After random opening moves"
    frames: list[dict[str, Any]] = [{"name": first, "mover": -1, "value": None, **_look(game, state)}]
    values = iter(played.values)
    for move, is_action in zip(played.all_moves[:_MAX_FRAMES], played.is_action, strict=False):
        mover, name = game.to_play(state), game.move_name(state, move)
        value = next(values, None) if is_action else None
        before, state = state, game.apply(state, move)
        if not is_number(value) or (game.num_values > 1 and mover != 0):
            value = None  # with several values, the value of one player says nothing of the others'
        else:
            value = round(float(value if mover == 0 else -value), 3)
        frames.append({"name": name, "mover": mover, "value": value, **_look(game, state, before)})
    return frames


def _look(game: CoreGame, state: Any, before: Any = None) -> dict[str, Any]:
    """A position as the page draws it; nobody can move in it."""
    picture = draw(game, state, before)
    return {"rendering": game.render(state), "picture": {**picture, "places": {}} if "places" in picture else picture}
