"""Settings that fit a game, a machine and a time limit, and a forecast of the run.

    measured = measure(game, config)       takes a few seconds; `windrow.train.measurement`
    choose(measured, config)               settings for a game without a config of its own
    shorten(measured, config)              settings for a config that needs more time than there is
    forecast(measured, config)             iterations, games, positions, when learning begins

All three are plain arithmetic on the numbers of a `Measurement`. The standard settings are proven for one to ten
million simulations in a run: Hex in Python, one to five minutes on two cores. `choose` keeps each of them while it
fits, and departs from it in proportion to how far a run is outside of that range.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from windrow.nets.config import ResNetConfig
from windrow.train.config import TrainConfig, merge
from windrow.train.progress import FULL_SIMULATIONS_AT, ITERATION_SHARE, simulation_range

BOARD_NETWORKS = ((32, 3), (64, 5), (128, 8))
FLAT_NETWORKS = ((32, 3), (128, 3), (256, 4))
"""Channels and blocks to choose from, for boards and for flat observations."""

_PROVEN_BUDGET = (1e6, 3.2e7)
"""Simulations of a whole run between which the standard number per move is kept."""
_BUDGETS_TO_GROW = (0.0, 2.4e7, 1.6e8)
"""Simulations that a run must afford with each network before that network is worth its price."""
_MIN_STEPS = 500
"""Learning steps that a run should have: where positions are few, batches are smaller."""
_MAX_STEPS = 12_000
"""Learning steps up to which the standard learning rate is right; it falls with the root of their number."""
_FEW_POSITIONS = 50_000
"""Positions of a run below which each is learned from more often than usual."""
_MIN_ITERATIONS = 20
"""Iterations that a run with a shipped config should have."""
_MAX_ITERATIONS = 400
"""Iterations beyond which more of them only cost time for checkpoints."""
_REPLAY_BYTES = 1 << 30
"""Memory that the replay may take."""
_LENGTH = 0.65
"""Length of a game in training, relative to a random one. Games get shorter as play improves: in a minute of Hex from
0.8 to 0.45, on average 0.6. For other games this is a guess."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What a game and a network cost on this machine, with the learner at work beside self-play if it will be."""

    plies: float
    """Moves of a random game."""
    legal: float
    """Legal actions of a position."""
    move_s: float
    """Seconds that the rules take for one move of a random game."""
    rules_s: float
    """Seconds of one simulation outside the network: the rules and the tree search together."""
    row_s: float
    """Seconds of the network for one more row in a batch."""
    overhead_rows: float
    """Rows that take as long as the fixed cost of calling the network."""
    sample_s: float
    """Seconds of the learner for one position."""
    position_bytes: int
    """Memory of one position in the replay."""
    network: tuple[int, int] | None
    """Channels and blocks of the network that was measured; None if it is no `ResNet`."""
    is_python: bool = False
    """Whether the rules are in Python."""
    is_flat: bool = False
    """Whether no part of the observation is a board."""
    is_endless: bool = False
    """Whether a random game was broken off, because it did not end."""

    def cost_of(self, config: TrainConfig) -> float:
        """Cost of the network of `config`, relative to the measured one; of other kinds than `ResNet` it is 1."""
        size = network_size(config)
        if size is None or self.network is None:
            return 1.0
        products = [channels**2 * (blocks + 0.5) for channels, blocks in (size, self.network)]
        return (products[0] / products[1]) ** 0.85  # larger layers are computed somewhat faster per product

    def simulation_s(self, num_slots: int, cost: float = 1.0) -> float:
        """Seconds of one simulation while so many games are played at once."""
        return self.rules_s + cost * self.row_s * (1.0 + self.overhead_rows / num_slots)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """What to expect of a run that ends by the clock."""

    iterations: int
    games: int
    positions: int
    steps: int
    learning_begins_s: float
    """Seconds until the first learning step."""
    rules_share: float
    """Share of self-play's time outside the network: the rules and the tree search."""
    learning_ratio: float
    """Time to learn from a game, relative to the time to play it."""


