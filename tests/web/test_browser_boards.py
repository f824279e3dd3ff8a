"""What a board shows, measured in a real browser: hints, labels, values, moves of a game, boards of your own games."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from web_browser import Browser, Page
from web_server import Served, serve

EXAMPLES = Path(__file__).parent.parent.parent / "examples" / "games"
PLY = "Number(document.body.dataset.ply)"
MINUS = "\u2212"
PHONE = {"width": 390, "height": 844, "is_phone": True}
OVERLAPS = """
(() => {
  const room = 0.3; // boxes may share an edge
  const box = element => {
    const { left, right, top, bottom } = element.getBoundingClientRect();
    return { left: left + room, right: right - room, top: top + room, bottom: bottom - room };
  };
  const boxes = selector => [...document.querySelectorAll(selector)].map(box);
  const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
  const labels = boxes('LABELS'), others = boxes('OTHERS');
  let count = 0;
  labels.forEach((a, index) => {
    for (const b of [...labels.slice(index + 1), ...others]) count += meet(a, b);
  });
  return [labels.length, others.length, count];
})()
"""


def measure(page: Page, labels: str, others: str) -> list[int]:
    """How many labels and other things there are, and how often two of them lie on each other."""
    return page.run(OVERLAPS.replace("LABELS", labels).replace("OTHERS", others))


@contextmanager
def opened(browser: Browser, game: str, moves: str = "", **look: Any) -> Iterator[Page]:
    with serve(game) as served, browser.open(f"{served.link}#m={moves}" if moves else served.link, **look) as page:
        page.wait("document.body.dataset.ply !== undefined")
        yield page


def text(page: Page, selector: str) -> str:
    return page.run(f"document.querySelector({selector!r}).textContent")


# --- Hints and names ----------------------------------------------------------------------------------------------


def test_hints_are_given_when_they_are_asked_for(browser: Browser, connect4: Served) -> None:
    shown = "document.querySelectorAll('.mark, .panel').length"
    with browser.open(connect4.link, width=1366, height=680) as page:
        page.wait(f"{PLY} === 0 && document.querySelector('#status').textContent === 'Your move'")
        page.click_cell(3, 0)
        page.wait(f"{PLY} === 2")  # the search has thought and moved
        assert page.run(shown) == 0 and page.run("document.querySelector('#odds-card').hidden")
        assert page.run("[...document.querySelectorAll('.player')].map(player => player.textContent)") == [
            "You",
            "random games",
        ]
        assert "Search A" not in page.run("document.body.innerText") and "irst player" not in page.run(
            "document.querySelector('.columns').innerText"
        )
        # Everything that a player needs is there without scrolling.
        for button in ("#hints", "#suggest", "#back", "#swap", "#new", "#first", "#last", "#status"):
            assert 0 < page.run(f"document.querySelector('{button}').getBoundingClientRect().bottom") <= 680, button
        assert page.run("document.querySelector('svg.board').getBoundingClientRect().bottom") <= 680
        page.press("h")
        page.wait(f"{shown} >= 4 && !document.querySelector('#odds-card').hidden")
        assert text(page, ".panel h2 span") == "random games"
        assert text(page, "#odds-title") == "Your expected result"
        page.wait("document.querySelector('.value-text').textContent.startsWith('You ')")
        page.press("h")
        page.wait(f"{shown} === 0")
        page.press("s")  # now the person moves second
        page.wait("document.querySelector('.player').textContent === 'random games'")


def test_one_unit_for_all_values(browser: Browser, connect4: Served) -> None:
    texts = (
        "[...document.querySelectorAll('.lines td:nth-child(4), .value-text b, .odds text')].map(e => e.textContent)"
    )
    with browser.open(f"{connect4.link}#m=4455") as page:
        page.wait("document.querySelectorAll('.odds-text').length === 7")
        assert any(value.endswith("%") for value in page.run(texts))
        page.press("v")
        page.wait(f"!{texts}.some(value => value.endsWith('%'))")
        assert {"+1.00", "+0.00", f"{MINUS}1.00"} <= set(page.run(texts))
        short = "/^[+\u2212](\\.\\d\\d|1\\.\\d+)$/"
        page.wait(f"[...document.querySelectorAll('.odds-text')].every(e => {short}.test(e.textContent))")
        page.press("e")
        page.wait("/^[+\u2212]\\d\\.\\d\\d$/.test(document.querySelector('.tree .node').children[3].textContent)")
        page.run("window.isOld = true")
        page.send("Page.reload")
        page.wait("!window.isOld && document.querySelector('#unit').textContent === '±1'")


# --- Labels -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", [{"width": 1366, "height": 680}, PHONE], ids=["wide", "phone"])
def test_labels_on_gomoku_touch_neither_each_other_nor_stones(
    browser: Browser, look: dict[str, Any], screenshots: Path
) -> None:
    with opened(browser, "gomoku", "h8 i9 i8 g8 j8 k8 h10 h9", **look) as page:
        page.wait("document.querySelectorAll('.label').length >= 10")
        page.screenshot(screenshots / f"gomoku_labels_{look['width']}.png", is_whole=False)
        num_labels, num_stones, overlaps = measure(page, ".label", ".stone")
        assert num_labels >= 10 and num_stones == 8 and overlaps == 0
        # A text stays on its disc, so that this holds for what is read too.
        inside = (
            "[...document.querySelectorAll('.label')].every(label => { const [disc, text] = [...label.children].map("
            "part => part.getBoundingClientRect()); return text.width <= disc.width })"
        )
        assert page.run(inside)
        assert page.run("document.querySelector('.label text').getBoundingClientRect().height") >= 9
        page.press("v")
        page.wait("/^[+\u2212]/.test(document.querySelector('.label text').textContent)")
        assert page.run(inside) and measure(page, ".label", ".stone")[2] == 0


@pytest.mark.parametrize("look", [{"width": 1366, "height": 680}, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("moves", ["x42", "x42 8/4 6/4 65 24/18 13/8 31", "x31 8/5 6/5 66 24/18 24/18 13/7 13/7 21"])
def test_labels_and_arrows_of_backgammon_leave_the_checkers_free(
    browser: Browser, look: dict[str, Any], moves: str, screenshots: Path
) -> None:
    # How far each arrow keeps from the checkers, in their units: at least their radius and half its width.
    nearest = (
        "Math.min(...[...document.querySelectorAll('.arrow')].flatMap(arrow => { const length = arrow.getTotalLength();"
        "return Array.from({length: 60}, (_, i) => arrow.getPointAtLength(length * i / 59)).flatMap(at => "
        "[...document.querySelectorAll('circle.stone')].map(stone => Math.hypot(stone.cx.baseVal.value - at.x, "
        "stone.cy.baseVal.value - at.y) - stone.r.baseVal.value)) }))"
    )
    with opened(browser, "backgammon", moves, **look) as page:
        page.wait("document.querySelectorAll('.arrow').length >= 4")
        page.wait("Number(document.querySelector('.arrow-label text').textContent) > 0")
        page.screenshot(screenshots / f"backgammon_labels_{look['width']}_{len(moves)}.png", is_whole=False)
        num_labels, num_checkers, overlaps = measure(page, ".arrow-label", "circle.stone, .die, .name, .many")
        assert num_labels >= 3 and num_checkers >= 24 and overlaps == 0
        assert page.run(nearest) >= 0
        names = page.run("[...document.querySelectorAll('.backgammon .name')].map(name => name.textContent)")
        assert names.count("bar") == 2 and names.count("off") == 2


def test_a_line_of_play_is_not_taken_for_stones(browser: Browser, connect4: Served) -> None:
    with browser.open(f"{connect4.link}#m=44") as page:
        page.wait("document.querySelectorAll('.mark').length >= 5")
        page.point_at(*page.cell(0, 5))
        page.wait("document.querySelectorAll('.ghost').length >= 1")
        look = "(e => { const s = getComputedStyle(e); return [s.fillOpacity, s.strokeDasharray] })"
        ghost = page.run(f"{look}(document.querySelector('.stone.ghost'))")
        real = page.run(f"{look}(document.querySelector('.stone:not(.ghost)'))")
        assert float(ghost[0]) <= 0.75 < float(real[0]) and ghost[1] != "none" and real[1] == "none"


def test_azul_boards_are_alike_and_displays_keep_their_letters(browser: Browser, screenshots: Path) -> None:
    letters = (
        "[...document.querySelectorAll('.display')].map("
        "e => e.querySelector('b').textContent + e.querySelectorAll('.tile').length)"
    )
    with opened(browser, "azul", "BBKW/BYYY/BYWW/BRRR/YRKW AK3 BY2", width=1366, height=900) as page:
        page.wait("document.querySelector('.tiles .weight:not(:empty)')")
        assert page.run(letters) == ["A0", "B0", "C4", "D4", "E4", "Z5"]
        page.screenshot(screenshots / "azul_boards.png")
        places = page.run(
            "[...document.querySelectorAll('.mat')].map(mat => { const r = mat.getBoundingClientRect(); return "
            "[r.width, r.height, ...[...mat.querySelectorAll('.tile')].flatMap(tile => { const t = "
            "tile.getBoundingClientRect(); return [Math.round(t.x - r.x), Math.round(t.y - r.y)] })] })"
        )
        assert places[0] == places[1]


# --- The moves of a game ------------------------------------------------------------------------------------------


def test_bad_moves_are_marked_and_a_finished_game_is_stepped_through(
    browser: Browser, connect4: Served, screenshots: Path
) -> None:
    """Yellow stops neither three in a row; the game is reviewed when that is asked for."""
    with browser.open(f"{connect4.link}#m=4142434", width=1366, height=900) as page:
        page.wait("document.body.dataset.turn === 'over'")
        page.click("#review")
        page.wait("document.querySelector('#status').textContent.startsWith('Review')")
        page.wait("document.querySelector('#review').hidden && document.body.dataset.turn === 'over'")
        bad = page.run("[...document.querySelectorAll('.history .blunder, .history .mistake')].map(e => e.textContent)")
        assert any(move.startswith("3") and "?" in move for move in bad)
        assert page.run("document.querySelectorAll('.odds .bad').length") >= 1
        page.screenshot(screenshots / "review.png")
        page.press("ArrowLeft")
        page.wait(f"{PLY} === 6 && document.querySelectorAll('.history .future').length === 1")
        page.press("Home")
        page.wait(f"{PLY} === 0")
        for ply in (1, 2):
            page.press("ArrowRight")
            page.wait(f"{PLY} === {ply}")
        page.press("End")
        page.wait(f"{PLY} === 7 && document.body.dataset.turn === 'over'")


def test_an_error_stands_beside_its_field(browser: Browser, connect4: Served) -> None:
    error = "document.querySelector('#moves-error')"
    with browser.open(connect4.link) as page:
        page.wait(f"{PLY} === 0")
        page.click("#files summary")
        page.run("document.querySelector('#moves-text').value = '49'")
        page.click("#setup button")
        page.wait(f"!{error}.hidden && {error}.textContent.includes(\"'9'\")")
        assert page.run("document.querySelector('#message').hidden")
        field = "document.querySelector('#moves-text')"
        gap = f"{error}.getBoundingClientRect().top - {field}.getBoundingClientRect().bottom"
        assert 0 <= page.run(gap) < 30
        page.run("document.querySelector('#moves-text').value = '44'")
        page.click("#setup button")
        page.wait(f"{error}.hidden && {PLY} === 2")


def test_three_players_have_names_at_their_values(browser: Browser, screenshots: Path) -> None:
    with opened(browser, f"{EXAMPLES / 'boxes.py'}:Boxes") as page:
        page.press("h")
        page.wait("document.querySelectorAll('.value-text span').length === 3")
        words = page.run("[...document.querySelectorAll('.value-text span')].map(e => e.textContent)")
        assert [word.rpartition(" ")[0] for word in words] == ["You", "Player 2", "Player 3"]
        assert all(word.endswith("%") for word in words)
        assert page.run("document.querySelectorAll('.value i').length") == 3
        page.screenshot(screenshots / "boxes.png")


# --- Games of one's own -------------------------------------------------------------------------------------------


def test_a_game_of_ones_own_has_a_board_to_click_on(browser: Browser, screenshots: Path) -> None:
    with opened(browser, f"{EXAMPLES / 'hex.py'}:Hex", "d4 c4") as page:
        page.wait("document.querySelectorAll('.mark').length >= 5")
        page.screenshot(screenshots / "hex.png")
        assert page.run("document.querySelector('#choices').hidden")
        # e2: the fifth column of the second row, which begins half a cell further to the right.
        x, y = page.run(
            "(() => { const p = new DOMPoint(4 + .5 + .5, .58 + Math.sqrt(3) / 2).matrixTransform("
            "document.querySelector('svg.board').getScreenCTM()); return [p.x, p.y] })()"
        )
        page.click_at(x, y)
        page.wait(f"{PLY} >= 3")
        assert page.run("document.body.dataset.moves").startswith("d4 c4 e2")
    with opened(browser, f"{EXAMPLES / 'connect4_python.py'}:Connect4") as page:
        page.click_cell(3, 2)  # anywhere in the column
        page.wait(f"{PLY} >= 2")
        assert page.run("document.body.dataset.moves").startswith("4")


DRAWN = '''
from windrow import TERMINAL

class Nim:
    """Take one to three of the stones; whoever takes the last one wins."""

    num_players, num_actions, observation = 2, 3, (10,)

    def initial_state(self): return (9, 0)
    def to_play(self, state): return state[1] if state[0] else TERMINAL
    def legal_actions(self, state): return list(range(min(3, state[0]))) if state[0] else []
    def apply(self, state, action): return (state[0] - action - 1, 1 - state[1])
    def returns(self, state): return (-1, 1) if state[1] == 0 else (1, -1)
    def action_name(self, action): return f"take{action + 1}"

    def observe(self, state):
        return [float(place < state[0]) for place in range(10)]

    def draw(self, state):
        """Stones in a row: a click on one of the last three takes it and what is right of it."""
        count = state[0]
        stones = "".join(
            f'<circle cx="{20 * place + 12}" cy="15" r="8" fill="url(#shade)" '
            + (f'data-action="{count - 1 - place}"' if count - place <= 3 else "") + "/>"
            for place in range(count)
        )
        stops = '<stop offset="0" stop-color="#888"/><stop offset="1" stop-color="#333"/>'
        shade = f'<linearGradient id="shade">{stops}</linearGradient>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 190 30"><defs>{shade}</defs>{stones}EVIL</svg>'
'''
EVIL = (
    '<script>window.isHurt = 1</script><g onclick="window.isHurt = 2"><rect id="status" width="9" height="9" '
    'onmouseover="window.isHurt = 3" style="fill: red" fill="url(https://evil.example/x)"/></g>'
    '<a href="javascript:window.isHurt = 4"><text x="3" y="28">link</text></a>'
    '<image href="https://evil.example/y.png"/><foreignObject><body xmlns="http://www.w3.org/1999/xhtml">'
    '<img src="x" onerror="window.isHurt = 5"/></body></foreignObject>'
    '<animate onbegin="window.isHurt = 6" attributeName="x" dur="1s"/><use href="#shade"/>'
)


def test_a_game_draws_itself_and_cannot_run_scripts(browser: Browser, tmp_path: Path, screenshots: Path) -> None:
    (tmp_path / "nim.py").write_text(DRAWN.replace("EVIL", EVIL))
    with opened(browser, f"{tmp_path / 'nim.py'}:Nim", has_faults=True) as page:
        assert page.run("document.querySelectorAll('svg.drawing circle').length") == 9
        assert page.run("document.querySelectorAll('svg.drawing .place').length") == 3
        kept = page.run("[...new Set([...document.querySelectorAll('svg.drawing *')].map(e => e.localName))].sort()")
        assert kept == ["circle", "defs", "g", "linearGradient", "rect", "stop"]
        page.run("document.querySelector('svg.drawing rect').dispatchEvent(new Event('mouseover', {bubbles: true}))")
        page.run("document.querySelector('svg.drawing g').dispatchEvent(new Event('click', {bubbles: true}))")
        attributes = page.run("document.querySelector('svg.drawing rect').getAttributeNames().sort()")
        assert attributes == ["height", "id", "width"] and text(page, "#status") == "Your move"
        assert page.run("window.isHurt") is None and page.run("document.querySelector('#choices').hidden")
        page.press("h")
        page.wait("document.querySelectorAll('svg.drawing .mark').length === 3")
        page.screenshot(screenshots / "drawn.png")
        page.press("h")
        page.click("svg.drawing [data-action='1']")
        page.wait(f"{PLY} >= 2")
        assert page.run("document.body.dataset.moves").startswith("take2 ")
        assert not any("evil" in address for address in page.requests())
        # The browser may complain of the handlers that the page's policy keeps from running, and of nothing else.
        assert all("Content Security Policy" in complaint for complaint in page.complaints())


@pytest.mark.parametrize("game", ["azul:players=3", "wide.py:Wide"])
def test_nothing_sticks_out_of_a_phone(browser: Browser, tmp_path: Path, game: str) -> None:
    """Three boards, and a game whose text is wider than the screen."""
    wide = 'class Wide(Nim):\n    def render(self, state): return "stone " * 40 + str(state)\n'
    (tmp_path / "wide.py").write_text(DRAWN.replace("def draw", "def picture") + wide)
    with opened(browser, str(tmp_path / game) if game.startswith("wide") else game, **PHONE) as page:
        page.press("h")
        page.wait("document.querySelectorAll('.panel .lines tr').length >= 3")
        assert page.run("document.documentElement.scrollWidth") == PHONE["width"]
