"""What proofs are worth in Connect-4: right moves on the solved positions, and simulations that a proven root saves.

Lost positions are those after the right moves in won ones.

    python bench/proofs.py --sims 400 rollout runs/connect4
"""

from __future__ import annotations

from report import Figure, command_line, print_table, run_command_line

import windrow
from windrow import TERMINAL
from windrow.games import State
from windrow.play import make_player
from windrow.play.solved import SolvedPosition, score_player, solved_positions

NAMES = {1.0: "won", 0.0: "drawn", -1.0: "lost"}


def states_by_value(positions: list[SolvedPosition]) -> dict[float, list[State]]:
    """Won, drawn and lost positions, as the player to move sees them."""
    won = [position for position in positions if position.value == 1]
    after = [position.state.game.apply(position.state, position.best_actions[0]) for position in won]
    return {
        1.0: [position.state for position in won],
        0.0: [position.state for position in positions if position.value == 0],
        -1.0: [state for state in after if state.game.to_play(state) != TERMINAL],
    }


def simulations(spec: str, states: list[State], value: float) -> tuple[float, float, int]:
    """Mean simulations of a search, the share of roots that it proves, and how many proofs are wrong."""
    player = make_player(windrow.make_game("connect4"), spec, seed=1)
    results = player.search(states)
    found = [result.proven.value for result in results if result.proven is not None and result.proven.value is not None]
    mean = player.simulations / len(states)
    player.close()
    return mean, len(found) / len(states), sum(proven != value for proven in found)


def measure(specs: list[str], *, sims: int, is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    game, figures = windrow.make_game("connect4"), list[Figure]()
    positions = solved_positions(game)[:: 40 if is_smoke else 1]
    for spec in specs:
        rows = list[tuple[str, ...]]()
        for prove in ("false", "true"):
            player = make_player(game, f"{spec}:sims={sims},prove={prove}", seed=1)
            right = score_player(player, positions).overall
            player.close()
            figures.append(
                Figure(
                    name=f"{spec}, {'with' if prove == 'true' else 'without'} proofs: right moves",
                    value=100 * right.share,
                    unit="%",
                    standard_error=100 * right.standard_error,
                )
            )
        before, after = (f"{figure.measured} {figure.spread}" for figure in figures[-2:])
        print(f"{spec}: right moves {before} without proofs, {after} with them")
        for value, states in states_by_value(positions).items():
            mean, share, wrong = simulations(f"{spec}:sims={sims},prove=true", states, value)
            name, saved = NAMES[value], 100 * (1 - mean / sims)
            rows.append((name, str(len(states)), f"{mean:.0f}", f"{saved:.0f} %", f"{share:.0%}", str(wrong)))
            figures.append(Figure(name=f"{spec}: simulations saved, {name}", value=saved, unit="%"))
            figures.append(Figure(name=f"{spec}: wrong proofs, {name}", value=wrong, at_most=0))
        header = ("positions", "number", "simulations", "saved", "roots proven", "wrong")
        print_table(f"{spec}, {sims} simulations, with proofs", header, rows)
    return figures


def main() -> None:
    """The command line."""
    parser = command_line(__doc__)
    parser.add_argument("players", nargs="*", default=["rollout"], help="rollout, or runs and checkpoints")
    parser.add_argument("--sims", type=int, default=400)
    run_command_line(
        parser,
        lambda options: measure(options.players, sims=20 if options.smoke else options.sims, is_smoke=options.smoke),
    )


if __name__ == "__main__":
    main()
