"""The settings of a training run on the device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.settings import Settings, read_file
from windrow.train.config import TrainConfig, config_for

CompileMode: TypeAlias = Literal["auto", "max-autotune", "default", "none"]

OPTIONS = "tensor.json"
"""The file in a run's folder that has its `TensorOptions`."""


@dataclass(frozen=True, kw_only=True, slots=True, repr=False)
class TensorOptions(Settings):
    """What `TensorTraining` needs to know besides a `TrainConfig`."""

    game: str | None = None
    """The rules in torch ops, where they are not built in: a class by its place, such as `nim.py:NimTensors`, made with
    the options of the game. It must be the same game, which is checked (`windrow.tensor.check_siblings`)."""
    device: str = "auto"
    """"auto" is the GPU if there is one."""
    compile: CompileMode = "auto"
    """How the network that is searched with is compiled: torch.compile's mode. "auto": "max-autotune" on a GPU, "none"
    elsewhere."""
    compile_learner: bool | None = None
    """Compile the network that learns. None: on a GPU."""
    weight_average: float = 0.998
    """Self-play and checkpoints use an average of the weights: this share of it is left after each step of the learner.
    0: the weights as they are."""

    @classmethod
    def read(cls, folder: Path, changes: Mapping[str, Any]) -> TensorOptions:
        """Those of the run in `folder`, with some changed."""
        settings, path = read_file(folder / OPTIONS), folder / OPTIONS
        try:
            read = cls(**settings)
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from None
        if read.game is not None and "game" not in changes:  # which would be imported
            raise ConfigError(
                f"{path} names the game in torch ops, {read.game}. windrow imports no code that a file names, so name "
                f"it yourself: --set tensor.game={read.game}"
            )
        return cls(**{**settings, **changes})

    def __post_init__(self) -> None:
        if self.game is not None and not isinstance(self.game, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f"game must be text such as nim.py:NimTensors, not {self.game!r:.100}")
        if not isinstance(self.device, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ConfigError(f'device must be text such as "cuda:1", not {self.device!r:.100}')
        if self.compile_learner is not None:
            self._check_flag("compile_learner")
        self._check_choice("compile", CompileMode)
        self._check_number("weight_average", 0.0, 1.0 - 1e-9)


def is_tensor_run(folder: str | Path) -> bool:
    """Whether the run in `folder` is one of the tensor engine."""
    return (Path(folder) / OPTIONS).exists()


def tensor_config_for(game: CoreGame, overrides: Mapping[str, Any] | None = None) -> TrainConfig:
    """The config that windrow brings along for a game on a GPU; for other games, the one for CPUs."""
    file = Path(__file__).parent / "configs" / "tensor" / f"{game.name}.toml"
    if not file.exists():
        return config_for(game, overrides)
    return TrainConfig.read(file, {"game": game.name, "game_options": dict(game.options), **(overrides or {})})


def budgets_of(config: TrainConfig) -> list[int]:
    """The numbers of simulations of a run: from `early_simulations` on, twice as many each time, up to the whole."""
    last = config.search.num_simulations or 0
    budgets, next_one = [last], config.early_simulations or last
    while next_one < last:
        budgets.insert(-1, next_one)
        next_one *= 2
    return budgets


def check_settings(config: TrainConfig) -> None:
    """Raise `ConfigError` for what training with the tensor engine does not do."""
    selfplay = config.selfplay
    for is_asked, name in (
        (selfplay.full_fraction < 1.0, "[selfplay] full_fraction"),
        (selfplay.resign_below is not None, "[selfplay] resign_below"),
        (config.deterministic, "deterministic"),
        (config.keep_games, "keep_games"),
    ):
        if is_asked:
            raise ConfigError(f"training with the tensor engine does not know {name} yet: leave it out")
