"""A run as one file: the page of `windrow watch` with everything in it.

    write_report("runs/connect4")      # runs/connect4/report.html

The file needs nothing but itself: style, scripts, and as JSON what a server would tell the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from datetime import datetime
from html import escape
from pathlib import Path
from typing import Any

from windrow.distribution import installed_version
from windrow.errors import ConfigError
from windrow.games.core_game import CoreGame
from windrow.train.disk import replace_file
from windrow.web.app import read_files
from windrow.web.limits import RequestError
from windrow.web.run_data import RunData, read_run
from windrow.web.run_page import describe_game, describe_games, describe_metrics, describe_run

_NUM_GAMES = 20
"""Games in the file, the samples first."""
_MAX_BYTES = 4 << 20
"""Games are added until they take so much."""
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./(\w+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
_STYLE = re.compile(r'<link rel="stylesheet" href="([\w.]+)">')


def write_report(run_folder: str | Path, out: str | Path | None = None, *, game: CoreGame | None = None) -> Path:
    """Write a run's report, one HTML file that needs nothing else; returns its path.

    What the run does not have yet, or what is damaged in it, the page says in words. A run that is going on may be
    reported on.

    Args:
        run_folder: the run.
        out: the file; `report.html` in the run's folder if None.
        game: what is played; needed to show the games of a game that does not come with windrow.

    Raises:
        ConfigError: the folder holds no run.
        CheckpointError: the file cannot be written.
    """
    folder = Path(run_folder)
    path = folder / "report.html" if out is None else Path(out)
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: name a file, such as {path / 'report.html'}")
    replace_file(path, make_page(read_run(folder, game)))
    return path


def make_page(run: RunData) -> str:
    """The whole file."""
    files = {path.lstrip("/"): content.decode() for path, (content, _) in read_files("watch").items()}
    described = describe_run(run)
    written = f"Written {datetime.now().astimezone():%Y-%m-%d %H:%M %Z} by windrow {installed_version()}."
    games, listed = _inline_games(run)
    data = {"messages": [{**described, "written": written}, describe_metrics(run), listed], "games": games}
    script = _join_modules("watch.js", files, set())
    icon = base64.b64encode(files["icon.svg"].encode()).decode()
    # A browser runs this one script and no other, whatever the rest of the file holds, and asks nobody for more.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    charset = '<meta charset="utf-8">'
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    parts = {
        charset: f'{charset}\n<meta http-equiv="Content-Security-Policy" content="{policy}">',
        "<title>windrow: training</title>": f"<title>{escape(described['title'])}</title>",
        'href="icon.svg"': f'href="data:image/svg+xml;base64,{icon}"',
        '<script type="module" src="watch.js"></script>': f'<script type="module">{script}</script>',
        "</body>": f'<script type="application/json" id="saved">{_spell_data(data)}</script>\n</body>',
    }
    page = _STYLE.sub(lambda match: f"<style>{files[match[1]]}</style>", files[""])
    for old, new in parts.items():
        before, found, after = page.partition(old)
        assert found, f"watch.html has no {old}"
        page = before + new + after
    return page.encode(errors="replace").decode()  # names of folders can hold halves of characters


def _inline_games(run: RunData) -> tuple[dict[str, Any], dict[str, Any]]:
    """By number, the games in the file or why one cannot be shown; and the lists of games that are in it."""
    games, told, size = describe_games(run), dict[str, Any](), 0
    for row in [*games["samples"], *games["newest"]]:
        if len(told) >= _NUM_GAMES or size >= _MAX_BYTES:
            break
        try:
            answer = describe_game(run, row["number"])
        except RequestError as error:
            answer = {"type": "error", "message": str(error)}
        told[str(row["number"])] = answer
        size += len(json.dumps(answer))
    kept = {name: [row for row in games[name] if str(row["number"]) in told] for name in ("samples", "newest")}
    return told, {**games, **kept}


def _join_modules(name: str, files: dict[str, str], done: set[str]) -> str:
    """A module and, before it, those that it imports, as one: no name is declared at the top of two of them."""
    done.add(name)
    needed = [found for found in _IMPORT.findall(files[name]) if found not in done]
    before = "".join(_join_modules(module, files, done) for module in needed if module not in done)
    return before + _EXPORT.sub("", _IMPORT.sub("", files[name]))


def _spell_data(data: Any) -> str:
    """JSON in which no markup begins or ends, and no character is other than ASCII."""
    text = json.dumps(data, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
