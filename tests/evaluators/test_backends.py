"""Every backend says what the network says, whatever the batch, and goes on with new weights."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from textwrap import dedent
from typing import Any

import numpy as np
import pytest
from network_cases import (
    GAMES,
    NamedNet,
    built,
    by_hand,
    cpu_backends,
    named_rows,
    positions,
    small_net,
    torch,
)

from windrow import EvaluatorError, Search, SearchConfig
from windrow.evaluators import Evaluator, GameAware, Pipelined, TorchEvaluator, load
from windrow.evaluators.backends.agreement import compare
from windrow.evaluators.backends.catalog import BACKENDS

GAME = GAMES["connect4"]
EXACT = 1e-4
"""Float32 sums in another order: a few units in the last place of logits up to 10, over sums of 600 terms."""


def assert_agrees(backend: str, got: tuple[Any, Any], want: tuple[Any, Any], legal: Any) -> None:
    agreement = compare(want, got, legal)
    assert agreement.holds, f"{backend}: {agreement}"
    if BACKENDS[backend].precision == "f32":
        np.testing.assert_allclose(got[0], want[0], atol=EXACT)
        np.testing.assert_allclose(np.reshape(got[1], -1), np.reshape(want[1], -1), atol=EXACT)


def test_the_catalog_can_be_built() -> None:
    """Every import string leads somewhere, as far as its packages are installed."""
    for backend in BACKENDS.values():
        module, _, attribute = backend.build.partition(":")
        if all(_is_there(package) for package in backend.packages):
            assert callable(getattr(import_module(module), attribute))


def _is_there(package: str) -> bool:
    return find_spec(package) is not None


@pytest.mark.skipif(find_spec("openvino_telemetry") is None, reason="there is nothing that would report")
def test_nothing_reports_home() -> None:
    """OpenVINO does so from a forked process; and the program's environment is left as it was."""
    code = (
        "import os; os.environ.pop('CI', None); os.register_at_fork(before=lambda: print('forked', flush=True));"
        "import windrow.evaluators.backends.openvino; print('CI' in os.environ)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["False"]


@pytest.mark.skipif(find_spec("openvino") is None, reason="OpenVINO is not installed")
def test_signals_arrive_after_networks_of_openvino_are_dropped() -> None:
    """In another thread, and in the order they were made; the handler then ran on memory that was gone."""
    code = """
        import gc, os, signal, threading, windrow
        from windrow.evaluators import load
        from windrow.nets import ResNetConfig, make_network

        game = windrow.make_game("tictactoe")
        net = make_network(ResNetConfig(channels=4, blocks=1), game)
        held = [load(net, game=game, backend="openvino")]
        thread = threading.Thread(target=lambda: (held.clear(), gc.collect()))
        thread.start(), thread.join()
        held = [load(net, game=game, backend="openvino") for _ in range(2)]
        while held:
            held.pop(0)
            gc.collect()
        signal.signal(signal.SIGUSR1, lambda *_: print("handled"))
        os.kill(os.getpid(), signal.SIGUSR1)
    """
    run = subprocess.run([sys.executable, "-c", dedent(code)], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "handled\n"), run.stderr


@pytest.mark.parametrize("backend", cpu_backends())
def test_it_is_an_evaluator(backend: str) -> None:
    evaluator = built(backend)
    assert isinstance(evaluator, Evaluator) and isinstance(evaluator, Pipelined) and isinstance(evaluator, GameAware)
    assert evaluator.backend == backend and evaluator.device == "cpu" and evaluator.version == 0
    assert evaluator.pipeline == (2 if backend.startswith("openvino") else 1)
    buffer = evaluator.allocate((5, 84))
    assert buffer.shape == (5, 84) and buffer.dtype == np.float32 and buffer.flags.c_contiguous
    assert backend in evaluator.choice and backend in repr(evaluator)


@pytest.mark.parametrize("game_name", GAMES)
@pytest.mark.parametrize("backend", cpu_backends())
def test_it_agrees_with_the_module(backend: str, game_name: str) -> None:
    rows = positions(game_name)
    want = by_hand(small_net(game_name), rows.observations)
    evaluator = built(backend, game_name)
    for answer in (evaluator.evaluate(rows.observations), evaluator.submit(rows.observations).result()):
        assert answer[0].dtype == answer[1].dtype == np.float32
        assert_agrees(backend, answer, want, rows.legal)


@pytest.mark.parametrize("backend", cpu_backends())
def test_other_rows_change_nothing(backend: str) -> None:
    """A row alone, padded or among others: the same answer, up to the order of float32 sums."""
    evaluator, observations = built(backend), positions().observations
    logits, values = evaluator.evaluate(observations)
    for count in (1, 2, 3, 7, 13, 33, 100):
        some_logits, some_values = evaluator.evaluate(observations[:count])
        assert some_logits.shape == (count, 7) and some_values.shape == (count,)
        # Reduced precision may round to the neighbour: 2^-8 of a logit of 3 for bfloat16.
        tolerance = EXACT if evaluator.precision == "f32" else 0.03
        np.testing.assert_allclose(some_logits, logits[:count], atol=tolerance)
        np.testing.assert_allclose(some_values, values[:count], atol=tolerance)


@pytest.mark.parametrize("backend", cpu_backends())
def test_batches_that_are_out_together_do_not_mix(backend: str) -> None:
    evaluator, observations = built(backend), positions().observations
    batches = [observations[first : first + size].copy() for first, size in ((0, 5), (20, 64), (90, 1), (100, 64))]
    alone = [evaluator.evaluate(batch) for batch in batches]
    together = [pending.result() for pending in [evaluator.submit(batch) for batch in batches]]
    for got, want in zip(together, alone, strict=True):
        np.testing.assert_array_equal(got[0], want[0])
        np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("backend", cpu_backends())
def test_answers_are_the_callers(backend: str) -> None:
    evaluator, observations = built(backend), positions().observations
    first = evaluator.evaluate(observations[:8])
    kept = [array.copy() for array in first]
    evaluator.evaluate(observations[50:58])
    pending = evaluator.submit(observations[60:68])
    for array, copy in zip(first, kept, strict=True):
        np.testing.assert_array_equal(array, copy)
    np.testing.assert_array_equal(pending.result()[0], pending.result()[0])


@pytest.mark.parametrize("backend", cpu_backends())
def test_rows_of_a_wider_buffer(backend: str) -> None:
    """A search with named observations hands views that are not contiguous."""
    evaluator, observations = built(backend), positions().observations
    wide = np.zeros((6, 2, 6, 14), np.float32)
    wide[..., :7] = observations[:6]
    np.testing.assert_array_equal(evaluator.evaluate(wide[..., :7])[0], evaluator.evaluate(observations[:6])[0])


@pytest.mark.parametrize("backend", cpu_backends())
def test_named_observations(backend: str) -> None:
    rows = named_rows(64)
    evaluator = load(NamedNet().eval(), positions=named_rows(128, seed=5), backend=backend)
    everything_legal = np.ones((64, 6), np.bool_)
    assert_agrees(backend, evaluator.evaluate(rows), by_hand(NamedNet(), rows), everything_legal)
    swapped = {"flat": rows["flat"], "board": rows["board"]}
    np.testing.assert_array_equal(evaluator.evaluate(swapped)[0], evaluator.evaluate(rows)[0])
    # 11 rows are padded where a backend pads.
    few = {name: part[:11] for name, part in rows.items()}
    assert_agrees(backend, evaluator.submit(few).result(), by_hand(NamedNet(), few), everything_legal[:11])
    evaluator.update(NamedNet(seed=4))
    assert_agrees(backend, evaluator.evaluate(rows), by_hand(NamedNet(seed=4), rows), everything_legal)
    with pytest.raises(EvaluatorError, match="takes board, flat, but board was given"):
        evaluator.evaluate({"board": rows["board"]})


# --- Weights -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", cpu_backends())
def test_new_weights_take_effect_and_are_counted(backend: str) -> None:
    rows, other = positions(), small_net(seed=8)
    evaluator = load(small_net(), game=GAME, backend=backend)
    before = evaluator.evaluate(rows.observations)
    pending = evaluator.submit(rows.observations)
    evaluator.update(other)
    assert evaluator.version == 1
    np.testing.assert_array_equal(pending.result()[0], before[0], "a batch that was out keeps the old weights")
    assert_agrees(backend, evaluator.evaluate(rows.observations), by_hand(other, rows.observations), rows.legal)
    assert not compare(before, evaluator.evaluate(rows.observations), rows.legal).holds
    state = {name: value.numpy() for name, value in small_net().state_dict().items()}
    evaluator.update(state)
    assert evaluator.version == 2
    np.testing.assert_allclose(evaluator.evaluate(rows.observations)[0], before[0], atol=1e-5)


@pytest.mark.parametrize("backend", cpu_backends())
def test_weights_that_do_not_fit_change_nothing(backend: str) -> None:
    evaluator, observations = built(backend), positions().observations
    before = evaluator.evaluate(observations)
    state = small_net(seed=5).state_dict()
    missing = {name: value for name, value in state.items() if name != "policy.bias"}
    wrong_shape = {**state, "policy.bias": torch.zeros(8)}
    for weights, message in (
        (missing, r"missing: policy\.bias"),
        ({**state, "extra.weight": torch.zeros(2)}, r"unknown: extra\.weight"),
        (wrong_shape, r"policy\.bias .* shape \(7,\), not the given \(8,\)"),
        (NamedNet(), "these weights do not fit the module SmallNet"),
        ([1, 2], "a module or a state dict, not list"),
    ):
        with pytest.raises(EvaluatorError, match=message):
            evaluator.update(weights)
    assert evaluator.version == 0
    np.testing.assert_array_equal(evaluator.evaluate(observations)[0], before[0])


@pytest.mark.parametrize("backend", ["torch", "torch-channels-last"])
def test_the_module_is_a_snapshot(backend: str) -> None:
    net = small_net()
    evaluator = load(net, game=GAME, backend=backend)
    before = evaluator.evaluate(positions().observations)
    with torch.no_grad():
        net.policy.bias += 1.0
    np.testing.assert_array_equal(evaluator.evaluate(positions().observations)[0], before[0])
    evaluator.update(net)
    np.testing.assert_allclose(evaluator.evaluate(positions().observations)[0], before[0] + 3.0, atol=1e-4)


def test_a_module_in_training_stays_there() -> None:
    net = small_net().train()
    evaluator = load(net, game=GAME, backend="torch")
    assert all(part.training for part in net.modules())
    want = by_hand(small_net(), positions().observations)
    np.testing.assert_array_equal(evaluator.evaluate(positions().observations)[0], want[0])
    assert net.stem.weight.requires_grad


def test_half_precision_weights_are_taken() -> None:
    evaluator = load(small_net(), game=GAME, backend="torch")
    evaluator.update({name: value.to(torch.bfloat16) for name, value in small_net(seed=8).state_dict().items()})
    rows = positions()
    assert compare(
        by_hand(small_net(seed=8), rows.observations), evaluator.evaluate(rows.observations), rows.legal
    ).holds


# --- Searching ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", cpu_backends())
def test_searches_spend_exact_budgets(backend: str) -> None:
    states = [GAME.state_from_moves(moves) for moves in ("", "4", "44", "445", "4453")]
    for settings in ({"engine": "vectorized", "pipeline": 2}, {"engine": "batched", "leaves_per_tree": 3}):
        results = Search(GAME, built(backend), SearchConfig(num_simulations=50).with_settings(settings)).run(states)
        assert [int(result.visits.sum()) for result in results] == [50] * len(states)


def test_the_torch_backend_searches_like_the_torch_evaluator() -> None:
    config = SearchConfig(num_simulations=120, engine="vectorized")
    states = [GAME.state_from_moves(moves) for moves in ("", "4", "44")]
    got = Search(GAME, built("torch"), config).run(states)
    want = Search(GAME, TorchEvaluator(small_net(), "cpu"), config).run(states)
    assert [result.visits.tolist() for result in got] == [result.visits.tolist() for result in want]


@pytest.mark.parametrize("backend", ["torch", "torch-channels-last"])
def test_threads_of_the_process_are_left_alone(backend: str) -> None:
    """The number of PyTorch's threads belongs to the process: an evaluator puts it back."""
    before = torch.get_num_threads()
    evaluator = load(small_net(), game=GAME, backend=backend, num_threads=before + 1)
    evaluator.evaluate(positions().observations)
    assert torch.get_num_threads() == before and evaluator.num_threads == before + 1


def test_closing_twice() -> None:
    evaluator = load(small_net(), game=GAME, backend="torch")
    evaluator.close()
    evaluator.close()


# --- Values at their bounds --------------------------------------------------------------------------------------


class Certain(torch.nn.Module):
    """A value head that is as sure as can be: where runtimes round a tanh, some end above 1."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.steps = torch.nn.Parameter(torch.linspace(4.0, 12.0, 512))

    def forward(self, x: Any) -> Any:
        rows = x.flatten(1)
        certain = torch.tanh(rows.sum(1, keepdim=True) * 0.0 + self.steps).amax(1)
        return rows[:, :7], certain * self.scale * torch.where(rows[:, 0] > 0, -1.0, 1.0)


@pytest.mark.parametrize("backend", cpu_backends())
def test_no_backend_rounds_a_value_beyond_1(backend: str) -> None:
    """The tanh of ONNX Runtime gives up to 1.0000002, which a search refuses as outside [-1, 1]."""
    evaluator = load(Certain(), game=GAME, backend=backend)
    _, values = evaluator.evaluate(positions().observations)
    assert np.abs(values).max() <= 1.0
    result = Search(GAME, evaluator, SearchConfig(num_simulations=20)).run(GAME.initial_state())
    assert result.visits.sum() == 20


@pytest.mark.parametrize("backend", cpu_backends())
def test_what_is_not_rounding_is_an_error_still(backend: str) -> None:
    evaluator = load(Certain(1.02), game=GAME, backend=backend)
    with pytest.raises(EvaluatorError, match=r"the value is -?1\.0[12]\d*, not a number in \[-1, 1\]"):
        Search(GAME, evaluator, SearchConfig(num_simulations=20)).run(GAME.initial_state())
