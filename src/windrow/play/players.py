"""Players: they choose a move in each of the positions they are given.

A player is given the positions of many games in one call, so that its network evaluates them as a batch. A player has
no memory: its move depends on the position and its seed, not on the other positions or on earlier calls (unless its
search has noise at the root). A match therefore gives the same games, however many of them run at once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from windrow.config import SearchConfig
from windrow.engines import option_names
from windrow.errors import CheckpointError, ConfigError, UnknownKeyError
from windrow.evaluators.rollout import RolloutEvaluator
from windrow.evaluators.uniform import UniformEvaluator
from windrow.games.core_game import CoreGame, State
from windrow.games.python_game import PythonGame, as_core_game
from windrow.play.alphabeta import DEFAULT_DEPTH, AlphaBetaPlayer
from windrow.play.greedy import GreedyPlayer
from windrow.play.pretrained import LEVELS, PRETRAINED, require_pretrained
from windrow.play.programs import PROTOCOLS, ProgramPlayer, is_program
from windrow.play.solver import SolverPlayer
from windrow.play.solver_book import num_stones
from windrow.play.specs import Spec, parse_networks, parse_spec
from windrow.search import Search, SearchResult
from windrow.search.engines import engine_class
from windrow.spelling import explain_unknown

PLAYER_KINDS = ("random", "rollout", "uniform", "solver", "greedy", "alphabeta", PRETRAINED)
"""Names of players; a spec begins with one of them or with the path of a checkpoint."""

DEFAULT_SIMULATIONS = 100
"""Simulations per move, if the spec does not set them."""
MAX_TREES = 512
"""Maximum number of positions that are searched together. More would need more memory and not fill batches better."""

_STONE_GAMES = ("connect4", "gomoku", "othello", "tictactoe")
"""Games in which every move adds one stone to the board."""
_ABBREVIATIONS = {"sims": "num_simulations", "simulations": "num_simulations", "threads": "num_threads"}
_TRAINED_SETTINGS = (
    *("c_puct", "c_puct_growth", "c_puct_base", "value_scale"),
    *("first_play", "first_play_reduction"),
)
"""Settings of the search that a checkpoint keeps from its training, unless the spec sets them."""


class Player(Protocol):
    """Chooses moves in many games at once."""

    name: str
    """Name of the player in tables and records."""

    def choose(self, states: Sequence[State]) -> list[int]:
        """Return one legal action per state. In every state, a player is to move: none is at chance or over."""
        ...

    def close(self) -> None:
        """Free the player's resources; may be called more than once."""
        ...


@runtime_checkable
class CountingPlayer(Protocol):
    """A player that plays differently in the first moves of a game."""

    def choose_at(self, states: Sequence[State], plies: Sequence[int]) -> list[int]:
        """Return one legal action per state, given the number of moves that players have made in each game."""
        ...


class RandomPlayer:
    """Plays random legal moves. The seed and the position determine the move."""

    def __init__(self, *, seed: int = 0, name: str = "random") -> None:
        self.name, self._seed = name, seed

    def choose(self, states: Sequence[State]) -> list[int]:
        """Return one legal action per state."""
        return [_draw(state, self._seed).choice(state.game.legal_actions(state)) for state in states]

    def close(self) -> None:
        """Do nothing: the player holds no resources."""


