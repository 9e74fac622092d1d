"""Neighbours: what counts as such, and that each built-in pair is as far apart as the stated sensitivity allows."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from thresher.audit import Pair, pairs
from thresher.audit.questions import QUESTIONS
from thresher.audit.witness import Witness
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.releases import SampledRelease
from thresher.vaults.losses import LOGISTIC, SQUARED, loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

BUILT_IN = {
    "mirrored row": pairs.mirrored_row,
    "mirrored row, logistic": lambda: pairs.mirrored_row(LOGISTIC),
    "mirrored row, add-remove": lambda: pairs.mirrored_row(adjacency="add-remove"),
    "mirrored row, logistic, add-remove": lambda: pairs.mirrored_row(LOGISTIC, adjacency="add-remove"),
    "one rises": pairs.one_rises,
    "leaning": pairs.leaning,
    "leaning, logistic": lambda: pairs.leaning(LOGISTIC),
    "one rises, logistic": lambda: pairs.one_rises(LOGISTIC),
    "support flip": pairs.support_flip,
    "support flip, small": lambda: pairs.support_flip(101, 2),
    "opposite rows": pairs.opposite_rows,
    "above all": pairs.above_all,
    "orthogonal rows": pairs.orthogonal_rows,
    "full row": pairs.full_row,
    "ranks": pairs.ranks,
    "ballots": pairs.ballots,
    "label ends": lambda: pairs.label_ends(3.0),
    "all-ones direction": pairs.all_ones,
}
X, Y = np.arange(12.0).reshape(4, 3), np.array([1.0, 2.0, 3.0, 4.0])


def plain(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


def changed(values, at, to):
    copied = values.copy()
    copied[at] = to
    return copied


# -- neighbours -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_pairs_are_neighbours_and_fit_their_problem(name):
    """Counted anew, row by row."""
    pair = BUILT_IN[name]()
    (X, y), (Z, z) = ((plain(rows), targets) for rows, targets in (pair.first, pair.second))
    if pair.adjacency is Adjacency.REPLACE_ONE:
        assert X.shape == Z.shape
        assert sum(bool(np.any(X[i] != Z[i]) or y[i] != z[i]) for i in range(len(y))) == 1
    else:
        np.testing.assert_array_equal(X, Z[1:])
        np.testing.assert_array_equal(y, z[1:])
    assert len(X) == len(y)
    if pair.problem is not None:
        assert pair.problem.n == max(len(y), len(z))
        assert pair.problem.d == X.shape[1]
        assert pair.problem.intercept is False


@pytest.mark.parametrize("form", [np.array, sparse.csr_array, sparse.csc_array], ids=["dense", "csr", "csc"])
def test_one_other_row_or_target_makes_neighbours(form):
    assert Pair("row", (form(X), Y), (form(changed(X, 2, 7.0)), Y)).adjacency is Adjacency.REPLACE_ONE
    Pair("target", (form(X), Y), (form(X), changed(Y, 3, 0.0)))
    Pair("both", (form(X), Y), (form(changed(X, (3, 1), -1.0)), changed(Y, 3, 0.0)))
    Pair("mixed forms", (X, Y), (form(changed(X, 2, 7.0)), Y))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("out", range(4))
def test_one_row_more_or_less_makes_neighbours(form, out):
    fewer = (form(np.delete(X, out, axis=0)), np.delete(Y, out))
    for first, second in (((form(X), Y), fewer), (fewer, (form(X), Y))):
        assert Pair("out", first, second, adjacency="add-remove").adjacency is Adjacency.ADD_REMOVE


def test_targets_may_be_a_list():
    Pair("list", (X, Y.tolist()), (X, changed(Y, 0, 9.0).tolist()))


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize(
    ("second", "count"),
    [
        ((changed(X, [0, 1], 5.0), Y), 2),
        ((changed(X, 0, 5.0), changed(Y, 1, 9.0)), 2),
        ((X[[1, 0, 2, 3]], Y), 2),
        ((X, -Y), 4),
        ((X, Y), 0),
    ],
    ids=["two rows", "a row and another's target", "another order", "all targets", "none"],
)
def test_more_than_one_other_row_is_refused(form, second, count):
    with pytest.raises(ValueError, match=f"pair 'far': replace-one neighbours differ in one row, these in {count}"):
        Pair("far", (form(X), Y), (form(second[0]), second[1]))


@pytest.mark.parametrize("second", [(X[1:], Y[1:]), (X[:, 1:], Y)], ids=["rows", "columns"])
def test_replaced_rows_of_other_shapes_are_refused(second):
    with pytest.raises(ValueError, match="pair 'far': replace-one neighbours have the same shape"):
        Pair("far", (X, Y), second)


@pytest.mark.parametrize("second", [(X, Y), (X[2:], Y[2:]), (X, changed(Y, 0, 9.0))])
def test_removed_rows_must_be_one(second):
    with pytest.raises(ValueError, match=r"add-remove neighbours have \d and \d rows, not \d"):
        Pair("far", (X, Y), second, adjacency="add-remove")


@pytest.mark.parametrize(
    "second",
    [(changed(X, 1, 5.0)[1:], Y[1:]), (X[1:], changed(Y, 2, 9.0)[1:]), (X[[2, 1, 3]], Y[[2, 1, 3]])],
    ids=["another row", "another target", "another order"],
)
def test_a_row_taken_out_beside_another_change_is_refused(second):
    with pytest.raises(ValueError, match="taking one row out of the larger data set does not give the smaller one"):
        Pair("far", (X, Y), second, adjacency="add-remove")


def test_an_unknown_adjacency_is_refused():
    with pytest.raises(ValueError, match="add-one"):
        Pair("row", (X, Y), (changed(X, 2, 7.0), Y), adjacency="add-one")


def test_a_pair_may_be_changed_in_parts_and_is_checked_again():
    pair = pairs.mirrored_row(n=10)
    assert replace(pair, name="renamed").second is pair.second
    with pytest.raises(ValueError, match="differ in one row"):
        replace(pair, first=pair.second)


# -- as far apart as can be -----------------------------------------------------------------------------------------


class Listening(Witness):
    """Notes the exact scores of every choice as well."""

    def __init__(self, *args):
        super().__init__(*args)
        self.scores = []

    def _pick_noisy(self, scores, *args):
        self.scores.append(scores.copy())
        return super()._pick_noisy(scores, *args)

    def _follow(self, engine, walk, release, clip, sensitivity):
        self.scores.append(self._scores(engine, walk.theta, walk.polytope, clip))
        return super()._follow(engine, walk, release, clip, sensitivity)


def heard(question, pair=None):
    """A question put to both data sets of its pair, the second one hearing the first one's answers."""
    pair, script, vaults = pair or question.pair, None, []
    plan = question.probe.plan(pair.problem, Budget(1.0, 1e-5, pair.adjacency))
    for rows in (pair.first, pair.second):
        with Listening(*rows, plan, NoiseSource(0), script) as vault:
            question.probe.run(vault)
        vaults.append(vault)
        script = vault.transcript
    assert vaults[0].answers == vaults[1].answers
    return vaults


