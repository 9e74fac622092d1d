"""The exact composition of choices and answers: never below the truth, close above it, and no planted error passes."""

from __future__ import annotations

import math
import sys
import types
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path

import mpmath
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erfcx, ndtr

from thresher.privacy import composition, profiles
from thresher.privacy.composition import Choice, composed_delta
from thresher.privacy.conversions import gaussian_delta, zcdp_epsilon
from thresher.privacy.profiles import GaussianAnswer, PureAnswer, TiltedAnswer

FINE = 1001
FINEST = 800.5  # cells that take less than .1 s for a few steps, and are as tight as the other ways are right


# -- the same values by other ways: slower, with no grid, from below ---------------------------------------------------


def nothing(g):
    return np.maximum(1 - g, 0.0)


def before_choice(eta, after, fine=FINE):
    """The value before a choice by trying many chords, and many near the best of these: at most the true one."""

    def value(g):
        def best(t):
            p = np.expm1(t - eta) / np.expm1(-eta)
            near, far = (after((np.atleast_1d(g) * np.exp(s)).ravel()).reshape(len(t), -1) for s in (-t, eta - t))
            chords = p * near + (1 - p) * far
            return chords.max(axis=0), t[chords.argmax(axis=0), np.arange(t.shape[1]) % t.shape[1]]

        t = np.linspace(0, eta, fine)[:, None] + np.zeros(np.size(g))
        most, where = best(t)
        return np.maximum(most, best(np.clip(where + eta / fine * np.linspace(-1, 1, fine)[:, None], 0, eta))[0])

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


