"""The training page: event files as they grow, and a run in a real browser."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest
from web_browser import Browser
from web_server import Client, serve

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from torch.utils.tensorboard.writer import SummaryWriter

from windrow.errors import ConfigError
from windrow.train import TrainingRun
from windrow.web.events import EventFolder, _crc32c, _masked
from windrow.web.training import RunWatch


def finish(run: TrainingRun) -> None:
    for _ in run.iterations():
        pass
    run.close()


# --- Event files --------------------------------------------------------------------------------------------------


def test_check_sums_as_published() -> None:
    """Of RFC 3720, appendix B.4: 32 bytes of zeros, of ones, and ascending."""
    assert _crc32c(bytes(32)) == 0x8A9136AA
    assert _crc32c(b"\xff" * 32) == 0x62A8AB43
    assert _crc32c(bytes(range(32))) == 0x46DD794E
    assert _masked(0) == 0xA282EAD8


def test_scalars_are_what_tensorboard_wrote(tmp_path: Path) -> None:
    folder = EventFolder(tmp_path)
    assert not folder.poll() and folder.scalars == {}
    writer = SummaryWriter(str(tmp_path))
    for step in range(5):
        writer.add_scalar("loss", 1 / (1 + step), step)
        writer.add_scalar("games", 10.0 * step, step)
    writer.flush()
    assert folder.poll()
    assert folder.scalars["games"] == {0: 0.0, 1: 10.0, 2: 20.0, 3: 30.0, 4: 40.0}
    assert folder.scalars["loss"][3] == 0.25
    assert not folder.poll()
    writer.add_scalar("loss", -2.5, 300)
    writer.flush()
    assert folder.poll() and folder.scalars["loss"][300] == -2.5
    writer.close()


def test_a_run_that_goes_on_takes_back_what_came_later(tmp_path: Path) -> None:
    first = SummaryWriter(str(tmp_path), filename_suffix=".1")
    for step in range(6):
        first.add_scalar("loss", float(step), step)
    first.close()
    second = SummaryWriter(str(tmp_path), purge_step=4, filename_suffix=".2")
    second.add_scalar("loss", -1.0, 4)
    second.close()
    folder = EventFolder(tmp_path)
    folder.poll()
    assert folder.scalars["loss"] == {0: 0.0, 1: 1.0, 2: 2.0, 3: 3.0, 4: -1.0}


def test_torn_and_damaged_files(tmp_path: Path) -> None:
    """A record is read when all of it is there; behind a damaged length nothing is."""
    writer = SummaryWriter(str(tmp_path / "whole"))
    for step in range(3):
        writer.add_scalar("loss", float(step), step)
    writer.close()
    data = next((tmp_path / "whole").iterdir()).read_bytes()
    torn = tmp_path / "torn"
    torn.mkdir()
    file = torn / "events.out.tfevents.1"
    folder = EventFolder(torn)
    for size in range(0, len(data) + 1, 7):
        file.write_bytes(data[:size])
        folder.poll()
    file.write_bytes(data)
    folder.poll()
    assert folder.scalars["loss"] == {0: 0.0, 1: 1.0, 2: 2.0}
    bad = tmp_path / "bad"
    bad.mkdir()
    (bad / "events.out.tfevents.1").write_bytes(data + struct.pack("<QI", 2**40, 1) + b"x" * 100)
    (bad / "events.out.tfevents.2").write_bytes(b"\x00" * 5000)
    damaged = EventFolder(bad)
    assert damaged.poll() and damaged.scalars["loss"] == {0: 0.0, 1: 1.0, 2: 2.0}
    assert not damaged.poll()


# --- A run --------------------------------------------------------------------------------------------------------


def test_what_a_page_is_told_of_a_run(run_folder: Path) -> None:
    watch = RunWatch(run_folder)
    metrics = watch.describe_metrics()
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert metrics["source"] == "event files"
    assert [at for at, _ in metrics["series"]["loss"]] == [line["iteration"] for line in lines] != []
    for name in ("loss", "games_per_s", "solved_policy"):
        assert [value for _, value in metrics["series"][name]] == pytest.approx(
            [line[name] for line in lines], rel=1e-6
        )
    games = watch.describe_games()
    assert len(games["newest"]) >= 18 and games["samples"][0]["label"] == "Shortest game"
    game = watch.describe_game(games["newest"][0]["number"])
    assert len(game["frames"]) == game["length"] + 1 and game["frames"][-1]["picture"]["kind"] == "grid"
    assert all(frame["value"] is None or -1 <= frame["value"] <= 1 for frame in game["frames"])


def test_without_event_files_the_metrics_are_read(run_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("config.json", "metrics.jsonl"):
        (copy / name).write_text((run_folder / name).read_text())
    watch = RunWatch(copy)
    before = watch.describe_metrics()
    assert before["source"] == "metrics.jsonl" and len(before["series"]["loss"]) == 3
    version = watch.metrics_version
    with (copy / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 4, "loss": 0.5, "odd": NaN}\n')
    watch.poll()
    after = watch.describe_metrics()
    assert watch.metrics_version > version and after["series"]["loss"][-1] == [4, 0.5] and "odd" not in after["series"]
    assert watch.describe_games() == {"type": "games", "samples": [], "newest": []}


def test_long_runs_are_thinned(tmp_path: Path, run_folder: Path) -> None:
    (tmp_path / "config.json").write_text((run_folder / "config.json").read_text())
    with (tmp_path / "metrics.jsonl").open("w") as file:
        for iteration in range(1, 3001):
            file.write(json.dumps({"iteration": iteration, "loss": float(iteration)}) + "\n")
    points = RunWatch(tmp_path).describe_metrics()["series"]["loss"]
    # Five in a row each: 1 to 5 have the mean 3.
    assert len(points) == 600 and points[0] == [5, 3.0] and points[-1] == [3000, 2998.0]


def test_a_folder_that_holds_no_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run"):
        RunWatch(tmp_path)


def test_a_folder_that_is_gone_for_a_while(run_folder: Path, tmp_path: Path) -> None:
    """The page is told, and follows again when the folder is back."""
    folder, elsewhere = tmp_path / "run", tmp_path / "moved"
    shutil.copytree(run_folder, folder)
    with serve(str(folder), command="watch") as served, served.socket() as opened:
        client = Client(opened)
        assert [client.next_update()["type"] for _ in range(2)] == ["metrics", "games"]
        folder.rename(elsewhere)
        assert "there is no run" in client.next_update()["message"]
        elsewhere.rename(folder)
        assert client.next_update() == {"type": "error", "message": ""}
        with SummaryWriter(str(folder / "tensorboard"), filename_suffix=".more") as writer:
            writer.add_scalar("loss", 0.125, 77)
        assert client.next_update()["series"]["loss"][-1] == [77, 0.125]


def test_the_training_page(run_folder: Path, browser: Browser, screenshots: Path) -> None:
    with serve(str(run_folder), command="watch") as served:
        with served.socket() as opened:
            client = Client(opened)
            assert client.welcome["type"] == "run" and client.welcome["title"] == "connect4: small"
            unknown = client.ask(type="game", number=10**6)
            assert unknown["type"] == "error" and "not among the newest" in unknown["message"]
            assert client.ask(type="position", moves=[])["type"] == "error"
        with browser.open(served.link) as page:
            page.wait("document.body.dataset.iteration === '3' && Number(document.body.dataset.games) >= 18")
            titles = page.run("[...document.querySelectorAll('#charts h2')].map(title => title.textContent)")
            assert titles[:3] == ["Strength", "Losses", "Games a second"]
            page.click("#games button:nth-of-type(2)")
            page.wait("Number(document.body.dataset.frame) > 1")
            last = int(page.run("document.body.dataset.frame"))
            page.press("ArrowLeft")
            page.wait(f"document.body.dataset.frame === '{last - 1}'")
            page.click("#first")
            page.wait("document.body.dataset.frame === '0'")
            page.click("#next")
            page.wait("document.body.dataset.frame === '1'")
            page.screenshot(screenshots / "training.png")
            finish(TrainingRun.resume(run_folder, {"num_iterations": 4}))
            page.wait("document.body.dataset.iteration === '4'")  # it follows
            assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_a_run_without_strength_and_losses_says_so(run_folder: Path, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "config.json").write_text((run_folder / "config.json").read_text())
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"iteration": 1, "games_per_s": 3.0}\n')
    titles = "[...document.querySelectorAll('#charts h2')].map(title => title.textContent)"
    with serve(str(tmp_path), command="watch") as served, browser.open(served.link) as page:
        page.wait("document.body.dataset.iteration === '1'")
        assert page.run(titles) == ["Strength", "Losses", "Games a second"]
        assert "Not measured" in page.run("document.querySelector('#charts .missing').textContent")
        with metrics.open("a") as file:
            file.write('{"iteration": 2, "games_per_s": 3.0, "loss": 2.0, "value_error": 0.5, "game_length": 9}\n')
        page.wait("document.body.dataset.iteration === '2'")
        assert page.run(titles) == ["Strength", "Losses", "Games a second", "Error of the value", "Length of games"]
        assert page.run("document.querySelectorAll('#charts .missing').length") == 1
