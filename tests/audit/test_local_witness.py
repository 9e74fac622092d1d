"""The privacy loss of single reports: equal to what their laws say by hand, of everybody whose record is another."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

from thresher import LocalSparseRegressor
from thresher.algorithms import LDPIHT, LOCAL, LabelLasso, LabelLDPIHT
from thresher.audit import Claim, Pair, Suspect, audit, one_run, pairs
from thresher.audit.broken import Twice
from thresher.audit.game import hear_run, plan_of
from thresher.audit.local_witness import IMPOSSIBLE, LabelWitness, LocalWitness
from thresher.audit.questions import QUESTIONS
from thresher.audit.witness import VAULTS, witness_of
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Budget
from thresher.vaults import CentralVault, LabelVault, SimulatedVault
from thresher.vaults.losses import LOGISTIC, MULTINOMIAL, SQUARED
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

REPORTS = [name for name, question in QUESTIONS.items() if question.probe.trust in ("local", "labels")]
PURE = [name for name in REPORTS if name != "gaussian-report"]


def runs_of(name, count, seed=0):
    """Answers, reports and losses (of the second data set against the first) of runs on either data set."""
    question = QUESTIONS[name]
    plan = question.probe.plan(question.pair.problem, Budget(1.0, 0.0))
    witness, noise = witness_of(VAULTS[plan.trust]), NoiseSource(seed)
    for at in range(count):
        rows = (question.pair.first, question.pair.second)[:: 1 if at % 2 else -1]
        with witness(*rows[0], plan, noise) as live:
            answer = question.probe.run(live)
        with witness(*rows[1], plan, noise, live.transcript) as other:
            question.probe.run(other)
        loss = live.log_likelihood - other.log_likelihood
        yield answer, live, -loss if at % 2 else loss


# -- by hand --------------------------------------------------------------------------------------------------------


def test_the_loss_of_a_laplace_label_by_hand():
    """Labels of -1 and 1 with noise of scale 2/epsilon."""
    epsilon = QUESTIONS["laplace-report"].claim.epsilon
    for (report, _), _, loss in runs_of("laplace-report", 20):
        assert loss == pytest.approx((abs(report + 1) - abs(report - 1)) * epsilon / 2, abs=1e-8)


def test_the_loss_of_a_gaussian_label_by_hand():
    sd = QUESTIONS["gaussian-report"].probe.release.multiplier * 2
    for (report, _), _, loss in runs_of("gaussian-report", 20):
        assert loss == pytest.approx(2 * report / sd**2, abs=1e-8)


def test_the_loss_of_a_piecewise_label_by_hand():
    """The pieces of -1 and 1 are the two ends of [-C, C]; between -1 and 1 a report says nothing."""
    epsilon, losses = QUESTIONS["piecewise-report"].claim.epsilon, set()
    for (report, _), _, loss in runs_of("piecewise-report", 60):
        expected = epsilon * (0 if abs(report) < 1 else math.copysign(1, report))
        assert loss == pytest.approx(expected, abs=1e-8)
        losses.add(round(loss))
    assert losses == {-2, 0, 2}


def test_the_loss_of_a_class_by_hand():
    """Indicators are above 1 where the second class was reported and below 0 where the first was."""
    epsilon = QUESTIONS["class-report"].claim.epsilon
    for (report, _), _, loss in runs_of("class-report", 20):
        assert loss == pytest.approx(epsilon if report > 1 else -epsilon, abs=1e-8)


def test_the_loss_of_a_point_on_a_sphere_by_hand():
    """Toward the corner of ones, against it, or in neither cap. A positive label has a negative gradient."""
    question = QUESTIONS["sphere-report"]
    release, losses = question.probe.release, set()
    for _, live, loss in runs_of("sphere-report", 60):
        groups, *reports = (said.answer for said in live.transcript)
        (at,) = (at for at, group in enumerate(groups) if 0 in group)
        along = reports[at][0].sum() / math.sqrt(3) / np.linalg.norm(reports[at][0])
        expected = -release.epsilon * (float(along >= release.height) - float(-along >= release.height))
        assert loss == pytest.approx(expected, abs=1e-8)
        losses.add(round(loss))
    assert losses >= {-2, 2}


def test_the_loss_of_signs_by_hand():
    """All sampled signs positive, all negative, or else."""
    question, losses = QUESTIONS["hypercube-report"], set()
    release = question.probe.release
    assert release.sampled == release.agreeing == 2
    for _, live, loss in runs_of("hypercube-report", 60):
        groups, *reports = (said.answer for said in live.transcript)
        (at,) = (at for at, group in enumerate(groups) if 0 in group)
        signs = reports[at].signs[0]
        expected = -release.epsilon * (float(np.all(signs == 1)) - float(np.all(signs == -1)))
        assert loss == pytest.approx(expected, abs=1e-8)
        losses.add(round(loss))
    assert losses == {-2, 0, 2}


@pytest.mark.parametrize("name", PURE)
def test_pure_reports_reach_their_claim_and_never_exceed_it(name):
    """The pairs are as far apart as can be. Each run reaches the claim with chance above .5: 60 of them surely do."""
    losses = np.array([loss for _, _, loss in runs_of(name, 60, seed=3)])
    claim = QUESTIONS[name].claim.epsilon
    assert np.max(np.abs(losses)) == pytest.approx(claim, abs=1e-8)


@pytest.mark.parametrize("name", REPORTS)
def test_guesses_are_right_as_often_as_their_losses_say(name):
    """Given a loss l, the second data set has chance 1/(1 + e^-l). 800 coins; false alarm rate with a fresh seed 1e-6.

    Power: losses that are 0.7 of the true ones would lie 7 deviations off.
    """
    question = QUESTIONS[name]
    plan = question.probe.plan(question.pair.problem, Budget(1.0, 0.0))
    coins, scores = hear_run(Suspect(question.probe), plan, question.pair, 800, 7)
    losses = np.array(scores)
    chances = expit(np.abs(losses))
    right = (losses > 0) == (coins == 1)
    off = np.sum((right - chances)[losses != 0]) / math.sqrt(np.sum((chances * (1 - chances))[losses != 0]))
    assert abs(off) < stats.norm.isf(0.5e-6)


# -- who is heard ---------------------------------------------------------------------------------------------------


def some_people(n=12, d=4):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)


@pytest.mark.parametrize(("algorithm", "kind"), [(LDPIHT(iterations=3), LocalWitness), (LabelLDPIHT(), LabelWitness)])
def test_only_the_person_whose_record_is_another_counts(algorithm, kind):
    X, y = some_people()
    problem = LinearProblem(12, 4, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED)
    plan = algorithm.plan(problem, Budget(2.0, 0.0))
    with kind(X, y, plan, NoiseSource(0)) as live:
        algorithm.run(live)
    moved = y.copy()
    moved[5] = -y[5]
    with kind(X, moved, plan, NoiseSource(0), live.transcript) as other:
        algorithm.run(other)
    differ = np.flatnonzero(live.by_person != other.by_person)
    assert differ.tolist() == [5]
    assert abs(live.by_person[5] - other.by_person[5]) <= 2.0 + 1e-12
    assert live.log_likelihood == math.fsum(live.by_person)
    assert np.all(live.by_person != 0)


def test_everybody_reports_once_or_twice():
    X, y = some_people()
    problem = LinearProblem(12, 4, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED)
    plan = LDPIHT(iterations=3).plan(problem, Budget(2.0, 0.0))
    for vault, times in ((SimulatedVault, 1), (Twice, 2)):
        with witness_of(vault)(X, y, plan, NoiseSource(0)) as heard:
            LDPIHT(iterations=3).run(heard)
        people = np.concatenate(heard.transcript[0].answer)
        assert np.bincount(people).tolist() == [times] * 12
        assert len(heard.answers) == 3
        assert len(heard.transcript) == 1 + 3


def test_witnesses_answer_as_their_vault_does():
    X, y = some_people()
    problem = LinearProblem(12, 4, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=2, loss=SQUARED)
    for name, algorithm in LOCAL.items():
        plan = algorithm().plan(problem, Budget(2.0, 0.0))
        vault = VAULTS[plan.trust]
        found = []
        for kind in (vault, witness_of(vault)):
            with kind(X, y, plan, NoiseSource(4)) as asked:
                found.append(algorithm().run(asked))
        np.testing.assert_array_equal(*found, err_msg=name)


def test_every_kind_of_vault_has_a_witness():
    for vault, witness in ((SimulatedVault, LocalWitness), (LabelVault, LabelWitness)):
        assert witness_of(vault) is witness
        assert issubclass(witness_of(type("Copy", (vault,), {})), witness)
    assert issubclass(witness_of(type("Copy", (CentralVault,), {})), witness_of(CentralVault))


# -- the last bits of a float ---------------------------------------------------------------------------------------


def test_scores_do_not_follow_the_last_bits_of_a_report():
    """1 + noise below 1 may be an odd multiple of 2^-52, -1 + noise above 2 never is. Beyond the labels the loss of
    every report is epsilon, whatever its last bits are.
    """
    name = "laplace-report"
    losses = {loss for (report, _), _, loss in runs_of(name, 200) if report > 1}
    assert losses == {QUESTIONS[name].claim.epsilon}


def test_a_report_that_a_record_makes_impossible_leaves_numbers():
    """A piecewise report is never beyond C. Whatever stands in a script, differences of likelihoods are finite."""
    question = QUESTIONS["piecewise-report"]
    plan = question.probe.plan(question.pair.problem, Budget(1.0, 0.0))
    (_, live, _) = next(runs_of("piecewise-report", 1))
    script = [replace(live.transcript[0], answer=np.array([100.0, 0.0]))]
    with LabelWitness(*question.pair.first, plan, NoiseSource(0), script) as vault:
        question.probe.run(vault)
    assert vault.by_person[0] == IMPOSSIBLE
    assert math.isfinite(vault.log_likelihood)


# -- the game -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [*LOCAL, LabelLDPIHT(noise="laplace"), LDPIHT(randomiser="duchi-l2")])
def test_local_algorithms_are_audited_by_name_or_instance(target):
    result = audit(target, pairs.mirrored_row(n=3, d=3), claimed=1.0, runs=100, confidence=0.999, random_state=0)
    assert result.target in LOCAL
    assert result.delta == 0
    assert not result.violated


def test_a_pure_claim_is_planned_with_a_delta_of_zero():
    problem = pairs.mirrored_row(n=3).problem
    for algorithm in (LDPIHT(), LabelLDPIHT(), LabelLasso()):
        plan = plan_of(Suspect(algorithm), problem, Claim(1.0))
        assert plan.budget == Budget(1.0, 0.0)
        assert plan.epsilon == 1.0
    gaussian = plan_of(Suspect(LabelLDPIHT(noise="gaussian")), problem, Claim(1.0))
    assert 0 < gaussian.budget.delta < 1e-300  # it has no pure guarantee; counts will tell
    with pytest.raises(ValueError, match="noise='laplace' is for labels that are numbers"):
        plan_of(Suspect(LabelLDPIHT(noise="laplace")), pairs.mirrored_row(LOGISTIC).problem, Claim(1.0))


def test_three_classes_are_reported_at_once():
    """Not one class against the rest, which would be three reports."""
    pair = pairs.mirrored_row(MULTINOMIAL, n=3)
    result = audit(LabelLDPIHT(iterations=2), pair, claimed=2.0, runs=400, confidence=0.999, random_state=0)
    assert 0.5 < result.epsilon_lower <= 2.0  # true accuracy .79 of the guesses; below .5 with chance 1e-9


def test_gaussian_labels_are_bounded_by_their_mu():
    label = pairs.mirrored_row(n=2, d=1, sparsity=1)
    result = audit(LabelLDPIHT(iterations=1, noise="gaussian"), label, claimed=(2.0, 1e-5), runs=300, random_state=0)
    assert result.mu_lower is not None
    assert "Gaussian" in result.assumption
    assert result.counted == 300


def test_who_takes_part_is_no_secret_of_the_local_model():
    for target in LOCAL:
        with pytest.raises(ValueError, match="a report hides what a record holds, not that it was sent"):
            audit(target, pairs.mirrored_row(n=3, adjacency="add-remove"), claimed=1.0, runs=100)


def test_public_features_are_no_secret_either():
    (X, y), pair = pairs.mirrored_row(n=3).first, pairs.mirrored_row(n=3)
    moved = X.copy()
    moved[0] = -X[0]
    other = Pair("features", (X, y), (moved, y), pair.problem)
    assert pair.same_features
    assert not other.same_features
    assert audit("ldp-iht", other, claimed=1.0, runs=100, random_state=0).target == "ldp-iht"
    with pytest.raises(ValueError, match="pair 'features': label-lasso takes features for public; replace a label"):
        audit("label-lasso", other, claimed=1.0, runs=100)


def test_more_than_one_epsilon_is_disproved():
    """Twice the claim, so .881 of guesses are right where .731 are allowed: flagged with chance above 1 - 1e-9."""
    pair = pairs.mirrored_row(n=1, d=3)
    problem = pair.problem
    plan = LDPIHT(iterations=1, randomiser="duchi-linf").plan(problem, Budget(2.0, 0.0))

    class TwoForOne:
        name = "two for one"

        def plan(self, problem, budget):
            return plan

        def run(self, vault):
            return LDPIHT(iterations=1, randomiser="duchi-linf").run(vault)

    assert audit(TwoForOne(), pair, claimed=1.0, runs=1000, random_state=0).violated


def test_an_estimator_of_the_local_model_is_seen_through_its_coefficients():
    """One column: the only coefficient is a report. .88 of guesses are right; the bound is above .2 with chance .99."""
    algorithm = LDPIHT(iterations=1, step=1.0)
    model = LocalSparseRegressor(1, 2.0, algorithm=algorithm, feature_bound=1, target_bound=1, fit_intercept=False)
    pair = pairs.mirrored_row(n=2, d=1, sparsity=1)
    result = audit(model, pair, claimed=2.0, runs=200, random_state=0)
    assert result.target == "LocalSparseRegressor"
    assert 0.2 < result.epsilon_lower <= 2.0


# -- one run --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LOCAL)
def test_one_run_hears_every_canary_by_itself(name):
    """500 canaries at epsilon 2, all guessed: .8 or more are right on average, so the bound is above 1 (power .999) and
    above 2 with chance at most .001.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (100, 3))
    problem = LinearProblem(600, 3, Bounds(feature=1, target=(-1, 1)), sparsity=2, loss=SQUARED, intercept=False)
    result = one_run(
        name, problem, X, X[:, 0], claimed=2.0, guesses=500, confidence=0.999, random_state=1,
    )  # fmt: skip
    assert 1.0 < result.epsilon_lower <= 2.0


def test_one_run_catches_people_who_report_twice():
    """Two reports of epsilon 1.5 where one is claimed: .95 of 100 guesses would be right, .82 are allowed."""
    problem = LinearProblem(500, 3, Bounds(feature=1, target=(-1, 1)), sparsity=2, loss=SQUARED, intercept=False)
    suspect = Suspect(LDPIHT(iterations=2, randomiser="duchi-l2", step=1e-3), vault=Twice)
    empty = (np.empty((0, 3)), np.empty(0))
    assert one_run(suspect, problem, *empty, claimed=1.5, guesses=100, random_state=1).violated
    sound = replace(suspect, vault=None)
    assert not one_run(sound, problem, *empty, claimed=1.5, guesses=100, confidence=0.999, random_state=1).violated
