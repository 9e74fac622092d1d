"""The account book of data sets: what was granted, reserved and spent, across analyses, processes and crashes."""

from __future__ import annotations

from thresher.ledger.book import Allowance, Entry
from thresher.ledger.errors import LedgerError, LedgerUnreachableError
from thresher.ledger.ledger import (
    Ledger,
    LedgerCheck,
    Reservation,
    ledger_at,
    reserved,
    stays_counted,
    without_password,
)

__all__ = [
    "Allowance",
    "Entry",
    "Ledger",
    "LedgerCheck",
    "LedgerError",
    "LedgerUnreachableError",
    "Reservation",
    "ledger_at",
    "reserved",
    "stays_counted",
    "without_password",
]  # fmt: skip
