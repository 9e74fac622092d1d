"""The exact composition of choices and answers: never below the truth, close above it, and no planted error passes."""

from __future__ import annotations

import math
import sys
import types
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfcx, ndtr

from thresher.privacy import composition
from thresher.privacy.composition import Choice, GaussianAnswer, PureAnswer, TiltedAnswer, composed_delta
from thresher.privacy.conversions import gaussian_delta, zcdp_epsilon

FINE = 1001


# -- the same values by other ways: slower, with no grid, from below ---------------------------------------------------


def nothing(g):
    return np.maximum(1 - g, 0.0)


def before_choice(eta, after, fine=FINE):
    """The value before a choice by trying many chords: at most the true one."""

    def value(g):
        t = np.linspace(0, eta, fine)[:, None]
        p = np.expm1(t - eta) / np.expm1(-eta)
        near, far = (after((np.atleast_1d(g) * np.exp(s)).ravel()).reshape(fine, -1) for s in (-t, eta - t))
        return (p * near + (1 - p) * far).max(axis=0)

    return value


def before_gaussian(mu, after, kinks=()):
    """The value before a Gaussian answer, as the mean over its loss."""

    def at(g):
        def weighted(z):
            return float(after(g * np.exp(-mu * z - mu * mu / 2))[0]) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

        breaks = sorted((math.log(g) - kink - mu * mu / 2) / mu for kink in (0.0, *kinks))
        places = [-12.0, *[z for z in breaks if -12 < z < 12], 12.0]
        return math.fsum(quad(weighted, a, b, epsabs=1e-10, limit=200)[0] for a, b in pairwise(places))

    return lambda g: np.array([at(float(each)) for each in np.atleast_1d(g)])


@lru_cache(maxsize=1)
def tail_of_means():
    """The largest tail of (|Z1| + |Z2|)/2 over many correlations, at many places."""
    s, w = np.linspace(0, 12, 3001), np.linspace(0.5, 1 - 1e-9, 400)[:, None]
    return s, np.max(1 - (1 - 2 * ndtr(-s / np.sqrt(w))) * (1 - 2 * ndtr(-s / np.sqrt(1 - w))), axis=0)


def summed_tilt(jacobian, mu, y):
    """E (1 - e^(y - loss))+ as a mean over the largest tail that there can be."""
    s, tail = tail_of_means()
    losses = jacobian + mu * mu / 2 + mu * (s[1:] + s[:-1]) / 2
    return float(np.maximum(-np.expm1(y - losses), 0.0) @ -np.diff(tail))


@lru_cache(maxsize=4096)
def tilt(jacobian, mu, y):
    """The smaller of the two bounds, by quadrature."""
    if y < 0:
        return -math.expm1(y) + math.exp(y) * tilt(jacobian, mu, -y)
    summed = summed_tilt(jacobian, mu, y)
    if y <= jacobian:
        return summed

    def moving(d):
        rest = y - jacobian
        order = (rest + math.sqrt(rest**2 + 4 * d**2)) / (2 * d**2) - 0.5
        powers = (math.exp(order * ((order + 1) * each**2 / 2 - rest)) for each in (d, mu - d))
        return (order / (1 + order)) ** order / (1 + order) * sum(powers)

    part = quad(moving, mu / 2, mu, epsabs=0, epsrel=1e-7)[0] * 2 / -math.expm1(-jacobian) / math.sqrt(2 * math.pi)
    return min(summed, summed_tilt(0.0, mu, y) + part)


def last_tilt(jacobian, mu):
    return np.vectorize(lambda g: tilt(jacobian, mu, round(math.log(g), 12)))


def tilt_before_choice(jacobian, mu, eta, epsilon):
    """The mean over v of what a tilt makes of (1 - g/v)+, the value before a choice being a mean of these."""

    def weighted(log_v):
        bend = math.exp(-log_v / 2 + eta / 2) / 2 / math.expm1(eta)  # v times the second derivative, dv = v d log v
        return bend * math.exp(log_v) * tilt(jacobian, mu, epsilon - log_v)

    return quad(weighted, -eta, eta, epsabs=0, epsrel=1e-5)[0]


def one_choice(eta, epsilon):
    return (math.exp(eta / 2) - math.exp(epsilon / 2)) ** 2 / math.expm1(eta)


