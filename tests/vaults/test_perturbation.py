"""Objective perturbation: the price covers the exact worst case, the vault draws the priced law."""

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse, stats
from scipy.integrate import quad
from sklearn.linear_model import LogisticRegression, Ridge

from inside import engine_of, precision_of
from thresher.privacy.accounting import ORDERS
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import ExactRelease, GaussianMinimiser, PerturbedMinimiser
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.central import minimisers
from thresher.vaults.losses import SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
ADJACENCIES = list(Adjacency)
NORMS = [1, 19, 100]  # of a row, in units: the square roots of 1, 361 and 10000 columns at their bounds
REPLACE, ADD = "replace-one", "add-remove"


def make_vault(X, y, *releases, loss="squared", adjacency=REPLACE, n=None, intercept=False, seed=0, **facts):
    bounds = facts.get("bounds") or Bounds(feature=1.0, target=(-1.0, 1.0) if loss == "squared" else None)
    problem = LinearProblem(n or X.shape[0], X.shape[1], bounds, sparsity=1, loss=loss_named(loss), intercept=intercept)
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return CentralVault(X, y, plan, NoiseSource(seed, hardened=facts.get("hardened", False)))


def everything(vault):
    return np.arange(vault.problem.dimension)


def some_rows(n=40, d=5, loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    y = np.clip(X[:, 0] + 0.3 * rng.normal(size=n), -1, 1)
    return X, y if loss == "squared" else (y > 0).astype(float)


# -- the exact worst case in one dimension ----------------------------------------------------------------------
#
# One row x with residuals that change from -clip to clip around its target, against no row or a row whose residual is
# saturated the other way; all other rows are zero. Along x the objective times n is h(t) + n ridge t^2/2 + b t, with
# h' running from -clip to clip at slope norm^2. The density of the minimiser t is that of b = -h'(t) - n ridge t times
# h''(t) + n ridge: everything is known, so the hockey-stick and the Renyi divergence are integrals over pieces.

NODES, WEIGHTS = np.polynomial.legendre.leggauss(24)


class Pair:
    """The log densities of t at quadrature nodes for a row and for its neighbour.

    The residual leaves saturation at ``edge``, in sds of t, towards ``side``; ``weight`` is n ridge, ``sd`` that of nb.
    """

    def __init__(self, norm, clip, weight, sd, adjacency, edge, side):
        steep, half, spread = norm**2, clip / norm**2, sd / weight
        centre = edge * spread + side * half
        edges = np.union1d(spread * np.linspace(-14, 14, 57), centre + half * np.linspace(-1, 1, 7))
        low, high = edges[:-1, None], edges[1:, None]
        t = (low + high) / 2 + (high - low) / 2 * NODES
        self.width = (high - low) / 2 * WEIGHTS
        slope = np.clip(steep * (t - centre), -clip, clip)
        bend = np.where(np.abs(t - centre) < half, steep, 0.0)
        other = 0.0 if adjacency == ADD else -clip
        self.log_p = stats.norm.logpdf(slope + weight * t, scale=sd) + np.log(bend + weight)
        self.log_q = stats.norm.logpdf(other + weight * t, scale=sd) + math.log(weight)

    def delta(self, epsilon):
        """The larger of the two hockey-stick divergences."""

        def excess(log_p, log_q):
            return float(np.sum(self.width * np.exp(log_p) * np.maximum(0, -np.expm1(epsilon + log_q - log_p))))

        return max(excess(self.log_p, self.log_q), excess(self.log_q, self.log_p))

    def renyi(self, order):
        def divergence(log_p, log_q):
            return math.log(float(np.sum(self.width * np.exp(order * log_p + (1 - order) * log_q)))) / (order - 1)

        return max(divergence(self.log_p, self.log_q), divergence(self.log_q, self.log_p))


def pairs(*facts):
    return (Pair(*facts, edge, side) for edge in np.linspace(-7, 7, 43) for side in (-1, 1))


def worst_delta(epsilon, norm, clip, weight, sd, adjacency):
    return max(pair.delta(epsilon) for pair in pairs(norm, clip, weight, sd, adjacency))


def problem_of(norm, n=50):
    return LinearProblem(n, norm**2, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False)


def audit(release, norm, ridge, adjacency, delta, noise=1.0, claim=None):
    """Whether the exact worst case of a vault with this release and ridge exceeds the claim: no chance is involved."""
    problem, clip = problem_of(norm), 0.7
    sd = noise * release.multiplier * gradient_sensitivity(clip, problem.n, adjacency) * problem.n
    epsilon = release.cost().epsilon(delta)[0] if claim is None else claim
    return worst_delta(epsilon, norm, clip, problem.n * ridge, sd, adjacency) > delta


def least_ridge(release, norm):
    """What the vault admits, from the vault's own rule."""
    problem = problem_of(norm)
    return minimisers.curvature_ratio(problem, np.arange(problem.d), 1.0) / release.curvature_ratio


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("ratio", [0.02, 0.5, 20.0])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-10])
def test_the_exact_worst_case_never_exceeds_the_claim(norm, adjacency, ratio, delta):
    release = PerturbedMinimiser(1, 6.0, ratio, 60.0)
    assert not audit(release, norm, least_ridge(release, norm), adjacency, delta)


