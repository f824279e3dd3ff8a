"""One training run as settings: sections of a TOML file, each a config of its own.

game = "connect4"
num_iterations = 50

[search]
num_simulations = 64
root = "gumbel"

[network]
channels = 32
blocks = 3
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from windrow.config import SearchConfig
from windrow.engines import as_options
from windrow.errors import ConfigError, GameError, UnknownKeyError
from windrow.games.core_game import CoreGame
from windrow.games.provenance import game_from_file
from windrow.nets.config import NetworkConfig, ResNetConfig
from windrow.play.specs import parse_network
from windrow.search.engines import find_engine
from windrow.settings import Settings, read_file
from windrow.spelling import explain_unknown
from windrow.train.device_config import DeviceConfig
from windrow.train.learner_config import LearnerConfig
from windrow.train.selfplay_config import SelfPlayConfig
from windrow.train.strategy import strategy_of
from windrow.train.strength_config import StrengthConfig

STRATEGY_SECTIONS = ("device",)
"""Sections that not every training strategy reads."""
RULES = "rules.json"
"""The file in a run's folder with the facts of its game."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ReplayConfig(Settings):
    """What is remembered of the games."""

    max_positions: int = 200_000
    """Recorded moves kept; the oldest are forgotten first."""
    value_mix: float = 0.5
    """What the value learns: 0 the game's result, 1 the search's own value, else a mixture."""
    use_symmetries: bool = True
    """Show each position in a random one of its symmetric images."""

    def __post_init__(self) -> None:
        self._check_integer("max_positions", 1, 2**40)
        self._check_number("value_mix", 0.0, 1.0)
        self._check_flag("use_symmetries")


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class TrainConfig(Settings):
    """A whole run. `read` takes a TOML file; unknown keys and impossible values raise `ConfigError`.

    The defaults are the standard settings, for a game that comes without a config of its own: many quick games and a
    small network, so that two cores learn a board game written in Python within minutes.
    """

    game: str = "connect4"
    """Name of the game."""
    game_options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Its options, such as `size = 9`."""
    seed: int = 0
    """Key of all random numbers of the run: first weights, games, samples."""

    num_iterations: int | None = None
    """Iterations after which the run ends. One iteration plays games, learns from them and saves a checkpoint."""
    time_limit_s: float | None = None
    """Seconds after which the run ends, those before a resume included; whichever limit comes first."""
    games_per_iteration: int = 128
    """Games that finish in one iteration. With a time limit an iteration ends after a twentieth of it all the same."""
    samples_per_position: float = 4.0
    """How often each recorded move is learned from, on average."""
    min_positions: int = 1000
    """Recorded moves in memory before learning begins."""
    early_simulations: int | None = 8
    """Simulations per move at the beginning of the run, when a network knows little and many games teach it more than
    good ones. They rise evenly to `[search] num_simulations`, which they reach when 70 % of the run are done. None or
    0: the same from the beginning."""
    deterministic: bool = False
    """Play every game of an iteration with the same weights and to its end before learning, on deterministic
    arithmetic: the same settings then give the same weights to the last bit, however often the run was killed and
    resumed. Somewhat slower: the last games of an iteration leave the network's batches half empty."""
    backend: str = "auto"
    """What evaluates the network in self-play, a name of `windrow.evaluators.backends.catalog`. "auto" measures;
    a deterministic run takes "torch"."""
    overlap: bool = True
    """Learn while the next games are played, so that every core works all the time; the games are then played with
    weights that are one iteration older. A deterministic run takes turns instead."""
    num_threads: int | None = None
    """Threads for the network, evaluating and learning together. None: one per core this process may use. With
    `overlap` half of them evaluate and half learn."""
    checkpoint_every: int = 1
    """Iterations from checkpoint to checkpoint."""
    keep_checkpoints: int = 5
    """Checkpoints kept; older ones are deleted."""
    keep_games: bool = False
    """Keep the records of games that the replay has forgotten."""
    evaluate_every: int = 1
    """Iterations from one test on solved positions to the next, where the game has them; 0 for none."""

    network: NetworkConfig = field(default_factory=ResNetConfig)
    """Which network learns: its `kind`, and the settings of that kind. A string such as `"mlp:width=256"` or
    `"mynet.py:Net"` and a class of your own will do too."""
    search: SearchConfig = field(default_factory=dict[str, Any])  # pyright: ignore[reportAssignmentType]
    """How moves are searched. What a table leaves open, training sets: the Gumbel root, 24 simulations, and noise."""
    selfplay: SelfPlayConfig = field(default_factory=dict[str, Any])  # pyright: ignore[reportAssignmentType]
    """How games are played. What a table leaves open, training sets: 4 `opening_plies`."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """What is remembered of them."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """How the network learns from that."""
    strength: StrengthConfig = field(default_factory=StrengthConfig)
    """How the run rates its checkpoints."""
    device: DeviceConfig = field(default_factory=DeviceConfig)
    """How training on a device is done; the other ways of training do not read it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "network", _make(parse_network, "network", self.network))
        for name, kind in _sections().items():
            if isinstance(value := getattr(self, name), Mapping):
                given = _for_training(name, cast("Mapping[str, Any]", value))
                object.__setattr__(self, name, _make(lambda settings, kind=kind: kind(**settings), name, given))
            elif not isinstance(value, kind):
                raise ConfigError(f"[{name}] must be a table of settings, not {value!r:.100}")
        for name in ("game", "backend"):
            if not isinstance(value := getattr(self, name), str):
                raise ConfigError(f"{name} must be a name, not {value!r:.100}")
        if not _is_table(self.game_options):
            raise ConfigError(f"[game_options] must be a table of options, not {self.game_options!r:.100}")
        self._check_integer("seed", 0, 2**63 - 1)
        self._check_integer("num_iterations", 0, 2**31 - 1, is_optional=True)
        self._check_number("time_limit_s", 0.0, 1e9, is_optional=True)
        self._check_integer("games_per_iteration", 1, 2**31 - 1)
        self._check_number("samples_per_position", 0.0, 1e6)
        self._check_integer("min_positions", 1, 2**40)
        self._check_integer("early_simulations", 0, 2**31 - 2, is_optional=True)
        self._check_flag("deterministic")
        self._check_flag("overlap")
        self._check_integer("num_threads", 1, 1024, is_optional=True)
        self._check_integer("checkpoint_every", 1, 2**31 - 1)
        self._check_integer("keep_checkpoints", 1, 2**31 - 1)
        self._check_flag("keep_games")
        self._check_integer("evaluate_every", 0, 2**31 - 1)
        if self.search.num_simulations is None or self.search.time_limit_s is not None:
            raise ConfigError("in [search]: training counts simulations: set num_simulations, and no time_limit_s")
        if self.min_positions > self.replay.max_positions:
            raise ConfigError(
                f"min_positions={self.min_positions} is more than the replay holds: raise [replay] max_positions"
            )
        if self.deterministic and self.time_limit_s is not None:
            raise ConfigError("a deterministic run cannot end by the clock: set num_iterations, and no time_limit_s")

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> TrainConfig:
        """From nested dictionaries, as a TOML file gives them."""
        return cls(**settings)

    @classmethod
    def read(cls, path: str | Path, overrides: Mapping[str, Any] | None = None) -> TrainConfig:
        """From a TOML file (or JSON); `overrides` such as `{"search.num_simulations": 32}` come last."""
        path = Path(path)
        settings = read_file(path)
        try:
            return cls.from_dict(merge(settings, overrides or {}))
        except ConfigError as error:
            if overrides and cls._are_sound(settings):
                raise  # the file is not to blame for what was given on top of it
            kind = UnknownKeyError if isinstance(error, UnknownKeyError) else ConfigError
            raise kind(f"{path}: {error}") from None

    @classmethod
    def _are_sound(cls, settings: Mapping[str, Any]) -> bool:
        try:
            cls.from_dict(settings)
        except ConfigError:
            return False
        return True


