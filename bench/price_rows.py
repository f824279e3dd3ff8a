"""From what `bench/price.py` has counted to its results: a row per game, budget, rule and number of leaves.

    python bench/price_rows.py price_raw.json     # writes src/windrow/tune/price_of_batching.json
    python bench/price_rows.py price_raw.json calls.json     # what the first file lacks is taken from the others
    python bench/price_rows.py price_raw.json --add          # to what is known: pairs of games are counted together

`windrow tune` reads the rows, `bench/price_report.py` draws and prints them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine import ROOT
from price_cases import LEAVES, RULES, SIMULATIONS, Case, one_leaf
from price_solver import unpack
from price_statistics import (
    NUM_SAMPLES,
    Equal,
    PairScore,
    equal_with_error,
    match_curve,
    pair_score,
    paired_difference,
    resampled_means,
)

RESULTS = ROOT / "src" / "windrow" / "tune" / "price_of_batching.json"

Row = dict[str, Any]


def make_results(raw: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """All of the file: where it comes from, the rows, and what one leaf at a time reaches with other budgets.

    before: results to add to. Matches of a game that was measured before, with another network, are counted together
        with the new ones; games that are not measured again stay as they were.
    """
    before = before or {"sources": {}, "rows": [], "one_leaf": []}
    others = set(before["sources"]) - set(raw["networks"])
    rows: list[Row] = [row for row in before["rows"] if row["game"] in others]
    one_leaf_rows: list[Row] = [row for row in before["one_leaf"] if row["game"] in others]
    sources = {name: list(found) for name, found in before["sources"].items()}
    for name, part in raw["networks"].items():
        if "kept" in part:
            found = list(_solver_rows(name, part))
            one_leaf_rows += _solver_curve(name, part)
            sources[name] = []  # the positions are the same: they do not count twice
        elif "points" in part:
            whole = {"points": _pooled(_points_before(before, name), part["points"])}
            found = list(_match_rows(name, whole))
            one_leaf_rows += _match_curve_rows(name, whole)
        else:
            continue
        _add_calls(found, part.get("calls", {}), [row for row in before["rows"] if row["game"] == name])
        rows += found
        sources[name] = [*sources.get(name, []), _source(raw, name)]
    return {"sources": sources, "rows": rows, "one_leaf": one_leaf_rows}


def _source(raw: Mapping[str, Any], name: str) -> dict[str, Any]:
    """How the figures of one game came about."""
    source = {key: value for key, value in raw["source"].items() if key != "networks"}
    return {**source, "network": raw["source"].get("networks", {}).get(name, "")}


def _points_before(before: Mapping[str, Any], name: str) -> dict[str, dict[str, str]]:
    """The digits of earlier matches, as `bench/price.py` writes them; in no order, which no statistic looks at."""
    points: dict[str, dict[str, str]] = {}
    for row in before["rows"]:
        if row["game"] == name and "pairs" in row:
            points.setdefault(str(row["simulations"]), {})[_case_of(row).key] = _digits(row["pairs"])
    for row in before["one_leaf"]:
        if row["game"] == name and "against" in row:
            points.setdefault(str(row["against"]), {})[one_leaf(row["simulations"]).key] = _digits(row["pairs"])
    return points


def _pooled(*several: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """All pairs of several measurements."""
    whole: dict[str, dict[str, str]] = {}
    for points in several:
        for budget, cases in points.items():
            known = whole.setdefault(budget, {})
            for key, digits in cases.items():
                known[key] = known.get(key, "") + digits
    return whole


def _add_calls(rows: Sequence[Row], calls: Mapping[str, Mapping[str, int]], before: Sequence[Row]) -> None:
    """Write into every row what a network call held: as it was counted now, or else before."""
    known = {_case_of(row).key: row for row in before}
    for row in rows:
        key = _case_of(row).key
        if row["leaves"] == 1:
            row["rows_per_call"] = 1.0
        elif key in calls:
            for what in ("rows", "simulations"):
                row[f"{what}_per_call"] = round(calls[key][what] / calls[key]["calls"], 2)
        else:
            names = ("rows_per_call", "simulations_per_call")
            row.update({name: known[key][name] for name in names if name in known.get(key, {})})


def _case_of(row: Row) -> Case:
    return Case(*(row[field] for field in ("simulations", "in_flight", "on_collision", "leaves")))


def merge(raws: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The first, with what only the others have. A part that was begun and has nothing yet counts as missing."""
    whole = raws[0]
    for raw in raws[1:]:
        networks = whole["source"].setdefault("networks", {})
        networks.update(
            {name: label for name, label in raw["source"].get("networks", {}).items() if name not in networks}
        )
        for name, part in raw["networks"].items():
            own = whole["networks"].setdefault(name, part)
            for key, value in part.items():
                own[key] = own.get(key) or value
    return whole


