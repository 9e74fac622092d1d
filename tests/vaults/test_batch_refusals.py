"""Questions about a random batch: what would understate the sensitivity or the rate is refused, and not paid for."""

import math

import numpy as np
import pytest
from scipy import stats

from inside import drawn_batch
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import GaussianGradient, SampledGradient, SampledMomentum
from thresher.vaults import CentralVault
from thresher.vaults.losses import SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

N = 20


def problem_of(n=N):
    return LinearProblem(n, 2, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED, intercept=False)


def vault_of(release, rows=N, adjacency="replace-one", noise=None, X=None):
    plan = Plan("probe", problem_of(), Budget(math.inf, 1e-5, adjacency), (release,))
    X = np.ones((rows, 2)) if X is None else X
    return CentralVault(X, np.ones(rows), plan, noise or NoiseSource(0))


def momentum(times=1, sd=1.0, sampling="poisson"):
    return SampledMomentum(times, sd, 10, N, sampling, "replace-one")


def gradient(times=1, sd=1.0, sampling="poisson", adjacency="replace-one", population=N):
    return SampledGradient(times, sd, 10, population, sampling, adjacency)


# -- arguments ------------------------------------------------------------------------------------------------------


SOUND = {"clip": 1.0, "difference_clip": 0.5, "momentum": 0.5}
BAD = [
    {"momentum": -0.1}, {"momentum": 1.1}, {"momentum": math.nan},
    {"clip": -1.0}, {"clip": 0.0}, {"clip": math.nan}, {"clip": math.inf}, {"clip": math.inf, "momentum": 0.0},
    {"difference_clip": -0.5}, {"difference_clip": math.nan}, {"difference_clip": math.inf},
    {"difference_clip": math.inf, "momentum": 1.0},
    {"clip": -10.0, "difference_clip": 12.0},  # sum 1, while rows would be clipped at 12 and 10
    {"clip": 12.0, "difference_clip": -10.0},
]  # fmt: skip


@pytest.mark.parametrize("changes", BAD, ids=str)
def test_a_momentum_whose_clips_bound_nothing_is_refused_and_not_charged(changes):
    release = momentum()
    with vault_of(release) as vault:
        point = np.ones(2)
        with pytest.raises(ValueError, match=r"momentum=|clip="):
            vault.sampled_momentum(point, point / 2, release, **{**SOUND, **changes})
        vault.sampled_momentum(point, point / 2, release, **SOUND)  # still paid for
        assert vault.answers[0].clip == 0.75


@pytest.mark.parametrize(
    "wrong", [np.ones(3), np.ones((2, 1)), np.array([1.0, np.nan]), np.array([np.inf, 0.0])], ids=str
)
@pytest.mark.parametrize("which", ["theta", "before", "gradient"])
def test_points_that_are_none_are_refused(wrong, which):
    release = gradient() if which == "gradient" else momentum()
    points = {"theta": (wrong, np.ones(2)), "before": (np.ones(2), wrong), "gradient": (wrong,)}[which]
    clips = {"clip": 1.0} if which == "gradient" else SOUND
    with vault_of(release) as vault:
        ask = vault.sampled_gradient if which == "gradient" else vault.sampled_momentum
        with pytest.raises(ValueError, match=r"theta has shape|not finite"):
            ask(*points, release, **clips)


def test_a_release_pays_for_its_own_question_as_often_as_planned():
    release = gradient()
    origin = np.zeros(2)
    with vault_of(release) as vault:
        for stranger in (momentum(), gradient(sd=0.5), GaussianGradient(1, 1.0)):
            with pytest.raises(BudgetExceeded):
                vault.sampled_gradient(origin, stranger, 1.0)
        with pytest.raises(BudgetExceeded, match="not for a gradient"):
            vault.gradient(origin, release, 1.0)
        with pytest.raises(BudgetExceeded, match="not for a sampled momentum"):
            vault.sampled_momentum(origin, origin, release, **SOUND)
        vault.sampled_gradient(origin, release, 1.0)
        with pytest.raises(BudgetExceeded, match="used up"):
            vault.sampled_gradient(origin, release, 1.0)


@pytest.mark.parametrize(
    ("release", "adjacency"),
    [
        (gradient(), "add-remove"),
        (gradient(adjacency="add-remove"), "replace-one"),
        (gradient(population=40), "replace-one"),
    ],
)
def test_a_release_for_other_neighbours_or_another_number_of_rows_is_not_planned(release, adjacency):
    with pytest.raises(ValueError, match="other neighbours or another number of rows"):
        vault_of(release, adjacency=adjacency)


def test_batches_of_a_fixed_size_are_private_for_replaced_rows_only():
    with pytest.raises(ValueError, match="use sampling='poisson'"):
        gradient(sampling="fixed", adjacency="add-remove")


@pytest.mark.parametrize("rows", [19, 23])
def test_batches_of_a_fixed_size_are_drawn_from_the_planned_number_of_rows(rows):
    """Of 23 rows, half would be rounded up to 12: more than the rate that is priced."""
    release = gradient(sampling="fixed")
    with vault_of(release, rows) as vault, pytest.raises(ValueError, match="draws from 20 rows, not from"):
        vault.sampled_gradient(np.zeros(2), release, 1.0)


def test_where_the_number_of_rows_is_declared_each_is_drawn_at_the_priced_rate():
    """30 rows where 20 are declared, each with chance 1/2; 400 batches: false alarm rate 1e-4 with a fresh seed."""
    release = gradient(adjacency="add-remove")
    with vault_of(release, 30, "add-remove") as vault:
        drawn = np.bincount(np.concatenate([drawn_batch(vault, release) for _ in range(400)]), minlength=30)
    assert stats.binomtest(int(drawn.sum()), 30 * 400, 0.5).pvalue > 1e-4


# -- wild rows ------------------------------------------------------------------------------------------------------


def test_margins_that_overflow_leave_no_nan_in_a_momentum():
    """inf - inf: the row would give itself away in everybody's answer."""
    release = momentum(times=20)
    far = np.full(2, 1.5e308)
    with vault_of(release) as vault:
        answers = [vault.sampled_momentum(far, far / 1.1, release, **SOUND) for _ in range(20)]
    assert np.all(np.isfinite(answers))


@pytest.mark.parametrize("hardened", [False, True])
@pytest.mark.parametrize("question", ["gradient", "momentum"])
def test_a_row_moves_a_sum_by_no_more_than_the_sensitivity_on_record(question, hardened):
    """With next to no noise, and all rows moved at once: 19 of 20 are drawn, so the sum moves 19 times as far."""
    kind = SampledGradient if question == "gradient" else SampledMomentum
    release = kind(1, 1e-3, 19, N, "fixed", "replace-one")
    answers = []
    for x in ([1e6, 1e-3], [-1e6, 1e-3]):
        X = np.zeros((N, 2))
        X[:] = x
        with vault_of(release, X=X, noise=NoiseSource(3, hardened=hardened)) as vault:
            if question == "gradient":
                answers.append(vault.sampled_gradient(np.array([0.0, 1e6]), release, 1.0))
            else:
                answers.append(vault.sampled_momentum(np.array([0.0, 1e6]), np.zeros(2), release, **SOUND))
            sensitivity = vault.answers[0].sensitivity
    move = np.linalg.norm(answers[0] - answers[1]) / 19  # all 19 rows have moved
    assert move == pytest.approx(sensitivity, rel=1e-3)
    assert move <= sensitivity * (1 + 1e-3)
