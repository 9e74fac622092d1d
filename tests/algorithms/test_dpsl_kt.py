"""DPSL-KT: stable teachers, the labelled public rows they leave behind, and what is wrong with the printed one."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import sparse, stats

from thresher import Certificate, PrivacyWarning, SparseClassifier, SparseRegressor
from thresher.algorithms import DPSLKT
from thresher.algorithms.public_rows import public_features
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.releases import GaussianLabels, GumbelSelection, PrintedLabels
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC, SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource
from thresher_papers.datasets import dpsl_kt_law

N, D, S = 400, 30, 3
TEACHERS = ["support", "convex"]
PROBLEMS = {
    "squared": LinearProblem(N, D, Bounds(feature=1.0, target=(-3.0, 3.0)), sparsity=S, loss=SQUARED),
    "logistic": LinearProblem(N, D, Bounds(row=1.0), sparsity=S, loss=LOGISTIC),
}


def some_rows(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (N, D))
    return X, X[:, [4, 9, 20]] @ [1.0, -1.0, 0.8] + 0.5 + 0.1 * rng.normal(size=N)


def run(algorithm, rows, problem, budget, seed=0):
    plan = algorithm.plan(problem, budget)
    vault = CentralVault(*rows, plan, NoiseSource(seed))
    return algorithm.run(vault), vault


# -- plans ------------------------------------------------------------------------------------------------------


def test_the_selection_gets_its_share_and_the_labels_the_rest():
    rho = zcdp_rho(1.0, 1e-6)
    selection, labels = DPSLKT(share=0.3).plan(PROBLEMS["squared"], Budget(1.0, 1e-6)).releases
    assert isinstance(selection, GumbelSelection)
    assert isinstance(labels, GaussianLabels)
    assert selection.picks == S
    assert selection.cost().rho == pytest.approx(0.3 * rho)
    assert labels.cost().rho == pytest.approx(0.7 * rho)


def test_a_convex_teacher_needs_no_selection_and_gets_the_exact_curve():
    plan = DPSLKT(teacher="convex").plan(PROBLEMS["logistic"], Budget(1.0, 1e-6))
    assert plan.releases == (GaussianLabels.calibrated(Budget(1.0, 1e-6), times=1),)


@pytest.mark.parametrize("teacher", TEACHERS)
@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_a_larger_budget_buys_less_ridge(teacher, problem):
    ridges = [DPSLKT(teacher).plan(problem, Budget(e, 1e-6)).settings["ridge"] for e in (0.1, 1.0, 10.0, math.inf)]
    assert ridges == sorted(ridges, reverse=True)
    assert len(set(ridges)) == 4


@pytest.mark.parametrize(
    ("n", "sparsity", "rows"), [(1000, 10, 1000), (5, 3, 16), (10**7, 10, 2**22 // 11), (10**6, 1500, 4 * 1501)]
)
def test_as_many_public_rows_as_private_ones_unless_too_few_or_too_many(n, sparsity, rows):
    problem = LinearProblem(n, 2000, Bounds(row=1.0), sparsity=sparsity, loss=LOGISTIC)
    assert DPSLKT().plan(problem, Budget(1.0, 1e-9)).settings["auxiliary_rows"] == rows


def test_public_rows_that_would_not_fit_in_memory_are_not_drawn():
    problem = LinearProblem(1000, 50_000, Bounds(row=1.0), sparsity=3, loss=LOGISTIC)
    with pytest.raises(ValueError, match="give auxiliary"):
        DPSLKT(teacher="convex").plan(problem, Budget(1.0, 1e-9))
    given = DPSLKT(teacher="convex", auxiliary=sparse.csr_array((70, 50_000)))
    assert given.plan(problem, Budget(1.0, 1e-9)).settings["auxiliary_rows"] == 70


# -- models -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("teacher", TEACHERS)
@pytest.mark.parametrize("distribution", ["uniform", "signs"])
def test_without_privacy_it_finds_the_right_columns_and_the_intercept(teacher, distribution):
    algorithm = DPSLKT(teacher, distribution=distribution)
    theta, _ = run(algorithm, some_rows(), PROBLEMS["squared"], Budget(math.inf, 1e-6))
    assert np.flatnonzero(theta[:D]).tolist() == [4, 9, 20]
    np.testing.assert_allclose(theta[[4, 9, 20]], [1.0, -1.0, 0.8], atol=0.05)
    assert theta[D] * PROBLEMS["squared"].intercept_column == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("teacher", TEACHERS)
def test_without_privacy_it_separates_classes(teacher):
    X, y = some_rows()
    model = SparseClassifier(S, epsilon=math.inf, feature_bound=1.0, algorithm=DPSLKT(teacher))
    with pytest.warns(PrivacyWarning, match="OFF"):
        model.fit(X, y > 0.5)
    assert model.support_.tolist() == [4, 9, 20]
    assert model.score(X, y > 0.5) > 0.95


@pytest.mark.parametrize(("n", "epsilon", "error"), [(800, 5.0, 0.45), (4000, 2.0, 0.2)])
def test_on_the_paper_s_law_a_private_model_is_useful(n, epsilon, error):
    """Measured: .26 and .12 on average over ten and four data sets; the zero model has 1."""
    X, y, truth = dpsl_kt_law(n=n).draw(100)
    problem = LinearProblem(n, 1000, Bounds(feature=1.0, target=(-8.0, 8.0)), sparsity=10, loss=SQUARED)
    theta, _ = run(DPSLKT(), (X, y), problem, Budget(epsilon, 0.01))
    assert np.linalg.norm(theta[:1000] - truth) < error * np.linalg.norm(truth)


def test_for_unit_rows_the_convex_teacher_is_useful():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 50))
    X /= np.linalg.norm(X, axis=1)[:, None]
    truth = np.zeros(50)
    truth[:3] = [4.0, -4.0, 3.0]
    problem = LinearProblem(5000, 50, Bounds(row=1.0, target=(-3.0, 3.0)), sparsity=3, loss=SQUARED)
    rows = X, X @ truth + 0.1 * rng.normal(size=5000)
    theta, _ = run(DPSLKT(teacher="convex"), rows, problem, Budget(2.0, 1e-6))
    assert np.linalg.norm(theta[:50] - truth) < 0.25 * np.linalg.norm(truth)


def test_the_l1_term_reaches_the_teacher():
    strict = DPSLKT(teacher="convex", l1=1e3)
    theta, _ = run(strict, some_rows(), PROBLEMS["squared"], Budget(math.inf, 1e-6))
    np.testing.assert_allclose(theta[:D], 0, atol=1e-12)


# -- the labelled public rows -----------------------------------------------------------------------------------


@pytest.mark.parametrize("teacher", TEACHERS)
def test_the_published_rows_are_labelled_by_the_teacher_up_to_the_stated_noise(teacher):
    """Without noise a fresh least-squares fit to them is the model; targets lie around 7, and so do the labels."""
    X, y = some_rows()
    problem = LinearProblem(N, D, Bounds(feature=1.0, target=(4.0, 10.0)), sparsity=S, loss=SQUARED)
    theta, vault = run(DPSLKT(teacher), (X, y + 7), problem, Budget(math.inf, 1e-6))
    rows, labels = vault.published["auxiliary"]
    assert rows.shape == (N, D)
    assert labels.shape == (N,)
    dense = rows.toarray() if sparse.issparse(rows) else rows
    fit = np.linalg.lstsq(np.column_stack([dense, np.ones(N)]), labels, rcond=None)[0]
    support = np.flatnonzero(theta[:D])
    np.testing.assert_allclose(fit[support], theta[support], atol=0.05)
    assert fit[D] == pytest.approx(7.5, abs=0.05)


def test_drawn_rows_are_kept_on_the_chosen_columns_only():
    algorithm = DPSLKT(seed=3)
    theta, vault = run(algorithm, some_rows(), PROBLEMS["squared"], Budget(math.inf, 1e-6))
    rows, _ = vault.published["auxiliary"]
    assert rows.nnz == N * S
    whole = public_features("uniform", np.ones(D), np.arange(D), N, seed=3)
    chosen = np.flatnonzero(theta[:D])
    np.testing.assert_array_equal(rows.toarray()[:, chosen], whole[:, chosen])


def test_published_labels_carry_the_noise_of_the_certificate():
    """Chi-square test of what is left after the fit; false-alarm rate 1e-6, and a scale off by 1.25 is rejected."""
    algorithm = DPSLKT(auxiliary_rows=4000)
    theta, vault = run(algorithm, some_rows(), PROBLEMS["squared"], Budget(1.0, 1e-6))
    rows, labels = vault.published["auxiliary"]
    left = labels - rows @ theta[:D] - theta[D] * PROBLEMS["squared"].intercept_column
    statistic = float(left @ left) / vault.answers[-1].scale ** 2
    low, high = stats.chi2.ppf([5e-7, 1 - 5e-7], 4000 - S - 1)
    assert low < statistic < high
    assert not low < statistic * 1.25**2 < high
    assert not low < statistic / 1.25**2 < high


@pytest.mark.parametrize("teacher", TEACHERS)
@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
def test_given_rows_may_be_dense_or_sparse(teacher, form):
    rng = np.random.default_rng(1)
    public = rng.uniform(-1, 1, (500, D)) * (rng.random((500, D)) < 0.4)
    models = []
    for auxiliary in (public, form(public)):
        theta, vault = run(DPSLKT(teacher, auxiliary=auxiliary), some_rows(), PROBLEMS["squared"], Budget(8.0, 1e-6))
        models.append(theta)
        assert vault.published["auxiliary"][0] is auxiliary
    np.testing.assert_allclose(models[0], models[1], atol=1e-6)
    assert np.any(models[0])


@pytest.mark.parametrize("teacher", TEACHERS)
def test_sparse_public_rows_stay_sparse(teacher):
    """Dense, the 2100 x 20000 matrix would take 336 MB."""
    X = sparse.random_array((500, 20_000), density=1e-3, random_state=np.random.default_rng(0), format="csr")
    public = sparse.random_array((2100, 20_000), density=1e-3, random_state=np.random.default_rng(1), format="csr")
    problem = LinearProblem(500, 20_000, Bounds(row=1.0), sparsity=5, loss=LOGISTIC)
    rows = X, (np.arange(500) % 2).astype(float)
    tracemalloc.start()
    theta, _ = run(DPSLKT(teacher, auxiliary=public), rows, problem, Budget(1.0, 1e-6))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 60e6
    assert np.count_nonzero(theta[:-1]) <= 5


def test_columns_are_drawn_independently_of_each_other():
    bounds = np.array([1.0, 2.0, 3.0, 4.0])
    whole = public_features("uniform", bounds, np.arange(4), 1000, seed=7)
    np.testing.assert_array_equal(public_features("uniform", bounds, np.array([3, 1]), 1000, seed=7), whole[:, [3, 1]])
    assert np.all(np.abs(whole).max(axis=0) <= bounds)
    assert np.all(np.abs(np.corrcoef(whole.T) - np.eye(4)) < 0.2)
    signs = public_features("signs", bounds, np.arange(4), 1000, seed=7)
    np.testing.assert_array_equal(np.abs(signs), np.broadcast_to(bounds, (1000, 4)))


# -- as printed -------------------------------------------------------------------------------------------------

# sigma^2 = 8 m beta s gamma^2 log(2.5/delta) / (n epsilon lambda)^2, evaluated to 30 digits elsewhere:
# problem, budget, hyper-parameters, sigma
FIRST = LinearProblem(
    801, 2, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED
)  # m = n, beta = 1/3, gamma = 1
SECOND = LinearProblem(
    800, 1000, Bounds(feature=1.0, target=(-8.0, 8.0)), sparsity=10, loss=SQUARED
)  # beta = 1/3, gamma = sqrt(10)
THIRD = LinearProblem(4000, 60, Bounds(feature=2.0), sparsity=50, loss=LOGISTIC)  # m = 500, beta = 4/3, gamma = 2
PRINTED = [
    (FIRST, Budget(0.8, 0.01), {"ridge": 0.297}, 0.57062221207642023),
    (SECOND, Budget(2.0, 0.01), {"ridge": 0.1}, 6.78322742619755602),
    (THIRD, Budget(5.0, 1e-5), {"ridge": 0.03, "auxiliary_rows": 500}, 6.06855067128134676),
    (SECOND, Budget(0.8, 0.01), {}, 5.71242770683726089),
    (FIRST, Budget(0.8, 0.01), {"printed_mu": 0.5}, 0.33894959397339362),
    (SECOND, Budget(2.0, 0.01), {"printed_mu": 1 / 3}, 2.03496822785926681),
    (THIRD, Budget(5.0, 1e-5), {"printed_mu": 0.25, "auxiliary_rows": 500}, 0.72822608055376161),
]


@pytest.mark.parametrize(("problem", "budget", "parameters", "sigma"), PRINTED)
def test_the_printed_noise_digit_by_digit(problem, budget, parameters, sigma):
    plan = DPSLKT(calibration="printed", **parameters).plan(problem, budget)
    (release,) = plan.releases
    assert isinstance(release, PrintedLabels)
    assert release.sd == pytest.approx(sigma, rel=1e-13)
    by_theory = 0.296862725198195700  # of the fourth: lambda^2 = gamma sqrt(s log(d) log(1/delta)) / (n epsilon)
    expected = 0.0 if "printed_mu" in parameters else parameters.get("ridge", by_theory)
    assert plan.settings["ridge"] == pytest.approx(expected, rel=1e-13)


def test_gamma_and_beta_may_be_given():
    """Twice gamma is twice sigma; beta of given rows is their largest second moment, here 9 instead of 1/3."""
    sd = [
        DPSLKT(calibration="printed", ridge=0.297, **given).plan(FIRST, Budget(0.8, 0.01)).releases[0].sd
        for given in ({}, {"gamma": 2.0}, {"auxiliary": np.tile([[3.0, 0.0]], (801, 1))})
    ]
    assert sd[1] == pytest.approx(2 * sd[0])
    assert sd[2] == pytest.approx(math.sqrt(27) * sd[0])


def test_a_printed_fit_claims_nothing():
    X, y = some_rows()
    algorithm = DPSLKT(calibration="printed", iterations=50)
    model = SparseRegressor(S, epsilon=1.0, feature_bound=1.0, target_bound=3.0, algorithm=algorithm)
    with pytest.warns(PrivacyWarning, match="printed"):
        model.fit(X, y)
    certificate = Certificate.from_json(model.certificate_.to_json())
    assert (certificate.grade, certificate.epsilon, certificate.claimed_epsilon) == ("printed", None, 1.0)
    assert any("E-5" in note for note in certificate.notes)
    assert certificate.verify()
    assert certificate.second_opinion() is None


def test_without_privacy_the_printed_method_is_accurate():
    algorithm = DPSLKT(calibration="printed")
    theta, vault = run(algorithm, some_rows(), PROBLEMS["squared"], Budget(math.inf, 1e-6))
    np.testing.assert_allclose(theta[[4, 9, 20]], [1.0, -1.0, 0.8], atol=0.05)
    assert vault.published["auxiliary"][0].shape == (N, D)


# -- erratum E-5 ------------------------------------------------------------------------------------------------


def neighbours(n, d):
    """One record more of e1 than of e2, and one less: replacing one record turns one into the other."""
    for ones in ((n + 1) // 2, (n - 1) // 2):
        X = np.zeros((n, d))
        X[:ones, 0] = X[ones:, 1] = 1.0
        yield X, np.ones(n)


def told_apart(algorithm, runs, n=801, d=4):
    """How often the support of the model names the data set it came from, of ``runs`` on each of two neighbours."""
    problem = LinearProblem(n, d, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False)
    plan, right = algorithm.plan(problem, Budget(0.8, 0.01)), 0
    for column, rows in enumerate(neighbours(n, d)):
        for seed in range(runs):
            theta = algorithm.run(CentralVault(*rows, plan, NoiseSource(10_000 * column + seed)))
            right += np.flatnonzero(theta).tolist() == [column]
    return right


def breaks_the_claim(right, trials):
    """Whether ``right`` of ``trials`` guesses are too many, or too few, for (0.8, 0.01)-DP.

    It lets a guess be right with probability at most (e^0.8 + 0.01)/(1 + e^0.8) = 0.693, and so be wrong. Each side is
    rejected at 5e-7: the false-alarm rate is at most 1e-6.
    """
    limit = (math.exp(0.8) + 0.01) / (1 + math.exp(0.8))
    return stats.binom.sf(max(right, trials - right) - 1, trials, limit) < 5e-7


@pytest.mark.parametrize("variant", [{}, {"ridge": 0.297}, {"printed_mu": 0.5}], ids=str)
def test_the_support_of_the_printed_student_tells_neighbours_apart(variant):
    right = told_apart(DPSLKT(calibration="printed", iterations=40, **variant), runs=25)
    assert right >= 49
    assert breaks_the_claim(right, 50)


def test_the_support_of_the_sound_student_does_not():
    assert not breaks_the_claim(told_apart(DPSLKT(), runs=100), 200)


# -- refusals ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        {"teacher": "ight"}, {"share": 0.0}, {"share": 1.0}, {"clip": 0.0}, {"selection_clip": -1.0}, {"ridge": 0.0},
        {"l1": -1.0}, {"l1": math.inf}, {"auxiliary": [[1.0]]}, {"auxiliary": np.array([["a"]])},
        {"auxiliary": np.array([[np.nan]])}, {"auxiliary_rows": 0}, {"auxiliary_rows": 2.5},
        {"distribution": "cauchy"}, {"seed": -1}, {"calibration": "hoped"}, {"gamma": 0.0}, {"printed_mu": 0.0},
        {"iterations": 0},
    ],
    ids=str,
)  # fmt: skip
def test_hyper_parameters_that_make_no_sense_are_refused(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        DPSLKT(**bad)


@pytest.mark.parametrize(
    "auxiliary", [np.ones((3, D + 1)), np.ones((0, D)), np.ones(D), sparse.csr_array(np.ones((3, 2)))]
)
def test_public_rows_of_another_shape_are_refused(auxiliary):
    with pytest.raises(ValueError, match="auxiliary has shape"):
        DPSLKT(auxiliary=auxiliary).plan(PROBLEMS["squared"], Budget(1.0, 1e-6))
