"""Attempts to make a followed walk draw from another law than the exponential mechanism's, or for another price."""

import math

import numpy as np
import pytest
from scipy import sparse

from inside import clipped_residuals_of, engine_of, noise_of, set_shares, shares_of, targets_of, walk_of
from thresher.algorithms.frank_wolfe import steps
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GumbelVertex
from thresher.vaults import CentralVault, kernels
from thresher.vaults.central.rows import Shares
from thresher.vaults.central.vertices import Follower
from thresher.vaults.losses import LOGISTIC, SQUARED, loss_named
from thresher.vaults.polytopes import L1Ball, Walk
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

compiled_only = pytest.mark.skipif(kernels.compiled() is None, reason="the compiled loops could not be built here")


def make_vault(X, y, problem, release):
    plan = Plan("test", problem, Budget(math.inf, 1e-6), (release,))
    return CentralVault(sparse.csr_array(X), y, plan, NoiseSource(0))


def runs(answer, low=0.0, high=1 - 2.0**-53):
    """(value, length) of the stretches on which a function of one number is constant, by bisection.

    A value that is found at both ends of a stretch is taken to be that of all of it.
    """
    first, last = answer(low), answer(high)
    if first == last:
        return [(first, high - low)]
    if high - low < 1e-14:
        return [(first, high - low)]
    middle = (low + high) / 2
    left, right = runs(answer, low, middle), runs(answer, middle, high)
    if left[-1][0] == right[0][0]:
        left[-1:], right = [(right[0][0], left[-1][1] + right[0][1])], right[1:]
    return left + right


def middles(stretches):
    """A point inside each stretch, with its value and length."""
    ends = np.cumsum([length for _, length in stretches])
    return [(end - length / 2, value, length) for (value, length), end in zip(stretches, ends, strict=True)]


def law_of(state, columns):
    """The probability of each column and sign in one round of tries, measured on the four uniform numbers it takes."""

    def ask(*uniforms):
        return state.draw(np.array(uniforms))[1:]

    law = np.zeros((columns, 2))
    for level, _, chance in middles(runs(lambda u: ask(u, 0.0, 0.0, 0.5)[0])):
        for place, column, share in middles(runs(lambda u, level=level: ask(level, u, 0.0, 0.5)[0])):
            if column < 0:
                continue
            tries = runs(lambda u, level=level, place=place: ask(level, place, u, 0.5)[0] >= 0)
            signs = runs(lambda u, level=level, place=place: ask(level, place, 0.0, u)[1])
            accepted = sum(length for yes, length in tries if yes)
            for down, length in signs:
                law[column, int(down)] += chance * share * accepted * length
    return law


def random_case(seed):
    """A vault, a ball, a clip and a release: rows from empty to dense, in both precisions, with and without noise."""
    rng = np.random.default_rng(seed)
    n, d, loss = int(rng.integers(2, 30)), int(rng.integers(1, 7)), str(rng.choice(["squared", "logistic"]))
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < rng.choice([0.1, 0.4, 1.0])) * rng.choice([0.01, 1, 100])
    y = rng.normal(size=n) if loss == "squared" else (rng.random(n) < rng.random()).astype(float)
    low, largest = float(rng.choice([-3, -0.5, 1])), float(rng.choice([0.1, 1, 50]))
    bounds = Bounds(row=largest, target=(low, low + 4) if loss == "squared" else None)
    problem = LinearProblem(n, d, bounds, sparsity=1, loss=loss_named(loss), intercept=bool(rng.random() < 0.5))
    release = GumbelVertex(1, float(10 ** rng.uniform(-2, 1)))
    vault = make_vault(X.astype(rng.choice([np.float32, np.float64])), y, problem, release)
    ball = L1Ball(float(10 ** rng.uniform(-1, 2)) / largest)
    return rng, vault, ball, float(rng.choice([1e-4, 0.0017, 0.0019, 0.01, 0.3, 0.5, 0.6, 0.999, 1, 3, 100])), release


