"""Public sets: their vertices, a reach that no clipped row exceeds, and where a linear function is least."""

import copy
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from thresher.privacy.bounds import Bounds
from thresher.vaults.clipping import clip_rows
from thresher.vaults.losses import loss_named
from thresher.vaults.polytopes import L1Ball, Polytope, Simplex, is_measured_here, least_on_ball
from thresher.vaults.problem import LinearProblem

D = 4
SLANTED = np.array([[1.0, -2.0, 0.5, 0.0], [0.0, 0.0, 0.0, 3.0], [-1.0, -1.0, -1.0, -1.0]])
SETS = {
    "ball": L1Ball(2.5),
    "simplex": Simplex(0.7),
    "polytope": Polytope(SLANTED),
    "sparse": Polytope(sparse.coo_array(SLANTED)),
}
BOUNDS = {
    "box": Bounds(feature=1.5),
    "columns": Bounds(feature=(0.1, 1.0, 2.0, 5.0)),
    "row": Bounds(row=0.8),
    "both": Bounds(feature=(0.1, 1.0, 2.0, 5.0), row=1.2),
}


@pytest.fixture(params=SETS)
def hull(request):
    return SETS[request.param]


@pytest.fixture(params=BOUNDS)
def bounds(request):
    return BOUNDS[request.param]


def problem_of(bounds, intercept=True, loss="squared"):
    target = (-2.0, 2.0) if loss == "squared" else None
    return LinearProblem(
        10, D, Bounds(bounds.feature, bounds.row, target), sparsity=2, loss=loss_named(loss), intercept=intercept
    )


def vertices_of(hull, problem):
    return np.array([hull.vertex(index, problem) for index in range(hull.count(problem))])


def clipped(row, problem):
    """A row as it stands in the vault, the intercept's column included."""
    return np.append(clip_rows(np.atleast_2d(row), problem.bounds)[0], [problem.intercept_column] * problem.intercept)


# -- vertices ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", [True, False])
def test_products_are_those_with_each_vertex_in_turn(hull, bounds, intercept):
    problem = problem_of(bounds, intercept)
    gradient = np.random.default_rng(0).normal(size=problem.dimension)
    vertices = vertices_of(hull, problem)
    np.testing.assert_allclose(hull.products(gradient, problem), vertices @ gradient, rtol=1e-13)
    assert len(np.unique(vertices, axis=0)) == len(vertices)


def test_the_vertices_are_those_of_the_named_sets():
    problem, axes = problem_of(BOUNDS["box"], intercept=False), np.eye(D)
    np.testing.assert_array_equal(vertices_of(L1Ball(2.5), problem), 2.5 * np.vstack([axes, -axes]))
    np.testing.assert_array_equal(vertices_of(Simplex(0.7), problem), 0.7 * np.vstack([axes, np.zeros(D)]))
    for form in (np.array, sparse.csr_array, sparse.csc_matrix):
        np.testing.assert_array_equal(vertices_of(Polytope(form(SLANTED)), problem), SLANTED)


@pytest.mark.parametrize(
    ("named", "vertices"),
    [(L1Ball(2.0), 2 * np.vstack([np.eye(D), -np.eye(D)])), (Simplex(2.0), 2 * np.vstack([np.eye(D), np.zeros(D)]))],
    ids=["ball", "simplex"],
)
def test_a_named_set_is_the_polytope_of_its_vertices(named, vertices, bounds):
    problem, gradient = problem_of(bounds), np.arange(1.0, 6.0)
    listed = Polytope(vertices)
    assert listed.reach(problem) == pytest.approx(named.reach(problem), rel=1e-15)
    assert listed.norm == named.norm
    np.testing.assert_allclose(listed.products(gradient, problem), named.products(gradient, problem), rtol=1e-15)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_the_intercepts_pair_shifts_margins_both_ways_and_never_beyond_the_reach(hull, bounds, loss):
    problem = problem_of(bounds, loss=loss)
    shifts = vertices_of(hull, problem)[-2:, D] * problem.intercept_column
    assert shifts[0] == -shifts[1] == pytest.approx(min(hull.reach(problem), problem.target_radius), rel=1e-15)
    assert hull.reach(problem) == hull.reach(problem_of(bounds, intercept=False, loss=loss))
    assert hull.count(problem) == hull.count(problem_of(bounds, intercept=False)) + 2


# -- reach ------------------------------------------------------------------------------------------------------

WILD = st.sampled_from([0.0, 1.0, -1.0, 0.3, 1e300, -1e300, 1e6, -1e6, 1e-320]) | st.floats(-10, 10)


def farthest(hull, row, problem):
    return float(np.max(np.abs(vertices_of(hull, problem)) @ np.abs(clipped(row, problem))))


@settings(max_examples=500, deadline=None)
@given(
    hull=st.sampled_from(list(SETS.values()))
    | st.lists(st.floats(-5, 5), min_size=2 * D, max_size=2 * D)
    .filter(any)
    .map(lambda v: Polytope(np.reshape(v, (2, D)))),
    bounds=st.sampled_from(list(BOUNDS.values())),
    intercept=st.booleans(),
    row=st.lists(WILD, min_size=D, max_size=D),
)
def test_no_clipped_row_gets_beyond_the_reach(hull, bounds, intercept, row):
    """Not even with every term counted by its size."""
    problem = problem_of(bounds, intercept)
    assert farthest(hull, row, problem) <= hull.reach(problem) * (1 + 1e-12)


