"""A network of the user's own that breaks the contract: each defect is found before the run, and named."""

from __future__ import annotations

from typing import Any

import pytest

from windrow import EvaluatorError, make_game

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from windrow.nets.checking import check_network  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_thread")


class Good(nn.Module):
    """Tic-tac-toe: 3x3x3 planes in, nine logits and a value out."""

    def __init__(self) -> None:
        super().__init__()
        game = make_game("tictactoe")
        size = 1
        for one in game.observation:
            size *= one
        self.norm = nn.BatchNorm1d(size)
        self.policy, self.value = nn.Linear(size, 9), nn.Linear(size, 1)

    def forward(self, observations: Any) -> Any:
        x = self.norm(observations.flatten(1))
        return self.policy(x), torch.tanh(self.value(x))[:, 0]


class OneTensor(Good):
    """Only the logits."""

    def forward(self, observations: Any) -> Any:
        return super().forward(observations)[0]


class FewLogits(Good):
    """An action has no logit."""

    def forward(self, observations: Any) -> Any:
        logits, values = super().forward(observations)
        return logits[:, :7], values


class ValuePerPlayer(Good):
    """Two values where the game needs one."""

    def forward(self, observations: Any) -> Any:
        logits, values = super().forward(observations)
        return logits, torch.stack([values, -values], 1)


class Squeezed(Good):
    """Loses the batch dimension with one row."""

    def forward(self, observations: Any) -> Any:
        logits, values = super().forward(observations)
        return logits, values.squeeze()


class WithoutTanh(Good):
    """Values outside [-1, 1]."""

    def forward(self, observations: Any) -> Any:
        logits, values = super().forward(observations)
        return logits, values * 50 + 2


class RowsMixed(Good):
    """Every row sees the whole batch."""

    def forward(self, observations: Any) -> Any:
        logits, values = super().forward(observations)
        return logits - observations.flatten(1).sum(0).sum(), values


class NotANumber(Good):
    """Logits that are infinite."""

    def forward(self, observations: Any) -> Any:
        logits, values = super().forward(observations)
        return logits / 0, values


class Detached(Good):
    """Its value cannot learn."""

    def forward(self, observations: Any) -> Any:
        logits, values = super().forward(observations)
        return logits, values.detach()


class OtherInput(Good):
    """Takes parts that the game does not have."""

    def forward(self, board: Any, hand: Any) -> Any:
        return super().forward(board)


def test_a_good_network_passes_and_is_left_as_it_was():
    net = Good()
    net.train()
    net.policy.eval()
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    check_network(net, make_game("tictactoe"))
    assert net.training and not net.policy.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())
    assert all(one.grad is None for one in net.parameters())


@pytest.mark.parametrize(
    ("net", "hint"),
    [
        (OneTensor, "must return .logits, values., two tensors"),
        (FewLogits, r"logits of shape \[6, 7\] for 6 positions"),
        (ValuePerPlayer, r"values of shape \[6, 2\]"),
        (Squeezed, r"values of shape \[\] for 1 positions"),
        (WithoutTanh, "end with torch.tanh"),
        (RowsMixed, "rows of a batch must not influence each other"),
        (NotANumber, "NaN or infinite"),
        (Detached, "no gradient flows from its values"),
        (OtherInput, "cannot be called"),
    ],
)
def test_a_defect_is_found_and_named(net: Any, hint: str):
    with pytest.raises(EvaluatorError, match=hint):
        check_network(net(), make_game("tictactoe"))
