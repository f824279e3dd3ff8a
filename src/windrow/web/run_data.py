"""What the folder of a run says, read for its page: only the settings must be there, and what is missing is noted."""

from __future__ import annotations

import math
import os.path
import re
import warnings
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from windrow.errors import CheckpointError, ConfigError, GameError
from windrow.games.core_game import CoreGame
from windrow.settings import read_file
from windrow.train.config import game_of_run
from windrow.train.diagnosis import Finding, read_findings
from windrow.train.records import GameLog, GameRecord
from windrow.web.run_metrics import read_numbers

METRICS = "metrics.jsonl"
RATINGS = "strength/ratings.jsonl"
_MAX_GAMES = 2000
"""Games kept at most, the newest: enough for shares of moves within a percent or two."""
_MAX_DEPTH = 16
"""Levels of sections and lists in config.json."""
_LOG_NAME = re.compile(r"[0-9]{1,12}")


@dataclass(frozen=True, slots=True)
class PlayedGame:
    """A game without what it is learned from, which is most of its bytes.

    iteration: in which it ended.
    number: which game of the run.
    initial: the state in which the first move was played, packed.
    actions: [T] the moves.
    all_moves: the same with what chance did between them.
    is_action: which of those are players'.
    values: [T] what the search thought of the position, for the player to move.
    returns: [players] the result.
    resigned_by: who resigned, or -1.
    """

    iteration: int
    number: int
    initial: bytes
    actions: list[int]
    all_moves: list[int]
    is_action: list[bool]
    values: list[float]
    returns: list[float]
    resigned_by: int


@dataclass(frozen=True, slots=True)
class CheckpointFacts:
    """The newest checkpoint.

    path: its folder, from the run's.
    version: of windrow, with the commit where it is known.
    num_weights: of the network.
    """

    path: str
    version: str
    num_weights: int


@dataclass(slots=True)
class RunData:
    """A run, as far as its folder tells.

    folder: its folder.
    settings: what is in config.json.
    game: the game; None if this windrow cannot make it.
    metrics: one dictionary per iteration, finite numbers only, each with "iteration".
    ratings: one dictionary per rated checkpoint, of the same kind.
    findings: what the diagnosis found wrong.
    games: the newest games, the last to end first.
    checkpoint: the newest; None if there is none that can be used.
    notes: what is missing or damaged, in sentences; what is wrong with the metrics is in `metrics_notes`.
    """

    folder: Path
    settings: dict[str, Any]
    game: CoreGame | None = None
    metrics: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    ratings: list[dict[str, float]] = field(default_factory=list[dict[str, float]])
    findings: list[Finding] = field(default_factory=list[Finding])
    games: list[PlayedGame] = field(default_factory=list[PlayedGame])
    checkpoint: CheckpointFacts | None = None
    notes: list[str] = field(default_factory=list[str])
    metrics_notes: list[str] = field(default_factory=list[str])

    def read_metrics(self) -> None:
        """Read the metrics, ratings and findings again, which change with every iteration."""
        self.metrics, notes = read_numbers(self.folder / METRICS)
        self.ratings, more = read_numbers(self.folder / RATINGS)
        self.metrics_notes = notes + more
        self.findings = read_findings(self.folder)

    def section(self, name: str) -> dict[str, Any]:
        """One section of the settings; empty if it is not there."""
        found = self.settings.get(name)
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def read_run(folder: Path, game: CoreGame | None = None) -> RunData:
    """All that the page shows of a run.

    Args:
        folder: the run's.
        game: what is played. Without it a game that does not come with windrow is not made, since code that a file
            names is not imported, and the run's games and checkpoint are not shown.

    Raises:
        ConfigError: the folder holds no run.
    """
    if not os.path.isdir(folder):  # also where nobody may look
        raise ConfigError(f"there is no run in {folder}: it is not a folder. Name the folder of one")
    path = folder / "config.json"
    if not os.path.lexists(path):
        raise ConfigError(f"{folder} holds no run: there is no config.json in it. Name the folder of one")
    run = RunData(folder, read_file(path))
    if not _is_shallow(run.settings, _MAX_DEPTH):
        raise ConfigError(f"{path} cannot be read: its settings have more than {_MAX_DEPTH} levels")
    try:
        run.game = game_of_run(folder, run.settings.get("game"), run.section("game_options"), game)
    except GameError as error:
        run.notes.append(f"No games and no checkpoint are shown, for {path.name} cannot be used: {error}")
    run.read_metrics()
    _read_checkpoint(run)
    _read_games(run)
    return run


