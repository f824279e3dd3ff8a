"""The other games on the page: each is played by clicks, chance included."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from web_browser import Browser, Page
from web_server import serve

PLY = "Number(document.body.dataset.ply)"
UPDATES = "Number(document.body.dataset.updates)"


@contextmanager
def opened(browser: Browser, game: str, moves: str = "", **look: bool) -> Iterator[Page]:
    with serve(game) as served, browser.open(f"{served.link}#m={moves}" if moves else served.link, **look) as page:
        page.wait("document.body.dataset.ply !== undefined")
        yield page


def test_othello_and_tictactoe(browser: Browser, screenshots: Path) -> None:
    with opened(browser, "othello") as page:
        page.click_cell(2, 3)
        page.wait(f"{PLY} >= 2")
        assert page.run("document.body.dataset.moves").startswith("c4")
        page.screenshot(screenshots / "othello.png")
    with opened(browser, "tictactoe", "a1 b2 c3 a3") as page:
        page.wait(f"{PLY} === 4 && {UPDATES} >= 1")
        page.screenshot(screenshots / "tictactoe.png")
        page.click_cell(1, 0)
        page.wait(f"{PLY} >= 5")


def test_backgammon_shows_dice_rolled_or_chosen(browser: Browser, screenshots: Path) -> None:
    with opened(browser, "backgammon", "x42", is_dark=True) as page:
        page.wait(f"{PLY} === 1 && {UPDATES} >= 1")
        assert page.run("document.querySelectorAll('.die').length") == 2
        page.wait("document.querySelectorAll('.arrow').length >= 2")
        page.wait("Number(document.querySelector('.arrow-label text').textContent) > 0")
        page.screenshot(screenshots / "backgammon_dark.png")
        # Eight to four, by the points themselves.
        for point in ("8", "4"):
            page.click(f"[data-point='{point}']")
        page.wait(f"{PLY} === 2")
        page.run("document.querySelector('[name=dice]').value = 'chosen'")
        page.run("document.querySelector('[name=dice]').dispatchEvent(new Event('change', {bubbles: true}))")
        page.click("#choices [data-action]")
        page.wait("document.body.dataset.turn === 'chance' && !document.querySelector('#dice').hidden")
        page.run(
            "[...document.querySelectorAll('#dice option')].find(o => o.textContent.startsWith('66')).selected = true"
        )
        page.click("#dice label + button")
        page.wait(f"{PLY} >= 4")
        assert page.run("document.body.dataset.moves").split()[3] == "66"


def test_azul_by_its_tiles(browser: Browser, screenshots: Path) -> None:
    deal = "BBKW/BYYY/BYWW/BRRR/YRKW"
    with opened(browser, "azul", deal) as page:
        page.wait(f"{PLY} === 1 && {UPDATES} >= 1")
        page.click("[aria-label='1 black from display A']")
        page.wait("document.querySelector('[aria-label=\"1 black from display A\"]').ariaPressed === 'true'")
        # What is pointed at shows its line; the tiles and the row that it begins with are marked.
        page.wait("document.querySelector('.pv').textContent.startsWith('Line: AK')")
        page.wait("document.querySelectorAll('.tiles.pointed, .target-row.pointed').length === 2")
        assert page.run("document.querySelector('.tiles .weight:not(:empty)').textContent").endswith("%")
        assert page.run("document.querySelector('#choices').hidden")  # the tiles are all that it takes
        page.screenshot(screenshots / "azul.png")
        page.click(".mat.mover [aria-label='row 3']")
        page.wait(f"{PLY} >= 2")
        assert page.run("document.body.dataset.moves").split()[1] == "AK3"
    with opened(browser, "azul") as page:
        page.wait(f"{PLY} === 1")  # windrow has dealt


def test_any_other_game_by_its_text_and_a_list_of_moves(browser: Browser, screenshots: Path) -> None:
    with opened(browser, "pig", is_dark=True) as page:
        page.press("h")
        page.wait(f"{UPDATES} >= 1")
        assert "x to move" in page.run("document.querySelector('pre.position').textContent")
        page.wait("document.querySelector('#choices .best')")
        page.screenshot(screenshots / "pig_dark.png")
        page.run("document.querySelector('#choices [data-action=\"0\"]').focus()")
        page.press("Enter")
        page.wait(f"{PLY} >= 2 && document.body.dataset.turn === '0'")
        assert page.run("document.body.dataset.moves").startswith("roll ")
        page.wait("document.querySelector('#choices').contains(document.activeElement)")  # the next choice by keys


@pytest.mark.slow
def test_three_players(browser: Browser, screenshots: Path) -> None:
    with opened(browser, "azul:players=3") as page:
        page.wait("document.body.dataset.turn === '0'")
        assert page.run("document.querySelectorAll('#settings-form select[name^=seat]').length") == 3
        titles = page.run("[...document.querySelectorAll('.mat h3')].map(e => e.textContent)")
        assert titles == ["You: 0 points", "Player 2: 0 points", "Player 3: 0 points"]
        page.click(".tiles:not(:disabled)")
        page.click(".target-row:not(:disabled)")
        page.wait(f"{PLY} >= 4 && document.body.dataset.turn === '0'")  # the two others have moved
        page.screenshot(screenshots / "azul_three.png")
