"""Judge the choices of backgammon players by GNU Backgammon: points that a choice loses, at equal positions.

    windrow train backgammon --time 15m --run runs/bg
    python bench/backgammon_choices.py runs/bg:sims=100 runs/bg:sims=100,c_puct=0.3 greedy:runs/bg gnubg random

A position is the start of a turn, with the dice rolled and at least two different results of the turn. The positions
are drawn at random from all turns of whole games that one player plays against itself (`--games`), about eight a game.
Runs with the same seed and games have the same positions if the network of `--games` runs in the same backend.
Each player plays the whole turn, which in windrow is several actions. GNU Backgammon evaluates every position that the
turn can lead to, at 0-ply: a choice loses the best equity less that of the position chosen. Equities are without the
cube and in points: a gammon counts 2 and a backgammon 3.

Players are those of `windrow match`, and two more:

    gnubg         the move that GNU Backgammon finds at 0-ply; it loses nothing, unless this program is wrong
    greedy:RUN    no search: of all results of the turn the one with the best value, which is the network's value after
                  the opponent's roll, averaged over the 21 rolls
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from price_statistics import FloatArray, paired_difference
from report import print_table

from windrow import ProgramError, make_game
from windrow.evaluators import load
from windrow.games.core_game import State
from windrow.games.protocol import TERMINAL
from windrow.games.turns import parse_turn
from windrow.games.turns import turn_ends as ends_of_turn
from windrow.play.players import Player, make_player
from windrow.play.programs.command import find_program
from windrow.play.programs.gnubg import GnubgProcess, position_id
from windrow.play.specs import parse_spec

GAME = make_game("backgammon")
POINTS = GAME.points or 1.0
"""Points of a return of 1."""
PER_GAME = 8
"""Positions drawn from each game, on average."""
GAMES_SETTINGS = "sims=16,backend=torch"
"""Settings of the player of the games; with the backend "auto", a run could take another one than the run before."""
NUM_PROCESSES = 8
"""Processes of GNU Backgammon; each sleeps most of the time."""
LIMIT_S = 3600.0
ROWS = 4096
"""Rows in a call of the network without a search."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The start of a turn.

    start: position with the dice rolled.
    ends: all different positions that the turn can lead to: the opponent is about to roll, or the game is over.
    equities: [ends] points for the player of the turn, by GNU Backgammon.
    best: the end of the turn that GNU Backgammon finds.
    """

    start: State
    ends: tuple[State, ...]
    equities: FloatArray
    best: State

    def loss(self, chosen: State) -> float:
        """Points lost by choosing this end."""
        return float(self.equities.max() - self.equities[self.ends.index(chosen)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """How one player chose.

    losses: points lost in each position.
    loss, error: their mean and its standard error.
    difference, difference_error: mean loss above that of the first player, and the standard error over the pairs.
    best_share: share of the choices that lose nothing.
    simulations: simulations per position, over all actions of the turn.
    seconds: seconds for all positions.
    """

    player: str
    loss: float
    error: float
    difference: float
    difference_error: float
    best_share: float
    simulations: float
    seconds: float
    losses: list[float]


def turn_ends(start: State) -> tuple[State, ...]:
    """All different positions at the end of the turn that begins, or goes on, in `start`."""
    return tuple(ends_of_turn(GAME, start))


def play_turns(player: Player, starts: Sequence[State]) -> list[State]:
    """Let the player play the whole turn in every position; return the ends."""
    states = list(starts)
    movers = [GAME.to_play(state) for state in states]
    while going := [i for i, state in enumerate(states) if GAME.to_play(state) == movers[i]]:
        for i, action in zip(going, player.choose([states[i] for i in going]), strict=True):
            states[i] = GAME.apply(states[i], action)
    return states


def draw_starts(player: Player, num_positions: int, seed: int) -> list[tuple[State, tuple[State, ...]]]:
    """Play whole games and draw different starts of turns in which there is a choice; return them with their ends."""
    rng = random.Random(seed)
    states = [GAME.initial_state()] * -(-num_positions // PER_GAME)
    starts = dict[State, None]()
    while states:
        states = [GAME.apply(state, GAME.sample_outcome(state, rng.getrandbits(64))) for state in states]
        starts.update(dict.fromkeys(states))
        states = [state for state in play_turns(player, states) if GAME.to_play(state) != TERMINAL]
    drawn = ((start, turn_ends(start)) for start in rng.sample(list(starts), len(starts)))
    choices = ((start, ends) for start, ends in drawn if len(ends) > 1)
    return [choice for choice, _ in zip(choices, range(num_positions), strict=False)]


def judge(starts: Sequence[tuple[State, tuple[State, ...]]]) -> list[Decision]:
    """Ask GNU Backgammon for the equities of all ends and for the best moves."""
    ids = {end: position_id(end) for _, ends in starts for end in ends if GAME.to_play(end) != TERMINAL}
    rolls = [(position_id(start), (start.board.dice[0], start.board.dice[1])) for start, _ in starts]
    equities, moves = ask_gnubg(list(ids.values()), rolls)
    # The opponent is about to roll; the winner of a finished game is who played the turn.
    values = {end: -equity for end, equity in zip(ids, equities, strict=True)}
    found: list[Decision] = []
    for (start, ends), move in zip(starts, moves, strict=True):
        player = GAME.to_play(start)
        points = [values[end] if end in values else round(POINTS * GAME.returns(end)[player]) for end in ends]
        best = start
        for action in parse_turn(GAME, start, move):
            best = GAME.apply(best, action)
        found.append(Decision(start, ends, np.array(points), best))
    return found


def ask_gnubg(positions: Sequence[str], rolls: Sequence[tuple[str, tuple[int, int]]]) -> tuple[list[float], list[str]]:
    """Ask several processes for equities and best turns at 0-ply; blocks.

    Args:
        positions: position IDs, each as seen by the player who is about to roll.
        rolls: turns whose best steps are wanted.
    """
    deadline = perf_counter() + LIMIT_S

    def ask(share: slice) -> tuple[list[float], list[str]]:
        with closing(GnubgProcess(deadline=deadline)) as process:
            return (
                process.equities(positions[share], plies=0, deadline=deadline),
                process.best_turns(rolls[share], plies=0, deadline=deadline),
            )

    shares = [slice(first, None, NUM_PROCESSES) for first in range(NUM_PROCESSES)]
    equities, turns = [0.0] * len(positions), [""] * len(rolls)
    with ThreadPoolExecutor(NUM_PROCESSES) as pool:
        for share, answer in zip(shares, pool.map(ask, shares), strict=True):
            equities[share], turns[share] = answer
    return equities, turns


def greedy_ends(evaluator: Any, decisions: Sequence[Decision]) -> list[State]:
    """The ends with the best value by the network alone, averaged over the opponent's rolls."""
    chosen: list[State] = []
    for decision in decisions:
        player = GAME.to_play(decision.start)
        values = np.zeros(len(decision.ends))
        rows: list[tuple[int, float]] = []
        observations: list[Any] = []
        for index, end in enumerate(decision.ends):
            if GAME.to_play(end) == TERMINAL:
                values[index] = GAME.returns(end)[player]
                continue
            for roll, probability in GAME.chance_outcomes(end):
                rows.append((index, probability))
                observations.append(GAME.observe(GAME.apply(end, roll)))
        for first in range(0, len(rows), ROWS):
            _, answers = evaluator.evaluate(np.stack(observations[first : first + ROWS]))
            for (index, probability), value in zip(rows[first:], answers.reshape(len(answers), -1)[:, 0], strict=False):
                values[index] -= probability * float(value)
        chosen.append(decision.ends[int(values.argmax())])
    return chosen


