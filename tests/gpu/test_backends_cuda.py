"""The backends of `windrow.evaluators.load` on a GPU: `make test-gpu`."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import windrow
from windrow import EvaluatorError, Search, SearchConfig
from windrow.engines import Vectorized
from windrow.evaluators import NetworkEvaluator, TorchEvaluator, load
from windrow.evaluators.backends import choice
from windrow.evaluators.backends.agreement import compare
from windrow.evaluators.backends.catalog import BACKENDS
from windrow.evaluators.backends.torch_cuda import SIZES
from windrow.evaluators.positions import Positions, random_positions

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch finds no GPU"),
]

GAME = windrow.make_game("connect4")
CUDA = [name for name in BACKENDS if name in ("cuda", "cuda-bf16", "cuda-compile")]
ALL = [name for name, backend in BACKENDS.items() if backend.device == "cuda" and backend.missing() is None]


class Net(torch.nn.Module):
    """A small residual network with normalization."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        torch.manual_seed(seed)
        self.stem = torch.nn.Conv2d(2, 32, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(32)
        self.body = torch.nn.Conv2d(32, 32, 3, padding=1)
        self.policy, self.value = torch.nn.Linear(32 * 42, 7), torch.nn.Linear(32 * 42, 1)
        self.norm.running_mean.normal_(0.0, 0.2)
        self.norm.running_var.uniform_(0.5, 1.5)
        self.eval()

    def forward(self, x: Any) -> Any:
        hidden = self.norm(self.stem(x)).relu()
        hidden = (hidden + self.body(hidden)).relu().flatten(1)
        return 3 * self.policy(hidden), torch.tanh(self.value(hidden))[:, 0]


class NamedNet(torch.nn.Module):
    """Two inputs by name."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.board, self.flat = torch.nn.Linear(40, 12), torch.nn.Linear(3, 12)
        self.policy, self.value = torch.nn.Linear(12, 6), torch.nn.Linear(12, 1)

    def forward(self, *, flat: Any, board: Any) -> Any:
        hidden = torch.tanh(self.board(board.flatten(1)) + self.flat(flat))
        return self.policy(hidden), torch.tanh(self.value(hidden))


@pytest.fixture(scope="module")
def positions() -> Positions:
    return random_positions(GAME, 300, seed=9)


@pytest.fixture(scope="module")
def built() -> dict[str, NetworkEvaluator]:
    return {name: load(Net(), game=GAME, backend=name) for name in ALL}


def exact(net: Any, rows: Positions) -> tuple[Any, Any]:
    """In float32 on the CPU."""
    with torch.inference_mode():
        logits, values = net(torch.from_numpy(rows.observations))
    return logits.numpy(), values.numpy()


@pytest.mark.parametrize("backend", ALL)
def test_it_agrees_with_the_cpu(backend: str, built: dict[str, NetworkEvaluator], positions: Positions) -> None:
    evaluator = built[backend]
    assert evaluator.device == "cuda" and evaluator.backend == backend
    answer = evaluator.evaluate(positions.observations)
    agreement = compare(exact(Net(), positions), answer, positions.legal)
    assert agreement.holds, agreement
    assert answer[0].dtype == answer[1].dtype == np.float32


@pytest.mark.parametrize("backend", CUDA)
def test_it_is_asynchronous_from_pinned_memory(backend: str, built: dict[str, NetworkEvaluator]) -> None:
    evaluator = built[backend]
    assert evaluator.pipeline == 2
    assert torch.from_numpy(evaluator.allocate((16, 84))).is_pinned()


@pytest.mark.parametrize("backend", ALL)
def test_other_rows_change_nothing(backend: str, built: dict[str, NetworkEvaluator], positions: Positions) -> None:
    """Rows alone, in graphs of several sizes, after larger batches have left their rows in the buffers."""
    evaluator, rows = built[backend], positions.observations
    logits, values = evaluator.evaluate(rows)
    for count in (1, 7, 8, 9, 33, 100, 5, 300):
        some_logits, some_values = evaluator.evaluate(rows[:count])
        assert some_logits.shape == (count, 7) and some_values.shape == (count,)
        # Kernels of other shapes add in another order, in TF32 or bfloat16: eight to ten bits of logits up to 4.
        np.testing.assert_allclose(some_logits, logits[:count], atol=0.05)
        np.testing.assert_allclose(some_values, values[:count], atol=0.02)


@pytest.mark.parametrize("backend", CUDA)
def test_batches_that_are_out_together_do_not_mix(
    backend: str, built: dict[str, NetworkEvaluator], positions: Positions
) -> None:
    evaluator, rows = built[backend], positions.observations
    buffers = []
    for first, size in ((0, 64), (64, 64), (128, 40), (200, 64), (10, 3)):
        buffer = evaluator.allocate((size, 2, 6, 7))
        buffer[:] = rows[first : first + size]
        buffers.append(buffer)
    alone = [evaluator.evaluate(buffer) for buffer in buffers]
    alone = [(np.array(logits), np.array(values)) for logits, values in alone]
    for _ in range(20):
        together = [pending.result() for pending in [evaluator.submit(buffer) for buffer in buffers]]
        for got, want in zip(together, alone, strict=True):
            np.testing.assert_array_equal(got[0], want[0])
            np.testing.assert_array_equal(got[1], want[1])


@pytest.mark.parametrize("backend", ALL)
def test_new_weights_take_effect(backend: str, positions: Positions) -> None:
    evaluator = load(Net(), game=GAME, backend=backend)
    before = evaluator.evaluate(positions.observations)
    pending = evaluator.submit(positions.observations)
    start = time.perf_counter()
    evaluator.update(Net(seed=5))
    print(f"{backend}: update in {1e3 * (time.perf_counter() - start):.1f} ms")
    np.testing.assert_array_equal(pending.result()[0], before[0], "a batch that was out keeps the old weights")
    after = evaluator.evaluate(positions.observations)
    assert evaluator.version == 1
    assert compare(exact(Net(seed=5), positions), after, positions.legal).holds
    assert not compare(before, after, positions.legal).holds
    evaluator.update(Net(seed=5).cuda())
    assert evaluator.version == 2


@pytest.mark.parametrize("backend", ["cuda", "cuda-bf16"])
def test_named_observations(backend: str) -> None:
    rng = np.random.default_rng(0)
    rows = {
        "board": rng.integers(0, 2, (50, 2, 5, 4)).astype(np.float32),
        "flat": rng.uniform(size=(50, 3)).astype(np.float32),
    }
    with torch.inference_mode():
        want = [part.numpy() for part in NamedNet()(**{name: torch.from_numpy(part) for name, part in rows.items()})]
    got = load(NamedNet(), positions=rows, backend=backend).evaluate(rows)
    assert compare((want[0], want[1]), got, np.ones((50, 6), np.bool_)).holds


@pytest.mark.parametrize("backend", ALL)
def test_searches_spend_exact_budgets(backend: str, built: dict[str, NetworkEvaluator]) -> None:
    states = [GAME.state_from_moves("".join(map(str, row))) for row in np.random.default_rng(1).integers(1, 8, (64, 5))]
    config = SearchConfig(num_simulations=60, engine=Vectorized(pipeline=2), dirichlet_fraction=0.25)
    results = Search(GAME, built[backend], config).run(states)
    assert {int(result.visits.sum()) for result in results} == {60}


def test_float32_searches_like_the_torch_evaluator() -> None:
    """Graphs replay what eager PyTorch launches; a batch of the size of its bucket runs the same kernels."""
    states = [GAME.initial_state()] * 64
    config = SearchConfig(num_simulations=20, engine=Vectorized(pipeline=1))
    got = Search(GAME, load(Net(), game=GAME, backend="cuda"), config).run(states)
    want = Search(GAME, TorchEvaluator(Net(), "cuda"), config).run(states)
    assert [result.visits.tolist() for result in got] == [result.visits.tolist() for result in want]


def test_many_sizes_compile_without_falling_back() -> None:
    """PyTorch gives up after 8 programs unless told otherwise; a search meets more batch sizes than that."""
    evaluator = load(Net(), game=GAME, backend="cuda-compile")
    rows = random_positions(GAME, 256, seed=4).observations
    sizes = sorted({SIZES.fit(num_rows) for num_rows in range(1, 257)})
    for size in sizes[:10]:
        evaluator.evaluate(rows[:size])
    assert len(sizes) > 8


def test_a_module_that_looks_at_values_cannot_be_captured() -> None:
    class Looking(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            sign = 1.0 if float(x.sum()) > 0 else -1.0
            return sign * x.flatten(1)[:, :7], x.flatten(1)[:, 0]

    with pytest.raises(EvaluatorError, match="cannot be captured in a CUDA graph"):
        load(Looking(), game=GAME, backend="cuda")
    # The device is still usable.
    assert load(Net(), game=GAME, backend="cuda").evaluate(np.zeros((3, 2, 6, 7), np.float32))[0].shape == (3, 7)


def test_auto_explains_itself(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(choice.OtherLoad, "cores", lambda _: 0.0)  # whatever runs beside the tests
    evaluator = load(Net(), game=GAME, batch=1024, device="cuda")
    assert evaluator.device == "cuda" and "at batch 1024" in evaluator.choice
    assert "measured now" not in load(Net(), game=GAME, batch=1024, device="cuda").choice


def test_the_module_stays_where_it_was() -> None:
    net = Net()
    load(net, game=GAME, backend="cuda-bf16")
    assert not next(net.parameters()).is_cuda and next(net.parameters()).dtype == torch.float32
