"""The bound on what a tilted minimiser reveals, against exact divergences of rows that bend the objective at will.

In units of the tilt's sd, at the noise c that the other rows would have needed, a row x with gradient D along x needs
b = c + D x (docs/guarantees.md). D runs from -mu/2 to mu/2, or for add-remove from -mu to mu, at a slope of at most k.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm

from thresher.privacy.profiles import TiltedAnswer

EPSILONS = np.array([-1.2, -0.5, -0.1, 0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.4])
T = np.linspace(-12, 12, 20_001)


def ramps(reach, slope, places):
    """Gradients that run from -reach to reach at this slope, from each of ``places`` on."""
    for start in places:
        yield np.clip(-reach + slope * (T - start), -reach, reach)


def divergences(log_p, log_q, weights):
    """H at each of EPSILONS."""
    p = np.exp(log_p) * weights
    return np.array([np.sum(p * np.maximum(-np.expm1(e + log_q - log_p), 0.0)) for e in EPSILONS])


def profile(jacobian, mu):
    return TiltedAnswer(jacobian, mu).excess(EPSILONS) - np.expm1(np.minimum(EPSILONS, 0.0))


def law(gradient):
    """The log density of c, one row's gradient being this; its slope by differences."""
    return norm.logpdf(T + gradient) + np.log1p(np.gradient(gradient, T))


def worst(jacobian, mu, adjacency, noise=1.0, steeper=1.0):
    """The largest divergences, either way round, over ramps; with a smaller ``noise`` or a ``steeper`` gradient."""
    slope, found = steeper * np.expm1(jacobian), np.zeros(len(EPSILONS))
    reach = mu / noise / (2 if adjacency == "replace-one" else 1)
    width = T[1] - T[0]
    others = (-reach, reach) if adjacency == "replace-one" else (0.0,)
    for gradient in ramps(reach, slope, np.linspace(-7, 6, 66)):
        for other in others:
            p, q = law(gradient), norm.logpdf(T + other)
            found = np.maximum(found, np.maximum(divergences(p, q, width), divergences(q, p, width)))
    return found


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
@pytest.mark.parametrize(("jacobian", "mu"), [(0.4, 0.17), (0.1, 0.2), (0.9, 0.4), (0.02, 0.5)])
def test_no_row_beats_the_bound(jacobian, mu, adjacency):
    assert np.all(worst(jacobian, mu, adjacency) <= profile(jacobian, mu) * (1 + 1e-3) + 1e-9)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_the_bound_is_near_the_worst_row(adjacency):
    """At the epsilons that matter; and so a fifth less noise, or a gradient half as steep again, is caught."""
    bound, here = profile(0.4, 0.17), EPSILONS >= 1.0
    assert np.all(bound[here] <= 4 * worst(0.4, 0.17, adjacency)[here])
    assert np.any(worst(0.4, 0.17, adjacency, noise=0.8)[here] > bound[here])
    assert np.any(worst(0.4, 0.17, adjacency, steeper=1.5)[here] > bound[here])


@pytest.mark.parametrize("correlation", [-1.0, -0.6, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("bend", [-1.5, 0.0, 1.0])
def test_no_two_rows_of_any_angle_beat_the_bound(correlation, bend):
    """In two dimensions. The gradient of x rises along x at a place that depends on what lies across as it likes; that
    of the other row is saturated, to the side that tells most."""
    jacobian, mu = 0.4, 0.17
    nu, slope, across = mu / 2, np.expm1(jacobian), np.sqrt(1 - correlation**2)
    t, w = np.meshgrid(np.linspace(-8, 8, 1601), np.linspace(-8, 8, 321), indexing="ij")
    area, bound = (t[1, 0] - t[0, 0]) * (w[0, 1] - w[0, 0]), profile(jacobian, mu)
    for start in (-5.0, -3.7, -3.3, -1.0, 2.5):
        gradient = np.clip(-nu + slope * (t - start - bend * w), -nu, nu)
        steep = np.where(np.abs(gradient) < nu, slope, 0.0)
        p = norm.logpdf(t + gradient) + norm.logpdf(w) + np.log1p(steep)
        for side in (-nu, nu):
            q = norm.logpdf(t + side * correlation) + norm.logpdf(w + side * across)
            for one, other in ((p, q), (q, p)):
                assert np.all(divergences(one, other, area) <= bound * (1 + 0.02) + 1e-9)


def test_neighbours_are_so_either_way_round():
    """H_g(P, Q) = 1 - g + g H_(1/g)(Q, P), for the bound as for what it bounds; and it falls on both sides of 0."""
    y, tilt = np.linspace(0, 3, 200), TiltedAnswer(0.4, 0.17)
    assert np.allclose(tilt.excess(-y), np.exp(-y) * tilt.excess(y), rtol=1e-9)
    assert np.all(np.diff(tilt.excess(y)) <= 0)
    assert np.all(np.diff(tilt.excess(-y)) <= 0)


def test_without_a_jacobian_there_is_only_the_shift():
    y = np.array([0.2, 0.6])
    assert np.all(TiltedAnswer(1e-9, 0.2).excess(y) <= TiltedAnswer(0.0, 0.2).excess(y) * (1 + 1e-6))
