"""Questions about random batches: the right rows, every row clipped, the stated noise, and nothing unpaid."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from inside import noise_of
from neighbours import SOME_BOUNDS, WILD_ENTRIES, round_off_paid, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient, SampledGradient, SampledMomentum
from thresher.privacy.sensitivity import momentum_clip
from thresher.vaults import CentralVault
from thresher.vaults.losses import LOGISTIC, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
N, D, BATCH = 40, 5, 8
CLIP, CHANGE, MOMENTUM = 0.5, 0.02, 0.3


def release_of(kind, sd=0.0, times=1, batch=BATCH, n=N, sampling="poisson", adjacency="replace-one"):
    return kind(times, sd, batch, n, sampling, Adjacency(adjacency))


def vault_of(X, y, release, loss="logistic", intercept=False, bounds=None, seed=0, hardened=False, n=None, outputs=1):
    bounds = bounds or Bounds(feature=1.0)
    bounds = Bounds(bounds.feature, bounds.row, (-1.0, 1.0) if loss == "squared" else None)
    problem = LinearProblem(
        n or X.shape[0],
        X.shape[1],
        bounds,
        sparsity=X.shape[1],
        loss=loss_named(loss),
        intercept=intercept,
        outputs=outputs,
    )
    plan = Plan("test", problem, Budget(math.inf, 1e-6, release.adjacency), (release,))
    return CentralVault(X, y, plan, NoiseSource(seed, hardened=hardened))


def ask(vault, release, theta=None, before=None, clip=CLIP, change=CHANGE, momentum=MOMENTUM):
    theta = vault.problem.origin() if theta is None else theta
    if isinstance(release, SampledGradient):
        return vault.sampled_gradient(theta, release, clip)
    return vault.sampled_momentum(theta, theta if before is None else before, release, clip, change, momentum)


def some_rows(n=N, d=D, seed=0, loss="logistic"):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d)) * (rng.random((n, d)) < 0.6)
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, np.clip(y, -1, 1) if loss == "squared" else (y > 0).astype(float)


def row_gradients(X, y, theta, loss):
    margins = X @ theta
    residuals = margins - y if loss == "squared" else 1 / (1 + np.exp(-margins)) - y
    return residuals[:, None] * X


def shortened(vectors, clip):
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors * np.minimum(1, clip / np.maximum(norms, 1e-300))


def drawn_rows(release, rows=N, seed=0):
    """The batch that a vault with this seed draws first."""
    return NoiseSource(seed).batch(rows, release.rate, release.sampling)


# -- what is answered ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("sampling", ["poisson", "fixed"])
@pytest.mark.parametrize("clip", [0.05, 10.0])
def test_a_sampled_gradient_is_the_sum_of_clipped_gradients_over_the_expected_size(form, loss, sampling, clip):
    X, y = some_rows(loss=loss)
    theta = np.array([2.0, -1.0, 0.0, 0.5, 3.0])
    release = release_of(SampledGradient, sampling=sampling)
    answer = ask(vault_of(FORMS[form](X), y, release, loss), release, theta, clip=clip)
    rows = drawn_rows(release)
    expected = shortened(row_gradients(X[rows], y[rows], theta, loss), clip).sum(axis=0) / BATCH
    np.testing.assert_allclose(answer, expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("change", [1e-3, 10.0])
def test_a_sampled_momentum_clips_every_difference_and_every_gradient_by_itself(form, loss, change):
    X, y = some_rows(loss=loss)
    theta, before = np.array([2.0, -1.0, 0.0, 0.5, 3.0]), np.array([1.0, -1.0, 0.2, 0.0, 2.0])
    release = release_of(SampledMomentum)
    vault = vault_of(FORMS[form](X), y, release, loss)
    answer = ask(vault, release, theta, before, clip=0.1, change=change)
    rows = drawn_rows(release)
    now, then = (row_gradients(X[rows], y[rows], at, loss) for at in (theta, before))
    parts = (1 - MOMENTUM) * shortened(now - then, change) + MOMENTUM * shortened(now, 0.1)
    np.testing.assert_allclose(answer, parts.sum(axis=0) / BATCH, rtol=1e-9, atol=1e-14)


def test_several_outputs_are_clipped_together():
    rng = np.random.default_rng(3)
    X, labels = rng.uniform(-1, 1, (N, D)), np.eye(3)[rng.integers(3, size=N)]
    release = release_of(SampledMomentum)
    answers = {}
    for form, shape in FORMS.items():
        vault = vault_of(shape(X), labels, release, "multinomial", intercept=True, outputs=3)
        theta, before = (rng.normal(size=vault.problem.dimension) for rng in map(np.random.default_rng, (1, 2)))
        answers[form] = ask(vault, release, theta, before, clip=0.2)
    np.testing.assert_allclose(answers["dense"], answers["sparse"], rtol=1e-9)
    rows = drawn_rows(release)
    extended = np.column_stack([X[rows], np.full(len(rows), vault.problem.intercept_column)])

    def gradients(at):
        margins = extended @ vault.problem.by_column(at)
        weights = np.exp(margins - margins.max(axis=1, keepdims=True))
        residuals = weights / weights.sum(axis=1, keepdims=True) - labels[rows]
        return (extended[:, :, None] * residuals[:, None, :]).reshape(len(rows), -1)

    now, then = gradients(theta), gradients(before)
    parts = (1 - MOMENTUM) * shortened(now - then, CHANGE) + MOMENTUM * shortened(now, 0.2)
    expected = vault.problem.stacked(parts.sum(axis=0).reshape(D + 1, 3) / BATCH)
    np.testing.assert_allclose(answers["dense"], expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_the_intercept_is_a_constant_column(form):
    X, y = some_rows()
    release = release_of(SampledGradient)
    vault = vault_of(FORMS[form](X), y, release, intercept=True)
    extended = np.column_stack([X, np.full(N, vault.problem.intercept_column)])
    theta, rows = np.arange(6.0), drawn_rows(release)
    expected = shortened(row_gradients(extended[rows], y[rows], theta, "logistic"), CLIP).sum(axis=0) / BATCH
    np.testing.assert_allclose(ask(vault, release, theta), expected, rtol=1e-9, atol=1e-14)


@pytest.mark.parametrize("form", FORMS)
def test_a_batch_may_be_empty(form):
    X, y = some_rows(2000)
    release = release_of(SampledGradient, batch=1, n=2000, times=20)
    vault = vault_of(FORMS[form](X), y, release)
    answers = [ask(vault, release) for _ in range(20)]
    assert any(np.all(answer == 0) for answer in answers)  # each is empty with chance 1/e: none in 20 has chance 1e-4
    assert any(np.any(answer != 0) for answer in answers)


def test_single_precision_is_kept_and_summed_in_double():
    X, y = some_rows()
    release = release_of(SampledGradient)
    double, single = (ask(vault_of(rows, y, release), release) for rows in (X, X.astype(np.float32)))
    assert single.dtype == np.float64
    np.testing.assert_allclose(single, double, rtol=1e-5, atol=1e-8)


# -- which rows ---------------------------------------------------------------------------------------------------


def test_poisson_batches_draw_each_row_independently_with_the_stated_chance():
    """20,000 batches of 40 rows: counts of rows, of pairs and of sizes at 5 sigmas (false alarm below 1e-5 each)."""
    source, rate, runs = NoiseSource(0), 0.2, 20_000
    member = np.zeros((runs, N))
    for at in range(runs):
        rows = source.batch(N, rate, "poisson")
        assert len(set(rows)) == len(rows)
        member[at, rows] = 1
    sd = math.sqrt(rate * (1 - rate) / runs)
    assert np.all(np.abs(member.mean(axis=0) - rate) < 5 * sd)
    pairs = (member.T @ member / runs)[np.triu_indices(N, 1)]
    assert np.all(np.abs(pairs - rate**2) < 5 * math.sqrt(rate**2 * (1 - rate**2) / runs))
    sizes = np.bincount(member.sum(axis=1).astype(int), minlength=N + 1)
    law = stats.binom.pmf(np.arange(N + 1), N, rate)
    common = law * runs > 20
    assert stats.chisquare(np.append(sizes[common], sizes[~common].sum()), runs * np.append(
        law[common], law[~common].sum())).pvalue > 1e-5  # fmt: skip
    wrong = stats.binom.pmf(np.arange(N + 1), N, 1.25 * rate)
    assert stats.chisquare(sizes[common], runs * wrong[common] * sizes[common].sum() / (
        runs * wrong[common].sum())).pvalue < 1e-9  # fmt: skip


@pytest.mark.parametrize(("rows", "size"), [(6, 3), (40, 39)])
def test_batches_of_fixed_size_are_subsets_all_alike(rows, size):
    source, runs = NoiseSource(1), 20_000
    drawn = [tuple(sorted(source.batch(rows, size / rows, "fixed"))) for _ in range(runs)]
    assert all(len(set(batch)) == size for batch in drawn)
    counts = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(counts) == math.comb(rows, size)
    assert stats.chisquare(counts).pvalue > 1e-6


def test_every_answer_is_about_a_fresh_batch():
    X, y = some_rows(500)
    release = release_of(SampledGradient, times=5, n=500)
    vault = vault_of(X, y, release)
    assert len({tuple(ask(vault, release)) for _ in range(5)}) == 5


def test_whole_numbers_have_nothing_to_do_with_the_rows():
    release = release_of(SampledGradient)
    vaults = [vault_of(*some_rows(seed=seed), release) for seed in range(2)]
    drawn = [[vault.whole_number(7) for _ in range(50)] for vault in vaults]
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == set(range(7))


# -- sensitivity --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SampledGradient, SampledMomentum])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_wild_row_that_is_drawn_moves_no_answer_by_more_than_the_stated_sensitivity(kind, form, adjacency, data):
    """All rows but one are drawn for certain here: the batches of two neighbours must be the same to be compared."""
    loss = data.draw(st.sampled_from(["squared", "logistic"]), "loss")
    X, y = some_rows(12, seed=data.draw(st.integers(0, 5), "seed"), loss=loss)
    at, intercept = data.draw(st.integers(0, 11), "at"), data.draw(st.booleans(), "intercept")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]) | st.just([1e9] * D), "row")
    target = data.draw(st.sampled_from([0.0, 1.0]), "target")
    points = st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0]), min_size=D + intercept, max_size=D + intercept)
    theta, before = (np.array(data.draw(points, name)) for name in ("theta", "before"))
    momentum = data.draw(st.sampled_from([0.0, 0.01, 0.5, 1.0]), "momentum")
    bounds = data.draw(st.sampled_from(SOME_BOUNDS), "bounds")
    release = release_of(kind, batch=11, n=12, adjacency=adjacency)
    answers = []
    for rows, targets in ((X, y), with_row(X, y, row, target, adjacency, at)):
        vault = vault_of(FORMS[form](rows), targets, release, loss, intercept, bounds, n=12)
        noise_of(vault).batch = lambda size, rate, sampling: np.arange(size)
        answers.append(ask(vault, release, theta, before, momentum=momentum))
    stated = vault.answers[-1]
    clip = momentum_clip(CLIP, CHANGE, momentum) if kind is SampledMomentum else CLIP
    assert stated.sensitivity == pytest.approx(adjacency.contributions * clip / 11)
    assert np.linalg.norm(answers[0] - answers[1]) <= stated.sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_stated_sensitivity_is_attained(adjacency):
    X, y = np.zeros((12, D)), np.zeros(12)
    if adjacency is Adjacency.REPLACE_ONE:
        X[0], y[0] = -1.0, 0.0
    release = release_of(SampledGradient, batch=6, n=12, adjacency=adjacency)
    answers = []
    for rows, targets in ((X, y), with_row(X, y, np.ones(D), 0.0, adjacency, 0)):
        vault = vault_of(rows, targets, release, n=12)
        noise_of(vault).batch = lambda size, rate, sampling: np.arange(size)
        answers.append(ask(vault, release, clip=0.5))
    assert np.linalg.norm(answers[0] - answers[1]) == pytest.approx(vault.answers[-1].sensitivity)


def test_the_clips_of_a_momentum_are_not_swapped():
    """Erratum E-18: with C1 = 1 and C2 = g = 0.01 it is .0199, not the printed .9901."""
    assert momentum_clip(1.0, 0.01, 0.01) == pytest.approx(0.0199)
    assert momentum_clip(1.0, 0.01, 1.0) == 1.0
    assert momentum_clip(math.inf, 0.01, 0.0) == 0.01
    for momentum in (-0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"momentum=.* must lie from 0 to 1"):
            momentum_clip(1.0, 0.01, momentum)


# -- noise --------------------------------------------------------------------------------------------------------


def chi_square_fits(noise, sd):
    """Two-sided at 1e-9."""
    value = float(np.sum(np.square(noise / sd)))
    return 5e-10 < stats.chi2.cdf(value, noise.size) < 1 - 5e-10


@pytest.mark.parametrize("kind", [SampledGradient, SampledMomentum])
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_noise_is_the_planned_multiple_of_the_sensitivity(kind, hardened, adjacency):
    """4,000 draws around rows of zeros; false alarms 1e-9, and a scale that is 1.25 times off is 13 sigmas away."""
    release = release_of(kind, sd=3.0, times=4, adjacency=adjacency)
    vault = vault_of(np.zeros((N, 1000)), np.zeros(N), release, hardened=hardened)
    noise = np.concatenate([ask(vault, release) for _ in range(4)])
    clip = CLIP if kind is SampledGradient else momentum_clip(CLIP, CHANGE, MOMENTUM)
    sd = 3.0 * adjacency.contributions * clip / BATCH
    paid = 1 + round_off_paid(adjacency, hardened, 2 * 300)  # both neighbours round off from a batch without the row
    assert vault.answers[-1].scale == pytest.approx(sd * paid, rel=1e-6)
    assert chi_square_fits(noise, sd)
    assert not chi_square_fits(noise, 1.25 * sd)
    assert not chi_square_fits(noise, sd / 1.25)


# -- paying -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [SampledGradient, SampledMomentum])
def test_a_batch_is_paid_for_before_it_is_drawn(kind):
    release = release_of(kind)
    vault = vault_of(*some_rows(), release)
    ask(vault, release)
    noise_of(vault).batch = None  # drawing would fail
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(vault, release)


def test_releases_pay_for_their_own_question_only():
    release = release_of(SampledMomentum)
    vault = vault_of(*some_rows(), release)
    with pytest.raises(BudgetExceeded, match="pays for a sampled momentum"):
        vault.sampled_gradient(vault.problem.origin(), release, CLIP)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        vault.gradient(vault.problem.origin(), GaussianGradient(1, 0.0), CLIP)
    assert vault.answers == ()


@pytest.mark.parametrize(
    "wrong",
    [
        {"momentum": -0.1},
        {"momentum": 1.5},
        {"clip": -0.01},
        {"clip": -1.0},
        {"clip": math.nan},
        {"clip": math.inf},
        {"change": -1.0},
        {"change": math.nan},
        {"change": math.inf},
        {"before": np.full(D, math.nan)},
        {"before": np.zeros(D + 1)},
        {"theta": np.full(D, math.inf)},
    ],
    ids=str,
)
def test_what_would_understate_the_sensitivity_is_refused_before_it_is_paid_for(wrong):
    release = release_of(SampledMomentum, sd=1.0)
    vault = vault_of(*some_rows(), release)
    with pytest.raises(ValueError, match=r"must|finite|shape"):
        ask(vault, release, **wrong)
    assert vault.answers == ()
    assert np.all(np.isfinite(ask(vault, release)))


def test_a_plan_refuses_batches_priced_for_other_neighbours_or_rows():
    for wrong in (release_of(SampledGradient, n=N + 1), release_of(SampledGradient, adjacency="add-remove")):
        problem = LinearProblem(N, D, Bounds(feature=1.0), sparsity=D, loss=LOGISTIC, intercept=False)
        with pytest.raises(ValueError, match="other neighbours or another number of rows"):
            Plan("test", problem, Budget(math.inf, 1e-6), (wrong,))


def test_hardened_noise_allows_for_the_rounding_of_both_neighbours():
    """Poisson batches are priced by how far each neighbour is from the batch without its row: two moves, not one."""
    scales = {}
    for sampling in ("poisson", "fixed"):
        release = release_of(SampledGradient, sd=3.0, sampling=sampling)
        vault = vault_of(np.zeros((N, 1000)), np.zeros(N), release, hardened=True)
        ask(vault, release)
        scales[sampling] = vault.answers[0].scale / (3.0 * vault.answers[0].sensitivity) - 1
    assert scales["poisson"] >= 2 * scales["fixed"] - 1e-12 > 0
