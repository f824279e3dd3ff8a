"""Put the network of a training run into the package, with its measured strength, as one that comes with windrow.

    python bench/ship_network.py runs/networks/othello --machine "2 x86-64 cores"
    python bench/ship_network.py runs/networks/azul --machine "one H200" --opponent rollout:2000

Writes src/windrow/play/networks/GAME/model.safetensors and card.json: the game, the training (its settings are in the
header of the weights) and the results of matches in pairs of games with sides changed.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from report import SMOKE_HELP

from windrow import make_game
from windrow.play import make_player, play_match, score_player, solved_positions
from windrow.play.pretrained import CARD, FOLDER, MODEL
from windrow.train import load_model

OPPONENTS = ("random", "rollout:400", "rollout:1000")


def measure(run: Path, game: Any, opponents: list[str], *, sims: int, games: int) -> list[dict[str, Any]]:
    """Matches of the network, with a search of `sims` simulations, against each opponent."""
    found: list[dict[str, Any]] = []
    for opponent in opponents:
        result = play_match(game, f"{run}:sims={sims}", opponent, num_games=games, seed=1, stop_when_sure=False)
        score = {"wins": result.wins, "draws": result.draws, "losses": result.losses}
        found.append({"simulations": sims, "opponent": opponent, **score, "games": len(result.games)})
        print(f"against {opponent}: {score}", flush=True)
    return found


def main() -> None:
    """Read the command line, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--machine", required=True, help="where it was trained, for the card")
    parser.add_argument("--opponent", action="append", metavar="PLAYER", help=f"(default: {', '.join(OPPONENTS)})")
    parser.add_argument("--sims", type=int, default=100, help="simulations of the network's searches")
    parser.add_argument("--games", type=int, default=200, help="games against each opponent")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder to write to, instead of the package's own")
    parser.add_argument("--smoke", action="store_true", help=SMOKE_HELP)
    options = parser.parse_args()
    if options.smoke:
        options.sims, options.games = 8, 4
    model = load_model(options.run)
    training = json.loads(model.path.with_name("training.json").read_text(encoding="utf-8"))
    counters, game = training["counters"], model.game
    card: dict[str, Any] = {
        "game": game.name,
        "game_options": dict(game.options),
        "training": {
            "machine": options.machine,
            "seconds": round(counters["total_s"]),
            **{name: counters[name] for name in ("games", "positions", "steps", "nn_positions")},
            "seed": training["config"]["seed"],
            "commit": model.metadata["commit"],
        },
        "strength": measure(
            options.run, game, options.opponent or list(OPPONENTS), sims=options.sims, games=options.games
        ),
    }
    if game == make_game("connect4"):
        player = make_player(game, f"{options.run}:sims={options.sims}", seed=1)
        overall = score_player(player, solved_positions(game)).overall
        player.close()
        card["solved"] = {"simulations": options.sims, "right_moves": overall.share, "error": overall.standard_error}
    place = options.folder / game.name
    place.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(model.path, place / MODEL)
    (place / CARD).write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    print(f"{place}: {(place / MODEL).stat().st_size / 1024:.0f} KB of weights")


if __name__ == "__main__":
    main()
