"""The price of batching where right and wrong are known: hard positions of Connect-4, solved exactly."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from price_cases import Case
from price_players import Trained
from price_positions import HardPosition


def pack(kept: Sequence[bool]) -> str:
    """Yes or no for each position, as text."""
    return base64.b64encode(np.packbits(np.array(kept, bool)).tobytes()).decode("ascii")


def unpack(text: str, count: int) -> npt.NDArray[np.bool_]:
    """The reverse."""
    return np.unpackbits(np.frombuffer(base64.b64decode(text), np.uint8), count=count).astype(bool)


def measure_solver(
    trained: Trained,
    positions: Sequence[HardPosition],
    cases: Sequence[Case],
    part: dict[str, Any],
    *,
    seconds: float,
    save: Callable[[], None],
) -> None:
    """Search all positions in every case that `part` does not have, until all are done or the time is over.

    part: what is known: `kept`, by case, the positions in which the move kept the result, packed; `work`, by case, what
        the search did.
    save: called after every case.
    """
    start, per_simulation = perf_counter(), 0.0
    part["positions"] = len(positions)
    kept_by_case, work_by_case = part.setdefault("kept", {}), part.setdefault("work", {})
    states = [position.state for position in positions]
    missing = [case for case in cases if case.key not in kept_by_case]
    for number, case in enumerate(missing, 1):
        began = perf_counter()
        if began - start + 0.7 * per_simulation * case.simulations > seconds:
            continue  # another may be short enough
        with trained.search(case) as search:
            chosen = trained.choose(search, states)
            stats = search.stats
        assert stats is not None
        kept = [action in position.best_actions for action, position in zip(chosen, positions, strict=True)]
        kept_by_case[case.key] = pack(kept)
        work_by_case[case.key] = {
            name: getattr(stats, name)
            for name in ("simulations", "evaluations", "collisions", "terminal_hits", "mean_depth")
        }
        save()
        now = perf_counter()
        per_simulation = (now - began) / case.simulations
        done = f"{now - start:6.1f} s  {number:3}/{len(missing)}  {case.key:24} {np.mean(kept):7.2%}"
        print(f"{done}  {trained.cache_use()}", flush=True)