CASES = {
    "one choice": ([Choice(0.7)], 0.3, one_choice(0.7, 0.3)),
    "two choices": ([Choice(0.5)] * 2, 0.4, before_choice(0.5, before_choice(0.5, nothing))(math.exp(0.4))[0]),
    "a large one, then a small one": (
        [Choice(0.9), Choice(0.2)], 0.5, before_choice(0.9, before_choice(0.2, nothing))(math.exp(0.5))[0],
    ),
    "a small one, then a large one": (
        [Choice(0.2), Choice(0.9)], 0.5, before_choice(0.2, before_choice(0.9, nothing))(math.exp(0.5))[0],
    ),
    "three choices": (
        [Choice(0.9), Choice(0.2), Choice(0.5)], 0.5,
        before_choice(0.9, before_choice(0.2, before_choice(0.5, nothing, 121), 121), 121)(math.exp(0.5))[0],
    ),
    "an answer, then a choice": (
        [GaussianAnswer(0.4), Choice(0.6)], 0.5,
        before_gaussian(0.4, before_choice(0.6, nothing), (-0.6, 0.6))(math.exp(0.5))[0],
    ),
    "a choice, then an answer": (
        [Choice(0.6), GaussianAnswer(0.4)], 0.5,
        before_choice(0.6, lambda g: np.vectorize(lambda x: gaussian_delta(0.4, x))(np.log(g)))(math.exp(0.5))[0],
    ),
    "answers alone": ([GaussianAnswer(0.3), GaussianAnswer(0.4)], 0.5, gaussian_delta(0.5, 0.5)),
    "randomised response, then a choice": (
        [PureAnswer(0.3), Choice(0.6)], 0.5,
        (math.exp(0.3) * before_choice(0.6, nothing)(math.exp(0.2)) + before_choice(0.6, nothing)(math.exp(0.8)))[0]
        / (1 + math.exp(0.3)),
    ),
    "a tilt": ([TiltedAnswer(0.05, 0.6)], 0.6, tilt(0.05, 0.6, 0.6)),
    "a tilt with a steep Jacobian": ([TiltedAnswer(0.4, 0.16)], 1.0, tilt(0.4, 0.16, 1.0)),
    "a choice, then a tilt": (
        [Choice(0.6), TiltedAnswer(0.05, 0.6)], 0.35,
        before_choice(0.6, last_tilt(0.05, 0.6), 101)(math.exp(0.35))[0],
    ),
    "a choice, then a tilt with a steep Jacobian": (
        [Choice(0.3), TiltedAnswer(0.4, 0.16)], 0.8,
        before_choice(0.3, last_tilt(0.4, 0.16), 101)(math.exp(0.8))[0],
    ),
    "a tilt, then a choice": (
        [TiltedAnswer(0.05, 0.6), Choice(0.6)], 0.35, tilt_before_choice(0.05, 0.6, 0.6, 0.35),
    ),
    "a tilt with a steep Jacobian, then a choice": (
        [TiltedAnswer(0.4, 0.16), Choice(0.3)], 0.8, tilt_before_choice(0.4, 0.16, 0.3, 0.8),
    ),
}  # fmt: skip


def problems(module):
    """What is wrong with a version of the module."""
    found = []
    kinds = {each: getattr(module, each.__name__) for each in (Choice, GaussianAnswer, PureAnswer, TiltedAnswer)}
    for name, (steps, epsilon, truth) in CASES.items():
        own = [kinds[type(step)](*vars(step).values()) for step in steps]
        for cells, above in ((3, 2.0), (4.5, 2.0), (16, 0.05), (128.5, 4e-3)):
            delta = module.composed_delta(own, epsilon, cells)
            if not truth * (1 - 1e-6) <= delta <= truth * (1 + above):
                found.append(f"{name} with {cells} cells: {delta} for {truth}")
    steps = [module.Choice(0.4), module.GaussianAnswer(0.2)] * 6
    fine = module.composed_delta(steps, 1.0, 96.5)
    found += [f"{cells} cells are below" for cells in (2.5, 3, 5, 8) if module.composed_delta(steps, 1.0, cells) < fine]
    return [*found, *_problems_of_steps(module)]


