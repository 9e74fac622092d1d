"""The tables of the yard by name, and which of them no constant may be chosen on."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

from yard.loading import DescribedTable, ReadyTable, SquaresTable, Table, TextTable

__all__ = ["HOPELESS", "SAME_ROWS", "SEEN", "TABLES", "is_untouched"]


DESCRIBED: dict[str, dict[str, str]] = {
    "numbers": {
        "ames": "modeldata/ames", "diamonds": "ggplot2/diamonds", "deliveries": "modeldata/deliveries",
        "hotel_rates": "modeldata/hotel_rates", "cps1988": "AER/CPS1988", "nmes1988": "AER/NMES1988",
        "gss_wages": "stevedata/gss_wages", "rwm5yr": "COUNT/rwm5yr", "fertility": "AER/Fertility",
        "fertility2": "AER/Fertility2", "loans_rate": "openintro/loans_full_schema", "star": "mlmRev/star",
        "gssvocab": "carData/GSSvocab", "flights": "nycflights13/flights", "scorecard": "causaldata/scorecard",
        "hi": "Ecdat/HI", "cps91": "wooldridge/cps91", "help": "mosaicData/HELPfull",
        "diabetes": "scikit-learn/diabetes",
    },
    "two classes": {
        "default": "ISLR/Default", "caravan": "ISLR/Caravan", "credit": "modeldata/credit_data",
        "lending_club": "modeldata/lending_club", "mlc_churn": "modeldata/mlc_churn",
        "wa_churn": "modeldata/wa_churn", "stackoverflow": "modeldata/stackoverflow", "nafld": "survival/nafld1",
        "flchain": "survival/flchain", "covid_testing": "medicaldata/covid_testing", "arrests": "carData/Arrests",
        "health_insurance": "AER/HealthInsurance", "resume": "openintro/resume", "nass": "DAAG/nassCDS",
        "smoke_ban": "AER/SmokeBan", "mpls_stops": "carData/MplsStops",
        "breast_cancer": "scikit-learn/breast_cancer", "grants": "modeldata/grants_other",
    },
    "more classes": {
        "hpc": "modeldata/hpc_data", "loans_grade": "openintro/loans_full_schema", "chile": "carData/Chile",
        "verbagg": "lme4/VerbAgg", "khan": "ISLP/Khan",
    },
}  # fmt: skip
"""Raw tables with a description: by kind and name, where each comes from."""

READY: dict[str, dict[str, str]] = {
    "numbers": {
        "diabetes130_stay": "diabetes130_stay", "imdb_rating": "imdb_rating", "mice_genomics": "mice_genomics",
    },
    "two classes": {
        "a9a": "a9a", "adult": "adult", "diabetes130": "diabetes130", "covtype": "covertype", "ijcnn1": "ijcnn1",
        "kddcup99": "kddcup99", "imdb": "imdb",
    },
    "more classes": {"reuters_r52": "reuters", "news20": "news20"},
}  # fmt: skip
"""Sets that come as numbers: by kind and name, what thresher_papers calls them."""

SQUARES = ("ames", "diamonds")


def _catalogue() -> dict[str, Table]:
    described = _made(DescribedTable, DESCRIBED)
    squares = {f"{name}_squares": SquaresTable(f"{name}_squares", "numbers", described[name]) for name in SQUARES}
    text = {"fine_foods": TextTable("fine_foods", "two classes", "modeldata/small_fine_foods")}
    return {**described, **squares, **text, **_made(ReadyTable, READY)}


Made = TypeVar("Made", bound=Table)


def _made(of: Callable[[str, str, str], Made], kinds: dict[str, dict[str, str]]) -> dict[str, Made]:
    return {name: of(name, kind, source) for kind, tables in kinds.items() for name, source in tables.items()}


TABLES = _catalogue()
"""All tables of the yard, by name."""


SAME_ROWS = {
    "fertility2": "fertility", "loans_grade": "loans_rate", "ames_squares": "ames", "diamonds_squares": "diamonds",
    "adult": "a9a", "diabetes130_stay": "diabetes130", "imdb_rating": "imdb",
}  # fmt: skip
"""Tables that show rows of another one in another way: untouched together, or not at all."""


def is_untouched(name: str) -> bool:
    """Whether a table is in the third that no constant may be chosen on: by the hash of its name, so at random."""
    return int(hashlib.sha256(SAME_ROWS.get(name, name).encode()).hexdigest(), 16) % 3 == 0


SEEN = {
    "hotel_rates", "gss_wages", "fertility2", "loans_rate", "gssvocab", "diabetes", "caravan", "nafld", "hpc",
    "loans_grade", "verbagg",
}  # fmt: skip
"""Tables of the untouched third that were looked at when newton's constants were chosen: they were marked later."""


HOPELESS = {"khan": "56 patients and 2,308 genes: no private model can be good, and thresher plan says so"}
"""Tables that are shown and not counted."""
