"""What it is worth to share positions that several orders of moves lead to: search of a graph against search of a tree.

Three rules are compared (`graph_reference.py` defines them): "tree"; "continue", a graph whose simulations go on below
a known position; and "stop", a graph whose simulations end where a known position has visits enough. Budgets are
simulations, and evaluations of different positions: what a search costs whose prediction cache never forgets. In
Connect-4 all rules choose moves in the solved positions. In every game each graph plays a match against the tree.

    python bench/graph_search.py rollout runs/connect4 runs/othello runs/gomoku
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from graph_reference import Rule
from graphs import Answers, Array, Budget, Evaluations, SideBySide
from price_statistics import paired_difference
from report import SMOKE_HELP, Figure, print_figures, print_table, write_json

import windrow
from windrow import TERMINAL, SearchConfig
from windrow.evaluators import RolloutEvaluator
from windrow.games import CoreGame
from windrow.play import play_match
from windrow.play.match import random_openings
from windrow.play.solved import SolvedPosition, solved_positions

RULES: tuple[Rule, ...] = ("tree", "continue", "stop")
GRAPHS: tuple[Rule, ...] = ("continue", "stop")
UNITS = ("simulations", "evaluations")
PARTS = ("sharing", "solved", "choices", "matches")
AT_ONCE = 100
"""Positions that are searched side by side."""
QUICK = 50
"""Simulations of a move of the games from which positions are taken."""
OPENING_PLIES = {"othello": 8, "gomoku": 4}
"""Random moves at the beginning of a game, and of a position whose search is measured."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A game and what evaluates its positions."""

    name: str
    game: CoreGame
    evaluations: Evaluations
    c_puct: float

    def search(self, rule: Rule, budgets: Sequence[Budget]) -> SideBySide:
        """Searches by a rule."""
        return SideBySide(self.game, self.evaluations, rule, budgets, c_puct=self.c_puct)


def open_subject(text: str, backend: str) -> Subject:
    """`rollout`, which is Connect-4 with the results of random games, or the folder of a run."""
    if text == "rollout":
        game = windrow.make_game("connect4")
        return Subject("connect4, rollouts", game, Evaluations(game, RolloutEvaluator(seed=1)), SearchConfig().c_puct)
    from windrow.evaluators import load
    from windrow.nets import fold
    from windrow.train import load_model

    model = load_model(text)
    evaluator = load(fold(model.net), game=model.game, backend=backend, batch=AT_ONCE, num_threads=1)
    trained_with: dict[str, Any] = model.metadata.get("search") or {}
    c_puct = trained_with.get("c_puct", SearchConfig().c_puct)
    return Subject(f"{model.game.name}, network", model.game, Evaluations(model.game, evaluator), c_puct)


def search_all(search: SideBySide, states: Sequence[Any]) -> list[Answers]:
    """What the searches of all states find, at each budget."""
    parts = [search.run(states[first : first + AT_ONCE]) for first in range(0, len(states), AT_ONCE)]
    return [Answers.joined(of_budget) for of_budget in zip(*parts, strict=True)]


# --- What a graph saves -------------------------------------------------------------------------------------------


def measure_sharing(subject: Subject, budgets: Sequence[Budget], states: Sequence[Any]) -> list[Figure]:
    """Print nodes, evaluations and depth of trees and graphs, and return the evaluations."""
    rows, figures = list[tuple[str, ...]](), list[Figure]()
    for rule in RULES:
        for budget, found in zip(budgets, search_all(subject.search(rule, budgets), states), strict=True):
            simulations, evaluations = found.simulations.mean(), found.evaluations.mean()
            rows.append(
                (
                    f"{budget.number:,} {budget.unit}",
                    rule,
                    f"{simulations:,.0f}",
                    f"{found.nodes.mean():,.0f}",
                    f"{evaluations:,.0f}",
                    f"{evaluations / simulations:.0%}",
                    f"{found.stopped.mean():.0%}",
                    f"{found.depth.mean():.1f}",
                )
            )
            if budget.unit == "simulations":
                name = f"{subject.name}: evaluations of a simulation, {rule}, {budget.number:,} simulations"
                figures.append(Figure(name=name, value=evaluations / simulations, note=f"{len(states)} positions"))
    rows.sort(key=lambda row: [f"{budget.number:,} {budget.unit}" for budget in budgets].index(row[0]))
    print_table(
        f"{subject.name}: means over {len(states)} positions",
        ("budget", "rule", "simulations", "nodes", "evaluations", "a simulation", "stopped", "depth"),
        rows,
    )
    return figures


# --- Right moves --------------------------------------------------------------------------------------------------


