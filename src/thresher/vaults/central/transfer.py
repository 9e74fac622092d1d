"""Questions whose answer labels public rows: the predictions of a teacher trained on the private ones (DPSL-KT)."""

from __future__ import annotations

import math

import numpy as np
from scipy import sparse

from thresher.data.sparse_structure import check_structure
from thresher.privacy.arrays import Floats, Indices, Matrix
from thresher.privacy.bounds import SMALLEST
from thresher.privacy.releases import PrintedLabels, Release
from thresher.privacy.sensitivity import ROUND_OFF
from thresher.vaults.central.minimisers import Minimisers, check_ridge
from thresher.vaults.central.rows import margins_of
from thresher.vaults.engines import Engine

__all__ = ["Transfer", "in_units", "spectral_norm"]

EXACT_UP_TO = 2048  # the smaller side of a matrix whose spectral norm is computed from its Gram matrix
BOUND_ROUNDS = 50


class Transfer(Minimisers):
    """F theta + noise for the rows of a public matrix F and a teacher theta that itself never leaves."""

    def labels(
        self, features: Matrix, columns: Indices, release: Release, clip: float, ridge: float, l1: float = 0.0
    ) -> Floats:
        """F theta + noise, theta the minimiser over ``columns`` and ``features`` = F the same columns of public rows.

        Columns are measured in the problem's units, so theta = phi / units with phi = argmin (1/n) sum_i l_i +
        (ridge/2)||phi||^2 + l1 ||phi||_1 (the intercept is free of l1) and a row's gradient in phi is clipped to
        ``clip``. If neighbours move phi by at most Delta, they move F theta by at most ||F / units||_2 Delta.
        """
        clip, ridge = float(clip), float(ridge)
        self._check_support(columns)
        check_ridge(ridge)
        _check_features(features, len(columns))
        whole = self._charge("labels", release, clip, self.problem.origin())
        engine, units, norms = self._restricted(whole, columns)
        limits = self._limits_of(norms, clip)
        row_norm = self.problem.norm_in_units(int(np.sum(columns < self.problem.d)))
        penalty = np.where(columns < self.problem.d, float(l1), 0.0)
        phi, search = self._certified_minimiser(engine, limits, clip, ridge, row_norm, penalty)
        moved = self._sensitivity(release, clip, search)
        reach = max(spectral_norm(in_units(features, units)), SMALLEST)
        # of a product with phi, ||phi|| <= 2 clip / ridge; the Frobenius norm is at most sqrt(columns) times the other
        error = 4 * len(columns) ** 1.5 * ROUND_OFF * reach * clip / ridge
        return self._release_noisy(features @ (phi / units), release, clip * reach, moved * reach, error)

    def printed_labels(self, features: Matrix, release: PrintedLabels, ridge: float, rounds: int) -> Floats:
        """F theta + N(0, sd^2 I), theta the last of ``rounds`` iterates of IGHT on the unclipped loss with a ridge.

        No bound on how far one row moves it: erratum E-5.
        """
        _check_features(features, self.problem.dimension)
        whole = self._charge("printed labels", release, math.inf, self.problem.origin())
        engine, units, _ = self._restricted(whole, np.arange(self.problem.dimension))
        phi = self._hard_thresholded(engine, ridge / units**2, rounds)
        answer, sd = self._add_noise(features @ (phi / units), release.noise, 1.0, release.sd)
        self._record(release, math.inf, math.inf, sd)
        return answer

    def _hard_thresholded(self, engine: Engine, ridge: Floats, rounds: int) -> Floats:
        """IGHT with the step 1/L, L a public bound on the curvature along differences of two sparse vectors."""
        d, s = self.problem.d, self.problem.sparsity
        ridge[d:] = 0  # the paper has no intercept to shrink
        curvature = self.problem.curvature * self.problem.norm_in_units(min(2 * s, d)) ** 2
        step = 1 / (curvature * len(self._targets) / self.problem.n + float(np.max(ridge)))
        phi = self.problem.origin()
        for _ in range(rounds):
            phi -= step * (self._mean_gradient(engine, margins_of(engine, phi), math.inf) + ridge * phi)
            phi[np.argpartition(np.abs(phi[:d]), d - s)[: d - s]] = 0
        return phi


def spectral_norm(F: Matrix) -> float:
    """||F||_2, rounded up; for a matrix with more than EXACT_UP_TO rows and columns, a bound of it.

    The bound is that of |F|, so it is tight for features of one sign: ||F||_2^2 is at most the spectral radius of G =
    |F|'|F|, which is at most max_j (G v)_j / v_j for every positive v (Collatz and Wielandt); v comes from power steps.
    """
    F = sparse.csc_array(F) if sparse.issparse(F) else np.asarray(F, dtype=np.float64)
    largest = float(np.max(np.abs(F.data if sparse.issparse(F) else F), initial=0.0))
    if largest == 0:
        return 0.0
    F = F / largest
    m, k = F.shape
    upwards: float = 1 + m * k * ROUND_OFF  # of a Gram matrix: its relative error is at most that
    if min(m, k) <= EXACT_UP_TO:
        gram = F.T @ F if k <= m else F @ F.T
        gram = gram.toarray() if sparse.issparse(gram) else gram
        return largest * math.sqrt(float(np.linalg.eigvalsh(gram)[-1])) * upwards
    F = abs(F)
    F = F[:, np.flatnonzero(F.sum(axis=0) > 0)]
    v, bound = np.ones(F.shape[1]), math.inf
    for _ in range(BOUND_ROUNDS):
        w = F.T @ (F @ v)
        bound = min(bound, float(np.max(w / v)))
        v = np.maximum(w / np.max(w), 1e-30)
    return largest * math.sqrt(bound) * upwards


def in_units(features: Matrix, units: Floats) -> Matrix:
    """features / units, column by column."""
    return features @ sparse.diags_array(1 / units) if sparse.issparse(features) else features / units


def _check_features(features: Matrix, columns: int) -> None:
    if features.ndim != 2 or features.shape[1] != columns:
        raise ValueError(f"features has shape {features.shape}; give a matrix with {columns} columns")
    check_structure(features, "features")
    if not np.all(np.isfinite(features.data if sparse.issparse(features) else features)):
        raise ValueError("features holds a value that is not finite; public rows must be numbers")
