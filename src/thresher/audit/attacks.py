"""What an attacker does with a linear model: train others like it, and score how well each record fits.

The pool. Every model is fitted on a random half of the same rows. The first half of the models are the attacker's own:
they calibrate scores and choose thresholds. The others are attacked and counted, and nothing else.

Why a guarantee bounds what is counted. For any other adjacency than "add-remove" exactly half of the rows are members,
in random order. Take such a draw with row i in it and put a uniformly chosen outsider in its place: the result is
distributed like a draw without row i, and the two data sets differ in that one place. They are replace-one neighbours,
so for every event A of the released model P(A | i in) <= e^epsilon P(A | i out) + delta, and the other way round. With
"add-remove" every row is a member by its own fair coin; leaving row i out of a draw that holds it gives a draw without
it, an add-remove neighbour. Thresholds and calibration come from models that are independent of the counted ones, so
"row i is flagged" is such an event, and its rates may be averaged over rows (``Guarantee.largest_rate``).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.special import expit
from sklearn.base import is_classifier
from sklearn.utils import check_array
from sklearn.utils.extmath import safe_sparse_dot
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from thresher.audit.cases import Claim, Claimed, Estimator
from thresher.audit.parallel import fresh_clone, run_in_parallel
from thresher.audit.rates import Guarantee
from thresher.data.concealment import without_causes
from thresher.data.sparse_structure import check_structure
from thresher.data.tables import numeric_target, reject_text, without_values
from thresher.privacy.arrays import Flags, Floats, Indices, Matrix, Values
from thresher.privacy.budget import Adjacency, is_whole
from thresher.privacy.warnings import ThresherWarning

__all__ = ["ATTACKS", "Pool", "Records", "attack_scores", "check_settings", "fit_pool", "mean_without", "read_records"]

ATTACKS = ("loss", "gradient")
FEWEST_ROWS = 8
FEWEST_MODELS = 4  # two to learn from and two to count, the least that have a spread


# -- what is attacked -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Records:
    """The pool's rows: ``labels`` as the estimator wants them, ``target`` as the loss does (0 or 1 for two classes)."""

    X: Matrix
    labels: Values
    target: Floats
    classifier: bool

    def loss(self, margins: Floats) -> Floats:
        if self.classifier:
            return np.logaddexp(0.0, (1 - 2 * self.target) * margins)
        return (margins - self.target) ** 2 / 2

    def pull(self, margins: Floats) -> Floats:
        """Minus the derivative of the loss in the margin: which way, and how hard, a row pulls its own prediction."""
        return self.target - (expit(margins) if self.classifier else margins)


@without_causes
def read_records(estimator: Estimator, X: Matrix, y: ArrayLike) -> Records:
    """Rows and targets, checked before anything is fitted; sparse rows stay sparse."""
    if isinstance(estimator, type) or not (hasattr(estimator, "fit") and hasattr(estimator, "get_params")):
        raise TypeError(
            f"estimator={estimator!r} is no scikit-learn estimator; give an unfitted one, such as SparseRegressor()"
        )
    if y is None:
        raise ValueError("y=None: the attacks compare predictions with targets; give one target for each row of X")
    reject_text(X)
    check_structure(X)
    try:
        rows = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32], input_name="X")
    except ValueError as error:
        raise ValueError(without_values(str(error))) from None
    classifier = bool(is_classifier(estimator))
    labels = np.asarray(y if classifier else numeric_target(y))
    if labels.shape != (rows.shape[0],):
        raise ValueError(f"y has shape {labels.shape} and X has {rows.shape[0]} rows; give one target for each row")
    if len(labels) < FEWEST_ROWS:
        raise ValueError(f"X has {len(labels)} rows; half of them are members, so give at least {FEWEST_ROWS}")
    if not classifier:
        return Records(rows, labels, labels, classifier)
    classes, sizes = np.unique(labels, return_counts=True)
    if len(classes) != 2 or sizes.min() < FEWEST_ROWS:
        raise ValueError(
            f"y holds {len(classes)} classes, the smallest with {sizes.min()} rows; the attacks need two with at least "
            f"{FEWEST_ROWS} rows each: merge classes, or attack one against the rest"
        )
    return Records(rows, labels, (labels == classes[1]).astype(np.float64), classifier)


