"""Players: whoever answers positions with moves.

A player is asked about many games at once, so that a network sees one batch. It has no memory: what it answers depends
on the position and its seed, never on what else is asked or in which order (unless noise at the root is asked for), so
that a match gives the same games however many of them run at once.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from windrow.config import SearchConfig
from windrow.engines import option_names
from windrow.errors import CheckpointError, ConfigError, UnknownKeyError
from windrow.evaluators.rollout import RolloutEvaluator
from windrow.evaluators.uniform import UniformEvaluator
from windrow.games.core_game import CoreGame, State
from windrow.games.python_game import PythonGame, as_core_game
from windrow.play.specs import Spec, parse_networks, parse_spec
from windrow.search import Search, SearchResult
from windrow.search.engines import engine_class
from windrow.spelling import explain_unknown

PLAYER_KINDS = ("random", "rollout", "uniform", "solver")
"""What a spec may begin with, beside the path of a checkpoint."""

CHECKPOINT_LOADER = "windrow.train:load_model"
"""Where checkpoints are read; by name, because training builds on players and not the other way round."""

DEFAULT_SIMULATIONS = 100
MAX_TREES = 512
"""Positions searched at once. More would not fill a batch better, but need more memory."""

_STONE_GAMES = ("connect4", "gomoku", "othello", "tictactoe")
_SHORT = {"sims": "num_simulations", "simulations": "num_simulations", "threads": "num_threads"}
_LOOKING = ("c_puct", "first_play", "first_play_reduction")
"""Settings in which a checkpoint is searched as it was trained, unless the spec says otherwise."""


class Player(Protocol):
    """Chooses moves in many games at once."""

    name: str
    """What tables call it."""

    def choose(self, states: Sequence[State]) -> list[int]:
        """One legal action per state; a player is to move in each."""
        ...

    def close(self) -> None:
        """Free what the player holds; may be called more than once."""
        ...


@runtime_checkable
class CountingPlayer(Protocol):
    """A player that plays otherwise in the first moves of a game."""

    def choose_at(self, states: Sequence[State], plies: Sequence[int]) -> list[int]:
        """As `Player.choose`, knowing how many moves were made before in each game."""
        ...


class RandomPlayer:
    """Plays any legal move; in the same position always the same one, which depends on the seed."""

    def __init__(self, *, seed: int = 0, name: str = "random") -> None:
        self.name, self._seed = name, seed

    def choose(self, states: Sequence[State]) -> list[int]:
        """One legal action per state."""
        return [_draw(state, self._seed).choice(state.game.legal_actions(state)) for state in states]

    def close(self) -> None:
        """Nothing to free."""


class SearchPlayer:
    """Searches every position afresh and plays the most visited move.

    Args:
        game: what it plays; with an object of your own class, `choose` takes its states as they are.
        evaluator: priors and values.
        config: how to search. With the engine "auto" one leaf of each position is in flight, which costs no strength.
        name: what it is called in the tables and records of matches.
        temperature: of the first moves of a game, which are then drawn from the visits to the power of 1/temperature.
            0 always plays the best.
        temperature_plies: how many plies of a game these first moves are.
        owns_evaluator: whether `close` closes the evaluator too.
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
            config = config.replace(random_key="position")  # what it answers depends on nothing else
        self.game, self.name, self.config = as_core_game(game), name, config
        self._temperature, self._temperature_plies = temperature, temperature_plies
        self._evaluator = evaluator if owns_evaluator else None
        self._search = Search(self.game, evaluator, config)
        self.simulations = 0
        """Simulations so far, of all moves."""

    def choose(self, states: Sequence[Any]) -> list[int]:
        """One legal action per state."""
        return [self.pick(result) for result in self.search(states)]

    def choose_at(self, states: Sequence[Any], plies: Sequence[int]) -> list[int]:
        """The same, knowing how many moves were made before."""
        return [self.pick(result, ply) for result, ply in zip(self.search(states), plies, strict=True)]

    def search(self, states: Sequence[Any]) -> list[SearchResult]:
        """What it thinks of every state."""
        results: list[SearchResult] = []
        for first in range(0, len(states), MAX_TREES):
            results += self._search.run([self._own(state) for state in states[first : first + MAX_TREES]])
            self.simulations += results[-1].stats.simulations
        return results

    def close(self) -> None:
        """Free the trees, and the evaluator if it is this player's own."""
        self._search.close()
        if (close := getattr(self._evaluator, "close", None)) is not None:
            close()

    def pick(self, result: SearchResult, ply: int | None = None) -> int:
        """The move it plays, having found `result`, as move number `ply` of the game."""
        if self._temperature == 0.0:
            return result.best_action
        if (self._num_plies(result.state) if ply is None else ply) >= self._temperature_plies:
            return result.best_action
        weights: list[float] = result.policy_at(self._temperature).tolist()
        return _draw(result.state, self.config.seed).choices(range(len(weights)), weights)[0]

    def _own(self, state: Any) -> Any:
        """What a class of one's own made, as a state of the wrapped game."""
        is_bare = isinstance(self.game, PythonGame) and not isinstance(state, State)
        return State(self.game, state) if is_bare else state

    def _num_plies(self, state: State) -> int:
        """How many moves were made, if nobody has counted them: told by the board where every move adds one stone."""
        if self.game.name not in _STONE_GAMES:
            return 0
        return _num_stones(state) - _num_stones(self.game.initial_state())