def forecast(measured: Measurement, config: TrainConfig) -> Forecast:
    """What to expect of a run with `config`, which has a time limit."""
    time_s, cost, selfplay = config.time_limit_s or 0.0, measured.cost_of(config), config.selfplay
    plies, game_s, recorded, learn_s = _game(measured, config)
    is_side_by_side = config.overlap and not config.deterministic
    # Side by side, playing and learning both have all the time; in turns, each has its part of it.
    games = time_s / (game_s if is_side_by_side else game_s + learn_s)
    samples = min(games * recorded * config.samples_per_position, time_s / (measured.sample_s * cost))
    pace_s = max(game_s, learn_s) if is_side_by_side else game_s + learn_s
    iteration_s = min(config.games_per_iteration * pace_s, ITERATION_SHARE * time_s)
    first, _ = simulation_range(config)
    early_s = plies * _per_move(config, first) * measured.simulation_s(selfplay.num_slots, cost)
    # All games begin at the same time, so that hardly one is over before all of them are.
    generation_s = selfplay.num_slots * early_s
    wanted = max(config.games_per_iteration, config.min_positions / max(recorded, 1e-9))
    first_s = min(max(generation_s, min(early_s * wanted, ITERATION_SHARE * time_s)), time_s)
    return Forecast(
        iterations=1 + round((time_s - first_s) / max(iteration_s, 1e-9)),
        games=round(games),
        positions=round(games * recorded),
        steps=round(samples / config.learner.batch_size),
        learning_begins_s=first_s,
        rules_share=measured.rules_s / measured.simulation_s(selfplay.num_slots, cost),
        learning_ratio=learn_s / max(game_s, 1e-9),
    )


