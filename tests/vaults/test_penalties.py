"""Penalties: the gradient is the value's, and nonsense is refused."""

import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from thresher.privacy.bounds import Bounds
from thresher.vaults.losses import MULTINOMIAL
from thresher.vaults.penalties import NO_PENALTY, Penalty
from thresher.vaults.problem import LinearProblem


@pytest.mark.parametrize("kind", ["ridge", "nonconvex"])
def test_the_gradient_is_the_slope_of_the_value(kind):
    penalty, at = Penalty(kind, 0.7), np.array([0.0, 0.3, -2.0, 10.0])
    np.testing.assert_allclose(penalty.gradient(at), approx_fprime(at, penalty.value, 1e-7), atol=1e-5)


@pytest.mark.parametrize("kind", ["ridge", "nonconvex"])
def test_the_slope_changes_no_faster_than_the_curvature(kind):
    penalty, at = Penalty(kind, 0.7), np.linspace(-5, 5, 10_001)
    assert np.max(np.diff(penalty.gradient(at)) / np.diff(at)) == pytest.approx(penalty.curvature, rel=1e-3)


def test_the_values_are_those_of_the_thesis():
    at = np.array([1.0, -2.0])
    assert Penalty("ridge", 2.0).value(at) == pytest.approx(5.0)
    assert Penalty("nonconvex", 2.0).value(at) == pytest.approx(2 * (1 / 2 + 4 / 5))
    assert NO_PENALTY.value(at) == 0


@pytest.mark.parametrize("strength", [-1.0, math.inf, math.nan, True, "strong"])
def test_impossible_strengths_are_refused(strength):
    with pytest.raises(ValueError, match=r"penalty=.* must be a finite number of at least 0"):
        Penalty("ridge", strength)


def test_unknown_penalties_are_refused():
    with pytest.raises(ValueError, match="'ridge' or 'nonconvex'"):
        Penalty("lasso", 1.0)


def test_intercepts_are_not_penalised():
    problem = LinearProblem(
        10, 2, Bounds(row=1.0), sparsity=2, loss=MULTINOMIAL, outputs=3, penalty=Penalty("ridge", 1.0)
    )
    theta = np.arange(1.0, 10.0)
    np.testing.assert_array_equal(problem.penalty_gradient(theta), [1, 2, 3, 4, 5, 6, 0, 0, 0])
