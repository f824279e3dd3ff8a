"""The metrics of a run, one line per iteration: metrics.jsonl for programs, event files for TensorBoard."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from windrow.errors import CheckpointError
from windrow.files import parse_lines, read_regular
from windrow.train.disk import explain_write, replace_file, writing


class MetricsLog:
    """Appends metrics to the files of a run.

    Args:
        first_iteration: the next iteration. Lines of it and later iterations are dropped; a run that was killed before
        it saved a checkpoint left them.
    """

    def __init__(self, folder: Path, *, first_iteration: int) -> None:
        self.path = folder / "metrics.jsonl"
        kept = [line for line in read_metrics(folder) if line["iteration"] < first_iteration]
        text = "".join(json.dumps(line) + "\n" for line in kept)
        replace_file(self.path, text)
        self._board: _EventFile | None = None
        with self._without_failing():
            self._board = _EventFile(folder / "tensorboard", first_iteration)

    def write(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Add one iteration.

        Raises:
            CheckpointError: metrics.jsonl cannot be written. If only TensorBoard's file cannot be written, a warning is
                given once, and TensorBoard's file ends.
        """
        line = {"iteration": iteration, **{name: float(value) for name, value in metrics.items()}}
        with writing(self.path), self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        if self._board is not None:
            with self._without_failing():
                self._board.write(iteration, metrics)

    @contextmanager
    def _without_failing(self) -> Generator[None, None, None]:
        """Write for TensorBoard; an error ends its file with a warning, and not the run."""
        try:
            yield
        except ImportError:
            self._board = None  # TensorBoard is not installed
        except OSError as error:
            self._board = None
            warnings.warn(
                f"{explain_write(self.path.parent / 'tensorboard', error)}. Training continues without "
                "TensorBoard; metrics.jsonl has the same numbers",
                RuntimeWarning,
                stacklevel=4,
            )


def read_metrics(folder: str | Path) -> list[dict[str, float]]:
    """Read the metrics of a run, one dictionary per iteration. Broken lines, as a kill leaves them, are skipped."""
    try:
        lines = parse_lines(read_regular(Path(folder) / "metrics.jsonl"))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"the metrics of {folder} cannot be read: {error.strerror}") from error
    return [line for line in lines if isinstance(line.get("iteration"), int | float)]


class _EventFile:
    """One file of TensorBoard's format, opened for each iteration.

    PyTorch's SummaryWriter would do, but it writes on a thread of its own: where that fails, a traceback is printed.

    Args:
        first_iteration: TensorBoard drops what files of earlier processes say about this iteration and later ones.

    Raises:
        ImportError: TensorBoard is not installed.
        OSError: the file cannot be written; so does `write`.
    """

    def __init__(self, folder: Path, first_iteration: int) -> None:
        self._events: Any = import_module("tensorboard.compat.proto.event_pb2")
        self._summaries: Any = import_module("tensorboard.compat.proto.summary_pb2")
        self._records: Any = import_module("tensorboard.summary.writer.record_writer")
        folder.mkdir(exist_ok=True)
        self._path = folder / f"events.out.tfevents.{time.time_ns()}.{socket.gethostname()}.{os.getpid()}"
        start = self._events.SessionLog(status=self._events.SessionLog.START)
        self._append(file_version="brain.Event:2")
        self._append(step=first_iteration, session_log=start)

    def write(self, iteration: int, metrics: Mapping[str, float]) -> None:
        """Add one iteration."""
        make: Any = self._summaries.Summary.Value
        values = [make(tag=name, simple_value=float(value)) for name, value in metrics.items()]
        self._append(step=iteration, summary=self._summaries.Summary(value=values))

    def _append(self, **content: Any) -> None:
        event = self._events.Event(wall_time=time.time(), **content)
        with self._path.open("ab") as file:
            self._records.RecordWriter(file).write(event.SerializeToString())