def config_for(game: CoreGame, overrides: Mapping[str, Any] | None = None) -> TrainConfig:
    """The config that windrow brings along for a game, or the standard one for a game of your own.

    If `overrides` name an engine whose strategy has configs of its own, it is one of those where the game has one.
    """
    given = {"game": game.name, "game_options": dict(game.options), **(overrides or {})}
    engine = _engine_in(given)
    special = None if engine is None else strategy_of(find_engine(engine)).configs
    for shipped in ({} if special is None else _shipped(special), _shipped()):
        if game.name in shipped:
            return TrainConfig.read(shipped[game.name], given)
    return TrainConfig.from_dict(merge({}, given))


def _engine_in(overrides: Mapping[str, Any]) -> str | None:
    """The engine that some overrides name."""
    search = merge({}, overrides).get("search")
    engine = cast("dict[str, Any]", search).get("engine") if isinstance(search, dict) else None
    return None if engine is None else as_options(engine).name


def game_of_run(folder: Path, name: object, options: object, game: CoreGame | None = None) -> CoreGame:
    """The game that a run's settings name, or `game` if that has the same rules.

    Args:
        folder: the run's; its rules.json has the facts of the rules.
        name: of the game, as the settings say.
        options: of the game, as the settings say.
        game: the game that the user named. None: only a game that comes with windrow will do.

    Raises:
        GameError: as `game_from_file`.
    """
    try:
        return game_from_file(name, options, game)
    except GameError:
        if game is None or not (folder / RULES).exists():
            raise
    try:
        rules = read_file(folder / RULES)
    except ConfigError as error:
        raise GameError(str(error)) from error
    return game_from_file(name, options, game, rules)


