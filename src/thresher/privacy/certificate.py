"""The receipt: what was released, what it cost, under which bounds and assumptions. Plain JSON."""

from __future__ import annotations

import json
import math
import platform
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cache
from importlib.metadata import version
from itertools import groupby
from pathlib import Path
from typing import Any

from sklearn.utils import get_tags

from thresher.privacy import logs
from thresher.privacy.accounting import Cost
from thresher.privacy.facts import PEOPLE_NOTE, Settings
from thresher.privacy.grades import PRINTED_NOTE, Grade, grade_of
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.pricing import epsilon_of_sum
from thresher.privacy.releases import RandomTrials, Release, release_from_dict
from thresher.privacy.strict_json import Record, parse_json, read_record
from thresher.privacy.trust import Unit, trust_words, trust_words_of_first_format
from thresher.privacy.verification.statements import FORMATS, trust_of
from thresher.privacy.verification.verify import (
    Verification,
    parts_of,
    price_of,
    second_opinion_of,
    statement_of_sum,
    verify_certificate,
)

__all__ = ["Certificate", "Grade", "Verification", "certify", "combine"]


@dataclass(frozen=True)
class Certificate:
    """What a fitted model cost in privacy. ``epsilon`` is None where nothing is guaranteed.

    Parameters
    ----------
    algorithm : str
        What was run.
    epsilon, delta : float
        What is guaranteed; no epsilon where nothing is.
    adjacency : str
        Which data sets are neighbours.
    trust : mapping
        Who sees what, and who must be trusted with what.
    grade : "proved", "conditional", "printed" or "none"
        How far the guarantee carries.
    claimed_epsilon : float or None
        What was asked for; None if privacy was switched off.
    composition : str
        What the releases cost together, and by which proof.
    releases : tuple of mappings
        Every release as it was planned, with the answers it gave.
    bounds, settings : mapping
        What was clipped to what, and every hyper-parameter.
    assumptions, notes : tuple of str
        What the guarantee rests on beside the code, and what else there is to know.
    randomness : str
        Where the noise came from.
    n_samples, n_features : int
        How many rows, or people, and columns.
    versions : mapping
        Of the packages that took part.
    ledger : mapping or None
        The entry that paid for it.
    unit : "row" or "person"
        What is protected.
    model : str or None
        The hash of the model it belongs to.
    format : str
        Of the certificate itself.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import Certificate, SparseRegressor
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(1, epsilon=1.0, feature_bound=1.0, target_bound=1.0).fit(X, X[:, 2])
    >>> certificate = Certificate.from_json(model.certificate_.to_json())
    >>> certificate.epsilon, certificate.grade, bool(certificate.verify())
    (1.0, 'proved', True)
    """

    algorithm: str
    epsilon: float | None
    delta: float
    adjacency: str
    trust: Mapping[str, str]  # who sees what, and who must be trusted with what
    grade: Grade
    claimed_epsilon: float | None  # what was asked for; None if privacy was switched off
    composition: str
    releases: tuple[Record, ...]
    bounds: Settings
    settings: Settings
    assumptions: tuple[str, ...]  # what the guarantee rests on beside the code
    notes: tuple[str, ...]  # what else there is to know, such as why an algorithm was chosen
    randomness: str
    n_samples: int
    n_features: int
    versions: Mapping[str, str]
    ledger: Mapping[str, str] | None = None  # the entry that paid for it: data set, entry, the entry's hash
    unit: Unit = "row"  # what is protected, and what n_samples counts
    model: str | None = (
        None  # the hash of the model it belongs to (``thresher.privacy.model_hash``); a sum has one in each part
    )
    format: str = FORMATS[-1]

    @property
    def counted(self) -> str:
        """What n_samples counts, in words."""
        return "people" if self.unit == "person" else "rows"

    @property
    def is_old(self) -> bool:
        """Whether it was written before certificates had a format, and a model that they belong to."""
        return self.format == FORMATS[0]

    def to_json(self) -> str:
        """All fields as indented JSON."""
        return json.dumps(asdict(self), indent=2, allow_nan=False, default=_plain)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """The certificate that ``to_json`` wrote."""
        return cls.from_dict(parse_json(text))

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """The certificate in the file of a model, or one in a file of its own."""
        return cls.of_record(read_record(path), path)

    @classmethod
    def of_record(cls, record: object, path: str | Path) -> Certificate:
        """The certificate in what the file at ``path`` holds."""
        if not isinstance(record, dict):
            raise ValueError(f"{path} holds neither a model nor a certificate; give a file written by thresher fit")
        return cls.from_dict(record.get("certificate", record))

    @classmethod
    def from_dict(cls, data: Record) -> Certificate:
        """The certificate of parsed JSON; what earlier versions did not write is filled in."""
        if not isinstance(data, Mapping):
            raise ValueError("not a certificate: give the fields of one by their names")
        if data.get("format", FORMATS[0]) not in FORMATS:
            raise ValueError(
                f"format {data['format']!r} of the certificate is unknown, of a later version perhaps; known: "
                f"{', '.join(FORMATS)}"
            )
        if "format" not in data:  # what the first versions did not write
            first = {
                "trust": trust_words_of_first_format("central", "row"),
                "unit": "row",
                "ledger": None,
                "model": None,
            }
            data = {**first, "format": FORMATS[0], **data}
        names = {f.name for f in fields(cls)}
        if set(data) != names:
            missing, unknown = sorted(names - set(data)), sorted(set(data) - names)
            raise ValueError(f"not a certificate: fields {missing} are missing and {unknown} unknown")
        lists = ("releases", "assumptions", "notes")
        return cls(**{**data, **{name: tuple(data[name]) for name in lists if isinstance(data[name], list)}})

    def verify(self) -> Verification:
        """Recompute the total cost from the listed releases alone, and look for whatever contradicts the rest.

        This checks what a certificate says against itself; it cannot tell who wrote it.
        """
        return verify_certificate(self)

    def second_opinion(self) -> float | None:
        """What dp-accounting makes of the same releases; None where it has no opinion."""
        return second_opinion_of(self)


