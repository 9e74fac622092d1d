"""The question "vertex": scores that no row moves further than stated, and exactly the exponential mechanism."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, stats

from neighbours import WILD_ENTRIES, WILD_TARGETS, round_off_paid, with_row
from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency, Budget, BudgetExceeded
from thresher.privacy.plan import Plan
from thresher.privacy.releases import ExactRelease, GaussianGradient, GumbelVertex, LaplaceVertex
from thresher.vaults import CentralVault
from thresher.vaults.losses import loss_named
from thresher.vaults.polytopes import L1Ball, Polytope, Simplex
from thresher.vaults.problem import LinearProblem
from thresher.vaults.randomness import NoiseSource

LOSSES = ["squared", "logistic"]
FORMS = {"dense": np.array, "sparse": sparse.csr_array}
SETS = [L1Ball(2.0), Simplex(0.5), Polytope([[1.0, -2.0, 0.5], [0.0, 0.0, 3.0], [-1.0, -1.0, -1.0]])]
BOUNDS = [Bounds(feature=1.0), Bounds(row=1.0), Bounds(feature=(0.1, 1, 5)), Bounds(feature=0.5, row=0.8)]
D = 3


def problem_of(n, loss="squared", bounds=BOUNDS[0], intercept=False):
    target = (-1.0, 1.0) if loss == "squared" else None
    return LinearProblem(
        n, D, Bounds(bounds.feature, bounds.row, target), sparsity=2, loss=loss_named(loss), intercept=intercept
    )


def make_vault(X, y, problem, *releases, kind=CentralVault, adjacency="replace-one", seed=0, hardened=False):
    plan = Plan("test", problem, Budget(math.inf, 1e-6, adjacency), releases)
    return kind(X, y, plan, NoiseSource(seed, hardened=hardened))


def some_rows(n=12, loss="squared", seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.5, 1.5, (n, D))
    y = X[:, 0] + 0.3 * rng.normal(size=n)
    return X, y if loss == "squared" else (y > 0).astype(float)


# -- one wild row -----------------------------------------------------------------------------------------------


class Talkative(CentralVault):
    """Gives its scores away, and the sensitivity it states for them."""

    def _release_choice(self, scores, picks, release, clip, sensitivity, error):
        self.scores, self.stated = scores, sensitivity
        return super()._release_choice(scores, picks, release, clip, sensitivity, error)


def movement(first, second, polytope, *, problem, clip=1.0, theta=None, form="dense", adjacency="replace-one"):
    """How far one score is from its neighbour's at most, and the sensitivity both state."""
    scores, stated, release = [], [], GumbelVertex(1, 1.0)
    for X, y in (first, second):
        vault = make_vault(FORMS[form](X), y, problem, release, kind=Talkative, adjacency=adjacency)
        vault.vertex(problem.origin() if theta is None else theta, release, polytope, clip)
        scores.append(vault.scores)
        stated.append(vault.stated)
    assert stated[0] == stated[1], "a sensitivity that depends on the rows is a leak of its own"
    return float(np.max(np.abs(scores[0] - scores[1]))), stated[0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("adjacency", list(Adjacency))
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_a_wild_row_moves_no_score_by_more_than_the_stated_sensitivity(loss, form, adjacency, data):
    X, y = some_rows(loss=loss, seed=data.draw(st.integers(0, 5), "seed"))
    at, intercept = data.draw(st.integers(0, 11), "at"), data.draw(st.booleans(), "intercept")
    row = data.draw(st.lists(WILD_ENTRIES, min_size=D, max_size=D) | st.just(-X[at]), "row")
    target = data.draw(WILD_TARGETS[loss], "target")
    size = D + intercept
    theta = st.lists(st.sampled_from([0.0, 0.5, -2.0, 100.0, -1e4, 1e300]), min_size=size, max_size=size)
    moved, stated = movement(
        (X, y),
        with_row(X, y, row, target, adjacency, at),
        data.draw(st.sampled_from(SETS), "polytope"),
        problem=problem_of(12, loss, data.draw(st.sampled_from(BOUNDS), "bounds"), intercept),
        clip=data.draw(st.sampled_from([1e-3, 0.3, 50.0]), "clip"),
        theta=np.array(data.draw(theta, "theta")),
        form=form,
        adjacency=adjacency,
    )
    assert moved <= stated * (1 + 1e-9)


def worst_pair(adjacency, loss):
    """Rows of zeros, and one row at its bound whose saturated residual changes sign, or that appears."""
    X, y, row = np.zeros((12, D)), np.zeros(12), np.ones(D)
    if adjacency == "replace-one":
        X[0], y[0] = row, -1.0 if loss == "squared" else 0.0
    return (X, y), with_row(X, y, row, 1.0, adjacency, 0)


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("polytope", [L1Ball(2.0), Simplex(0.5), Polytope([[1.0, 2.0, 3.0]])], ids=repr)
def test_the_stated_sensitivity_is_attained(adjacency, loss, form, polytope):
    facts = {"problem": problem_of(12, loss), "form": form, "adjacency": adjacency, "clip": 0.1}
    moved, stated = movement(*worst_pair(adjacency, loss), polytope, **facts)
    assert moved == pytest.approx(stated, rel=1e-9)


def test_an_intercept_that_shifts_beyond_the_reach_would_be_noticed(monkeypatch):
    monkeypatch.setattr(L1Ball, "_pair", lambda self, problem: np.array([4.0, -4.0]) / problem.intercept_column)
    problem = problem_of(12, intercept=True)
    moved, stated = movement(*worst_pair("replace-one", "squared"), L1Ball(2.0), problem=problem, clip=0.1)
    assert moved > 1.99 * stated


def test_replacing_a_row_breaks_the_sensitivity_of_adding_one():
    facts = {"problem": problem_of(12), "adjacency": "add-remove", "clip": 0.1}
    moved, stated = movement(*worst_pair("replace-one", "squared"), L1Ball(2.0), **facts)
    assert moved > 1.99 * stated


# -- the law ----------------------------------------------------------------------------------------------------

FALSE_ALARM = 1e-6
CLIP = 0.5
BALL, SLANTED = SETS[0], SETS[2]
REACH = {BALL: 2.0, SLANTED: 3.5}  # for |x_j| <= 1


def mirrored_rows():
    """Rows in pairs (a, b), (a, -b) with one target: the gradient is along the first column, the others tie."""
    X, y = some_rows(10, seed=3)
    return np.vstack([X, X * [1, -1, -1]]), np.append(y, y)


def exact_scores(X, y, problem, theta, polytope):
    """-<v, g> by hand, from the definition."""
    rows = np.clip(X, -1, 1)
    if problem.intercept:
        rows = np.hstack([rows, np.full((len(rows), 1), problem.intercept_column)])
    residuals = np.clip(rows @ theta - np.clip(y, -1, 1), -CLIP, CLIP)
    vertices = np.array([polytope.vertex(index, problem) for index in range(polytope.count(problem))])
    return -vertices @ rows.T @ residuals / len(rows)


def counts_and_exponents(release, polytope, intercept=False, hardened=False):
    """How often each vertex is chosen, and the exponents score/scale of the exponential mechanism."""
    (X, y), problem = mirrored_rows(), problem_of(20, intercept=intercept)
    theta = problem.origin()
    theta[0] = 0.1
    vault = make_vault(X, y, problem, release, seed=11, hardened=hardened)
    chosen = [vault.vertex(theta, release, polytope, CLIP) for _ in range(release.times)]
    scores = exact_scores(X, y, problem, theta, polytope)
    sensitivity = 2 * CLIP * REACH[polytope] / 20  # replacing one of 20 rows
    return np.bincount(chosen, minlength=len(scores)), scores / (release.multiplier * sensitivity)


def fits(counts, exponents):
    """Whether counts follow the law proportional to exp(exponents): chi-square, wrong once in 1e6 if it is right."""
    weights = np.exp(exponents - exponents.max())
    return stats.chisquare(counts, counts.sum() * weights / weights.sum()).pvalue > FALSE_ALARM


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize(("polytope", "multiplier"), [(BALL, 1.75), (SLANTED, 0.7)], ids=["ball", "polytope"])
def test_the_choice_is_the_exponential_mechanism_and_not_one_with_epsilon_a_quarter_off(
    intercept, hardened, polytope, multiplier
):
    """False alarms: 1e-6 with fresh seeds, none with these. Exponents with a variance of at least 0.6 under the law
    make an epsilon 1.25 times off worth a chi-square of about 4000 * 0.6 * 0.04 = 96; the test rejects from 41 on.
    """
    counts, exponents = counts_and_exponents(GumbelVertex(4000, multiplier), polytope, intercept, hardened)
    weights = np.exp(exponents) / np.sum(np.exp(exponents))
    assert weights @ exponents**2 - (weights @ exponents) ** 2 > 0.6
    assert fits(counts, exponents)
    assert not fits(counts, exponents * 1.25)
    assert not fits(counts, exponents / 1.25)


def test_gumbel_noise_passes_for_the_exponential_mechanism_and_laplace_noise_of_the_same_scale_does_not():
    """The two laws are close; at these exponents they are 0.005 apart in chi-square, so 20000 draws make it 100."""
    assert fits(*counts_and_exponents(GumbelVertex(20000, 5.0), BALL))
    assert not fits(*counts_and_exponents(LaplaceVertex(20000, 5.0), BALL))


@pytest.mark.parametrize("kind", [GumbelVertex, ExactRelease, LaplaceVertex])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", FORMS)
def test_without_noise_the_vertex_of_steepest_descent_is_chosen(kind, loss, form):
    X, y = some_rows(50, loss)
    release = kind(1, "vertex") if kind is ExactRelease else kind(1, 0.0)
    problem = problem_of(50, loss)
    vault = make_vault(FORMS[form](X), y, problem, release)
    assert vault.vertex(problem.origin(), release, L1Ball(1.0), 5.0) == 0  # y grows with the first column


# -- records and refusals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("hardened", [False, True], ids=["plain", "hardened"])
@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_the_record_holds_the_largest_contribution_of_a_row_and_the_noise_it_takes(hardened, adjacency):
    release = GumbelVertex(1, 3.0)
    vault = make_vault(*some_rows(), problem_of(12), release, hardened=hardened, adjacency=adjacency)
    vault.vertex(np.zeros(D), release, L1Ball(2.0), 0.25)
    (answer,) = vault.answers
    assert answer.clip == 0.5
    assert answer.sensitivity == pytest.approx(Adjacency(adjacency).contributions * 0.5 / 12, rel=1e-15)
    paid = 1 + round_off_paid(adjacency, hardened, 300 + 4)  # of the sum, and of a product with one term
    assert answer.scale == pytest.approx(3.0 * answer.sensitivity * paid, rel=1e-9)


class Flattering(L1Ball):
    def reach(self, problem):
        return 1e-9


@pytest.mark.parametrize("polytope", [Flattering(1.0), np.eye(3), None], ids=["look-alike", "array", "none"])
def test_a_set_that_measures_itself_is_refused_and_costs_nothing(polytope):
    release = GumbelVertex(1, 1.0)
    vault = make_vault(*some_rows(), problem_of(12), release)
    with pytest.raises(TypeError, match="polytope="):
        vault.vertex(np.zeros(D), release, polytope, 1.0)
    vault.vertex(np.zeros(D), release, L1Ball(1.0), 1.0)


@pytest.mark.parametrize("clip", [0.0, -1.0, math.inf, math.nan])
def test_a_clip_that_bounds_nothing_is_refused_and_costs_nothing(clip):
    release = GumbelVertex(1, 1.0)
    vault = make_vault(*some_rows(), problem_of(12), release)
    with pytest.raises(ValueError, match="clip="):
        vault.vertex(np.zeros(D), release, L1Ball(1.0), clip)
    vault.vertex(np.zeros(D), release, L1Ball(1.0), 1.0)


def test_a_vertex_is_only_given_for_a_release_that_pays_for_it():
    planned, other = GumbelVertex(1, 1.0), GaussianGradient(1, 1.0)
    vault = make_vault(*some_rows(), problem_of(12), planned, other)
    with pytest.raises(BudgetExceeded, match="not for a vertex"):
        vault.vertex(np.zeros(D), other, L1Ball(1.0), 1.0)
    with pytest.raises(BudgetExceeded, match="not in the plan"):
        vault.vertex(np.zeros(D), GumbelVertex(1, 0.9), L1Ball(1.0), 1.0)
    vault.vertex(np.zeros(D), planned, L1Ball(1.0), 1.0)
    with pytest.raises(BudgetExceeded, match="used up"):
        vault.vertex(np.zeros(D), planned, L1Ball(1.0), 1.0)
