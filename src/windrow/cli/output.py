"""Printing: results go to stdout, everything else to stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from io import TextIOWrapper
from typing import Any, TextIO, cast

from rich.cells import cell_len
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from windrow.spelling import counted as counted

_WIDTH_OF_FILES = 200


def stdout() -> Console:
    """The console for results. It is created on demand, because a caller may have replaced sys.stdout."""
    return _console(sys.stdout)


def stderr() -> Console:
    """The console for progress and errors."""
    return _console(sys.stderr)


def _console(stream: TextIO) -> Console:
    # A file or a pipe has no width; narrow ones would break lines that programs read. COLUMNS overrides both.
    width = None if stream.isatty() or os.environ.get("COLUMNS") else _WIDTH_OF_FILES
    # Without emoji, because ":Three:" in the name of a game or ":o:" on a board would become pictures.
    return Console(file=stream, highlight=False, emoji=False, width=width)


def stdout_number() -> int | None:
    """The file descriptor of stdout; None if a caller has replaced sys.stdout with another object."""
    try:
        return sys.stdout.fileno()
    except (AttributeError, OSError, ValueError):
        return None


def reserve_stdout() -> None:
    """Reserve stdout for Python; from now on, what native libraries print there goes to stderr.

    Ray's native part, for example, sometimes prints while it shuts down, after the JSON document.
    """
    if stdout_number() != 1:
        return
    try:
        os.fstat(2)
    except OSError:  # there is no stderr
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    before = cast("TextIOWrapper", sys.stdout)
    is_unbuffered = before.write_through
    # Nobody closes stdout; with closefd the interpreter would complain about that when it ends.
    sys.stdout = TextIOWrapper(
        open(kept, "wb", 0 if is_unbuffered else -1, closefd=False),
        encoding=before.encoding,
        errors=before.errors,
        line_buffering=before.line_buffering,
        write_through=is_unbuffered,
    )


def print_error(message: str) -> None:
    """Print an error: its first line in red, further lines (a board, the legal moves) unchanged.

    The terminal wraps long lines, so that a command to copy stays in one piece.
    """
    first, _, rest = message.partition("\n")
    stderr().print(Text(f"error: {first}", style="bold red"), soft_wrap=True)
    if rest:
        stderr().print(Text(rest), soft_wrap=True)


def print_warning(message: str) -> None:
    """Print a problem that does not stop the command."""
    stderr().print(Text(f"warning: {message}", style="yellow"), soft_wrap=True)


def loading(name: str, backend: str) -> AbstractContextManager[object]:
    """Show on a terminal that a network is loaded: comparing backends can take half a minute."""
    hint = ", comparing backends on this machine (--backend torch skips this)" if backend == "auto" else ""
    return stderr().status(f"loading {escape(name)}{hint}")


def print_json(document: Mapping[str, Any]) -> None:
    """Print one JSON document, the only output on stdout."""
    print(json.dumps(_plain(document), indent=2, ensure_ascii=False, allow_nan=False))


def print_table(header: Sequence[str], rows: Sequence[Sequence[str]], *, title: str | None = None) -> None:
    """Print a table: the first column aligned left, the others right, or left where a header begins with "<".

    Where the table is wider than the terminal, headers and left-aligned columns wrap between words. If that is not
    enough, every row becomes a block of lines, one per column.
    """
    console = stdout()
    is_left = [index == 0 or name.startswith("<") for index, name in enumerate(header)]
    columns = [[name.lstrip("<"), *cells] for name, *cells in zip(header, *rows, strict=True)]
    if title is not None:
        console.print(Text(title, style="bold"))
    widths = _widths(columns, is_left, console.width)
    if widths is None:
        _print_blocks(console, columns)
        return
    table = Table(header_style="bold", box=None, pad_edge=False)
    for left, column, width in zip(is_left, columns, widths, strict=True):
        table.add_column(column[0], justify="left" if left else "right", width=width)
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console.print(table)


def _widths(columns: Sequence[Sequence[str]], wraps: Sequence[bool], available: int) -> list[int] | None:
    """Column widths that fit. The widest column that may wrap shrinks first, never below its longest word.

    Headers wrap in every column, cells where `wraps` says so. None if that is too wide. Rich would cut off words, and
    columns to their right, before it wraps the widest column.
    """
    widths = [max(map(cell_len, column)) for column in columns]
    least: list[int] = []
    for (header, *cells), wrap in zip(columns, wraps, strict=True):
        words = [*header.split(), *(word for cell in cells for word in (cell.split() if wrap else [cell]))]
        least.append(max(map(cell_len, words), default=0))
    excess = sum(widths) + 2 * (len(widths) - 1) - available
    for _ in range(excess):
        spare = [index for index, width in enumerate(widths) if width > least[index]]
        if not spare:
            return None
        widths[max(spare, key=widths.__getitem__)] -= 1
    return widths


def _print_blocks(console: Console, columns: Sequence[Sequence[str]]) -> None:
    """Print a table as one block of lines per row; the first column is the heading."""
    headers = [column[0] for column in columns]
    for row in zip(*(column[1:] for column in columns), strict=True):
        block = Table(box=None, show_header=False, pad_edge=False)
        block.add_column(style="cyan")
        block.add_column()
        for header, cell in zip(headers[1:], row[1:], strict=True):
            if cell:
                block.add_row(Text(f"  {header}"), Text(cell))
        console.print(Text(f"{headers[0]} {row[0]}".strip(), style="bold"))
        console.print(block)


def share_of_network(share: float) -> str:
    """A share of the network's own throughput as text, capped at 100 % because both measurements have noise."""
    return f"{min(share, 1.0):.1%}"


def print_facts(facts: Mapping[str, str]) -> None:
    """Print names and values, one pair per line."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, value in facts.items():
        table.add_row(Text(name), Text(value))
    stdout().print(table)


@contextmanager
def progress_bar(label: str, total: int | None) -> Generator[ProgressBar, None, None]:
    """A progress bar on stderr during long work; silent if stderr is not a terminal."""
    console = stderr()
    progress = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with progress:
        yield ProgressBar(progress, label, total)


class ProgressBar:
    """One line of progress, made by `progress_bar`."""

    def __init__(self, progress: Progress, label: str, total: int | None) -> None:
        self._progress = progress
        self._task = progress.add_task(label, total=total, note="")

    def update(self, done: int, total: int | None = None, *, note: str | None = None) -> None:
        """Set the amount done; the note is shown after the bar."""
        fields: dict[str, Any] = {} if note is None else {"note": note}
        if total is not None:
            fields["total"] = total
        self._progress.update(self._task, completed=done, **fields)


def _plain(value: Any) -> Any:
    """Convert a value for JSON: NumPy numbers and arrays become Python's, and non-finite numbers become null."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in cast("Sequence[Any]", value)]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)