@pytest.mark.parametrize("norm", NORMS[1:])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_audit_notices_a_row_norm_where_the_proof_needs_its_square(norm, adjacency, monkeypatch):
    release, honest = PerturbedMinimiser(1, 6.0, 0.5, 60.0), minimisers._row_norm
    monkeypatch.setattr(minimisers, "_row_norm", lambda *facts: math.sqrt(honest(*facts)))
    assert audit(release, norm, least_ridge(release, norm), adjacency, 1e-6)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_audit_notices_too_little_noise(norm, adjacency):
    release = PerturbedMinimiser(1, 6.0, 0.02, 60.0)
    assert audit(release, norm, least_ridge(release, norm), adjacency, 1e-6, noise=0.7)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_the_audit_notices_a_dropped_jacobian(norm, adjacency):
    """A ridge that makes the ratio 20, priced as if the determinants of neighbours were equal."""
    release = PerturbedMinimiser(1, 6.0, 20.0, 60.0)
    claim = PerturbedMinimiser(1, 6.0, 0.0, 60.0).cost().epsilon(1e-6)[0]
    assert audit(release, norm, least_ridge(release, norm), adjacency, 1e-6, claim=claim)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_published_calibration_is_for_adding_a_row_and_not_for_replacing_one(norm, epsilon):
    """sd(n b) = clip sqrt(8 log(2/delta) + 4 epsilon) / epsilon and n ridge = 2 norm^2 / epsilon, as published."""
    delta, clip = 1e-8, 0.7
    sd, weight = clip * math.sqrt(8 * math.log(2 / delta) + 4 * epsilon) / epsilon, 2 * norm**2 / epsilon
    assert worst_delta(epsilon, norm, clip, weight, sd, ADD) < delta / 100
    assert worst_delta(epsilon, norm, clip, weight, sd, REPLACE) > 5 * delta


# -- the price --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.01, 2.0, 8.0, 40.0])
@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("ratio", [0.02, 1.0])
def test_the_renyi_price_covers_the_worst_pair_and_is_not_vacuous(order, adjacency, ratio):
    """Above the divergence of every pair, and no more above the largest than the Jacobian and the |Z| may cost."""
    at = int(np.argmin(np.abs(ORDERS - order)))
    order, mu = float(ORDERS[at]), 1 / 6
    price = PerturbedMinimiser(1, 6.0, ratio, 1e9).cost().rdp[at]
    sd = 6.0 * Adjacency(adjacency).contributions
    exact = max(pair.renyi(order) for pair in pairs(1, 1.0, 1 / ratio, sd, adjacency))
    assert order * mu**2 / 2 * 0.999 <= exact <= price  # the saturated rows alone are Gaussians mu apart
    assert price - exact <= math.log1p(ratio) + mu


@pytest.mark.parametrize("sd", [0.5, 3.0, 40.0])
@pytest.mark.parametrize("order", [1.5, 4.0, 30.0])
def test_the_renyi_price_is_the_moment_of_the_bound_on_the_privacy_loss(sd, order):
    """E exp((a-1) (log(1 + k) + mu^2/2 + mu |Z|)), integrated; and the Gaussian that hides the tolerance."""
    at, mu, ratio = int(np.argmin(np.abs(ORDERS - order))), 1 / sd, 0.3
    beyond = float(ORDERS[at]) - 1
    peak = beyond * mu  # of the integrand
    shifted, _ = quad(lambda z: math.exp(-((z - peak) ** 2) / 2) / math.sqrt(2 * math.pi), 0, peak + 12)
    moment = math.log(2 * shifted) + beyond**2 * mu**2 / 2
    expected = math.log(1 + ratio) + mu**2 / 2 + moment / beyond + ORDERS[at] / (2 * 7.0**2)
    assert PerturbedMinimiser(1, sd, ratio, 7.0).cost().rdp[at] == pytest.approx(expected, rel=1e-9)


