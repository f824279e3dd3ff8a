"""The rating games of a run, in its folder.

strength/games.jsonl          one line per game: the checkpoint that was rated, the players, their returns
strength/ratings.jsonl        one line per rated checkpoint, from a joint fit of all those games
strength/000012.safetensors   a rated network, kept as an opponent for later ones
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from windrow.errors import CheckpointError
from windrow.files import parse_lines, read_regular
from windrow.play.ratings import RatedGame, Ratings, fit_ratings
from windrow.train.disk import replace_file, write_file, writing
from windrow.train.tensor_file import pack_tensors, read_tensors

FOLDER = "strength"
RATINGS = f"{FOLDER}/ratings.jsonl"
FIXED = "elo:"
"""Prefix of a fixed player's rating in ratings.jsonl."""
_MAX_NETWORKS = 8
_NAME = re.compile(r"iteration ([0-9]{1,12})")


def checkpoint_name(iteration: int) -> str:
    """The name of an iteration's network among the rated players."""
    return f"iteration {iteration}"


def iteration_of(player: str) -> int | None:
    """The iteration of a player that is a checkpoint; None for a fixed player."""
    return int(match[1]) if (match := _NAME.fullmatch(player)) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointRating:
    """The rating of one checkpoint, from all rating games so far.

    iteration: iteration after which the network was rated.
    elo: rating on the run's scale.
    error: half the width of the 95 % interval of its lead over `anchor`.
    anchor: the checkpoint with rating 0, which was rated first.
    fixed: ratings of the fixed players.
    num_games: number of rating games that this network has played.
    gain: lead over the checkpoint rated before it; None for the first one.
    gain_error: half the width of the 95 % interval of `gain`.
    share: share of the run's time that rating games have taken so far.
    """

    iteration: int
    elo: float
    error: float
    anchor: str
    fixed: Mapping[str, float]
    num_games: int
    gain: float | None
    gain_error: float
    share: float

    def __str__(self) -> str:
        others = ", ".join(f"{name} {elo:+.0f}" for name, elo in self.fixed.items())
        text = f"strength after iteration {self.iteration}: {self.elo:+.0f} ± {self.error:.0f} Elo"
        text += f" ({self.anchor} = 0{', ' if others else ''}{others})"
        if self.gain is not None:
            text += f", {self.gain:+.0f} ± {self.gain_error:.0f} since the last rating"
        return f"{text}; {self.num_games} rating games took {self.share:.1%} of the time"

    def metrics(self) -> dict[str, float]:
        """The rating as `metrics.jsonl` has it."""
        gain = {} if self.gain is None else {"elo_gain": self.gain, "elo_gain_error": self.gain_error}
        return {"elo": self.elo, "elo_error": self.error, **gain, "elo_iteration": self.iteration}


class RatingLog:
    """The rating games of a run, and the networks that play them.

    Args:
        first_iteration: the iteration that comes next. Games of its network and later ones are dropped: a run that was
            killed before it saved a checkpoint has left them.
    """

    def __init__(self, folder: Path, *, first_iteration: int) -> None:
        self._folder, self._ratings = folder / FOLDER, folder / RATINGS
        self._path = self._folder / "games.jsonl"
        found = _read_games(self._path)
        kept = [(at, game) for at, game in found if at < first_iteration]
        self.games = [game for _, game in kept]
        """All rating games, in the order in which they were recorded."""
        self.networks = sorted(int(path.stem) for path in self._folder.glob("*.safetensors") if path.stem.isdigit())
        """Iterations whose networks are kept as opponents."""
        for iteration in [number for number in self.networks if number >= first_iteration]:
            self._drop(iteration)
        if len(kept) < len(found):
            replace_file(self._path, "".join(_line(at, game) for at, game in kept))
            self.write_ratings(self.fit())

    def add(self, iteration: int, games: Iterable[RatedGame]) -> None:
        """Append games in which an iteration's network was rated."""
        new = list(games)
        with writing(self._path):
            self._folder.mkdir(exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write("".join(_line(iteration, game) for game in new))
        self.games += new

    def fit(self, anchor: str = "") -> Ratings:
        """The ratings of all players by all games.

        The anchor never changes: it is the checkpoint that was rated first.

        Args:
            anchor: the player whose rating is 0 while there are no games.
        """
        if self.games:
            first = [number for name in self.games[0].players if (number := iteration_of(name)) is not None]
            anchor = checkpoint_name(min(first)) if first else self.games[0].players[0]
        return fit_ratings(self.games, anchor=anchor)

    def write_ratings(self, ratings: Ratings) -> None:
        """Replace the ratings of all checkpoints; each line also has those of the fixed players."""
        fixed = {f"{FIXED}{name}": round(elo, 2) for name, elo in ratings.elo.items() if iteration_of(name) is None}
        lines = list[str]()
        for iteration in rated_iterations(ratings):
            name = checkpoint_name(iteration)
            rating = {"elo": round(ratings.elo[name], 2), "elo_error": round(ratings.error(name), 2)}
            lines.append(json.dumps({"iteration": iteration, **rating, **fixed}) + "\n")
        replace_file(self._ratings, "".join(lines))

    # --- Networks ---------------------------------------------------------------------------------------------

    def keep_network(self, iteration: int, weights: Mapping[str, Tensor]) -> None:
        """Keep a network as an opponent; of more than eight, drop the one with the closest neighbours for its age."""
        path = self._network(iteration)
        with writing(path):
            self._folder.mkdir(exist_ok=True)
            write_file(path, pack_tensors(weights, {"iteration": iteration}))
        self.networks = sorted({*self.networks, iteration})
        if len(self.networks) > _MAX_NETWORKS:
            around = zip(self.networks, self.networks[1:], self.networks[2:], strict=False)
            gaps = {at: (after - before) / (1 + iteration - at) for before, at, after in around}
            self._drop(min(gaps, key=lambda at: gaps[at]))

    def read_network(self, iteration: int) -> dict[str, Tensor]:
        """The weights of a kept network.

        Raises:
            CheckpointError: the file is damaged.
        """
        return read_tensors(self._network(iteration))[0]

    def _network(self, iteration: int) -> Path:
        return self._folder / f"{iteration:06d}.safetensors"

    def _drop(self, iteration: int) -> None:
        self.networks.remove(iteration)
        self._network(iteration).unlink(missing_ok=True)


def rated_iterations(ratings: Ratings) -> list[int]:
    """The iterations whose networks have a rating, ascending."""
    return sorted(number for name in ratings.elo if (number := iteration_of(name)) is not None)


def _line(iteration: int, game: RatedGame) -> str:
    return json.dumps({"iteration": iteration, "players": game.players, "returns": game.returns}) + "\n"


def _read_games(path: Path) -> list[tuple[int, RatedGame]]:
    """Games with the iteration of the rated network; what is no game, such as a line torn by a kill, is left out."""
    try:
        lines = parse_lines(read_regular(path))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error.strerror}") from error
    games: list[tuple[int, RatedGame]] = []
    for read in lines:
        iteration, players, returns = read.get("iteration"), read.get("players"), read.get("returns")
        if not (isinstance(iteration, int) and isinstance(players, list) and isinstance(returns, list)):
            continue
        names, values = tuple(cast("list[Any]", players)), tuple(cast("list[Any]", returns))
        is_game = len(names) == len(values) > 1 and all(isinstance(name, str) for name in names)
        if is_game and all(isinstance(value, int | float) and value == value for value in values):
            games.append((iteration, RatedGame(names, values)))
    return games
