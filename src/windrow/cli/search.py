"""`windrow search`: searches one position and lists its moves."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer

from windrow.cli.duration import parse_duration
from windrow.cli.evaluation import make_evaluator
from windrow.cli.options import (
    BackendOption,
    ConfigOption,
    CPuctOption,
    EvaluatorOption,
    GameArgument,
    JsonOption,
    LeavesOption,
    MaxBatchOption,
    NetworkOption,
    SeedOption,
    SetOption,
    SimsOption,
    ThreadsOption,
    WorkersOption,
    engine_option,
    search_config,
    with_file,
)
from windrow.cli.output import ProgressBar, counted, loading, print_json, print_table, progress_bar, stdout
from windrow.config import SearchConfig
from windrow.errors import ConfigError
from windrow.games.chance import pass_chance
from windrow.play.specs import parse_game
from windrow.search import Search, SearchResult

_MAX_LINE = 12
"""Maximum number of moves printed of a line; JSON has all of them."""


EXAMPLES = (
    "windrow search connect4 # the first move of the game",
    "windrow search connect4 --moves 4453 --sims 5000",
    "windrow search connect4 --position '7/7/7/7/3o3/3x3 x' # the board from the top, and the side to move",
    "windrow search gomoku:size=9 --moves 'e5 d5' --engine batched --leaves 8",
    "windrow search connect4 --evaluator runs/c4 --top 3 --json # with a trained network",
    "windrow search connect4 --evaluator runs/mine --network mynet.py:Net # with your own network",
    "windrow search backgammon --moves 'x31 8/5 6/5' --sims 5000 # dice rolls are written among the moves",
    "windrow search connect4 --engine ray --set num_actors=2 # with inference actors on a Ray cluster",
    "windrow search connect4 --evaluator runs/c4 --config tuned.toml # with the settings of windrow tune",
    "windrow search othello --time 2s --set first_play=parent # two seconds, another first_play",
)


def search(
    game: GameArgument,
    moves: Annotated[str, typer.Option("--moves", "-m", help="Moves that led to the position, such as 4453.")] = "",
    position: Annotated[
        str | None,
        typer.Option("--position", "-p", help="The position as text, instead of --moves, such as '7/7/7/7/3o3/3x3 x'."),
    ] = None,
    evaluator: EvaluatorOption = "rollout",
    network: NetworkOption = None,
    top: Annotated[int, typer.Option("--top", help="Number of moves to show.", min=1)] = 10,
    sims: SimsOption = None,
    time: Annotated[
        str | None,
        typer.Option(
            "--time",
            help="Time limit, such as [cyan]2s[/cyan] or [cyan]500ms[/cyan]. Without --sims it is the only limit.",
            rich_help_panel="Search",
        ),
    ] = None,
    engine: Annotated[str | None, engine_option()] = None,
    c_puct: CPuctOption = None,
    leaves: LeavesOption = None,
    max_batch: MaxBatchOption = None,
    threads: ThreadsOption = None,
    workers: WorkersOption = None,
    backend: BackendOption = "auto",
    config_file: ConfigOption = None,
    settings: SetOption = None,
    seed: SeedOption = 0,
    as_json: JsonOption = False,
) -> None:
    """Search a position and list its best moves.

    Each move is shown with its visits, its share of them, Q, prior and line of play. Q and the value are seen from the
    player to move: 1 is a win, -1 a loss.
    """
    rules = parse_game(game)
    dice = random.Random(seed)
    time_s = None if time is None else parse_duration(time)
    if moves and position is not None:
        raise ConfigError("--moves and --position both set the position to search: give only one of them")
    given = rules.state_from_moves(moves) if position is None else rules.parse(position)
    state, drawn = pass_chance(rules, given, lambda _: dice.getrandbits(64))
    config = search_config(
        settings,
        with_file(config_file, SearchConfig(num_simulations=800 if time_s is None else None, time_limit_s=time_s)),
        num_simulations=sims,
        engine=engine,
        c_puct=c_puct,
        leaves_per_tree=leaves,
        max_batch=max_batch,
        num_threads=threads,
        num_workers=workers,
        seed=seed,
    )
    with loading(evaluator, backend):
        chosen = make_evaluator(
            rules,
            evaluator,
            seed=seed,
            backend=backend,
            batch=config.leaves_per_tree or 8,
            engine=config.engine_name,
            network=network,
            num_threads=threads,
        )
    with Search(rules, chosen.evaluator, config) as searcher:
        with progress_bar("searching", config.num_simulations) as bar:
            result = _watch(searcher.stream(state, interval_s=0.1), bar)
        found = _rows(searcher, result, top)
    if as_json:
        print_json(
            {
                "game": rules.name,
                "game_options": dict(rules.options),
                "position": moves if position is None else position,
                "evaluator": chosen.label,
                "best_move": rules.move_name(state, result.best_action),
                "value": result.value,
                "proven": "" if result.proven is None else result.proven.describe(),
                "principal_variation": rules.line_names(state, result.principal_variation),
                "moves": found,
                "stats": {**asdict(result.stats), "simulations_per_second": result.stats.simulations_per_second},
                "config": config.to_dict(),
            }
        )
        return
    console = stdout()
    if drawn:
        names = " ".join(rules.outcome_name(outcome) for outcome in drawn)
        console.print(
            f"It was chance's turn: {names} was drawn (--seed draws another outcome, --moves sets it)", style="dim"
        )
    console.print(str(state), markup=False)
    console.print()
    has_proofs = any(row["proven"] for row in found)
    rows = [
        (
            row["move"],
            f"{row['visits']:,}",
            f"{row['share']:.1%}",
            f"{row['q']:+.3f}" if row["visits"] else "-",
            f"{row['prior']:.3f}",
            *([row["proven"]] if has_proofs else []),
            " ".join(row["line"][:_MAX_LINE]) + (" ..." if len(row["line"]) > _MAX_LINE else ""),
        )
        for row in found
    ]
    proofs = ["proven"] if has_proofs else []
    print_table(("move", "visits", "share", "Q", "prior", *proofs, "<line of play"), rows)
    num_hidden = len(rules.legal_actions(state)) - len(rows)
    if num_hidden:
        console.print(f"{counted(num_hidden, 'more move')} not shown (--top)", style="dim")
    stats, proof = result.stats, result.proven.describe() if result.proven else ""
    best = rules.move_name(state, result.best_action)
    console.print(
        f"\nbest move [bold]{best}[/bold], value {result.value:+.3f} for the player "
        f"to move{f' (proven: {proof})' if proof else ''}\n"
        f"[dim]{counted(stats.simulations, 'simulation')} in {stats.total_s:.2f} s "
        f"({stats.simulations_per_second:,.0f} per second), {chosen.label}, {stats.engine}, "
        f"{counted(stats.nn_batches, 'evaluator call')} with {stats.nn_positions / max(stats.nn_batches, 1):.1f} "
        f"positions, depth {stats.max_depth}, stopped by {stats.stopped_by}[/dim]"
    )


def _watch(results: Iterator[SearchResult], bar: ProgressBar) -> SearchResult:
    """Run through the results and move the bar; return the last one."""
    result = next(results)
    for result in results:
        bar.update(result.stats.simulations)
    return result


def _rows(searcher: Search, result: SearchResult, top: int) -> list[dict[str, Any]]:
    """The best move and the most visited others, as they are printed."""
    rules, total = result.game, max(int(result.visits.sum()), 1)
    legal: list[int] = rules.legal_actions(result.state)
    best, visits, prior = result.best_action, result.visits.tolist(), result.prior.tolist()
    order = sorted(legal, key=lambda action: (action != best, -visits[action], -prior[action], action))
    return [
        {
            "move": rules.move_name(result.state, action),
            "action": action,
            "visits": int(result.visits[action]),
            "share": int(result.visits[action]) / total,
            "q": float(result.q[action]),
            "prior": float(result.prior[action]),
            "proven": "" if result.proven is None else result.proven.describe(action),
            "line": rules.line_names(result.state, searcher.line_after(action)),
        }
        for action in order[:top]
    ]
