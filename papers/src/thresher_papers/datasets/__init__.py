"""Synthetic laws of the papers, adversarial rows, and loaders of real data sets."""

from thresher.audit.adversarial_rows import Fingerprints, fingerprints, support_flip_rows
from thresher.data.laws import SignLaw, SparseLaw, dp_ight_law, dpsl_kt_law, ldp_law
from thresher_papers.datasets.files import MissingDataError
from thresher_papers.datasets.formats import unit_rows
from thresher_papers.datasets.raw import write_table
from thresher_papers.datasets.real import REAL_SETS, load
from thresher_papers.datasets.real_set import RealSet, halves

__all__ = [
    "REAL_SETS",
    "Fingerprints",
    "MissingDataError",
    "RealSet",
    "SignLaw",
    "SparseLaw",
    "dp_ight_law",
    "dpsl_kt_law",
    "fingerprints",
    "halves",
    "ldp_law",
    "load",
    "support_flip_rows",
    "unit_rows",
    "write_table",
]
