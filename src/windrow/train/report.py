"""A run as one page: strength, losses and speed over time, the opening tree, some games, the settings.

    write_report("runs/connect4")      # runs/connect4/report.html

The page needs nothing but itself: style, drawings and the few lines of script are in it.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.games.registry import GAMES
from windrow.train.config import TrainConfig
from windrow.train.disk import replace_file
from windrow.train.report_charts import Chart, draw_chart, show_time
from windrow.train.report_data import RunData, read_run
from windrow.train.report_games import draw_games
from windrow.train.report_html import Html, join, make_table, tag
from windrow.train.report_openings import draw_openings

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
"""What a browser lets the page do: use what is in it, and ask nobody for more."""


def write_report(run_folder: str | Path, out: str | Path | None = None, *, game: CoreGame | None = None) -> Path:
    """Write a run's report, one HTML file that needs nothing else; returns its path.

    What the run does not have yet, or what is damaged in it, the page says in words. A run that is going on may be
    reported on.

    Args:
        run_folder: the run.
        out: the file; `report.html` in the run's folder if None.
        game: what is played; needed to show the games of a game that does not come with windrow.

    Raises:
        ConfigError: the folder holds no run.
        CheckpointError: the file cannot be written.
    """
    folder = Path(run_folder)
    path = folder / "report.html" if out is None else Path(out)
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: name a file, such as {path / 'report.html'}")
    replace_file(path, make_page(read_run(folder, game)))
    return path


def make_page(run: RunData) -> str:
    """The whole page."""
    name = f"{run.settings.get('game', 'game')}: {run.folder.resolve().name}"
    files = Path(__file__).parent
    style, script = (Html((files / f"report.{kind}").read_text(encoding="utf-8")) for kind in ("css", "js"))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("link", rel="icon", href="data:,"),
        tag("title", f"{name} — windrow"),
        tag("style", style),
    )
    body = tag("body", tag("main", _draw_header(run, name), _draw_sections(run)), tag("script", script))
    page = f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"
    return page.encode(errors="replace").decode()  # JSON and names of folders can hold halves of characters


# --- Header ------------------------------------------------------------------------------------------------------


def _draw_header(run: RunData, name: str) -> Html:
    facts = [tag("div", tag("dt", label), tag("dd", value)) for label, value in _facts(run).items()]
    notes = [tag("li", note) for note in (*run.notes, *run.metrics_notes)]
    written = f"Written {datetime.now().astimezone():%Y-%m-%d %H:%M %Z} by windrow {version('windrow')}."
    return tag(
        "header",
        tag("h1", name),
        tag("p", written, class_="caption"),
        tag("dl", facts, class_="facts"),
        tag("ul", notes, class_="notes") if notes else None,
    )


def _facts(run: RunData) -> dict[str, str]:
    """The run in a few words each."""
    last, network, search = run.last, run.section("network"), run.section("search")
    checkpoint = run.checkpoint
    weights = f", {checkpoint.num_weights:,} weights" if checkpoint else ""
    games = (
        f"{last['games']:,.0f}" if "games" in last else f"{len(run.games):,} in the logs" if run.games else "none yet"
    )
    named = [] if run.game is None or run.game.name in GAMES else [run.game.name]
    facts = {
        "game": repr(run.game) if run.game else str(run.settings.get("game")),
        "network": f"ResNet {network.get('channels')}x{network.get('blocks')}{weights}",
        "search": f"{search.get('num_simulations')} simulations, {search.get('root')} root",
        "iterations": f"{last['iteration']:.0f}" if last else "none yet",
        "games": games,
        "time": show_time(last["total_s"]) if "total_s" in last else "none yet",
        "strength": f"{last['solved_policy']:.1%} of solved positions right" if "solved_policy" in last else "",
        "checkpoint": checkpoint.path if checkpoint else "none yet",
        "trained by": f"windrow {checkpoint.version}" if checkpoint else "",
        "go on": shlex.join(["windrow", "train", *named, "--resume", str(run.folder)]),
        "play": shlex.join(["windrow", "play", str(run.settings.get("game")), str(run.folder)]) if checkpoint else "",
    }
    return {label: value for label, value in facts.items() if value}


# --- Sections ----------------------------------------------------------------------------------------------------


def _decimals(value: float) -> str:
    return f"{value:.3f}"


def _share(value: float) -> str:
    return f"{value:.1%}"


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


_CHARTS = (
    Chart(
        "Strength",
        "Share of solved positions in which the network's first choice, without a search, keeps the position's result.",
        {"solved_policy": "right first choices"},
        _share,
        has_zero=False,
        missing="There is no quick test of strength in this run: the game has none, or evaluate_every is 0. `windrow "
        "evaluate` plays the run against other players.",
    ),
    Chart(
        "Losses",
        "What learning makes smaller: policy against the search's, value against the game's result; mean of each "
        "iteration.",
        {"loss": "loss", "policy_loss": "policy", "value_loss": "value"},
        _decimals,
        missing="Nothing is learned yet: that begins when min_positions moves are in memory.",
    ),
    Chart(
        "Error of the value",
        "Mean distance between the network's value and what it should be; values are from -1 to 1.",
        {"value_error": "value error"},
        _decimals,
        has_zero=False,
        missing="Nothing is learned yet.",
    ),
    Chart(
        "Entropy of the policy",
        "How undecided the network is, in nats: 0 is one move for certain.",
        {"policy_entropy": "policy entropy"},
        _decimals,
        has_zero=False,
        missing="Nothing is learned yet.",
    ),
    Chart("Length of games", "Moves, random ones at the start not counted.", {"game_length": "moves"}, _rate),
    Chart(
        "Results of games",
        "Shares of the games of each iteration.",
        {"first_player_wins": "first player wins", "draws": "draws"},
        _share,
    ),
    Chart(
        "Repeated and resigned games",
        "Shares of games that were move for move an earlier one, and that were given up.",
        {"repeated_games": "repeated", "resigned_games": "resigned"},
        _share,
    ),
    Chart("Games a second", "Finished in self-play.", {"games_per_s": "games/s"}, _rate),
    Chart(
        "Network positions a second",
        "Evaluated in self-play, what a cache knew not counted.",
        {"nn_positions_per_s": "positions/s"},
        _rate,
    ),
)

_OPENINGS = (
    "The first moves of the newest {count} games, the most played first. Score: for the player who moves, a draw is "
    "half a win. A position counts however it was reached; random opening moves do not count."
)
_GAMES = (
    "Of the newest ones. Below each position the move, and the search's value for the player who made it, from -1 to 1."
)


def _draw_sections(run: RunData) -> Html:
    """What follows the header: charts, openings, games, settings."""
    if run.metrics:
        charts = tag("div", [draw_chart(chart, run.metrics) for chart in _CHARTS], class_="charts")
        how = "Below each chart: the iteration, and the time since the start."
    else:
        charts = tag("p", "No iteration has finished yet, so there is nothing to draw.", class_="missing")
        how = ""
    parts = [_section("Over time", how, charts)]
    if run.game is not None:
        openings, games = (_OPENINGS.format(count=f"{len(run.games):,}"), _GAMES) if run.games else ("", "")
        parts.append(_section("Openings", openings, draw_openings(run.game, run.games)))
        parts.append(_section("Games", games, draw_games(run.game, run.games)))
    table = make_table(["setting", "value", "default, where it differs"], _setting_rows(run.settings))
    parts.append(_section("Settings", "", tag("div", table, class_="scroll settings")))
    return join(parts)


def _section(title: str, caption: str, content: Html) -> Html:
    return tag("section", tag("h2", title), tag("p", caption, class_="caption") if caption else None, content)


def _setting_rows(settings: dict[str, Any]) -> Iterator[list[str]]:
    """Name, value and, where it is another, the default of each setting; those of sections last."""
    defaults = dict(_flatten(TrainConfig().to_dict()))
    rows = sorted(_flatten(settings), key=lambda item: "." in item[0])
    for name, value in rows:
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
