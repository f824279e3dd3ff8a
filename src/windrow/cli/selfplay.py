"""`windrow selfplay`: plays games of an evaluator against itself, without training."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from windrow.cli.evaluation import NamedEvaluator, folded_network, make_evaluator
from windrow.cli.options import (
    ActorsOption,
    AddressOption,
    BackendOption,
    ConfigOption,
    GameArgument,
    JsonOption,
    NetworkEvaluatorOption,
    NetworkOption,
    SeedOption,
    ThreadsOption,
    WorkersOption,
    engine_option,
    file_settings,
    read_settings,
    search_config,
)
from windrow.cli.output import counted, loading, print_facts, print_json, progress_bar
from windrow.config import SearchConfig
from windrow.games.core_game import CoreGame
from windrow.play.specs import parse_game, parse_spec
from windrow.search.engines import engine_class

if TYPE_CHECKING:
    from windrow.train.records import GameRecord


EXAMPLES = (
    "windrow selfplay connect4 --evaluator runs/c4 --games 500",
    "windrow selfplay connect4 --games 20 --sims 20 --slots 20 # a network with random weights",
    "windrow selfplay nim.py:Nim --engine multiprocess --workers 4 # a game written in Python, on four cores",
    "windrow selfplay connect4 --engine ray --address auto --workers 8 --actors 2 # on a Ray cluster",
    "windrow selfplay connect4 --evaluator runs/c4 --config tuned.toml # with the settings of windrow tune",
    "windrow selfplay gomoku:size=9 -e rollout --games 50 --out games.log",
    "windrow selfplay connect4 --set root=gumbel --json # the Gumbel root; its noise is gumbel_scale",
)


def selfplay(
    game: GameArgument = "connect4",
    evaluator: NetworkEvaluatorOption = "resnet",
    network: NetworkOption = None,
    threads: ThreadsOption = None,
    games: Annotated[int, typer.Option("--games", "-g", help="Number of games to play.", min=1)] = 100,
    sims: Annotated[int | None, typer.Option("--sims", "-n", help="Simulations per move (default 64).", min=1)] = None,
    slots: Annotated[
        int | None, typer.Option("--slots", help="Games played at the same time (default 128).", min=1)
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", help="Write the games to this file.")] = None,
    show: Annotated[int, typer.Option("--show", help="Number of games whose moves are printed.", min=0)] = 0,
    engine: Annotated[str | None, engine_option(" It must be able to search many games at once.")] = None,
    workers: WorkersOption = None,
    actors: ActorsOption = None,
    address: AddressOption = None,
    backend: BackendOption = "auto",
    config_file: ConfigOption = None,
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting of the search or of self-play; may be repeated."),
    ] = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Play games of an evaluator against itself and measure the speed.

    Ctrl-C prints the figures so far.
    """
    from windrow.train.records import GameLog
    from windrow.train.selfplay import SelfPlay, SelfPlayConfig

    rules = parse_game(game)
    given = read_settings(
        settings,
        SearchConfig,
        SelfPlayConfig,
        num_simulations=sims,
        num_slots=slots,
        engine=engine,
        num_workers=workers,
        num_actors=actors,
        address=address,
        seed=seed,
    )
    of_file = [
        file_settings(config_file, name, kind)
        for name, kind in (("search", SearchConfig), ("selfplay", SelfPlayConfig))
    ]
    given = {**of_file[0], **of_file[1], **given}
    play_config = SelfPlayConfig(**{key: given.pop(key) for key in SelfPlayConfig.setting_names() if key in given})
    noise = {"gumbel_scale": 1.0} if given.get("root") == "gumbel" else {"dirichlet_fraction": 0.25}
    defaults = SearchConfig(num_simulations=64).with_settings({**noise, **given})
    search = search_config(None, defaults, num_threads=threads)
    make = _make_portable if engine_class(search).capabilities.evaluator == "actors" else make_evaluator
    slots_used = play_config.num_slots
    with loading(evaluator, backend):
        named = make(
            rules,
            evaluator,
            seed=seed,
            backend=backend,
            batch=slots_used,
            has_new_network=True,
            network=network,
            num_threads=threads,
        )
    player = SelfPlay(rules, named.evaluator, search, play_config)
    tally = Tally()
    log = GameLog(out) if out is not None else None
    shown: list[str] = []
    try:
        with progress_bar("playing", games) as bar:
            for record in player.play(games):
                tally.add(record)
                if log is not None:
                    log.append(record)
                if len(shown) < show:
                    start = rules.unpack_start(record.initial)
                    shown.append(rules.moves_to_text(record.all_moves()[0].tolist(), start))
                bar.update(tally.games, note=f"{tally.games / player.stats.total_s:.1f} games/s")
    finally:
        if log is not None:
            log.close()
        player.close()
        document = _describe(player, tally, named.label)
        if as_json:
            print_json({**document, "shown": shown})
        else:
            print_facts(_in_words(document))
            for number, moves in enumerate(shown, start=1):
                print(f"game {number}: {moves}")


