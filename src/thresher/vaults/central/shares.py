"""What each row counts where the unit of privacy is a person: all rows of a person together count as one.

Of a person with k rows each counts 1/k, so a person's part in every sum is an average of terms that are clipped one by
one, and an average of vectors of norm at most C has norm at most C. So all that is said about a row elsewhere holds for
a person, with the number of people for n. docs/people.md goes through the questions one by one.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from thresher.privacy.arrays import Floats, Indices
from thresher.privacy.facts import MOST_ROWS_EACH
from thresher.vaults.randomness import NoiseSource

__all__ = ["Shares"]


class Shares:
    """Whose rows they are, and what each of them counts.

    Of a person with more rows than may count, as many as may are drawn at random, each row by a number of its own; the
    others count 0. Draw the same for two neighbours: nobody else's draw depends on the rows of the person in whom they
    differ, and whichever of that person's rows are drawn, they count as one together. A mixture over the draws is no
    easier to tell apart than its components.
    """

    def __init__(self, owners: Indices, noise: NoiseSource) -> None:
        self.owners = owners
        self._counts = np.bincount(owners)
        self.people = len(self._counts)
        kept = np.ones(len(owners), dtype=bool)
        many = np.flatnonzero(self._counts[owners] > MOST_ROWS_EACH)
        if many.size:
            order = many[np.lexsort((noise.uniform(len(many)), owners[many]))]
            lengths = self._counts[np.unique(owners[many])]
            places = np.arange(len(many)) - np.repeat(np.cumsum(lengths) - lengths, lengths)  # among a person's rows
            kept[order[places >= MOST_ROWS_EACH]] = False
        self._counts = np.minimum(self._counts, MOST_ROWS_EACH)
        self.of_rows: Floats = np.where(kept, 1 / self._counts[owners], 0.0)

    def times(self, values: Floats) -> Floats:
        """The same array, each row's value, or values, now times what the row counts."""
        values *= self.of_rows if values.ndim == 1 else self.of_rows[:, None]
        return values

    def counted(self, places: Indices, count: int) -> Floats:
        """What the rows at places 0, 0 to 1, ..., 0 to count-1 count together; a row may be further up.

        Rows that count the same are counted, which is exact; only the fractions, few whatever the rows, are added up.
        """
        parts, counts = MOST_ROWS_EACH + 1, self.of_rows > 0
        one_of = np.rint(1 / self.of_rows[counts]).astype(np.intp)  # so many rows that count
        alike = np.bincount(places[counts] * parts + one_of, minlength=(count + 1) * parts)
        upto = np.cumsum(alike.reshape(-1, parts), axis=0)[:count, 1:] / np.arange(1, parts)
        sums: Floats = upto.sum(axis=1)
        return sums

    def rows_of(self, people: Indices) -> Indices:
        """The rows of these people that count."""
        lengths, first = self._counts[people], self._starts[people]
        at = np.arange(lengths.sum()) + np.repeat(first - np.cumsum(lengths) + lengths, lengths)
        rows: Indices = self._by_person[at]
        return rows

    @cached_property
    def _by_person(self) -> Indices:
        counted = np.flatnonzero(self.of_rows)
        return counted[np.argsort(self.owners[counted], kind="stable")]

    @cached_property
    def _starts(self) -> Indices:
        return np.cumsum(self._counts) - self._counts
