"""The account book of data sets: what was granted, reserved and spent, across analyses, processes and crashes."""

from __future__ import annotations

from thresher.ledger.book import Allowance, Entry
from thresher.ledger.errors import LedgerError
from thresher.ledger.ledger import Ledger, LedgerCheck, Reservation, reserved

__all__ = ["Allowance", "Entry", "Ledger", "LedgerCheck", "LedgerError", "Reservation", "reserved"]
