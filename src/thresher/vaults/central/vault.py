"""The central vault: one trusted curator holds all rows.

Every question is charged to the plan's meter first, then computed on clipped rows, then noised. The private state
(rows, targets, norms) is dropped when the vault closes.
"""

from __future__ import annotations

from thresher.vaults.central.averages import Averages
from thresher.vaults.central.batches import Batches
from thresher.vaults.central.choices import Choices
from thresher.vaults.central.perturbation import Perturbation
from thresher.vaults.central.transfer import Transfer
from thresher.vaults.central.vertices import Vertices
from thresher.vaults.central.voting import Voting

__all__ = ["CentralVault"]


class CentralVault(Averages, Batches, Choices, Transfer, Vertices, Perturbation, Voting):
    """Rows, clipped as they enter; noisy answers, as planned; nothing else."""

    of_people = True
    """Whether it can be told whose each row is."""
