"""`backend="auto"`: it measures, takes the fastest that agrees, remembers and explains."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from network_cases import GAMES, small_net, torch

from windrow import EvaluatorError, Search, SearchConfig
from windrow.evaluators import NetworkEvaluator, load
from windrow.evaluators.backends import catalog, choice, memory
from windrow.evaluators.backends.agreement import MAX_KL, MAX_MEAN_KL, MAX_VALUE_ERROR
from windrow.evaluators.backends.catalog import BACKENDS, cpu_has_bf16
from windrow.evaluators.backends.choice import Measurement
from windrow.files import cache_folder

GAME = GAMES["connect4"]
FAST_TO_BUILD = ["torch", "torch-channels-last", "torch-bf16"]


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(choice.OtherLoad, "cores", lambda _: 0.0)  # whatever runs beside the tests
    return tmp_path / "windrow" / "backends"


def choose(**options: Any) -> NetworkEvaluator:
    return load(small_net(), game=GAME, **{"candidates": FAST_TO_BUILD[:2], "batch": 16, "num_threads": 1, **options})


def test_what_was_measured_on_a_busy_machine_is_not_remembered(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice.OtherLoad, "cores", lambda _: 1.3)
    assert "not remembered: other programs took 1.3 cores" in choose().choice
    assert not cache.exists()


# --- Ranking, on figures made up for the purpose -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("rates", "ranking"),
    [
        ({"torch": 100.0, "openvino": 200.0}, ["openvino", "torch"]),
        # A little more speed is not worth the precision, much more is.
        ({"openvino": 100.0, "openvino-bf16": 102.0}, ["openvino", "openvino-bf16"]),
        ({"openvino": 100.0, "openvino-bf16": 104.0}, ["openvino-bf16", "openvino"]),
        (
            {"openvino-int8": 102.0, "openvino-bf16": 100.0, "openvino": 50.0},
            ["openvino-bf16", "openvino-int8", "openvino"],
        ),
        ({}, []),
    ],
)
def test_ranking(rates: dict[str, float], ranking: list[str]) -> None:
    assert Measurement(rates=rates).ranking(None) == ranking


def test_ranking_with_a_limit_for_updates() -> None:
    measured = Measurement(
        rates={"openvino-int8": 3.0, "openvino": 2.0, "torch": 1.0}, updates={"openvino-int8": 0.7, "openvino": 0.04}
    )
    assert measured.ranking(0.05) == ["openvino"]
    assert measured.ranking(1.0) == ["openvino-int8", "openvino"]


# --- Choosing ----------------------------------------------------------------------------------------------------


def test_it_chooses_and_says_why() -> None:
    evaluator = load(small_net(), game=GAME, batch=16)
    assert evaluator.backend in BACKENDS and evaluator.choice.startswith(f"{evaluator.backend}: best of ")
    for text in ("at batch 16", "Positions per second", "measured now", "Agreement with float32"):
        assert text in evaluator.choice
    for bound in (MAX_MEAN_KL, MAX_KL, MAX_VALUE_ERROR):
        assert f"bound {bound:g}" in evaluator.choice
    # Every quick backend is accounted for: it has a figure, or a reason why not.
    for name, backend in BACKENDS.items():
        assert not backend.is_quick or name in evaluator.choice
    assert Search(GAME, evaluator, SearchConfig(num_simulations=30)).run(GAME.initial_state()).visits.sum() == 30


def test_what_was_measured_is_remembered(cache: Path) -> None:
    first = choose()
    (file,) = cache.iterdir()
    content = file.read_bytes()
    second = choose()
    assert "measured now" in first.choice and "measured now" not in second.choice
    assert f"remembered in {file}" in second.choice
    assert second.backend == first.backend
    assert file.read_bytes() == content and list(cache.iterdir()) == [file]


def test_a_memory_is_trusted_without_measuring(cache: Path) -> None:
    """With made-up speeds in the file the choice follows them: nothing is measured again."""
    choose()
    (file,) = cache.iterdir()
    entry = json.loads(file.read_text())
    for fastest in ("torch", "torch-channels-last"):
        entry["answer"]["rates"] = {name: 1e9 if name == fastest else 1.0 for name in FAST_TO_BUILD[:2]}
        file.write_text(json.dumps(entry))
        evaluator = choose()
        assert evaluator.backend == fastest and "1,000,000,000" in evaluator.choice


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[1, 2]",
        lambda text: '{"question": {}, "answer": {}}',
        lambda text: text.replace('"rates"', '"speeds"'),
        lambda text: text.replace('"torch":', '"steam":'),
        lambda text: "\x00" * 100,
    ],
)
def test_a_spoiled_file_is_measured_again(spoil: Callable[[str], str], cache: Path) -> None:
    choose(candidates=["torch"])
    (file,) = cache.iterdir()
    good = json.loads(file.read_text())
    file.write_text(spoil(file.read_text()))
    assert "measured now" in choose(candidates=["torch"]).choice
    assert json.loads(file.read_text())["question"] == good["question"], "and the file is whole again"
    assert "measured now" not in choose(candidates=["torch"]).choice


def test_other_questions_have_other_answers(cache: Path) -> None:
    choose()
    for options in ({"batch": 32}, {"num_threads": 2}, {"candidates": ["torch"]}, {"max_update_s": 10.0}):
        before = len(list(cache.iterdir()))
        assert "measured now" in choose(**options).choice
        assert len(list(cache.iterdir())) == before + 1, options
    other_shape = load(
        small_net("othello"), game=GAMES["othello"], candidates=FAST_TO_BUILD[:2], batch=16, num_threads=1
    )
    assert "measured now" in other_shape.choice
    # Other weights of the same shape are the same question.
    same_shape = load(small_net(seed=5), game=GAME, candidates=FAST_TO_BUILD[:2], batch=16, num_threads=1)
    assert "measured now" not in same_shape.choice


def test_without_the_cache_nothing_is_written(cache: Path) -> None:
    assert "not remembered" in choose(use_cache=False).choice
    assert not cache.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(cache: Path) -> None:
    cache.parent.mkdir()
    cache.parent.chmod(0o500)
    assert "not remembered" in choose().choice


def test_a_file_in_the_place_of_the_folder(cache: Path) -> None:
    cache.parent.write_text("in the way")
    assert "not remembered" in choose().choice


# --- Agreement ---------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not cpu_has_bf16(), reason="this CPU has no bfloat16 instructions")
def test_reduced_precision_that_does_not_agree_is_refused(cache: Path) -> None:
    """Logits of hundreds: eight bits of mantissa are not enough, however fast."""
    net = small_net(sharpness=2000.0)
    evaluator = load(net, game=GAME, candidates=FAST_TO_BUILD, batch=16, num_threads=1)
    assert evaluator.precision == "f32"
    (file,) = cache.iterdir()
    entry = json.loads(file.read_text())
    entry["answer"]["rates"]["torch-bf16"] = 1e9
    file.write_text(json.dumps(entry))
    evaluator = load(net, game=GAME, candidates=FAST_TO_BUILD, batch=16, num_threads=1)
    assert evaluator.precision == "f32"
    assert "Refused: torch-bf16, does not agree with float32" in evaluator.choice
    # The same speeds, other weights: now it agrees, and is taken.
    assert load(small_net(sharpness=1.0), game=GAME, backend="torch-bf16").precision == "bf16"
    with pytest.raises(EvaluatorError, match=r"no backend can run .* does not agree with float32"):
        load(net, game=GAME, precision="bf16", candidates=FAST_TO_BUILD, batch=16, num_threads=1)


def test_precision_limits_the_choice() -> None:
    assert choose(precision="f32").precision == "f32"
    if cpu_has_bf16():
        assert choose(precision="bf16", candidates=FAST_TO_BUILD).backend == "torch-bf16"


def test_updates_can_be_limited() -> None:
    evaluator = choose(max_update_s=10.0)
    assert "10000 ms allowed" in evaluator.choice and evaluator.version == 0
    with pytest.raises(EvaluatorError, match="with updates in 1e-09 s"):
        choose(max_update_s=1e-9)


def test_a_module_that_only_torch_can_run() -> None:
    class Looking(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            sign = 1.0 if x.sum() > 0 else -1.0
            return sign * x.flatten(1)[:, :7], torch.tanh(x.sum(dim=(1, 2, 3)))

    evaluator = load(Looking(), game=GAME, candidates=["torch", "onnxruntime"], batch=16)
    assert evaluator.backend == "torch"
    assert "Left out: onnxruntime, the module Looking cannot be exported" in evaluator.choice


def test_a_broken_module_is_nobodys_choice() -> None:
    class Broken(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no such layer")

    with pytest.raises(EvaluatorError, match=r"no backend can run the module Broken.*no such layer"):
        load(Broken(), game=GAME, candidates=FAST_TO_BUILD)


# --- Memory ------------------------------------------------------------------------------------------------------


def test_the_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "there"))
    assert cache_folder() == tmp_path / "there" / "windrow"
    monkeypatch.setenv("HOME", str(tmp_path))
    for unset in ("", "relative/path"):
        monkeypatch.setenv("XDG_CACHE_HOME", unset)
        assert cache_folder() == tmp_path / ".cache" / "windrow"


def test_nothing_half_written_is_left(cache: Path) -> None:
    assert memory.remember({"a": 1}, {"b": 2})
    assert memory.recall({"a": 1}) == {"b": 2} and memory.recall({"a": 2}) is None
    assert [file.suffix for file in cache.iterdir()] == [".json"]


def test_an_update_is_as_long_as_usual_not_as_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit on updates is a promise: one lucky update does not keep it."""

    class Known:
        def weight_names(self) -> set[str]:
            return {"w"}

    taken = iter([0.06, 0.02, 0.07, 0.05, 0.06, 0.08, 0.03, 0.01])
    monkeypatch.setattr(choice, "_time_block", lambda _call, _repeats: next(taken))
    # Seven of them: 0.02 0.03 0.05 0.06 0.06 0.07 0.08.
    assert choice._time_update(Known(), {"w": 1, "other": 2}) == 0.06
    taken = iter([0.7, 0.1])
    assert choice._time_update(Known(), {"w": 1}) == 0.7  # it has taken long enough


@pytest.mark.parametrize(
    ("machine", "flags", "overflows"),
    [
        ("x86_64", "avx2 avx512f avx512bw", True),
        ("x86_64", "avx2 avx512_vnni", False),
        ("x86_64", "avx2 avx_vnni", False),
        ("x86_64", "", True),  # nobody says
        ("aarch64", "", False),
    ],
)
def test_8_bit_sums_overflow_on_x86_without_vnni(
    machine: str, flags: str, overflows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catalog.platform, "machine", lambda: machine)
    monkeypatch.setattr(catalog, "_cpu_flags", lambda: flags)
    assert catalog.cpu_overflows() is overflows
