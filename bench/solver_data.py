"""Writes and checks the files in src/windrow/play/data that hold what the Connect-4 solver has found out.

    python bench/solver_data.py positions    # connect4_solved.txt: a minute or two
    python bench/solver_data.py openings     # connect4_openings.txt: ten minutes
    python bench/solver_data.py check        # solves every position of the first file once more

Both are always written the same.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from pathlib import Path

from windrow import _core
from windrow.games.core_game import CoreGame, State
from windrow.games.protocol import TERMINAL
from windrow.play import solved, solver_book
from windrow.play.solved import MARKS, PER_PHASE, PHASES, SolvedPosition, phase_of, solved_positions
from windrow.play.solver import Connect4Solver
from windrow.play.solver_book import DEPTH, mirror_key, usual_game

FOLDER = Path(solved.__file__).parent / "data"
BOOK_MEMORY = 1 << 29


def write_positions(path: Path) -> None:
    """The solved positions of `windrow.play.solved`."""
    lines: dict[str, list[str]] = {phase_of(first): [] for first, _ in PHASES}
    solver = Connect4Solver(usual_game(), 256 << 20)
    for position, moves in draw_positions(solver, random.Random(1), PER_PHASE, seen=set()):
        lines[position.phase].append(_to_line(moves, position.results))
        print("\r", *map(len, lines.values()), end="", file=sys.stderr)
    path.write_text("".join(line for found in lines.values() for line in found), encoding="utf-8")


def draw_positions(
    solver: Connect4Solver, draw: random.Random, per_phase: int, *, seen: set[bytes]
) -> Iterator[tuple[SolvedPosition, str]]:
    """Positions in which a wrong move is possible, so many of each phase, and the moves that lead to them.

    They come from games that are played meanwhile. None comes twice, and none whose `mirror_key` is among `seen`, to
    which their keys are added.
    """
    counts = [0] * len(PHASES)
    while min(counts) < per_phase:
        # Of a game at most one position of each phase is taken.
        wanted = {draw.randint(*PHASES[phase]): phase for phase, count in enumerate(counts) if count < per_phase}
        for state, moves in _play_game(solver, draw):
            phase = wanted.get(len(moves))
            if phase is None or mirror_key(state) in seen:
                continue
            results = solver.results(state)
            if len(set(results.values())) > 1:
                seen.add(mirror_key(state))
                counts[phase] += 1
                yield SolvedPosition(state, phase_of(len(moves)), results), moves


def _play_game(solver: Connect4Solver, draw: random.Random) -> Iterator[tuple[State, str]]:
    """The positions of one game and the moves that led to them.

    Either side is more or less strong: that is how often it looks before it moves. Early in the game that means not to
    miss a win and not to give one away at the next move, later to make no mistake at all.
    """
    game = solver.game
    strengths = [draw.choice((0.0, 0.4, 0.7, 0.9)) for _ in range(game.num_players)]
    state, moves = game.initial_state(), ""
    while (player := game.to_play(state)) != TERMINAL:
        yield state, moves
        choices = game.legal_actions(state)
        if draw.random() < strengths[player]:
            choices = _solved_choices(solver, state) if len(moves) >= PHASES[1][0] else careful_choices(game, state)
        action = draw.choice(choices)
        state, moves = game.apply(state, action), moves + game.action_name(action)


def _solved_choices(solver: Connect4Solver, state: State) -> list[int]:
    results = solver.results(state)
    return [action for action, result in results.items() if result == max(results.values())]


def careful_choices(game: CoreGame, state: State) -> list[int]:
    """Moves that win; if there are none, those after which the opponent cannot win; if there are none, all."""
    legal = game.legal_actions(state)
    safe = [action for action in legal if not _wins(game, game.apply(state, action))]
    return _wins(game, state) or safe or legal


def _wins(game: CoreGame, state: State) -> list[int]:
    after = {action: game.apply(state, action) for action in game.legal_actions(state)}
    return [action for action, next_state in after.items() if _is_won(game, next_state)]


def _is_won(game: CoreGame, state: State) -> bool:
    return game.to_play(state) == TERMINAL and any(game.returns(state))


def _to_line(moves: str, results: dict[int, int]) -> str:
    return f"{moves} {''.join(MARKS[results[a]] if a in results else '.' for a in range(usual_game().num_actions))}\n"


def write_openings(path: Path) -> None:
    """The book of `windrow.play.solver_book`."""
    game = usual_game()
    solver = _core.Connect4Solver(game.native, BOOK_MEMORY)
    # In the order of their moves, neighbours have much in common that the solver then remembers.
    all_moves = sorted(_book_positions().values())
    lines: list[str] = []
    for count, moves in enumerate(all_moves, 1):
        lines.append(f"{moves} {solver.solve(game.state_from_moves(moves).data, is_score=False)}\n")
        print(f"\r {count} of {len(all_moves)}", end="", file=sys.stderr)
    path.write_text("".join(lines), encoding="utf-8")


def _book_positions() -> dict[bytes, str]:
    """The moves that lead to every position of the file, by key."""
    game = usual_game()
    found = {mirror_key(game.initial_state()): ""}
    for _ in range(DEPTH):
        before, found = found, dict[bytes, str]()
        for moves in before.values():
            for action in range(game.num_actions):
                longer = moves + game.action_name(action)
                found.setdefault(mirror_key(game.state_from_moves(longer)), longer)
    return found


def check_positions() -> int:
    """Solve every position once more; how many are wrong."""
    positions = solved_positions(usual_game())
    solver = Connect4Solver(usual_game())
    wrong = [position for position in positions if solver.results(position.state) != position.results]
    for position in wrong:
        print(f"wrong results:\n{position.state}\n{position.results}")
    print(f"{len(positions) - len(wrong)} of {len(positions)} positions are right")
    return len(wrong)


def main(arguments: list[str]) -> int:
    """The command line; returns the exit status."""
    if arguments == ["positions"]:
        write_positions(FOLDER / solved.FILE)
    elif arguments == ["openings"]:
        write_openings(FOLDER / solver_book.FILE)
    elif arguments == ["check"]:
        return 1 if check_positions() else 0
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
