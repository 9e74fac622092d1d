"""What a guarantee costs: exact Gaussian curves, zCDP, Renyi divergences, and how costs add up."""

from thresher.privacy.accounting import Cost, Filter
from thresher.privacy.conversions import (
    choice_epsilon,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    rdp_deltas,
    rdp_epsilon,
    zcdp_epsilon,
    zcdp_rho,
)

__all__ = [
    "Cost",
    "Filter",
    "choice_epsilon",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "rdp_deltas",
    "rdp_epsilon",
    "zcdp_epsilon",
    "zcdp_rho",
]
