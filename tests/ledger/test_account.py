"""What an account's entries add up to."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.ledger.account import Account, Allowance
from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Adjacency, BudgetExceeded

ROWS = (Adjacency.REPLACE_ONE, "row")
DRAFT = Cost.renyi(np.asarray(Cost.zcdp(0.001).rdp), lost=5e-7)


def account_of(*costs):
    account = Account("people", *ROWS, {None: Allowance(1.5, 1e-6)})
    for cost in costs:
        account.check(cost, None, *ROWS)
        account.spend(cost, None)
    return account


def test_what_the_first_fit_leaves_to_chance_is_set_aside_and_fits_may_follow():
    account = account_of(DRAFT, Cost.zcdp(0.001), Cost.zcdp(0.001))
    assert account.affordable(None) > 1


def test_what_a_later_fit_leaves_to_chance_is_refused_with_the_reason():
    account = account_of(Cost.zcdp(0.001))
    with pytest.raises(BudgetExceeded, match=r"take 5e-07 of delta\. Of the 1e-06 granted, 1e-09 is left"):
        account.check(DRAFT, None, *ROWS)
    with pytest.raises(BudgetExceeded, match="is left for such events"):
        account_of(DRAFT).check(DRAFT, None, *ROWS)
