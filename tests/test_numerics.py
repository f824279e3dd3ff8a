"""exp, log, softmax and random numbers against the mathematics, and against the C++ that must give the same bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from windrow import Search, SearchConfig, evaluators, make_game, numerics
from windrow.numerics import Purpose, Stream, uniforms

# --- exp and log -------------------------------------------------------------------------------------------------


def ulps(got: Any, exact: Any) -> Any:
    """The error of float32 values in units in the last place of the exact value."""
    unit = np.spacing(exact.astype(np.float32)).astype(np.float64)
    return np.abs(got.astype(np.float64) - exact) / unit


def test_exp32_is_within_one_and_a_half_ulps():
    """At 2 million points of [-32, 0]; measured: 1.21.

    The last sum of the series rounds by half a unit of [1, 2), which is a whole unit of a result below 1; the terms
    before it add a little.
    """
    x = np.concatenate([np.linspace(-32, 0, 2_000_001), -np.logspace(-30, 0, 10_000)]).astype(np.float32)
    error = ulps(numerics.exp32(x), np.exp(x.astype(np.float64)))
    assert error.max() < 1.5
    assert numerics.exp32(np.zeros(1, np.float32))[0] == 1.0


def test_exp64_and_log64_are_close_to_the_best_possible():
    """Relative errors of a few 2^-53: the series are cut where they no longer matter."""
    rng = np.random.default_rng(1)
    for x in [*(-rng.uniform(0, 700, 4000)), 0.0, -1e-300, -700.0]:
        assert numerics.exp64(x) == pytest.approx(math.exp(x), rel=4e-16)
    for x in [*np.exp(rng.uniform(-700, 700, 4000)), 1.0, 2.0**-53, 5e-324, math.sqrt(0.5)]:
        assert numerics.log64(x) == pytest.approx(math.log(x), rel=8e-16, abs=4e-16)
    assert numerics.exp64(-701.0) == 0.0
    assert numerics.exp64(0.0) == 1.0
    assert numerics.log64(1.0) == 0.0


# --- Softmax -----------------------------------------------------------------------------------------------------


def exact_softmax(logits: Any) -> Any:
    shifted = np.exp(logits.astype(np.float64) - float(logits.max()))
    return shifted / shifted.sum()


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0, 30.0])
@pytest.mark.parametrize("count", [1, 2, 7, 64, 361])
def test_softmax_is_a_softmax(scale: float, count: int):
    """Against float64, to what float32 allows.

    Logits are up to 32 below the largest: the float32 difference rounds by up to 2^-20, which is the relative error of
    its power; 1.5 ulps of exp32 and the division come on top. Weights are multiples of 2^-36 of the largest.
    """
    rng = np.random.default_rng(count)
    for _ in range(50):
        logits = (rng.normal(0, scale, count)).astype(np.float32)
        priors = numerics.softmax(logits)
        exact = exact_softmax(logits)
        assert priors.dtype == np.float32
        np.testing.assert_allclose(priors, exact, rtol=2.0**-20 + 4e-7, atol=float(exact.max()) * 2.0**-36)
        assert float(priors.sum(dtype=np.float64)) == pytest.approx(1.0, abs=1e-6)


def test_softmax_does_not_depend_on_order():
    """The sum is exact, so a permutation of the logits permutes the priors: bit for bit."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        logits = rng.normal(0, 4, 64).astype(np.float32)
        order = rng.permutation(64)
        assert (numerics.softmax(logits[order]) == numerics.softmax(logits)[order]).all()


def test_softmax_at_the_ends_of_the_range():
    large = np.array([3e38, -3e38, 0.0], np.float32)
    with np.errstate(over="ignore"):
        assert numerics.softmax(large).tolist() == [1.0, 0.0, 0.0]
    assert numerics.softmax(np.full(4, -3e38, np.float32)).tolist() == [0.25] * 4
    assert numerics.softmax(np.array([5.0], np.float32)).tolist() == [1.0]
    # e^-25 = 1.4e-11 is just above 2^-37 = 7.3e-12, e^-26 = 5.1e-12 just below: it rounds to nothing.
    small = numerics.softmax(np.array([0.0, -25.0, -26.0], np.float32))
    assert small[1] == 2.0**-36
    assert small[2] == 0.0


