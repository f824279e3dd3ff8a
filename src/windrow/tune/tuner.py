"""Measure, halve, refine, repeat: from many candidates to one in two minutes.

1. The network alone, batch by batch: it says how many rows are worth gathering.
2. Every coarse candidate, one short sample each; the better half goes on, with variations of the best.
3. Those again, with longer samples.
4. The last few in turn, again and again, so that a busy moment of the machine falls on all alike.

What counts is never the simulations per second but those times their worth (`windrow.tune.price`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

from windrow.config import SearchConfig
from windrow.cores import num_cores
from windrow.engines import EngineOptions, Ray
from windrow.errors import ConfigError
from windrow.evaluators.protocol import EvaluatorLike, GameAware, StateEvaluator
from windrow.games.core_game import CoreGame
from windrow.games.python_game import as_core_game
from windrow.search.engines import find_engine
from windrow.tune.choice import Measured, choose, hints
from windrow.tune.config_file import write_config
from windrow.tune.contest import Contest, Progress
from windrow.tune.measurement import open_shortcut
from windrow.tune.network import NetworkCurve, measure_curve
from windrow.tune.price import Price
from windrow.tune.space import Space, default_engines

_BATCH_WITHOUT_NETWORK = 256
"""Rows worth gathering for an evaluator that cannot be measured alone."""
_TYPICAL_BATCH = {True: 8, False: 256}
"""Rows for which the backend is chosen, for one position and for many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What was measured, and what was chosen.

    game, num_simulations: what it was tuned for.
    num_positions: positions to be searched together; None: as many as are best.
    price_source: where the price of leaves in flight comes from, in words.
    rows: the best first; what was measured only to compare with is among them.
    choice: the one to take.
    config: the search that was asked for, with the choice's settings.
    backend: what ran the network; None without one.
    hints: what the figures teach.
    curve: the network alone; None without one.
    seconds: that all this took.
    """

    game: CoreGame
    num_simulations: int
    num_positions: int | None
    rows: tuple[Measured, ...]
    choice: Measured
    config: SearchConfig
    backend: str | None
    price_source: str
    hints: tuple[str, ...]
    curve: NetworkCurve | None
    seconds: float

    def sections(self) -> dict[str, Any]:
        """The choice as a config file has it; it says how to search, not how much or where to look."""
        options = {"game_options": dict(self.game.options)} if self.game.options else {}
        slots = {"selfplay": {"num_slots": self.choice.candidate.num_trees}} if self.num_positions is None else {}
        settings = self.choice.candidate.settings()
        search = {name: value for name, value in settings.items() if name in SearchConfig.setting_names()}
        # A file cannot hold rules that are an object.
        engine = self.config.options_for(EngineOptions).to_dict()
        engine = {name: value for name, value in engine.items() if isinstance(value, str | int | float)}
        search["engine"] = engine if len(engine) > 1 else engine["name"]
        return {"game": self.game.name, **options, "search": search, **slots}

    def write(self, path: str | Path, *, comment: str = "") -> None:
        """Write the choice as TOML or JSON, for `SearchConfig.read`, `TrainConfig` and `--config`."""
        choice = self.choice
        facts = (
            f"{choice.candidate.in_words()}: {choice.simulations_per_second:,.0f} simulations/s of efficiency "
            f"{choice.efficiency:.2f}, at {self.num_simulations} simulations a search"
            + ("" if self.backend is None else f", network on {self.backend}")
        )
        write_config(path, self.sections(), comments=[line for line in (comment, facts) if line])

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values, for JSON."""
        return {
            "game": self.game.name,
            "game_options": dict(self.game.options),
            "num_simulations": self.num_simulations,
            "num_positions": self.num_positions,
            "backend": self.backend,
            "price": self.price_source,
            "choice": self.choice.to_dict(),
            "candidates": [row.to_dict() for row in self.rows],
            "hints": list(self.hints),
            "network": [] if self.curve is None else [list(point) for point in self.curve.rates],
            "seconds": self.seconds,
            "config": self.sections(),
        }


