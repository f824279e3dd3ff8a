"""Fewer threads while other programs take the cores."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest

from windrow.cores import OtherLoad
from windrow.evaluators.backends.threads import ThreadChoice


class Machine:
    """A network whose seconds per row depend on the number of threads, on a clock of its own."""

    def __init__(self, *, all_s: float, one_s: float, are_equal: bool = True) -> None:
        self.seconds, self.now, self.used, self.are_equal = {4: all_s, 1: one_s}, 0.0, [], are_equal
        self.choice = ThreadChoice(4, clock=lambda: self.now)

    def call(self, num_rows: int = 100, times: int = 1) -> None:
        for _ in range(times):
            self.choice.compute(num_rows, self._compute)

    def _compute(self, num_threads: int):
        self.used.append(num_threads)
        self.now += self.seconds[num_threads] * 100
        bit = 0.0 if self.are_equal else 1e-7 * num_threads
        return np.full((2, 3), bit), np.zeros(2)


def test_all_threads_while_they_pay_and_one_while_another_program_needs_a_core() -> None:
    machine = Machine(all_s=1e-4, one_s=2e-4)
    machine.call(times=400)
    assert machine.used[:4] == [4, 4, 4, 1] and machine.used.count(1) <= 1 + 400 * 0.01 / 0.5
    machine.seconds = {4: 6e-3, 1: 3e-4}  # somebody takes a core
    before = len(machine.used)
    machine.call(times=2000)
    busy = machine.used[before:]
    assert 4 not in busy[5:20] and busy.count(4) * 0.6 <= 5 * 0.6 + 0.02 * 2000 * 0.03
    machine.seconds = {4: 1e-4, 1: 2e-4}  # and gives it back
    machine.call(times=8000)
    assert machine.used[-10:].count(4) >= 9


def test_one_interruption_changes_nothing() -> None:
    machine = Machine(all_s=1e-4, one_s=2e-4)
    machine.call(times=20)
    machine.seconds[4] = 0.1
    machine.call()
    machine.seconds[4] = 1e-4
    machine.call(times=10)
    assert machine.used[-10:].count(4) >= 9  # the pause was long enough to try one thread again


def test_answers_never_depend_on_the_load() -> None:
    """Where one thread gives other bits than all threads, all are used, however slow they are."""
    machine = Machine(all_s=1e-2, one_s=1e-4, are_equal=False)
    machine.call(times=50)
    assert machine.used.count(1) == 1
    machine.are_equal = True
    machine.call(num_rows=1000, times=50)  # another size of batch is another question
    assert machine.used[-10:] == [1] * 10


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's counters")
def test_the_load_of_others() -> None:
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        load = OtherLoad()
        time.sleep(0.5)
        assert load.cores() > 0.2
    finally:
        loop.kill()
        loop.wait()


def test_the_torch_backends_answer_alike_with_fewer_threads() -> None:
    torch = pytest.importorskip("torch")
    import windrow
    from windrow.nets import ResNet

    game = windrow.make_game("connect4")
    net = ResNet.for_game(game, channels=32, blocks=2, seed=1).eval()
    fixed, free = (
        windrow.evaluators.load(net, game=game, backend="torch", num_threads=count)
        for count in (torch.get_num_threads(), None)
    )
    rows = np.random.default_rng(0).random((64, *game.observation), dtype=np.float32)
    for _ in range(8):
        for mine, other in zip(fixed.evaluate(rows), free.evaluate(rows), strict=True):
            assert np.array_equal(mine, other)