def certify(
    plan: Plan,
    answers: tuple[Answer, ...],
    randomness: str,
    assumptions: tuple[str, ...],
    chosen: Plan | None = None,
) -> Certificate:
    """The certificate of a run that made ``answers`` under ``plan``; the whole plan is charged, asked or not.

    Of a search, ``chosen`` is the plan of the trial that is told of, and the answers are that trial's.
    """
    budget, problem = plan.budget, plan.problem
    cost, method = plan.price
    sound = cost <= budget.epsilon and budget.private
    notes, printed = plan.notes, plan.calibration == "printed"
    if problem.unit == "person":
        notes = (*notes, PEOPLE_NOTE)
    if not budget.private:
        notes = (*notes, "epsilon is infinite: privacy was switched off")
    elif printed:
        price = f"costs epsilon={cost:.6g} by the {method}" if math.isfinite(cost) else "has no finite price"
        notes = (*notes, f"{PRINTED_NOTE}{price}")
    released = (*plan.releases, *(answer.release for answer in answers))
    assumptions = (*assumptions, *problem.assumed, *(() if chosen is None else chosen.problem.assumed))
    grade, assumptions = grade_of(budget.private, printed, assumptions, randomness, released)
    certificate = Certificate(
        algorithm=plan.algorithm,
        epsilon=budget.epsilon if sound else None,
        delta=budget.delta,
        adjacency=str(budget.adjacency),
        trust=trust_words(plan.trust, problem.unit),
        grade=grade,
        claimed_epsilon=budget.epsilon if budget.private else None,
        composition=f"epsilon={cost:.6g} at delta={budget.delta:.6g} by {method}",
        releases=tuple(_entries(plan.releases, answers if chosen is None else ())),
        bounds=problem.enforced,
        settings={**plan.settings, **problem.public_choices},
        assumptions=assumptions,
        notes=notes,
        randomness=randomness,
        n_samples=problem.n,
        n_features=problem.d,
        versions=_versions(),
        unit=problem.unit,
    )
    logs.certified(certificate)
    return certificate if chosen is None else _of_trial(certificate, plan, chosen, answers)


def _of_trial(certificate: Certificate, plan: Plan, chosen: Plan, answers: tuple[Answer, ...]) -> Certificate:
    """The certificate of a search with what its best trial released, and under which bounds."""
    (search,) = (release for release in plan.releases if isinstance(release, RandomTrials))
    made = _entries((*chosen.releases, search.score), answers)
    settings = {**chosen.settings, **chosen.problem.public_choices}
    return replace(
        certificate,
        releases=(*certificate.releases, *({"within": "trials", **entry} for entry in made)),
        bounds=chosen.problem.enforced,
        settings={**certificate.settings, "trial": {"algorithm": chosen.algorithm, "settings": settings}},
        notes=(*certificate.notes, *chosen.notes),
    )


