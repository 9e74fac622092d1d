"""The end of a run between machines: a fitted model, if its certificate verifies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from thresher.certificate import certify
from thresher.federated.vault import JointVault
from thresher.plan import Plan

__all__ = ["complete"]


def complete(model: Any, plan: Plan, theta: NDArray[np.float64], vault: JointVault) -> None:
    """Give an unfitted front door what the algorithm found over ``vault``, and the certificate of what it cost."""
    certificate = certify(plan, vault.answers, vault.randomness, ())
    if not certificate.verify():
        raise RuntimeError(f"the certificate would not verify, so the model is dropped: {certificate.verify()}")
    model._keep(theta, plan)
    model.plan_, model.algorithm_, model.certificate_ = plan, plan.algorithm, certificate