@pytest.mark.parametrize("bound", ["box", "columns", "row"])
def test_the_reach_is_attained(hull, bound):
    """In a box by the corner that faces a vertex, in a ball by the vertex's own direction."""
    problem = problem_of(BOUNDS[bound], intercept=False)
    vertices = vertices_of(hull, problem)
    rows = 1e6 * (vertices if bound == "row" else np.sign(vertices))
    best = max(farthest(hull, row, problem) for row in rows)
    assert best == pytest.approx(hull.reach(problem), rel=1e-12)


def test_with_both_bounds_the_smaller_reach_counts():
    both, box, row = (
        SETS["polytope"].reach(problem_of(b)) for b in (BOUNDS["both"], BOUNDS["columns"], Bounds(row=1.2))
    )
    assert both <= min(box, row)
    assert row < box


def test_the_reach_test_notices_a_reach_that_is_too_small(monkeypatch):
    honest = L1Ball.reach
    monkeypatch.setattr(L1Ball, "reach", lambda self, problem: honest(self, problem) / 1.01)
    problem = problem_of(BOUNDS["box"])
    assert farthest(L1Ball(2.5), np.full(D, 1e300), problem) > L1Ball(2.5).reach(problem)


def test_tiny_vertices_are_measured_without_underflow():
    problem = problem_of(Bounds(row=1e40), intercept=False)
    assert Polytope([[1e-170, 1e-170, 0, 0]]).reach(problem) == pytest.approx(math.sqrt(2) * 1e-130, rel=1e-12, abs=0)


# -- copies and refusals ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("take", [copy.deepcopy, lambda hull: pickle.loads(pickle.dumps(hull))], ids=["deep", "pickle"])
def test_copies_are_equal(hull, take):
    assert take(hull) == hull
    assert hash(take(hull)) == hash(hull)


def test_polytopes_are_equal_if_their_vertices_are():
    assert SETS["polytope"] == SETS["sparse"]
    assert SETS["polytope"] != Polytope(-SLANTED)
    assert SETS["polytope"] != L1Ball(1.0)


def test_a_polytope_keeps_a_copy_that_cannot_be_changed():
    vertices = SLANTED.copy()
    hull = Polytope(vertices)
    vertices[:] = 0
    assert hull == SETS["polytope"]
    for each in (hull, copy.deepcopy(hull), pickle.loads(pickle.dumps(hull))):
        with pytest.raises(ValueError, match="read-only"):
            each.vertices.data[0] = 9.0


def test_look_alikes_are_told_apart(hull):
    class Flattering(L1Ball):
        def reach(self, problem):
            return 1e-9

    assert is_measured_here(hull)
    assert not is_measured_here(Flattering(1.0))
    assert not is_measured_here(None)


@pytest.mark.parametrize("kind", [L1Ball, Simplex])
@pytest.mark.parametrize("radius", [0.0, -1.0, math.inf, math.nan, 1e101])
def test_a_radius_that_makes_no_sense_is_refused(kind, radius):
    with pytest.raises(ValueError, match="radius="):
        kind(radius)


@pytest.mark.parametrize(
    "vertices",
    [np.zeros((2, 3)), [[math.nan, 1.0]], [[math.inf]], [[1e101]], np.ones((0, 3)), np.ones((2, 2, 2))],
    ids=str,
)
def test_vertices_that_make_no_sense_are_refused(vertices):
    with pytest.raises(ValueError, match="vertices"):
        Polytope(vertices)


def test_vertices_in_another_space_are_refused():
    with pytest.raises(ValueError, match="3 coordinates for 4 columns"):
        Polytope(np.eye(3)).reach(problem_of(BOUNDS["box"]))


# -- balls ------------------------------------------------------------------------------------------------------

QS = [1.0, 1.01, 1.5, 2.0, 3.0, math.inf]


@pytest.mark.parametrize("q", QS)
@pytest.mark.parametrize("size", [1e-300, 1.0, 1e300])
def test_the_least_point_of_a_ball_is_in_it_and_attains_the_dual_norm(q, size):
    gradient = np.random.default_rng(1).normal(size=20)
    point = least_on_ball(size * gradient, q, 3.0)
    dual = math.inf if q == 1 else 1.0 if math.isinf(q) else q / (q - 1)
    assert np.linalg.norm(point, q) == pytest.approx(3.0, rel=1e-12)
    assert gradient @ point == pytest.approx(-3.0 * np.linalg.norm(gradient, dual), rel=1e-12)


@pytest.mark.parametrize("q", QS)
def test_no_random_point_of_the_ball_is_lower(q):
    rng = np.random.default_rng(2)
    gradient, others = rng.normal(size=3), rng.normal(size=(5000, 3))
    others /= np.linalg.norm(others, q, axis=1)[:, None]
    assert gradient @ least_on_ball(gradient, q, 1.0) <= np.min(others @ gradient) < 0


@pytest.mark.parametrize("q", QS)
def test_a_gradient_of_zero_stays_at_the_origin(q):
    np.testing.assert_array_equal(least_on_ball(np.zeros(3), q, 1.0), np.zeros(3))
