"""The numbers of a run, one line per iteration: metrics.jsonl for programs, event files for TensorBoard."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from windrow.errors import CheckpointError
from windrow.train.disk import explain_write, replace_file


class MetricsLog:
    """Appends to the metrics of a run.

    Args:
        folder: the run's.
        first_iteration: the iteration that comes next; lines of it and later ones, left by a run that was killed before
            it saved a checkpoint, are dropped.
    """

    def __init__(self, folder: Path, *, first_iteration: int) -> None:
        self.path = folder / "metrics.jsonl"
        kept = [line for line in read_metrics(folder) if line["iteration"] < first_iteration]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        replace_file(self.path, text)
        self._board = _open_board(folder / "tensorboard", first_iteration)

    def write(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Add one iteration."""
        line = {"iteration": iteration, **{name: float(value) for name, value in metrics.items()}}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
        except OSError as error:
            raise explain_write(self.path, error) from error
        if self._board is not None:
            for name, value in metrics.items():
                self._board.add_scalar(name, value, iteration)
            self._board.flush()

    def close(self) -> None:
        """Close the event file; may be called more than once."""
        if self._board is not None:
            self._board.close()


def read_metrics(folder: str | Path) -> list[dict[str, float]]:
    """The metrics of a run, one dictionary per iteration; a line that is none, torn by a kill say, is left out."""
    try:
        text = (Path(folder) / "metrics.jsonl").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"cannot read the metrics of {folder}: {error.strerror}") from error
    lines: list[dict[str, float]] = []
    for line in text.splitlines():
        try:
            read: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(read, dict) and "iteration" in read:
            lines.append(cast("dict[str, float]", read))
    return lines


def _open_board(folder: Path, first_iteration: int) -> Any:
    """TensorBoard's writer; None where TensorBoard is not installed."""
    try:
        from torch.utils.tensorboard.writer import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder), purge_step=first_iteration)
