"""`windrow watch` on folders of strangers: whatever is in them, the page is told in valid JSON what can be shown."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from web_browser import Browser
from web_server import serve

from hostile_run import (
    EVIL,
    HONEST,
    LINES,
    ODD,
    UNREADABLE,
    begin_run,
    put_instead,
    write_finding,
    write_games,
    write_lines,
)

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow.web.run_page import describe_metrics, describe_run
from windrow.web.training import RunWatch


def strictly(text: str) -> Any:
    """The value of a text that is JSON to everybody, not to Python alone."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is not JSON")

    return json.loads(text, parse_constant=refuse)


def told(folder: Path) -> dict[str, Any]:
    """What a real server tells a page first, by type."""
    with serve(str(folder), command="watch") as served, served.socket() as opened:
        messages = [strictly(opened.recv(timeout=60)) for _ in range(3)]
        assert "error" not in {message["type"] for message in messages}
        return {message["type"]: message for message in messages}


# --- Metrics -------------------------------------------------------------------------------------------------------


def test_lines_that_cannot_be_read_are_counted_and_the_others_shown(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    write_lines(folder, *UNREADABLE, *ODD, HONEST)
    metrics = told(folder)["metrics"]
    assert metrics["notes"] == [f"{len(UNREADABLE)} lines of metrics.jsonl could not be read."]
    assert [1000, 0.4375] in metrics["series"]["loss"] and EVIL in metrics["series"]


@settings(max_examples=1)  # a server each
@given(st.lists(LINES, min_size=100, max_size=300))
def test_no_lines_break_the_server(lines: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = begin_run(Path(folder) / "run")
        write_lines(run, *lines, HONEST)
        assert [1000, 0.4375] in told(run)["metrics"]["series"]["loss"]


@given(st.lists(LINES, max_size=8))
def test_no_lines_break_what_a_page_is_told(lines: list[bytes]) -> None:
    """The same without a server, more often; a line is shown, in part at least, or counted."""
    with tempfile.TemporaryDirectory() as folder:
        run = begin_run(Path(folder) / "run")
        write_lines(run, *lines, HONEST)
        metrics = describe_metrics(RunWatch(run).run)
        assert [1000, 0.4375] in strictly(json.dumps(metrics))["series"]["loss"]
        for points in metrics["series"].values():
            assert all(0 <= at <= 1e15 and abs(value) <= 1e15 for at, value in points)


def test_names_without_end_are_not_sent(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    fields = {f"metric {number:04d}": number for number in range(2000)}
    write_lines(folder, json.dumps({"iteration": 1, "x" * 300: 1, **fields}).encode())
    metrics = describe_metrics(RunWatch(folder).run)
    assert len(metrics["series"]) == 500 and metrics["notes"] == ["500 of 2000 metrics are shown."]


# --- Other files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_pipes_devices_and_folders_are_not_read(tmp_path: Path, kind: str) -> None:
    folder = begin_run(tmp_path / "run")
    put_instead(folder, kind)
    if kind == "pipe":  # the one that would keep a server waiting
        messages = told(folder)
    else:
        watch = RunWatch(folder)
        messages = {
            "run": describe_run(watch.run),
            "metrics": describe_metrics(watch.run),
            "games": watch.describe_games(),
        }
    assert messages["metrics"]["series"] == {} and messages["games"]["newest"] == []
    notes = " ".join([*messages["run"]["notes"], *messages["metrics"]["notes"]])
    for name in ("metrics.jsonl", "000001.games", "training.json"):
        assert name in notes


def test_games_that_cannot_have_been(tmp_path: Path) -> None:
    """Each is shown, or refused in words; none ends the connection."""
    folder = begin_run(tmp_path / "run")
    num_games = write_games(folder)

    async def ask() -> list[Any]:
        answers: list[Any] = []

        async def send(text: str) -> None:
            answers.append(strictly(text))

        session = RunWatch(folder).open_session(send)
        for number in range(num_games):
            assert await session.handle(json.dumps({"type": "game", "id": number, "number": number}))
        return answers

    answers = asyncio.run(ask())
    assert {answer["type"] for answer in answers} == {"game", "error"} and len(answers) == num_games
    assert answers[0]["frames"][-1]["mover"] == 0 and len(told(folder)["games"]["newest"]) == num_games - 6


def test_settings_that_change_into_something_else_are_told(tmp_path: Path) -> None:
    folder = begin_run(tmp_path / "run")
    watch = RunWatch(folder, interval_s=0.01)
    watch._next_files = 0.0
    (folder / "games").mkdir()
    (folder / "games" / "000001.games").write_bytes(b"")
    (folder / "config.json").write_text("[" * 100_000)
    sent: list[Any] = []

    async def follow() -> None:
        async def send(text: str) -> None:
            sent.append(strictly(text))

        session = watch.open_session(send)
        session.open()
        while not any(message["type"] == "error" for message in sent):
            await asyncio.sleep(0.01)
        await session.close()

    asyncio.run(asyncio.wait_for(follow(), 60))
    assert "config.json cannot be read" in next(message["message"] for message in sent if message["type"] == "error")


# --- In a browser --------------------------------------------------------------------------------------------------


@pytest.fixture
def evil_run(tmp_path: Path) -> Iterator[Path]:
    settings = {"game": EVIL, "network": {"channels": EVIL, "blocks": EVIL}, "selfplay": {"num_slots": EVIL}}
    folder = begin_run(tmp_path / EVIL.replace("/", ""), **settings)
    write_lines(folder, b'"%b"' % EVIL.encode(), *ODD, HONEST)
    write_finding(folder, EVIL)
    yield folder


def test_strings_of_a_run_are_text_on_the_page(evil_run: Path, browser: Browser) -> None:
    """Nor do numbers at the bounds keep the page from drawing."""
    with serve(str(evil_run), command="watch") as served, browser.open(served.link) as page:
        page.wait("document.body.dataset.iteration === '999999999999999'")
        page.wait("document.querySelectorAll('.charts svg').length >= 2")
        assert page.run("document.querySelectorAll('img, script:not([src])').length") == 0
        for place in ("#facts", "#findings"):
            assert "<img src=x" in page.run(f"document.querySelector('{place}').textContent")
        assert page.run("document.querySelectorAll('#findings li').length") == 1
        assert "<script>" in page.run("document.querySelector('#numbers').textContent")
        assert page.run("document.title") != "owned"
        assert "1 line of metrics.jsonl could not be read." in page.run(
            "document.querySelector('#metrics-notes').textContent"
        )
