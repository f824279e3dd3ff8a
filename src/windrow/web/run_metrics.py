"""The numbers of metrics.jsonl, whoever wrote the file: what can be drawn, and what could not be read."""

from __future__ import annotations

from pathlib import Path
from typing import TypeGuard

from windrow.files import open_regular, parse_object

_MAX_NUMBER = 1e15
"""No metric of a run is larger; below it, sums and the places in a drawing are exact enough."""
_MAX_NAME = 200
"""Characters in the name of a metric."""
_MAX_BYTES = 64 << 20
_MAX_LINE = 64 << 10


def read_numbers(path: Path) -> tuple[list[dict[str, float]], list[str]]:
    """The finite numbers of each line, ordered by "iteration", which every line has; and notes on what is left out.

    A last line without an end is still being written, and is left out without a note.
    """
    lines: list[dict[str, float]] = []
    notes: list[str] = []
    num_unread, is_rest = 0, False
    try:
        with open_regular(path) as file:
            while raw := file.readline(_MAX_LINE):
                is_whole = raw.endswith(b"\n")
                is_long = not is_whole and len(raw) == _MAX_LINE
                numbers = None if is_rest or is_long else _parse(raw)
                if numbers is not None:
                    lines.append(numbers)
                elif not is_rest and raw.strip():
                    num_unread += is_whole or is_long
                is_rest = not is_whole  # the rest of a line that is too long is not another line
                if file.tell() > _MAX_BYTES:
                    notes.append(f"Only the first {_MAX_BYTES >> 20} MiB of {path.name} were read.")
                    break
    except FileNotFoundError:
        pass
    except OSError as error:
        notes.append(f"The metrics in {path} cannot be read: {error.strerror}.")
    if num_unread:
        notes.append(f"{num_unread} {'line' if num_unread == 1 else 'lines'} of {path.name} could not be read.")
    return sorted(lines, key=lambda line: line["iteration"]), notes


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number that can be drawn: not NaN, infinite or absurdly large, and no boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and -_MAX_NUMBER <= value <= _MAX_NUMBER


def _parse(raw: bytes) -> dict[str, float] | None:
    fields = parse_object(raw) or {}
    numbers = {name: float(value) for name, value in fields.items() if is_number(value) and len(name) <= _MAX_NAME}
    iteration = numbers.get("iteration", -1.0)
    return numbers if iteration >= 0 and iteration.is_integer() else None