def moved(first, second):
    """How far apart the exact answers are, and the sensitivity on record."""
    one, other = first.transcript[0], second.transcript[0]
    return float(np.linalg.norm(one.value - other.value)), first.answers[0].sensitivity


AVERAGES = ["gradient", "restricted-gradient", "projected-gradient", "mean", "moments", "gram", "projected-gram"]
NUMBERS = [*AVERAGES, "minimiser", "labels", "pure-minimiser"]
CHOICES = ["selection", "votes", "quantile", "vertex", "signed-vertex", "walked-vertex", "step-length"]
TEXTS = ["categories", "rare-category"]
BATCHES = [name for name, question in QUESTIONS.items() if isinstance(question.probe.release, SampledRelease)]


def test_every_question_is_a_number_or_a_choice_or_of_a_batch_or_of_texts_or_the_perturbed_minimiser_or_a_report():
    """Reports are in test_local_witness.py, texts in vaults/test_texts.py."""
    central = {name for name, question in QUESTIONS.items() if question.probe.trust == "central"}
    others = {"perturbed-minimiser", "norm-quantile", "near-maximum"}  # of which the second does not move at all
    assert {*NUMBERS, *CHOICES, *BATCHES, *TEXTS, *others} == central


@pytest.mark.parametrize("name", BATCHES)
def test_sums_over_batches_move_by_their_sensitivity_if_the_row_is_drawn(name):
    """On average by the rate times that; of a turned row all but the small entry turns."""
    distance, sensitivity = moved(*heard(QUESTIONS[name]))
    assert len(BATCHES) == 6
    assert distance == pytest.approx(QUESTIONS[name].probe.release.rate * sensitivity, rel=1e-3)
    assert distance <= QUESTIONS[name].probe.release.rate * sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_move_by_their_sensitivity_and_no_more(name):
    """The sensitivity of a minimiser holds 1 % for the distance at which the search stops."""
    distance, sensitivity = moved(*heard(QUESTIONS[name]))
    assert 0.985 * sensitivity <= distance <= sensitivity * (1 + 1e-9)