def measure_solved(subject: Subject, budgets: Sequence[Budget], positions: Sequence[SolvedPosition]) -> list[Figure]:
    """Print how often each rule keeps the result in the solved positions, and return the differences to the tree."""
    kept: dict[Rule, list[Any]] = {}
    for rule in RULES:
        start = perf_counter()
        answers = search_all(subject.search(rule, budgets), [position.state for position in positions])
        kept[rule] = [
            np.array([a in position.best_actions for a, position in zip(found.actions, positions, strict=True)])
            for found in answers
        ]
        print(f"{subject.name}: {rule}, {perf_counter() - start:.0f} s", flush=True)
    rows, figures = list[tuple[str, ...]](), list[Figure]()
    for number, budget in enumerate(budgets):
        row = [f"{budget.number:,} {budget.unit}", f"{kept['tree'][number].mean():.1%}"]
        for rule in GRAPHS:
            difference, error = paired_difference(kept[rule][number], kept["tree"][number])
            row += [f"{kept[rule][number].mean():.1%}", f"{100 * difference:+.1f} ± {100 * error:.1f}"]
            name = f"{subject.name}: right moves, {rule} beyond tree, {budget.number:,} {budget.unit}"
            figures.append(Figure(name=name, value=100 * difference, unit="%", standard_error=100 * error))
        rows.append(tuple(row))
    print_table(
        f"{subject.name}: right moves in {len(positions)} solved positions; differences to the tree ± standard error",
        ("budget", "tree", "continue", "difference", "stop", "difference"),
        rows,
    )
    return figures


# --- Moves that differ --------------------------------------------------------------------------------------------


def played_positions(subject: Subject, count: int, *, seed: int) -> list[Any]:
    """One position of each of `count` games that quick searches of trees play after random openings."""
    game, draw = subject.game, np.random.default_rng(seed)
    openings = random_openings(game, OPENING_PLIES.get(game.name, 4), seed=seed)
    games = [[state] for _, (_, state) in zip(range(count), openings, strict=False)]
    search, running = subject.search("tree", [Budget("simulations", QUICK)]), games
    while running:
        actions = search_all(search, [states[-1] for states in running])[0].actions
        for states, action in zip(running, actions, strict=True):
            states.append(game.apply(states[-1], action))
        running = [states for states in running if game.to_play(states[-1]) != TERMINAL]
    return [states[draw.integers(len(states) - 1)] for states in games]


def judge(subject: Subject, states: Sequence[Any], number: int) -> Array:
    """[states] Values of unfinished positions for the player to move: the mean of what a tree and a graph find."""
    searches = [subject.search(rule, [Budget("simulations", number)]) for rule in ("tree", "continue")]
    return np.mean([search_all(search, states)[0].values for search in searches], axis=0)


def values_of_moves(subject: Subject, moves: Sequence[tuple[Any, int]], number: int) -> dict[tuple[Any, int], float]:
    """The value of each move for the player who makes it, by a search of the position after it."""
    game = subject.game
    after = [game.apply(state, action) for state, action in moves]
    open_ones = [state for state in after if game.to_play(state) != TERMINAL]
    judged = iter(judge(subject, open_ones, number) if open_ones else ())
    values = dict[tuple[Any, int], float]()
    for (state, action), next_state in zip(moves, after, strict=True):
        mover = game.to_play(state)
        if game.to_play(next_state) == TERMINAL:
            values[state, action] = game.returns(next_state)[mover]
        else:
            values[state, action] = float(next(judged)) * (1 if game.to_play(next_state) == mover else -1)
    return values


def measure_choices(subject: Subject, budgets: Sequence[Budget], *, count: int, seed: int) -> list[Figure]:
    """Print how often graphs choose other moves than the tree, and what those are worth; return the latter."""
    states = played_positions(subject, count, seed=seed)
    chosen = {rule: [found.actions for found in search_all(subject.search(rule, budgets), states)] for rule in RULES}
    moves = {
        (state, action)
        for rule in GRAPHS
        for number in range(len(budgets))
        for state, of_tree, of_graph in zip(states, chosen["tree"][number], chosen[rule][number], strict=True)
        if of_tree != of_graph
        for action in (of_tree, of_graph)
    }
    values = values_of_moves(subject, list(moves), max(budget.number for budget in budgets))
    rows, figures = list[tuple[str, ...]](), list[Figure]()
    for number, budget in enumerate(budgets):
        row = [f"{budget.number:,} {budget.unit}"]
        for rule in GRAPHS:
            of_rule, of_tree = (
                np.array([values.get((s, a), 0.0) for s, a in zip(states, chosen[each][number], strict=True)])
                for each in (rule, "tree")
            )
            differs = np.array(chosen[rule][number]) != np.array(chosen["tree"][number])
            difference, error = paired_difference(np.where(differs, of_rule, 0.0), np.where(differs, of_tree, 0.0))
            row += [f"{differs.mean():.0%}", f"{difference:+.4f} ± {error:.4f}"]
            name = f"{subject.name}: value of a move, {rule} beyond tree, {budget.number:,} {budget.unit}"
            figures.append(Figure(name=name, value=difference, standard_error=error, note=f"{count} positions"))
        rows.append(tuple(row))
    print_table(
        f"{subject.name}: moves other than the tree's in {count} positions, and how much better they are, with standard"
        " errors; a win is 1, a loss -1",
        ("budget", "continue", "better by", "stop", "better by"),
        rows,
    )
    return figures


