"""Near maxima: no row or person moves two scores more than 1 apart, the noise is as stated, bad questions are free."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from neighbours import SOME_BOUNDS, WILD_ENTRIES, WILD_TARGETS, round_off_paid, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import GumbelNearMaximum, GumbelQuantile
from thresher.privacy.sensitivity import ROUND_OFF
from thresher.vaults import CentralVault
from thresher.vaults.engines.dense import DenseEngine
from thresher.vaults.losses import loss_named
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

FORMS = {"dense": np.array, "sparse": sparse.csr_array}
LOSSES = ["squared", "logistic"]
LEVELS = np.array([0.013, 0.31, 0.77, 1.51, 33.3])
SUPPORT, BASIS = np.array([3, 1, 4]), np.array([[1.0, 2.0], [0.5, -1.0], [0.0, 3.0]])
N, D = 12, 5

QUESTIONS = {
    "residuals": ("residuals", None, None),
    "gradient norms": ("gradient norms", None, None),
    "row norms": ("row norms", None, None),
    "restricted norms": ("row norms", SUPPORT, None),
    "projected norms": ("row norms", SUPPORT, BASIS),
    "projected gradient norms": ("gradient norms", SUPPORT, BASIS),
}


class Glass(CentralVault):
    """A vault that shows its exact scores, and the round-off it pays for."""

    def _release_choice(self, scores, picks, release, clip, sensitivity, error):
        self.scores, self.stated, self.error = np.array(scores), sensitivity, error
        return super()._release_choice(scores, picks, release, clip, sensitivity, error)


def make_vault(X, y, *releases, loss="squared", bounds=None, adjacency="replace-one", n=None, owners=None, **others):
    bounds = bounds or Bounds(feature=1.0)
    outputs = y.shape[1] if np.ndim(y) == 2 else 1
    problem = LinearProblem(
        n or X.shape[0], X.shape[1], Bounds(bounds.feature, bounds.row, (-1.0, 1.0) if loss == "squared" else None),
        sparsity=2, loss=loss_named(loss), intercept=others.pop("intercept", False), outputs=outputs,
        unit="row" if owners is None else "person",
    )  # fmt: skip
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return Glass(X, y, plan, NoiseSource(others.pop("seed", 0), **others), owners=owners)


def ask(vault, release, question="residuals", allowed=0.0, price=0.0, theta=None, levels=LEVELS):
    of, support, basis = QUESTIONS[question]
    theta = vault.problem.origin() if theta is None else theta
    return vault.near_maximum(of, levels, allowed, price, theta, release, support, basis)


def some_rows(n=N, loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, D))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, y if loss == "squared" else (y > 0).astype(float)


# -- one wild row, one wild person --------------------------------------------------------------------------------


def movement(first, second, *, n, form="dense", allowed=0.0, price=0.0, question="residuals", theta=None, **facts):
    """How far apart two scores are moved at most, and how far one is; (X, y) or (X, y, owners)."""
    scores = []
    for X, y, *owners in (first, second):
        release = GumbelNearMaximum(1, 1.0)
        vault = make_vault(FORMS[form](X), y, release, n=n, owners=owners[0] if owners else None, **facts)
        ask(vault, release, question, allowed, price, theta)
        assert vault.answers[-1].sensitivity == vault.stated == 1.0
        scores.append(vault.scores)
    moves = scores[1] - scores[0]
    return float(np.ptp(moves)), float(np.max(np.abs(moves)))


def assert_moved_at_most_one_apart(*args, **kwargs):
    apart, moved = movement(*args, **kwargs)
    assert max(apart, moved) <= 1 + 1e-9


ALLOWED = st.sampled_from([0.0, 0.5, 1.0, 2.7, 5.0, 8.0, 100.0])


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_no_two_scores_more_than_one_apart(question, form, adjacency, data):
    loss = data.draw(st.sampled_from(LOSSES), "loss")
    X, y = some_rows(loss=loss, seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, N - 1), "at"), data.draw(st.booleans(), "intercept")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]), "row")
    target = data.draw(WILD_TARGETS[loss], "target")
    theta = st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0, -1e4]), min_size=D + intercept, max_size=D + intercept)
    assert_moved_at_most_one_apart(
        (X, y), with_row(X, y, row, target, adjacency, at), n=N, form=form, loss=loss, adjacency=adjacency,
        question=question, theta=np.array(data.draw(theta, "theta")), allowed=data.draw(ALLOWED, "allowed"),
        price=data.draw(st.sampled_from([0.0, 0.3, 7.0]), "price"), intercept=intercept,
        bounds=data.draw(st.sampled_from(SOME_BOUNDS), "bounds"),
    )  # fmt: skip


OTHERS = 8
POOL = [np.full(D, wild) for wild in (1e300, -1e300, 1e-320, 0.0, 1.0, 0.3)] + [*np.eye(D), 0.2 * np.eye(D)[1]]
PERSON = st.lists(st.tuples(st.sampled_from(POOL), st.sampled_from([0.0, 0.5, -1.0, 1e300, 0.02])), max_size=70)


def others(seed):
    """Rows of the people who stay, one to five each."""
    rng = np.random.default_rng(seed)
    owners = np.repeat(np.arange(OTHERS), rng.integers(1, 6, OTHERS))
    X, y = some_rows(len(owners), seed=seed)
    return X, y, owners


def with_person(table, rows):
    if not rows:
        return table
    X, y, owners = table
    more, targets = zip(*rows, strict=True)
    return np.vstack([X, *more]), np.append(y, targets), np.append(owners, np.full(len(rows), OTHERS))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_a_wild_person_moves_no_two_scores_more_than_one_apart(question, adjacency, data):
    """Also one of whose rows 64 are drawn: whichever they are."""
    table = others(data.draw(st.integers(0, 5), "seed"))
    before = data.draw(PERSON, "before") if adjacency == "replace-one" else []
    assert_moved_at_most_one_apart(
        with_person(table, before), with_person(table, data.draw(PERSON, "after")), n=OTHERS + 1, adjacency=adjacency,
        question=question, theta=np.full(D, 0.5), allowed=data.draw(ALLOWED, "allowed"),
    )  # fmt: skip


def residuals_of(*sizes):
    """A table in which |r_i| at the origin are these."""
    return np.zeros((len(sizes), D)), np.array(sizes)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("allowed", [0.0, 2.0])
def test_the_range_of_the_moves_is_attained(adjacency, allowed):
    """A row above the low levels comes to be, or to be above more of them, where no more are allowed."""
    sizes = [0.0] * 8 + [0.5] * 2
    facts = {"n": len(sizes), "adjacency": adjacency, "allowed": allowed}
    first, row = residuals_of(*sizes), (np.zeros(D), 0.5)
    assert movement(first, with_row(*first, *row, adjacency, 0), **facts) == (1.0, 1.0)


def test_a_row_that_passes_some_levels_moves_these_alone_and_one_way():
    first = residuals_of(0.0, 0.5, 0.5)
    assert movement(first, residuals_of(0.0, 0.5, 0.0), n=3) == (1.0, 1.0)
    assert movement(first, residuals_of(0.0, 0.5, 0.9), n=3) == (1.0, 1.0)


def test_scores_by_distance_would_be_moved_twice_as_far_apart():
    """As those of a quantile: what is one-sided is what halves the price."""
    first = residuals_of(*[0.0] * 6, 0.5, 0.9, 0.9)
    second = residuals_of(0.9, *[0.0] * 5, 0.5, 0.9, 0.9)
    levels, moves = np.array([0.3, 0.7]), []
    for honest in (True, False):
        scores = []
        for X, y in (first, second):
            release = GumbelNearMaximum(1, 1.0)
            vault = make_vault(X, y, release)
            if not honest:
                vault._not_allowed = lambda above, allowed: np.abs(above - allowed)
            ask(vault, release, allowed=3.0, levels=levels)
            scores.append(vault.scores)
        moves.append(np.ptp(scores[1] - scores[0]))
    assert moves == [1.0, 2.0]


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_wild_person_test_notices_rows_that_count_in_full(adjacency, monkeypatch):
    honest = CentralVault._ranks
    monkeypatch.setattr(CentralVault, "_ranks", lambda self, *given: 5 * honest(self, *given))
    table = others(0)
    with pytest.raises(AssertionError):
        assert_moved_at_most_one_apart(
            table, with_person(table, [(np.ones(D), 0.02)] * 3), n=OTHERS + 1, adjacency=adjacency
        )


# -- exact values -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_score_is_the_rows_above_that_are_not_allowed_and_the_price_of_the_levels_below(question, loss, form):
    X, y = some_rows(40, loss=loss)
    release, theta = GumbelNearMaximum(1, 1.0), np.linspace(-1, 1, D)
    vault = make_vault(FORMS[form](X), y, release, loss=loss)
    rows = np.clip(X, -1, 1)
    margins = rows @ theta
    residuals = margins - np.clip(y, -1, 1) if loss == "squared" else 1 / (1 + np.exp(-margins)) - y
    of, support, basis = QUESTIONS[question]
    part = rows if support is None else rows[:, support] if basis is None else rows[:, support] @ basis
    norms = np.linalg.norm(part, axis=1)
    sizes = {"residuals": np.abs(residuals), "row norms": norms, "gradient norms": np.abs(residuals) * norms}[of]
    ask(vault, release, question, 2.5, 0.3, theta)
    above = (sizes[:, None] > LEVELS).sum(axis=0)
    np.testing.assert_allclose(vault.scores, -(np.maximum(above - 2.5, 0) + 0.3 * np.arange(5)), atol=1e-12)


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize(("allowed", "level"), [(0, 33.3), (2, 1.51), (2.5, 1.51), (3, 0.77), (4, 0.31), (10, 0.013)])
def test_without_noise_it_is_the_lowest_level_with_at_most_the_allowed_rows_above(allowed, level, hardened):
    norms = np.array([0.0, 0.0, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.5, 0.9, 2.0, 2.0])
    release, bounds = GumbelNearMaximum(1, 0.0), Bounds(feature=3.0)
    vault = make_vault(np.outer(norms, np.eye(D)[0]), np.zeros(12), release, bounds=bounds, hardened=hardened)
    assert ask(vault, release, "row norms", allowed) == level
    assert vault.answers[0].scale == 0.0


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("rows", [0, 1])
def test_one_row_and_none_are_answered_alike(rows, hardened):
    """Under add-remove; n is what was declared. A level that all may be above is the lowest, without noise."""
    release = GumbelNearMaximum(2, 0.0)
    vault = make_vault(np.ones((rows, D)), np.full(rows, 0.5), release, adjacency="add-remove", n=5, hardened=hardened)
    assert ask(vault, release, allowed=1.0) == LEVELS[0]
    assert ask(vault, release) == (0.77 if rows else LEVELS[0])
    np.testing.assert_allclose(vault.scores, [-rows, -rows, 0, 0, 0], atol=1e-5)


def test_the_noise_does_not_tell_how_many_rows_there_are():
    scales = set()
    for rows in (0, 1, N, N + 3):
        release = GumbelNearMaximum(1, 2.0)
        vault = make_vault(*some_rows(rows), release, adjacency="add-remove", n=N, hardened=True)
        ask(vault, release)
        scales.add(vault.answers[0].scale)
    assert len(scales) == 1


@pytest.mark.parametrize("unit", ["row", "person"])
def test_what_is_infinite_or_no_number_is_above_every_level(unit, monkeypatch):
    sizes = np.array([np.inf, np.nan, 1e300, 0.0, 1e-320, 0.5])
    monkeypatch.setattr(CentralVault, "_sizes", lambda self, *_: sizes)
    release = GumbelNearMaximum(1, 1.0)
    vault = make_vault(np.zeros((6, D)), np.zeros(6), release, owners=np.arange(6) if unit == "person" else None)
    ask(vault, release)
    np.testing.assert_allclose(vault.scores, [-4, -4, -3, -3, -3], atol=1e-5)


@pytest.mark.parametrize("theta", [[1e308, 1e308, 0, 0, 0], [1e308, -1e308, 0, 0, 0]], ids=["infinite", "undefined"])
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("form", FORMS)
def test_a_margin_that_overflows_moves_scores_no_further(theta, question, form):
    X, y = np.tile([0.0, 0.0, 1.0, 0.0, 0.0], (3, 1)), np.zeros(3)
    assert_moved_at_most_one_apart(
        (X, y), with_row(X, y, [5.0, 5.0, 0, 0, 0], 1.0, "replace-one", 0), n=3, form=form, question=question,
        bounds=Bounds(feature=5.0), theta=np.array(theta),
    )  # fmt: skip


def test_of_several_classes_it_is_the_norm_of_a_rows_residuals():
    X, classes = some_rows(30)[0], np.arange(30) % 3
    release, theta = GumbelNearMaximum(2, 1.0), np.linspace(-1, 1, 3 * D)
    vault = make_vault(X, np.eye(3)[classes], release, loss="multinomial")
    rows = np.clip(X, -1, 1)
    chances = np.exp(rows @ theta.reshape(3, D).T)
    residuals = chances / chances.sum(axis=1, keepdims=True) - np.eye(3)[classes]
    sizes = np.linalg.norm(residuals, axis=1)
    for question, values in (
        ("residuals", sizes), ("projected gradient norms", sizes * np.linalg.norm(rows[:, SUPPORT] @ BASIS, axis=1)),
    ):  # fmt: skip
        ask(vault, release, question, 2.0, theta=theta)
        expected = -np.maximum((values[:, None] > LEVELS).sum(axis=0) - 2.0, 0)
        np.testing.assert_allclose(vault.scores, expected, atol=1e-5)


def test_a_person_counts_by_the_share_of_their_rows_that_is_above():
    X, owners = np.zeros((7, D)), np.array([0, 0, 0, 0, 1, 1, 2])
    y = np.array([0.5, 0.5, 0.9, 0.0, 0.5, 0.0, 0.9])
    release = GumbelNearMaximum(1, 1.0)
    vault = make_vault(X, y, release, n=3, owners=owners)
    ask(vault, release, allowed=0.25)
    np.testing.assert_allclose(vault.scores, [-2.0, -2.0, -1.0, 0.0, 0.0], atol=1e-5)


# -- noise --------------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-6


def plausible(wins, draws, probability):
    return stats.binomtest(int(wins), draws, probability).pvalue > FALSE_ALARM


def odds(advantage, scale):
    return 1 / (1 + math.exp(-advantage / scale))


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_it_is_the_exponential_mechanism_of_its_plan_and_not_one_a_quarter_off(hardened, adjacency):
    """Of 12 rows above the lower level 3.6 are allowed, and the upper costs 1.2: scores -8.4 and -1.2, multiplier 3.
    The exact binomial law at 1e-6; 4000 draws put 1.25 eight sigmas away."""
    draws, release = 4_000, GumbelNearMaximum(4_000, 3.0)
    vault = make_vault(*residuals_of(*[0.5] * 12), release, hardened=hardened, adjacency=adjacency)
    levels = np.array([0.3, 0.7])
    high = sum(ask(vault, release, allowed=3.6, price=1.2, levels=levels) == 0.7 for _ in range(draws))
    np.testing.assert_allclose(vault.scores, [-8.4, -1.2])
    assert vault.answers[0].scale == pytest.approx(3.0 * (1 + round_off_paid(adjacency, hardened, 8)), rel=1e-6)
    assert plausible(high, draws, odds(2.4, 1.0))
    assert not plausible(high, draws, odds(2.4, 1.25))
    assert not plausible(high, draws, odds(2.4, 0.8))


@pytest.mark.parametrize("unit", ["row", "person"])
def test_hardened_noise_pays_for_the_round_off_of_two_scores_on_both_sides(unit):
    """Scores in exact arithmetic beside those that were computed: four times the largest difference is the most by
    which the range of the moves may grow, and twice the error is what is added to it."""
    rng = np.random.default_rng(0)
    owners = np.repeat(np.arange(300), rng.integers(1, 65, 300)) if unit == "person" else None
    people, rows = 300, 300 if owners is None else len(owners)
    counts = np.ones(rows) if owners is None else np.bincount(owners)[owners]
    y, levels = rng.uniform(-1, 1, rows), np.linspace(0.01, 0.99, 60)
    release = GumbelNearMaximum(1, 2.0)
    vault = make_vault(np.zeros((rows, D)), y, release, n=people, owners=owners, hardened=True)
    ask(vault, release, allowed=math.pi, price=1 / 3, levels=levels)
    exact = []
    for at, level in enumerate(levels):
        upto = math.fsum(1 / counts[np.abs(y) <= level])
        exact.append(-(max(math.fsum([people, -upto, -math.pi]), 0.0) + at / 3))
    off = float(np.max(np.abs(vault.scores - exact)))
    assert 0 < 4 * off <= 2 * vault.error < 1e-9
    assert vault.answers[0].scale >= 2.0 * (1 + 2 * vault.error)


def test_a_huge_allowance_or_price_is_part_of_the_round_off():
    for facts in ({"allowed": 1e14}, {"price": 1e14}):
        release = GumbelNearMaximum(1, 2.0)
        vault = make_vault(*some_rows(), release, hardened=True)
        ask(vault, release, **facts)
        assert vault.error >= 8 * ROUND_OFF * 1e14


# -- answers and refusals -----------------------------------------------------------------------------------------


def refused(vault, question, error, words):
    """Refused twice with the same words, and the one planned answer is still to be had: nothing was charged."""
    for _ in range(2):
        with pytest.raises(error, match=words):
            question()
    assert vault.answers == ()


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
def test_the_record_holds_release_clip_sensitivity_and_scale(hardened):
    release = GumbelNearMaximum(1, 3.0)
    vault = make_vault(*some_rows(), release, hardened=hardened)
    assert ask(vault, release) in LEVELS
    (answer,) = vault.answers
    assert answer == Answer(release, 1.0, 1.0, answer.scale)
    assert 3.0 <= answer.scale <= 3.0 * (1 + 1e-12)


def test_it_costs_half_the_noise_of_a_quantile():
    assert 2 * GumbelNearMaximum.for_rho(0.1).multiplier == pytest.approx(GumbelQuantile.for_rho(0.1).multiplier)


BAD = {
    "no levels": ({"levels": np.array([])}, "levels="),
    "falling levels": ({"levels": LEVELS[::-1]}, "increasing order"),
    "equal levels": ({"levels": np.array([0.1, 0.1])}, "increasing order"),
    "undefined level": ({"levels": np.array([np.nan])}, "finite numbers"),
    "infinite level": ({"levels": np.array([0.1, np.inf])}, "finite numbers"),
    "negative allowance": ({"allowed": -1.0}, "allowed=-1.0"),
    "undefined allowance": ({"allowed": math.nan}, "allowed=nan"),
    "infinite allowance": ({"allowed": math.inf}, "allowed=inf"),
    "negative price": ({"price": -1e30}, "price=-1e\\+30"),
    "undefined price": ({"price": math.nan}, "price=nan"),
    "infinite price": ({"price": math.inf}, "price=inf"),
    "undefined point": ({"theta": np.full(D, np.nan)}, "not finite"),
    "long point": ({"theta": np.zeros(D + 1)}, "theta has shape"),
}


@pytest.mark.parametrize("bad", BAD)
def test_a_bad_question_is_refused_and_costs_nothing(bad):
    facts, words = BAD[bad]
    release = GumbelNearMaximum(1, 1.0)
    vault = make_vault(*some_rows(), release)
    refused(vault, lambda: ask(vault, release, **facts), ValueError, words)
    ask(vault, release)


BASES = {
    "too short": (SUPPORT, BASIS[:2], r"basis has shape \(2, 2\)"),
    "too wide": (SUPPORT, np.ones((3, 4)), r"at most 3 columns"),
    "a vector": (SUPPORT, np.ones(3), r"basis has shape \(3,\)"),
    "empty": (SUPPORT, np.ones((3, 0)), r"basis has shape \(3, 0\)"),
    "undefined": (SUPPORT, np.full((3, 2), np.nan), "basis must hold numbers"),
    "infinite": (SUPPORT, np.full((3, 2), np.inf), "basis must hold numbers"),
    "so large that rows overflow": (SUPPORT, np.full((3, 2), 1e308), "basis must hold numbers"),
    "of no columns": (None, BASIS, "support="),
    "of columns outside": (np.array([3, 1, D]), BASIS, "support="),
}


@pytest.mark.parametrize("bad", BASES)
def test_a_bad_basis_is_refused_and_costs_nothing(bad):
    support, basis, words = BASES[bad]
    release = GumbelNearMaximum(1, 1.0)
    vault, origin = make_vault(*some_rows(), release), np.zeros(D)
    refused(
        vault,
        lambda: vault.near_maximum("row norms", LEVELS, 0.0, 0.0, origin, release, support, basis),
        ValueError,
        words,
    )
    ask(vault, release, "projected norms")


def test_a_release_pays_for_its_own_question_once():
    own, other = GumbelNearMaximum(1, 1.0), GumbelQuantile(1, 1.0)
    vault = make_vault(*some_rows(), own, other)
    with pytest.raises(BudgetExceeded, match="not for a near maximum"):
        ask(vault, other)
    with pytest.raises(BudgetExceeded, match="not for a quantile"):
        vault.quantile("residuals", 0.5, LEVELS, np.zeros(D), own)
    ask(vault, own)
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(vault, own)
    assert len(vault.answers) == 1


def test_it_is_charged_before_the_rows_are_touched(monkeypatch):
    def fail(*_):
        raise MemoryError

    release = GumbelNearMaximum(1, 1.0)
    vault = make_vault(*some_rows(), release)
    monkeypatch.setattr(DenseEngine, "product", fail)
    with pytest.raises(MemoryError):
        ask(vault, release)
    monkeypatch.undo()
    with pytest.raises(BudgetExceeded, match="used up"):
        ask(vault, release)


def test_a_closed_vault_has_no_near_maximum():
    release = GumbelNearMaximum(1, 1.0)
    vault = make_vault(*some_rows(), release)
    vault.close()
    refused(vault, lambda: ask(vault, release), RuntimeError, "closed")
