"""Budget: what it accepts, what it refuses and how it says so, and the one factor 2 of the library."""

from __future__ import annotations

import dataclasses
import math
import pickle

import pytest

from thresher.privacy.budget import Adjacency, Budget

NAN = math.nan


@pytest.mark.parametrize("epsilon", [0, 0.0, 9e-7, -1, -1e-300, NAN, -math.inf, True, "1", None, 1j])
def test_bad_epsilon_is_refused_by_name_and_value_with_a_remedy(epsilon):
    with pytest.raises(ValueError, match="must be a number above 0") as refusal:
        Budget(epsilon, 1e-6)
    assert f"epsilon={epsilon!r}" in str(refusal.value)
    assert "typical values are 0.5 to 8" in str(refusal.value)


@pytest.mark.parametrize("delta", [1, 1.0, 1.5, -1e-6, NAN, math.inf, True, False, "1e-6", None])
def test_bad_delta_is_refused_by_name_and_value_with_a_remedy(delta):
    with pytest.raises(ValueError, match="strictly between 0 and 1") as refusal:
        Budget(1.0, delta)
    assert f"delta={delta!r}" in str(refusal.value)
    assert "far below 1/n" in str(refusal.value)


def test_a_delta_of_0_is_pure_dp():
    assert Budget(1.0, 0).delta == 0.0


@pytest.mark.parametrize("adjacency", ["swap", "REPLACE_ONE", "", None, 2, ["replace-one"]])
def test_unknown_adjacency_is_refused_and_the_choices_are_listed(adjacency):
    with pytest.raises(ValueError, match="must be one of 'replace-one', 'add-remove'") as refusal:
        Budget(1.0, 1e-6, adjacency)
    assert f"adjacency={adjacency!r}" in str(refusal.value)


@pytest.mark.parametrize("epsilon", [1e-6, 0.5, 8, 1e6])
def test_every_positive_finite_epsilon_is_private(epsilon):
    assert Budget(epsilon, 1e-6).private


def test_infinite_epsilon_is_allowed_and_not_private():
    assert not Budget(math.inf, 1e-6).private


def test_adjacency_is_replace_one_unless_asked_otherwise():
    assert Budget(1.0, 1e-6).adjacency is Adjacency.REPLACE_ONE


@pytest.mark.parametrize("adjacency", list(Adjacency))
def test_adjacency_may_be_given_by_its_name(adjacency):
    assert Budget(1.0, 1e-6, str(adjacency)).adjacency is adjacency


@pytest.mark.parametrize(("adjacency", "rows"), [("replace-one", 2), ("add-remove", 1)])
def test_replacing_a_row_counts_two_contributions_and_adding_one_counts_one(adjacency, rows):
    assert Budget(1.0, 1e-6, adjacency).adjacency.contributions == rows


@pytest.mark.parametrize("field", ["epsilon", "delta", "adjacency"])
def test_a_budget_cannot_be_changed(field):
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(Budget(1.0, 1e-6), field, 0.5)


def test_replacing_a_field_validates_again():
    with pytest.raises(ValueError, match=r"epsilon=-1"):
        dataclasses.replace(Budget(1.0, 1e-6), epsilon=-1)


def test_equal_budgets_are_equal_and_hash_alike():
    assert len({Budget(1.0, 1e-6), Budget(1, 1e-6, "replace-one"), Budget(1.0, 1e-6, "add-remove")}) == 2


def test_a_budget_pickles():
    budget = Budget(1.0, 1e-6, "add-remove")
    assert pickle.loads(pickle.dumps(budget)) == budget
