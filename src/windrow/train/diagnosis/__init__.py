"""A diagnosis of training runs. It watches every run, and also reads finished ones.

    for finding in diagnose_run("runs/hex"):
        print(finding.evidence, finding.remedy)

It reads what every run has, whatever engine plays: the settings, the metrics, the newest games, the network. A run that
keeps no games, as on a device, is judged by its metrics alone. `CHECKS` are functions of that `Evidence`, the same for
a run that goes on and for one that has ended; their thresholds are set so that healthy runs have no findings.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from windrow.errors import CheckpointError, ConfigError, GameError
from windrow.games.core_game import CoreGame
from windrow.nets.config import KINDS, spell_network
from windrow.train.config import TrainConfig, game_of_run
from windrow.train.diagnosis import games, learning
from windrow.train.diagnosis.evidence import Evidence, newest_games
from windrow.train.diagnosis.finding import FINDINGS, Finding, read_findings, write_findings
from windrow.train.diagnosis.value import value_by_mover
from windrow.train.metrics import read_metrics

__all__ = [
    "CHECKS",
    "FINDINGS",
    "Diagnosis",
    "Evidence",
    "Examination",
    "Finding",
    "diagnose",
    "diagnose_run",
    "examine_run",
    "read_findings",
]

CHECKS: tuple[Callable[[Evidence], Finding | None], ...] = (
    *(learning.no_steps, learning.diverged, learning.flat_loss, learning.idle_search, learning.collapsed_policy),
    *(games.repeated_games, games.no_exploration, games.one_result, games.cut_games),
    *(value_by_mover, learning.constant_value, learning.reused_positions, learning.small_replay),
)
"""All checks, the most urgent first. Each gives a finding or None."""
_MAX_SHARE = 0.01
"""Share of a run's time that reading games and evaluating positions may take."""
_FIRST_LOOK_S = 0.1
"""How long the first look at the games is expected to take."""


def diagnose(run: Evidence) -> list[Finding]:
    """The problems of a run, the most urgent first."""
    iteration = int(run.metrics[-1]["iteration"]) if run.metrics else 0
    return [replace(found, iteration=iteration) for check in CHECKS if (found := check(run)) is not None]


@dataclass(frozen=True, slots=True)
class Examination:
    """Result of examining a run's folder."""

    findings: list[Finding]
    """The problems found, the most urgent first."""
    not_examined: list[str]
    """What could not be examined, each with the reason and the remedy, in a sentence."""


def diagnose_run(folder: str | Path, *, game: CoreGame | None = None, network: object = None) -> list[Finding]:
    """The findings of `examine_run` for the run in `folder`."""
    return examine_run(folder, game=game, network=network).findings


def examine_run(folder: str | Path, *, game: CoreGame | None = None, network: object = None) -> Examination:
    """Look for problems in the run in `folder`, as far as it has come.

    Args:
        folder: folder of the run.
        game: the game. It is needed for a game that is not built in; without it, positions are not examined.
        network: the class of the run's network, or its place such as "mynet.py:Net". It is needed for a network that is
            not built in; without it, values are not examined. Several may be given.

    Raises:
        ConfigError: the folder holds no run.
        CheckpointError: the metrics, games or network cannot be read, or `network` names another one.
    """
    folder = Path(folder)
    path = folder / "config.json"
    if not path.exists():
        raise ConfigError(f"{folder} is not a run: it has no config.json. Name the folder of a run")
    config, left_out = TrainConfig.read(path), list[str]()
    try:
        game = game_of_run(folder, config.game, config.game_options, game)
    except GameError:
        if game is not None:
            raise
    records, net = newest_games(folder), None
    if not records:
        left_out.append("The games and values were not examined: the run has kept no games.")
    elif game is None:
        left_out.append(
            f"The values were not examined: {config.game:.100} is not a built-in game, and windrow imports no code "
            f"that a file names. Name the game: --game {config.game:.100}"
        )
    elif config.network.kind not in KINDS and network is None:
        left_out.append(
            f"The values were not examined: the network {config.network.kind:.100} is not built in, and windrow "
            f"imports no code that a file names. Name the network: --network {spell_network(config.network):.200}"
        )
    else:
        from windrow.train.checkpoint import latest_checkpoint, load_model

        if (checkpoint := latest_checkpoint(folder)) is not None:
            net = load_model(checkpoint, game=game, network=network).net
    return Examination(diagnose(Evidence(config, read_metrics(folder), True, records, game, net)), left_out)


class Diagnosis:
    """Watches a run in progress. Every problem is reported once and kept in findings.jsonl.

    Args:
        first_iteration: the next iteration. Findings of it and later iterations are dropped; a run that was killed
            before it saved a checkpoint left them.
    """

    def __init__(self, folder: Path, config: TrainConfig, game: CoreGame, *, first_iteration: int) -> None:
        self._folder, self._config, self._game = folder, config, game
        self._metrics: list[Mapping[str, float]] = [*read_metrics(folder)]
        self.findings = [finding for finding in read_findings(folder) if finding.iteration < first_iteration]
        """All findings so far, oldest first."""
        write_findings(folder, self.findings)
        self._spent_s, self._last_s = 0.0, _FIRST_LOOK_S

    def look(self, iteration: int, metrics: Mapping[str, float], net: Any, *, is_over: bool) -> list[Finding]:
        """The new findings after an iteration; blocks, for at most `_MAX_SHARE` of the run's time.

        Args:
            iteration: number of the iteration.
            metrics: metrics of the iteration.
            net: the present network; it is evaluated and not changed.
            is_over: whether this was the last iteration, which is examined thoroughly however short the run was.
        """
        self._metrics.append({"iteration": iteration, **metrics})
        run = Evidence(self._config, self._metrics, is_over, game=self._game)
        if is_over or self._spent_s + self._last_s <= _MAX_SHARE * metrics.get("total_s", 0.0):
            start = perf_counter()
            new = self._diagnose(replace(run, games=self._games(), net=net))
            self._last_s = perf_counter() - start
            self._spent_s += self._last_s
        else:
            new = self._diagnose(run)
        if new:
            self.findings += new
            write_findings(self._folder, self.findings)
        return new

    def _games(self) -> list[Any]:
        try:
            return [*newest_games(self._folder)]
        except CheckpointError as error:  # a run does not end because its diagnosis cannot read
            warnings.warn(f"the diagnosis cannot examine the games: {error}", RuntimeWarning, stacklevel=4)
            return []

    def _diagnose(self, run: Evidence) -> list[Finding]:
        known = {finding.name for finding in self.findings}
        return [finding for finding in diagnose(run) if finding.name not in known]