# -- the vault, audited -----------------------------------------------------------------------------------------

FALSE_ALARM = 1e-4
DELTA, RATIO, MULTIPLIER = 0.01, 1.0, 4.0
CLAIM = PerturbedMinimiser(1, MULTIPLIER, RATIO, 40.0).cost().epsilon(DELTA)[0]
CLIP, ROWS = 0.5, 10
LEAST = 1.000001 / (ROWS * RATIO)  # times a row's squared norm: the least ridge


def unsaturated(norm, present, runs, ridge, seed):
    """How often an answer lies where the residual of a row is not saturated, with the row present or zeroed.

    ROWS rows of the given norm stand in columns of their own, so each has its own coordinates, tilt and answer: one
    question about all of them is as good as ROWS questions about one.
    """
    release = PerturbedMinimiser(runs, MULTIPLIER, RATIO, 40.0)
    X = np.kron(np.eye(ROWS) * present, np.ones(norm**2))
    vault = make_vault(X, np.zeros(ROWS), release, seed=seed, bounds=Bounds(1.0, float(norm), (-1.0, 1.0)))
    answers = [vault.perturbed_minimiser(everything(vault), release, CLIP, ridge) for _ in range(runs)]
    along = np.reshape(answers, (-1, norm**2)).sum(axis=1) / norm
    return int(np.sum(np.abs(along) < CLIP / norm**2))


def epsilon_lower(norm, ridge, runs=180):
    """A Clopper-Pearson lower bound on epsilon at DELTA; above the true one with chance at most FALSE_ALARM.

    Where the row's residual is not saturated its curvature makes the density 1 + ratio times larger.
    """
    inside, outside = unsaturated(norm, 1, runs, ridge, 1), unsaturated(norm, 0, runs, ridge, 2)
    trials = runs * ROWS
    p = stats.beta.ppf(FALSE_ALARM / 2, inside, trials - inside + 1)
    q = stats.beta.isf(FALSE_ALARM / 2, outside + 1, trials - outside)
    return math.log(max(p - DELTA, 1e-9) / q)


@pytest.mark.parametrize("norm", [1, 19])
def test_sampling_the_vault_does_not_refute_the_claim(norm):
    """False alarms: 1e-4 each with fresh seeds, none with these. A norm of 100 would take too long."""
    assert epsilon_lower(norm, LEAST * norm**2) <= CLAIM


def test_sampling_the_vault_refutes_the_claim_if_the_check_takes_the_norm_for_its_square(monkeypatch):
    def check_by_norm(vault, support, release, ridge):
        assert vault.problem.bounds.row / (vault.problem.n * ridge) <= release.curvature_ratio

    monkeypatch.setattr(minimisers.Perturbation, "_check_ratio", check_by_norm)
    assert epsilon_lower(19, LEAST * 19) > CLAIM


def tilts(X, y, support, clip, ridge, multiplier, runs):
    """b = -gradient(phi) - ridge phi, read off answers that are hardly noised again, and the sd they should have."""
    release = PerturbedMinimiser(runs, multiplier, 1e9, 1e-3)
    vault = make_vault(X, y, release)
    rows = np.clip(X, -1, 1)[:, support]
    limits = clip / np.linalg.norm(rows, axis=1)
    found = []
    for _ in range(runs):
        phi = vault.perturbed_minimiser(support, release, clip, ridge)
        found.append(-rows.T @ np.clip(rows @ phi - y, -limits, limits) / len(y) - ridge * phi)
    return np.array(found), vault.answers[-1]


def gaussian_of_sd(noise, sd):
    """Whether the sum of squares fits sd: a chi-square test, two-sided, wrong once in 1e9 if it is right."""
    total = np.sum((noise / sd) ** 2)
    return stats.chi2.ppf(5e-10, noise.size) < total < stats.chi2.isf(5e-10, noise.size)


@pytest.mark.parametrize("norm", NORMS)
def test_the_tilt_is_gaussian_of_the_stated_sd_and_not_one_a_quarter_off(norm):
    """So the vault draws from the densities audited above. At least 500 draws: 1.25 and 0.8 are seven sigmas away."""
    runs = {1: 500, 19: 10, 100: 2}[norm]
    X, y = np.ones((3, norm**2)), np.array([0.5, -0.2, 0.1])
    noise, answer = tilts(X, y, np.arange(norm**2), 0.1, 0.2 * norm**2, 5.0, runs)
    assert answer.sensitivity == gradient_sensitivity(0.1, 3, Adjacency.REPLACE_ONE)
    assert answer.scale == 5.0 * answer.sensitivity
    assert gaussian_of_sd(noise, answer.scale)
    for wrong in (0.7, 0.8, 1.25):
        assert not gaussian_of_sd(noise, wrong * answer.scale)


