"""The central vault: one trusted curator holds all rows.

Every question is charged to the plan's meter first, then computed on clipped rows, then noised. The private state
(rows, targets, norms) is dropped when the vault closes.
"""

from __future__ import annotations

from thresher.vaults.central.choices import Choices, Voting
from thresher.vaults.central.gradients import Averages, Batches
from thresher.vaults.central.minimisers import Perturbation
from thresher.vaults.central.transfer import Transfer
from thresher.vaults.central.vertices import Vertices

__all__ = ["CentralVault"]


class CentralVault(Averages, Batches, Choices, Transfer, Vertices, Perturbation, Voting):
    """Rows, clipped as they enter; noisy answers, as planned; nothing else."""

    of_people = True
    """Whether it can be told whose each row is."""
