"""Vaults hold the rows and answer only what was planned."""

from thresher.vaults.central import CentralVault

__all__ = ["CentralVault"]
