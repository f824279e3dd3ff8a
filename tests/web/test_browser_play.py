"""The board page in a real browser: games by clicks and by keys, live analysis, links, files, the tree."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from web_browser import Browser, Page
from web_server import Served, serve

TURN_OVER = "document.body.dataset.turn === 'over'"
YOUR_TURN = "document.body.dataset.turn === '0' && document.body.dataset.thinking !== 'move'"
UPDATES = "Number(document.body.dataset.updates)"
PLY = "Number(document.body.dataset.ply)"
OWN_LINK = "#g=connect4&o=rows-6.columns-7.connect-4&m="


@pytest.fixture(scope="module")
def gomoku() -> Iterator[Served]:
    with serve("gomoku:size=9") as served:
        yield served


def test_the_driver_of_the_browser_does_not_wait_for_ever(
    browser: Browser, connect4: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a page goes on reporting, as every update that it gets, must not prolong the wait for an answer."""
    with browser.open(f"{connect4.link}#m=44") as page:
        page.wait(f"{UPDATES} >= 1")
        monkeypatch.setattr(browser, "patience_s", 1.0)
        with pytest.raises(TimeoutError, match=r"no answer in 1 s to Runtime.evaluate .*never"):
            page.run("window.kept = new Promise(() => 'never')")  # one that nobody keeps may be collected
        monkeypatch.undo()
        assert page.run("1 + 1") == 2


def change(page: Page, name: str, value: object) -> None:
    """Give a setting another value, as a person does."""
    page.run(
        f"(() => {{ const field = document.querySelector('[name={name}]'); field.value = {str(value)!r}; "
        "field.dispatchEvent(new Event('change', {bubbles: true})) })()"
    )


def moves_of(page: Page) -> str:
    return page.run("document.body.dataset.moves")


def test_a_whole_game_of_connect4_by_clicks(browser: Browser, connect4: Served, screenshots: Path) -> None:
    with browser.open(connect4.link) as page:
        page.wait(f"{PLY} === 0")
        assert page.run("document.querySelector('#status').textContent") == "Your move"
        page.screenshot(screenshots / "connect4_start.png")
        for _ in range(21):
            page.wait(f"{TURN_OVER} || ({YOUR_TURN})")
            if page.run(TURN_OVER):
                break
            ply, moves = page.run(PLY), moves_of(page)
            page.click_cell(next(column for column in range(7) if moves.count(str(column + 1)) < 6), 0)
            page.wait(f"{PLY} > {ply}")
        assert page.run(TURN_OVER)
        status = page.run("document.querySelector('#status').textContent")
        assert status in [f"Game over: {end}" for end in ("you win", "random games won", "a draw")]
        page.wait("document.querySelectorAll('.odds .dot').length > 3")
        page.screenshot(screenshots / "connect4_over.png")
        # All that it needs is served here.
        assert all(address.startswith((connect4.origin, "data:")) for address in page.requests())


def test_a_whole_game_of_gomoku_by_clicks(browser: Browser, gomoku: Served, screenshots: Path) -> None:
    """The search needs few simulations to beat someone who fills the board from its edge."""
    with browser.open(gomoku.link, is_dark=True) as page:
        page.wait(f"{PLY} === 0")
        change(page, "a-strength", 150)
        for _ in range(41):
            page.wait(f"{TURN_OVER} || ({YOUR_TURN})")
            if page.run(TURN_OVER):
                break
            ply, taken = page.run(PLY), re.findall(r"[a-z]\d+", moves_of(page))
            cells = [(x, y) for y in range(9) for x in range(9)]
            x, y = next((x, y) for x, y in cells if f"{'abcdefghi'[x]}{9 - y}" not in taken)
            page.click_cell(x, y)
            page.wait(f"{PLY} > {ply}")
        assert page.run(TURN_OVER) and page.run("document.querySelectorAll('.win').length") >= 5
        page.screenshot(screenshots / "gomoku_over_dark.png")


