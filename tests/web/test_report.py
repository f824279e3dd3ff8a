"""The report of a run: a file that stands alone, says what is in the run, and says so where something is not."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import sys
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from web_browser import Browser

from hostile_run import (
    EVIL,
    HONEST,
    ODD,
    UNREADABLE,
    begin_run,
    put,
    put_instead,
    write_finding,
    write_games,
    write_lines,
)

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow import CheckpointError, ConfigError, make_game
from windrow.train import TrainConfig, TrainingRun, read_metrics
from windrow.web.app import read_files
from windrow.web.report import make_page, write_report
from windrow.web.run_data import PlayedGame, read_run
from windrow.web.run_openings import count_moves, describe_openings

VOID = {"meta", "link", "input"}


class Report(HTMLParser):
    """A report taken apart; fails where an element is not closed in its place, or holds more than the two scripts."""

    def __init__(self, source: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = source
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(source)
        self.close()
        assert self.open == []
        self.script, data = self.texts["script"]
        saved = json.loads(data, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
        self.run, self.metrics, self.listed = saved["messages"]
        self.games: dict[str, Any] = saved["games"]
        self.notes = " ".join([*self.run["notes"], *self.metrics["notes"]])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def config(**changes: Any) -> TrainConfig:
    settings: dict[str, Any] = {
        "game": "tictactoe",
        "num_iterations": 3,
        "games_per_iteration": 24,
        "min_positions": 250,  # more than 24 games have moves, so that nothing is learned in the first iteration
        "deterministic": True,  # each iteration has as many games as asked for
        "backend": "torch",
        "num_threads": 1,
        "network": {"channels": 8, "blocks": 1},
        "search": {"num_simulations": 12, "root": "puct"},
        "selfplay": {"num_slots": 16, "opening_plies": 1},
        "learner": {"batch_size": 32, "warmup_steps": 2},
    }
    return TrainConfig.from_dict({**settings, **changes})


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three iterations; not to be changed."""
    run = TrainingRun.create(tmp_path_factory.mktemp("runs") / "finished", config())
    for _ in run.iterations():
        pass
    run.close()
    return run.folder


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def report(folder: Path, tmp_path: Path) -> Report:
    return Report(write_report(folder, tmp_path / "page.html").read_text(encoding="utf-8"))


def without_age(metrics: dict[str, Any]) -> dict[str, Any]:
    """The same at any time."""
    return {**metrics, "progress": {**metrics["progress"], "age_s": None}}


def write_metrics(folder: Path, lines: list[Any]) -> None:
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


# --- The file ----------------------------------------------------------------------------------------------------


def test_the_file_says_what_is_in_the_run(finished: Path, tmp_path: Path) -> None:
    page = report(finished, tmp_path)
    lines = read_metrics(finished)
    newest = {name: value for line in lines for name, value in line.items() if name != "iteration"}
    simulations = newest["simulations_per_s"] / newest["moves_per_s"]
    assert page.metrics["newest"] == {**newest, "simulations_per_move": simulations}
    assert page.metrics["progress"]["share"] == 1.0 and page.metrics["progress"]["left_s"] == 0.0
    assert page.metrics["series"]["games"] == [[line["iteration"], line["games"]] for line in lines]
    assert [at for at, _ in page.metrics["series"]["loss"]] == [2, 3]  # nothing was learned in the first iteration
    facts = page.run["facts"]
    assert facts["network"].startswith("ResNet 8x1, ") and facts["search"] == "12 simulations, puct root"
    assert facts["checkpoint"] == "checkpoints/000003"
    assert page.run["commands"] == {
        "play against it": f"windrow play tictactoe --checkpoint {finished}",
        "resume training": f"windrow train --resume {finished}",
    }
    sections = {section["name"]: section["rows"] for section in page.run["settings"]["sections"]}
    assert ["num_simulations", "12", "16"] in sections["search"] and ["seed", "0", None] in sections["run"]
    assert page.notes == "" and page.run["written"].startswith("Written 20")
    numbers = [row["number"] for row in (*page.listed["samples"], *page.listed["newest"])]
    assert len(page.listed["samples"]) >= 2 and {str(number) for number in numbers} == set(page.games)
    start = make_game("tictactoe").render(make_game("tictactoe").initial_state())
    for game in page.games.values():
        assert len(game["frames"]) == game["length"] + 1 and len(game["moves"]) == 2 * game["length"]
        first = game["frames"][0]
        assert first["name"] == ("The beginning" if first["rendering"] == start else "After random opening moves")


