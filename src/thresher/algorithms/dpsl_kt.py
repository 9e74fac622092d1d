"""DPSL-KT: knowledge transfer to public rows (Wang and Gu, AAAI 2020, Algorithm 1), with a teacher that is stable."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from scipy import sparse

from thresher.algorithms.defaults import check_loss, check_positive, check_rounds, residual_clip, typical_margin
from thresher.algorithms.projections import hard_threshold
from thresher.algorithms.public_rows import PUBLIC_LAWS, public_features
from thresher.data.sparse_structure import check_structure
from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.budget import Budget, is_whole
from thresher.privacy.conversions import zcdp_rho
from thresher.privacy.plan import Calibration, Plan
from thresher.privacy.pricing import positions
from thresher.privacy.releases import GaussianLabels, GumbelSelection, PrintedLabels
from thresher.privacy.sensitivity import gradient_sensitivity
from thresher.vaults import CentralVault
from thresher.vaults.central.transfer import in_units, spectral_norm
from thresher.vaults.problem import LinearProblem

__all__ = ["DPSLKT"]

USUAL_DRAW = 2**22  # entries of drawn public rows: 32 MB, unless more are needed
LARGEST_DRAW = 2**25
STUDENT_ROUNDS = 50


@dataclass(frozen=True)
class DPSLKT:
    """A teacher trained on the private rows labels public ones with noise; a student learns from those.

    Released are y = F theta + N(0, (multiplier ||F||_2 Delta)^2 I) for m public rows F, Delta being the sensitivity of
    the teacher theta. The student is IGHT on (1/2m)||y - F theta||^2, refitted on its support: post-processing.
    ``vault.published["auxiliary"]`` is the labelled public data set (F, y) itself, which is what this method is for:
    the transfer buys nothing for the model, which noise on theta itself would never make worse (erratum E-10).

    The paper's teacher, the l0-constrained minimiser, is not stable (erratum E-5). Instead:

    * ``teacher="support"``: ``share`` of rho picks s columns A by noisy correlation, the rest pays for the labels of
      the ridge minimiser on A, Delta = (contributions * clip / n + 2 tolerance) / ridge.
    * ``teacher="convex"``: the elastic net (ridge, l1) on all columns, same Delta; for rows of bounded l2 norm.

    Public rows are ``auxiliary``, a matrix of d columns (NumPy or SciPy sparse), or ``auxiliary_rows`` rows drawn from
    ``distribution`` on the feature bounds with the public ``seed``.

    ``calibration="printed"`` is the paper: ``iterations`` rounds of IGHT as the teacher and sigma^2 = 8 m beta s
    gamma^2 log(2.5/delta) / (n epsilon ridge)^2 (Theorem 4.3) or, with ``printed_mu`` in place of the ridge, no ridge
    (Corollary 4.7; errata E-5 to E-9, E-11). gamma is sqrt(s) K^2, K for the logistic loss, if not given.

    Parameters
    ----------
    teacher : {"support", "convex"}
        Which stable teacher labels the public rows.
    share : float
        Of rho, for the picks of the support.
    selection_clip : float, optional
        What residuals are clipped to in the picks. None: a public rule.
    clip : float, optional
        l2 norm to which the gradient of a row is clipped, columns in units of their bounds. None: a public
        rule.
    ridge : float, optional
        Of the teacher. None: a public rule.
    l1 : float
        Penalty on ||theta||_1 of the convex teacher.
    auxiliary : matrix, optional
        Public rows of d columns, dense or sparse. None: they are drawn.
    auxiliary_rows : int, optional
        How many public rows are drawn. None: a public rule.
    distribution : {"uniform", "signs"}
        The law they are drawn from, on the bounds.
    seed : int
        The public seed they are drawn with.
    calibration : {"proved", "printed"}
        Noise that is proved to keep the budget, or that of the paper, whose real price the certificate states.
    gamma : float, optional
        Of the printed formula: the Lipschitz constant. None: from the bounds.
    printed_mu : float, optional
        Of the printed formula without a ridge (Corollary 4.7).
    iterations : int
        Rounds of IGHT, of the student and of the printed teacher.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.algorithms import DPSLKT
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(
    ...     1, epsilon=2.0, feature_bound=1.0, target_bound=1.0, algorithm=DPSLKT(auxiliary_rows=50)
    ... )
    >>> model.fit(X, X[:, 2]).certificate_.epsilon
    2.0
    """

    teacher: Literal["support", "convex"] = "support"
    share: float = 0.5
    selection_clip: float | None = None  # of residuals
    clip: float | None = None  # of a row's gradient, columns in units of their bounds
    ridge: float | None = None
    l1: float = 0.0  # of the convex teacher
    auxiliary: Any = field(default=None, compare=False, repr=False)
    auxiliary_rows: int | None = None
    distribution: str = "uniform"
    seed: int = 0
    calibration: Calibration = "proved"
    gamma: float | None = None
    printed_mu: float | None = None
    iterations: int = 500

    name: ClassVar[str] = "dpsl-kt"

    def __post_init__(self) -> None:
        check_rounds(self.iterations)
        check_positive(
            selection_clip=self.selection_clip, clip=self.clip, ridge=self.ridge, gamma=self.gamma,
            printed_mu=self.printed_mu, auxiliary_rows=self.auxiliary_rows,
        )  # fmt: skip
        if not 0 < self.share < 1:
            raise ValueError(f"share={self.share!r} of the budget for the selection must lie strictly between 0 and 1")
        if not 0 <= self.l1 < math.inf:
            raise ValueError(f"l1={self.l1!r} must be a finite number of at least 0")
        for name in ("seed", "auxiliary_rows"):
            value = getattr(self, name)
            if value is not None and not (is_whole(value) and value >= 0):
                raise ValueError(f"{name}={value!r} must be a whole number of at least 0")
        laws, calibrations = tuple(PUBLIC_LAWS), get_args(Calibration)
        choices = {"teacher": ("support", "convex"), "distribution": laws, "calibration": calibrations}
        for name, known in choices.items():
            if getattr(self, name) not in known:
                raise ValueError(f"{name}={getattr(self, name)!r} must be one of {', '.join(map(repr, known))}")
        if self.auxiliary is not None:
            _check_public(self.auxiliary)

    def plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        if self.calibration == "printed":
            return self._printed_plan(problem, budget)
        check_loss(problem, self.name, "clipped_value")
        columns = problem.sparsity if self.teacher == "support" else problem.d
        size = columns + problem.intercept
        rows = self._rows(problem, size, at_least=4 * size)
        releases: tuple[GumbelSelection | GaussianLabels, ...]
        if self.teacher == "support":
            rho = zcdp_rho(budget.epsilon, budget.delta)
            picks = GumbelSelection.for_rho(self.share * rho, picks=problem.sparsity)
            releases = (picks, GaussianLabels.for_rho((1 - self.share) * rho))
        else:
            releases = (GaussianLabels.calibrated(budget, times=1),)
        residual = residual_clip(problem)
        clip = float(self.clip or residual / 2 * problem.norm_in_units(columns))
        noise = releases[-1].multiplier * gradient_sensitivity(clip, problem.n, budget.adjacency)
        ridge = float(self.ridge or default_ridge(problem, columns, noise))
        settings: dict[str, object] = {"teacher": self.teacher, "clip": clip, "ridge": ridge, "auxiliary_rows": rows}
        if self.teacher == "support":
            settings["selection_clip"] = float(self.selection_clip or residual)
            settings["order"] = positions(releases, releases)
        else:
            settings["l1"] = float(self.l1)
        return Plan(self.name, problem, budget, releases, settings)

    def run(self, vault: CentralVault) -> Floats:
        problem, settings = vault.problem, vault.plan.settings
        *selection, release = vault.plan.releases
        columns = np.arange(problem.d)
        if selection:
            columns = vault.selection(problem.origin(), selection[0], settings["selection_clip"])
        features = self._features(problem, columns, settings["auxiliary_rows"])
        whole = _with_intercept(features, problem)
        coordinates = np.append(columns, np.arange(problem.d, problem.dimension))
        if isinstance(release, PrintedLabels):
            labels = vault.printed_labels(whole, release, settings["ridge"], settings["rounds"])
        else:
            l1 = settings.get("l1", 0.0)
            labels = vault.labels(whole, coordinates, release, settings["clip"], settings["ridge"], l1)
        rows = _spread(features, columns, problem.d) if self.auxiliary is None else self.auxiliary
        vault.published["auxiliary"] = (rows, labels + problem.target_centre)
        return student(whole, labels, coordinates, problem)

    def _printed_plan(self, problem: LinearProblem, budget: Budget) -> Plan:
        rows = self._rows(problem, problem.d, at_least=problem.n)  # the paper's m = n
        bound = problem.bounds.largest_entry(problem.d)
        gamma = self.gamma or printed_gamma(problem, bound)
        beta = self._beta(bound)
        ridge = 0.0 if self.printed_mu else float(self.ridge or printed_ridge(gamma, problem, budget))
        modulus = self.printed_mu or ridge
        sd = printed_sigma(rows, beta, gamma, modulus, problem, budget) if budget.private else 0.0
        settings = {"ridge": ridge, "gamma": gamma, "beta": beta, "auxiliary_rows": rows, "rounds": self.iterations}
        notes = ("noise as printed in the paper; its teacher is not stable, so nothing is guaranteed: erratum E-5",)
        return Plan(self.name, problem, budget, (PrintedLabels(times=1, sd=sd),), settings, "printed", notes)

    def _rows(self, problem: LinearProblem, size: int, at_least: int) -> int:
        """How many public rows: those given, or n if they are to be drawn and that is neither too few nor too many."""
        if self.auxiliary is not None:
            if self.auxiliary.ndim != 2 or self.auxiliary.shape[1] != problem.d or self.auxiliary.shape[0] < 1:
                raise ValueError(
                    f"auxiliary has shape {self.auxiliary.shape}; give public rows with the {problem.d} columns of X"
                )
            return int(self.auxiliary.shape[0])
        rows = self.auxiliary_rows or max(at_least, min(problem.n, USUAL_DRAW // size))
        if rows * size > LARGEST_DRAW:
            raise ValueError(
                f"auxiliary=None would draw {rows} rows of {size} columns; give auxiliary, which may be sparse, or "
                f"auxiliary_rows of at most {LARGEST_DRAW // size}"
            )
        return rows

    def _features(self, problem: LinearProblem, columns: Indices, rows: int) -> Any:
        if self.auxiliary is None:
            return public_features(self.distribution, problem.entry_bounds, columns, rows, self.seed)
        if sparse.issparse(self.auxiliary):
            return sparse.csc_array(self.auxiliary, dtype=np.float64)[:, columns]
        return np.asarray(self.auxiliary, dtype=np.float64)[:, columns]

    def _beta(self, bound: float) -> float:
        """The largest second moment of a public row along any direction."""
        if self.auxiliary is None:
            return PUBLIC_LAWS[self.distribution] * bound**2
        return spectral_norm(self.auxiliary) ** 2 / int(self.auxiliary.shape[0])


def _check_public(auxiliary: Any) -> None:
    if not (sparse.issparse(auxiliary) or isinstance(auxiliary, np.ndarray)) or auxiliary.dtype.kind not in "fiub":
        raise ValueError(
            f"auxiliary={type(auxiliary).__name__} must be a NumPy array or a SciPy sparse matrix of numbers"
        )
    check_structure(auxiliary, "auxiliary")
    if not np.all(np.isfinite(auxiliary.data if sparse.issparse(auxiliary) else auxiliary)):
        raise ValueError("auxiliary holds a value that is not finite; drop or fill such rows")


def student(features: Any, labels: Floats, coordinates: Indices, problem: LinearProblem) -> Floats:
    """IGHT on (1/2m)||y - F theta||^2, columns in units of their bounds, then least squares on the support it found.

    Each step is exact along the gradient on the current support (Blumensath and Davies 2010); the best iterate counts.
    """
    units = problem.units[coordinates]
    F = in_units(features, units)
    kept = np.arange(len(coordinates))
    if len(coordinates) == problem.dimension > problem.sparsity + problem.intercept:
        kept = np.flatnonzero(_hard_thresholded(F, labels, problem))
        F = F[:, kept]
    gram = F.T @ F
    gram = gram.toarray() if sparse.issparse(gram) else gram
    theta = problem.origin()
    theta[coordinates[kept]] = np.linalg.pinv(gram, hermitian=True) @ (F.T @ labels) / units[kept]
    return theta


def _hard_thresholded(F: Any, labels: Floats, problem: LinearProblem) -> Floats:
    best, least = problem.origin(), math.inf
    theta = best
    for _ in range(STUDENT_ROUNDS):
        residuals = labels - F @ theta
        loss = float(residuals @ residuals)
        if loss < least:
            best, least = theta, loss
        slope = F.T @ residuals
        along = np.where(theta != 0, slope, 0.0) if np.any(theta) else hard_threshold(slope, problem)
        reached = F @ along
        curvature = float(reached @ reached)
        if curvature == 0:
            break
        theta = hard_threshold(theta + float(along @ along) / curvature * slope, problem)
    return best


def default_ridge(problem: LinearProblem, columns: int, noise: float) -> float:
    """The ridge at which its shrinkage of a useful coefficient and the noise, ``noise`` / ridge, balance.

    In units, a column's second moment is a third of its share of the row bound (uniform entries); a useful coefficient
    is what s of them need for a typical margin.
    """
    longest = problem.norm_in_units(columns) ** 2
    moment = longest / (3 * (columns + problem.intercept))
    coefficient = typical_margin(problem) / math.sqrt(problem.sparsity * moment)
    weakest = 1e-6 * problem.curvature * longest  # without noise: enough to be found
    return max(math.sqrt(1.5 * problem.curvature * moment * noise / coefficient), weakest)


def printed_gamma(problem: LinearProblem, bound: float) -> float:
    """The Lipschitz constant that the paper has for entries of at most ``bound``: for two losses."""
    match problem.loss.likelihood:
        case "gaussian":
            return math.sqrt(problem.sparsity) * bound**2
        case "bernoulli":
            return bound
    raise ValueError(f"gamma=None: the paper has no constant for loss={problem.loss.name!r}; give gamma")


def printed_ridge(gamma: float, problem: LinearProblem, budget: Budget) -> float:
    """lambda with lambda^2 = gamma sqrt(s log(d) log(1/delta)) / (n epsilon) (Theorem 4.5 with constant 1)."""
    spread = problem.sparsity * math.log(max(problem.d, 2)) * math.log(1 / budget.delta)
    return math.sqrt(gamma * math.sqrt(spread) / (problem.n * budget.epsilon))


def printed_sigma(
    rows: int, beta: float, gamma: float, modulus: float, problem: LinearProblem, budget: Budget
) -> float:
    """sigma with sigma^2 = 8 m beta s gamma^2 log(2.5/delta) / (n epsilon modulus)^2; the modulus is lambda or mu."""
    variance = 8 * rows * beta * problem.sparsity * gamma**2 * math.log(2.5 / budget.delta)
    return math.sqrt(variance) / (problem.n * budget.epsilon * modulus)


def _with_intercept(features: Any, problem: LinearProblem) -> Any:
    if not problem.intercept:
        return features
    constant = np.full((features.shape[0], 1), problem.intercept_column)
    if sparse.issparse(features):
        return sparse.hstack([features, sparse.csc_array(constant)], format="csc")
    return np.hstack([features, constant])


def _spread(features: Floats, columns: Indices, d: int) -> Any:
    """The drawn columns at their places among d; the others, which no label depends on, stay empty."""
    if len(columns) == d:
        return features
    m, k = features.shape
    starts = m * np.searchsorted(columns, np.arange(d + 1))
    return sparse.csc_array((features.ravel(order="F"), np.tile(np.arange(m), k), starts), shape=(m, d))