class SearchPlayer:
    """Searches every position anew and plays the most visited move.

    Args:
        game: the game; if it is an object of your own class, `choose` also takes the states that this class makes.
        evaluator: evaluator of the search.
        config: settings of the search. With the engine "auto", one leaf per position is in flight, which costs no
            strength.
        name: name of the player in tables and records.
        temperature: temperature of the first moves of a game: a move is drawn in proportion to its visits to the power
            of 1/temperature. 0: the best move is always played.
        temperature_plies: number of these first moves, counting both players'.
        owns_evaluator: whether `close` also closes the evaluator.
    """

    def __init__(
        self,
        game: Any,
        evaluator: object,
        config: SearchConfig,
        *,
        name: str,
        temperature: float = 0.0,
        temperature_plies: int = 8,
        owns_evaluator: bool = False,
    ) -> None:
        if engine_class(config).capabilities.is_choice and config.leaves_per_tree is None:
            config = config.replace(leaves_per_tree=1)
        able = engine_class(config).capabilities
        if able.asks_game_here and "position" in able.random_keys:
            config = config.replace(random_key="position")  # the move must depend on the position and the seed alone
        self.game, self.name, self.config = as_core_game(game), name, config
        self._temperature, self._temperature_plies = temperature, temperature_plies
        self._evaluator = evaluator if owns_evaluator else None
        self._search = Search(self.game, evaluator, config)
        self.simulations = 0
        """Number of simulations so far, over all moves."""

    def choose(self, states: Sequence[Any]) -> list[int]:
        """Return one legal action per state."""
        return [self.pick(result) for result in self.search(states)]

    def choose_at(self, states: Sequence[Any], plies: Sequence[int]) -> list[int]:
        """Return one legal action per state, given the number of moves that players have made in each game."""
        return [self.pick(result, ply) for result, ply in zip(self.search(states), plies, strict=True)]

    def search(self, states: Sequence[Any]) -> list[SearchResult]:
        """Search every state; return one result per state."""
        results: list[SearchResult] = []
        for first in range(0, len(states), MAX_TREES):
            results += self._search.run([self._own(state) for state in states[first : first + MAX_TREES]])
            self.simulations += results[-1].stats.simulations
        return results

    def close(self) -> None:
        """Free the trees, and the evaluator if the player owns it."""
        self._search.close()
        if (close := getattr(self._evaluator, "close", None)) is not None:
            close()

    def pick(self, result: SearchResult, ply: int | None = None) -> int:
        """Choose the move for a search result; `ply` is the number of moves that players have made before."""
        if self._temperature == 0.0:
            return result.best_action
        if (self._num_plies(result.state) if ply is None else ply) >= self._temperature_plies:
            return result.best_action
        weights: list[float] = result.policy_at(self._temperature).tolist()
        return _draw(result.state, self.config.seed).choices(range(len(weights)), weights)[0]

    def _own(self, state: Any) -> Any:
        """Wrap a state that the user's class made."""
        is_bare = isinstance(self.game, PythonGame) and not isinstance(state, State)
        return State(self.game, state) if is_bare else state

    def _num_plies(self, state: State) -> int:
        """Count the moves before `state` by its stones; 0 in games in which stones do not tell."""
        if self.game.name not in _STONE_GAMES:
            return 0
        return num_stones(state) - num_stones(self.game.initial_state())


