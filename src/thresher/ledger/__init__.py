"""The account book of data sets: what was granted, reserved and spent, across analyses, processes and crashes."""

from __future__ import annotations

from thresher.ledger.account import Allowance, Entry
from thresher.ledger.errors import LedgerError, LedgerUnreachableError
from thresher.ledger.ledger import Ledger, LedgerCheck
from thresher.ledger.payment import cost_told_if_memory_fails, ledger_at, reservation_for, without_password
from thresher.ledger.reservation import Reservation

__all__ = [
    "Allowance",
    "Entry",
    "Ledger",
    "LedgerCheck",
    "LedgerError",
    "LedgerUnreachableError",
    "Reservation",
    "cost_told_if_memory_fails",
    "ledger_at",
    "reservation_for",
    "without_password",
]  # fmt: skip
