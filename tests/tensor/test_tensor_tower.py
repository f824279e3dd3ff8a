"""The fused tower without a GPU: packed weights, the twin, and when it is taken."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tower_networks  # noqa: E402
from tower_networks import CASES, distance, draw_boards, make_network  # noqa: E402

from windrow import ConfigError, EvaluatorError, SearchConfig  # noqa: E402
from windrow.evaluators.backends.agreement import compare  # noqa: E402
from windrow.nets import MLP, ResNet  # noqa: E402
from windrow.tensor import TensorSearch, make_game  # noqa: E402
from windrow.tensor.evaluators.tower import FusedTower, fuse, random_positions  # noqa: E402
from windrow.tensor.ops import tower_torch  # noqa: E402
from windrow.tensor.ops.tower_weights import PackedTower, from_fragments, to_fragments, why_not_packed  # noqa: E402


def ask_twin(packed: PackedTower, boards: Any) -> tuple[Any, Any]:
    logits = torch.full((len(boards), packed.weights.shape.num_actions), float("nan"))
    values = torch.full((len(boards),), float("nan"))
    tower_torch.evaluate(packed.weights, boards, logits, values)
    return logits, values


@pytest.mark.parametrize("depth", [16, 64])
def test_fragments_hold_every_entry_once(depth: int) -> None:
    matrices = torch.arange(3 * 64 * depth).view(3, 64, depth)
    packed = to_fragments(matrices)
    assert torch.equal(from_fragments(packed), matrices)
    # Lane 5 of warp 2 loads 16 bytes: row 16 * 2 + 5 // 4, columns 2 * (5 % 4) and the next; rows and columns + 8 too.
    lane = packed[0].flatten()[(2 * 32 + 5) * 8 :][:8].tolist()
    assert lane == [row * depth + column for column, row in _pairs(row=33, column=2)]


def _pairs(row: int, column: int) -> list[tuple[int, int]]:
    """(column, row) in the order of wgmma's A registers."""
    return [(column + dx + e, row + dy) for dx in (0, 8) for dy in (0, 8) for e in (0, 1)]


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("is_folded", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_packed_in_float32_the_twin_is_the_network(case: str, is_folded: bool, memory_format: Any) -> None:
    network = make_network(case, is_folded=is_folded).to(memory_format=memory_format)
    boards = draw_boards(case, 9)
    wanted = network(boards)
    for found, expected in zip(ask_twin(PackedTower(network, torch.float32), boards), wanted, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_in_bfloat16_the_twin_agrees_with_the_network(case: str) -> None:
    network = make_network(case)
    boards = draw_boards(case, 64)
    wanted, got = network(boards), ask_twin(PackedTower(network), boards)
    assert 1e-4 < distance(got[0], wanted[0]) < 2e-2  # it does round
    answers = [tuple(part.numpy() for part in answer) for answer in (wanted, got)]
    agreement = compare(answers[0], answers[1], torch.ones(wanted[0].shape, dtype=torch.bool).numpy())
    assert agreement.holds, agreement


@pytest.mark.parametrize("is_folded", [True, False])
def test_new_weights_are_packed_in_place(is_folded: bool) -> None:
    network = make_network("6x7", is_folded=is_folded)
    packed = PackedTower(network, torch.float32)
    places = [tensor.data_ptr() for tensor in (packed.weights.layers, packed.weights.biases, packed.weights.linear)]
    boards = draw_boards("6x7", 5)
    before = ask_twin(packed, boards)
    with torch.no_grad():
        for mine, theirs in zip(
            network.state_dict().values(),
            make_network("6x7", is_folded=is_folded, seed=1).state_dict().values(),
            strict=True,
        ):
            mine.copy_(theirs)
    assert torch.equal(ask_twin(packed, boards)[0], before[0])
    packed.refresh()
    logits, values = ask_twin(packed, boards)
    torch.testing.assert_close(logits, network(boards)[0], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(values, network(boards)[1], rtol=1e-4, atol=1e-5)
    assert not torch.allclose(logits, before[0], rtol=1e-2)
    assert places == [t.data_ptr() for t in (packed.weights.layers, packed.weights.biases, packed.weights.linear)]


@pytest.mark.parametrize(
    ("network", "reason"),
    [
        (torch.nn.Linear(3, 4), "it is a Linear, and the kernel supports only windrow.nets.ResNet"),
        (MLP((2, 6, 7), 7), "it is a MLP, and the kernel supports only windrow.nets.ResNet"),
        (ResNet((42,), 7), "its observation is not a single board"),
        (ResNet({"board": (2, 6, 7), "turn": (3,)}, 7), "its observation is not a single board"),
        (ResNet((2, 15, 15), 225, blocks=1), "its board is 15x15, and the kernel supports 2x2 to 8x8"),
        (ResNet((2, 6, 9), 9, blocks=1), "its board is 6x9, and the kernel supports 2x2 to 8x8"),
        (ResNet((2, 6, 7), 7, blocks=0), "it has no residual blocks"),
        (ResNet((2, 6, 7), 7, num_values=3, blocks=1), "it returns 3 values, and the kernel supports one"),
        (ResNet((20, 6, 7), 7, blocks=1), "it has 20 planes, and the kernel supports at most 16"),
        (ResNet((2, 6, 7), 7, channels=128, blocks=1), "it has 128 channels, and the kernel supports at most 64"),
        (
            ResNet((2, 6, 7), 7, policy_channels=8, blocks=1),
            "it has 10 planes of policy and value, and the kernel supports at most 8",
        ),
        (
            ResNet((2, 6, 7), 7, value_hidden=256, blocks=1),
            "it has 256 hidden units of the value, and the kernel supports at most 64",
        ),
        (ResNet((2, 6, 7), 7), None),
        (ResNet((16, 8, 8), 4672, channels=32, policy_channels=7, value_channels=1), None),
    ],
)
def test_what_fits_and_why_not(network: Any, reason: str | None) -> None:
    assert why_not_packed(network) == reason
    if reason is not None:
        assert fuse(network, make_game("connect4"), torch.device("cpu")) == (None, reason)
        with pytest.raises(EvaluatorError, match="does not fit into one kernel"):
            PackedTower(network)


def test_weights_that_are_parts_of_other_tensors_are_refused() -> None:
    network = make_network("tiny")
    network.policy.weight.data = torch.zeros(9, 2 * network.policy.in_features)[:, ::2]
    with pytest.raises(EvaluatorError, match="parts of other tensors"):
        PackedTower(network)


def test_without_a_gpu_a_search_takes_the_module_and_says_why() -> None:
    game = make_game("tictactoe")
    network = make_network("tiny").to(torch.bfloat16)
    config = SearchConfig(num_simulations=4)
    assert fuse(network, game, torch.device("cpu")) == (None, "the kernel needs a GPU")
    search = TensorSearch(game, network, config, num_trees=2, device="cpu")
    assert "Triton" in search.fusion
    with pytest.raises(ConfigError, match=r"is_fused=True .* cannot be one kernel"):
        TensorSearch(game, network, config, num_trees=2, device="cpu", is_fused=True)
    assert "not asked for" in TensorSearch(game, network, config, num_trees=2, device="cpu", is_fused=False).fusion


def test_every_search_takes_the_weights_as_they_are() -> None:
    """With the twin in the place of the kernel: the search's own calls, without a GPU."""
    game = make_game("tictactoe")
    network = make_network("tiny")
    tower = FusedTower(network, kernels="torch", dtype=torch.float32)
    config = SearchConfig(num_simulations=12)
    states = game.initial(2)
    search = TensorSearch(game, tower, config, num_trees=2, device="cpu")

    def run_plain() -> Any:
        return TensorSearch(game, network, config, num_trees=2, device="cpu").run(states)

    first = search.run(states)
    assert torch.equal(first.visits, run_plain().visits)
    with torch.no_grad():
        network.policy.bias[8] += 6.0
    second = search.run(states)
    assert torch.equal(second.visits, run_plain().visits) and not torch.equal(second.visits, first.visits)


@pytest.mark.parametrize("name", ["connect4", "othello", "pig"])
def test_random_positions_can_be_moved_in(name: str) -> None:
    game = make_game(name)
    shown, legal = random_positions(game, 50, torch.device("cpu"))
    assert len(shown) == 50 and legal.any(1).all()
    assert len(shown.flatten(1).unique(dim=0)) > 20
    again, _ = random_positions(game, 50, torch.device("cpu"))
    assert torch.equal(shown, again)


def test_every_case_fits() -> None:
    assert all(why_not_packed(make_network(case)) is None for case in tower_networks.CASES)