def _make_portable(game: CoreGame, text: str, *, backend: str, batch: int, **options: Any) -> NamedEvaluator:
    """The evaluator that `text` names, in a form that can be sent to other machines."""
    if parse_spec(text).name in ("uniform", "rollout"):
        return make_evaluator(game, text, **options)
    from windrow.train.ray_network import PortableNetwork

    net = folded_network(game, text, network=options["network"])
    evaluator = PortableNetwork(
        net, game=game, backend=backend, batch=batch, max_update_s=None, num_threads=options["num_threads"]
    )
    return NamedEvaluator(evaluator, f"{text} ({evaluator.backend})", is_network=True)


@dataclass(slots=True)
class Tally:
    """Counts of the requested games. The statistics of self-play also include parts of other games."""

    games: int = 0
    moves: int = 0
    recorded_moves: int = 0
    repeated_games: int = 0
    resigned_games: int = 0
    first_player_wins: int = 0
    draws: int = 0
    _seen: set[bytes] = field(default_factory=set[bytes])

    def add(self, record: GameRecord) -> None:
        """Add one game to the counts."""
        self.games += 1
        self.moves += len(record)
        self.recorded_moves += len(record.policy)
        self.resigned_games += record.resigned_by >= 0
        self.first_player_wins += bool(record.returns[0] > 0)
        self.draws += bool(len(record.returns) == 2 and record.returns[0] == record.returns[1])
        moves = hashlib.sha256(record.moves_key).digest()
        self.repeated_games += moves in self._seen
        self._seen.add(moves)

    def counts(self) -> dict[str, int]:
        """All counts by name."""
        return {name: getattr(self, name) for name in self.__slots__ if not name.startswith("_")}


def _describe(player: Any, tally: Tally, label: str) -> dict[str, Any]:
    stats = player.stats
    seconds = max(stats.total_s, 1e-9)
    counts = {**asdict(stats), **tally.counts(), "unfinished_moves": max(stats.moves - tally.moves, 0)}
    return {
        "evaluator": label,
        "num_slots": player.config.num_slots,
        "games_per_s": tally.games / seconds,
        "moves_per_s": stats.moves / seconds,
        "simulations_per_s": stats.simulations / seconds,
        "nn_positions_per_s": stats.nn_positions / seconds,
        "batch_fill": stats.batch_fill,
        **counts,
    }


def _in_words(document: dict[str, Any]) -> dict[str, str]:
    games, moves, more = max(document["games"], 1), document["moves"], document["unfinished_moves"]
    return {
        "evaluator": document["evaluator"],
        "games": f"{document['games']:,} in {document['total_s']:.1f} s, {document['games_per_s']:.1f} per second",
        "moves": f"{moves:,}"
        + (f" and {more:,} in other games" if more else "")
        + f", {document['moves_per_s']:,.0f} per second",
        "simulations": f"{document['simulations']:,}, {document['simulations_per_s']:,.0f} per second",
        "network": f"{counted(document['nn_positions'], 'position')} in {counted(document['nn_batches'], 'call')}, "
        f"{document['nn_positions_per_s']:,.0f} positions per second, batches {document['batch_fill']:.0%} full",
        "results": f"the first player won {document['first_player_wins'] / games:.0%}, "
        f"{document['draws'] / games:.0%} were draws",
        "repeated": f"{counted(document['repeated_games'], 'game')} repeated an earlier one move for move"
        if document["repeated_games"]
        else "none",
    }
