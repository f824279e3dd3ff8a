"""What the tests of backends share: small networks, positions, and evaluators that are built once."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from windrow import make_game
from windrow.evaluators import NetworkEvaluator, load
from windrow.evaluators.backends.catalog import BACKENDS
from windrow.evaluators.positions import Positions, random_positions

torch = pytest.importorskip("torch")

GAMES = {"connect4": make_game("connect4"), "othello": make_game("othello")}


class SmallNet(torch.nn.Module):
    """Convolutions with normalization, so that a runtime has something to fold and a snapshot something to freeze."""

    def __init__(self, shape: tuple[int, int, int], num_actions: int, *, seed: int = 0, sharpness: float = 3.0) -> None:
        super().__init__()
        planes, rows, columns = shape
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.stem = torch.nn.Conv2d(planes, 16, 3, padding=1)
            self.norm = torch.nn.BatchNorm2d(16)
            self.body = torch.nn.Conv2d(16, 16, 3, padding=1, bias=False)
            self.body_norm = torch.nn.BatchNorm2d(16)
            self.policy = torch.nn.Linear(16 * rows * columns, num_actions)
            self.value = torch.nn.Linear(16 * rows * columns, 1)
            for norm in (self.norm, self.body_norm):
                norm.running_mean.normal_(0.0, 0.2)
                norm.running_var.uniform_(0.5, 1.5)
        self.sharpness = sharpness

    def forward(self, x: Any) -> Any:
        hidden = self.norm(self.stem(x)).relu()
        hidden = (hidden + self.body_norm(self.body(hidden))).relu().flatten(1)
        return self.sharpness * self.policy(hidden), torch.tanh(self.value(hidden)).squeeze(-1)


class NamedNet(torch.nn.Module):
    """Two inputs by name, in another order than the game has them; biases start equal, as they do in practice."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.board = torch.nn.Linear(2 * 5 * 4, 12)
            self.flat = torch.nn.Linear(3, 12)
            self.policy, self.value = torch.nn.Linear(12, 6), torch.nn.Linear(12, 1)
        for part in (self.board, self.flat):
            torch.nn.init.zeros_(part.bias)

    def forward(self, *, flat: Any, board: Any) -> Any:
        hidden = torch.tanh(self.board(board.flatten(1)) + 2.0 * self.flat(flat))
        return self.policy(hidden), torch.tanh(self.value(hidden))


def cpu_backends() -> list[Any]:
    """Every backend of the CPU that is installed, as parameters of a test; compiling ones are slow."""
    # PyTorch's compiler imports what PyTorch has deprecated.
    compiling = [pytest.mark.slow, pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")]
    return [
        pytest.param(name, marks=[] if backend.is_quick else compiling)
        for name, backend in BACKENDS.items()
        if backend.device == "cpu" and backend.missing() is None
    ]


def small_net(game_name: str = "connect4", **options: Any) -> Any:
    game = GAMES[game_name]
    return SmallNet(game.observation, game.num_actions, **options).eval()


@cache
def positions(game_name: str = "connect4", count: int = 200) -> Positions:
    """Other ones than those that `load` calibrates and compares on."""
    return random_positions(GAMES[game_name], count, seed=99)


@cache
def built(backend: str, game_name: str = "connect4") -> NetworkEvaluator:
    """The small network in a backend; shared between tests, which must leave it as they find it."""
    # One thread: the network is small, and threads that wait for each other are slow on a busy machine.
    return load(small_net(game_name), game=GAMES[game_name], backend=backend, num_threads=1)


def by_hand(net: Any, observations: Any) -> tuple[Any, Any]:
    """What the module itself says."""
    with torch.inference_mode():
        if isinstance(observations, dict):
            logits, values = net(**{name: torch.from_numpy(part) for name, part in observations.items()})
        else:
            logits, values = net(torch.from_numpy(np.ascontiguousarray(observations)))
    return logits.numpy(), values.numpy()


def named_rows(count: int, seed: int = 0) -> dict[str, Any]:
    """Observations in two parts: stones on a board, and numbers from 0 to 1."""
    rng = np.random.default_rng(seed)
    return {
        "board": rng.integers(0, 2, size=(count, 2, 5, 4)).astype(np.float32),
        "flat": rng.uniform(size=(count, 3)).astype(np.float32),
    }