def check_settings(
    attack: str, models: int, priors: Sequence[float], confidence: float, claimed: Claimed | None
) -> tuple[tuple[float, ...], Guarantee | None]:
    """The priors and the caller's claim, if every setting makes sense."""
    if attack not in ATTACKS:
        raise ValueError(f"attack={attack!r} is unknown; use one of {', '.join(map(repr, ATTACKS))}")
    if not is_whole(models) or models < FEWEST_MODELS:
        raise ValueError(f"models={models!r} must be a whole number, at least {FEWEST_MODELS}; 32 is a good start")
    if not _all_numbers([confidence]) or not 0 < confidence < 1:
        raise ValueError(f"confidence={confidence!r} must lie strictly between 0 and 1, for example 0.99")
    if not _all_numbers(priors) or len(priors) == 0 or not all(0 < g < math.inf for g in priors):
        raise ValueError(f"priors={priors!r} must be positive numbers: negatives for each positive, such as (1, 10)")
    ratios = tuple(float(g) for g in priors)
    if claimed is None:
        return ratios, None
    claim = Claim.of(claimed)
    return ratios, Guarantee(claim.epsilon, claim.delta)


def _all_numbers(values: object) -> bool:
    return (
        isinstance(values, (Sequence, np.ndarray)) and np.ndim(values) == 1 and np.asarray(values).dtype.kind in "iuf"
    )


# -- the pool of models -----------------------------------------------------------------------------------------------


class _FittedModel(NamedTuple):
    coefficients: Floats
    intercept: float
    guarantee: Guarantee | None


@dataclass(frozen=True)
class Pool:
    """Models fitted on random halves of the same rows; the first ``attackers`` of them are the attacker's own."""

    members: Flags  # one row for each model, one column for each record
    coefficients: Floats  # one row for each model
    intercepts: Floats
    guarantee: Guarantee | None

    @property
    def attackers(self) -> int:
        return len(self.members) // 2

    @property
    def without(self) -> Flags:
        """Where one of the attacker's own models had not the record."""
        return ~self.members & (np.arange(len(self.members)) < self.attackers)[:, None]

    def margins(self, X: Matrix) -> Floats:
        """Every model's prediction (for two classes, the log-odds) for every record."""
        products: Floats = safe_sparse_dot(X, self.coefficients.T, dense_output=True)
        return products.T + self.intercepts[:, None]


def fit_pool(
    estimator: Estimator,
    records: Records,
    groups: Sequence[Flags],
    models: int,
    random_state: int | None,
    claim: Guarantee | None,
    n_jobs: int | None,
    verbose: int,
) -> Pool:
    """Clones of ``estimator`` on random halves, each half with members and non-members of every group."""
    rng = np.random.default_rng(random_state)
    coins = getattr(estimator, "adjacency", None) == Adjacency.ADD_REMOVE
    if records.classifier:
        groups = [*groups, records.target == 0, records.target == 1]
    draws = [_draw(rng, len(records.target), coins, groups) for _ in range(models)]
    seeds = rng.integers(2**31, size=models).tolist()
    tasks = [(estimator, records.X, records.labels, rows, seed) for rows, seed in zip(draws, seeds, strict=True)]
    fitted = run_in_parallel(_fit, tasks, title="models to attack", n_jobs=n_jobs, verbose=verbose)
    members = np.zeros((models, len(records.target)), dtype=bool)
    for inside, rows in zip(members, draws, strict=True):
        inside[rows] = True
    return Pool(
        members,
        np.array([model.coefficients for model in fitted]),
        np.array([model.intercept for model in fitted]),
        claim or _weakest([model.guarantee for model in fitted]),
    )


