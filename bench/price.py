"""The price of batching: how much strength K leaves in flight cost, for every rule, at several numbers of simulations.

Connect-4 on hard positions that are solved exactly, other games in matches against one leaf at a time; each with a
network that was trained before (`windrow train GAME`). What is done is written to the file after every case, and a
second run with the same file goes on with what is missing; `bench/price_report.py` makes tables, the plot and the page
of the docs from it.

    python bench/price.py --network connect4=runs/connect4 --network othello=runs/othello --out price_raw.json
    python bench/price.py --network connect4=runs/connect4 --smoke --out /tmp/smoke.json
    python bench/price.py --network gomoku9=runs/gomoku9 --seconds 200 --simulations 400 --out price_raw.json
    python bench/price.py --network gomoku9=runs/gomoku9 --seconds 0 --calls 8 --out calls.json  # rows per call only
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

from machine import facts
from price_calls import measure_calls
from price_cases import CURVE, LEAVES, RULES, SIMULATIONS, Rule, match_panels, solver_cases
from price_matches import balanced_openings, measure_matches
from price_players import Trained
from price_positions import read_positions
from price_rows import make_results, write_results
from price_solver import measure_solver
from report import SMOKE_HELP

from windrow import make_game

SMOKE = {
    "calls": 1,
    **{"simulations": (100,), "leaves": (4, 16), "curve": (25, 50, 100, 200)},
    **{"positions": 100, "pairs": 4, "passes": 1},
}


def read_arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--network",
        action="append",
        default=[],
        required=True,
        metavar="NAME=PATH",
        help="a run's folder or a checkpoint, and what to call its game in the results; may be repeated, in this order",
    )
    add = parser.add_argument
    add("--out", type=Path, required=True, metavar="FILE", help="what was counted; goes on if it exists")
    add("--rows", type=Path, metavar="FILE", help="write the results too, as price_rows.py does")
    add("--seconds", type=_seconds, default={}, metavar="S", help="per network: 120, or NAME=90,NAME=200")
    add("--simulations", type=_numbers, default=SIMULATIONS, metavar="N,N", help="budgets to compare at")
    add("--leaves", type=_numbers, default=LEAVES, metavar="K,K", help="leaves in flight, beside 1")
    add("--rules", type=_rules, default=RULES, metavar="RULE,RULE", help="such as visits/skip,loss/skip (all)")
    add("--curve", type=_numbers, default=CURVE, metavar="N,N", help="budgets of the one-leaf curve")
    add("--positions", type=int, default=3000, metavar="N", help="of Connect-4 (3000)")
    add("--pairs", type=int, default=128, metavar="N", help="of games in a pass (128)")
    add("--passes", type=int, default=4, metavar="N", help="at most so many (4)")
    add("--seed", type=int, default=1, metavar="N", help="of the openings (1)")
    add("--commit", help="of the sources, where git cannot say")
    add("--backend", default="auto", metavar="NAME", help="what runs the network (auto)")
    add("--cache-gb", type=float, metavar="GB", help="for evaluations (a third of the spare memory)")
    add("--at-once", type=int, metavar="N", help="searches at the same time (on a GPU 3/4 of the cores, else 1)")
    add("--calls", type=int, default=0, metavar="N", help="positions to count the rows of network calls in (none)")
    add("--smoke", action="store_true", help=SMOKE_HELP)
    arguments = parser.parse_args()
    if arguments.smoke:
        for name, value in SMOKE.items():
            setattr(arguments, name, value)
    for network in arguments.network:
        if "=" not in network or not Path(network.partition("=")[2]).exists():
            parser.error(f"--network {network}: write NAME=PATH, of a run's folder or a checkpoint that exists")
    return arguments


def main() -> None:
    """Measure one network after another."""
    arguments = read_arguments()
    raw: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {"networks": {}}
    networks: dict[str, str] = raw.get("source", {}).get("networks", {})
    commit = {"commit": arguments.commit} if arguments.commit else {}
    raw["source"] = {"machine": {**_machine(), **commit}, "command": _command(), "networks": networks}
    cache_bytes = None if arguments.cache_gb is None else int(arguments.cache_gb * 2**30)
    start = perf_counter()
    for network in arguments.network:
        name, _, path = network.partition("=")
        seconds = arguments.seconds.get(name, arguments.seconds.get("", float("inf")))
        trained = Trained(Path(path), backend=arguments.backend, cache_bytes=cache_bytes, num_at_once=arguments.at_once)
        print(f"\n{name}: {trained.label}; {trained.evaluator.choice.splitlines()[0]}", flush=True)
        networks[name] = trained.label
        cases = solver_cases(arguments.simulations, arguments.leaves, arguments.curve, arguments.rules)
        is_solved = trained.game == make_game("connect4")
        limits = ("positions",) if is_solved else ("pairs", "passes", "seed")
        setup = {"network": trained.label, **{limit: getattr(arguments, limit) for limit in limits}}
        part = raw["networks"].setdefault(name, {"game": trained.game.name, "setup": setup})
        if part["setup"] != setup:
            sys.exit(f"{arguments.out} was begun with {part['setup']}, not with {setup}: name another file")

        def save() -> None:
            whole = arguments.out.with_suffix(".new")
            whole.write_text(json.dumps(raw, indent=1) + "\n", encoding="utf-8")
            os.replace(whole, arguments.out)

        if seconds > 0 and is_solved:
            positions = read_positions()[: arguments.positions]
            measure_solver(trained, positions, cases, part, seconds=seconds, save=save)
        elif seconds > 0:
            passes = arguments.passes
            openings = balanced_openings(trained, passes * arguments.pairs, seed=arguments.seed)
            panels = match_panels(
                *(arguments.simulations, arguments.leaves, arguments.pairs), num_passes=passes, rules=arguments.rules
            )
            measure_matches(trained, openings, panels, part, seconds=seconds, save=save)
        measure_calls(trained, cases if arguments.calls else (), part, num_positions=arguments.calls, save=save)
        trained.close()
        del trained
    if arguments.rows is not None:
        write_results(make_results(raw), arguments.rows)
    print(f"\n{perf_counter() - start:.0f} s in all; {arguments.out} has what was counted")


def _machine() -> dict[str, str]:
    known = facts()
    known.pop("load average", None)
    try:
        import torch

        if torch.cuda.is_available():
            known["gpu"] = torch.cuda.get_device_name()
    except ImportError:
        pass
    return known


def _command() -> str:
    """As it was given, without the folders of this machine."""
    words = list(sys.argv[1:])
    for index, word in enumerate(words[:-1]):
        if word in ("--network", "--out", "--rows"):
            words[index + 1] = re.sub(r"[^=]*/", "", words[index + 1])
    return " ".join(["python", "bench/price.py", *words])


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


def _rules(text: str) -> tuple[Rule, ...]:
    by_name = {"/".join(rule): rule for rule in RULES}
    unknown = [name for name in text.split(",") if name not in by_name]
    if unknown:
        raise argparse.ArgumentTypeError(f"there is no {', '.join(unknown)}: {', '.join(by_name)}")
    return tuple(by_name[name] for name in text.split(","))


def _seconds(text: str) -> dict[str, float]:
    """By name; under the empty one what holds for all others."""
    found = (entry.rpartition("=") for entry in text.split(","))
    return {name: float(number) for name, _, number in found}


if __name__ == "__main__":
    main()
