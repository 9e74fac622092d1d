"""Diabetes in 130 US hospitals, 1999 to 2008: is a patient readmitted, and how long is a stay?"""

from __future__ import annotations

from typing import Any

import numpy as np

from thresher_papers.datasets.files import Files, loader
from thresher_papers.datasets.formats import arrays, matrix, unit_rows
from thresher_papers.datasets.real_set import RealSet

__all__ = ["diabetes130", "diabetes130_stay"]

LONGEST_STAY = 14

LEFT_OUT = ("time_in_hospital", "diag", "medical_specialty", "payer_code", "weight")
"""Columns that are the length of the stay itself, too many, or mostly missing."""


@loader
def diabetes130(here: Files) -> RealSet:
    """Readmitted or not, from 8 numbers over their maxima, 33 one-hot attributes and up to 3 diagnoses.

    A patient may have several rows: ``groups`` says whose they are; none is both among the training and the test rows.
    """
    X, data, names = read_stays(here)
    test = data["is_test"].astype(bool)
    bounds = {"feature_bound": 1.0, "row_bound": 44**0.5, "classes": (-1, 1)}
    about = "diabetes in 130 US hospitals: is the patient readmitted?"
    y = data["y_any"]
    return RealSet(
        here.name, X[~test], y[~test], X[test], y[test], bounds, about, names, groups=data["patient"][~test],
        groups_test=data["patient"][test],
    )  # fmt: skip


@loader
def diabetes130_stay(here: Files) -> RealSet:
    """How many days was the first stay of 70,000 patients, 50,000 of them to fit? One row a patient, of norm 1."""
    from sklearn.model_selection import train_test_split

    X, data, names = read_stays(here)
    kept = [at for at, name in enumerate(names) if not name.startswith(LEFT_OUT)]
    patient, first = np.unique(data["patient"], return_index=True)
    rows, days = unit_rows(X[first][:, kept].toarray()), data["time_in_hospital"][first]
    X, X_test, y, y_test, groups, _ = train_test_split(
        rows, days, patient, train_size=50_000, test_size=20_000, random_state=0
    )
    bounds = {"row_bound": 1.0, "target_bound": (1, LONGEST_STAY)}
    about = "diabetes in 130 US hospitals: days of a patient's first stay, 1 to 14; stands in for KDDCup98"
    return RealSet(
        here.name, X, y, X_test, y_test, bounds, about, [names[at] for at in kept], groups, stand_in_for="kddcup98"
    )


def read_stays(here: Files) -> tuple[Any, Any, list[str]]:
    """Rows, everything else in the file, and the names of the columns."""
    files = here.all_of("diabetes130.npz", "diabetes130_features.txt")
    if files is None:
        raise here.missing()
    names = files[1].read_text(encoding="utf-8").split("\n")
    X = matrix(files[0])
    return X, arrays(files[0]), names[: X.shape[1]]
