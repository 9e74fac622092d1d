"""Public convex sets: their vertices, how far these reach into a clipped row, and where a linear function is least.

A set is chosen by the analyst, never from the data. The vault accepts this module's own sets only and computes their
``_Hull.reach`` itself, because the reach is what bounds the sensitivity of a choice among vertices.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from thresher.data.sparse_structure import check_structure
from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.bounds import LARGEST, SMALLEST, Bounds
from thresher.vaults.clipping import row_norms
from thresher.vaults.problem import LinearProblem

__all__ = ["L1Ball", "Polytope", "Simplex", "Walk", "is_measured_here", "least_on_ball"]


class _Hull:
    """The convex hull of public vertices and, if the problem has an intercept, of one more signed pair.

    The pair moves the intercept alone and shifts every margin by the target's radius (1 for class labels), or by the
    reach where that is less: so the intercept raises no sensitivity. (A pair that always shifts by the reach would
    drown columns whose entries are mostly far below their bound, as those of text are.)
    """

    def reach(self, problem: LinearProblem) -> float:
        """The largest sum_j |v_j| |x_j| over all vertices v and all rows x that the problem's clips let through."""
        return self._reach(problem.bounds, problem.d)

    def products(self, gradient: Floats, problem: LinearProblem) -> Floats:
        """<v, gradient> for each vertex v, the intercept's pair last."""
        own = self._products(gradient[: problem.d])
        return np.concatenate([own, self._pair(problem) * gradient[problem.d]]) if problem.intercept else own

    def vertex(self, index: int, problem: LinearProblem) -> Floats:
        """The vertex that ``products`` lists at ``index``."""
        theta = problem.origin()
        positions, values = self.entries(index, problem)
        theta[positions] = values
        return theta

    def entries(self, index: int, problem: LinearProblem) -> tuple[Indices, Floats]:
        """The coordinates in which that vertex is not zero, and what it has there."""
        own = self._count(problem.d)
        if index < own:
            return self._entries(index, problem.d)
        return np.array([problem.d]), self._pair(problem)[[index - own]]

    def count(self, problem: LinearProblem) -> int:
        """The number of vertices, the intercept's pair included."""
        return self._count(problem.d) + (2 if problem.intercept else 0)

    @property
    def norm(self) -> float:
        """The largest l1 norm of a vertex, the intercept's pair apart (||C||_1 of the paper)."""
        raise NotImplementedError

    @property
    def terms(self) -> int:
        """The most coordinates in which a vertex is not zero: so many terms has a product with it."""
        raise NotImplementedError

    def _pair(self, problem: LinearProblem) -> Floats:
        shift = min(self.reach(problem), problem.target_radius)
        return np.array([1.0, -1.0]) * (shift / problem.intercept_column)

    def _reach(self, bounds: Bounds, d: int) -> float:
        raise NotImplementedError

    def _products(self, gradient: Floats) -> Floats:
        raise NotImplementedError

    def _entries(self, index: int, d: int) -> tuple[Indices, Floats]:
        raise NotImplementedError

    def _count(self, d: int) -> int:
        raise NotImplementedError


@dataclass(frozen=True)
class _OnAxes(_Hull):
    """Vertices at distance ``radius`` on the axes.

    The reach is radius * max_j K_j: for columns with very different bounds, rescale them first or give a Polytope.
    """

    radius: float

    def __post_init__(self) -> None:
        if not SMALLEST <= self.radius <= LARGEST:
            raise ValueError(f"radius={self.radius!r} must be a number from {SMALLEST:g} to {LARGEST:g}")
        object.__setattr__(self, "radius", float(self.radius))

    @property
    def norm(self) -> float:
        return self.radius

    @property
    def terms(self) -> int:
        return 1

    def _reach(self, bounds: Bounds, d: int) -> float:
        return self.radius * bounds.largest_entry(d)


@dataclass(frozen=True)
class L1Ball(_OnAxes):
    """||theta||_1 <= radius: the vertices radius * e_1, ..., radius * e_d and then their negatives."""

    def _products(self, gradient: Floats) -> Floats:
        scaled = self.radius * gradient
        return np.concatenate([scaled, -scaled])

    def _entries(self, index: int, d: int) -> tuple[Indices, Floats]:
        sign, at = divmod(index, d)
        return np.array([at]), np.array([-self.radius if sign else self.radius])

    def _count(self, d: int) -> int:
        return 2 * d


@dataclass(frozen=True)
class Simplex(_OnAxes):
    """theta >= 0 with sum theta <= radius: the vertices radius * e_1, ..., radius * e_d and the origin.

    The origin is a vertex because every run starts there and the sum may need to be less than the radius. (For
    sum theta = radius give ``Polytope(radius * np.eye(d))``.)
    """

    def _products(self, gradient: Floats) -> Floats:
        return np.append(self.radius * gradient, 0.0)

    def _entries(self, index: int, d: int) -> tuple[Indices, Floats]:
        return (np.array([index]), np.array([self.radius])) if index < d else (np.empty(0, np.intp), np.empty(0))

    def _count(self, d: int) -> int:
        return d + 1


