"""Label-LDP-IHT and the Lasso on reported labels: plans, the printed noise, and errors as Theorem 5 says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from thresher import LocalSparseClassifier, LocalSparseRegressor
from thresher.algorithms import LDPIHT, LabelLasso, LabelLDPIHT
from thresher.algorithms.projections import hard_threshold
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_epsilon, gaussian_mu
from thresher.privacy.releases import ClassReport, GaussianReport, LaplaceReport, PiecewiseReport
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomisers import Classes, Laplace, Piecewise
from thresher_papers.datasets import ldp_law
from thresher_papers.experiments.local_model import relative_error
from thresher_papers.experiments.slopes import slope

ALGORITHMS = [LabelLDPIHT, LabelLasso]


def problem_of(loss="squared", outputs=1, low=-2.0, high=4.0):
    return LinearProblem(
        1000,
        20,
        Bounds(feature=1.0, target=(low, high) if loss == "squared" else None),
        sparsity=3,
        loss=loss_named(loss),
        intercept=True,
        outputs=outputs,
    )


# -- plans ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 4.0, 50.0])
@pytest.mark.parametrize(
    ("noise", "release"), [("auto", PiecewiseReport), ("piecewise", PiecewiseReport), ("laplace", LaplaceReport)]
)
def test_pure_noise_costs_exactly_epsilon(kind, epsilon, noise, release):
    plan = kind(noise=noise).plan(problem_of(), Budget(epsilon, 0.0))
    assert plan.releases == (release(1, epsilon),)
    assert (plan.epsilon, plan.trust) == (epsilon, "labels")


def test_gaussian_noise_is_calibrated_by_the_exact_curve_for_the_whole_range():
    plan = LabelLDPIHT(noise="gaussian").plan(problem_of(), Budget(1.0, 1e-6))
    (report,) = plan.releases
    assert isinstance(report, GaussianReport)
    assert 1 - 1e-6 < plan.epsilon <= 1.0
    assert plan.settings["label_sd"] == pytest.approx(6.0 / gaussian_mu(1.0, 1e-6))


def test_the_noise_on_a_label_is_known():
    """Of a label a third of the way out; the range has half-width 3."""
    sds = {name: LabelLDPIHT(noise=name).plan(problem_of(), Budget(1.0, 0.0)).settings for name in ("laplace", "auto")}
    assert sds["laplace"]["label_sd"] == pytest.approx(3 * math.sqrt(Laplace(1.0).variance(0)))
    assert sds["auto"]["label_sd"] == pytest.approx(3 * math.sqrt(Piecewise(1.0).variance(1 / 3)))


def test_auto_takes_the_least_variance_by_public_constants():
    for epsilon in (0.01, 0.1, 1.0, 10.0):
        for delta in (0.0, 1e-6, 0.3):
            settings = {
                noise: LabelLDPIHT(noise=noise).plan(problem_of(), Budget(epsilon, delta)).settings["label_sd"]
                for noise in ("auto", "piecewise", "laplace", *(["gaussian"] if delta else []))
            }
            assert settings["auto"] == min(settings.values())


@pytest.mark.parametrize(("loss", "outputs"), [("logistic", 1), ("multinomial", 4)])
def test_classes_are_randomised_responses(loss, outputs):
    plan = LabelLDPIHT().plan(problem_of(loss, outputs), Budget(1.0, 0.0))
    classes = max(outputs, 2)
    assert plan.releases == (ClassReport(1, 1.0, classes),)
    share = 1 / classes
    reported = Classes(classes, 1.0).wrong + share / Classes(classes, 1.0).size
    assert plan.settings["label_sd"] == pytest.approx(Classes(classes, 1.0).size * math.sqrt(reported * (1 - reported)))


@pytest.mark.parametrize("kind", ALGORITHMS)
@pytest.mark.parametrize(
    ("change", "budget", "words"),
    [
        (
            {"noise": "gauss"},
            Budget(1.0, 0.0),
            "noise='gauss' must be one of 'auto', 'piecewise'",
        ),
        ({"noise": "gaussian"}, Budget(1.0, 0.0), "noise='gaussian' needs delta above 0"),
        ({"calibration": "exact"}, Budget(1.0, 0.0), "calibration='exact'"),
        ({"calibration": "printed"}, Budget(1.0, 0.0), "calibration='printed' needs delta above 0"),
        ({"calibration": "printed", "noise": "laplace"}, Budget(1.0, 1e-3), "printed calibration is of Gaussian noise"),
        ({"noise_bound": 0.0}, Budget(1.0, 1e-3), "noise_bound=0.0"),
    ],
)
def test_bad_hyper_parameters_are_refused_by_name_value_and_remedy(kind, change, budget, words):
    with pytest.raises(ValueError, match=words):
        kind(**change).plan(problem_of(), budget)


@pytest.mark.parametrize("kind", [*ALGORITHMS, LDPIHT])
def test_that_somebody_takes_part_cannot_be_hidden(kind):
    with pytest.raises(ValueError, match="adjacency='add-remove': a report hides what a record holds"):
        kind().plan(problem_of(), Budget(1.0, 0.0, "add-remove"))


def test_what_classes_cannot_have_is_refused():
    with pytest.raises(ValueError, match="noise='laplace' is for labels that are numbers"):
        LabelLDPIHT(noise="laplace").plan(problem_of("logistic"), Budget(1.0, 0.0))
    with pytest.raises(ValueError, match="classes have no printed noise"):
        LabelLDPIHT(calibration="printed").plan(problem_of("logistic"), Budget(1.0, 1e-3))
    with pytest.raises(ValueError, match="use algorithm='label-ldp-iht'"):
        LabelLasso().plan(problem_of("logistic"), Budget(1.0, 0.0))


# -- as printed -------------------------------------------------------------------------------------------------


def test_the_printed_noise_is_priced_by_what_it_hides():
    """Erratum E-12: s=10 in the unit ball, delta 1e-3, claimed 1: really 62."""
    radius = math.sqrt(10) + 0.05
    problem = problem_of(low=-radius, high=radius)
    for kind in ALGORITHMS:
        plan = kind(calibration="printed").plan(problem, Budget(1.0, 1e-3))
        sd = 0.05 * math.sqrt(32 * math.log(1.25 / 1e-3))
        assert plan.settings["label_sd"] == pytest.approx(sd)
        assert plan.epsilon == pytest.approx(gaussian_epsilon(2 * radius / sd, 1e-3))
        assert plan.epsilon == pytest.approx(62, abs=0.5)


@pytest.mark.parametrize("kind", ALGORITHMS)
def test_a_printed_fit_warns_and_its_certificate_promises_nothing(kind):
    X, y, _ = ldp_law(2000, 20, 3, unit=True).draw(seed=0)
    model = LocalSparseRegressor(3, 1.0, delta=1e-4, algorithm=kind(calibration="printed"), target_bound=2.0)
    with pytest.warns(UserWarning, match=r"costs epsilon=\S+ where 1 is claimed"):
        model.fit(X, y)
    certificate = model.certificate_
    assert (certificate.grade, certificate.epsilon, certificate.claimed_epsilon) == ("printed", None, 1.0)
    assert any("E-12" in note for note in certificate.notes)
    assert certificate.verify()


# -- the loops --------------------------------------------------------------------------------------------------


class Script:
    """A label vault that answers with gradients of a quadratic."""

    feature_scale = 1.0

    def __init__(self, plan):
        self.plan, self.problem, self.asked = plan, plan.problem, []

    def labels(self, release):
        assert release == self.plan.releases[0]

    def gradient(self, theta):
        self.asked.append(theta)
        return theta - np.linspace(-1, 1, len(theta))


def test_with_a_step_it_is_algorithm_2_descending():
    algorithm = LabelLDPIHT(iterations=4, step=0.3, ball=0.5)
    plan = algorithm.plan(problem_of(), Budget(1.0, 0.0))
    vault = Script(plan)
    found = algorithm.run(vault)
    theta, d = np.zeros(21), 20
    steps = np.full(21, 0.3)
    steps[d] = min(0.3, 1 / plan.problem.intercept_column**2)
    for asked in vault.asked:
        assert asked == pytest.approx(theta)
        theta = hard_threshold(theta - steps * (theta - np.linspace(-1, 1, 21)), plan.problem)
        theta[:d] *= min(1.0, 0.5 / np.linalg.norm(theta[:d]))
    assert len(vault.asked) == 4
    assert found == pytest.approx(theta)


def test_the_printed_sign_would_ascend():
    """Erratum E-13: 10 steps of the printed update leave a relative error far above 1; ours one far below."""
    X, y, theta = ldp_law(5000, 50, 5, unit=True).draw(seed=0)
    found = np.zeros(50)
    for _ in range(10):
        found = found - 0.5 * (y - X @ found) @ X / len(y)
        found[np.argsort(np.abs(found))[:-5]] = 0
    model = LocalSparseRegressor(5, 8.0, algorithm=LabelLDPIHT(iterations=10, step=0.5), target_bound=2.3,
                                 fit_intercept=False, random_state=0).fit(X, y)  # fmt: skip
    assert np.linalg.norm(found - theta) > 10
    assert np.linalg.norm(model.coef_ - theta) < 0.1


def test_the_unit_ball_floors_the_error_of_the_papers_experiment():
    """Erratum E-13: ||theta*|| is about 1.8 there, so that projection leaves at least 1 - 1/1.8."""
    X, y, theta = ldp_law(20_000, 50, 10).draw(seed=0)
    facts = {"target_bound": 10.05, "fit_intercept": False, "random_state": 0}
    errors = [
        np.linalg.norm(LocalSparseRegressor(10, 8.0, algorithm=LabelLDPIHT(ball=ball), **facts).fit(X, y).coef_ - theta)
        / np.linalg.norm(theta)
        for ball in (1.0, None)
    ]
    assert errors[0] > 0.4
    assert errors[1] < 0.1


# -- accuracy ---------------------------------------------------------------------------------------------------

SOUND = LabelLDPIHT(noise="laplace")
S = 6
REPLICATES = 12
ALARM = 3.3  # standard errors: a true exponent is rejected once in a thousand


def squared_errors(algorithm, cells):
    def squared(cell, seed):
        return relative_error(algorithm, "theorem", *cell, seed)[0] ** 2

    return np.array([[squared(cell, seed) for seed in range(REPLICATES)] for cell in cells])


CELLS = {
    "people": [(n, 30, S, 2.0) for n in (3_000, 9_000, 27_000)],
    "epsilon": [(8_000, 30, S, epsilon) for epsilon in (1.0, 2.0, 4.0)],
    "columns": [(3_000, d, S, 2.0) for d in (20, 140, 1000)],
}


def test_the_error_follows_the_rate_of_theorem_5():
    """error^2 ~ s log d/(n epsilon^2): every exponent agrees with the claim within its statistical error, which is
    small enough to tell it from its neighbours. (One test, so that the errors are measured once.)"""
    measured = {axis: squared_errors(SOUND, cells) for axis, cells in CELLS.items()}
    found = {
        axis: slope(np.array([float(cell[at]) for cell in CELLS[axis]]), measured[axis])
        for at, axis in ((0, "people"), (3, "epsilon"), (1, "columns"))
    }
    assert found["people"].deviates(-1.0) < ALARM
    assert found["epsilon"].deviates(-2.0) < ALARM
    flat, logarithmic = 0.0, math.log(math.log(1000) / math.log(20)) / math.log(50)  # over this range
    assert flat - ALARM * found["columns"].error < found["columns"].exponent
    assert found["columns"].exponent < logarithmic + ALARM * found["columns"].error
    cells = [cell for axis in CELLS.values() for cell in axis]
    rates = np.array([s * math.log(d) / (n * epsilon**2) for n, d, s, epsilon in cells])
    together = slope(rates, np.vstack(list(measured.values())))
    assert together.deviates(1.0) < ALARM
    errors = [together.error, *(found[axis].error for axis in found)]
    assert ALARM * max(errors) < 0.7, (together, found)


def test_soundness_has_a_price_and_piecewise_noise_pays_less_of_it():
    """Fixed seeds; the variances of a label are as 3.85 to 8."""
    cell = [(8_000, 50, S, 1.0)]
    laplace, piecewise = (squared_errors(algorithm, cell).mean() for algorithm in (SOUND, LabelLDPIHT()))
    assert piecewise < 0.8 * laplace


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("algorithm", ["label-ldp-iht", "label-lasso"])
def test_coefficients_and_intercept_are_found(algorithm, form):
    """Fixed seed; relative errors are .03 and .12 (the Lasso shrinks)."""
    X, y, theta = ldp_law(50_000, 30, 3, unit=True).draw(seed=0)
    model = LocalSparseRegressor(3, 2.0, algorithm=algorithm, target_bound=(3.0, 7.0), random_state=0)
    model.fit(form(X.astype(float)), y + 5)
    assert set(model.support_) == set(np.flatnonzero(theta))
    assert np.linalg.norm(model.coef_ - theta) < 0.25
    assert model.intercept_ == pytest.approx(5, abs=0.1)


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_are_told_apart(classes):
    """Fixed seed. The errors of the coefficients are those of reports with the noise of randomised response."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (60_000, 20))
    scores = X[:, :classes] + rng.gumbel(size=(len(X), classes))
    y = np.array(["a", "b", "c"])[scores.argmax(axis=1)]
    model = LocalSparseClassifier(classes, 1.0, algorithm="label-ldp-iht", classes=sorted(set(y)), random_state=0)
    model.fit(X, y)
    assert set(model.support_) == set(range(classes))
    truth = X[:, :classes].argmax(axis=1)
    best = np.mean(np.array(["a", "b", "c"])[truth] == y)
    assert model.score(X, y) > best - 0.03
