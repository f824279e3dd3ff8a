"""Take screenshots of the pages: a real server, a real browser, every game at several sizes.

    .venv-dev/bin/python docs/screenshots.py build/screenshots                  # everything
    .venv-dev/bin/python docs/screenshots.py build/screenshots --only gomoku    # some scenes, by name
    .venv-dev/bin/python docs/screenshots.py docs/pictures --picture --run runs/connect4    # the picture of the README

It needs the extra `web` and a Chromium. The scenes that show a training run use the Connect-4 run given by --run, or
train one for a minute. Pillow, if it is installed, reduces the README's picture to 256 colours.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples" / "games"
sys.path.insert(0, str(ROOT / "tests" / "web"))

# The tests' own server and browser, which the line above makes importable.
from web_browser import Browser, Page, find_chromium  # noqa: E402
from web_server import serve  # noqa: E402

LOOKS: dict[str, dict[str, Any]] = {
    "wide": {"width": 1366, "height": 680},
    "phone": {"width": 390, "height": 844, "is_phone": True},
    "dark": {"width": 1366, "height": 680, "is_dark": True},
}
PICTURE = {"width": 1280, "height": 720}
RUN = "RUN"
"""Stands for the folder of the run among a scene's arguments."""


@dataclass(frozen=True)
class Scene:
    """A page to photograph.

    Attributes:
        name: the stem of its files.
        arguments: those of the command.
        moves: the moves at which the page opens.
        seconds: how long the page works before the screenshot.
        prepare: what a person does before that.
        command: `play` or `watch`.
    """

    name: str
    arguments: tuple[str, ...]
    moves: str = ""
    seconds: float = 2.0
    prepare: Callable[[Page], None] | None = None
    command: str = "play"


def show_hints(page: Page) -> None:
    """Switch hints on."""
    if page.run("document.body.dataset.hints") == "false":
        page.press("h")


def review(page: Page) -> None:
    """Let the search look at every move of a finished game."""
    page.click("#review")
    page.wait("document.querySelector('#status').textContent.startsWith('Review')")
    page.wait("document.querySelector('#review').hidden && document.body.dataset.turn === 'over'")


def open_all(page: Page) -> None:
    """Open the settings, the fields of the position, with an error, and the search tree."""
    for card in ("settings", "files", "explorer"):
        page.run(f"document.querySelector('#{card}').open = true")
    page.run("document.querySelector('#moves-text').value = '49'")
    page.run("document.querySelector('#setup').requestSubmit()")
    page.wait("!document.querySelector('#moves-error').hidden")


def compare(page: Page) -> None:
    """Show two searches side by side."""
    page.run("document.querySelector('[name=compare]').click()")
    page.wait("document.querySelectorAll('svg.board').length === 2")


AZUL = "BBKW/BYYY/BYWW/BRRR/YRKW AK3 BY2"
SCENES = (
    Scene("connect4", ("connect4",), "44453"),
    Scene("connect4_new", ("connect4",)),
    Scene("connect4_review", ("connect4",), "4142434", prepare=review),
    Scene("connect4_open", ("connect4",), "44453", prepare=open_all),
    Scene("connect4_compare", ("connect4", "-c", RUN, "-c", "rollout:5"), "44453", prepare=compare),
    Scene("gomoku", ("gomoku",), "h8 i9 i8 g8 j8 k8 h10 h9 i10", 4.0),
    Scene("othello", ("othello",), "d3c5e6f5"),
    Scene("tictactoe", ("tictactoe",), "b2a1"),
    Scene("backgammon", ("backgammon",), "x42 8/4 6/4 65 24/18 13/8 31"),
    Scene("azul", ("azul",), AZUL),
    Scene("azul3", ("azul:players=3",), prepare=show_hints),
    Scene("hex", (f"{EXAMPLES / 'hex.py'}:Hex",), "d4 c4 e3"),
    Scene("boxes", (f"{EXAMPLES / 'boxes.py'}:Boxes",), prepare=show_hints),
    Scene("pig", ("pig",), prepare=show_hints),
    Scene("watch", (RUN,), command="watch"),
)
PLAY = Scene("play", ("connect4", "-c", RUN), "4435", 4.0)


def main() -> None:
    """Parse the arguments and take the screenshots."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the folder of the screenshots")
    parser.add_argument("--only", nargs="*", metavar="NAME", choices=[scene.name for scene in SCENES])
    parser.add_argument("--look", nargs="*", choices=list(LOOKS))
    parser.add_argument("--fold", action="store_true", help="only what is visible without scrolling")
    parser.add_argument("--picture", action="store_true", help="only play.png, the picture of the README")
    parser.add_argument("--run", type=Path, help="the folder of a Connect-4 run")
    args = parser.parse_args()
    program = find_chromium()
    if program is None:
        sys.exit("there is no Chromium: apt-get install chromium, or name one in $CHROMIUM")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, ExitStack() as stack:
        browser = Browser(program, Path(folder))
        stack.callback(browser.close)
        scenes = [PLAY] if args.picture else [scene for scene in SCENES if not args.only or scene.name in args.only]
        run = args.run
        if run is None and any(RUN in scene.arguments for scene in scenes):
            run = train(Path(folder) / "run")
        for scene in scenes:
            arguments = [str(run) if argument == RUN else argument for argument in scene.arguments]
            with serve(*arguments, command=scene.command) as served:
                link = f"{served.link}#m={scene.moves}" if scene.moves else served.link
                if args.picture:
                    path = args.out / f"{scene.name}.png"
                    photograph(browser, link, scene, path, PICTURE, is_whole=False)
                    reduce(path)
                    continue
                for look in args.look or LOOKS:
                    path = args.out / f"{scene.name}_{look}.png"
                    photograph(browser, link, scene, path, LOOKS[look], is_whole=not args.fold)


def photograph(browser: Browser, link: str, scene: Scene, path: Path, look: dict[str, Any], *, is_whole: bool) -> None:
    """Open a scene's page and save its screenshot."""
    is_ready = "document.body.dataset." + ("ply" if scene.command == "play" else "iteration") + " !== undefined"
    with browser.open(link, has_faults=True, **look) as page:
        page.wait(is_ready)
        if scene.prepare:
            scene.prepare(page)
        time.sleep(scene.seconds)
        page.screenshot(path, is_whole=is_whole)
        print(path, flush=True)


def train(folder: Path) -> Path:
    """Train Connect-4 for a minute; returns the folder of the run."""
    line = [sys.executable, "-m", "windrow", "train", "connect4", "--time", "60s", "--run", str(folder)]
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return folder


def reduce(path: Path) -> None:
    """Reduce a picture to 256 colours, which makes its file smaller."""
    try:
        from PIL import Image
    except ImportError:
        return
    with Image.open(path) as picture:
        reduced = picture.convert("RGB").quantize(256, dither=Image.Dither.NONE)
    reduced.save(path, optimize=True)


if __name__ == "__main__":
    main()
