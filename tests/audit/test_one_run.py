"""One run with many canaries: how they stand, that sound runs pass and broken ones do not, and what is refused."""

import json
import math

import numpy as np
import pytest
from scipy import sparse, stats

from thresher import SparseClassifier, SparseRegressor
from thresher.algorithms import DPIGHT, FrankWolfe, OutputPerturbation
from thresher.audit import Claim, Suspect, one_run
from thresher.audit.bounds import one_run_epsilon_lower
from thresher.audit.one_run import mirrored_targets, random_canaries
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.privacy.conversions import gaussian_mu
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

REAL, CANARIES, D = 20, 200, 400
CLAIM = Claim(4.0, 1e-5)
QUICK = DPIGHT(iterations=2, step=0.001)


def problem_of(loss="squared", *, n=REAL + CANARIES, d=D, target=(-1.0, 1.0), bounds=None, **facts):
    bounds = bounds or Bounds(feature=1.0, target=target if loss == "squared" else None)
    return LinearProblem(
        n,
        d,
        bounds,
        sparsity=facts.pop("sparsity", d),
        loss=loss_named(loss),
        intercept=facts.pop("intercept", False),
        **facts,
    )


def some_rows(loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.uniform(-1, 1, (REAL, D)), rng.uniform(-1, 1, REAL)
    return X, y if loss == "squared" else (y > 0).astype(float)


def facts(result):
    return {name: value for name, value in result.to_dict().items() if name != "seconds"}


def noisy_sum(mu):
    """sum_i y_i x_i + noise, rows of norm sqrt(d) and targets within 1: mu-Gaussian DP for replace-one neighbours."""

    def release(X, y, seed):
        return X.T @ y + np.random.default_rng(seed).normal(size=X.shape[1]) * 2 * math.sqrt(X.shape[1]) / mu

    return release


# -- canaries -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bounds", "longest"),
    [
        (Bounds(feature=2.0, target=(-1.0, 3.0)), 2.0 * math.sqrt(6)),
        (Bounds(row=0.5, target=(-1.0, 3.0)), 0.5),
        (Bounds(feature=(1.0, 2, 3, 4, 5, 6), target=(-1.0, 3.0)), math.sqrt(91)),
        (Bounds(feature=1.0, row=1.5, target=(-1.0, 3.0)), 1.5),
    ],
)
def test_canaries_are_as_long_as_rows_may_be(bounds, longest):
    rows, targets = random_canaries(problem_of(d=6, bounds=bounds), 50, 0)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), longest, rtol=1e-12)
    assert np.all(np.abs(rows) <= bounds.entries(6) * (1 + 1e-12))
    np.testing.assert_array_equal(targets, np.full(50, 3.0))
    np.testing.assert_allclose(np.abs(rows), np.abs(rows[:1]).repeat(50, axis=0))  # signs alone differ


def test_classes_of_canaries_are_ones():
    _, targets = random_canaries(problem_of("logistic"), 5, 0)
    np.testing.assert_array_equal(targets, np.ones(5))
    np.testing.assert_array_equal(mirrored_targets(targets, problem_of("logistic")), np.zeros(5))


def test_targets_are_mirrored_in_the_middle_of_their_range():
    problem = problem_of(target=(-1.0, 3.0))
    np.testing.assert_array_equal(mirrored_targets(np.array([3.0, -1.0, 1.0, 2.5]), problem), [-1.0, 3.0, 1.0, -0.5])
    twice = mirrored_targets(mirrored_targets(np.array([0.25]), problem), problem)
    np.testing.assert_array_equal(twice, [0.25])


def test_signs_of_canaries_are_random_and_almost_at_right_angles():
    """20,000 signs; false alarm rate with a fresh seed: 1e-4. Cosines have an sd of 1/20, 8 sd do not happen."""
    rows, _ = random_canaries(problem_of(), 50, 1)
    assert stats.binomtest(int(np.sum(rows > 0)), rows.size).pvalue > 1e-4
    cosines = rows @ rows.T / D - np.eye(50)
    assert np.max(np.abs(cosines)) < 8 / math.sqrt(D)


