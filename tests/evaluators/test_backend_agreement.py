"""The bounds that reduced precision must keep, worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from windrow.evaluators.backends.agreement import MAX_KL, MAX_MEAN_KL, MAX_VALUE_ERROR, compare

ALL = np.ones((1, 2), np.bool_)


def test_hand_worked_divergence() -> None:
    """Policies (1/2, 1/2) and (1/4, 3/4): KL = 1/2 ln 2 + 1/2 ln 2/3 = 1/2 ln 4/3."""
    exact = np.log([[0.5, 0.5]]), np.array([0.25])
    other = np.log([[0.25, 0.75]]), np.array([[0.5]])
    agreement = compare(exact, other, ALL)
    assert agreement.mean_kl == agreement.max_kl == pytest.approx(0.5 * math.log(4 / 3))
    assert agreement.max_value_error == pytest.approx(0.25)
    assert agreement.num_positions == 1 and not agreement.holds


def test_logits_are_unnormalized() -> None:
    logits, values = np.array([[1.0, 2.0]]), np.array([0.0])
    assert compare((logits, values), (logits + 100.0, values), ALL).max_kl == pytest.approx(0.0, abs=1e-12)


def test_illegal_moves_do_not_count() -> None:
    legal = np.array([[True, True, False]])
    exact = np.array([[0.0, 1.0, 5.0]]), np.array([0.0])
    other = np.array([[0.0, 1.0, -np.inf]]), np.array([0.0])
    assert compare(exact, other, legal).max_kl == 0.0
    assert not compare(exact, other, np.ones((1, 0), np.bool_)).holds


@pytest.mark.parametrize("poison", [np.nan, np.inf])
def test_nothing_agrees_with_nan(poison: float) -> None:
    exact = np.zeros((2, 2)), np.zeros(2)
    assert compare(exact, exact, np.ones((2, 2), np.bool_)).holds
    bad_logits = np.array([[0.0, 0.0], [poison, 0.0]])
    assert not compare(exact, (bad_logits, np.zeros(2)), np.ones((2, 2), np.bool_)).holds
    assert not compare(exact, (np.zeros((2, 2)), np.array([0.0, poison])), np.ones((2, 2), np.bool_)).holds


def test_each_bound_counts_by_itself() -> None:
    legal = np.ones((1000, 2), np.bool_)
    exact = np.zeros((1000, 2)), np.zeros(1000)

    def shifted(count: int, kl: float) -> np.ndarray:
        """`count` rows whose divergence is about `kl`: (d^2)/8 for a logit moved by d."""
        logits = np.zeros((1000, 2))
        logits[:count, 0] = math.sqrt(8 * kl)
        return logits

    assert compare(exact, (shifted(1000, 0.9 * MAX_MEAN_KL), np.zeros(1000)), legal).holds
    assert not compare(exact, (shifted(1000, 1.1 * MAX_MEAN_KL), np.zeros(1000)), legal).holds
    assert compare(exact, (shifted(1, 0.9 * MAX_KL), np.zeros(1000)), legal).holds
    assert not compare(exact, (shifted(1, 1.1 * MAX_KL), np.zeros(1000)), legal).holds
    assert compare(exact, (exact[0], np.full(1000, 0.9 * MAX_VALUE_ERROR)), legal).holds
    assert not compare(exact, (exact[0], np.full(1000, 1.1 * MAX_VALUE_ERROR)), legal).holds
    text = str(compare(exact, exact, legal))
    assert all(f"bound {bound:g}" in text for bound in (MAX_MEAN_KL, MAX_KL, MAX_VALUE_ERROR))