def _problems_of_steps(module):
    """One step on values that were drawn, against what is read between the same nodes by other means."""
    found, rng = [], np.random.default_rng(0)
    for h, eta in ((0.3, 0.7), (0.3, 0.95), (0.11, 0.3)):
        x = np.arange(-1.5, 3.0, h)
        g = np.exp(x)
        kinks, weights = np.exp(rng.uniform(-2, 2, 6)), rng.dirichlet(np.ones(6))
        values = np.maximum(1 - g[:, None] / kinks, 0.0) @ weights
        grid = module._Grid(h, x, 10, 1e-30)

        def read(at, g=g, values=values):
            return np.interp(at, np.concatenate([[0.0], g]), np.concatenate([[1.0], values]))

        for what, step, truth in (
            ("choice", module.Choice(eta), before_choice(eta, read)(g)),
            ("answer", module.GaussianAnswer(0.5), _spread(g, read, 0.5)),
        ):
            after = grid.before(step, values)
            low, high = after < truth * (1 - 1e-6), after > truth * (1 + 1e-6) + (0.012 if what == "choice" else 0.0)
            if low.any() or high.any():
                found.append(f"a {what} on drawn values, h={h}: {after[low | high]} for {truth[low | high]}")
    return found


def _spread(g, read, mu):
    """The mean of what is read over the loss of a Gaussian answer, summed over a fine grid of it."""
    z = np.linspace(-9, 9, 40_001)
    weights = np.exp(-z * z / 2)
    return np.array([read(at * np.exp(-mu * z - mu * mu / 2)) @ weights / weights.sum() for at in g])


def test_nothing_is_wrong():
    assert problems(composition) == []


MUTANTS = {
    "a chord that forgets its other end": ("cls(p * near + q * far,", "cls(p * near + p * far,"),
    "a far end of no weight": (
        "q = (np.expm1(times) / math.expm1(eta))",
        "q = (0.9 * np.expm1(times) / math.expm1(eta))",
    ),
    "no look inside cells": ("(lower.values, upper.values, *within)", "(lower.values, upper.values)"),
    "chords in the wrong order": ("ahead_at[below, some][::-1])", "ahead_at[below, some])"),
    "a gain of the wrong sign": ("+ math.tanh(width / 2) * gain", "- math.tanh(width / 2) * gain"),
    "read one node too far": ("ahead = _read(here, reach,", "ahead = _read(here, reach + 1,"),
    "read linearly in x": ("math.expm1(part) / math.expm1(self.h)", "part / self.h"),
    "half of the range": ("inside = np.square(-np.expm1((within", "inside = 0.5 * np.square(-np.expm1((within"),
    "zero to the left": ("left = values[0] + (1 - values[0]) *", "left = values[0] + 0 *"),
    "kinks to the right only": ("np.maximum(down - up, 0.0)", "np.maximum(down, 0.0)"),
    "kinks without the first": ("[[values[0] - 1.0], steps", "[[0.0], steps"),
    "no excess to the left": ("left = _until(answer, self.smallest, -self.h, len(values))", "left = 0"),
    "lags the other way": ("[left : left + len(values)]", "[right : right + len(values)]"),
    "the mirror image unweighted": ("np.exp(np.minimum(y, 0.0)) * _gaussian", "1.0 * _gaussian"),
    "the last asked outermost": ("for step in reversed(merged[:-1]):", "for step in merged[:-1]:"),
    "Gaussians that add up": ("math.hypot(step.mu, last.mu)", "max(step.mu, last.mu)"),
    "randomised response at half": ("/ (1 + math.exp(-most))", "/ (2 + math.exp(-most))"),
    "one correlation of all": ("w = np.linspace(0.5, 1.0, 513)", "w = np.linspace(0.98, 1.0, 513)"),
    "a tilt without its drift": ("(jacobian + self.mu**2 / 2) * (1 + 8", "jacobian * (1 + 8"),
    "a tilt without its Jacobian": ("least = (jacobian + self.mu**2 / 2)", "least = (self.mu**2 / 2)"),
    "one side of the tilt": ("return 2 * _tails_apart(s, s + mu)", "return 1.0 * _tails_apart(s, s + mu)"),
    "cells of the tilt the wrong way": ("keep * at_places[-1]", "keep * at_places[0]"),
    "a tilt without its left": ("far = np.abs(y)", "far = np.where(y < 0, 50.0, y)"),
    "a tilt whose left is its right": (
        "np.exp(np.minimum(y, 0.0)) * np.minimum(self._summed",
        "np.exp(-np.maximum(y, 0.0)) * np.minimum(self._summed",
    ),
    "a Jacobian for nothing": ("self._summed(far, 0.0) + self._moving(far)", "self._summed(far, 0.0)"),
    "a Jacobian that is all": ("self._summed(far, 0.0) + self._moving(far)", "self._moving(far)"),
    "a Jacobian that counts twice": ("left = (y - jacobian -", "left = (y - 2 * jacobian -"),
    "half of the way of a gradient": ("np.linspace(self.mu / 2, self.mu,", "np.linspace(self.mu / 4, self.mu / 2,"),
    "one way of a gradient": ("math.sqrt(2 / math.pi)", "math.sqrt(0.5 / math.pi)"),
    "a power of another order": ("order * (order + 1) * d**2 / 2", "order * order * d**2 / 2"),
    "a constant of another order": ("- np.log1p(order)", "- 2 * np.log1p(order)"),
    "a Jacobian without its slope": ("/ -math.expm1(-jacobian)\n", "\n"),
    "less than the chord": ("(ends / 2 * np.diff(nodes))", "(ends / 2.1 * np.diff(nodes))"),
    "a share for the other end": ("share = 1 / (1 + math.exp(width))", "share = 0.0"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_planted_error_is_caught(mutant, monkeypatch):
    source = Path(composition.__file__).read_text()
    right, wrong = MUTANTS[mutant]
    assert source.count(right) == 1, "the mutant is of a line that is no longer there"
    broken = types.ModuleType("broken_composition")
    monkeypatch.setitem(sys.modules, broken.__name__, broken)  # dataclasses look their module up
    exec(compile(source.replace(right, wrong), "broken", "exec"), broken.__dict__)  # noqa: S102
    assert problems(broken)


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.7, 4.0])
def test_a_gaussian_tail_is_not_below_the_truth(mu):
    for y in np.concatenate([[0.0], np.geomspace(1e-3, 30 * mu + mu * mu, 25)]):
        with mpmath.workdps(60):
            a, b = mpmath.mpf(y) / mu - mpmath.mpf(mu) / 2, mpmath.mpf(y) / mu + mpmath.mpf(mu) / 2
            truth = mpmath.ncdf(-a) - mpmath.exp(mpmath.mpf(y)) * mpmath.ncdf(-b)
            found = mpmath.mpf(float(composition._gaussian_tail(np.array([y]), mu)[0]))
            assert truth <= found <= truth * (1 + mpmath.mpf(1e-8)) + mpmath.mpf(1e-299)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_any_release_may_be_left_out(epsilon):
    steps = [Choice(0.05), GaussianAnswer(0.1), Choice(0.08)] * 5
    whole = composed_delta(steps, epsilon)
    for at in range(len(steps)):
        assert composed_delta(steps[:at] + steps[at + 1 :], epsilon) <= whole