def test_the_rows_that_are_run_are_the_real_ones_and_canaries_with_either_target():
    X, y = some_rows()
    seen = []

    def look(rows, targets, seed):
        seen.append((rows, targets))
        return np.zeros(D)

    one_run(look, problem_of(), X, y, claimed=CLAIM, random_state=3)
    rows, targets = seen[0]
    canaries, own = random_canaries(problem_of(), CANARIES, 3)
    np.testing.assert_array_equal(rows[:REAL], X)
    np.testing.assert_array_equal(rows[REAL:], canaries)
    np.testing.assert_array_equal(targets[:REAL], y)
    assert set(targets[REAL:]) == {-1.0, 1.0} == {own[0], -own[0]}
    assert len(seen) == 1


def test_coins_of_canaries_are_fair_and_do_not_follow_their_signs():
    """2000 coins; false alarm rate with a fresh seed: 2e-4."""
    seen = []
    problem = problem_of(n=2000, d=3)
    one_run(
        lambda X, y, s: seen.append((X, y)) or np.zeros(3), problem, np.empty((0, 3)), [], claimed=1.0, random_state=0
    )
    rows, targets = seen[0]
    assert stats.binomtest(int(np.sum(targets > 0)), 2000).pvalue > 1e-4
    assert stats.binomtest(int(np.sum(targets * rows[:, 0] > 0)), 2000).pvalue > 1e-4


# -- what is found --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_a_sound_run_is_not_flagged_and_its_bound_is_not_idle(seed):
    """40 guesses of which 0.83 are right. With a fresh seed: above 0.3 in 97 of 100 runs, above 4 in none of 1e5."""
    X, y = some_rows()
    result = one_run(QUICK, problem_of(), X, y, claimed=CLAIM, confidence=0.95, random_state=seed)
    assert 0.3 < result.epsilon_lower < 4
    assert not result.violated
    assert (result.right + result.wrong, result.counted, result.runs) == (40, CANARIES, 1)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_array], ids=["csr", "csc"])
def test_sparse_rows_give_the_same_as_dense_ones(form):
    X, y = some_rows()
    dense, scattered = (one_run(QUICK, problem_of(), rows, y, claimed=CLAIM, random_state=1) for rows in (X, form(X)))
    assert (dense.right, dense.epsilon_lower) == (scattered.right, scattered.epsilon_lower)
    assert dense.event.high == pytest.approx(scattered.event.high, rel=1e-9)


def test_sparse_canaries_stand_beside_sparse_rows():
    X, y = some_rows()
    rows, targets = random_canaries(problem_of(), CANARIES, 1)
    canaries = (sparse.csr_array(rows), targets)
    given = one_run(QUICK, problem_of(), sparse.csr_array(X), y, claimed=CLAIM, canaries=canaries, random_state=1)
    own = one_run(QUICK, problem_of(), sparse.csr_array(X), y, claimed=CLAIM, random_state=1)
    assert given.right == own.right


def test_a_run_on_canaries_alone():
    """With a fresh seed: above 0.3 in 97 of 100 runs."""
    result = one_run(
        QUICK, problem_of(n=CANARIES), np.empty((0, D)), [], claimed=CLAIM, confidence=0.95, random_state=0
    )
    assert result.epsilon_lower > 0.3


def test_classes_are_mirrored_too():
    """With a fresh seed: above 0.3 in 97 of 100 runs."""
    X, y = some_rows("logistic")
    result = one_run(QUICK, problem_of("logistic"), X, y, claimed=CLAIM, confidence=0.95, random_state=0)
    assert 0.3 < result.epsilon_lower < 4