def choose(spec: str, decisions: Sequence[Decision], seed: int, threads: int | None) -> tuple[list[State], int, float]:
    """The ends that a player chooses, its simulations and seconds, without those of loading it."""
    kind, _, run = spec.partition(":")
    if spec == "gnubg":
        return [decision.best for decision in decisions], 0, 0.0
    if kind == "greedy":
        evaluator = load(Path(run), game=GAME, num_threads=threads)
        seconds, ends = _timed(partial(greedy_ends, evaluator, decisions))
        return ends, 0, seconds
    with closing(make_player(GAME, spec, seed=seed, num_threads=threads)) as player:
        seconds, ends = _timed(partial(play_turns, player, [decision.start for decision in decisions]))
        return ends, getattr(player, "simulations", 0), seconds


def _timed(work: Callable[[], list[State]]) -> tuple[float, list[State]]:
    start = perf_counter()
    ends = work()
    return perf_counter() - start, ends


def compare(
    specs: Sequence[str], decisions: Sequence[Decision], *, seed: int = 0, threads: int | None = None
) -> list[Judgement]:
    """Judge every player on the same positions."""
    judgements: list[Judgement] = []
    for spec in specs:
        ends, simulations, seconds = choose(spec, decisions, seed, threads)
        losses = np.array([decision.loss(end) for decision, end in zip(decisions, ends, strict=True)])
        base = np.array(judgements[0].losses) if judgements else losses
        loss, error = paired_difference(losses, np.zeros_like(losses))
        difference, difference_error = paired_difference(losses, base)
        judgements.append(
            Judgement(
                player=spec,
                loss=loss,
                error=error,
                difference=difference,
                difference_error=difference_error,
                best_share=float((losses == 0.0).mean()),
                simulations=simulations / len(decisions),
                seconds=seconds,
                losses=losses.tolist(),
            )
        )
        print(f"{spec}: {loss:.4f} points a choice, {seconds:.1f} s", flush=True)
    return judgements


