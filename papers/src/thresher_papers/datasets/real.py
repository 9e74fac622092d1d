"""Real data sets by name, with the public facts that go with them."""

from __future__ import annotations

from pathlib import Path

from thresher_papers.datasets import attributes, donors, genes, images, patients, standard, text
from thresher_papers.datasets.files import LOADERS
from thresher_papers.datasets.real_set import RealSet

__all__ = ["REAL_SETS", "load"]

REAL_SETS = tuple(
    name for room in (text, standard, images, attributes, donors, patients, genes) for name in room.__all__
)
"""The names that ``load`` knows."""


def load(name: str, folder: str | Path | None = None, *, download: bool = False) -> RealSet:
    """A real set by its name.

    Files are looked for in ``folder``, or in the folder that the environment variable THRESHER_DATA names: first the
    originals by their original names, then the ``.npz`` files of docs/data.md. With ``download=True`` those that
    scikit-learn can fetch are fetched if they are in neither form there.
    """
    if name not in LOADERS:
        raise ValueError(f"name={name!r} is not a data set; it must be one of {', '.join(sorted(REAL_SETS))}")
    return LOADERS[name](folder, download=download)
