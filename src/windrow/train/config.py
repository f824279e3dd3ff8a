"""Settings of a training run: the sections of a TOML file, each with a config class of its own.

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

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from windrow.config import SearchConfig
from windrow.engines import as_options
from windrow.errors import ConfigError, GameError, UnknownKeyError
from windrow.games.core_game import CoreGame
from windrow.games.provenance import game_from_file
from windrow.games.registry import GAMES, make_game
from windrow.nets.config import NetworkConfig, ResNetConfig
from windrow.play.programs.command import is_program
from windrow.play.specs import parse_network, parse_spec
from windrow.search.engines import find_engine
from windrow.settings import Settings, read_file
from windrow.spelling import explain_unknown
from windrow.train.learner_config import LearnerConfig
from windrow.train.selfplay_config import SelfPlayConfig
from windrow.train.strategy import strategy_of

CompileMode: TypeAlias = Literal["auto", "max-autotune", "default", "none"]
STRATEGY_SECTIONS = ("device",)
"""Sections that only some training strategies read."""
RULES = "rules.json"
"""File in a run's folder with the facts of its game."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class ReplayConfig(Settings):
    """Settings of the replay memory."""

    max_positions: int = 200_000
    """Maximum number of recorded moves kept; the oldest are dropped first."""
    value_mix: float = 0.5
    """Mixture of the value target: 0 is the game's result, 1 is the search's own value."""
    use_symmetries: bool = True
    """Whether each position is shown in a random one of its symmetric images."""

    def __post_init__(self) -> None:
        self._check_integer("max_positions", 1, 2**40)
        self._check_number("value_mix", 0.0, 1.0)
        self._check_flag("use_symmetries")


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class StrengthConfig(Settings):
    """Settings of the ratings of a run's checkpoints, by games against each other and against fixed players."""

    share: float = 0.05
    """Maximum share of the run's time that rating games may take. 0: no rating games."""
    opponents: tuple[str, ...] = ("random", "rollout:50")
    """Fixed players, the weakest first, named as for `windrow match`: "random", "rollout:400", "solver", or the folder
    of another run. A player joins once a checkpoint leads the player before it by 100 Elo. With an empty list,
    checkpoints play only each other."""
    num_simulations: int = 16
    """Simulations per move of the checkpoints in rating games."""

    def __post_init__(self) -> None:
        self._check_number("share", 0.0, 0.5)
        given: Any = self.opponents
        names = cast("Sequence[Any]", given.split() if isinstance(given, str) else given)
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) and name for name in names):
            raise ConfigError(f"opponents must be a list of players such as 'random', not {given!r:.100}")
        for name in cast("Sequence[str]", names):
            # A run's folder may come from a stranger, and a program's spec names a program to start.
            if is_program(name):
                raise ConfigError(f"opponents cannot be outside programs: remove {name!r:.100}, and use windrow match")
            if "engine" in parse_spec(name).settings:
                # A run's folder may come from a stranger, and some engines connect elsewhere or import what they name.
                raise ConfigError(f"opponents cannot choose an engine: remove engine= from {name!r:.100}")
        object.__setattr__(self, "opponents", tuple(dict.fromkeys(cast("Sequence[str]", names))))
        self._check_integer("num_simulations", 0, 2**31 - 2)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class DeviceConfig(Settings):
    """Settings of training on a device (GPU). The device and the game's rules on it are options of the engine."""

    compile: CompileMode = "auto"
    """Mode of `torch.compile` for the network in self-play. "auto": on a GPU, one kernel for the whole network where it
    fits (docs/tensor.md), otherwise "max-autotune"; on a CPU, "none"."""
    compile_learner: bool | None = None
    """Whether to compile the network that learns. None: only on a GPU."""
    weight_average: float = 0.998
    """Decay of the moving average of the weights, which self-play and checkpoints use: the share of the old average
    that is kept after each learning step. 0: the weights themselves are used."""

    def __post_init__(self) -> None:
        if self.compile_learner is not None:
            self._check_flag("compile_learner")
        if self.compile is None:  # pyright: ignore[reportUnnecessaryComparison] - as flags read `device.compile=none`
            object.__setattr__(self, "compile", "none")
        self._check_choice("compile", CompileMode)
        self._check_number("weight_average", 0.0, 1.0 - 1e-9)


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class TrainConfig(Settings):
    """Settings of a whole run. `read` takes a TOML file. Unknown keys and impossible values raise `ConfigError`.

    The defaults are for a game without a config of its own. They use many quick games and a small network, so that two
    cores learn a board game written in Python within minutes.
    """

    game: str = "connect4"
    """Name of the game."""
    game_options: dict[str, Any] = field(default_factory=dict[str, Any])
    """Options of the game, such as `size = 9`."""
    seed: int = 0
    """Random seed of the run: it determines the first weights, the games and the samples."""

    num_iterations: int | None = None
    """Number of iterations after which the run ends. An iteration plays games, learns from them and saves a
    checkpoint."""
    time_limit_s: float | None = None
    """Time limit of the run in seconds, including the time before a resume. The run ends at whichever limit comes
    first."""
    games_per_iteration: int = 128
    """Number of games that finish in one iteration. With a time limit, an iteration also ends after a twentieth of that
    time."""
    samples_per_position: float = 4.0
    """Mean number of times that each recorded move is learned from."""
    min_positions: int = 1000
    """Number of recorded moves in memory before learning begins."""
    early_simulations: int | None = 8
    """Simulations per move at the beginning of the run, when many games teach the network more than good games. The
    number rises evenly to `[search] num_simulations`, which it reaches after 70 % of the run. None or 0: the same
    number throughout."""
    deterministic: bool = False
    """Make the run reproducible: the same settings give the same weights to the last bit, however often the run is
    killed and resumed. Every game of an iteration is then played with the same weights and to its end before learning,
    with deterministic arithmetic. This is somewhat slower, because the last games of an iteration leave the network's
    batches half empty."""
    backend: str = "auto"
    """Backend that evaluates the network in self-play: a name from `windrow.evaluators.backends.catalog`. "auto": the
    fastest one measured; in a deterministic run, "torch"."""
    overlap: bool = True
    """Whether the network learns while the next games are played. This keeps every core busy; the games are then played
    with weights that are one iteration older. A deterministic run takes turns instead."""
    num_threads: int | None = None
    """Number of CPU threads for the network, evaluation and learning together. None: one per core that this process may
    use. With `overlap`, half of them evaluate and half learn."""
    checkpoint_every: int = 1
    """Number of iterations from one checkpoint to the next."""
    keep_checkpoints: int = 5
    """Number of checkpoints kept; older ones are deleted."""
    keep_games: bool = False
    """Whether to keep the records of games that the replay memory has dropped."""
    evaluate_every: int = 1
    """Number of iterations from one test on solved positions to the next, for games that have such positions. 0: no
    tests."""

    network: NetworkConfig = field(default_factory=ResNetConfig)
    """Network to train: its `kind` and the settings of that kind. A string such as `"mlp:width=256"` or
    `"mynet.py:Net"` and a class of your own are accepted too."""
    search: SearchConfig = field(default_factory=dict[str, Any])  # pyright: ignore[reportAssignmentType]
    """Settings of the search. Where a table leaves them open, training uses the Gumbel root, 24 simulations, and
    noise."""
    selfplay: SelfPlayConfig = field(default_factory=dict[str, Any])  # pyright: ignore[reportAssignmentType]
    """Settings of self-play. Where a table leaves it open, training sets `opening_plies` to 4."""
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    """Settings of the replay memory."""
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    """Settings of the learner."""
    strength: StrengthConfig = field(default_factory=StrengthConfig)
    """Settings of the checkpoint ratings."""
    device: DeviceConfig = field(default_factory=DeviceConfig)
    """Settings of training on a device (GPU); other strategies do not read them."""

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
                raise ConfigError(f"{name} must be a string, not {value!r:.100}")
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
            raise ConfigError(
                "in [search]: training needs a fixed number of simulations: set num_simulations and remove time_limit_s"
            )
        if self.min_positions > self.replay.max_positions:
            raise ConfigError(
                f"min_positions={self.min_positions} is more than the replay holds: raise [replay] max_positions"
            )
        if self.deterministic and self.time_limit_s is not None:
            raise ConfigError("a deterministic run cannot end by the clock: set num_iterations and remove time_limit_s")

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> TrainConfig:
        """Create a config from nested dictionaries, as a TOML file gives them."""
        return cls(**settings)

    @classmethod
    def read(cls, path: str | Path, overrides: Mapping[str, Any] | None = None) -> TrainConfig:
        """Read a config from a TOML or JSON file; `overrides` like `{"search.num_simulations": 32}` replace values."""
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
    """Return the shipped config of a game, or the standard config if there is none.

    If `overrides` name an engine whose strategy has configs of its own, that strategy's config for the game is used if
    it exists.
    """
    given = {"game": game.name, "game_options": dict(game.options), **(overrides or {})}
    engine = _engine_in(given)
    special = None if engine is None else strategy_of(find_engine(engine)).configs
    for shipped in ({} if special is None else _shipped(special), _shipped()):
        if game.name in shipped:
            return TrainConfig.read(shipped[game.name], given)
    return TrainConfig.from_dict(merge({}, given))