def problems(module, answers):
    """What is wrong with a version of the composition, or of the answers that it composes."""
    found = []
    kinds = {each: getattr(answers, each.__name__) for each in (GaussianAnswer, PureAnswer, TiltedAnswer)}
    kinds[Choice] = module.Choice
    for name, (steps, epsilon, truth) in CASES.items():
        own = [kinds[type(step)](*vars(step).values()) for step in steps]
        tilted = any(isinstance(step, TiltedAnswer) for step in steps)  # known by a table, and the truth by another
        for cells, above in ((3, 2.0), (4.5, 2.0), (16, 0.05), (128.5, 4e-3 if tilted else 3e-4)):
            delta = module.composed_delta(own, epsilon, cells)
            if not truth * (1 - 1e-6) <= delta <= truth * (1 + above):
                found.append(f"{name} with {cells} cells: {delta} for {truth}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "MOST_NODES", 100_000)
            delta = module.composed_delta(own, epsilon, FINEST)
        if not truth * (1 - 1e-8) <= delta <= truth * (1 + (4e-3 if tilted else 1e-6)):
            found.append(f"{name} with {FINEST} cells: {delta} for {truth}")
    steps = [module.Choice(0.4), answers.GaussianAnswer(0.2)] * 6
    fine = module.composed_delta(steps, 1.0, 96.5)
    found += [f"{cells} cells are below" for cells in (2.5, 3, 5, 8) if module.composed_delta(steps, 1.0, cells) < fine]
    return [*found, *_problems_of_steps(module, answers)]


def _problems_of_steps(module, answers):
    """One step on values that were drawn, against what is read between the same nodes by other means."""
    found, rng = [], np.random.default_rng(0)
    for h, eta in ((0.3, 0.7), (0.3, 0.95), (0.11, 0.3)):
        x = np.arange(-1.5, 3.0, h)
        g = np.exp(x)
        kinks, weights = np.exp(rng.uniform(-2, 4, 6)), rng.dirichlet(np.ones(6))
        values = np.maximum(1 - g[:, None] / kinks, 0.0) @ weights
        grid, known = module._Grid(float(x[0]), h, 1e-30), range(len(x))

        def read(at, g=g, values=values):
            return np.interp(at, np.concatenate([[0.0], g]), np.concatenate([[1.0], values]))

        windows = known, range(-4, len(x) + 3), range(5, 8)
        for what, window in product(("choice", "answer"), windows):
            at = np.exp(x[0] + h * np.arange(window.start, window.stop))
            step = module.Choice(eta) if what == "choice" else answers.GaussianAnswer(0.5)
            truth = before_choice(eta, read)(at) if what == "choice" else _spread(at, read, 0.5)
            after = grid.before(step, values, known, window)
            low, high = after < truth * (1 - 1e-6), after > truth * (1 + 1e-6) + (0.012 if what == "choice" else 0.0)
            if low.any() or high.any():
                found.append(f"a {what} on drawn values, h={h}, {window}: {after[low | high]} for {truth[low | high]}")
    return found


def _spread(g, read, mu):
    """The mean of what is read over the loss of a Gaussian answer, summed over a fine grid of it."""
    z = np.linspace(-9, 9, 40_001)
    weights = np.exp(-z * z / 2)
    return np.array([read(at * np.exp(-mu * z - mu * mu / 2)) @ weights / weights.sum() for at in g])


def test_nothing_is_wrong():
    assert problems(composition, profiles) == []


MUTANTS = {
    "a chord that forgets its other end": ("return cls(near, far - near)", "return cls(near, 0 * far)"),
    "a far end of less weight": ("q, q_later = np.expm1(times)", "q, q_later = 0.9 * np.expm1(times)"),
    "no look inside cells": ("(upper, q_later), (sooner, q), (later, q_later[1:]):", "(upper, q_later):"),
    "no look before a node": (", (later, q_later[1:]):", ":"),
    "no look after a node": (", (sooner, q),", ","),
    "chords in the wrong order": ("np.arange(reach, -1, -1,", "np.arange(0, reach + 1,"),
    "a gain of the wrong sign": ("+ math.tanh(width / 2) * gain", "- math.tanh(width / 2) * gain"),
    "read one node too far": ("in (0, 1, reach + 1, reach + 2))", "in (0, 1, reach + 2, reach + 2))"),
    "read linearly in x": ("far, near = math.expm1(part) / cell,", "far, near = part / self.h,"),
    "half of the range": ("inside = np.square(-np.expm1((within", "inside = 0.5 * np.square(-np.expm1((within"),
    "zero to the left": ("towards = values[0] + (1 - values[0]) *", "towards = values[0] + 0 *"),
    "zero to the right": ("np.full(right, values[-1])", "np.full(right, 0.0)"),
    "kinks to the right only": ("np.maximum(down - up, 0.0)", "np.maximum(down, 0.0)"),
    "kinks without the first": ("[[values[0] - 1.0], steps", "[[0.0], steps"),
    "no excess to the left": ("left = _until(answer, self.smallest, -self.h, most[1])", "left = 0"),
    "lags the other way": ("known.start - left - window.start", "known.start - right - window.start"),
    "a window that is not moved": ("first = known.start - left - window.start", "first = -left"),
    "the mirror image unweighted": ("np.exp(np.minimum(y, 0.0)) * _gaussian", "1.0 * _gaussian"),
    "the last asked outermost": ("in zip(merged[-2::-1], windows", "in zip(merged[:-1], windows"),
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
    right, wrong = MUTANTS[mutant]
    sources = {module.__name__: Path(module.__file__).read_text() for module in (profiles, composition)}
    assert sum(source.count(right) for source in sources.values()) == 1, "the mutant is of a line that is not there"
    for name, source in sources.items():  # answers first: the composition imports them
        broken = types.ModuleType(name)
        monkeypatch.setitem(sys.modules, name, broken)  # dataclasses look their module up
        exec(compile(source.replace(right, wrong), "broken", "exec"), broken.__dict__)  # noqa: S102
    assert problems(sys.modules[composition.__name__], sys.modules[profiles.__name__])


@pytest.mark.parametrize("mu", [1e-3, 0.05, 0.7, 4.0])
def test_a_gaussian_tail_is_not_below_the_truth(mu):
    for y in np.concatenate([[0.0], np.geomspace(1e-3, 30 * mu + mu * mu, 25)]):
        with mpmath.workdps(60):
            a, b = mpmath.mpf(y) / mu - mpmath.mpf(mu) / 2, mpmath.mpf(y) / mu + mpmath.mpf(mu) / 2
            truth = mpmath.ncdf(-a) - mpmath.exp(mpmath.mpf(y)) * mpmath.ncdf(-b)
            found = mpmath.mpf(float(profiles._gaussian_tail(np.array([y]), mu)[0]))
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


def adaptive(nodes, h, epsilon):
    """The delta of choices of ranges h * nodes whose t is the best multiple of h after each answer: a mechanism."""
    x = epsilon + h * np.arange(-sum(nodes), sum(nodes) + 1)
    values = -np.expm1(np.minimum(x, 0.0))
    for m in reversed(nodes):
        n = len(values) - 2 * m
        p = [np.expm1((k - m) * h) / np.expm1(-m * h) for k in range(m + 1)]
        values = np.max(
            [p[k] * values[m - k :][:n] + (1 - p[k]) * values[2 * m - k :][:n] for k in range(m + 1)], axis=0
        )
    return values[0]


def fixed(etas, mu, epsilon, parts):
    """The delta of two-outcome choices with t = parts * etas, whatever was answered, and a Gaussian answer."""
    loss, chance = np.zeros(1), np.ones(1)
    for eta, t in zip(etas, etas * parts, strict=True):
        q = np.expm1(t) / np.expm1(eta)
        loss, chance = np.concatenate([loss + t, loss + t - eta]), np.concatenate([chance * (1 - q), chance * q])
    x = epsilon - loss
    return float(chance @ np.maximum(ndtr(mu / 2 - x / mu) - np.exp(x) * ndtr(-mu / 2 - x / mu), 0.0))


def test_no_plan_that_was_drawn_gives_away_more_than_its_price():
    rng, closest = np.random.default_rng(0), []
    for _ in range(400):
        cells = rng.choice([1.0, 2.5, 4, 8.5, 16.5, 48.5])
        h, nodes = np.exp(rng.uniform(-7, -3)), rng.integers(1, 40, rng.integers(2, 25))
        epsilon = h * nodes.sum() * rng.uniform(0.05, min(0.7, 3 / math.sqrt(len(nodes))))
        truth = adaptive(nodes, h, epsilon)
        claim = composed_delta([Choice(h * m) for m in nodes], epsilon, cells)
        assert claim >= truth
        closest += [claim / truth] * int(cells == 48.5 and truth > 1e-12)

        etas, mu = np.exp(rng.uniform(-4, 0, rng.integers(1, 10))), np.exp(rng.uniform(-3, 0))
        steps = [Choice(float(eta)) for eta in etas] + [GaussianAnswer(mu * math.sqrt(part)) for part in (0.3, 0.7)]
        epsilon = rng.uniform(0.1, 1) * (0.5 * etas.sum() + mu)
        claim = composed_delta([steps[at] for at in rng.permutation(len(steps))], epsilon, cells)
        assert claim >= fixed(etas, mu, epsilon, rng.uniform(0.3, 0.7, len(etas))) * (1 - 1e-12)
    assert np.median(closest) < 1.02


def test_what_reveals_nothing_costs_nothing():
    assert composed_delta([], 0.1) == 0.0
    assert composed_delta([Choice(0.0), GaussianAnswer(0.0)], 0.1) == 0.0


def _before_choice_in_many_digits(eta, h, values):
    """The same formulas where round-off is nothing: what a choice makes of the values, and the largest that is read."""
    eta, h, values = mpmath.mpf(eta), mpmath.mpf(h), [mpmath.mpf(float(each)) for each in values]
    reach = int(mpmath.floor(eta / h))
    part, whole, cell = eta - reach * h, mpmath.expm1(eta), mpmath.expm1(h)

    def at(j):
        return values[0] + (1 - values[0]) * -mpmath.expm1(h * j) if j < 0 else values[min(j, len(values) - 1)]

    def between(j, x):
        return at(j) + (at(j + 1) - at(j)) * mpmath.expm1(x) / cell

    for j in range(len(values)):
        ends = []
        for i in range(reach + 1):
            ends += [(i * h, at(j - i), between(j - i + reach, part))]
            ends += [(part + i * h, between(j - i - 1, h - part), at(j - i + reach))]
        chords = [(t, u + mpmath.expm1(t) / whole * (v - u), u + (u - v) / whole) for t, u, v in ends]
        best = max(value for _, value, _ in chords)
        for (t, one, low), (later, other, high) in pairwise(chords):
            share = 1 / (1 + mpmath.exp(later - t))
            gain = mpmath.tanh((later - t) / 2) * max(high - low, 0)
            best = max(best, share * other + (1 - share) * one + gain)
        yield best, at(j - reach - 1)


@pytest.mark.parametrize("eta", [1e-9, 1e-5, 0.02, 0.7, 5.0, 150.0])
@pytest.mark.parametrize("cells", [0.3, 1.0, 1.5, 2.9999999, 3.0000001, 7.5])
def test_what_is_added_for_round_off_is_far_more_than_it_is(eta, cells):
    rng, h = np.random.default_rng(0), eta / cells
    for _ in range(4):
        values = np.sort(np.exp(-30 * rng.random() * rng.random(6)))[::-1].copy()
        found = composition._Grid(1.0, h, 1e-30)._before_choice(eta, values, range(6), range(6))
        with mpmath.workdps(80):
            for ours, (exact, largest) in zip(found, _before_choice_in_many_digits(eta, h, values), strict=True):
                added = 2.0**-47 * (3 + eta + eta / h) * largest
                assert 0.9 * added <= mpmath.mpf(float(ours)) - exact <= 1.1 * added


def test_the_functions_that_round_off_relies_on_are_as_right_as_is_said():
    """exp, expm1 and tanh within 2^-50, erfcx and ndtr within 5e-14, where the recursion asks for them.

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
        (ndtr, mpmath.ncdf, tails[tails > -10], profiles.SPECIAL / 2),
        (erfcx, lambda x: mpmath.exp(x * x) * mpmath.erfc(x), tails[tails > 0], profiles.SPECIAL / 2),
    ]
    with mpmath.workdps(60):
        for ours, truth, places, within in checked:
            for x, found in zip(places, ours(places), strict=True):
                right = truth(mpmath.mpf(float(x)))
                assert abs(mpmath.mpf(float(found)) - right) <= within * abs(right), (ours, x)
