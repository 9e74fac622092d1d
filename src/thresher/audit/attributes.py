"""Attribute inference: does the released model tell more about a member's secret column than about a stranger's?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from thresher.audit.attacks import (
    FEWEST_ROWS,
    Pool,
    Records,
    attack_scores,
    check_settings,
    fit_pool,
    read_records,
)
from thresher.audit.cases import Claimed, Estimator
from thresher.audit.rates import (
    Axes,
    Guarantee,
    Threshold,
    accuracy,
    alarm_ratio,
    choose,
    draw_predictive_values,
    predictive_value,
    shares,
    t_interval,
)
from thresher.privacy.arrays import Flags, Floats, Matrix
from thresher.privacy.budget import is_whole
from thresher.privacy.strict_json import Record

__all__ = ["AttributeResult", "attribute"]


@dataclass(frozen=True)
class AttributeResult:
    """How well a two-valued column was inferred for members, and for non-members: plain imputation.

    Only the difference is the model's leak about its members; what it says about strangers it has learned from others
    (Jayaraman and Evans 2022). A bound is None where nothing is guaranteed; bounds hold for expected rates.

    Parameters
    ----------
    attack : str
        The score: "loss" or "gradient".
    column : str or int
        Its name or position.
    values : (low, high)
        What was told apart.
    rows : int
        Those that hold one of the two values.
    models : int
        Those that were attacked and counted.
    accuracy_members, accuracy_non_members : float
        How often the value was guessed.
    advantage : float
        The difference of the two.
    advantage_interval : (low, high)
        Of the advantage, with ``confidence``.
    advantage_bound : float or None
        The most that the guarantee allows.
    confidence : float
        Of the interval.
    threshold : Threshold
        Of the accuracies.
    priors : tuple of float
        Records with ``low`` for each with ``high``.
    predictive_values_members, predictive_values_non_members : tuple
        One for each prior; None where no record was flagged.
    predictive_value_bounds : tuple or None
        For members, given the rates on non-members.
    sure_threshold : Threshold
        Of the predictive values.
    rates_members, rates_non_members : (float, float)
        At the sure threshold: the share flagged of ``high`` and of ``low``.
    guarantee : Guarantee or None
        What the bounds follow from.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.audit import attribute
    >>> X = np.sin(np.arange(1000.0)).reshape(200, 5)
    >>> X[:, 0] = np.arange(200) % 2
    >>> model = SparseRegressor(2, epsilon=1.0, feature_bound=1.0, target_bound=1.0)
    >>> result = attribute(model, X, X[:, 2], 0, models=4, random_state=0)
    >>> 0 < result.advantage_bound < 1
    True
    """

    attack: str
    column: str | int  # its name or position
    values: tuple[float, float]  # (low, high)
    rows: int  # those that hold one of the two values
    models: int  # those that were attacked and counted
    accuracy_members: float
    accuracy_non_members: float
    advantage: float  # the difference of the two
    advantage_interval: tuple[float, float]
    advantage_bound: float | None
    confidence: float
    threshold: Threshold  # of the accuracies
    priors: tuple[float, ...]  # records with ``low`` for each with ``high``
    predictive_values_members: tuple[float | None, ...]  # one for each prior; None where no record was flagged
    predictive_values_non_members: tuple[float | None, ...]
    predictive_value_bounds: tuple[float, ...] | None  # for members, given the rates on non-members
    sure_threshold: Threshold  # of the predictive values
    rates_members: tuple[float, float]  # at the sure threshold: the share flagged of ``high`` and of ``low``
    rates_non_members: tuple[float, float]
    guarantee: Guarantee | None  # what the bounds follow from

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return asdict(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Positive predictive values against the prior, with the most that the guarantee allows; returns the axes."""
        lines = {
            "members": self.predictive_values_members,
            "non-members (imputation)": self.predictive_values_non_members,
            "privacy bound for members": self.predictive_value_bounds,
        }
        return draw_predictive_values(ax, self.priors, lines, f"Inference of {self.column!r} ({self.attack})")