# --- Matches ------------------------------------------------------------------------------------------------------


class RulePlayer:
    """Plays the move that the searches by a rule visit most."""

    def __init__(self, subject: Subject, rule: Rule, budget: Budget) -> None:
        self.name = f"{rule}, {budget.number} {budget.unit}"
        self._search = subject.search(rule, [budget])

    def choose(self, states: Sequence[Any]) -> list[int]:
        """Return one legal action per state."""
        return search_all(self._search, states)[0].actions

    def close(self) -> None:
        """Do nothing: the arrays are freed with the player."""


def measure_match(subject: Subject, rule: Rule, budget: Budget, *, games: int, seed: int) -> Figure:
    """Play a graph against the tree at an equal budget."""
    start, asked = perf_counter(), subject.evaluations.num_asked
    result = play_match(
        subject.game,
        RulePlayer(subject, rule, budget),
        RulePlayer(subject, "tree", budget),
        num_games=games,
        seed=seed,
        openings_plies=OPENING_PLIES.get(subject.game.name),
        stop_when_sure=False,
        max_concurrent=games,
    )
    asked, taken = subject.evaluations.num_asked - asked, perf_counter() - start
    print(
        f"{subject.name}: {rule} against tree, {budget.number:,} {budget.unit}, {games} games: {result.elo:+.0f} ±"
        f" {result.elo_error:.0f} Elo (95 %), pairs {result.pairs}, {taken:.0f} s, {asked:,} rows",
        flush=True,
    )
    name, error = f"{subject.name}: {rule} against tree, {budget.number:,} {budget.unit}", result.elo_error / 1.96
    return Figure(name=name, value=result.elo, unit="Elo", standard_error=error, note=f"{games} games")


# --- The command line ---------------------------------------------------------------------------------------------


def budgets_of(numbers: Iterable[int], units: Sequence[str]) -> list[Budget]:
    """Each number in each of the units."""
    return [Budget(unit, number) for unit in units for number in numbers]


def measure(subject: Subject, options: Any) -> list[Figure]:
    """Print the tables of one game and return its figures."""
    budgets, figures = budgets_of(options.budgets, options.units), list[Figure]()
    if "sharing" in options.parts:
        openings = random_openings(subject.game, OPENING_PLIES.get(subject.game.name, 4), seed=options.seed)
        states = [state for _, (_, state) in zip(range(options.positions), openings, strict=False)]
        figures += measure_sharing(subject, budgets, states)
    if "solved" in options.parts and subject.game == windrow.make_game("connect4"):
        figures += measure_solved(subject, budgets, solved_positions(subject.game)[:: options.every])
    if "choices" in options.parts:
        figures += measure_choices(subject, budgets, count=options.positions, seed=options.seed)
    if "matches" in options.parts:
        for budget in budgets:
            for rule in options.rules:
                figures.append(measure_match(subject, rule, budget, games=options.games, seed=options.seed))
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("subjects", nargs="*", default=["rollout"], metavar="RUN", help="rollout, or runs of networks")
    parser.add_argument("--budgets", type=int, nargs="+", default=[400, 1600], metavar="N")
    parser.add_argument("--units", nargs="+", choices=UNITS, default=UNITS, help="what budgets count")
    parser.add_argument("--rules", nargs="+", choices=GRAPHS, default=GRAPHS, help="the graphs that play matches")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=("sharing", "solved"))
    parser.add_argument(
        "--positions", type=int, default=40, help="positions for what is shared, and for moves that differ"
    )
    parser.add_argument("--every", type=int, default=4, help="search every so many of the solved positions")
    parser.add_argument("--games", type=int, default=100, help="games of a match")
    parser.add_argument("--backend", default="auto", help="what runs the networks, on one thread")
    parser.add_argument("--seed", type=int, default=0, help="of the openings")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to FILE too")
    parser.add_argument("--smoke", action="store_true", help=SMOKE_HELP)
    options: Any = parser.parse_args(arguments)
    if options.smoke:
        options.budgets, options.positions, options.every, options.games = [20], 2, 100, 2
    figures: list[Figure] = []
    for text in options.subjects:
        figures += measure(open_subject(text, options.backend), options)
    if options.json is not None:
        write_json(options.json, figures)
    else:
        print_figures(figures)


if __name__ == "__main__":
    main()