@compiled_only
@pytest.mark.parametrize("block", range(4))
@pytest.mark.parametrize("people", [False, True], ids=["rows", "people"])
def test_the_law_measured_without_sampling_is_that_of_the_exponential_mechanism(block, people):
    """After every step of walks in random settings: a column above its level's bound, a row that changed its piece
    unnoticed or a slack too small would all show as a probability that is off in its first digits."""
    for seed in range(15 * block, 15 * block + 15):
        rng, vault, ball, clip, release = random_case(seed)
        problem, engine, shares = vault.problem, engine_of(vault), None
        if people:
            set_shares(vault, Shares(rng.integers(0, 1 + problem.n // 3, problem.n), NoiseSource(0)))
            shares = shares_of(vault).of_rows
        walk = Walk(ball, problem, steps(12))
        scale = release.multiplier * release.sensitivity(
            clip * ball.reach(problem), problem.n, vault.plan.budget.adjacency
        )
        residual = clipped_residuals_of(vault, clip)
        follower = Follower(engine, targets_of(vault), residual, walk, clip, scale, shares)
        follower._gradient._afresh *= rng.choice([1, 1e9])  # the second: every step is followed
        for _ in range(12):
            vertex = follower.draw(rng.random)
            state, margins = walk_of(follower), np.empty(problem.n)
            state.margins(margins)
            reach = ball.reach(problem) * 1e-12
            np.testing.assert_allclose(margins, engine.product(walk.theta), rtol=1e-9, atol=reach)
            gradient = engine.transposed_product(residual(margins))
            stand_ins, slacks = (np.frombuffer(part) for part in state.stand_ins())
            assert np.all(np.abs(stand_ins - gradient) <= slacks + 1e-12 * clip * engine.column_sums(shares))
            exponents = -ball.products(gradient, problem) / (problem.n * scale)
            assert exponents[vertex] > exponents.max() - 60
            expected = np.exp(exponents - exponents.max()) / np.exp(exponents - exponents.max()).sum()
            law = law_of(state, engine.dimension)
            if law.sum() > 1e-4:  # else the bounds are so loose that the next draw takes others
                own = law[: problem.d].T.ravel()
                measured = np.append(own, law[problem.d :].ravel()) / law.sum()
                np.testing.assert_allclose(measured, expected, atol=1e-8)
            walk.towards(vertex if rng.random() < 0.6 else int(rng.integers(0, ball.count(problem))))


@pytest.mark.parametrize("clip", [1e-6, 0.0016, 0.0017, 0.00185, 0.002, 0.0021, 0.1, 0.5, 0.95, 0.9984, 1.0, 7.0])
def test_chords_are_as_close_to_the_sigmoid_as_they_say(clip):
    pieces = LOGISTIC.pieces(np.zeros(1), clip)
    u = np.linspace(-50, 50, 200_001)
    piece = np.searchsorted(pieces.knots, u)
    off = pieces.constants[piece] + pieces.slopes[piece] * u - np.minimum(1 / (1 + np.exp(-u)), clip)
    assert np.abs(off).max() <= pieces.off + 1e-15


@compiled_only
def test_a_gradient_that_jumps_by_hundreds_of_exponents_between_two_sorts_is_seen():
    """Weights relative to the largest bound of the last sort would overflow, and the columns below be drawn."""
    X, y = np.zeros((52, 4)), np.zeros(52)
    X[:50, 2] = X[50, 0] = X[51, 1] = 1
    y[50:] = 0.01, 0.007
    problem = LinearProblem(52, 4, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False)
    ball, release = L1Ball(10.0), GumbelVertex(1000, 1e-3)
    vault = make_vault(X, y, problem, release)
    walk = Walk(ball, problem, steps(20))
    for vertex in (3, 3, 3, 3, 2):  # the fourth column is empty, so that all gradients are small until the last move
        vault.vertex(walk, release, ball, 1.0)
        walk.towards(vertex)
    assert {vault.vertex(walk, release, ball, 1.0) for _ in range(20)} == {6}


def test_a_walk_for_other_public_facts_is_refused_and_costs_nothing():
    """With n = 1 for 52 rows the noise would be a 52nd of what is paid for."""
    bounds, ball, release = Bounds(feature=1.0, target=(-1.0, 1.0)), L1Ball(1.0), GumbelVertex(1, 1.0)
    vault = make_vault(
        np.ones((52, 2)),
        np.ones(52),
        LinearProblem(52, 2, bounds, sparsity=1, loss=SQUARED, intercept=False),
        release,
    )
    with pytest.raises(ValueError, match="other public facts"):
        vault.vertex(
            Walk(ball, LinearProblem(1, 2, bounds, sparsity=1, loss=SQUARED, intercept=False), [0.5]),
            release,
            ball,
            1.0,
        )
    vault.vertex(
        Walk(ball, LinearProblem(52, 2, bounds, sparsity=1, loss=SQUARED, intercept=False), [0.5]), release, ball, 1.0
    )


@compiled_only
def test_a_draw_that_failed_half_way_leaves_nothing_behind(monkeypatch):
    bounds, ball, release = Bounds(feature=1.0, target=(-1.0, 1.0)), L1Ball(1.0), GumbelVertex(3, 1e-6)
    X = np.array([[1.0, 0.0], [0.0, 0.1]])
    vault = make_vault(X, np.ones(2), LinearProblem(2, 2, bounds, sparsity=1, loss=SQUARED, intercept=False), release)
    walk = Walk(ball, vault.problem, [0.99, 0.5])
    assert vault.vertex(walk, release, ball, 1.0) == 0
    walk.towards(0)
    with monkeypatch.context() as broken:
        broken.setattr(noise_of(vault), "uniform", lambda size: 1 / 0)
        broken.setattr(Follower, "draw", lambda self, uniforms: self._gradient.move(0, 1.0) or uniforms(1))
        with pytest.raises(ZeroDivisionError):
            vault.vertex(walk, release, ball, 1.0)
    assert (
        vault.vertex(walk, release, ball, 1.0) == 1
    )  # one move made one residual 0.01; a second would exceed the walk


def test_steps_that_underflow_are_refused_and_scales_are_fixed():
    problem = LinearProblem(2, 2, Bounds(feature=1.0), sparsity=1, loss=LOGISTIC, intercept=False)
    with pytest.raises(ValueError, match="shrink"):
        Walk(L1Ball(1.0), problem, [0.9] * 400)
    with pytest.raises(ValueError, match="read-only"):
        Walk(L1Ball(1.0), problem, [0.5]).scales[1] = 2.0