def test_one_run_is_repeatable():
    X, y = some_rows()
    one, same, other = (one_run(QUICK, problem_of(), X, y, claimed=CLAIM, random_state=s) for s in (1, 1, 2))
    assert facts(one) == facts(same)
    assert facts(one) != facts(other)
    assert facts(one_run(QUICK, problem_of(), X, y, claimed=CLAIM)) != facts(one)


def test_a_release_with_a_tenth_of_its_noise_is_flagged_and_the_honest_one_is_not():
    """With a fresh seed the honest one is flagged in at most 1 of 100 runs, the other in 999 of 1000."""
    X, y = some_rows()
    mu = gaussian_mu(1.0, 1e-5)
    honest, quiet = (
        one_run(noisy_sum(each), problem_of(), X, y, claimed=(1.0, 1e-5), random_state=0) for each in (mu, 10 * mu)
    )
    assert not honest.violated
    assert quiet.violated
    assert quiet.target == "release"


def test_a_run_that_tells_nothing_is_at_chance():
    """100 guesses; false alarm rate with a fresh seed: 1e-4."""
    X, y = some_rows()

    def noise_alone(X, y, seed):
        return np.random.default_rng(seed).normal(size=D)

    result = one_run(noise_alone, problem_of(), X, y, claimed=1.0, guesses=100, random_state=0)
    assert stats.binomtest(result.right, 100).pvalue > 1e-4
    assert not result.violated


def test_an_exact_model_gives_every_canary_away():
    X, y = some_rows()
    result = one_run(lambda X, y, seed: X.T @ y, problem_of(), X, y, claimed=1.0, random_state=0)
    assert result.wrong == 0
    assert result.violated
    assert result.epsilon_lower == one_run_epsilon_lower(40, 40, CANARIES, 0.0, 0.99)


@pytest.mark.parametrize("intercept", [False, True])
def test_an_intercept_at_the_end_of_a_model_changes_no_guess(intercept):
    X, y = some_rows()

    def model(X, y, seed):
        coefficients = X.T @ y
        return np.append(coefficients, 1e6) if intercept else coefficients

    assert one_run(model, problem_of(), X, y, claimed=1.0, random_state=0).wrong == 0


def test_estimators_show_their_model_alone():
    """All columns kept and little noise: the model leans towards the canaries it saw. Power with a fresh seed: 0.99."""
    X, y = some_rows()
    known = {"epsilon": 200.0, "delta": 1e-5, "feature_bound": 1.0, "fit_intercept": True}
    regressor = SparseRegressor(D, target_bound=1.0, algorithm=OutputPerturbation(ridge=1.0), **known)
    result = one_run(regressor, problem_of(intercept=True), X, y, claimed=(200.0, 1e-5), random_state=0)
    assert result.epsilon_lower > 0.3
    assert result.target == "SparseRegressor"
    assert not hasattr(regressor, "coef_")
    X, y = some_rows("logistic")
    classifier = SparseClassifier(D, algorithm=OutputPerturbation(ridge=0.1), **known)
    result = one_run(classifier, problem_of("logistic", intercept=True), X, y, claimed=(200.0, 1e-5), random_state=0)
    assert result.epsilon_lower > 0.3


def test_algorithms_may_be_named_and_the_plan_is_that_of_the_claim():
    X, y = some_rows()
    result = one_run("dp-ight", problem_of(sparsity=3), X, y, claimed=Budget(4.0, 1e-5), random_state=0)
    assert (result.target, result.claimed_epsilon, result.delta) == ("dp-ight", 4.0, 1e-5)
    assert result.pair == "one run, 200 canaries"


def test_choices_are_not_heard_and_guesses_are_made_all_the_same():
    """Only numbers are heard, and Frank-Wolfe says none: 40 guesses at chance. False alarms with a fresh seed: 1e-4."""
    X, y = some_rows()
    result = one_run(FrankWolfe(iterations=5), problem_of(), X, y, claimed=CLAIM, random_state=0)
    assert result.right + result.wrong == 40
    assert stats.binomtest(result.right, 40).pvalue > 1e-4