def test_the_tilt_has_independent_coordinates_whatever_the_rows():
    """400 answers of 6 coordinates; 15 correlations below 6 sigmas: false alarms below 3e-8."""
    X, y = some_rows(30, 8)
    noise, _ = tilts(X, y, np.array([7, 0, 2, 3, 4, 1]), 0.3, 0.1, 2.0, 400)
    assert np.max(np.abs(np.corrcoef(noise.T) - np.eye(6))) < 6 / math.sqrt(400)


def test_the_answer_is_noised_again_for_where_the_search_stopped():
    """Without a tilt, what varies is that noise: sd_per_tolerance times twice the certified distance."""
    X, y = some_rows()
    release = PerturbedMinimiser(300, 0.0, 1e9, 3.0)
    vault = make_vault(X, y, release)
    support = everything(vault)
    answers = np.array([vault.perturbed_minimiser(support, release, 1.0, 0.1) for _ in range(300)])
    tolerance, off = precision_of(vault, support, 1.0, 0.1, 0.0)
    sd = 3.0 * 2 * (tolerance + off) / 0.1
    noise = (answers[::2] - answers[1::2]) / math.sqrt(2)
    assert gaussian_of_sd(noise, sd)
    assert not gaussian_of_sd(noise, 1.25 * sd)
    assert not gaussian_of_sd(noise, sd / 1.25)


# -- without noise ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ridge", [1e-3, 0.1])
def test_without_noise_it_is_the_ridge_minimiser_on_the_support(loss, form, ridge):
    X, y = some_rows(400, 6, loss)
    release, support = PerturbedMinimiser(1, 0.0, 1e9, 0.0), np.array([4, 0, 1])
    vault = make_vault(FORMS[form](X), y, release, loss=loss)
    found = vault.perturbed_minimiser(support, release, 10.0, ridge)
    if loss == "squared":
        best = Ridge(alpha=400 * ridge, fit_intercept=False, solver="cholesky").fit(X[:, support], y).coef_
    else:
        model = LogisticRegression(C=1 / (400 * ridge), fit_intercept=False, tol=1e-12, solver="newton-cg")
        best = model.fit(X[:, support], y).coef_[0]
    tolerance, off = precision_of(vault, support, 10.0, ridge, 0.0)
    assert np.linalg.norm(found - best) <= 1.001 * (tolerance + off) / ridge < 1e-3 * np.linalg.norm(best)


def test_columns_are_measured_in_units_of_their_bounds():
    """The same problem in other units has the same predictions, intercept included."""
    X, y = some_rows(100, 3)
    scales = np.array([1e-3, 1.0, 50.0])
    release, margins = PerturbedMinimiser(1, 2.0, 1e3, 1.0), []
    for scale in (np.ones(3), scales):
        bounds = Bounds(feature=tuple(scale), target=(-1.0, 1.0))
        vault = make_vault(X * scale, y, release, bounds=bounds, intercept=True)
        theta = vault.perturbed_minimiser(everything(vault), release, 1.0, 0.05)
        margins.append(X * scale @ theta[:3] + vault.problem.intercept_column * theta[3])
    np.testing.assert_allclose(*margins, atol=1e-9)


# -- one wild row -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("row", [1e300, -1e300, 1e-320, 1.0])
def test_with_the_same_tilt_a_wild_row_moves_the_minimiser_by_at_most_sensitivity_over_ridge(
    adjacency, loss, form, row
):
    X, y = some_rows(loss=loss)
    target = 1e300 if loss == "squared" else 1 - y[3]
    if adjacency == ADD:
        neighbour = np.vstack([X, np.full(5, row)]), np.append(y, target)
    else:
        neighbour = X.copy(), y.copy()
        neighbour[0][3], neighbour[1][3] = row, target
    release, answers = PerturbedMinimiser(1, 3.0, 1e9, 1e-9), []
    for rows, targets in ((X, y), neighbour):
        vault = make_vault(FORMS[form](rows), targets, release, loss=loss, adjacency=adjacency, n=40)
        answers.append(vault.perturbed_minimiser(np.array([0, 2]), release, 0.3, 0.05))
    moved = np.linalg.norm(answers[0] - answers[1])
    assert moved <= gradient_sensitivity(0.3, 40, adjacency) / 0.05 * 1.001
    assert moved > 0 or row == 1e-320


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("bounds", [Bounds(feature=2.0), Bounds(row=3.0), Bounds(feature=(1, 2, 3, 4, 5), row=2.0)])
def test_a_ridge_below_what_is_paid_for_is_refused_and_costs_nothing(intercept, bounds):
    X, y = some_rows()
    release = PerturbedMinimiser(1, 2.0, 0.25, 20.0)
    bounds = Bounds(bounds.feature, bounds.row, (-1.0, 1.0))
    vault = make_vault(X, y, release, bounds=bounds, intercept=intercept)
    support = np.array([0, 1, 5] if intercept else [0, 1])
    entries, row = vault.problem.entry_bounds[:5], bounds.row or math.inf
    norm = math.hypot(min(math.sqrt(2), row / entries.min()), 0.5 * intercept)
    least = norm**2 / (40 * 0.25)
    with pytest.raises(ValueError, match=f"ridge=.* at least {least:.6g}"):
        vault.perturbed_minimiser(support, release, 1.0, least * 0.999)
    assert vault.answers == ()
    assert vault.perturbed_minimiser(support, release, 1.0, least * 1.000001).shape == support.shape


