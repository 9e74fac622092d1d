"""A second opinion on what a certificate's releases cost: dp-accounting's Renyi accountant, which is not ours."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from thresher.privacy.releases import RandomTrials, release_from_dict

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["opinion_of"]


def opinion_of(certificate: Certificate) -> float | None:
    """Epsilon at the certificate's delta: looser than the exact curve.

    Multipliers are relative to the sensitivity of the certificate's adjacency already, so its own default relation is
    the right one (its REPLACE_ONE would not double the sensitivity). None without a finite cost, and at a delta of 0,
    where it has no opinion.
    """
    if certificate.delta == 0:
        return None
    from dp_accounting import GaussianDpEvent, ZCDpEvent  # takes seconds to import
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant, compute_epsilon

    accountant, never_empty, lost = RdpAccountant(), 0.0, 0.0
    for entry in certificate.releases:
        release = release_from_dict(entry["release"])
        if "within" in entry:
            continue
        costs = release.trial_costs if isinstance(release, RandomTrials) else [release.cost()]
        rho, lost = max(cost.rho for cost in costs), lost + math.fsum(cost.lost for cost in costs)
        if math.isinf(rho) or any(cost.sampled for cost in costs):
            return None
        if isinstance(release, RandomTrials):
            # of its Poisson trials there may be none; given that there is one, chances grow by 1 / (1 - e^-trials)
            accountant.compose(RepeatAndSelectDpEvent(ZCDpEvent(rho), max(release.trials, 1.0), math.inf))
            never_empty -= math.log1p(-math.exp(-release.trials))
        elif math.isfinite(costs[0].mu_squared):
            accountant.compose(GaussianDpEvent(release.multiplier), release.times)
        else:
            accountant.compose(ZCDpEvent(rho))
    if lost >= certificate.delta:
        return None
    orders = np.asarray(accountant.orders)
    return float(compute_epsilon(orders, accountant.rdp + never_empty / (orders - 1), certificate.delta - lost)[0])
