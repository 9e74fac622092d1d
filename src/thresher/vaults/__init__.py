"""Vaults hold the rows, or hear reports of people who do, and answer only what was planned."""

from thresher.vaults.central.vault import CentralVault
from thresher.vaults.labels import LabelVault
from thresher.vaults.local import LocalVault, SimulatedVault
from thresher.vaults.texts import TextVault
from thresher.vaults.trials import Candidate, Trials

__all__ = ["Candidate", "CentralVault", "LabelVault", "LocalVault", "SimulatedVault", "TextVault", "Trials"]