@dataclass(frozen=True, eq=False)
class Polytope(_Hull):
    """The convex hull of the rows of ``vertices``, an m x d array or sparse matrix, all public.

    Runs start at the origin, which keeps a weight of 2 / ((T+1)(T+2)) after T rounds; list it as a vertex if it is not
    in the hull and the loss may be least near it.
    """

    vertices: Matrix

    def __init__(self, vertices: Matrix) -> None:
        rows = vertices if sparse.issparse(vertices) else np.atleast_2d(np.asarray(vertices, dtype=np.float64))
        if rows.ndim != 2 or 0 in rows.shape:
            raise ValueError(f"vertices of shape {rows.shape} must be rows of coordinates, at least one")
        check_structure(rows, "vertices")
        kept = sparse.csr_array(rows, dtype=np.float64, copy=True)
        kept.sum_duplicates()
        kept.eliminate_zeros()
        if not (kept.nnz and np.all(np.abs(kept.data) <= LARGEST)):
            raise ValueError(f"vertices must hold finite numbers of at most {LARGEST:g}, not all of them zero")
        for part in (kept.data, kept.indices, kept.indptr):
            part.flags.writeable = False
        object.__setattr__(self, "vertices", kept)

    def __reduce__(self) -> tuple[type[Polytope], tuple[Matrix]]:
        return Polytope, (self.vertices,)  # so that a copy is checked and read-only, too

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Polytope) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def __repr__(self) -> str:
        return "Polytope of {} vertices in {} dimensions".format(*self.vertices.shape)

    @property
    def norm(self) -> float:
        return float(abs(self.vertices).sum(axis=1).max())

    @property
    def terms(self) -> int:
        return int(np.diff(self.vertices.indptr).max())

    def _reach(self, bounds: Bounds, d: int) -> float:
        if self.vertices.shape[1] != d:
            raise ValueError(
                f"polytope has vertices of {self.vertices.shape[1]} coordinates for {d} columns; give one per column"
            )
        sizes, norms = self._measures
        # in the box |x_j| <= K_j by Hoelder, in the ball ||x||_2 <= row_norm by Cauchy and Schwarz
        return float(np.minimum(sizes @ bounds.entries(d), norms * bounds.row_norm(d)).max())

    @cached_property
    def _measures(self) -> tuple[Matrix, Floats]:
        """|v_j| and ||v||_2 of every vertex; they are asked for at every step."""
        return abs(self.vertices), row_norms(sparse.csc_array(self.vertices))

    def _products(self, gradient: Floats) -> Floats:
        return np.asarray(self.vertices @ gradient)

    def _entries(self, index: int, d: int) -> tuple[Indices, Floats]:
        row = slice(*self.vertices.indptr[index : index + 2])
        return self.vertices.indices[row], self.vertices.data[row]

    def _count(self, d: int) -> int:
        return int(self.vertices.shape[0])

    def _parts(self) -> tuple[Hashable, ...]:
        kept = self.vertices
        return kept.shape, kept.data.tobytes(), tuple(kept.indices.tolist()), tuple(kept.indptr.tolist())


def is_measured_here(polytope: object) -> bool:
    """Whether ``polytope`` is one of this module's own sets, and not a look-alike that measures itself."""
    return type(polytope) in (L1Ball, Simplex, Polytope)


def least_on_ball(gradient: Floats, q: float, radius: float) -> Floats:
    """The point of ||theta||_q <= radius where <gradient, theta> is least.

    theta_j = -radius sign(g_j) |g_j|^(p-1) / ||g||_p^(p-1) with 1/p + 1/q = 1, where Hoelder's inequality is tight;
    for q = 1 a vertex, for q = infinity a corner.
    """
    sizes = np.abs(gradient)
    largest = sizes.max(initial=0.0)
    if largest == 0:
        return np.zeros_like(gradient)
    if q == 1:
        at = int(np.argmax(sizes))
        corner = np.zeros_like(gradient)
        corner[at] = -radius * np.sign(gradient[at])
        return corner
    shape = (sizes / largest) ** (1 / (q - 1))  # p - 1 = 1/(q - 1); the largest is 1, so nothing overflows
    theta: Floats = -radius * np.sign(gradient) * (shape / np.linalg.norm(shape, q))
    return theta


class Walk:
    """theta <- (1 - step) theta + step v from the origin, for steps fixed in advance and vertices v of a public set.

    theta is kept as scale * w, so that a move changes the coordinates of its vertex and one number.
    """

    def __init__(self, polytope: L1Ball | Simplex | Polytope, problem: LinearProblem, steps: Sequence[float]) -> None:
        if not all(0 < step < 1 for step in steps):
            raise ValueError(f"steps={steps!r} must lie strictly between 0 and 1: each shrinks what came before")
        self.polytope, self.problem = polytope, problem
        self._count = polytope.count(problem)
        self.scales = np.cumprod(np.append(1.0, 1 - np.asarray(steps)))
        if self.scales[-1] < SMALLEST:
            raise ValueError(f"{len(steps)} steps shrink the start by more than {SMALLEST:g}: w would overflow")
        self.scales.flags.writeable = False  # whoever follows the walk relies on them
        self._weights: list[float] = (np.asarray(steps) / self.scales[1:]).tolist()
        self.moves: list[tuple[int, float]] = []
        """The vertices so far, and what each weighs in w."""
        self._w, self._summed = problem.origin(), 0

    @property
    def theta(self) -> Floats:
        for vertex, weight in self.moves[self._summed :]:
            positions, values = self.polytope.entries(vertex, self.problem)
            self._w[positions] += weight * values
        self._summed = len(self.moves)
        theta: Floats = self.scales[self._summed] * self._w
        return theta

    def towards(self, vertex: int) -> None:
        """Go on, towards the vertex at this position."""
        if not 0 <= vertex < self._count:
            raise ValueError(f"vertex={vertex!r} is none of the {self._count} of the set")
        self.moves.append((vertex, self._weights[len(self.moves)]))