def attribute(
    estimator: Estimator,
    X: Matrix,
    y: ArrayLike,
    column: str | int,
    *,
    values: tuple[float, float] | None = None,
    attack: str = "loss",
    models: int = 32,
    priors: Sequence[float] = (1, 2, 10, 100),
    confidence: float = 0.99,
    claimed: Claimed | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> AttributeResult:
    """Infer ``column`` of records that are otherwise known, from models fitted on random halves of the rows.

    The evidence for ``high`` is the attack's score (``thresher.audit.attacks.attack_scores``) of the record with
    ``high`` filled in, less that with ``low``: which of the two would the model rather have been fitted on?
    Calibration uses models without the record only, so the attacker never sees the value it is after. "loss" is the
    stronger attack here: a filled-in value moves a record's pull as well, which "gradient" takes for evidence.

    Parameters
    ----------
    estimator : estimator
        An unfitted linear model with scikit-learn's conventions, of one target or two classes.
    X : matrix or frame
        The pool of rows, of which each model is fitted on a random half.
    y : array
        Their targets: numbers, or two classes.
    column : int or str
        What is inferred: a position, or a name if X is a frame.
    values : (low, high), optional
        The two values to tell apart; by default those the column holds. Rows that hold neither are not attacked.
    attack : "loss" or "gradient"
        The score; see ``thresher.audit.attacks.attack_scores``.
    models : int
        How many are fitted, at least 4; every other one is the attacker's own.
    priors : sequence of float
        How many records with ``low`` there are for each with ``high``.
    confidence : float
        Of the advantage's interval, which speaks of this pool of rows.
    claimed : Budget, (epsilon, delta) or epsilon
        The guarantee to hold the attack against, where the model carries no certificate (or instead of it).
    random_state : int
        Which rows are members, and the models' noise; makes the attack repeatable.
    n_jobs : int
        Processes, as in scikit-learn; -1 takes all cores.
    verbose : int
        1 shows a progress bar on a terminal.

    Returns
    -------
    AttributeResult

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.audit import attribute
    >>> X = np.sin(np.arange(1000.0)).reshape(200, 5)
    >>> X[:, 0] = np.arange(200) % 2
    >>> model = SparseRegressor(2, epsilon=1.0, feature_bound=1.0, target_bound=1.0)
    >>> found = attribute(model, X, X[:, 2], 0, models=4, random_state=0)
    >>> found.values, found.rows, found.guarantee.epsilon
    ((0.0, 1.0), 200, 1.0)
    """
    ratios, claim = check_settings(attack, models, priors, confidence, claimed)
    records = read_records(estimator, X, y)
    at = _position(X, records.X.shape[1], column)
    secret = records.X[:, [at]].toarray()[:, 0] if sparse.issparse(records.X) else records.X[:, at]
    low, high = _two_values(column, secret, values)
    groups = [secret == low, secret == high]
    pool = fit_pool(estimator, records, groups, models, random_state, claim, n_jobs, verbose)
    evidence = _evidence(attack, pool, records, at, secret, (low, high))
    facts = {
        "attack": attack,
        "column": column if isinstance(column, str) else at,
        "values": (low, high),
        "confidence": confidence,
        "priors": ratios,
    }
    return count_guesses(evidence, pool.members, pool.attackers, groups, pool.guarantee, facts)


def _evidence(
    attack: str, pool: Pool, records: Records, at: int, secret: Floats, values: tuple[float, float]
) -> dict[str, Floats]:
    """For each model and record, the score with ``high`` filled in less that with ``low``."""
    slopes = pool.coefficients[:, [at]]
    bare = pool.margins(records.X) - slopes * secret
    low, high = (attack_scores(attack, bare + slopes * value, records, pool.without) for value in values)
    return {name: high[name] - low[name] for name in high}


def count_guesses(
    evidence: Mapping[str, Floats],
    members: Flags,
    attackers: int,
    groups: Sequence[Flags],
    guarantee: Guarantee | None,
    facts: Record,
) -> AttributeResult:
    """Thresholds from the members of the first ``attackers`` models, everything else from the other models."""
    low, high = groups
    own = {name: scores[:attackers] for name, scores in evidence.items()}
    learned = members[:attackers]
    best, sure = (choose(own, learned & high, learned & low, worth) for worth in (accuracy, alarm_ratio))
    evidence, members = {name: scores[attackers:] for name, scores in evidence.items()}, members[attackers:]

    right = np.where(high, best.alarms(evidence), ~best.alarms(evidence))
    attacked = low | high
    inside, outside = shares(right, members & attacked), shares(right, ~members & attacked)
    flagged = sure.alarms(evidence)
    rates, imputed = (
        (float(shares(flagged, side & high).mean()), float(shares(flagged, side & low).mean()))
        for side in (members, ~members)
    )
    priors = facts["priors"]
    return AttributeResult(
        rows=int(attacked.sum()),
        models=len(members),
        accuracy_members=float(inside.mean()),
        accuracy_non_members=float(outside.mean()),
        advantage=float((inside - outside).mean()),
        advantage_interval=t_interval(inside - outside, facts["confidence"]),
        # "The guess about row i is right" is an event with one chance if i is in and another if it is out.
        advantage_bound=guarantee.advantage if guarantee else None,
        threshold=best,
        predictive_values_members=tuple(predictive_value(*rates, g) for g in priors),
        predictive_values_non_members=tuple(predictive_value(*imputed, g) for g in priors),
        # So is "row i is flagged". Over the rows with ``high`` it bounds the members' TPR from above, over those with
        # ``low`` their FPR from below: FPR >= (FPR of non-members - delta) / e^epsilon.
        predictive_value_bounds=(
            tuple(guarantee.imputed_predictive_value(*imputed, g) for g in priors) if guarantee else None
        ),
        sure_threshold=sure,
        rates_members=rates,
        rates_non_members=imputed,
        guarantee=guarantee,
        **facts,
    )


def _position(X: Matrix, width: int, column: str | int) -> int:
    names = list(getattr(X, "columns", ()))
    if column in names:
        return names.index(column)
    if is_whole(column) and 0 <= int(column) < width:
        return int(column)
    known = f"the columns are {', '.join(map(repr, names[:10]))}" if names else f"X has columns 0 to {width - 1}"
    raise ValueError(f"column={column!r} is not in X; {known}")


def _two_values(column: str | int, secret: Floats, values: tuple[float, float] | None) -> tuple[float, float]:
    """(low, high), each held by enough rows."""
    if values is None:
        held = np.unique(secret)
        if len(held) != 2:
            raise ValueError(
                f"column={column!r} holds {len(held)} different values; give the two to tell apart, "
                "values=(low, high), and rows that hold neither are left out"
            )
        values = held.tolist()
    if np.shape(values) != (2,) or np.asarray(values).dtype.kind not in "biuf" or values[0] == values[1]:
        raise ValueError(f"values={values!r} must be two different numbers (low, high)")
    low, high = float(values[0]), float(values[1])
    counts = int(np.sum(secret == low)), int(np.sum(secret == high))
    if min(counts) < FEWEST_ROWS:
        raise ValueError(
            f"values=({low:g}, {high:g}) are held by {counts[0]} and {counts[1]} rows of column={column!r}; each needs "
            f"at least {FEWEST_ROWS}"
        )
    return low, high
