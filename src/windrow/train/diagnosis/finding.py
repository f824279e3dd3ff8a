"""A problem of a run, in words and figures, and the file `findings.jsonl` that keeps it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from windrow.files import open_regular, parse_lines
from windrow.train.disk import replace_file, writing

FINDINGS = "findings.jsonl"
_MAX_BYTES = 1 << 16
"""Bytes of the file that are read: a run has a dozen findings at most, a few hundred bytes each."""
_MAX_TEXT = 2000
"""Characters read of one text, since the folder of a run may come from anyone."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem of a run."""

    name: str
    """Name of the check that found it, such as "constant_value"; docs/train-well.md describes each."""
    evidence: str
    """What was observed, with figures."""
    remedy: str
    """What to change."""
    iteration: int = 0
    """Iteration after which it was observed."""

    def to_dict(self) -> dict[str, Any]:
        """All fields by name."""
        return asdict(self)


def read_findings(folder: str | Path) -> list[Finding]:
    """Read the findings in a run's folder; lines that are not findings are skipped."""
    try:
        with open_regular(Path(folder) / FINDINGS) as file:
            lines = parse_lines(file.read(_MAX_BYTES))
    except OSError:
        return []
    return [finding for line in lines if (finding := _as_finding(line)) is not None]


def _as_finding(fields: dict[str, Any]) -> Finding | None:
    texts = [fields.get(name) for name in ("name", "evidence", "remedy")]
    iteration = fields.get("iteration")
    if not all(isinstance(text, str) for text in texts) or not isinstance(iteration, int):
        return None
    name, evidence, remedy = (str(text)[:_MAX_TEXT] for text in texts)
    return Finding(name, evidence, remedy, iteration)


def write_findings(folder: Path, findings: list[Finding]) -> None:
    """Replace the findings of a run; a run without any has no file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    path = folder / FINDINGS
    if findings:
        replace_file(path, "".join(json.dumps(finding.to_dict()) + "\n" for finding in findings))
        return
    with writing(path):
        path.unlink(missing_ok=True)