@pytest.mark.parametrize("name", AVERAGES)
def test_averages_move_by_exactly_their_sensitivity(name):
    distance, sensitivity = moved(*heard(QUESTIONS[name]))
    assert distance == pytest.approx(sensitivity, rel=1e-12)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_a_mirrored_row_moves_gradients_by_exactly_their_sensitivity(loss, adjacency):
    """One row's worth if it is taken out, two if it is mirrored; of classes the residual is 1/2 either way."""
    pair = pairs.mirrored_row(loss_named(loss), n=20, adjacency=adjacency)
    distance, sensitivity = moved(*heard(QUESTIONS["gradient"], pair))
    assert distance == pytest.approx(sensitivity, rel=1e-12)
    assert sensitivity == pytest.approx(adjacency.contributions * 0.5 * 2 / 20)


def score_moves(name, pair=None):
    first, second = heard(QUESTIONS[name], pair)
    (scores,), (other_scores,) = first.scores, second.scores
    return (other_scores - scores) / first.answers[0].sensitivity


@pytest.mark.parametrize("name", CHOICES)
def test_scores_of_choices_move_by_their_sensitivity_in_opposite_directions(name):
    """Every score moves by all it can, some up and some down: the worst case of the exponential mechanism.

    Of the levels of a quantile one may stay: the rows in the middle are in its cell in both data sets.
    """
    moves = score_moves(name)
    stays = moves == 0
    assert np.sum(stays) <= (name == "quantile")
    np.testing.assert_allclose(np.abs(moves[~stays]), 1.0, rtol=1e-12)
    assert set(np.sign(moves[~stays])) == {-1.0, 1.0}


@pytest.mark.parametrize("name", ["selection", "votes", "vertex", "step-length"])
def test_one_score_rises_while_all_others_fall_or_the_reverse(name):
    signs = np.sign(score_moves(name))
    assert signs[0] == -signs[1]
    assert np.all(signs[1:] == signs[1])


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_one_rises_moves_the_scores_of_both_losses_by_all_they_can(loss):
    moves = score_moves("selection", pairs.one_rises(loss_named(loss), n=20))
    np.testing.assert_allclose(moves, [1.0] + [-1.0] * 7, rtol=1e-12)


def test_one_rises_brings_a_choice_close_to_its_whole_epsilon():
    """In units of the noise the first column lies epsilon/2 below the other seven, and then as far above them."""
    first, second = heard(QUESTIONS["selection"])
    epsilon = QUESTIONS["selection"].claim.epsilon
    scale = first.answers[0].scale
    laws = [np.exp(v.scores[0] / scale) / np.sum(np.exp(v.scores[0] / scale)) for v in (first, second)]
    losses, root = np.abs(np.log(laws[1] / laws[0])), math.exp(epsilon / 2)
    assert 0.8 * epsilon < np.max(losses) <= epsilon
    assert np.max(losses) == pytest.approx(epsilon / 2 + math.log((1 + 7 * root) / (root + 7)), rel=1e-9)


