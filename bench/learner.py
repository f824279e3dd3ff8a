"""The learner: positions per second of a training step on Connect-4, in every layout and precision, and of sampling.

A step is what `Learner.step` does: forward, backward, clipping, AdamW. "plain" is PyTorch as it comes (contiguous,
float32, one kernel per tensor in the optimizer); the rows below change one thing after another, and the last is what
the learner takes by itself. Compiling (TorchInductor) is measured with the time it takes to compile, since a short run
has to earn that back.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from statistics import median
from typing import Any

import numpy as np
import torch
from machine import keep_freed_memory, num_cores, take_quiet
from report import Figure, number, print_table, run_alone
from torch.nn import functional

import windrow
from windrow.nets import ResNet
from windrow.train import Batch, GameRecord, Learner, Replay, step_rng

SIZES = ((32, 3), (64, 5))
BATCHES = (256, 512, 1024)
COMPILED_BATCH = 512
MIN_SAMPLED_PER_S = 200_000.0


def measure(is_smoke: bool) -> list[Figure]:
    """Print the tables and return the figures."""
    keep_freed_memory()
    torch.set_num_threads(num_cores())
    replay = make_replay(num_games=50 if is_smoke else 1000)
    sampled = measure_sampling(replay, is_smoke)
    figures = [sampled]
    for channels, blocks in SIZES:
        rows: list[tuple[str, ...]] = []
        for name, make in variants().items():
            is_compiled = "compiled" in name
            speeds: list[str] = []
            for batch_size in BATCHES:
                if is_compiled and (is_smoke or batch_size != COMPILED_BATCH):
                    speeds.append("")  # a compilation takes half a minute
                    continue
                batch = replay.sample(batch_size, step_rng(0, batch_size))
                step = make(channels, blocks, batch)
                start = time.perf_counter()
                step()
                first_s = time.perf_counter() - start
                rates = time_steps(step, batch_size, is_smoke)
                speeds.append(number(median(rates)) + (f" ({first_s:.0f} s first)" if is_compiled else ""))
                if name == "the learner" and batch_size == 512:
                    figures.append(Figure.of(f"learner {channels}x{blocks}", rates, unit="positions/s", note="median"))
            rows.append((name, *speeds))
        print_table(
            f"Positions per second learned, ResNet {channels}x{blocks}, {num_cores()} cores, median of the repeats",
            ("how", *(f"batch {size}" for size in BATCHES)),
            rows,
        )
    return figures


def time_steps(step: Callable[[], Any], batch_size: int, is_smoke: bool) -> list[float]:
    """Positions per second of every repeat."""
    num_steps = 1 if is_smoke else max(1, 2048 // batch_size)

    def take() -> float:
        start = time.perf_counter()
        for _ in range(num_steps):
            step()
        return num_steps * batch_size / (time.perf_counter() - start)

    take()
    return take_quiet(take, wanted=5, max_samples=2 if is_smoke else 15, max_s=1.0 if is_smoke else 20.0).values


def variants() -> dict[str, Callable[[int, int, Batch], Callable[[], Any]]]:
    """Ways to make a step, by name."""

    def by_hand(**options: Any) -> Callable[[int, int, Batch], Callable[[], Any]]:
        return lambda channels, blocks, batch: make_step(channels, blocks, batch, **options)

    def learner(channels: int, blocks: int, batch: Batch) -> Callable[[], Any]:
        one = Learner(ResNet.for_game(windrow.make_game("connect4"), channels=channels, blocks=blocks), device="cpu")
        return lambda: one.step(batch)

    return {
        "plain": by_hand(),
        "fused AdamW": by_hand(is_fused=True),
        "channels last": by_hand(is_fused=True, is_channels_last=True),
        "bfloat16": by_hand(is_fused=True, is_bf16=True),
        "channels last, bfloat16": by_hand(is_fused=True, is_channels_last=True, is_bf16=True),
        "the same, compiled": by_hand(is_fused=True, is_channels_last=True, is_bf16=True, is_compiled=True),
        "the learner": learner,
    }


def make_step(
    channels: int,
    blocks: int,
    batch: Batch,
    *,
    is_fused: bool = False,
    is_channels_last: bool = False,
    is_bf16: bool = False,
    is_compiled: bool = False,
) -> Callable[[], Any]:
    """A step written out with PyTorch alone, with one option after another."""
    net = ResNet.for_game(windrow.make_game("connect4"), channels=channels, blocks=blocks).train()
    layout = torch.channels_last if is_channels_last else torch.contiguous_format
    net = net.to(memory_format=layout)
    forward = torch.compile(net) if is_compiled else net
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=is_fused, foreach=False)
    x = torch.from_numpy(batch.observations).contiguous(memory_format=layout)
    policy, value, legal = (torch.from_numpy(part) for part in (batch.policy, batch.value, batch.legal))

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16) if is_bf16 else nullcontext():
            logits, values = forward(x)
        log_policy = functional.log_softmax(logits.float().masked_fill(~legal, -1e9), dim=-1)
        loss = functional.mse_loss(values.float(), value) - (policy * log_policy).sum(-1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()

    return step


def measure_sampling(replay: Replay, is_smoke: bool) -> Figure:
    """Positions per second that one thread draws, observes and mirrors."""
    steps = iter(range(1 << 40))

    def take() -> float:
        start = time.perf_counter()
        for _ in range(4 if is_smoke else 400):
            replay.sample(512, step_rng(0, next(steps)))
        return (4 if is_smoke else 400) * 512 / (time.perf_counter() - start)

    rates = take_quiet(take, wanted=5, max_samples=2 if is_smoke else 15, max_s=1.0 if is_smoke else 20.0).values
    print(f"\nsampling: {number(median(rates))} positions per second, batch 512, one core; {len(replay)} in memory")
    return Figure.of(
        "replay sampling, one core",
        rates,
        unit="positions/s",
        at_least=MIN_SAMPLED_PER_S,
        note="median; batch 512",
    )


def make_replay(num_games: int) -> Replay:
    """Random games of Connect-4, every move recorded."""
    game = windrow.make_game("connect4")
    rng = np.random.default_rng(0)
    replay = Replay(game, 100_000, value_mix=0.25)
    for index in range(num_games):
        state = game.initial_state()
        actions: list[int] = []
        policy: list[Any] = []
        while game.to_play(state) >= 0:
            legal = game.legal_actions(state)
            weights = np.zeros(game.num_actions)
            weights[legal] = rng.dirichlet(np.ones(len(legal)))
            policy.append(weights)
            actions.append(int(rng.choice(legal)))
            state = game.apply(state, actions[-1])
        replay.add(
            GameRecord(
                number=index,
                actions=np.array(actions, np.uint16),
                initial=b"",
                is_recorded=np.ones(len(actions), np.bool_),
                policy=np.array(policy, np.float16),
                root_value=np.zeros(len(actions), np.float16),
                returns=np.array(game.returns(state), np.float32),
                versions=(0, 0),
            )
        )
    return replay


if __name__ == "__main__":
    run_alone(measure, __doc__)