def test_no_row_is_longer_than_the_ratio_supposes():
    rng = np.random.default_rng(0)
    for bounds in (
        Bounds(feature=2.0),
        Bounds(row=3.0),
        Bounds(feature=(1, 2, 3, 4, 5), row=2.0),
        Bounds(feature=0.1, row=9.0),
    ):
        X = 10.0 ** rng.uniform(-3, 3, (200, 5)) * rng.choice([-1, 1], (200, 5))
        vault = make_vault(
            X,
            np.zeros(200),
            GaussianMinimiser(1, 0.0),
            bounds=Bounds(bounds.feature, bounds.row, (-1, 1)),
            intercept=True,
        )
        for support in (np.array([0, 5]), np.array([1, 4, 5]), np.arange(6)):
            units = vault.problem.units[support]
            longest = engine_of(vault).columns(support, 1 / units).row_norms().max()
            assert longest**2 / 200 <= minimisers.curvature_ratio(vault.problem, support, 1.0) * (1 + 1e-12)


@pytest.mark.parametrize(
    "bad", [{"ridge": 0.0}, {"ridge": math.nan}, {"clip": math.inf}, {"clip": 0.0}, {"support": np.array([5])}]
)
@pytest.mark.parametrize("multiplier", [0.0, 2.0])
def test_arguments_that_bound_nothing_are_refused_and_cost_nothing(bad, multiplier):
    release = PerturbedMinimiser(1, multiplier, 10.0, 1.0)
    vault = make_vault(*some_rows(), release)
    good = {"support": np.array([0, 1]), "release": release, "clip": 1.0, "ridge": 0.5}
    with pytest.raises(ValueError, match=next(iter(bad))):
        vault.perturbed_minimiser(**{**good, **bad})
    assert vault.perturbed_minimiser(**good).shape == (2,)
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.perturbed_minimiser(**good)


def test_a_ratio_of_zero_pays_for_no_ridge():
    release = PerturbedMinimiser(1, 2.0, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"ridge=.*curvature_ratio=0\.0 .* at least inf"):
        make_vault(*some_rows(), release).perturbed_minimiser(np.array([0]), release, 1.0, 1e6)


def test_only_the_planned_release_pays():
    planned = PerturbedMinimiser(1, 2.0, 10.0, 20.0)
    vault = make_vault(*some_rows(), planned, GaussianMinimiser(1, 2.0))
    for other in (GaussianMinimiser(1, 2.0), PerturbedMinimiser(1, 1.9, 10.0, 20.0), ExactRelease(1, planned.question)):
        with pytest.raises(BudgetExceeded):
            vault.perturbed_minimiser(np.array([0]), other, 1.0, 0.5)
    with pytest.raises(BudgetExceeded):
        vault.minimiser(planned, 1.0, 0.5)
    assert vault.answers == ()


def test_the_planned_precision_follows_from_public_numbers():
    """It is what scales the second noise, so it may not depend on the rows, nor on how many there are."""
    X, _ = some_rows()
    one, other = (make_vault(rows, rows[:, 0], n=40, adjacency=ADD) for rows in (X, 0 * X[:20]))
    assert precision_of(one, np.arange(3), 1.0, 0.1, 2.0) == precision_of(other, np.arange(3), 1.0, 0.1, 2.0)
    precisions = [precision_of(one, np.arange(3), 1.0, 0.1, scale) for scale in (0.0, 1.0, 1e3)]
    assert all(a < b for a, b in pairwise(precisions))