def test_scores_of_a_near_maximum_move_by_one_or_not_at_all():
    np.testing.assert_allclose(score_moves("near-maximum"), [-1.0] * 4 + [0.0] * 20, atol=1e-12)


def test_levels_that_become_worse_bring_a_near_maximum_close_to_its_whole_epsilon():
    """Of 24 levels of equal scores, up to the least price, four fall by epsilon in units of the noise."""
    first, second = heard(QUESTIONS["near-maximum"])
    epsilon, scale = QUESTIONS["near-maximum"].claim.epsilon, first.answers[0].scale
    laws = [np.exp(v.scores[0] / scale) / np.sum(np.exp(v.scores[0] / scale)) for v in (first, second)]
    loss = math.log(laws[0][:4].sum() / laws[1][:4].sum())
    assert loss == pytest.approx(epsilon + math.log((4 * math.exp(-epsilon) + 20) / 24), abs=1e-4)
    assert 0.9 * epsilon < loss <= epsilon


def test_the_perturbed_minimiser_meets_a_row_that_stays_clipped():
    """The tilts that lead to the same answer differ by the whole sensitivity."""
    question = QUESTIONS["perturbed-minimiser"]
    plan = question.probe.plan(question.pair.problem, Budget(1.0, 1e-5))
    for seed in range(20):
        with Witness(*question.pair.first, plan, NoiseSource(seed)) as live:
            answer = question.probe.run(live)
        assert np.abs(answer) < 0.5  # so residuals of -1 and 1 minus the margin are beyond the clip of 0.5
        with Witness(*question.pair.second, plan, NoiseSource(0), live.transcript) as other:
            question.probe.run(other)
        scale, sensitivity = live.answers[0].scale, live.answers[0].sensitivity
        roots = [math.sqrt(-2 * vault.log_likelihood) * scale for vault in (live, other)]
        gaps = (abs(roots[0] - roots[1]), roots[0] + roots[1])  # the roots are sizes of numbers
        assert min(abs(gap - sensitivity) for gap in gaps) < 1e-9


def test_the_best_single_column_flips_with_one_row():
    pair = pairs.support_flip(11, 4)
    counts = [np.sum(rows[0] != 0, axis=0) for rows in (pair.first, pair.second)]
    assert [c[:2].tolist() for c in counts] == [[6, 5], [5, 6]]
    assert all(np.all(c[2:] == 0) for c in counts)


def test_wild_rows_lie_outside_their_bounds_and_are_clipped_to_the_worst_case():
    pair = pairs.mirrored_row()
    assert np.max(np.abs(pair.first[0])) > 100 * pair.problem.bounds.feature
    assert np.max(np.abs(pair.first[1])) > 100 * pair.problem.bounds.target[1]


def test_a_label_at_either_end_is_within_its_range():
    pair = pairs.label_ends(3.0)
    assert (pair.first[1], pair.second[1]) == pair.problem.bounds.target == (-3.0, 3.0)
    assert pair.same_features


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "csr"])
def test_whether_features_are_the_same(form):
    assert Pair("target", (form(X), Y), (form(X), changed(Y, 3, 0.0))).same_features
    assert not Pair("row", (form(X), Y), (form(changed(X, 2, 7.0)), Y)).same_features
    assert not Pair("out", (form(X), Y), (form(X[1:]), Y[1:]), adjacency="add-remove").same_features


def test_the_diagonal_row_is_a_unit_vector_and_its_negative():
    pair = pairs.all_ones(5, 9)
    np.testing.assert_array_equal(pair.first[0], -pair.second[0])
    assert np.linalg.norm(pair.first[0][0]) == pytest.approx(1)


def test_a_pair_keeps_the_public_facts_it_is_given():
    problem = LinearProblem(4, 3, Bounds(feature=1.0, target=(-1.0, 1.0)), sparsity=1, loss=SQUARED)
    pair = Pair("own", (X, Y), (X, changed(Y, 0, 9.0)), problem, score=float)
    assert (pair.problem, pair.score) == (problem, float)