@pytest.mark.parametrize("scale", [0.3, 3.0, 12.0, 1e30])
def test_the_core_has_the_same_softmax(scale: float):
    """Priors of 300 roots, computed by C++, against NumPy: every bit, at every number of legal moves."""
    game = make_game("gomoku", size=5)
    rng = np.random.default_rng(5)
    states, state = [], game.initial_state()
    for action in rng.permutation(25)[:20].tolist():
        states.append(state)
        state = game.apply(state, action)
        if game.to_play(state) < 0:
            break
    states *= 300 // len(states)
    logits = (rng.standard_normal((len(states), 25)) * scale).astype(np.float32)
    evaluator = evaluators.from_function(lambda rows: (logits, np.zeros(len(rows), np.float32)), batched=True)
    results = Search(game, evaluator, SearchConfig(num_simulations=0, engine="vectorized")).run(states)
    for row, result in enumerate(results):
        legal = game.legal_actions(states[row])
        with np.errstate(over="ignore"):
            assert result.prior[legal].tobytes() == numerics.softmax(logits[row, legal]).tobytes()


# --- Random numbers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_philox_has_its_published_answers(counter: str, key: str, expected: str):
    """The known-answer vectors of Random123's kat_vectors for philox4x32, 10 rounds."""
    words = tuple(int(word, 16) for word in counter.split())
    low, high = (int(word, 16) for word in key.split())
    assert len(words) == 4
    got = numerics.philox(words, high << 32 | low)
    assert " ".join(f"{word:08x}" for word in got) == expected


def test_uniform_numbers_are_uniform():
    """4000 draws in 16 equal bins: chi-square with 15 degrees of freedom, below its 99.9 % point 37.7. Fixed seed."""
    stream = Stream(3, 0, 0, Purpose.ROLLOUT, 0)
    draws = np.array([stream.next_uniform() for _ in range(4000)])
    assert 0 < draws.min() and draws.max() < 1
    counts = np.bincount((draws * 16).astype(int), minlength=16)
    assert ((counts - 250.0) ** 2 / 250).sum() < 37.7


def test_normal_numbers_are_normal():
    """4000 draws: the mean within 4/sqrt(4000), the variance within 4*sqrt(2/4000), the fourth moment near 3."""
    stream = Stream(4, 0, 0, Purpose.ROLLOUT, 0)
    draws = np.array([stream.next_normal() for _ in range(4000)])
    assert abs(draws.mean()) < 4 / math.sqrt(4000)
    assert abs(draws.var() - 1) < 4 * math.sqrt(2 / 4000)
    assert abs((draws**4).mean() - 3) < 4 * math.sqrt(96 / 4000)


def test_streams_are_their_own():
    """Every part of the key makes another stream."""

    def first(*key: Any) -> tuple[float, ...]:
        stream = Stream(*key)
        return tuple(stream.next_uniform() for _ in range(3))

    base: tuple[Any, ...] = (1, 2, 3, Purpose.MOVE, 4)
    others = [(9, 2, 3, Purpose.MOVE, 4), (1, 9, 3, Purpose.MOVE, 4), (1, 2, 9, Purpose.MOVE, 4)]
    others += [(1, 2, 3, Purpose.ROLLOUT, 4), (1, 2, 3, Purpose.MOVE, 9), (1, 3, 2, Purpose.MOVE, 4)]
    assert first(*base) == first(*base)
    assert len({first(*key) for key in [base, *others]}) == 7
    assert set(first(*base)).isdisjoint(first(*others[0]))