def tune(
    game: Any,
    network: Any,
    config: SearchConfig | None = None,
    *,
    num_positions: int | None = None,
    engines: Sequence[str] | None = None,
    seconds: float = 110.0,
    max_trees: int = 4096,
    backend: str = "auto",
    price: Price | None = None,
    progress: Progress | None = None,
) -> Tuning:
    """Find how to search a game with a network on this machine, for the best strength-adjusted throughput.

    Args:
        game: one of `make_game`, or an object of your own class.
        network: an evaluator; or what `windrow.evaluators.load` takes: a module, an ONNX file, a checkpoint.
        config: the search that is wanted, without how to run it; it must count simulations. None: 64 simulations for
            many positions, 800 for one.
        num_positions: positions that are searched together. None: as many as are best, as self-play can have.
        engines: which may be chosen. None: those of this machine that make sense, such as sequential and batched for
            one position; trees on a device where there is a GPU and the game in torch ops. "ray" only if it is named.
        seconds: for all of it, about.
        max_trees: most positions that are tried together.
        backend: what runs a network that has yet to be loaded.
        price: what leaves in flight cost; None: as it was measured for windrow.
        progress: told how far it is.

    Raises:
        ConfigError: there is nothing to choose from, or the price of batching is not known.
    """
    start = perf_counter()
    rules = as_core_game(game)
    price = Price.read() if price is None else price
    base = SearchConfig(num_simulations=800 if num_positions == 1 else 64) if config is None else config
    _check(base, num_positions, engines, max_trees)
    tell: Progress = (lambda share, what: None) if progress is None else progress
    with ExitStack() as stack:
        tell(0.0, "loading the network")
        contest = _open(stack, rules, network, base, num_positions, engines, max_trees, backend, price)
        stack.callback(contest.close)
        contest.begin(start, seconds, tell)
        contest.run()
        rows = contest.table()
        choice = choose(row for row in rows if row.is_finalist)
    return Tuning(
        game=rules,
        num_simulations=base.num_simulations or 0,
        num_positions=num_positions,
        rows=tuple(sorted(rows, key=lambda row: -row.adjusted)),
        choice=choice,
        config=base.with_settings(choice.candidate.settings()),
        backend=getattr(contest.evaluator, "backend", None),
        price_source=price.source,
        hints=tuple(hints(rows, choice, num_positions=num_positions, max_trees=max_trees)),
        curve=contest.curve,
        seconds=perf_counter() - start,
    )


def _check(base: SearchConfig, num_positions: int | None, engines: Iterable[str] | None, max_trees: int) -> None:
    if not base.num_simulations or base.time_limit_s is not None:
        raise ConfigError("tuning counts simulations: set num_simulations, and no time_limit_s")
    if num_positions is not None and num_positions < 1:
        raise ConfigError(f"num_positions must be at least 1, not {num_positions}")
    if max_trees < 1:
        raise ConfigError(f"max_trees must be at least 1, not {max_trees}")
    for engine in engines or ():
        if find_engine(engine).capabilities.is_choice:
            raise ConfigError(f"{engine} is a choice of engines itself: name those to choose from")


def _open(
    stack: ExitStack,
    game: CoreGame,
    network: Any,
    base: SearchConfig,
    num_positions: int | None,
    engines: Sequence[str] | None,
    max_trees: int,
    backend: str,
    price: Price,
) -> Contest:
    """Load the network and measure it alone."""
    is_evaluator = isinstance(network, EvaluatorLike | StateEvaluator | GameAware)
    evaluator, module = network, None
    if not is_evaluator:
        from windrow.evaluators.loading import load

        evaluator = load(network, game=game, backend=backend, batch=_TYPICAL_BATCH[num_positions == 1])
        stack.callback(evaluator.close)
        module = network if hasattr(network, "parameters") else None
    if engines is None:
        engines = default_engines(num_positions, has_device=module is not None and _has_gpu())
    places = {name: find_engine(name).capabilities.evaluator for name in engines}
    if module is None and (on_device := [name for name, place in places.items() if place == "device"]):
        raise ConfigError(
            f"the {on_device[0]} engine takes a PyTorch module: give the network itself, not an evaluator of it"
        )
    shortcut = open_shortcut(game, evaluator)
    curve = None if shortcut is None else measure_curve(game, evaluator)
    space = Space(
        base=base,
        engines=tuple(dict.fromkeys(engines)),
        num_positions=num_positions,
        num_cores=num_cores(),
        evaluator_pipeline=getattr(evaluator, "pipeline", 1),
        full_batch=_BATCH_WITHOUT_NETWORK if curve is None else curve.full_batch,
        max_trees=max_trees,
    )
    elsewhere = [base.with_settings({"engine": name}) for name, place in places.items() if place == "actors"]
    fleet = _open_fleet(stack, game, network, elsewhere[0], backend) if elsewhere else None
    sampled = evaluator if shortcut is None else shortcut
    return Contest(game, space, price, evaluator, sampled, curve, module=module, fleet=fleet)


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available()


def _open_fleet(stack: ExitStack, game: CoreGame, network: Any, config: SearchConfig, backend: str) -> Any:
    """Inference actors that all candidates with such an engine share."""
    from windrow.evaluators.loading import load
    from windrow.inference.ray_opening import open_client

    is_evaluator = isinstance(network, EvaluatorLike | StateEvaluator | GameAware)
    maker = network if is_evaluator else partial(load, network, game=game, backend=backend, batch=_TYPICAL_BATCH[False])
    _, fleet = open_client(game, maker, config.options_for(Ray))
    if fleet is not None:
        stack.callback(fleet.close)
    return network if fleet is None else fleet
