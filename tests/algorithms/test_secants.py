"""Gradients tell how a loss bends, as far as they stand out of their noise."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.algorithms.secants import SURELY, NoisyGradient, with_secants

TRUE = np.array([[2.0, 0.3, 0.0], [0.3, 1.0, 0.1], [0.0, 0.1, 0.5]])
GUESS = np.eye(3)
MOVE = np.array([1.0, -0.5, 0.25])


def asked(point: np.ndarray, weight: float, noise: np.ndarray | float = 0.0) -> NoisyGradient:
    return NoisyGradient(point[:, None], (TRUE @ point + noise)[:, None], np.eye(3), weight)


def test_without_noise_the_change_of_the_gradient_is_explained() -> None:
    found = with_secants(GUESS, [asked(np.zeros(3), 1e18), asked(MOVE, 1e18)])
    np.testing.assert_allclose(found @ MOVE, TRUE @ MOVE, rtol=1e-9)
    assert np.all(np.linalg.eigvalsh(found) > 0)


def test_three_moves_find_a_quadratic_along_the_last_one() -> None:
    points = [np.zeros(3), *np.cumsum(np.eye(3), axis=0)]
    found = with_secants(GUESS, [asked(point, 1e18) for point in points])
    np.testing.assert_allclose(found[:, 2], TRUE[:, 2], atol=1e-9)
    assert np.abs(found - TRUE).max() < np.abs(GUESS - TRUE).max()


def test_what_may_be_noise_changes_nothing() -> None:
    surprise = (TRUE - GUESS) @ MOVE
    weight = 0.99 * SURELY * 2 * 3 / (surprise @ surprise)  # two gradients of three coordinates
    np.testing.assert_array_equal(with_secants(GUESS, [asked(np.zeros(3), weight), asked(MOVE, weight)]), GUESS)
    found = with_secants(GUESS, [asked(np.zeros(3), 2 * weight), asked(MOVE, 2 * weight)])
    assert np.all(np.abs(found - GUESS).max() > 0)


@pytest.mark.parametrize("seed", range(5))
def test_noise_alone_hardly_ever_corrects(seed: int) -> None:
    """Of 200 pairs of points whose gradients are as expected but for noise: chances of 3 chi-squared sums above five
    times their mean are 2e-3 each, so that more than five corrections have a chance of 2e-6."""
    rng = np.random.default_rng(seed)
    changed = 0
    for _ in range(200):
        before, after = (
            NoisyGradient(point[:, None], (GUESS @ point + rng.normal(size=3))[:, None], np.eye(3), 1.0)
            for point in (np.zeros(3), MOVE)
        )
        changed += not np.array_equal(with_secants(GUESS, [before, after]), GUESS)
    assert changed <= 5


def test_a_move_of_nothing_and_an_unbelievable_curvature_change_nothing() -> None:
    still = [asked(MOVE, 1e18), asked(MOVE, 1e18)]
    np.testing.assert_array_equal(with_secants(GUESS, still), GUESS)
    downhill = [asked(np.zeros(3), 1e18), asked(MOVE, 1e18, -10 * MOVE)]
    np.testing.assert_array_equal(with_secants(GUESS, downhill), GUESS)
