"""The report of a run: a page that stands alone, says what is in the run, and says so where something is not."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from hostile_run import EVIL, HONEST, ODD, UNREADABLE, begin_run, put, put_instead, write_games, write_lines
from windrow import CheckpointError, ConfigError, make_game
from windrow.train import GameLog, TrainConfig, TrainingRun, read_metrics, write_report
from windrow.train.report import make_page
from windrow.train.report_boards import read_board
from windrow.train.report_charts import nice_ticks, show_time
from windrow.train.report_data import PlayedGame, read_run
from windrow.train.report_games import choose_games
from windrow.train.report_html import Html, tag
from windrow.train.report_openings import count_moves

VOID = {"meta", "link"}


class Page(HTMLParser):
    """A page taken apart; fails where an element is not closed in its place."""

    def __init__(self, path: Path) -> None:
        super().__init__(convert_charrefs=True)
        self.source = path.read_text(encoding="utf-8")
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(self.source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len(dict(attrs)) == len(attrs), f"{tag} has an attribute twice"
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("style", "script"):
            self.text += data

    def count(self, name: str, class_: str | None = None) -> int:
        found = [attributes for tag, attributes in self.tags if tag == name]
        return sum(class_ is None or class_ in (attributes.get("class") or "").split() for attributes in found)


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


def report(folder: Path, tmp_path: Path) -> Page:
    return Page(write_report(folder, tmp_path / "page.html"))


def write_metrics(folder: Path, lines: list[Any]) -> None:
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


# --- The page ----------------------------------------------------------------------------------------------------


def test_the_page_says_what_is_in_the_run(finished: Path, tmp_path: Path) -> None:
    page = report(finished, tmp_path)
    last = read_metrics(finished)[-1]
    for name in ("loss", "policy_loss", "value_loss", "value_error", "policy_entropy"):
        assert f"{last[name]:.3f}" in page.text
    for name in ("first_player_wins", "draws", "repeated_games"):
        assert f"{last[name]:.1%}" in page.text
    assert "ResNet 8x1" in page.text and "12 simulations, puct root" in page.text
    assert "checkpoints/000003" in page.text
    assert "There is no quick test of strength" in page.text  # tic-tac-toe has none
    for name in ("search.num_simulations", "selfplay.opening_plies", "games_per_iteration"):
        assert name in page.text
    assert page.count("section", "chart") == 8
    assert page.count("details", "game") in (3, 4)
    assert page.count("ul", "notes") == 0


def test_the_page_stands_alone(finished: Path, tmp_path: Path) -> None:
    page = report(finished, tmp_path)
    for name, attributes in page.tags:
        assert name not in ("img", "iframe", "object", "embed", "base")
        for key in ("src", "href", "action", "data", "srcset"):
            assert (attributes.get(key) or "#").startswith(("#", "data:")), (name, attributes)
    assert not re.search(r"https?://|url\(|@import|fetch\(|XMLHttpRequest", page.source)
    policy = next(attributes["content"] for _, attributes in page.tags if "http-equiv" in attributes)
    assert policy is not None and policy.startswith("default-src 'none'")


def test_every_drawing_is_described_and_every_chart_has_its_table(finished: Path, tmp_path: Path) -> None:
    page = report(finished, tmp_path)
    for name, attributes in page.tags:
        if name == "svg":
            assert attributes.get("aria-label") or attributes.get("aria-hidden") == "true"
    assert page.count("table") == page.count("section", "chart") + 1
    for _, attributes in page.tags:
        if places := attributes.get("data-x"):
            assert len(places.split()) in (2, 3)  # nothing was learned in the first iteration
    headings = [int(name[1]) for name, _ in page.tags if re.fullmatch(r"h\d", name)]
    assert headings[0] == 1 and all(after - before <= 1 for before, after in pairwise(headings))


def test_the_default_place_and_the_same_page_twice(copied: Path) -> None:
    path = write_report(copied)
    assert path == copied / "report.html"
    first = path.read_text()
    write_report(str(copied))
    assert re.sub(r"Written [^<]*", "", first) == re.sub(r"Written [^<]*", "", path.read_text())
    assert not list(copied.glob(".*"))  # nothing is left of the writing


def test_hostile_text_is_escaped(copied: Path, tmp_path: Path) -> None:
    evil = "<script>alert('1')</script>\"&"
    settings = json.loads((copied / "config.json").read_text())
    settings["backend"] = settings["network"]["channels"] = settings[evil] = evil
    (copied / "config.json").write_text(json.dumps(settings))
    folder = copied.rename(copied.parent / "<b onclick=x>&amp;")
    page = report(folder, tmp_path)
    assert page.count("script") == 1 and "<b onclick" not in page.source
    assert evil in page.text and "<b onclick=x>&amp;" in page.text


# --- What is missing ---------------------------------------------------------------------------------------------


def test_a_run_without_an_iteration(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    TrainingRun.create(folder, config()).close()
    page = report(folder, tmp_path)
    assert "No iteration has finished yet" in page.text
    assert page.text.count("There are no games in the run's logs yet.") == 2
    shutil.rmtree(folder / "games")
    shutil.rmtree(folder / "checkpoints")
    (folder / "metrics.jsonl").unlink()
    assert report(folder, tmp_path).text == page.text


def test_one_iteration_and_no_loss_yet(copied: Path, tmp_path: Path) -> None:
    first = read_metrics(copied)[0]
    assert "loss" not in first
    write_metrics(copied, [first])
    page = report(copied, tmp_path)
    assert "Nothing is learned yet" in page.text
    assert page.count("section", "chart") == 5
    curves = page.count("svg", "curve")  # of the games, which have a line and a dot each
    assert page.count("path", "line") == curves and page.count("circle", "dot") == 7 + curves  # a point has no line


def test_strength_where_it_was_measured(copied: Path, tmp_path: Path) -> None:
    lines = read_metrics(copied)
    write_metrics(copied, [{**lines[0], "solved_policy": 0.25}, lines[1], {**lines[2], "solved_policy": 0.7531}])
    page = report(copied, tmp_path)
    assert "right first choices 75.3%" in page.text and "75.3% of solved positions right" in page.text


def test_metrics_that_are_no_numbers(copied: Path, tmp_path: Path) -> None:
    good = read_metrics(copied)[-1]
    bad = {**good, "loss": float("nan"), "draws": "many", "games_per_s": None, "game_length": float("inf")}
    write_metrics(copied, [good, bad, 5, None, ["x"], {"loss": 1.0}])
    page = report(copied, tmp_path)
    assert f"{good['loss']:.3f}" in page.text and "nan" not in page.text and "many" not in page.text
    (copied / "metrics.jsonl").write_bytes(b"\xff\xfe\xfd")
    page = report(copied, tmp_path)
    assert page.count("section", "chart") == 0  # as if there were none


def test_a_long_run_is_thinned(copied: Path, tmp_path: Path) -> None:
    write_metrics(copied, [{"iteration": step, "total_s": 60.0 * step, "loss": 1 / step} for step in range(1, 1001)])
    page = report(copied, tmp_path)
    assert "Each point is the mean of up to 4 iterations." in page.text
    places = [attributes["data-x"] for _, attributes in page.tags if "data-x" in attributes]
    assert [len((place or "").split()) for place in places] == [250]
    assert "loss 0.001" in page.text and "17 h" in page.text


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
    page = report(copied, tmp_path)
    assert "Some games are left out" in page.text and page.count("ul", "notes") == 1


def test_a_damaged_checkpoint_and_none(copied: Path, tmp_path: Path) -> None:
    model = copied / "checkpoints" / "000003" / "model.safetensors"
    model.write_bytes(model.read_bytes()[:-10])
    page = report(copied, tmp_path)
    assert "000003 is left out" in page.text and "checkpoints/000002" in page.text
    shutil.rmtree(copied / "checkpoints")
    assert "none yet" in report(copied, tmp_path).text


@pytest.mark.parametrize("game", ["othello", "checkers", 7])
def test_settings_of_another_game(copied: Path, tmp_path: Path, game: Any) -> None:
    settings = json.loads((copied / "config.json").read_text())
    (copied / "config.json").write_text(json.dumps({**settings, "game": game}))
    page = report(copied, tmp_path)
    if game == "othello":
        assert "does not fit the game" in page.text and "None of the newest games" in page.text
    else:
        assert "No games and no checkpoint are shown" in page.text and "Openings" not in page.text


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


def test_markup() -> None:
    assert tag("p", "a<b", tag("i", "&"), None, ["x", Html("<hr>")]) == "<p>a&lt;b<i>&amp;</i>x<hr></p>"
    assert tag("td", class_='a"b', aria_label="c", open=True, hidden=False, id=None) == (
        '<td class="a&quot;b" aria-label="c" open></td>'
    )
    assert tag("meta", name="x") == '<meta name="x">'


def test_openings_are_counted_by_position() -> None:
    game = make_game("tictactoe")

    def played(moves: str, returns: list[float], opening: str = "") -> PlayedGame:
        initial = game.state_from_moves(opening)
        actions = [game.parse_action(move) for move in moves.split()]
        is_action = [True] * len(actions)
        return PlayedGame(1, 0, initial.data, actions, actions, is_action, [0.0] * len(actions), returns, -1)

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


def test_sample_games(finished: Path) -> None:
    games = read_run(finished).games
    chosen = choose_games(games)
    lengths = [len(game.actions) for game in games]
    assert len(chosen["Shortest game"].actions) == min(lengths)
    assert len(chosen["Longest game"].actions) == max(lengths)
    assert len({game.number for game in chosen.values()}) == len(chosen) >= 3
    assert not any(chosen["Drawn game"].returns) if "Drawn game" in chosen else True
    assert choose_games(games) == chosen
    assert list(choose_games(games[:1])) == ["Shortest game"] and choose_games([]) == {}
    records = GameLog.read(finished / "games" / "000003.games")
    assert [game.number for game in games[: len(records)]] == [record.number for record in records]


@pytest.mark.parametrize(("name", "moves"), [("connect4", "443"), ("gomoku", "h8 i9 a15"), ("othello", "d3c5f6")])
def test_boards_are_read_from_what_a_game_renders(name: str, moves: str) -> None:
    game = make_game(name)
    board = read_board(game.render(game.state_from_moves(moves)))
    assert board is not None
    stones = "".join(board).replace(".", "")
    size = {"connect4": (6, 7), "gomoku": (15, 15), "othello": (8, 8)}[name]
    assert (len(board), len(board[0])) == size
    assert len(stones) == (7 if name == "othello" else 3)
    if name == "connect4":
        assert board[-1] == "..xx..." and board[-2] == "...o..."


def test_text_without_a_board() -> None:
    assert read_board("K q\nR .\nwhite to move") is None
    assert read_board("x o\n. . .\n") is None  # rows of different lengths
    assert read_board("") is None


def test_scales() -> None:
    assert nice_ticks(0, 1) == [0, 0.25, 0.5, 0.75, 1]
    assert nice_ticks(0, 97) == [0, 25, 50, 75, 100]
    for low, high in ((0.7221, 0.7534), (-3, 8), (1e-9, 2e-9), (123456, 654321)):
        ticks = nice_ticks(low, high)
        assert ticks[0] <= low * (1 + 1e-9) and ticks[-1] >= high * (1 - 1e-9) and 3 <= len(ticks) <= 8
    times = {0: "0 s", 6.54: "6.5 s", 45: "45 s", 180: "3 min", 5000: "83 min", 7200: "2 h", 400_000: "4.6 d"}
    assert {seconds: show_time(seconds) for seconds in times} == times


# --- Folders of strangers ----------------------------------------------------------------------------------------


def test_lines_that_cannot_be_read_are_counted_and_the_others_shown(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    write_lines(folder, *UNREADABLE, b"", *ODD, HONEST)
    page = report(folder, tmp_path)
    assert f"{len(UNREADABLE)} lines of metrics.jsonl could not be read." in page.text
    assert "0.438" in page.text and not re.search(r"\b(nan|inf)\b", page.text)
    assert page.count("img") == 0 and page.count("script") == 1
    with (folder / "metrics.jsonl").open("ab") as file:
        file.write(b'{"iteration": 1001, "lo')  # which is being written now
    assert report(folder, tmp_path).text == page.text


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
        assert name in page.text
    assert page.count("section", "chart") == 0
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
    assert page.count("img") == 0 and page.count("script") == 1


def test_games_that_cannot_have_been(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    num_games = write_games(folder)
    run = read_run(folder)
    assert num_games - len(run.games) == 6 and any(note.startswith("6 of the games") for note in run.notes)
    for played in run.games:  # each alone, as a page shows only some of them
        assert make_page(replace(run, games=[played])).startswith("<!doctype html>")
    for name in ("²", "1" * 200, "-1", "x"):  # not the name of a log
        (folder / "games" / f"{name}.games").write_bytes(b"x")
    assert report(folder, tmp_path).count("details", "game") >= 1


def test_commands_to_copy_are_quoted(copied: Path, tmp_path: Path) -> None:
    folder = copied.rename(tmp_path / "run; echo")
    assert f"windrow train --resume '{folder}'" in report(folder, tmp_path).text