def make_player(
    game: Any, spec: str, *, seed: int = 0, network: object = None, num_threads: int | None = None
) -> Player:
    """Make the player that `spec` describes.

    A spec is one of these:

    - `random`: random legal moves.
    - `rollout:400`: a search of 400 simulations that evaluates positions by random games.
    - `uniform:400`: a search of 400 simulations that knows only the rules.
    - `solver`: perfect play, for Connect-4.
    - `pretrained`: the trained network that comes with windrow, for some games; `pretrained:level=1` to `level=5` are
      easier and harder opponents.
    - `greedy`: the move of the most points in this round, for Azul.
    - `alphabeta:6`: an alpha-beta search of 6 moves, for Othello.
    - A checkpoint: the folder of a run, the folder of one of its checkpoints, or a model.safetensors file.
    - An outside program: `gnubg:0`, `gtp:gnugo --level 1`, `uci:stockfish,movetime=100`, `gomocup:/path/pbrain-name`
      (`windrow.play.programs`). The program is started, so the spec must come from somebody whom you trust.

    Settings follow after a colon: `rollout:400,rollouts=4,c_puct=2`, `runs/c4:sims=100,backend=torch,temperature=1`, or
    `runs/c4:policy` (the network's most probable move, without a search). A setting is a setting of `SearchConfig` or
    of its engine, or one of these:

    - `sims`: short for `num_simulations`.
    - `temperature`, `temperature_plies`: temperature of the first moves, as for `SearchPlayer`.
    - `rollouts`: number of random games per position.
    - `backend`, `batch`: backend and batch size of the network.
    - `threads`: threads of the network and of the trees.
    - `network`: the class of a checkpoint's own network, as in `runs/mine:network=mynet.py:Net,sims=100`.

    Args:
        game: the game.
        spec: description of the player.
        seed: seed of the player's random numbers.
        network: your own network classes, or their places such as "mynet.py:Net"; one or several. A checkpoint that was
            trained with one of them is loaded with it.
        num_threads: threads of the network and of the trees, unless the spec sets them; None: all cores.

    Raises:
        ConfigError: there is no such player or setting.
        CheckpointError: the checkpoint is damaged or belongs to another game.
        ProgramError: an outside program is not installed, or does not start.
    """
    game = as_core_game(game)
    if is_program(spec):
        return ProgramPlayer(game, spec, seed=seed)
    parsed = parse_spec(spec)
    if parsed.name in ("random", "solver"):
        _refuse(parsed, parsed.settings, parsed.words, known=())
        return RandomPlayer(seed=seed, name=parsed.text) if parsed.name == "random" else SolverPlayer(game, seed=seed)
    if parsed.name == "greedy":
        _refuse(parsed, parsed.settings, parsed.words, known=())
        return GreedyPlayer(game, seed=seed, name=parsed.text)
    if parsed.name == "alphabeta":
        return _make_alphabeta(game, parsed)
    if parsed.name in ("rollout", "uniform"):
        return _make_searcher(game, parsed, seed, num_threads)
    if parsed.name == PRETRAINED:
        parsed = _at_level(replace(parsed, name=str(require_pretrained(as_core_game(game)).path)))
    if os.path.exists(parsed.name):
        return _make_network_player(game, parsed, seed, network, num_threads)
    known = explain_unknown(parsed.name, (*PLAYER_KINDS, *(f"{name}:" for name in PROTOCOLS)), what="players")
    raise ConfigError(f"there is no player {spec!r}. {known} Or give the path of a checkpoint.")


@contextmanager
def open_players(
    game: CoreGame, players: Sequence[Player | str], *, seed: int, network: object, num_threads: int | None
) -> Generator[list[Player], None, None]:
    """Make the players that are given as specs, each with a seed of its own, and close these at the end."""
    with ExitStack() as cleanup:
        ready: list[Player] = []
        for number, player in enumerate(players):
            if isinstance(player, str):
                own_seed = len(players) * seed + number
                player = make_player(game, player, seed=own_seed, network=network, num_threads=num_threads)
                cleanup.callback(player.close)
            ready.append(player)
        yield ready


def _make_alphabeta(game: CoreGame, spec: Spec) -> AlphaBetaPlayer:
    _refuse(spec, spec.settings, (), known=())
    if len(spec.words) > 1 or not all(word.isdecimal() and len(word) < 4 for word in spec.words):
        raise ConfigError(f"{spec.text!r}: write alphabeta:6 for a search of 6 moves")
    return AlphaBetaPlayer(game, int(spec.words[0]) if spec.words else DEFAULT_DEPTH, name=spec.text)


def _make_searcher(game: CoreGame, spec: Spec, seed: int, num_threads: int | None) -> SearchPlayer:
    settings = _settings_of(spec, num_threads)
    if len(spec.words) > 1 or not all(word.isdigit() for word in spec.words):
        raise ConfigError(f"{spec.text!r}: write {spec.name}:400 for 400 simulations, then settings as key=value")
    if spec.words:
        settings.setdefault("num_simulations", int(spec.words[0]))
    rollouts = settings.pop("rollouts", 1) if spec.name == "rollout" else 1
    if not isinstance(rollouts, int) or rollouts < 1:
        raise ConfigError(f"rollouts must be a whole number of 1 or more, not {rollouts!r}")
    evaluator = RolloutEvaluator(rollouts, seed=seed) if spec.name == "rollout" else UniformEvaluator()
    extra = ("rollouts",) if spec.name == "rollout" else ()
    return SearchPlayer(game, evaluator, **_read_settings(spec, settings, seed, extra))


