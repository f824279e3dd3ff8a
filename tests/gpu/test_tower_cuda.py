"""The tower as one kernel, on a Hopper GPU: `make test-gpu`."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")


def _is_hopper() -> bool:
    return torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not _is_hopper(), reason="PyTorch finds no Hopper GPU")]
if _is_hopper():
    triton = pytest.importorskip("triton", minversion="3.6")  # pip's, or PyTorch's own
    from triton.experimental import gluon
    from triton.experimental.gluon import language as gl

    @gluon.jit
    def fill_with_nan(done):
        """Leave NaN in the shared memory, to show up any read of what nothing wrote."""
        memory = gl.allocate_shared_memory(gl.bfloat16, [200, 8, 64], gl.NVMMASharedLayout(128, 16, 2))
        layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
        for i in range(200):
            memory.index(i).store(gl.full([8, 64], float("nan"), gl.bfloat16, layout))
        gl.store(done + gl.program_id(0), 1.0)


sys.path.insert(0, str(Path(__file__).parent.parent / "tensor"))

from tower_networks import CASES, distance, draw_boards, make_network  # noqa: E402

from windrow import ConfigError, Search, SearchConfig  # noqa: E402
from windrow import make_game as make_core_game  # noqa: E402
from windrow.evaluators import TorchEvaluator  # noqa: E402
from windrow.nets import ResNet, fold  # noqa: E402
from windrow.tensor import TensorSearch, make_game  # noqa: E402
from windrow.tensor.evaluators.tower import FusedTower, agreement_with_float32, fuse  # noqa: E402
from windrow.tensor.ops import tower_torch  # noqa: E402
from windrow.tensor.ops.tower_weights import PackedTower  # noqa: E402
from windrow.train import TrainingRun, config_for  # noqa: E402

LOGITS = 4e-3
"""Most that the kernel's logits differ from its twin's, relative to the logits of many positions: its sums have another
order, and some fall on the other side of a rounding boundary. The rounding itself moves logits by 4e-3 to 7e-3."""
VALUES = 1.5e-3
"""The same for values, which lie in [-1, 1]: root mean square. The rounding itself moves them by 1.5e-3 to 2.7e-3."""
MAX_SPILLS = 8
"""Registers: more means that the products wait for each other, and that the kernel is several times slower."""


def spoil_shared_memory() -> None:
    fill_with_nan[(264,)](torch.empty(264, device="cuda"), num_warps=4)


def ask(evaluate: Any, packed: PackedTower, boards: Any) -> tuple[Any, Any, Any]:
    """(logits, values, what `evaluate` gave); outputs that are not written stay NaN."""
    logits = torch.full((len(boards), packed.weights.shape.num_actions), float("nan"), device="cuda")
    values = torch.full((len(boards),), float("nan"), device="cuda")
    return logits, values, evaluate(packed.weights, boards, logits, values)


@pytest.mark.parametrize("case", CASES)
def test_the_kernel_equals_its_twin(case: str) -> None:
    from windrow.tensor.ops import tower_triton

    packed = PackedTower(make_network(case).cuda())
    boards = draw_boards(case, 1003).to("cuda", torch.bfloat16)
    wanted = ask(tower_torch.evaluate, packed, boards)
    first = None
    for _ in range(20):
        spoil_shared_memory()
        logits, values, kernel = ask(tower_triton.launch, packed, boards)
        first = first or (logits, values)
        assert torch.equal(logits, first[0]) and torch.equal(values, first[1])
    far, off = distance(first[0], wanted[0]), (first[1] - wanted[1]).square().mean().sqrt().item()
    print(f"{case}: from the twin {far:.1e} and {off:.1e}, {kernel.n_regs} registers, {kernel.n_spills} spilled")
    assert far < LOGITS and off < VALUES
    assert kernel.n_spills <= (0 if case == "6x7" else MAX_SPILLS)


@pytest.mark.parametrize("case", ["6x7", "8x8"])
def test_layout_type_and_neighbours_do_not_matter(case: str) -> None:
    """A position's answer is the same in any batch, in channels_last and in float32."""
    from windrow.tensor.ops import tower_triton

    packed = PackedTower(make_network(case).cuda())
    boards = draw_boards(case, 100).to("cuda", torch.bfloat16)
    whole = ask(tower_triton.evaluate, packed, boards)
    for others in (
        boards.contiguous(memory_format=torch.channels_last),
        boards.float(),
        boards.float().contiguous(memory_format=torch.channels_last),
        boards.flip(3).contiguous().flip(3),
    ):
        found = ask(tower_triton.evaluate, packed, others)
        assert torch.equal(found[0], whole[0]) and torch.equal(found[1], whole[1])
    for start, stop in ((0, 7), (5, 21), (96, 100)):
        found = ask(tower_triton.evaluate, packed, boards[start:stop])
        assert torch.equal(found[0], whole[0][start:stop]) and torch.equal(found[1], whole[1][start:stop])


