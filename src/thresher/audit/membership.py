"""Membership inference: can an attacker tell from the released model who was in the table?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from thresher.audit.attacks import attack_scores, check_settings, fit_pool, read_records
from thresher.audit.cases import Claimed, Estimator
from thresher.audit.rates import (
    Axes,
    Guarantee,
    Threshold,
    advantage,
    alarm_ratio,
    choose,
    draw_predictive_values,
    predictive_value,
    shares,
    t_interval,
    thinned_roc,
)
from thresher.privacy.arrays import Flags, Floats, Matrix

__all__ = ["MembershipResult", "membership"]


@dataclass(frozen=True)
class MembershipResult:
    """How well members were told from non-members, counted on models that chose no threshold.

    A bound is None where nothing is guaranteed. Bounds hold for expected rates: a measured value may lie above its
    bound by chance, the more easily the fewer ``alarms`` it rests on.

    Parameters
    ----------
    attack : str
        The score: "loss" or "gradient".
    rows : int
        How many rows the pool has.
    models : int
        Those that were attacked and counted.
    advantage : float
        TPR - FPR.
    advantage_interval : (low, high)
        Of the advantage, with ``confidence``.
    advantage_bound : float or None
        The most that the guarantee allows.
    confidence : float
        Of the interval.
    threshold : Threshold
        Of the advantage.
    priors : tuple of float
        Non-members for each member.
    predictive_values : tuple
        One for each prior; None where nobody was flagged.
    predictive_value_bounds : tuple or None
        The most that the guarantee allows.
    sure_threshold : Threshold
        Of the predictive values.
    true_positive_rate, false_positive_rate : float
        At the sure threshold.
    alarms : (int, int)
        Members and non-members flagged there, over all counted models.
    guarantee : Guarantee or None
        What the bounds follow from.
    roc_fpr, roc_tpr : tuple of float
        The curve of the score that gave the advantage.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.audit import membership
    >>> X = np.sin(np.arange(1000.0)).reshape(200, 5)
    >>> model = SparseRegressor(2, epsilon=1.0, feature_bound=1.0, target_bound=1.0)
    >>> result = membership(model, X, X[:, 2], models=4, random_state=0)
    >>> 0 < result.advantage_bound < 1
    True
    """

    attack: str
    rows: int
    models: int  # those that were attacked and counted
    advantage: float  # TPR - FPR
    advantage_interval: tuple[float, float]
    advantage_bound: float | None
    confidence: float
    threshold: Threshold  # of the advantage
    priors: tuple[float, ...]  # non-members for each member
    predictive_values: tuple[float | None, ...]  # one for each prior; None where nobody was flagged
    predictive_value_bounds: tuple[float, ...] | None
    sure_threshold: Threshold  # of the predictive values
    true_positive_rate: float  # at the sure threshold
    false_positive_rate: float
    alarms: tuple[int, int]  # members and non-members flagged there, over all counted models
    guarantee: Guarantee | None  # what the bounds follow from
    roc_fpr: tuple[float, ...]  # of the score that gave the advantage
    roc_tpr: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return asdict(self)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Positive predictive value against the prior, with the most that the guarantee allows; returns the axes."""
        lines = {"measured": self.predictive_values, "privacy bound": self.predictive_value_bounds}
        return draw_predictive_values(ax, self.priors, lines, f"Membership inference ({self.attack})")


def membership(
    estimator: Estimator,
    X: Matrix,
    y: ArrayLike,
    *,
    attack: str = "loss",
    models: int = 32,
    priors: Sequence[float] = (1, 2, 10, 100),
    confidence: float = 0.99,
    claimed: Claimed | None = None,
    random_state: int | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> MembershipResult:
    """Attack ``models`` fits of a linear model on random halves of the rows; half of the fits train the attacker.

    Parameters
    ----------
    estimator : estimator
        An unfitted linear model with scikit-learn's conventions, of one target or two classes. With
        ``adjacency="add-remove"`` the members are chosen by coins; a declared ``n_public`` should be half the rows.
    X : matrix or frame
        The pool of rows, of which each model is fitted on a random half.
    y : array
        Their targets: numbers, or two classes.
    attack : "loss" or "gradient"
        The score; see ``thresher.audit.attacks.attack_scores``.
    models : int
        How many are fitted, at least 4; every other one is the attacker's own.
    priors : sequence of float
        How many non-members there are for each member among those the attacker asks about.
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
    MembershipResult

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor
    >>> from thresher.audit import membership
    >>> X = np.sin(np.arange(1000.0)).reshape(200, 5)
    >>> model = SparseRegressor(2, epsilon=1.0, feature_bound=1.0, target_bound=1.0)
    >>> found = membership(model, X, X[:, 2], models=4, random_state=0)
    >>> found.rows, found.models, found.guarantee.epsilon
    (200, 2, 1.0)
    """
    ratios, claim = check_settings(attack, models, priors, confidence, claimed)
    records = read_records(estimator, X, y)
    everybody = np.ones(len(records.target), dtype=bool)
    pool = fit_pool(estimator, records, [everybody], models, random_state, claim, n_jobs, verbose)
    scores = attack_scores(attack, pool.margins(records.X), records, pool.without)
    return count_guesses(attack, scores, pool.members, pool.attackers, ratios, confidence, pool.guarantee)


def count_guesses(
    attack: str,
    scores: Mapping[str, Floats],
    members: Flags,
    attackers: int,
    priors: tuple[float, ...],
    confidence: float,
    guarantee: Guarantee | None,
) -> MembershipResult:
    """Thresholds from the first ``attackers`` models, everything else from the others."""
    own = {name: values[:attackers] for name, values in scores.items()}
    best, sure = (choose(own, members[:attackers], ~members[:attackers], worth) for worth in (advantage, alarm_ratio))
    scores, members = {name: values[attackers:] for name, values in scores.items()}, members[attackers:]

    flagged = best.alarms(scores)
    gains = shares(flagged, members) - shares(flagged, ~members)
    flagged = sure.alarms(scores)
    tpr, fpr = float(shares(flagged, members).mean()), float(shares(flagged, ~members).mean())
    fprs, tprs = thinned_roc(scores[best.score][members], scores[best.score][~members])
    return MembershipResult(
        attack=attack,
        rows=members.shape[1],
        models=len(members),
        advantage=float(gains.mean()),
        advantage_interval=t_interval(gains, confidence),
        advantage_bound=guarantee.advantage if guarantee else None,
        confidence=confidence,
        threshold=best,
        priors=priors,
        predictive_values=tuple(predictive_value(tpr, fpr, g) for g in priors),
        predictive_value_bounds=tuple(guarantee.predictive_value(fpr, g) for g in priors) if guarantee else None,
        sure_threshold=sure,
        true_positive_rate=tpr,
        false_positive_rate=fpr,
        alarms=(int(np.sum(flagged & members)), int(np.sum(flagged & ~members))),
        guarantee=guarantee,
        roc_fpr=fprs,
        roc_tpr=tprs,
    )
