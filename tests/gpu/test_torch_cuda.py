"""TorchEvaluator on a GPU: `make test-gpu`."""

from __future__ import annotations

import numpy as np
import pytest

import windrow
from windrow.engines import Vectorized
from windrow.evaluators import TorchEvaluator

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU"),
]


def make_network(seed: int = 0) -> torch.nn.Module:
    """A small network for Connect-4 whose answers vary with the position."""
    torch.manual_seed(seed)

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.trunk = torch.nn.Sequential(torch.nn.Conv2d(2, 32, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten())
            self.policy, self.value = torch.nn.Linear(32 * 42, 7), torch.nn.Linear(32 * 42, 1)

        def forward(self, observations: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            features = self.trunk(observations)
            return 4 * self.policy(features), torch.tanh(4 * self.value(features))

    return Net()


def positions(count: int) -> list[windrow.games.native.State]:
    game = windrow.make_game("connect4")
    columns = np.random.default_rng(1).integers(1, 8, size=(count, 6))
    return [game.state_from_moves("".join(map(str, row))) for row in columns]


def test_auto_takes_the_gpu_and_moves_the_module() -> None:
    evaluator = TorchEvaluator(make_network())
    assert evaluator.device.type == "cuda"
    assert all(parameter.is_cuda for parameter in evaluator.module.parameters())
    assert evaluator.pipeline == 2


def test_observation_memory_is_pinned() -> None:
    buffer = TorchEvaluator(make_network()).allocate((16, 84))
    assert torch.from_numpy(buffer).is_pinned()


def test_answers_equal_the_module_called_by_hand() -> None:
    network = make_network()
    evaluator = TorchEvaluator(network, device="cuda")
    observations = evaluator.allocate((64, 2, 6, 7))
    observations[:] = np.random.default_rng(0).integers(0, 2, observations.shape)
    logits, values = evaluator.submit(observations).result()
    with torch.inference_mode():
        want_logits, want_values = network(torch.from_numpy(observations).cuda())
    np.testing.assert_array_equal(logits, want_logits.cpu().numpy())
    np.testing.assert_array_equal(values, want_values.cpu().numpy())


def test_two_batches_out_do_not_mix() -> None:
    evaluator = TorchEvaluator(make_network())
    rng = np.random.default_rng(3)
    buffers = [evaluator.allocate((128, 2, 6, 7)) for _ in range(4)]
    for buffer in buffers:
        buffer[:] = rng.integers(0, 2, buffer.shape)
    alone = [evaluator.submit(buffer).result() for buffer in buffers]
    alone = [(np.array(logits), np.array(values)) for logits, values in alone]
    together = [pending.result() for pending in [evaluator.submit(buffer) for buffer in buffers]]
    for (logits, values), (want_logits, want_values) in zip(together, alone, strict=True):
        np.testing.assert_array_equal(logits, want_logits)
        np.testing.assert_array_equal(values, want_values)


@pytest.mark.parametrize("num_threads", [1, 4])
def test_asynchronous_search_equals_the_same_batches_one_by_one(num_threads: int) -> None:
    """The pipeline must not change a single visit: the same rows go out in the same batches either way."""
    game = windrow.make_game("connect4")
    network = make_network()
    config = windrow.SearchConfig(
        engine=Vectorized(pipeline=2, num_threads=num_threads), num_simulations=200, dirichlet_fraction=0.25
    )
    asynchronous = TorchEvaluator(network)

    class Blocking:
        """The same network, each batch waited for before the next is selected."""

        def evaluate(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            return asynchronous.evaluate(observations)

        def submit(self, observations: np.ndarray) -> windrow.evaluators.Done:
            logits, values = self.evaluate(observations)
            return windrow.evaluators.Done((np.array(logits), np.array(values)))

    states = positions(96)
    got = windrow.Search(game, asynchronous, config).run(states)
    want = windrow.Search(game, Blocking(), config).run(states)
    for one, other in zip(got, want, strict=True):
        assert one.visits.tolist() == other.visits.tolist()
        assert one.visits.sum() == 200
    assert got[0].stats.pipeline == 2


def test_bfloat16_agrees_roughly_and_keeps_the_weights() -> None:
    network = make_network()
    exact = TorchEvaluator(network).evaluate(np.ones((8, 2, 6, 7), np.float32))
    rough = TorchEvaluator(network, dtype=torch.bfloat16).evaluate(np.ones((8, 2, 6, 7), np.float32))
    # bfloat16 has 8 bits of mantissa: one part in 256, a few operations deep.
    np.testing.assert_allclose(rough[0], exact[0], atol=0.1)
    assert next(network.parameters()).dtype == torch.float32


def test_error_in_the_module_leaves_the_search_usable() -> None:
    game = windrow.make_game("connect4")
    network = make_network()
    calls = 0

    def fail_once(*_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 5:
            raise RuntimeError("planted")

    handle = network.register_forward_pre_hook(fail_once)
    search = windrow.Search(game, TorchEvaluator(network), windrow.SearchConfig(num_simulations=50))
    with pytest.raises(windrow.EvaluatorError, match="planted"):
        search.run(positions(8))
    handle.remove()
    assert all(result.visits.sum() >= 50 for result in search.run())