def print_judgements(judgements: Sequence[Judgement], title: str) -> None:
    """Print one row per player."""
    rows = [
        (
            found.player,
            *(f"{found.loss:.4f}", f"{found.error:.4f}"),
            *(("", "") if not i else (f"{found.difference:+.4f}", f"{found.difference_error:.4f}")),
            *(f"{100 * found.best_share:.0f} %", f"{found.simulations:.0f}", f"{found.seconds:.1f}"),
        )
        for i, found in enumerate(judgements)
    ]
    header = ("player", "points lost", "±", "above the first", "±", "best choice", "simulations", "seconds")
    print_table(title, header, rows)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="players; differences are to the first")
    parser.add_argument("--positions", type=int, default=400, metavar="N", help="number of positions (default: 400)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the positions and the players")
    parser.add_argument(
        "--games",
        metavar="PLAYER",
        help=f"player of the games (default: the first player's network with {GAMES_SETTINGS})",
    )
    parser.add_argument("--threads", type=int, metavar="N", help="threads of networks and trees (default: all cores)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything, also each loss, to FILE")
    arguments = parser.parse_args()
    try:
        find_program("gnubg")
    except ProgramError as error:
        raise SystemExit(str(error)) from None
    network = parse_spec(arguments.players[0].removeprefix("greedy:")).name
    if arguments.games is None and not Path(network).exists():
        parser.error(f"{arguments.players[0]!r} is not a network: say with --games who plays the games")
    games = arguments.games or f"{network}:{GAMES_SETTINGS}"
    with closing(make_player(GAME, games, seed=arguments.seed, num_threads=arguments.threads)) as player:
        starts = draw_starts(player, arguments.positions, arguments.seed)
    decisions = judge(starts)
    judgements = compare(arguments.players, decisions, seed=arguments.seed, threads=arguments.threads)
    ends = sum(len(decision.ends) for decision in decisions) / len(decisions)
    title = f"{len(decisions)} positions of games of {games}, {ends:.1f} results of a turn, seed {arguments.seed}"
    print_judgements(judgements, title)
    if arguments.json is not None:
        content = {
            "games": games,
            "seed": arguments.seed,
            "positions": [decision.start.to_text() for decision in decisions],
            "players": [asdict(found) for found in judgements],
        }
        arguments.json.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