@pytest.mark.parametrize("alpha", [0.03, 0.3, 1.0, 5.0])
def test_dirichlet_noise_has_the_right_moments(alpha: float):
    """Dirichlet(alpha) on n = 5: each component has mean 1/n and variance (1/n)(1 - 1/n)/(n alpha + 1).

    1500 draws with fixed keys. The mean of a component must be within 4.5 standard errors, 4.5 sqrt(var/1500), and the
    variance, averaged over components, within 15 % (its standard error is below 4 % for all four alphas).
    """
    count, size = 1500, 5
    draws = np.stack([numerics.root_noise(7, tree, 0, alpha, range(size)) for tree in range(count)]).astype(np.float64)
    assert np.abs(draws.sum(axis=1) - 1).max() < 1e-6
    assert draws.min() >= 0
    variance = (1 / size) * (1 - 1 / size) / (size * alpha + 1)
    assert np.abs(draws.mean(axis=0) - 1 / size).max() < 4.5 * math.sqrt(variance / count)
    assert draws.var(axis=0).mean() == pytest.approx(variance, rel=0.15)


def test_dirichlet_with_a_tiny_alpha_is_nearly_one_hot():
    """An alpha of 0.001 draws gammas as small as e^-10000: their logarithms are what is compared."""
    draws = np.stack([numerics.root_noise(1, tree, 0, 0.001, range(6)) for tree in range(60)])
    assert np.isfinite(draws).all()
    assert (draws.max(axis=1) > 0.99).mean() > 0.9
    assert len(set(draws.argmax(axis=1).tolist())) == 6


def test_noise_differs_by_seed_tree_and_move():
    keys = [(1, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1), (2**40, 0, 0)]
    noises = {numerics.root_noise(*key, 0.3, range(7)).tobytes() for key in keys}
    assert len(noises) == len(keys)
    assert (
        numerics.root_noise(1, 0, 0, 0.3, range(7)).tobytes() == numerics.root_noise(1, 0, 0, 0.3, range(7)).tobytes()
    )


def test_noise_of_an_action_hangs_on_the_action():
    """Before they are normalized, draws are keyed by the action: another legal set gives the same proportions."""
    all_of_them = numerics.root_noise(1, 0, 0, 0.5, [0, 1, 2, 3]).astype(np.float64)
    some = numerics.root_noise(1, 0, 0, 0.5, [1, 3]).astype(np.float64)
    assert some[0] / some[1] == pytest.approx(all_of_them[1] / all_of_them[3], rel=1e-5)


@pytest.mark.parametrize("alpha", [0.001, 0.03, 0.3, 1.0, 5.0, 1000.0])
def test_the_core_draws_the_same_noise(alpha: float):
    """Fraction 1 shows the noise itself: every bit, for 40 trees and two searches of each."""
    game = make_game("othello")
    config = SearchConfig(
        num_simulations=0, dirichlet_fraction=1.0, dirichlet_alpha=alpha, seed=2**63 + 5, engine="vectorized"
    )
    search = Search(game, evaluators.UniformEvaluator(), config)
    states = [game.initial_state()] * 40
    legal = game.legal_actions(states[0])
    for move in range(2):
        for tree, result in enumerate(search.run(states if move == 0 else None)):
            want = numerics.root_noise(2**63 + 5, tree, move, alpha, legal)
            # (1 - 1) * prior + 1 * noise
            assert result.prior[legal].tobytes() == want.tobytes()


def test_many_streams_at_once_draw_what_each_draws_alone():
    rng = np.random.default_rng(5)
    for seed in (0, 1, 2**32 + 7, 2**64 - 1):
        trees, moves = rng.integers(0, 2**32, 30), rng.integers(0, 500, 30)
        for purpose, lane in ((Purpose.MOVE, 0), (Purpose.PLAYOUT_CAP, 3)):
            alone = [
                Stream(seed, int(tree), int(move), purpose, lane).next_uniform()
                for tree, move in zip(trees, moves, strict=True)
            ]
            assert uniforms(seed, trees, moves, purpose, lane).tolist() == alone