def _make_network_player(
    game: CoreGame, spec: Spec, seed: int, network: object, num_threads: int | None
) -> SearchPlayer:
    from windrow.evaluators.loading import load, load_checkpoint
    from windrow.nets import fold

    _refuse(spec, {}, spec.words, known=("policy",))
    settings = _settings_of(spec, num_threads)
    if "policy" in spec.words:
        settings["num_simulations"] = 0
    backend, batch = settings.pop("backend", "auto"), settings.pop("batch", 64)
    named = [*parse_networks(settings.pop("network", None)), *parse_networks(network)]
    model = load_checkpoint(Path(spec.name), game=game, network=named)
    trained_with: Any = model.metadata.get("search") or {}
    try:
        as_trained = {key: trained_with[key] for key in _TRAINED_SETTINGS if key in trained_with}
        SearchConfig(**as_trained)
    except (ConfigError, TypeError) as error:
        raise CheckpointError(f"{model.path} cannot be used: its search settings are invalid: {error}") from error
    # Loading the network may take a while: report misspelled settings first.
    read = _read_settings(spec, {**as_trained, **settings}, seed, ("backend", "batch", "network"))
    threads = settings.get("num_threads", num_threads)
    evaluator = load(fold(model.net), game=game, backend=str(backend), batch=batch, num_threads=threads)
    return SearchPlayer(game, evaluator, **read, owns_evaluator=True)


def _at_level(spec: Spec) -> Spec:
    """The spec with the settings of its level, where it names one; other settings of the spec win."""
    settings = dict(spec.settings)
    level = settings.pop("level", None)
    if level is not None and (isinstance(level, bool) or level not in LEVELS):
        raise ConfigError(f"{spec.text!r}: levels go from {min(LEVELS)} (beginner) to {max(LEVELS)} (full strength)")
    named = {_ABBREVIATIONS.get(key, key): value for key, value in settings.items()}
    return replace(spec, settings={**LEVELS.get(level or 0, {}), **named})


def _settings_of(spec: Spec, num_threads: int | None) -> dict[str, Any]:
    """The settings of a spec by their full names, with `num_threads` as the default for its trees."""
    settings = {_ABBREVIATIONS.get(key, key): value for key, value in spec.settings.items()}
    if num_threads is not None and "engine" not in settings:  # other engines may have no such option
        settings.setdefault("num_threads", num_threads)
    return settings


def _read_settings(spec: Spec, settings: dict[str, Any], seed: int, extra: tuple[str, ...]) -> dict[str, Any]:
    """Read the keyword arguments of a `SearchPlayer`; `extra` names the settings that the caller has read."""
    temperature = settings.pop("temperature", 0.0)
    temperature_plies = settings.pop("temperature_plies", 8)
    known = (*SearchConfig.setting_names(), *option_names())
    unknown = {key: value for key, value in settings.items() if key not in known}
    _refuse(spec, unknown, (), known=("sims", "temperature_plies", *extra, *known))
    if isinstance(temperature_plies, bool) or not isinstance(temperature_plies, int):
        raise ConfigError(f"temperature_plies must be a whole number, not {temperature_plies!r}")
    config = SearchConfig(num_simulations=DEFAULT_SIMULATIONS, seed=seed).with_settings(settings)
    return {
        "config": config,
        "name": spec.text,
        "temperature": config.replace(temperature=temperature).temperature,
        "temperature_plies": temperature_plies,
    }


def _refuse(spec: Spec, settings: dict[str, Any], words: tuple[str, ...], *, known: tuple[str, ...]) -> None:
    """Raise an error for the first of `settings`, or else for the first of `words` that is not known."""
    for key in (*settings, *(word for word in words if word not in known)):
        raise UnknownKeyError(f"{spec.text!r} has no setting {key!r}. {explain_unknown(key, known, what='settings')}")


def _draw(state: State, seed: int) -> random.Random:
    """Random numbers that depend on the seed and the position alone."""
    return random.Random(f"{seed} {state.game.hash(state)}")