@pytest.mark.parametrize(("name", "case"), [("connect4", "6x7"), ("othello", "8x8"), ("tictactoe", "tiny")])
@pytest.mark.parametrize("is_folded", [True, False])
def test_agrees_with_float32(name: str, case: str, is_folded: bool) -> None:
    game = make_game(name)
    network = make_network(case, is_folded=is_folded).to("cuda", torch.bfloat16)
    fused, reason = fuse(network, game, torch.device("cuda"))
    assert fused is not None and reason.startswith("policy KL")
    agreement = agreement_with_float32(fused, game, torch.device("cuda"))
    assert agreement.holds and agreement.num_positions >= 512


def test_where_it_does_not_agree_or_fit_the_module_is_called() -> None:
    game = make_game("connect4")
    device = torch.device("cuda")
    wild = make_network("6x7").to("cuda", torch.bfloat16)
    wild.policy.weight.mul_(300.0)
    assert fuse(wild, game, device)[1].startswith("it does not agree with float32: policy KL")
    assert fuse(make_network("6x7"), game, device) == (None, "it does not compute in bfloat16")
    config = SearchConfig(num_simulations=4)
    gomoku = make_game("gomoku")
    large = ResNet.for_game(make_core_game("gomoku"), blocks=1).to(torch.bfloat16)
    search = TensorSearch(gomoku, large, config, num_trees=2)
    assert "its board is 15x15" in search.fusion
    assert (search.run(gomoku.initial(2, "cuda")).visits.sum(1) == 4).all()
    with pytest.raises(ConfigError, match="its board is 15x15"):
        TensorSearch(gomoku, large, config, num_trees=2, is_fused=True)


@contextmanager
def no_waiting() -> Iterator[None]:
    torch.cuda.synchronize()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that not every way to wait is detected
        torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("is_folded", [True, False])
def test_a_search_takes_it_and_sees_new_weights_without_a_new_capture(is_folded: bool) -> None:
    game = make_game("connect4")
    network = make_network("6x7", is_folded=is_folded).to("cuda", torch.bfloat16, memory_format=torch.channels_last)
    config = SearchConfig(num_simulations=40)
    search = TensorSearch(game, network, config, num_trees=37)
    assert search.fusion.startswith("policy KL")
    states = game.initial(37, "cuda")
    first, graphs = search.run(states), search._graphs
    with no_waiting():
        again = search.run(states)
        with torch.no_grad():
            network.policy.bias[3] += 6.0
        other = search.run(states)
    assert search._graphs is graphs
    assert torch.equal(first.visits, again.visits) and not torch.equal(first.visits, other.visits)
    fresh = TensorSearch(game, network, config, num_trees=37).run(states)
    assert torch.equal(fresh.visits, other.visits) and torch.equal(fresh.prior, other.prior)
    plain = TensorSearch(game, network, config, num_trees=37, is_fused=False)
    torch.testing.assert_close(plain.run(states).prior, other.prior, rtol=0.1, atol=0.01)
    assert plain.fusion == "one kernel was not asked for"


def test_windrow_search_takes_it() -> None:
    game = make_core_game("connect4")
    evaluator = TorchEvaluator(make_network("6x7"), dtype=torch.bfloat16)
    search = Search(game, evaluator, SearchConfig(engine="tensor", num_simulations=32))
    states = [game.state_from_moves(moves) for moves in ("", "4", "44")]
    results = search.run(states)
    assert all(result.visits.sum() == 32 for result in results)
    assert search.engine._search.fusion.startswith("policy KL")


def test_training_searches_with_it(tmp_path: Path) -> None:
    settings = {
        "search.engine": "tensor",
        "device.compile_learner": False,
        "num_iterations": 2,
        "games_per_iteration": 64,
        "min_positions": 256,
        "early_simulations": 4,
        "search.num_simulations": 8,
        "selfplay.num_slots": 64,
        "replay.max_positions": 64 * 30,
        "learner.batch_size": 64,
        "network.channels": 64,
        "network.blocks": 2,
    }
    training = TrainingRun.create(tmp_path / "run", config_for(make_core_game("tictactoe"), settings))
    training.prepare()
    strategy = training.strategy
    assert strategy.choice == "cuda, bfloat16, one kernel"
    with no_waiting():
        for _ in range(8):
            strategy.selfplay.step(4)
            strategy._learn()
        strategy.selfplay.step(4)
    assert training.counters.steps > 0
    # What the last step searched with are the averaged and folded weights of now.
    boards = draw_boards("tiny", 50).cuda()
    (search, *_) = strategy.selfplay._searches.values()
    tower = search._network._call
    assert isinstance(tower, FusedTower)
    logits, values = tower(boards)
    exact = fold(strategy.copy.averaged).cuda()(boards)
    torch.testing.assert_close(logits, exact[0], rtol=0.05, atol=0.02)
    torch.testing.assert_close(values, exact[1], rtol=0.05, atol=0.02)
    training.close()
