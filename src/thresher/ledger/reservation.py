"""A cost that was reserved for a fit, and what becomes of it."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from thresher.ledger.errors import LedgerUnreachableError
from thresher.privacy.certificate import Certificate
from thresher.privacy.warnings import Unsettled

if TYPE_CHECKING:
    from thresher.ledger.ledger import Ledger

__all__ = ["Reservation"]


@dataclass(frozen=True)
class Reservation:
    """A cost that counts, whatever comes of the fit.

    Parameters
    ----------
    ledger : Ledger
        Where it counts.
    account : dict
        The data set, the entry's id and its hash, as certificates carry them.

    Examples
    --------
    >>> from thresher import Ledger, SparseRegressor
    >>> ledger = Ledger("reserved.db")
    >>> ledger.grant("trial", epsilon=2.0, delta=1e-6)
    >>> plan = SparseRegressor(2, epsilon=1.0, delta=1e-7, feature_bound=1.0, target_bound=1.0).plan(5000, 10)
    >>> ledger.reserve("trial", plan).account["dataset"]
    'trial'
    """

    ledger: Ledger
    account: dict[str, str]
    """The data set, the entry's id and its hash, as certificates carry them."""

    def settle(self, certificate: Certificate) -> Certificate:
        """The certificate of the finished fit with the id of its entry, which is committed.

        An entry that is gone, or a ledger that was changed, is an error: no model is for what nothing counts.
        """
        told = replace(certificate, ledger=self.account)
        try:
            self.ledger.commit(self.account, told)
        except (LedgerUnreachableError, OSError) as error:  # what was paid for must not be lost
            warnings.warn(
                f"ledger: it could not be told that the fit is done ({error}); its cost stays reserved and counts, so "
                "do not fit again for its sake",
                Unsettled,
                stacklevel=5,
            )
        return told