def test_numbers_of_an_analysis_grow_and_stop(browser: Browser, connect4: Served, screenshots: Path) -> None:
    visits = "Number(document.querySelector('.panel .numbers dd').textContent.replace(/[,kM.]/g, ''))"
    with browser.open(f"{connect4.link}#m=44", is_dark=True) as page:
        page.wait(f"{UPDATES} >= 2 && {visits} > 0")
        before = page.run(UPDATES)
        page.wait(f"{UPDATES} >= {before} + 5")
        page.click("#hints")
        page.wait("document.body.dataset.thinking === ''")
        stopped = page.run(UPDATES)
        assert page.run("new Promise(answer => setTimeout(() => answer(document.body.dataset.updates), 300))") == str(
            stopped
        )
        page.press("h")
        page.wait(f"{UPDATES} > {stopped}")
        page.screenshot(screenshots / "connect4_dark.png")
        line = "document.querySelector('.pv').textContent"
        best = page.run(line)
        assert best.startswith("Best line: ")
        page.point_at(*page.cell(0, 5))
        page.wait(f"{line}.startsWith('Line: 1')")
        page.wait("document.querySelectorAll('.preview .ghost').length >= 2")
        page.screenshot(screenshots / "line_dark.png")


def test_a_position_is_set_up_as_text(browser: Browser, connect4: Served) -> None:
    start = "7/7/7/7/3o3/3x3 x"
    error = "document.querySelector('#position-error')"

    def set_up(text: str) -> None:
        page.run(f"document.querySelector('#position-text').value = {text!r}")
        page.click("#setup-position button")

    with browser.open(connect4.link) as page:
        page.wait(f"{PLY} === 0")
        page.click("#files summary")
        set_up("7/7 x")
        page.wait(f"!{error}.hidden && {error}.textContent.includes('has 6 rows, not 2')")
        assert page.run("document.querySelector('#message').hidden")
        set_up(start)
        page.wait(f"{error}.hidden && document.body.dataset.start === {start!r}")
        page.click_cell(3, 0)
        page.wait(f"{PLY} >= 1 && {YOUR_TURN}")
        link, played = page.run("location.href"), moves_of(page)
        assert played[0] == "4" and "&p=7%2F7%2F7%2F7%2F3o3%2F3x3%20x&m=4" in link
    with browser.open(link) as page:
        page.wait(f"document.body.dataset.moves === {played!r} && document.body.dataset.start === {start!r}")
        page.press("u")
        page.wait(f"{PLY} === 0")
        assert page.run("document.querySelector('#position-text').value") == start
        page.press("n")
        page.wait("document.body.dataset.start === ''")


def test_take_back_forward_and_links(browser: Browser, connect4: Served) -> None:
    with browser.open(f"{connect4.link}#g=connect4&m=4453") as page:
        page.wait(f"{PLY} === 4")
        assert page.run("document.querySelectorAll('.stone').length") == 4
        page.wait(f"{UPDATES} >= 1 && document.querySelector('.panel h2 small').textContent === 'thinking'")
        page.click("#back")
        page.wait(f"{PLY} === 2")  # to where the person moved last
        assert page.run("location.hash") == f"{OWN_LINK}44"
        page.click("#forward")
        page.wait(f"{PLY} === 3")
        page.click("#first")
        page.wait(f"{PLY} === 0")
        page.run("location.hash = '#g=connect4&m=1234567'")
        page.wait(f"{PLY} === 7")
        link = page.run("location.href")
    with browser.open(link) as other:
        other.wait(f"{PLY} === 7")
        assert moves_of(other) == "1234567"
        other.wait(f"{UPDATES} >= 1")  # the search waits instead of changing what the link shows
        assert other.run(PLY) == 7
        other.run("location.hash = '#g=connect4&m=9'")
        other.wait("document.querySelector('#message').textContent.includes(\"'9'\")")
        assert other.run(PLY) == 7


@pytest.mark.parametrize(
    ("fragment", "words"),
    [
        ("#g=connect4&m=4444444", "move 7, '4'"),
        ("#m=%zz", "is not the name of a move"),
        ("#g=othello&m=c4", "a position of othello, but this page plays connect4"),
        ("#g=connect4&o=rows-5.columns-7.connect-4&m=4", "connect4 with rows 5, columns 7, connect 4, but this page"),
        ("#g=connect4&m=" + "4" * 3000, "move 7, '4'"),
    ],
)
def test_a_link_that_holds_no_position(browser: Browser, connect4: Served, fragment: str, words: str) -> None:
    """The page says so in a few words, and has a board all the same."""
    with browser.open(connect4.link + fragment) as page:
        page.wait(f"{PLY} === 0")
        said = page.run("document.querySelector('#message').innerText")
        assert words in said and len(said) < 400 and ". . ." not in said
        assert page.run("location.hash") == OWN_LINK
        page.click_cell(3, 0)
        page.wait(f"{PLY} >= 1 && document.querySelector('#message').hidden")