def test_less_than_zcdp_and_more_than_nothing():
    steps = [Choice(0.1)] * 60
    rho = 60 * 0.1**2 / 8
    delta = 1e-6
    assert composed_delta(steps, zcdp_epsilon(rho, delta)) < 0.3 * delta
    assert composed_delta(steps, 60 * 0.1 * 1.001) == 0.0 or composed_delta(steps, 60 * 0.1 * 1.001) < 1e-30


def test_what_reveals_nothing_costs_nothing():
    assert composed_delta([], 0.1) == 0.0
    assert composed_delta([Choice(0.0), GaussianAnswer(0.0)], 0.1) == 0.0


def test_the_functions_that_round_off_relies_on_are_as_right_as_is_said():
    """exp, expm1 and tanh within 2^-50, erfcx and ndtr within 1e-13, where the recursion asks for them.

    Further to the left ndtr is only added to what is above .01.
    """
    rng = np.random.default_rng(0)
    small = np.concatenate([-np.geomspace(1e-12, 700, 1500), rng.uniform(-5, 5, 1500), np.geomspace(1e-12, 20, 500)])
    steps = np.geomspace(1e-12, 20, 500)
    tails = np.concatenate([np.geomspace(1e-9, 40, 1000), -np.geomspace(1e-9, 40, 1000)])
    checked = [
        (np.exp, mpmath.exp, small, 2.0**-50),
        (np.expm1, mpmath.expm1, small, 2.0**-50),
        (np.vectorize(math.expm1), mpmath.expm1, small, 2.0**-50),
        (np.vectorize(math.tanh), mpmath.tanh, steps, 2.0**-50),
        (ndtr, mpmath.ncdf, tails[tails > -10], composition.SPECIAL),
        (erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), tails[tails > 0], composition.SPECIAL),
    ]
    with mpmath.workdps(60):
        for ours, truth, places, within in checked:
            for x, found in zip(places, ours(places), strict=True):
                right = truth(mpmath.mpf(float(x)))
                assert abs(mpmath.mpf(float(found)) - right) <= within * abs(right), (ours, x)