def write_results(results: Mapping[str, Any], path: Path) -> None:
    """A row a line."""
    parts = [f' "sources": {json.dumps(results["sources"], indent=2).replace(chr(10), chr(10) + " ")}']
    for name in ("rows", "one_leaf"):
        lines = ",\n".join(f"  {json.dumps(row)}" for row in results[name])
        parts.append(f' "{name}": [\n{lines}\n ]')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def _cases() -> Iterator[Case]:
    """All cases that may be there, one leaf at a time under every rule."""
    for budget in SIMULATIONS:
        for rule in RULES:
            yield from (Case(budget, *rule, count) for count in (1, *LEAVES))


def _row(name: str, metric: str, case: Case, *, equal: Equal, **more: Any) -> Row:
    return {
        "game": name,
        "metric": metric,
        "simulations": case.simulations,
        "in_flight": case.in_flight,
        "on_collision": case.on_collision,
        "leaves": case.leaves,
        "equal_simulations": round(equal.simulations, 1),
        "equal_low": round(equal.low, 1),
        "equal_high": round(equal.high, 1),
        "is_bound": equal.is_bound,
        **{key: round(value, 5) if isinstance(value, float) else value for key, value in more.items()},
    }


# --- Positions with known answers ---------------------------------------------------------------------------------


def _solver_rows(name: str, part: Mapping[str, Any]) -> Iterator[Row]:
    """A score is the share of moves that keep the result; differences are to one leaf, on the same positions."""
    count = part["positions"]
    kept = {key: unpack(text, count) for key, text in part["kept"].items()}
    keys = list(kept)
    sampled = dict(zip(keys, resampled_means(np.stack(list(kept.values()))).T, strict=True))
    budgets = _curve_budgets(part)
    curve = {budget: float(kept[one_leaf(budget).key].mean()) for budget in budgets}
    sampled_curve = {budget: sampled[one_leaf(budget).key] for budget in budgets}
    for case in _cases():
        base = one_leaf(case.simulations)
        key = base.key if case.leaves == 1 else case.key
        if key not in kept or base.key not in kept:
            continue
        score = float(kept[key].mean())
        difference, error = paired_difference(kept[key], kept[base.key])
        equal = _itself(case) if case.leaves == 1 else equal_with_error(score, curve, sampled[key], sampled_curve)
        work = part["work"][key]
        yield _row(
            name,
            "solver",
            case,
            score=score,
            standard_error=float(sampled[key].std()),
            equal=equal,
            difference=difference,
            difference_error=error,
            positions=count,
            collisions_per_simulation=work["collisions"] / work["simulations"],
        )


def _solver_curve(name: str, part: Mapping[str, Any]) -> Iterator[Row]:
    count = part["positions"]
    for budget in _curve_budgets(part):
        kept = unpack(part["kept"][one_leaf(budget).key], count)
        error = float(kept.std(ddof=1) / np.sqrt(count))
        yield {
            "game": name,
            "metric": "solver",
            "simulations": budget,
            "score": round(float(kept.mean()), 5),
            "standard_error": round(error, 5),
        }


