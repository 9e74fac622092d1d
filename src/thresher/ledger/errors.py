"""What is wrong with a ledger, or with what it was asked."""

__all__ = ["LedgerError"]


class LedgerError(ValueError):
    """The ledger cannot be used as asked: no such account, another key, changed entries. Nothing was spent."""