def shipped_config(game: str) -> Path:
    """The file of the config that windrow brings along for a game."""
    known = _shipped()
    if game not in known:
        raise ConfigError(f"there is no config for {game!r}. {explain_unknown(game, known, what='configs')}")
    return known[game]


def has_config(game: CoreGame) -> bool:
    """Whether windrow brings a config along for a game."""
    return game.name in _shipped()


def _shipped(special: str = "") -> dict[str, Path]:
    """The shipped configs by game: those for all strategies, or those in the folder of one."""
    folder = Path(__file__).parent / "configs" / special
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def merge(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with some replaced; `{"search.seed": 1}` reaches into a section.

    An engine's name is a table of its options too: `search.engine = "ray"` and `search.engine.num_workers = 4`. A name
    that is the same as before keeps the options. In the same way `network.kind = "mlp"` drops the settings of another
    kind.
    """
    merged = _copy(settings)
    # An engine before its options, and a kind of network before its settings.
    for key in sorted(overrides, key=lambda key: (key.count("."), key != "network.kind")):
        *path, name = key.split(".")
        table = merged
        if key == "network.kind" and _kind_of(merged.get("network")) != overrides[key]:
            merged["network"] = {}
        for part in path:
            inner: Any = table.setdefault(part, {})
            if part == "engine" and isinstance(inner, str):
                inner = table[part] = {"name": inner}
            if not isinstance(inner, dict):
                raise ConfigError(f"{key} cannot be set: {part} is {inner!r:.100}, and not a table of settings")
            table = cast("dict[str, Any]", inner)
        before: Any = table.get(name)
        if name != "engine" or not isinstance(before, dict) or before.get("name") != overrides[key]:
            table[name] = overrides[key]
    return merged


def _kind_of(network: object) -> object:
    return cast("dict[str, Any]", network).get("kind", "resnet") if isinstance(network, dict) else network


def _copy(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: _copy(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
        for key, value in settings.items()
    }


def _sections() -> dict[str, type[Settings]]:
    return {
        "search": SearchConfig,
        "selfplay": SelfPlayConfig,
        "replay": ReplayConfig,
        "learner": LearnerConfig,
        "strength": StrengthConfig,
        "device": DeviceConfig,
    }


def _for_training(section: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with what training wants and play does not: a small budget, noise, and openings that differ."""
    if section == "search":
        root = given.get("root", "gumbel")
        noise = {"gumbel_scale": 1.0} if root == "gumbel" else {"dirichlet_fraction": 0.25}
        return {"num_simulations": 24, "root": root, **noise, **given}
    return {"opening_plies": 4, **given} if section == "selfplay" else dict(given)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in cast("dict[Any, Any]", value))


def _make(kind: Callable[[Any], Settings], section: str, settings: Any) -> Settings:
    try:
        return kind(settings)
    except UnknownKeyError as error:
        raise UnknownKeyError(f"in [{section}]: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"in [{section}]: {error}") from None
