"""Tables and pictures of the price of batching, from its results.

    python bench/price_rows.py price_raw.json     # the results
    python bench/price_report.py                  # writes docs/*.svg, and the tables in docs/price-of-batching.md

Everything comes from `src/windrow/tune/price_of_batching.json`; what is between two markers of the page is written
anew, the rest is left as it is.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from machine import ROOT, together
from price_cases import LEAVES, RULES, SIMULATIONS
from price_plot import STRENGTH, WORTH, draw
from price_rows import RESULTS
from results_page import table

PAGE = ROOT / "docs" / "price-of-batching.md"
PICTURES = {"price-of-batching.svg": STRENGTH, "price-of-batching-worth.svg": WORTH}
TITLES = {"connect4": "Connect-4", "othello": "Othello", "gomoku9": "Gomoku 9x9"}

Row = Mapping[str, Any]


def page_parts(results: Mapping[str, Any]) -> dict[str, str]:
    """By marker, what the page says between its two ends."""
    games = [game for game in TITLES if any(row["game"] == game for row in results["rows"])]
    parts = {"source": source_table(results["sources"]), "gain": gain_table(results["rows"], games)}
    for game in games:
        rows = [row for row in results["rows"] if row["game"] == game]
        for word, rule in {"skip": RULES[0], "share": ("visits", "share")}.items():
            parts[f"{game} {word}"] = leaves_table(rows, rule)
        parts[f"{game} rules"] = rules_table(rows)
        parts[f"{game} one leaf"] = one_leaf_table([row for row in results["one_leaf"] if row["game"] == game])
    return parts


def fill_page(text: str, parts: Mapping[str, str]) -> str:
    """The page with its generated parts."""
    for name, part in parts.items():
        marker = re.compile(rf"(<!-- begin {re.escape(name)} -->\n).*?(<!-- end {re.escape(name)} -->)", re.DOTALL)
        if not marker.search(text):
            raise SystemExit(f"{PAGE.name} has no markers <!-- begin {name} --> and <!-- end {name} -->")
        text = marker.sub(lambda found, part=part: found[1] + part + "\n" + found[2], text)
    return text


def source_table(sources: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """Where the figures come from: what all networks share, a line for every network, and all commands."""
    titles: list[str] = []
    facts: list[dict[str, str]] = []
    for game, title in TITLES.items():
        networks = list(dict.fromkeys(source["network"] for source in sources.get(game, ())))
        for number, network in enumerate(networks, 1):
            titles.append(title + (f", network {number}" if len(networks) > 1 else ""))
            runs = [source["machine"] for source in sources[game] if source["network"] == network]
            facts.append({**together(runs), "network": network})
    names = list(dict.fromkeys(name for some in facts for name in some))
    values = {name: [some.get(name, "") for some in facts] for name in names}
    shared = [name for name in names if len(set(values[name])) == 1 and len(facts) > 1]
    alike = ", ".join(f"{name} {values[name][0]}" for name in shared if values[name][0] != "not installed")
    others = [name for name in names if name not in shared and set(values[name]) != {"not installed"}]
    lines = [(title, *(values[name][row] for name in others)) for row, title in enumerate(titles)]
    commands = dict.fromkeys(f"    {source['command']}" for game in TITLES for source in sources.get(game, ()))
    return "\n\n".join([*([f"All runs: {alike}."] if alike else ()), table(("", *others), lines), *commands])


def leaves_table(rows: Sequence[Row], rule: tuple[str, str]) -> str:
    """One rule: a line per number of leaves, strength and worth by budget, those that were measured."""
    budgets = [budget for budget in SIMULATIONS if find(rows, budget, rule, 1)]
    header = ["leaves"]
    for budget in budgets:
        header += [f"{budget:,} simulations", "worth"]
    lines: list[list[str]] = []
    for count in (1, *LEAVES):
        cells = [str(count)]
        for budget in budgets:
            row = find(rows, budget, rule, count)
            cells += ["", ""] if row is None else [show_strength(row), show_worth(row)]
        lines.append(cells)
    return table(header, lines)


def rules_table(rows: Sequence[Row]) -> str:
    """All rules: what a budget is worth, and the rows of a network call, by number of leaves."""
    header = ["simulations", "in flight", "collision", *(f"K = {count}" for count in LEAVES)]
    lines: list[list[str]] = []
    for budget in SIMULATIONS:
        for rule in RULES:
            found = [find(rows, budget, rule, count) for count in LEAVES]
            if any(found):
                cells = ["" if row is None else show_worth(row, is_short=True) for row in found]
                lines.append([f"{budget:,}", *(f"`{word}`" for word in rule), *cells])
    return table(header, lines)


def gain_table(rows: Sequence[Row], games: Sequence[str]) -> str:
    """For each rule the most strength that a network call can bring, if calls took the same time at any size."""
    header = ["game", "simulations", *(f"`{in_flight}`, `{on_collision}`" for in_flight, on_collision in RULES)]
    lines: list[list[str]] = []
    for game in games:
        own = [row for row in rows if row["game"] == game and "simulations_per_call" in row]
        for budget in SIMULATIONS:
            gains = [_best_gain([find(own, budget, rule, count) for count in LEAVES]) for rule in RULES]
            if any(gains):
                lines.append([TITLES[game], f"{budget:,}", *gains])
    return table(header, lines)


def _best_gain(rows: Iterable[Row | None]) -> str:
    """One-leaf simulations that a call is worth, at the number of leaves where that is most; empty without rows."""
    found = [row for row in rows if row is not None]
    if not found:
        return ""
    best = max(found, key=lambda row: row["equal_simulations"] * row["simulations_per_call"])
    gain, low, high = (
        best[name] / best["simulations"] * best["simulations_per_call"]
        for name in ("equal_simulations", "equal_low", "equal_high")
    )
    return f"{_bound(best)}{gain:.1f} ({low:.1f} to {high:.1f}), K = {best['leaves']}"


def _bound(row: Row) -> str:
    """What stands before a worth at the end of what was measured, beyond which the truth may lie."""
    if not row["is_bound"]:
        return ""
    return "≤ " if row["equal_simulations"] < row["simulations"] else "≥ "


def one_leaf_table(rows: Sequence[Row]) -> str:
    """What one leaf at a time reaches with other budgets."""
    if rows and rows[0]["metric"] == "solver":
        lines = [(f"{row['simulations']:,}", percent(row["score"], row["standard_error"])) for row in rows]
        return table(("simulations", "keeps the result"), lines)
    return table(
        ("simulations", "against", "score", "Elo"),
        [
            (
                f"{row['simulations']:,}",
                f"{row['against']:,}",
                percent(row["score"], row["standard_error"]),
                f"{row['elo']:+.0f} ± {row['elo_error']:.0f}",
            )
            for row in rows
        ],
    )


def find(rows: Iterable[Row], budget: int, rule: tuple[str, str], count: int) -> Row | None:
    """The row of a case, if it was measured."""
    wanted = (budget, *rule, count)
    names = ("simulations", "in_flight", "on_collision", "leaves")
    return next((row for row in rows if tuple(row[name] for name in names) == wanted), None)


def show_strength(row: Row) -> str:
    """The share of right moves and the difference to one leaf, or Elo."""
    if row["metric"] == "match":
        return "0" if row["leaves"] == 1 else f"{row['elo']:+.0f} ± {row['elo_error']:.0f} Elo"
    if row["leaves"] == 1:
        return percent(row["score"], row["standard_error"])
    return f"{100 * row['score']:.1f} % ({100 * row['difference']:+.1f} ± {100 * row['difference_error']:.1f})"


def show_worth(row: Row, *, is_short: bool = False) -> str:
    """One-leaf simulations of equal strength as a share of the budget, with the interval of one standard error."""
    if row["leaves"] == 1:
        return "100 %"
    names = ("equal_simulations", "equal_low", "equal_high")
    share, low, high = (100 * row[name] / row["simulations"] for name in names)
    sign = _bound(row)
    if not is_short:
        return f"{sign}{share:.0f} % ({low:.0f} to {high:.0f})"
    rows = f" · {row['rows_per_call']:.1f}" if "rows_per_call" in row else ""
    return f"{sign}{share:.0f} %{rows}"


def percent(share: float, error: float) -> str:
    """A share with its standard error."""
    return f"{100 * share:.1f} ± {100 * error:.1f} %"


def main() -> None:
    """Write all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="the package's data by default")
    parser.add_argument("--docs", type=Path, default=PAGE.parent, metavar="FOLDER", help="docs/ by default")
    parser.add_argument("--print", action="store_true", help="print the tables and write nothing")
    arguments = parser.parse_args()
    results = json.loads(arguments.results.read_text(encoding="utf-8"))
    parts = page_parts(results)
    if arguments.print:
        print("\n\n".join(f"{name}\n\n{part}" for name, part in parts.items()))
        return
    for name, measure in PICTURES.items():
        (arguments.docs / name).write_text(draw(results, measure, TITLES), encoding="utf-8")
    page = arguments.docs / PAGE.name
    page.write_text(fill_page(page.read_text(encoding="utf-8"), parts), encoding="utf-8")


if __name__ == "__main__":
    main()