def _draw(rng: np.random.Generator, n: int, coins: bool, groups: Sequence[Flags]) -> Indices:
    """The members of one model, in the order in which they are fitted.

    A half in which some group has fewer than two members or non-members cannot be fitted or scored and is drawn again.
    That bends the coupling above by the chance of such a half: 2^-n or so of a group of n rows.
    """
    while True:
        rows: Indices = np.flatnonzero(rng.random(n) < 0.5) if coins else rng.permutation(n)[: n // 2]
        if all(2 <= np.count_nonzero(group[rows]) <= np.count_nonzero(group) - 2 for group in groups):
            return rows


def _fit(estimator: Estimator, X: Matrix, labels: Values, rows: Indices, seed: int) -> _FittedModel:
    model = fresh_clone(estimator, seed)
    # One thread: how many there are decides the order of a sum and so its last bits, and n_jobs should decide nothing.
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ThresherWarning)
        model.fit(X[rows], labels[rows])
    if not hasattr(model, "coef_"):
        raise TypeError(f"estimator={estimator!r} has no coef_ once fitted; the attacks are for linear models")
    coefficients = np.ravel(model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_)
    if len(coefficients) != X.shape[1]:
        raise ValueError(f"estimator={estimator!r} has several outputs; the attacks need one coefficient for a column")
    return _FittedModel(coefficients, float(np.ravel(getattr(model, "intercept_", 0.0))[0]), _guarantee_of(model))


def _guarantee_of(model: Any) -> Guarantee | None:
    certificate = getattr(model, "certificate_", None)
    if certificate is None or certificate.epsilon is None:
        return None
    mu = model.plan_.cost.gaussian_mu
    return Guarantee(certificate.epsilon, certificate.delta, mu if mu < math.inf else None)


def _weakest(guarantees: Sequence[Guarantee | None]) -> Guarantee | None:
    """What holds for all models: under add-remove, a delta of 1/n^2 follows the number of members."""
    known = [guarantee for guarantee in guarantees if guarantee is not None]
    if len(known) < len(guarantees):
        return None
    mus = [guarantee.mu for guarantee in known if guarantee.mu is not None]
    return Guarantee(
        max(guarantee.epsilon for guarantee in known),
        max(guarantee.delta for guarantee in known),
        max(mus) if len(mus) == len(known) else None,
    )


# -- scores -----------------------------------------------------------------------------------------------------------


def attack_scores(attack: str, margins: Floats, records: Records, without: Flags) -> dict[str, Floats]:
    """How much each model (row) looks as if it had been fitted on each record (column): plainly, and calibrated.

    ``loss``: minus the record's loss (Yeom et al. 2018). Calibrated: less its mean over the attacker's models that had
    not the record, so that a hard record is not taken for a non-member (Watson et al. 2022).

    ``gradient``: <theta - reference, -gradient at the reference>: how far the model has gone where the record would
    have pulled it. For a linear model this is pull(reference margin) x (margin - reference margin), intercept
    included. Plainly the reference is the origin; calibrated, the mean of the attacker's models without the record. A
    least-squares fit moves a member's margin by a multiple of its pull at the model without it, so this is the
    direction of the likelihood ratio. (Least squares, 150 rows of 50 columns: advantage .26, against .06 for the pull
    at the origin, centred.)

    Calibration is not always better: where members are interpolated, a loss of 0 says all. Hence both, and the attacker
    takes the one that served best on its own models.
    """
    if attack == "loss":
        plain = -records.loss(margins)
        return {"plain": plain, "calibrated": plain - mean_without(plain, without)}
    reference = mean_without(margins, without)
    return {
        "plain": records.pull(np.zeros(1)) * margins,
        "calibrated": records.pull(reference) * (margins - reference),
    }


def mean_without(values: Floats, without: Flags) -> Floats:
    """For each model and record, the mean of ``values`` over the attacker's models that had not the record.

    The model itself is left out of the mean: else the attacker's own models would look better calibrated than
    those that will be attacked, and its thresholds would be too bold. A record that no other model is without takes
    the mean over all records.
    """
    counted = np.where(without, values, 0.0)
    others = without.sum(axis=0) - without
    means: Floats = (counted.sum(axis=0) - counted) / np.maximum(others, 1)
    return np.where(others > 0, means, values[without].mean())