def _engine_in(overrides: Mapping[str, Any]) -> str | None:
    """The engine that the overrides name."""
    search = merge({}, overrides).get("search")
    engine = cast("dict[str, Any]", search).get("engine") if isinstance(search, dict) else None
    return None if engine is None else as_options(engine).name


def game_of_run(folder: Path, name: object, options: object, game: CoreGame | None = None) -> CoreGame:
    """Return the game that a run's settings name, or `game` if it has the same rules.

    Args:
        folder: the run's folder; its rules.json has the facts of the rules.
        name: name of the game in the settings.
        options: options of the game in the settings.
        game: the game that the user named. None: only a built-in game is accepted.

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


def spell_game(name: str, options: Mapping[str, Any]) -> str:
    """The game as the command line takes it, such as azul:players=3; defaults of built-in games are left out."""
    usual: Mapping[str, Any] = make_game(name).options if name in GAMES else {}
    changed = [f"{option}={value}" for option, value in options.items() if usual.get(option) != value]
    return f"{name}:{','.join(changed)}" if changed else name


def shipped_config(game: str) -> Path:
    """Path of the shipped config of a game."""
    known = _shipped()
    if game not in known:
        raise ConfigError(f"there is no config for {game!r}. {explain_unknown(game, known, what='configs')}")
    return known[game]


def has_config(game: CoreGame) -> bool:
    """Whether windrow ships a config for this game."""
    return game.name in _shipped()


def _shipped(special: str = "") -> dict[str, Path]:
    """Shipped configs by game: those for all strategies, or those in one strategy's folder."""
    folder = Path(__file__).parent / "configs" / special
    return {path.stem: path for path in sorted(folder.glob("*.toml"))}


def merge(settings: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings with some replaced; `{"search.seed": 1}` reaches into a section.

    An engine's name also stands for a table of its options, so `search.engine = "ray"` and `search.engine.num_workers =
    4` work together. Setting the same name again keeps the options. In the same way, `network.kind = "mlp"` drops the
    settings of another kind.
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