def _is_shallow(value: Any, levels: int) -> bool:
    """Whether what JSON holds has at most so many levels, so that it can be shown without recursing deeply."""
    items = list[Any]()
    if isinstance(value, dict | list):
        items = list(cast("dict[str, Any]", value).values() if isinstance(value, dict) else cast("list[Any]", value))
    return levels >= 0 and all(_is_shallow(item, levels - 1) for item in items)


def _read_checkpoint(run: RunData) -> None:
    try:
        from windrow.train.checkpoint import describe_model, latest_checkpoint
    except ModuleNotFoundError as error:
        run.notes.append(f"Checkpoints are not looked at, for {error.name} is not installed.")
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if run.game is not None and (path := latest_checkpoint(run.folder)) is not None:
                model = describe_model(path, game=run.game)
                version, commit = model.metadata.get("windrow"), model.metadata.get("commit")
                run.checkpoint = CheckpointFacts(
                    path=path.relative_to(run.folder).as_posix(),
                    version=f"{version} ({_shorten(str(commit))})" if commit else str(version),
                    num_weights=model.num_weights,
                )
        except Exception as error:  # whatever the files hold, the rest of the run can be shown
            run.notes.append(f"The newest checkpoint cannot be used: {error}")
    run.notes += [text[:1].upper() + text[1:] for text in (str(warning.message) for warning in caught)]


def _shorten(commit: str) -> str:
    revision, space, rest = commit.partition(" ")
    return f"{revision[:10]}{space}{rest}"


def _read_games(run: RunData) -> None:
    """The newest games, those of a damaged log as far as it is whole."""
    paths = [path for path in (run.folder / "games").glob("*.games") if _LOG_NAME.fullmatch(path.stem)]
    num_foreign = 0
    for path in sorted(paths, key=lambda path: int(path.stem), reverse=True):
        if len(run.games) >= _MAX_GAMES:
            break
        games: deque[PlayedGame] = deque(maxlen=_MAX_GAMES)
        try:
            for record in GameLog.iterate(path):
                if _is_possible(record, run.game):
                    games.append(_without_targets(record, int(path.stem)))
                else:
                    num_foreign += 1
        except CheckpointError as error:
            run.notes.append(f"Some games are left out: {error}")
        run.games += reversed(games)
    if num_foreign:
        run.notes.append(f"{num_foreign} of the games in the logs are left out: they have no result of this game.")


def _is_possible(record: GameRecord, game: CoreGame | None) -> bool:
    """Whether a record has a result that the game can have."""
    returns: list[float] = record.returns.tolist()
    num_players = max(len(returns), 1) if game is None else game.num_players
    is_result = len(returns) == num_players and all(map(math.isfinite, returns))
    return is_result and -1 <= record.resigned_by < num_players


def _without_targets(record: GameRecord, iteration: int) -> PlayedGame:
    all_moves, is_action = record.all_moves()
    return PlayedGame(
        iteration=iteration,
        number=record.number,
        initial=record.initial,
        actions=record.actions.tolist(),
        all_moves=all_moves.tolist(),
        is_action=is_action.tolist(),
        values=record.root_value.tolist(),
        returns=record.returns.tolist(),
        resigned_by=record.resigned_by,
    )
