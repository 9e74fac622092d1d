"""How a fit pays: whatever names a ledger becomes one, and one that is named reserves the fit's cost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from thresher.ledger.addresses import holds_secret
from thresher.ledger.errors import LedgerError
from thresher.ledger.ledger import Ledger
from thresher.ledger.reservation import Reservation
from thresher.privacy.arrays import Matrix
from thresher.privacy.plan import Plan

__all__ = ["cost_told_if_memory_fails", "ledger_at", "reservation_for", "without_password"]

Given = TypeVar("Given")


def reservation_for(
    ledger: Ledger | str | Path | None, dataset: str | None, plan: Plan, rows: Matrix,
    begun: dict[str, str] | None = None,
) -> Reservation | None:  # fmt: skip
    """A reservation for a fit of ``plan``, if it has a ledger; the one it was ``begun`` with, if it goes on.

    Parameters
    ----------
    ledger : Ledger, its URL, or None
        Who pays.
    dataset : str or None
        The name of the ledger's account; one without a ledger is refused.
    plan : Plan
        What the fit will release.
    rows : array, sparse matrix or None
        The rows, which are recognised if they were spent on under another name.
    begun : dict or None
        The account of a reservation, as a checkpoint keeps it.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.ledger import reservation_for
    >>> plan = SparseRegressor(2, feature_bound=1.0, target_bound=1.0).plan(5000, 10)
    >>> reservation_for(None, None, plan, None) is None
    True
    """
    if ledger is None:
        if dataset is not None:
            raise LedgerError(f"dataset={dataset!r} names an account of a ledger; give ledger= as well, or neither")
        return None
    if dataset is None:
        raise LedgerError("dataset=None: name the account of the ledger that pays for the fit")
    opened = ledger_at(ledger)
    return opened.resume(begun, dataset, plan) if begun else opened.reserve(dataset, plan, rows)


@contextmanager
def cost_told_if_memory_fails(paid: Reservation | None, plan: Plan) -> Iterator[None]:
    """A fit that was paid for: if there is no memory for it, the error says what stays spent.

    Parameters
    ----------
    paid : Reservation or None
        What was paid; without a ledger the error stays as it is.
    plan : Plan
        What was paid for.

    Examples
    --------
    >>> from thresher import SparseRegressor
    >>> from thresher.ledger import cost_told_if_memory_fails
    >>> plan = SparseRegressor(2, feature_bound=1.0, target_bound=1.0).plan(5000, 10)
    >>> with cost_told_if_memory_fails(None, plan):
    ...     print("fitted")
    fitted
    """
    try:
        yield
    except MemoryError:
        if paid is None:
            raise
        raise MemoryError(
            f"there is not enough memory for this fit. It was paid for before it began and stays counted: "
            f"epsilon={plan.epsilon:.4g} at delta={plan.budget.delta:g}, entry {paid.account['entry']} of "
            f"dataset={paid.account['dataset']!r}. The next fit pays again: first free memory, or give fewer columns"
        ) from None


def without_password(ledger: Given) -> Given | Ledger:
    """What may be kept, shown and pickled of a ledger: a ``Ledger`` in place of an address with a password.

    Parameters
    ----------
    ledger : Ledger, URL, path or None
        As a user gives it.

    Examples
    --------
    >>> from thresher.ledger import without_password
    >>> without_password("budget.db")
    'budget.db'
    """
    return Ledger(ledger) if isinstance(ledger, str) and holds_secret(ledger) else ledger


def ledger_at(ledger: Ledger | str | Path) -> Ledger:
    """The ledger that is given as one, or by its address.

    Parameters
    ----------
    ledger : Ledger, URL or path
        As a user gives it.

    Examples
    --------
    >>> from thresher.ledger import ledger_at
    >>> ledger_at("budget.db").files[0].name
    'budget.db'
    """
    return ledger if isinstance(ledger, Ledger) else Ledger(ledger)
