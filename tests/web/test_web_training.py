"""The training page: the metrics of a run as they grow, and a run in a real browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from web_browser import Browser
from web_server import Client, serve

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from windrow.errors import ConfigError
from windrow.train import TrainConfig, TrainingRun
from windrow.web.report import write_report
from windrow.web.run_page import describe_game, describe_metrics
from windrow.web.training import RunWatch


def finish(run: TrainingRun) -> None:
    for _ in run.iterations():
        pass
    run.close()


def test_what_a_page_is_told_of_a_run(run_folder: Path) -> None:
    watch = RunWatch(run_folder)
    metrics = describe_metrics(watch.run)
    lines = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
    assert [at for at, _ in metrics["series"]["loss"]] == [line["iteration"] for line in lines] != []
    for name in ("loss", "games_per_s", "solved_policy"):
        assert [value for _, value in metrics["series"][name]] == [line[name] for line in lines]
    games = watch.describe_games()
    assert len(games["newest"]) >= 18 and games["samples"][0]["title"] == "Newest"
    game = describe_game(watch.run, games["newest"][0]["number"])
    assert len(game["frames"]) == game["length"] + 1 and game["frames"][-1]["picture"]["kind"] == "grid"
    assert all(frame["value"] is None or -1 <= frame["value"] <= 1 for frame in game["frames"])


def test_metrics_are_read_as_they_grow(run_folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in ("config.json", "metrics.jsonl"):
        (copy / name).write_text((run_folder / name).read_text())
    watch = RunWatch(copy)
    before = describe_metrics(watch.run)
    assert len(before["series"]["loss"]) == 3
    version = watch.metrics_version
    with (copy / "metrics.jsonl").open("a") as file:
        file.write('{"iteration": 4, "loss": 0.5, "odd": NaN}\n')
    watch.poll()
    after = describe_metrics(watch.run)
    assert watch.metrics_version > version and after["series"]["loss"][-1] == [4, 0.5] and "odd" not in after["series"]
    games = watch.describe_games()
    assert games["samples"] == games["newest"] == [] and "no games" in games["openings"]["missing"]


def test_long_runs_are_thinned(tmp_path: Path, run_folder: Path) -> None:
    (tmp_path / "config.json").write_text((run_folder / "config.json").read_text())
    with (tmp_path / "metrics.jsonl").open("w") as file:
        for iteration in range(1, 3001):
            file.write(json.dumps({"iteration": iteration, "loss": float(iteration)}) + "\n")
    points = describe_metrics(RunWatch(tmp_path).run)["series"]["loss"]
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
        with (folder / "metrics.jsonl").open("a") as file:
            file.write('{"iteration": 77, "loss": 0.125}\n')
        assert client.next_update()["series"]["loss"][-1] == [77, 0.125]


def test_the_training_page(run_folder: Path, tmp_path: Path, browser: Browser, screenshots: Path) -> None:
    folder = Path(shutil.copytree(run_folder, tmp_path / "small"))  # it goes on below; other tests read the first one
    with serve(str(folder), command="watch") as served:
        with served.socket() as opened:
            client = Client(opened)
            assert client.welcome["type"] == "run" and client.welcome["title"] == "connect4: small"
            unknown = client.ask(type="game", number=10**6)
            assert unknown["type"] == "error" and "not among the newest" in unknown["message"]
            assert client.ask(type="position", moves=[])["type"] == "error"
        with browser.open(served.link) as page:
            page.wait("document.body.dataset.iteration === '3' && Number(document.body.dataset.games) >= 18")
            titles = page.run("[...document.querySelectorAll('.charts h2')].map(title => title.textContent)")
            assert titles[:3] == ["Strength", "Solved positions", "Losses"]
            page.wait("Number(document.body.dataset.frame) > 1")  # a game is open at once
            page.click("#games button:nth-of-type(2)")
            page.wait("document.querySelector('#games button:nth-of-type(2)').getAttribute('aria-pressed') === 'true'")
            page.click("#last")
            last = int(page.run("document.body.dataset.frame"))
            page.press("ArrowLeft")
            page.wait(f"document.body.dataset.frame === '{last - 1}'")
            page.click("#first")
            page.wait("document.body.dataset.frame === '0'")
            page.click("#next")
            page.wait("document.body.dataset.frame === '1'")
            page.screenshot(screenshots / "training.png")
            finish(TrainingRun.resume(folder, {"num_iterations": 4}))
            page.wait("document.body.dataset.iteration === '4'")  # it follows
            assert page.run("document.documentElement.scrollWidth <= innerWidth")


def test_findings_are_listed_as_they_come(tmp_path: Path, browser: Browser) -> None:
    """A run that cannot learn: the page says so when the run does, and so does the report."""
    folder = tmp_path / "run"
    settings: dict[str, Any] = {"game": "tictactoe", "backend": "torch", "games_per_iteration": 8}
    settings |= {"search": {"num_simulations": 4}, "selfplay": {"num_slots": 8}}
    run = TrainingRun.create(folder, TrainConfig.from_dict({**settings, "num_iterations": 4, "min_positions": 10_000}))
    listed = "document.querySelector('#findings').innerText"
    with serve(str(folder), command="watch") as served, browser.open(served.link) as page:
        page.wait("document.querySelector('#source').textContent !== ''")
        assert page.run("document.querySelector('#findings-card').hidden")
        finish(run)
        page.wait("!document.querySelector('#findings-card').hidden")
        assert "No learning step was taken" in page.run(listed) and "no_steps, iteration" in page.run(listed)
    with browser.open(write_report(folder).as_uri()) as page:
        page.wait("document.body.dataset.iteration === '4'")
        assert "min_positions" in page.run(listed)


def test_a_run_without_ratings_and_losses_says_so(run_folder: Path, tmp_path: Path, browser: Browser) -> None:
    (tmp_path / "config.json").write_text((run_folder / "config.json").read_text())
    metrics = tmp_path / "metrics.jsonl"
    metrics.write_text('{"iteration": 1, "games_per_s": 3.0}\n')
    titles = "[...document.querySelectorAll('.charts h2')].map(title => title.textContent)"
    with serve(str(tmp_path), command="watch") as served, browser.open(served.link) as page:
        page.wait("document.body.dataset.iteration === '1'")
        assert page.run(titles) == ["Strength", "Losses", "Games per second"]
        assert "No checkpoint has been rated" in page.run("document.querySelector('#strength .missing').textContent")
        with metrics.open("a") as file:
            file.write('{"iteration": 2, "games_per_s": 3.0, "loss": 2.0, "value_error": 0.5, "game_length": 9}\n')
        page.wait("document.body.dataset.iteration === '2'")
        assert page.run(titles) == ["Strength", "Losses", "Games per second", "Game length", "Value error"]
        assert page.run("document.querySelectorAll('.charts .missing').length") == 1
