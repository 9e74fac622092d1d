"""What is wrong with a ledger, or with what it was asked."""

__all__ = ["LedgerError", "LedgerUnreachableError"]


class LedgerError(ValueError):
    """The ledger cannot be used as asked: no such account, another key, changed entries. Nothing was spent."""


class LedgerUnreachableError(LedgerError):
    """The store or the key cannot be reached just now. That does not put in doubt what the store has taken before."""