def make_player(
    game: Any, spec: str, *, seed: int = 0, network: object = None, num_threads: int | None = None
) -> Player:
    """The player that `spec` describes.

    game: what it plays.
    spec: `random`; `rollout:400` (a search with random games as evaluator, 400 simulations); `uniform:400` (one that
        knows only the rules); `solver` (Connect-4, plays perfectly); or a checkpoint: a run's folder, a folder of its
        checkpoints or a model.safetensors file. Settings follow after a colon: `rollout:400,rollouts=4,c_puct=2`,
        `runs/c4:sims=100,backend=torch,temperature=1`, `runs/c4:policy` (the network's own first choice, no search).
        They are those of `SearchConfig`, `sims` for num_simulations, `temperature` and `temperature_plies` for the
        first moves, `rollouts` for the random games per position, `backend` and `batch` for what runs the network,
        `threads` for the threads of the network and of the trees, and `network` for the class of a checkpoint's own
        network: `runs/mine:network=mynet.py:Net,sims=100`.
    seed: key of its random numbers.
    network: classes of networks of your own, or where they are, one or several: a checkpoint that was trained with one
        of them is loaded with it.
    num_threads: threads of the network and of the trees, unless the spec says otherwise; None: all cores.

    Raises:
        ConfigError: there is no such player or setting.
        CheckpointError: the checkpoint is damaged or of another game.
    """
    game = as_core_game(game)
    parsed = parse_spec(spec)
    if parsed.name == "random":
        _refuse(parsed, dict(parsed.settings), parsed.words, known=())
        return RandomPlayer(seed=seed, name=parsed.text)
    if parsed.name == "solver":
        _refuse(parsed, dict(parsed.settings), parsed.words, known=())
        from windrow.play.solver import SolverPlayer

        return SolverPlayer(game, seed=seed)
    if parsed.name in ("rollout", "uniform"):
        return _make_searcher(game, parsed, seed, num_threads)
    if os.path.exists(parsed.name):
        return _make_network_player(game, parsed, seed, network, num_threads)
    known = explain_unknown(parsed.name, PLAYER_KINDS, what="players")
    raise ConfigError(f"there is no player {spec!r}. {known} Or give the path of a checkpoint.")


def _make_searcher(game: CoreGame, spec: Spec, seed: int, num_threads: int | None) -> SearchPlayer:
    settings = _settings_of(spec, num_threads)
    if len(spec.words) > 1 or not all(word.isdigit() for word in spec.words):
        raise ConfigError(f"{spec.text!r}: write {spec.name}:400 for 400 simulations, then settings key=value")
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
    from windrow.evaluators.loading import load
    from windrow.nets import fold

    _refuse(spec, {}, spec.words, known=("policy",))
    settings = _settings_of(spec, num_threads)
    if "policy" in spec.words:
        settings["num_simulations"] = 0
    backend, batch = settings.pop("backend", "auto"), settings.pop("batch", 64)
    named = [*parse_networks(settings.pop("network", None)), *parse_networks(network)]
    module, _, attribute = CHECKPOINT_LOADER.partition(":")
    model: Any = getattr(import_module(module), attribute)(Path(spec.name), game=game, network=named)
    trained_with: Any = model.metadata.get("search") or {}
    try:
        as_trained = {key: trained_with[key] for key in _LOOKING if key in trained_with}
        SearchConfig(**as_trained)
    except (ConfigError, TypeError) as error:
        raise CheckpointError(f"{model.path} cannot be used: its search settings are wrong: {error}") from error
    # Before the network is loaded, which may take a while: a misspelled setting is known at once.
    read = _read_settings(spec, {**as_trained, **settings}, seed, ("backend", "batch", "network"))
    threads = settings.get("num_threads", num_threads)
    evaluator = load(fold(model.net), game=game, backend=str(backend), batch=batch, num_threads=threads)
    return SearchPlayer(game, evaluator, **read, owns_evaluator=True)


def _settings_of(spec: Spec, num_threads: int | None) -> dict[str, Any]:
    """The settings of a spec by their full names, and how many threads its trees get where it does not say."""
    settings = {_SHORT.get(key, key): value for key, value in spec.settings.items()}
    if num_threads is not None and "engine" not in settings:  # other engines may have no such option
        settings.setdefault("num_threads", num_threads)
    return settings


def _read_settings(spec: Spec, settings: dict[str, Any], seed: int, extra: tuple[str, ...]) -> dict[str, Any]:
    """What a `SearchPlayer` is made with; `extra` are the names of settings that were read before."""
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
    """Raise if the spec has a setting or a word that is not among the known ones."""
    for key in (*settings, *(word for word in words if word not in known)):
        raise UnknownKeyError(f"{spec.text!r} has no setting {key!r}. {explain_unknown(key, known, what='settings')}")


def _draw(state: State, seed: int) -> random.Random:
    """Random numbers that belong to a position."""
    return random.Random(f"{seed} {state.game.hash(state)}")


def _num_stones(state: State) -> int:
    return int(state.game.native.observe(state.data).sum())
