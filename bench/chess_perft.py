"""Perft: sequences of legal moves of chess counted per second on one core.

At the last depth the moves of a position are counted and not played ("bulk counting"), as perft programs do. Positions
are those of the Chess Programming Wiki; their counts are compared with the published ones.
"""

from __future__ import annotations

from time import perf_counter

from machine import on_cores
from report import Figure, number, print_table, run_alone

import windrow

TARGET_RATE = 100e6  # sequences per second, over all positions together

POSITIONS = {
    "start": ("rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", {5: 4_865_609, 6: 119_060_324}),
    "Kiwipete": (
        "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1",
        {4: 4_085_603, 5: 193_690_690},
    ),
    "position 3": ("8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1", {5: 674_624, 6: 11_030_083}),
    "position 4": (
        "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1",
        {4: 422_333, 5: 15_833_292},
    ),
    "position 5": ("rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8", {4: 2_103_487, 5: 89_941_194}),
    "position 6": (
        "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10",
        {4: 3_894_594, 5: 164_075_551},
    ),
}


def measure(is_smoke: bool) -> list[Figure]:
    """Print the table and return the figures."""
    game = windrow.make_game("chess")
    rates: list[float] = []
    rows: dict[str, list[str]] = {}
    with on_cores(1):
        for _ in range(1 if is_smoke else 5):
            total_count, total_s = 0, 0.0
            for name, (fen, counts) in POSITIONS.items():
                depth = min(counts) if is_smoke else max(counts)
                state = game.parse(fen)
                start = perf_counter()
                count = game.count_sequences(state, depth)
                seconds = perf_counter() - start
                assert count == counts[depth], (name, depth, count)
                total_count += count
                total_s += seconds
                rows.setdefault(name, [name, str(depth), f"{count:,}"]).append(number(count / seconds))
            rates.append(total_count / total_s)
    header = ("position", "depth", "sequences", *(f"run {i + 1}" for i in range(len(rates))))
    print_table("Sequences of legal moves per second, one core", header, [tuple(row) for row in rows.values()])
    figure = Figure.of("chess perft", rates, unit="sequences/s", at_least=TARGET_RATE, note="median, six positions")
    return [figure]


if __name__ == "__main__":
    run_alone(measure, __doc__)