def choose(measured: Measurement, config: TrainConfig, *, given: Collection[str] = ()) -> dict[str, Any]:
    """What to change in the standard settings, for a game that has no config of its own: `{"search.seed": 1, ...}`.

    Args:
        measured: on this machine, with the network of `config`.
        config: the standard settings, and on top of them those of the user; `time_limit_s` is one of these.
        given: the names of the user's settings, which stay.
    """
    draft, time_s = _Draft(config, given), config.time_limit_s or 0.0
    resnet = config.network
    if isinstance(resnet, ResNetConfig) and not any(name.partition(".")[0] == "network" for name in given):
        networks = FLAT_NETWORKS if measured.is_flat else BOARD_NETWORKS
        for (channels, blocks), needed in zip(networks, _BUDGETS_TO_GROW, strict=True):
            larger = config.replace(network=resnet.replace(channels=channels, blocks=blocks))
            if time_s / measured.simulation_s(config.selfplay.num_slots, measured.cost_of(larger)) >= needed:
                draft.set("network.channels", channels)
                draft.set("network.blocks", blocks)
    # Four times the time buys twice the games, and twice the simulations for each of their moves.
    usual = config.search.num_simulations or 0
    simulations = usual * math.sqrt(_excess(draft.budget(measured), *_PROVEN_BUDGET))
    draft.set("search.num_simulations", _round(simulations, min(usual, 8), max(usual, 192)))
    if config.early_simulations:
        share = (draft.config.search.num_simulations or 0) / usual
        draft.set("early_simulations", max(round(share * config.early_simulations), 4))
    draft.set("selfplay.opening_plies", min(config.selfplay.opening_plies, int(measured.plies / 4)))
    # So many games at once that calling the network is a tenth of its time, and no more than end early in the run.
    draft.set("selfplay.num_slots", _power_of_two(10 * measured.overhead_rows, config.selfplay.num_slots, 1024))
    draft.set("selfplay.num_slots", _slots_that_fit(measured, draft.config))
    positions = max(forecast(measured, draft.config).positions, 1)
    more = min(max(math.sqrt(_FEW_POSITIONS / positions), 1.0), 2.5)
    draft.set("samples_per_position", round(more * config.samples_per_position, 1))
    samples = draft.samples(measured, positions)
    rate = config.learner.learning_rate * _set_batch_size(draft, samples)
    steps = max(samples / draft.config.learner.batch_size, 1.0)
    before, after = network_size(config), network_size(draft.config)
    rate *= (before[0] / after[0] if before and after else 1.0) * min(1.0, math.sqrt(_MAX_STEPS / steps))
    draft.set("learner.learning_rate", float(f"{rate:.2g}"))
    draft.set("learner.warmup_steps", min(config.learner.warmup_steps, int(steps / 20)))
    fitting = max(_REPLAY_BYTES // measured.position_bytes, 1000)
    draft.set("replay.max_positions", int(min(max(positions / 4, config.replay.max_positions), 1_000_000, fitting)))
    _set_min_positions(draft, positions)
    # The usual number of games, unless they take too long for this run or hardly any time.
    longest_s = 1.5 * ITERATION_SHARE * time_s  # the clock ends such an iteration a little early
    shortest_s = min(max(time_s / _MAX_ITERATIONS, 1.0), longest_s)
    least, most = (_games_that_fit(measured, draft.config, seconds) for seconds in (shortest_s, longest_s))
    draft.set("games_per_iteration", min(max(config.games_per_iteration, least), most))
    return draft.changed


def shorten(measured: Measurement, config: TrainConfig, *, given: Collection[str] = ()) -> dict[str, Any]:
    """What to change in a config so that its iterations fit into its time limit; as `choose` gives it.

    Games at once, games per iteration and `min_positions` become fewer. If learning still begins too late, there are
    fewer simulations; if there are few learning steps, batches are smaller. Nothing becomes more.
    """
    draft, time_s = _Draft(config, given), config.time_limit_s or 0.0
    usual = config.search.num_simulations or 0
    for simulations in (usual, *(step for step in (128, 96, 64, 48, 32, 24, 16, 12, 8) if step < usual)):
        draft.set("search.num_simulations", simulations)
        draft.set("selfplay.fast_simulations", min(config.selfplay.fast_simulations, max(simulations // 4, 4)))
        if simulations == usual:
            draft.set("selfplay.fast_simulations", config.selfplay.fast_simulations)
        draft.set("selfplay.num_slots", config.selfplay.num_slots)
        draft.set("selfplay.num_slots", _slots_that_fit(measured, draft.config))
        games = _games_that_fit(measured, draft.config, 0.9 * ITERATION_SHARE * time_s)
        draft.set("games_per_iteration", min(config.games_per_iteration, games))
        draft.set("min_positions", config.min_positions)
        expected = forecast(measured, draft.config)
        _set_min_positions(draft, expected.positions)
        expected = forecast(measured, draft.config)
        if expected.learning_begins_s <= 2 * ITERATION_SHARE * time_s and expected.iterations >= _MIN_ITERATIONS:
            break
    samples = draft.samples(measured, max(forecast(measured, draft.config).positions, 1))
    rate = config.learner.learning_rate * _set_batch_size(draft, samples)
    draft.set("learner.learning_rate", float(f"{rate:.2g}"))
    steps = samples / draft.config.learner.batch_size
    draft.set("learner.warmup_steps", min(config.learner.warmup_steps, int(steps / 20)))
    return draft.changed


def _set_batch_size(draft: _Draft, samples: float) -> float:
    """Smaller batches where so many samples make few steps; returns the factor of the learning rate."""
    usual = draft.config.learner.batch_size
    if samples < usual * _MIN_STEPS:
        draft.set("learner.batch_size", _power_of_two(samples / _MIN_STEPS, min(32, usual), usual))
    return math.sqrt(draft.config.learner.batch_size / usual)


def network_size(config: TrainConfig) -> tuple[int, int] | None:
    """Channels and blocks of a `ResNet`; None for other kinds of networks."""
    network = config.network
    return (network.channels, network.blocks) if isinstance(network, ResNetConfig) else None


def _set_min_positions(draft: _Draft, positions: int) -> None:
    """Learning begins with what is recorded in half of an iteration's time, at the latest."""
    least = max(int(0.5 * ITERATION_SHARE * positions), 1)
    draft.set("min_positions", min(draft.config.min_positions, least, draft.config.replay.max_positions))


class _Draft:
    """A config, and what of it was changed; what the user has given stays."""

    def __init__(self, config: TrainConfig, given: Collection[str]) -> None:
        self.config, self._before, self._given = config, config, given
        self._settings: dict[str, Any] = {}

    def set(self, name: str, value: Any) -> None:
        if name not in self._given:
            self._settings[name] = value
            self.config = TrainConfig.from_dict(merge(self._before.to_dict(), self._settings))

    def budget(self, measured: Measurement) -> float:
        """Simulations for which there is time."""
        cost = measured.cost_of(self.config)
        return (self.config.time_limit_s or 0.0) / measured.simulation_s(self.config.selfplay.num_slots, cost)

    def samples(self, measured: Measurement, positions: float) -> float:
        """Samples that the learner takes from so many positions, as far as there is time."""
        seconds = self.config.time_limit_s or 0.0
        wanted = positions * self.config.samples_per_position
        return min(wanted, seconds / (measured.sample_s * measured.cost_of(self.config)))

    @property
    def changed(self) -> dict[str, Any]:
        return {name: value for name, value in self._settings.items() if value != setting(self._before, name)}


def setting(config: TrainConfig, name: str) -> Any:
    """One setting of a config by its name, such as "search.num_simulations"."""
    value: Any = config
    for part in name.split("."):
        value = getattr(value, part)
    return value


def _game(measured: Measurement, config: TrainConfig) -> tuple[float, float, float, float]:
    """Of one game: its moves, seconds to play it, moves recorded, seconds to learn from them."""
    selfplay, cost = config.selfplay, measured.cost_of(config)
    plies = max(min(_LENGTH * measured.plies, selfplay.max_plies or math.inf) - selfplay.opening_plies / 2, 1.0)
    first, last = simulation_range(config)
    mean = first + (last - first) * (1 - FULL_SIMULATIONS_AT / 2)
    play_s = plies * _per_move(config, mean) * measured.simulation_s(selfplay.num_slots, cost)
    recorded = plies * selfplay.full_fraction
    return plies, play_s, recorded, recorded * config.samples_per_position * measured.sample_s * cost


def _per_move(config: TrainConfig, full: float) -> float:
    """Simulations of a move, on average, if a full search has so many."""
    share = config.selfplay.full_fraction
    return max(share * full + (1 - share) * config.selfplay.fast_simulations, 1.0)


def _slots_that_fit(measured: Measurement, config: TrainConfig) -> int:
    """Games at once whose first generation ends in half of an iteration's time: halved until they do, down to eight."""
    slots, limit_s = config.selfplay.num_slots, 0.5 * ITERATION_SHARE * (config.time_limit_s or 0.0)
    plies = _game(measured, config)[0]
    per_game = plies * _per_move(config, simulation_range(config)[0])
    while slots > 8 and slots * per_game * measured.simulation_s(slots, measured.cost_of(config)) > limit_s:
        slots = max(slots // 2, 8)
    return slots


def _games_that_fit(measured: Measurement, config: TrainConfig, seconds: float) -> int:
    """Games that are played and learned from in so many seconds."""
    _, play_s, _, learn_s = _game(measured, config)
    pace_s = max(play_s, learn_s) if config.overlap else play_s + learn_s
    return min(max(int(seconds / pace_s), 8), 4096)


def _excess(value: float, least: float, most: float) -> float:
    """How many times as large as its bounds a value is: 1 between them, 2 at twice `most`, 1/2 at half of `least`."""
    return value / min(max(value, least), most)


def _round(value: float, least: int, most: int) -> int:
    """The nearest of 8, 12, 16, 24, 32, 48 and so on."""
    steps = [width << doublings for doublings in range(12) for width in (2, 3)]
    return min(
        (step for step in steps if least <= step <= most), key=lambda step: abs(math.log(step / max(value, 1e-9)))
    )


def _power_of_two(value: float, least: int, most: int) -> int:
    """The nearest power of two within two others."""
    return min(max(1 << max(round(math.log2(max(value, 1.0))), 0), least), most)
