"""How many may leave or collude."""

from __future__ import annotations

import pytest

from thresher.federated.group import Group


@pytest.mark.parametrize(
    ("parties", "dropouts", "colluding", "quorum", "honest"),
    [(2, 0, 0, 2, 1), (2, 0, 1, 2, 1), (3, 1, 0, 2, 1), (3, 0, 2, 3, 1), (10, 3, 3, 7, 4), (100, 20, 10, 80, 70)],
)
def test_quorum_and_honest_noise(parties, dropouts, colluding, quorum, honest):
    group = Group(parties, dropouts, colluding)
    assert (group.quorum, group.honest) == (quorum, honest)
    assert group.colluding < group.quorum  # what the colluding hold opens nothing
    assert 2 * group.quorum > group.parties + group.colluding  # two quorums share an honest party


@pytest.mark.parametrize(("parties", "dropouts", "colluding"), [(2, 1, 0), (3, 1, 1), (4, 2, 0), (10, 3, 4), (5, 0, 5)])
def test_groups_that_could_be_split_are_refused(parties, dropouts, colluding):
    with pytest.raises(ValueError, match="must be more than 2 dropouts"):
        Group(parties, dropouts, colluding)


@pytest.mark.parametrize(("numbers", "name"), [((1,), "parties=1"), ((2**16,), "parties=65536")])
def test_a_group_of_an_impossible_size_is_refused(numbers, name):
    with pytest.raises(ValueError, match=name):
        Group(*numbers)


@pytest.mark.parametrize("name", ["dropouts", "colluding"])
def test_negative_numbers_are_refused(name):
    with pytest.raises(ValueError, match=f"{name}=-1 must not be negative"):
        Group(5, **{name: -1})