def test_everything_by_keys(browser: Browser, connect4: Served) -> None:
    with browser.open(connect4.link) as page:
        page.wait(f"{PLY} === 0")
        for _ in range(10):  # the theme and the list of keys come before the board
            if page.run("document.activeElement.classList.contains('board-box')"):
                break
            page.press("Tab")
        assert page.run("getComputedStyle(document.querySelector('.cursor')).visibility") == "visible"
        page.press("ArrowLeft")
        page.press("ArrowDown")
        assert page.run("document.querySelector('.spoken').textContent") == "column 3, legal"
        page.press("Enter")
        page.wait(f"{PLY} >= 2 && ({YOUR_TURN})")
        assert moves_of(page)[0] == "3"
        assert page.run("document.activeElement.classList.contains('board-box')")  # the focus stays
        page.press("u")
        page.wait(f"{PLY} === 0")
        page.press("s")  # the search moves first now
        page.wait(f"{PLY} === 1 && document.body.dataset.turn === '1'")
        page.press("p")
        page.wait(f"{PLY} >= 2")
        page.press("?")
        page.wait("document.querySelector('#help').open")
        page.press("Enter")
        page.wait("!document.querySelector('#help').open")
        page.press("n")
        page.wait(f"{PLY} <= 1")


def test_games_are_saved_and_loaded(browser: Browser, connect4: Served, tmp_path: Path) -> None:
    with browser.open(f"{connect4.link}#g=connect4&m=443") as page:
        page.wait(f"{PLY} === 3 && {UPDATES} >= 1")
        # What the button saves, caught on its way to the disk.
        page.run("window.saved = null; URL.createObjectURL = blob => { window.saved = blob.text(); return '#' }")
        page.click("#files summary")
        page.click("#save")
        page.wait("window.saved")
        saved = json.loads(page.run("window.saved"))
        assert (saved["game"], saved["moves"], saved["actions"]) == ("connect4", "443", [3, 3, 2])
        file = tmp_path / "game.json"
        file.write_text(json.dumps({**saved, "moves": "7766", "actions": [6, 6, 5, 5]}))
        node = page.send("DOM.getDocument")["root"]["nodeId"]
        element = page.send("DOM.querySelector", nodeId=node, selector="#file")["nodeId"]
        page.send("DOM.setFileInputFiles", nodeId=element, files=[str(file)])
        page.wait(f"{PLY} === 4")
        assert moves_of(page) == "7766"
        for other, words in (({"game": "shogi"}, "shogi"), ({"options": {"rows": 9}}, "connect4 with rows 9, and")):
            file.write_text(json.dumps({**saved, **other}))
            page.send("DOM.setFileInputFiles", nodeId=element, files=[str(file)])
            page.wait(f"document.querySelector('#file-error').textContent.includes('{words}')")
        assert moves_of(page) == "7766"


def test_settings_say_what_is_used_and_outlive_a_reload(browser: Browser, connect4: Served) -> None:
    def value(name: str) -> str:
        return page.run(f"document.querySelector('[name={name}]').value")

    with browser.open(f"{connect4.link}#g=connect4&m=44") as page:
        page.wait(f"{PLY} === 2 && {UPDATES} >= 1")
        for name, given, used in (
            *(("a-strength", "1e12", "5000000"), ("a-strength", "-5", "1"), ("a-strength", "", "1000")),
            *(("a-leaves", "99999", "1024"), ("a-leaves", "0", "1"), ("a-leaves", "", "")),
            *(("a-c_puct", "1000", "100"), ("a-virtual_loss", "-3", "0"), ("a-c_puct", "2.5", "2.5")),
            *(("a-unit", "seconds", "seconds"), ("a-strength", "1e9", "600"), ("a-strength", "0.5", "0.5")),
            ("seat-1", "you", "you"),
        ):
            change(page, name, given)
            assert value(name) == used
            if name == "a-unit":
                assert value("a-strength") == "1"  # not as many seconds as there were simulations
        before = page.run(UPDATES)
        page.wait(f"{UPDATES} > {before} && document.querySelector('#message').hidden")
        page.run("window.isOld = true")
        page.send("Page.reload")
        page.wait(f"!window.isOld && {PLY} === 2 && {UPDATES} >= 1")
        assert [value(name) for name in ("a-c_puct", "a-unit", "a-strength", "seat-1")] == [
            "2.5",
            "seconds",
            "0.5",
            "you",
        ]


