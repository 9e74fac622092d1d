"""What may be claimed, and in which forms."""

import math

import numpy as np
import pytest

from thresher.audit import Claim
from thresher.privacy.budget import Budget


def test_a_claim_comes_from_a_budget_a_pair_a_number_or_a_claim():
    assert Claim.of(Budget(2.0, 1e-5)) == Claim(2.0, 1e-5)
    assert Claim.of((2, 1e-5)) == Claim.of([2.0, 1e-5]) == Claim.of(np.array([2.0, 1e-5])) == Claim(2.0, 1e-5)
    assert Claim.of(2) == Claim.of(np.float32(2.0)) == Claim(2.0, 0.0)
    claim = Claim(1.0, 0.5)
    assert Claim.of(claim) is claim


def test_a_claim_of_pure_privacy_has_no_delta():
    assert Claim(3.0).delta == 0
    assert Claim.of((3.0, 0.0)) == Claim(3.0)


def test_a_claim_holds_plain_numbers():
    claim = Claim.of(np.array([2, 0], dtype=np.int8))
    assert (type(claim.epsilon), type(claim.delta)) == (float, float)


@pytest.mark.parametrize("claimed", [None, "much", (1.0,), (1.0, 0.1, 0.1), ("much", 0.1), {"epsilon": 1.0}, object()])
def test_what_is_no_claim_is_refused(claimed):
    with pytest.raises(ValueError, match=r"must be a Budget, a pair \(epsilon, delta\), or an epsilon"):
        Claim.of(claimed)


@pytest.mark.parametrize(
    "claimed", [0.0, -1.0, math.inf, math.nan, (1.0, -0.1), (1.0, 1.0), (1.0, math.nan), (0.0, 0.1), (math.inf, 0.1)]
)
def test_claims_that_say_nothing_are_refused(claimed):
    with pytest.raises(ValueError, match="epsilon must be positive and finite, delta from 0 to below 1"):
        Claim.of(claimed)