def test_the_real_rows_and_their_targets_stay_as_they_were():
    X, y = some_rows()
    before = X.copy(), y.copy()
    one_run(QUICK, problem_of(), X, y, claimed=CLAIM, random_state=0)
    np.testing.assert_array_equal(X, before[0])
    np.testing.assert_array_equal(y, before[1])


@pytest.mark.parametrize("guesses", [1, 2, 7, CANARIES])
def test_as_many_guesses_are_made_as_asked_for(guesses):
    X, y = some_rows()
    result = one_run(noisy_sum(1.0), problem_of(), X, y, claimed=1.0, guesses=guesses, random_state=0)
    assert result.right + result.wrong == guesses
    assert result.epsilon_lower == one_run_epsilon_lower(result.right, guesses, CANARIES, 0.0, 0.99)


def test_a_result_is_ready_for_json():
    X, y = some_rows()
    result = one_run(noisy_sum(1.0), problem_of(), X, y, claimed=CLAIM, guesses=1, random_state=0)
    data = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert data["violated"] is False
    assert data["event"]["low"] == "-inf"  # one guess is a guess at the upper end
    assert "one run, 200 canaries" in str(result)


# -- errors ---------------------------------------------------------------------------------------------------------


def zeros(X, y, seed):
    return np.zeros(D)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"claimed": 0.0}, "epsilon must be positive"),
        ({"confidence": 1.0}, "confidence=1.0 must lie strictly between 0 and 1"),
        ({"guesses": 0}, "guesses=0 must be a whole number from 1 to the number of canaries, 200"),
        ({"guesses": 201}, "guesses=201 must be a whole number from 1 to the number of canaries, 200"),
        ({"guesses": 2.0}, "guesses=2.0 must be a whole number"),
        ({"problem": problem_of(n=REAL + 1)}, "canaries: 1 are too few; a thousand or more give a useful bound"),
        (
            {"canaries": (np.zeros((3, D)), np.ones(3))},
            "problem.n=220 must be the 20 rows and the 3 canaries together",
        ),
        ({"target": lambda X, y, seed: np.zeros(3)}, "returned 3 values; return 400 coefficients and, last, an interc"),
        ({"target": "dp-iht"}, "algorithm='dp-iht' must be one of"),
        ({"target": 7}, r"must be an algorithm \(an instance, or its name\), an unfitted estimator, or a function"),
        ({"problem": problem_of(n=REAL - 5)}, "must be the 20 rows and the 0 canaries together"),
        ({"claimed": Budget(1.0, 1e-6, "add-remove")}, "are replace-one neighbours; claim those"),
        (
            {"problem": problem_of("multinomial", outputs=3)},
            "canaries are mirrored between two classes or ends; audit one class against the rest",
        ),
    ],
)
def test_what_cannot_be_audited_in_one_run_is_refused_with_a_reason(arguments, message):
    X, y = some_rows()
    usual = {"target": zeros, "problem": problem_of(), "X": X, "y": y, "claimed": 1.0, "random_state": 0}
    with pytest.raises(ValueError, match=message):
        one_run(**{**usual, **arguments})


class Whisper(NoiseSource):
    """A hundredth of the noise that is paid for."""

    def gaussian(self, value, sensitivity, multiplier, error=0.0, touched=None):
        return super().gaussian(value, sensitivity, 0.01 * multiplier, error)


def test_a_copy_with_other_noise_is_heard_as_it_is():
    """All of 40 guesses right disproves 2.1 at 99 %; the honest one is right about 6 times in 10."""
    X, y = some_rows()
    results = [
        one_run(target, problem_of(), X, y, claimed=(1.0, 1e-6), random_state=0)
        for target in (Suspect(QUICK, noise=Whisper), QUICK)
    ]
    assert [result.violated for result in results] == [True, False]