def test_a_click_on_the_board_ends_typing_and_plays(browser: Browser, connect4: Served) -> None:
    with browser.open(connect4.link) as page:
        page.wait(f"{PLY} === 0")
        page.click("#settings summary")
        x, y = page.cell(3, 0)
        page.run("document.querySelector('[name=a-strength]').select()")
        page.send("Input.insertText", text="50")
        press = {"x": x, "y": y, "button": "left", "clickCount": 1}
        page.send("Input.dispatchMouseEvent", type="mousePressed", **press)
        time.sleep(0.5)  # as long as a hand takes; the settings are on their way meanwhile
        page.send("Input.dispatchMouseEvent", type="mouseReleased", **press)
        page.wait(f"{PLY} >= 2")
        assert moves_of(page)[0] == "4" and page.run("document.querySelector('[name=a-strength]').value") == "50"


def test_two_searches_side_by_side(browser: Browser, connect4: Served, screenshots: Path) -> None:
    with browser.open(f"{connect4.link}#g=connect4&m=44") as page:
        page.wait(f"{UPDATES} >= 1")
        page.click("#settings summary")
        page.click("[name=compare]")
        page.wait("document.querySelectorAll('svg.board').length === 2")
        page.wait("document.querySelectorAll('.panel tbody tr:not(.empty)').length === 14")
        titles = page.run("[...document.querySelectorAll('.panel h2 span')].map(title => title.textContent)")
        assert titles == ["A: random games", "B: uniform"]
        page.wait("[...document.querySelectorAll('svg.board')].every(board => board.querySelector('.mark.best'))")
        page.screenshot(screenshots / "compare.png")


def test_the_tree_of_100000_nodes(browser: Browser, connect4: Served, screenshots: Path) -> None:
    nodes = "document.querySelectorAll('.panel .numbers dd')[4].textContent"
    with browser.open(connect4.link) as page:
        page.wait(f"{PLY} === 0")
        page.press("h")
        page.wait(f"{nodes}.endsWith('k') && parseFloat({nodes}) > 100 || {nodes}.endsWith('M')")
        page.press("e")
        page.wait("document.querySelectorAll('.tree > li').length === 7")
        assert page.run("Number(document.querySelector('#explorer').dataset.visits)") > 50_000
        # The most visited come first, also when the numbers have changed; once someone is at the rows, they stay.
        rows = page.run("[...document.querySelectorAll('.tree > li')].map(item => item.ariaLabel)")
        visits = [int(row.partition(": ")[2].split()[0]) for row in rows]
        assert visits == sorted(visits, reverse=True)
        page.run("document.querySelector('.tree > li').focus()")
        page.press("ArrowRight")
        page.wait("document.querySelectorAll('.tree > li > ul > li').length === 7")
        page.press("ArrowDown")
        page.press("Enter")
        page.wait("document.querySelectorAll('.tree ul ul li').length >= 6")
        levels = page.run("[...document.querySelectorAll('.tree li[aria-level]')].map(item => item.ariaLevel)")
        assert {"1", "2", "3"} <= set(levels)
        assert page.run("document.querySelector('.tree ul ul .node').lastChild.textContent") == "3"  # its depth
        before = page.run("document.querySelector('#explorer').dataset.visits")
        page.wait(f"document.querySelector('#explorer').dataset.visits !== '{before}'")  # it follows the search
        # Numbers that were asked for one after the other fit: a move is no more visited than what it is part of.
        visits_of = "const visits = item => Number(/: (\\d+) visits/.exec(item.ariaLabel)[1])"
        fits = "items.every(item => visits(item) <= visits(item.parentElement.parentElement))"
        page.wait(
            f"(() => {{ {visits_of}; const items = [...document.querySelectorAll('.tree ul > li')]; return {fits} }})()"
        )
        page.screenshot(screenshots / "explorer.png")
        page.click("#hints")
        page.wait("document.body.dataset.thinking === ''")
        page.run("window.saved = []; URL.createObjectURL = blob => { window.saved.push(blob.text()); return '#' }")
        page.click("#tree-json")
        page.wait("window.saved.length === 1")
        tree = json.loads(page.run("window.saved[0]"))
        assert tree["shown"] == 5000 and tree["visits"] > tree["children"][0]["visits"] > 0
        page.click("#tree-svg")
        page.wait("document.querySelectorAll('#picture circle').length === 120")
        assert page.run("window.saved[1]").startswith("<?xml")
        page.screenshot(screenshots / "tree_picture.png")