def test_the_file_stands_alone(finished: Path, tmp_path: Path) -> None:
    page = report(finished, tmp_path)
    for name, attributes in page.tags:
        assert name not in ("img", "iframe", "object", "embed", "base")
        assert not any(key.startswith("on") for key in attributes)
        for key in ("src", "href", "action", "data", "srcset"):
            assert (attributes.get(key) or "#").startswith(("#", "data:")), (name, attributes)
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)|url\((?!#)|@import|fetch\(|XMLHttpRequest", page.source)
    policy = next(attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes)
    digest = base64.b64encode(hashlib.sha256(page.script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"


def test_modules_that_are_joined_declare_no_name_twice(finished: Path, tmp_path: Path) -> None:
    script = report(finished, tmp_path).script
    assert not re.search(r"^(import|export)\b", script, re.MULTILINE) and "</script" not in script
    modules = {name: content.decode() for name, (content, _) in read_files("watch").items() if name.endswith(".js")}
    # One that no page module imports would be left out.
    assert len(modules) > 8 and all(text.splitlines()[0] in script for text in modules.values())
    declared = re.findall(r"^(?:async )?(?:const|let|class|function) (\$|\w+)", script, re.MULTILINE)
    assert len(declared) > 30 and [name for name, times in Counter(declared).items() if times > 1] == []


def test_no_server_is_needed(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("fastapi", "starlette", "uvicorn", "websockets"):
        monkeypatch.setitem(sys.modules, name, None)
    assert report(finished, tmp_path).games


def test_games_are_bounded_by_number_and_size(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(Report(make_page(read_run(finished))).games) == 20
    monkeypatch.setattr("windrow.web.report._MAX_BYTES", 1)
    page = Report(make_page(read_run(finished)))
    assert len(page.games) == len(page.listed["samples"]) == 1


def test_the_default_place_and_the_same_page_twice(copied: Path) -> None:
    path = write_report(copied)
    assert path == copied / "report.html"
    now = re.compile(r'Written [^"]*|"age_s": [^,]*')
    first = path.read_text()
    write_report(str(copied))
    assert now.sub("", first) == now.sub("", path.read_text())
    assert not list(copied.glob(".*"))  # nothing is left of the writing


def test_hostile_text_is_escaped(copied: Path, tmp_path: Path) -> None:
    evil = "</script><script>alert('1')</script><!--\"&"
    settings = json.loads((copied / "config.json").read_text())
    settings["backend"] = settings["network"]["channels"] = settings[evil] = evil
    (copied / "config.json").write_text(json.dumps(settings))
    folder = copied.rename(copied.parent / "<b onclick=x>&amp;")
    page = report(folder, tmp_path)  # which has two scripts
    assert "<b onclick" not in page.source and "<script>alert" not in page.source and "<!--" not in page.source
    rows = [row for section in page.run["settings"]["sections"] for row in section["rows"]]
    assert [evil, evil, "not set"] in rows and evil in page.run["facts"]["network"]
    assert page.texts["title"] == [page.run["title"]] == ["tictactoe: <b onclick=x>&amp;"]


# --- What is missing ---------------------------------------------------------------------------------------------


def test_a_run_without_an_iteration(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    TrainingRun.create(folder, config()).close()
    page = report(folder, tmp_path)
    assert page.metrics["series"] == {} and page.games == {} and page.run["facts"]["checkpoint"] == "none yet"
    assert "no games" in page.listed["openings"]["missing"]
    shutil.rmtree(folder / "games")
    shutil.rmtree(folder / "checkpoints")
    (folder / "metrics.jsonl").unlink()
    again = report(folder, tmp_path)
    assert (again.run["facts"], again.listed) == (page.run["facts"], page.listed)
    assert without_age(again.metrics) == without_age(page.metrics)


def test_metrics_that_are_no_numbers(copied: Path, tmp_path: Path) -> None:
    good = read_metrics(copied)[-1]
    bad = {**good, "loss": float("nan"), "draws": "many", "games_per_s": None, "game_length": float("inf")}
    write_metrics(copied, [good, bad, 5, None, ["x"], {"loss": 1.0}])
    page = report(copied, tmp_path)
    assert page.metrics["newest"]["loss"] == good["loss"] and len(page.metrics["series"]["draws"]) == 1
    (copied / "metrics.jsonl").write_bytes(b"\xff\xfe\xfd")
    assert report(copied, tmp_path).metrics["series"] == {}  # as if there were none


def test_a_long_run_is_thinned(copied: Path, tmp_path: Path) -> None:
    write_metrics(copied, [{"iteration": step, "total_s": 60.0 * step, "loss": step} for step in range(1, 1001)])
    metrics = report(copied, tmp_path).metrics
    assert metrics["mean_of"] == 2 and len(metrics["series"]["loss"]) == 500
    assert metrics["series"]["loss"][:2] == [[2, 1.5], [4, 3.5]] and metrics["newest"]["loss"] == 1000
    assert metrics["series"]["total_s"][:2] == [[2, 120.0], [4, 240.0]]  # no means of what is a sum


def test_torn_damaged_and_foreign_logs(copied: Path, tmp_path: Path) -> None:
    logs = sorted((copied / "games").iterdir())
    logs[2].write_bytes(logs[2].read_bytes()[:-5])  # torn: the last game is not there
    data = bytearray(logs[1].read_bytes())
    data[len(data) // 2] ^= 0xFF  # damaged in the middle: what is before it is
    logs[1].write_bytes(data)
    (copied / "games" / "000000.games").write_bytes(b"something else")
    (copied / "games" / "notes.games").write_text("not a log of an iteration")
    run = read_run(copied)
    iterations = [game.iteration for game in run.games]
    assert iterations.count(3) == 23 and 0 < iterations.count(2) < 24 and iterations.count(1) == 24
    assert [("000002" in note, "000000" in note) for note in run.notes] == [(True, False), (False, True)]
    assert "Some games are left out" in report(copied, tmp_path).notes


def test_a_damaged_checkpoint_and_none(copied: Path, tmp_path: Path) -> None:
    model = copied / "checkpoints" / "000003" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-10])
    page = report(copied, tmp_path)
    assert "000003 is skipped" in page.notes and page.run["facts"]["checkpoint"] == "checkpoints/000002"
    shutil.rmtree(copied / "checkpoints")
    assert report(copied, tmp_path).run["facts"]["checkpoint"] == "none yet"


@pytest.mark.parametrize("game", ["othello", "checkers", 7])
def test_settings_of_another_game(copied: Path, tmp_path: Path, game: Any) -> None:
    settings = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**settings, "game": game}))
    page = report(copied, tmp_path)
    if game == "othello":
        assert all("does not fit the game" in game["message"] for game in page.games.values()) and page.games
        assert "None of the newest games" in page.listed["openings"]["missing"]
    else:
        assert "No games and no checkpoint are shown" in page.notes and page.listed["openings"] is None


def test_folders_that_are_no_run_and_places_that_cannot_be_written(copied: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="it is not a folder"):
        write_report(tmp_path / "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"holds no run: there is no config\.json"):
        write_report(tmp_path / "empty")
    with pytest.raises(ConfigError, match="is a folder: name a file"):
        write_report(copied, tmp_path)
    with pytest.raises(CheckpointError, match="cannot be written"):
        write_report(copied, tmp_path / "no" / "such" / "folder.html")
    (copied / "config.json").write_text("{")
    with pytest.raises(ConfigError, match="cannot be read"):
        write_report(copied)


# --- Its parts ---------------------------------------------------------------------------------------------------


def test_openings_are_counted_by_position() -> None:
    game = make_game("tictactoe")

    def played(moves: str, returns: list[float], opening: str = "") -> PlayedGame:
        initial = game.pack_start([game.parse_action(move) for move in opening.split()])
        actions = [game.parse_action(move) for move in moves.split()]
        is_action = [True] * len(actions)
        return PlayedGame(1, 0, initial, actions, actions, is_action, [0.0] * len(actions), returns, -1)

    b2, a1, c3 = (game.parse_action(move) for move in ("b2", "a1", "c3"))
    games = [
        played("b2 a1", [1, -1]),
        played("b2 c3", [0, 0]),
        played("a1", [-1, 1]),
        played("a1 c3", [-1, 1], opening="b2"),  # begins where the first two are after a move
    ]
    counts = count_moves(game, games)
    root, after = game.initial_state(), game.state_from_moves("b2")
    assert {move: (count.games, count.score) for move, count in counts[game.hash(root)].items()} == {
        b2: (2, 1.5),
        a1: (1, 0.0),
    }
    # For the second player, who moves here: lost, drawn; won.
    assert {move: (count.games, count.score) for move, count in counts[game.hash(after)].items()} == {
        a1: (2, 1.0),
        c3: (1, 0.5),
    }
    # A move deeper than the first that one game alone played is among the rest.
    after_b2 = [{"name": "2. a1", "games": 2, "share": 2 / 3, "score": 0.5, "moves": [], "rest": None}]
    assert describe_openings(game, games) == {
        "num_games": 4,
        "moves": [
            {"name": "1. b2", "games": 2, "share": 2 / 3, "score": 0.75, "moves": after_b2, "rest": [1, 1]},
            {"name": "1. a1", "games": 1, "share": 1 / 3, "score": 0.0, "moves": [], "rest": None},
        ],
        "rest": None,
    }


# --- Folders of strangers ----------------------------------------------------------------------------------------


def test_lines_that_cannot_be_read_are_counted_and_the_others_shown(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    write_lines(folder, *UNREADABLE, b"", *ODD, HONEST)
    page = report(folder, tmp_path)
    assert f"{len(UNREADABLE)} lines of metrics.jsonl could not be read." in page.notes
    assert [1000, 0.4375] in page.metrics["series"]["loss"] and EVIL in page.metrics["series"]
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"iteration": 1001, "lo')  # which is being written now
    assert without_age(report(folder, tmp_path).metrics) == without_age(page.metrics)


def test_numbers_are_in_order_whatever_the_order_of_lines(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    write_lines(folder, *(b'{"iteration": %d, "loss": %d}' % (at, at) for at in (5, 2, 9, 1)))
    assert [line["iteration"] for line in read_run(folder).metrics] == [1, 2, 5, 9]
    with (folder / "metrics.jsonl").open("ab") as file:
        file.truncate(1 << 30)  # a hole of zeros, which is one long line
    run = read_run(folder)
    assert len(run.metrics) == 4 and any("first 64 MiB" in note for note in run.metrics_notes)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_pipes_devices_and_folders_are_not_read(tmp_path: Path, kind: str) -> None:
    folder = begin_run(tmp_path / "run")
    put_instead(folder, kind)
    page = report(folder, tmp_path)
    for name in ("metrics.jsonl", "000001.games", "training.json"):
        assert name in page.notes
    assert page.metrics["series"] == {}
    (folder / "config.json").unlink()
    put(folder / "config.json", kind)
    with pytest.raises(ConfigError, match=r"cannot read .*config\.json"):
        write_report(folder)


@pytest.mark.parametrize(
    "text",
    ["null", "[]", "3", "", "{", "\x00", "[" * 100_000, '{"a":' * 100_000, '{"a":' * 300 + "1" + "}" * 300, "\udcff"],
)
def test_settings_that_are_none(tmp_path: Path, text: str) -> None:
    folder = begin_run(tmp_path / "run")
    (folder / "config.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(ConfigError, match=r"config\.json"):
        write_report(folder)


@pytest.mark.parametrize(
    "settings",
    [
        *({"game": None}, {"game": ["x"]}, {"game": {}}, {"game": 10**400}, {"game": "\ud800"}, {"game": EVIL}),
        *({"game_options": 5}, {"game_options": {"size": 10**400}}, {"game_options": {"name": "x"}}),
        *({"network": [], "search": "x", "selfplay": None}, {"network": {"channels": float("nan"), "blocks": EVIL}}),
        *({EVIL: {EVIL: EVIL}}, {"seed": float("inf"), "lr": 1e308, "a": [[[]]], "b": [{"c": None}]}),
    ],
)
def test_settings_of_the_wrong_kind(tmp_path: Path, settings: dict[str, Any]) -> None:
    page = report(begin_run(tmp_path / "run", **settings), tmp_path)
    assert page.run["settings"] and page.games == {}


def test_games_that_cannot_have_been(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    num_games = write_games(folder)
    run = read_run(folder)
    assert num_games - len(run.games) == 6 and any(note.startswith("6 of the games") for note in run.notes)
    for played in run.games:  # each alone, as a file holds only some of them
        page = Report(make_page(replace(run, games=[played])))
        assert page.games[str(played.number)]["type"] in ("game", "error")
    for name in ("²", "1" * 200, "-1", "x"):  # not the name of a log
        (folder / "games" / f"{name}.games").write_bytes(b"x")
    assert "game" in {game["type"] for game in report(folder, tmp_path).games.values()}


def test_commands_to_copy_are_quoted(copied: Path, tmp_path: Path) -> None:
    folder = copied.rename(tmp_path / "run; echo")
    assert report(folder, tmp_path).run["commands"]["resume training"] == f"windrow train --resume '{folder}'"


# --- In a browser ------------------------------------------------------------------------------------------------


def test_a_browser_shows_the_file(run_folder: Path, tmp_path: Path, browser: Browser, screenshots: Path) -> None:
    path = write_report(run_folder, tmp_path / "report.html")
    with browser.open(path.as_uri()) as page:
        page.wait("document.body.dataset.iteration === '3' && Number(document.body.dataset.frame) > 0")
        titles = page.run("[...document.querySelectorAll('main h2')].map(title => title.textContent)")
        assert titles[titles.index("Strength") :][:4] == ["Strength", "Solved positions", "Games", "Losses"]
        assert "Finished: 3 iterations" in page.run("document.querySelector('#state').innerText")
        assert "solved positions right" in page.run("document.querySelector('#newest').innerText")
        assert "ResNet 4x1" in page.run("document.querySelector('#facts').innerText")
        assert page.run("document.querySelectorAll('.opening b').length") > 3
        assert page.run("document.querySelectorAll('#film svg.board').length") == 1 + int(
            page.run("document.body.dataset.frame")
        )
        page.run("document.querySelectorAll('details.card, .numbers').forEach(part => { part.open = true })")
        assert "num_simulations" in page.run("document.querySelector('#settings').innerText")
        assert "instead of" in page.run("document.querySelector('#settings .changed').innerText")
        page.wait("document.querySelectorAll('.numbers tbody tr').length >= 9")
        page.click("#games button:nth-of-type(2)")
        page.wait("document.querySelector('#games button:nth-of-type(2)').getAttribute('aria-pressed') === 'true'")
        page.click("#first")
        page.wait("document.body.dataset.frame === '0'")
        place = page.run(
            "(() => { const chart = document.querySelector('#strength [aria-label=\"Solved positions\"] svg'); "
            "chart.scrollIntoView({ block: 'center' }); const s = chart.getBoundingClientRect(); "
            "return [s.right - 5, s.top + s.height / 2] })()"
        )
        page.point_at(*place)
        page.wait(
            "/iteration 3\\ntime .*\\nright first choices/.test(document.querySelector('.pointed .tip').textContent)"
        )
        page.screenshot(screenshots / "report.png")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")
        assert [link for link in page.requests() if not link.startswith(("file:", "data:"))] == []
    with browser.open(path.as_uri(), width=390, height=800, is_phone=True, is_dark=True) as page:
        page.wait("Number(document.body.dataset.frame) > 0")
        assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_strings_of_a_run_are_text_in_a_browser(tmp_path: Path, browser: Browser) -> None:
    settings = {"game": EVIL, "network": {"channels": EVIL, "blocks": EVIL}, EVIL: EVIL}
    folder = begin_run(tmp_path / EVIL.replace("/", ""), **settings)
    write_lines(folder, b'"%b"' % EVIL.encode(), *ODD, HONEST)
    write_finding(folder, EVIL)
    with browser.open(write_report(folder, tmp_path / "report.html").as_uri()) as page:
        page.wait("document.body.dataset.iteration === '999999999999999'")
        assert page.run("document.querySelectorAll('img').length") == 0
        assert page.run("document.querySelectorAll('script').length") == 2
        for place in ("#facts", "#findings", "#settings"):
            assert "<img src=x" in page.run(f"document.querySelector('{place}').textContent")
        assert "<script>" in page.run("document.querySelector('#numbers').textContent")
        assert page.run("document.title") != "owned"


def test_a_browser_runs_no_script_but_the_pages_own(run_folder: Path, tmp_path: Path, browser: Browser) -> None:
    """Should a string ever come through as markup, the policy of the file keeps it from running."""
    path = write_report(run_folder, tmp_path / "report.html")
    evil = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title='owned'\"></main>"
    path.write_text(path.read_text(encoding="utf-8").replace("</main>", evil, 1), encoding="utf-8")
    with browser.open(path.as_uri(), has_faults=True) as page:
        page.wait("document.body.dataset.iteration === '3'")
        assert page.run("document.querySelectorAll('img').length") == 1 and page.run("document.title") != "owned"