def combine(*fits: Any) -> Certificate:
    """What several fits on the same rows cost together: the SUM, of which each fit's own certificate is only a part.

    ``fits`` are certificates, fitted estimators that carry one, or fitted pipelines, column transformers and feature
    unions, whose steps are all counted. Costs are added release by release and converted once, at the sum of the
    deltas, which is less than the sum of the epsilons. A later fit may use what earlier ones released: composition is
    adaptive. Only what each may cost must not: where that is decided as one goes, a ``thresher.Ledger`` counts.
    A step that learns from the rows and has no certificate is refused: no total could be stated.

    Parameters
    ----------
    fits : Certificate or fitted estimator
        Fits on the same rows, in any order.

    Returns
    -------
    Certificate
        Of all of them together.

    Raises
    ------
    ValueError
        If there is nothing to combine, if fits are of other rows, neighbours or trust, or if one has no certificate.

    Examples
    --------
    >>> import numpy as np
    >>> from thresher import SparseRegressor, combine
    >>> X = np.sin(np.arange(5000.0)).reshape(1000, 5)
    >>> model = SparseRegressor(1, epsilon=1.0, feature_bound=1.0, target_bound=1.0)
    >>> first = model.fit(X, X[:, 2]).certificate_
    >>> second = model.fit(X, X[:, 3]).certificate_
    >>> 1.0 < combine(first, second).epsilon < 2.0
    True
    """
    parts = [certificate for fit in fits for certificate in _certificates(fit)]
    if not parts:
        raise ValueError("nothing to combine: give certificates, or fitted estimators that carry one")
    trusted = [trust_of(part) for part in parts]
    shared = {name: [getattr(part, name) for part in parts] for name in ("adjacency", "unit", "n_samples")}
    for name, values in {**shared, "trust": trusted}.items():
        if any(value != values[0] for value in values):
            raise ValueError(
                f"{name} differs: {values}; only fits on the same rows, with one adjacency, unit and trust, add up"
            )
    if trusted[0] is None:
        raise ValueError("trust: a certificate tells in other words than ours who must be trusted; verify it")
    releases: list[Record] = []
    members: list[Record] = []
    for part in parts:
        if part.is_old and "parts" in part.settings:
            raise ValueError("a sum of an earlier version tells too little of its fits; combine their own certificates")
        releases += [{**entry, "part": entry.get("part", 0) + len(members)} for entry in part.releases]
        members += part.settings.get("parts") or [_member(part)]
    total = statement_of_sum(members)
    prices, together = list[float](), Cost()
    for each in (fit for part in parts for fit in parts_of(part)):
        paid = tuple(release_from_dict(entry["release"]) for entry in each.releases if "within" not in entry)
        prices.append(price_of(each, paid)[0])
        together = sum((release.cost() for release in paid), together)
    cost, method = epsilon_of_sum(together, prices, total["delta"])
    told = f"epsilon={cost:.6g} at delta={total['delta']:.6g} by {method}, over {len(members)} fits on the same rows"
    return Certificate(
        **total,
        epsilon=None if any(member["epsilon"] is None for member in members) else cost,
        adjacency=parts[0].adjacency,
        trust=trust_words(trusted[0], parts[0].unit),
        composition=told,
        releases=tuple(releases),
        settings={"parts": members},
        n_samples=parts[0].n_samples,
        versions=_versions(),
        unit=parts[0].unit,
    )


def _member(part: Certificate) -> Record:
    """What a combined certificate keeps of a part, beside its releases and what all parts share."""
    shared = ("releases", "adjacency", "trust", "n_samples", "unit")
    own = {f.name: getattr(part, f.name) for f in fields(part) if f.name not in shared}
    return {**own, "releases": len(part.releases)}


def _certificates(fit: Any) -> list[Certificate]:
    """The certificates a fitted object carries, step by step."""
    if isinstance(fit, Certificate):
        return [fit]
    if isinstance(fit, str) or fit is None:  # "passthrough" and "drop"
        return []
    if hasattr(fit, "certificate_"):
        return [fit.certificate_]
    for steps in ("steps", "transformers_", "transformer_list"):
        if hasattr(fit, steps):
            return [certificate for step in getattr(fit, steps) for certificate in _certificates(step[1])]
    if hasattr(fit, "__sklearn_tags__") and not get_tags(fit).requires_fit:  # it learns nothing from the rows ...
        if getattr(fit, "func", None) is None:
            return []
        raise ValueError(  # ... unless it is a function of the user's, which may look at all of them at once
            f"{type(fit).__name__} applies a function that may mix rows, so no total can be stated; transform the rows "
            "before the pipeline if it treats each on its own, or combine the certificates themselves"
        )
    raise ValueError(
        f"{type(fit).__name__} has no certificate, so what it learnt from the rows is not private and no total can be "
        "stated; replace it by a private step, or combine the certificates themselves if it learnt nothing"
    )


def _entries(releases: tuple[Release, ...], answers: tuple[Answer, ...]) -> list[Record]:
    """The planned releases, equal ones as one, used more often; after a filter, what it let pass."""
    planned = {release: release.times * releases.count(release) for release in releases}
    passed = Counter(answer.release for answer in answers if answer.release not in planned)
    entries = [_entry(release, times, answers) for release, times in planned.items()]
    return entries + [{**_entry(release, times, answers), "within": "filter"} for release, times in passed.items()]


def _entry(release: Release, times: int, answers: tuple[Answer, ...]) -> Record:
    """A release and the answers it gave, equal ones counted together."""
    own = [(a.clip, a.sensitivity, a.scale) for a in answers if a.release == release]
    return {
        "release": replace(release, times=times).to_dict(),
        "question": release.question.name,
        "noise": release.noise,
        "answers": [
            {"count": len(list(group)), **dict(zip(("clip", "sensitivity", "scale"), map(_number, key), strict=True))}
            for key, group in groupby(own)
        ],
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _plain(value: object) -> object:
    return value.item() if hasattr(value, "item") else str(value)


@cache
def _versions() -> dict[str, str]:
    names = ("thresher", "numpy", "scipy", "scikit-learn", "randomgen", "dp-accounting")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