@pytest.mark.parametrize("is_dark", [False, True], ids=["light", "dark"])
def test_a_phone(browser: Browser, gomoku: Served, screenshots: Path, is_dark: bool) -> None:
    look = {"width": 380, "height": 844, "is_phone": True, "is_dark": is_dark}
    with browser.open(f"{gomoku.link}#g=gomoku&m=e5 e6", **look) as page:
        page.wait(f"{PLY} === 2 && {UPDATES} >= 1")
        page.click("#settings summary")
        page.wait("document.querySelector('#settings').open")
        page.press("e")
        page.wait("document.querySelectorAll('.tree > li').length >= 20")
        assert page.run("document.documentElement.scrollWidth") == 380  # nothing sticks out
        page.screenshot(screenshots / f"gomoku_phone_{'dark' if is_dark else 'light'}.png")
        page.click_cell(4, 2)
        page.wait(f"{PLY} >= 3")
        assert moves_of(page).startswith("e5e6e7")


def test_every_control_has_a_name(browser: Browser, connect4: Served) -> None:
    """As a screen reader sees the page."""
    with browser.open(f"{connect4.link}#g=connect4&m=44") as page:
        page.wait(f"{UPDATES} >= 1")
        page.press("e")
        page.click("#settings summary")
        page.wait("document.querySelectorAll('.tree > li').length === 7")
        nodes = page.send("Accessibility.getFullAXTree")["nodes"]
        roles = ("button", "combobox", "textbox", "spinbutton", "checkbox", "treeitem", "application", "tree", "image")
        controls = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if "role" in node]
        found = [(role, name) for role, name in controls if role in roles]
        assert {role for role, _ in found} >= {
            "button",
            "combobox",
            "spinbutton",
            "checkbox",
            "treeitem",
            "application",
        }
        assert [role for role, name in found if not name.strip()] == []


@pytest.mark.slow
def test_two_searches_play_each_other(browser: Browser, connect4: Served) -> None:
    with browser.open(connect4.link) as page:
        page.wait(f"{PLY} === 0")
        page.run(
            "for (const [name, value] of [['a-strength', 20], ['b-strength', 20], ['seat-1', 'b'], ['seat-0', 'a']]) {"
            "const field = document.querySelector(`[name=${name}]`); field.value = value;"
            "field.dispatchEvent(new Event('change', {bubbles: true})) }"
        )
        page.wait(TURN_OVER)
        assert page.run(PLY) >= 7 and page.run("document.querySelectorAll('.panel').length") == 2
        page.click("#back")
        page.wait("document.body.dataset.paused === 'true'")  # they do not play on by themselves


def test_the_link_with_a_token_opens_the_page(browser: Browser) -> None:
    with serve("tictactoe", "--host", "0.0.0.0") as served:
        token, port = served.link.partition("?token=")[2], served.host.rpartition(":")[2]
        with browser.open(f"http://127.0.0.1:{port}/?token={token}#g=tictactoe&m=b2") as page:
            page.wait(f"{PLY} === 1 && {UPDATES} >= 1")
            assert token not in page.run("location.href")


def test_a_server_that_comes_back(browser: Browser) -> None:
    """The page says that there is no connection, tries again, and goes on where it was."""
    with ExitStack() as stack:
        with serve("connect4") as served:
            page = stack.enter_context(browser.open(f"{served.link}#g=connect4&m=44", has_faults=True))
            page.wait(f"{PLY} === 2 && {UPDATES} >= 1")
        page.wait("document.querySelector('#connection').textContent.startsWith('no connection')")
        before = page.run(UPDATES)
        page.click_cell(6, 0)
        page.wait("document.querySelector('#message').textContent.includes('no connection')")
        port = int(served.host.rpartition(":")[2])
        with serve("connect4", port=port):
            page.wait(f"document.body.dataset.connected === 'true' && {PLY} === 2 && {UPDATES} > {before}")
            assert moves_of(page) == "44" and page.run("document.querySelector('#message').hidden")
            change(page, "a-unit", "seconds")
            change(page, "a-strength", 300)
            page.click_cell(6, 0)
            page.wait(f"{PLY} === 3 && document.body.dataset.thinking === 'move'")
        page.wait("document.body.dataset.thinking === ''")  # nobody thinks where there is nobody
        with serve("connect4", port=port):
            page.wait("document.body.dataset.thinking === 'move'")  # whoever was to move is again
            page.click("#move-now")
            page.wait(f"{PLY} === 4")
        with serve("tictactoe", port=port):
            page.wait("document.querySelector('h1').textContent.includes('tictactoe')")
            page.wait("document.querySelector('#message').textContent.includes('a position of connect4')")