def _curve_budgets(part: Mapping[str, Any]) -> list[int]:
    cases = (key.split("/") for key in part["kept"])
    return sorted(int(budget) for budget, *_, leaves in cases if leaves == "1")


# --- Matches ------------------------------------------------------------------------------------------------------


def _match_rows(name: str, part: Mapping[str, Any]) -> Iterator[Row]:
    """A score is the share of the points against one leaf with the same budget."""
    draw = np.random.default_rng(0)
    curves = {budget: _elo_curve(part, budget, draw) for budget in map(int, part["points"])}
    for case in _cases():
        points = part["points"].get(str(case.simulations), {})
        if case.leaves == 1:
            # What the others are compared with, where there are any: it has not played against itself.
            if any(Case(case.simulations, case.in_flight, case.on_collision, count).key in points for count in LEAVES):
                yield _row(name, "match", case, equal=_itself(case), elo=0.0, elo_error=0.0)
        elif case.key in points:
            found = pair_score([int(digit) for digit in points[case.key]])
            curve, sampled_curve = curves[case.simulations]
            equal = equal_with_error(found.elo, curve, found.sampled_elos(draw), sampled_curve)
            yield _row(
                name,
                "match",
                case,
                score=found.score,
                standard_error=found.standard_error,
                equal=equal,
                elo=found.elo,
                elo_error=found.elo_standard_error,
                pairs=_tally(points[case.key]),
            )


def _match_curve_rows(name: str, part: Mapping[str, Any]) -> Iterator[Row]:
    for against in sorted(map(int, part["points"])):
        for budget, found in sorted(_calibration(part, against).items()):
            digits = part["points"][str(against)][one_leaf(budget).key]
            yield {
                "game": name,
                "metric": "match",
                "simulations": budget,
                "against": against,
                "score": round(found.score, 5),
                "standard_error": round(found.standard_error, 5),
                "elo": round(found.elo, 5),
                "elo_error": round(found.elo_standard_error, 5),
                "pairs": _tally(digits),
            }


def _calibration(part: Mapping[str, Any], against: int) -> dict[int, PairScore]:
    """One leaf at a time with smaller budgets."""
    found: dict[int, PairScore] = {}
    for key, digits in part["points"][str(against)].items():
        budget, _, _, leaves = key.split("/")
        if leaves == "1":
            found[int(budget)] = pair_score([int(digit) for digit in digits])
    return found


def _elo_curve(part: Mapping[str, Any], against: int, draw: np.random.Generator) -> tuple[dict[int, float], Any]:
    """Elo by budget, and samples of how it might have come out."""
    calibration = _calibration(part, against)
    curve = match_curve(against, {budget: found.elo for budget, found in calibration.items()})
    elos = {budget: found.sampled_elos(draw) for budget, found in calibration.items()}
    samples = [match_curve(against, {b: float(elo[n]) for b, elo in elos.items()}) for n in range(NUM_SAMPLES)]
    return curve, {budget: np.array([sample[budget] for sample in samples]) for budget in curve}


def _tally(digits: str) -> list[int]:
    """How many pairs gave the challenger 0, 1/2, 1, 3/2 and 2 points."""
    return [digits.count(digit) for digit in "01234"]


def _digits(tally: Sequence[int]) -> str:
    """The other way round."""
    return "".join(digit * count for digit, count in zip("01234", tally, strict=True))


def _itself(case: Case) -> Equal:
    return Equal(case.simulations, case.simulations, case.simulations, is_bound=False)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("raw", type=Path, nargs="+", help="what bench/price.py has written")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE", help="the package's own data by default")
    parser.add_argument("--add", action="store_true", help="to what the file has, instead of writing it anew")
    arguments = parser.parse_args()
    before = json.loads(arguments.out.read_text(encoding="utf-8")) if arguments.add else None
    results = make_results(merge([json.loads(path.read_text(encoding="utf-8")) for path in arguments.raw]), before)
    write_results(results, arguments.out)
    print(f"{len(results['rows'])} rows in {arguments.out}")


if __name__ == "__main__":
    main()
