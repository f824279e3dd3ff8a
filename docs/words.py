"""Counts the words of the documentation that somebody wrote: `python docs/words.py` prints a line per page and the sum.

Counted are prose and hand-written tables of docs/**/*.md. Left out are code blocks, everything between the markers that
a generator fills (bench/readme.py, bench/price_report.py, the table of engines), HTML comments and link targets.
A word is whatever stands between spaces and has a letter or a digit.
"""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parent
LEFT_OUT = tuple(
    re.compile(pattern, re.MULTILINE | re.DOTALL)
    for pattern in (
        r"^( *)```.*?^\1```$",
        r"<!-- figures: .*?<!-- end of figures -->",
        r"<!-- begin ([\w ]+?) -->.*?<!-- end \1 -->",
        r"(?<=<!-- capabilities -->)\s*(?:\|[^\n]*\n)+",
        r"<!--.*?-->",
        r"\]\([^)\s]*\)",
    )
)


def count(text: str) -> int:
    """The words of a page."""
    for pattern in LEFT_OUT:
        text = pattern.sub(" ", text)
    return sum(any(letter.isalnum() for letter in word) for word in text.split())


def main() -> None:
    """Print the table."""
    counts = {path.relative_to(DOCS).as_posix(): count(path.read_text(encoding="utf-8")) for path in DOCS.rglob("*.md")}
    for page, words in sorted(counts.items()):
        print(f"{words:7,} {page}")
    print(f"{sum(counts.values()):7,} all")


if __name__ == "__main__":
    main()
