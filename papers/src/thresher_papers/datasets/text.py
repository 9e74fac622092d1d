"""Sets of texts: unit tf-idf rows, so no row is longer than 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from thresher_papers.datasets.files import Files, loader
from thresher_papers.datasets.formats import arrays, matrix, svmlight, unit_rows
from thresher_papers.datasets.real_set import RealSet

__all__ = ["e2006", "imdb", "imdb_rating", "news20", "rcv1", "rcv1_small", "reuters"]

E2006_COLUMNS, RCV1_COLUMNS = 150_360, 47_236
LOG_VOLATILITY = (-8.0, 0.0)
"""A stock that moves between .03 % and 100 % a day: nobody has to look at the reports to know that."""


@loader
def e2006(here: Files) -> RealSet:
    """E2006-tfidf: the log volatility of a stock in the year after a report, from the words of the report."""
    files = here.all_of("E2006.train", "E2006.test")
    if files is None:
        raise here.missing(stand_in="imdb_rating")
    (X, y), (X_test, y_test) = (svmlight(file, E2006_COLUMNS) for file in files)
    bounds = {"row_bound": 1.0, "target_bound": LOG_VOLATILITY}
    about = "E2006-tfidf: log volatility from the words of yearly reports; rows over their own norm"
    return RealSet(here.name, unit_rows(X), y, unit_rows(X_test), y_test, bounds, about)


@loader
def rcv1(here: Files) -> RealSet:
    """RCV1, binary as LIBSVM has it: CCAT or ECAT against GCAT or MCAT."""
    if files := here.all_of("rcv1_train.binary", "rcv1_test.binary"):
        (X, y), (X_test, y_test) = (svmlight(file, RCV1_COLUMNS) for file in files)
    elif here.download:
        (X, y), (X_test, y_test) = (_fetched_rcv1(part) for part in ("train", "test"))
    else:
        raise here.missing(stand_in="imdb (of the same size) or rcv1_small (1,000 documents)", fetched=True)
    about = "RCV1, binary: news on companies and the economy, or on governments and markets; unit tf-idf rows"
    bounds = {"row_bound": 1.0, "classes": (-1, 1)}
    return RealSet(here.name, unit_rows(X), y.astype(np.int8), unit_rows(X_test), y_test.astype(np.int8), bounds, about)


def _fetched_rcv1(part: str) -> tuple[Any, Any]:
    """Documents with a topic on either side, less those with topics on both."""
    from sklearn.datasets import fetch_rcv1

    found = fetch_rcv1(subset=part)
    topics = {str(name): at for at, name in enumerate(found.target_names)}
    target = found.target.tocsc()
    positive, negative = (
        np.asarray(target[:, [topics[name] for name in side]].sum(axis=1)).ravel() > 0
        for side in (("CCAT", "ECAT"), ("GCAT", "MCAT"))
    )
    kept = np.flatnonzero(positive != negative)
    return found.data[kept], np.where(positive[kept], 1, -1)


@loader
def rcv1_small(here: Files) -> RealSet:
    """1,000 and 500 documents of RCV1."""
    files = here.all_of("rcv1_small_train.npz", "rcv1_small_test.npz")
    if files is None:
        raise here.missing()
    X, X_test = (unit_rows(matrix(file)) for file in files)
    y, y_test = (arrays(file)["y"] for file in files)
    about = "a sample of RCV1, one topic against the rest, unit tf-idf rows; stands in for all of RCV1"
    bounds = {"row_bound": 1.0, "classes": (-1, 1)}
    return RealSet(here.name, X, y, X_test, y_test, bounds, about, stand_in_for="rcv1")


@loader
def imdb(here: Files) -> RealSet:
    """Reviews of films: good or bad?"""
    about = "IMDB reviews of films, good or bad; stands in for RCV1: as many documents and words"
    return _counted(here, "imdb", "y", {"classes": (-1, 1)}, about, stand_in_for="rcv1")


@loader
def imdb_rating(here: Files) -> RealSet:
    """Reviews of films: 1 to 10 stars."""
    about = "IMDB reviews of films, 1 to 10 stars; stands in for E2006-tfidf: numbers from many sparse words"
    return _counted(here, "imdb", "rating", {"target_bound": (1, 10)}, about, stand_in_for="e2006")


@loader
def news20(here: Files) -> RealSet:
    """20 Newsgroups."""
    return _counted(here, "news20", "y", {"classes": range(20)}, "20 Newsgroups: which of 20 groups a post went to")


@loader
def reuters(here: Files) -> RealSet:
    """Reuters-21578 R52."""
    about = "Reuters-21578 R52: which of 52 topics a text has"
    return _counted(here, "reuters_r52", "y", {"classes": range(52)}, about)


def _counted(here: Files, stem: str, target: str, facts: dict[str, Any], about: str, **kept: Any) -> RealSet:
    """A set whose files hold counts of words and, the training one, the idf of each word."""
    files = here.all_of(f"{stem}_train.npz", f"{stem}_test.npz")
    if files is None:
        raise here.missing()
    idf = arrays(files[0])["idf"]
    X, X_test = (_tf_idf(file, idf) for file in files)
    y, y_test = (arrays(file)[target] for file in files)
    vocabulary = here.find(f"{stem}_vocab.txt")
    names = None if vocabulary is None else vocabulary.read_text(encoding="utf-8").split("\n")[: X.shape[1]]
    return RealSet(here.name, X, y, X_test, y_test, {"row_bound": 1.0, **facts}, about, names, **kept)


def _tf_idf(path: Path, idf: Any) -> Any:
    X = matrix(path)
    X.data = (1 + np.log(X.data)) * idf[X.indices]
    return unit_rows(X)
