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
from typing import Any, Literal, get_args

import numpy as np
from sklearn.utils import get_tags

from thresher import logs
from thresher.accounting import Cost
from thresher.budget import is_whole
from thresher.plan import MOST_ROWS_EACH, OF_ROWS_ONLY, Answer, Plan, Unit
from thresher.releases import RandomTrials, Release, release_from_dict
from thresher.trust import TRUST
from thresher.verification import (
    Listed,
    missing_parts,
    problems_of_answers,
    problems_of_filters,
    problems_of_trials,
)

__all__ = ["Certificate", "Grade", "Verification", "certify", "combine"]

Grade = Literal["proved", "conditional", "printed", "none"]
"""proved: every bound enforced, accounting sound. conditional: sound if a named assumption holds. printed: a formula
kept as a paper prints it. none: no privacy."""

PEOPLE_PROTECTED = "each person with all their records, from whoever sees the model"
PEOPLE_NOTE = (
    f"a person is all rows with one id: of a person with k rows each counts 1/k, and of one with more than "
    f"{MOST_ROWS_EACH} rows so many count, drawn at random; how many rows there are is private"
)


@dataclass(frozen=True)
class Verification:
    """The outcome of ``Certificate.verify``; true if the certificate claims no less than its releases cost."""

    ok: bool
    epsilon: float
    method: str
    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.ok


@dataclass(frozen=True)
class Certificate:
    """What a fitted model cost in privacy. ``epsilon`` is None where nothing is guaranteed."""

    algorithm: str
    epsilon: float | None
    delta: float
    adjacency: str
    trust: Mapping[str, str]  # who sees what, and who must be trusted with what
    grade: Grade
    claimed_epsilon: float | None  # what was asked for; None if privacy was switched off
    composition: str
    releases: tuple[Mapping[str, Any], ...]
    bounds: Mapping[str, Any]
    settings: Mapping[str, Any]
    assumptions: tuple[str, ...]  # what the guarantee rests on beside the code
    notes: tuple[str, ...]  # what else there is to know, such as why an algorithm was chosen
    randomness: str
    n_samples: int
    n_features: int
    versions: Mapping[str, str]
    ledger: Mapping[str, str] | None = None  # the entry that paid for it: data set, entry, the entry's hash
    unit: Unit = "row"  # what is protected, and what n_samples counts

    @property
    def counted(self) -> str:
        """What n_samples counts, in words."""
        return "people" if self.unit == "person" else "rows"

    def to_json(self) -> str:
        """All fields as indented JSON."""
        return json.dumps(asdict(self), indent=2, allow_nan=False, default=_plain)

    @classmethod
    def from_json(cls, text: str) -> Certificate:
        """The certificate that ``to_json`` wrote."""
        return cls.from_dict(json.loads(text))

    @classmethod
    def read(cls, path: str | Path) -> Certificate:
        """The certificate in the file of a model, or one in a file of its own."""
        record = json.loads(Path(path).read_text())
        if not isinstance(record, dict):
            raise ValueError(f"{path} holds neither a model nor a certificate; give a file written by thresher fit")
        return cls.from_dict(record.get("certificate", record))

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Certificate:
        """The certificate of parsed JSON; what earlier versions did not write is filled in."""
        names = {f.name for f in fields(cls)}
        old = {"trust": dict(TRUST["central"]), "unit": "row", "ledger": None}  # what earlier versions did not write
        data = {**old, **data}
        if set(data) != names:
            raise ValueError(f"not a certificate: fields {sorted(set(data) ^ names)} are missing or unknown")
        lists = {name: tuple(data[name]) for name in ("releases", "assumptions", "notes")}
        return cls(**{**data, **lists})

    def verify(self) -> Verification:
        """Recompute the total cost from the listed releases alone and compare it with what is claimed.

        This checks the arithmetic of a certificate; it cannot tell who wrote it.
        """
        try:
            return self._recomputed()
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            return Verification(False, math.inf, "nothing", (f"the certificate is malformed: {error!r}",))

    def _recomputed(self) -> Verification:
        problems: list[str] = []
        total = Cost()
        listed: list[Listed] = []
        for entry in self.releases:
            release = release_from_dict(entry["release"])
            listed.append((entry.get("part", 0), release, entry.get("within")))
            total += release.cost() if entry.get("within") is None else Cost()
            if (entry["question"], entry["noise"]) != (release.question, release.noise):
                problems.append(f"{release!r} is listed as a {entry['question']} with {entry['noise']} noise")
            problems += problems_of_answers(release, entry["answers"], self._part_of(entry))
        problems += problems_of_filters(listed)
        problems += problems_of_trials(listed, self)
        if not (is_whole(self.n_samples) and self.n_samples >= 1):
            problems.append(f"n_samples={self.n_samples!r} is not a number of {self.counted}")
        if self.unit not in get_args(Unit):
            problems.append(f"unit {self.unit!r} is none of {', '.join(get_args(Unit))}")
        if self.unit == "person":
            of_rows = {release.question for _, release, _ in listed if release.question in OF_ROWS_ONLY}
            problems += [f"a {question} is priced for people with one row each" for question in sorted(of_rows)]
        if self.grade not in get_args(Grade):
            problems.append(f"grade {self.grade!r} is none of {', '.join(get_args(Grade))}")
        if self.epsilon is not None and self.grade == "none":
            problems.append("grade 'none' promises nothing, yet an epsilon is stated")
        if not self.releases:
            problems.append("no release is listed, yet a model was released")
        if "parts" in self.settings:
            problems += missing_parts(self)
        epsilon, method = total.epsilon(self.delta)
        if self.epsilon is not None and not epsilon <= self.epsilon:
            problems.append(f"the listed releases cost epsilon={epsilon:.6g}, more than the stated {self.epsilon:.6g}")
        return Verification(not problems, epsilon, method, tuple(problems))

    def _part_of(self, entry: Mapping[str, Any]) -> Certificate:
        """This certificate with the settings, rows and features of the fit that made a release."""
        parts, part = self.settings.get("parts"), self
        if parts:
            of = parts[entry["part"]]
            part = replace(self, settings=of["settings"], n_features=of["n_features"])
        if "within" not in entry or "trial" not in part.settings:
            return part
        rows = part.settings["score_rows" if entry["question"] == "score" else "fit_rows"]
        return replace(part, settings=part.settings["trial"]["settings"], n_samples=rows)

    def second_opinion(self) -> float | None:
        """What dp-accounting's Renyi accountant makes of the same releases: looser than the exact curve, but not ours.

        Multipliers are relative to the sensitivity of the certificate's adjacency already, so its own default
        relation is the right one (its REPLACE_ONE would not double the sensitivity). None without a finite cost, and
        at a delta of 0, where it has no opinion.
        """
        if self.delta == 0:
            return None
        from dp_accounting import GaussianDpEvent, ZCDpEvent  # takes seconds to import
        from dp_accounting.dp_event import RepeatAndSelectDpEvent
        from dp_accounting.rdp import RdpAccountant, compute_epsilon

        accountant, never_empty, lost = RdpAccountant(), 0.0, 0.0
        for entry in self.releases:
            release = release_from_dict(entry["release"])
            if "within" in entry:
                continue
            costs = release.trial_costs if isinstance(release, RandomTrials) else [release.cost()]
            rho, lost = max(cost.rho for cost in costs), lost + math.fsum(cost.lost for cost in costs)
            if math.isinf(rho) or any(cost.sampled for cost in costs):
                return None
            if isinstance(release, RandomTrials):
                # of its Poisson trials there may be none; given that there is one, chances grow by 1 / (1 - e^-trials)
                accountant.compose(RepeatAndSelectDpEvent(ZCDpEvent(rho), max(release.trials, 1.0), math.inf))
                never_empty -= math.log1p(-math.exp(-release.trials))
            elif math.isfinite(costs[0].mu_squared):
                accountant.compose(GaussianDpEvent(release.multiplier), release.times)
            else:
                accountant.compose(ZCDpEvent(rho))
        if lost >= self.delta:
            return None
        orders = np.asarray(accountant.orders)
        return float(compute_epsilon(orders, accountant.rdp + never_empty / (orders - 1), self.delta - lost)[0])


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
    cost, method = plan.cost.epsilon(budget.delta)
    sound = cost <= budget.epsilon and budget.private
    notes, trust = plan.notes, dict(TRUST[plan.trust])
    if problem.unit == "person":
        notes, trust["protected"] = (*notes, PEOPLE_NOTE), PEOPLE_PROTECTED
    grade: Grade = "conditional" if assumptions else "proved"
    if not budget.private:
        grade, notes = "none", (*notes, "epsilon is infinite: privacy was switched off")
    elif plan.calibration == "printed":
        price = f"costs epsilon={cost:.6g} by the {method}" if math.isfinite(cost) else "has no finite price"
        grade, notes = "printed", (*notes, f"the printed noise {price}")
    certificate = Certificate(
        algorithm=plan.algorithm,
        epsilon=budget.epsilon if sound else None,
        delta=budget.delta,
        adjacency=str(budget.adjacency),
        trust=trust,
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
    """
    parts = [certificate for fit in fits for certificate in _certificates(fit)]
    if not parts:
        raise ValueError("nothing to combine: give certificates, or fitted estimators that carry one")
    for name in ("adjacency", "unit", "n_samples", "trust"):
        values = [getattr(part, name) for part in parts]
        if any(value != values[0] for value in values):
            told = [value.get("model") if name == "trust" else value for value in values]
            raise ValueError(
                f"{name} differs: {told}; only fits on the same rows, with one adjacency, unit and trust, add up"
            )
    releases: list[dict[str, Any]] = []
    members: list[dict[str, Any]] = []
    for part in parts:
        releases += [{**entry, "part": entry.get("part", 0) + len(members)} for entry in part.releases]
        members += part.settings.get("parts") or [_member(part)]
    delta = math.fsum(part.delta for part in parts)
    counted = [release_from_dict(entry["release"]) for entry in releases if "within" not in entry]
    cost, method = sum((release.cost() for release in counted), Cost()).epsilon(delta)
    claims = [part.claimed_epsilon for part in parts if part.claimed_epsilon is not None]
    return Certificate(
        algorithm=" + ".join(member["algorithm"] for member in members),
        epsilon=None if any(part.epsilon is None for part in parts) else cost,
        delta=delta,
        adjacency=parts[0].adjacency,
        trust=parts[0].trust,
        grade=max((part.grade for part in parts), key=get_args(Grade).index),
        claimed_epsilon=math.fsum(claims) if len(claims) == len(parts) else None,
        composition=f"epsilon={cost:.6g} at delta={delta:.6g} by {method}, over {len(members)} fits on the same rows",
        releases=tuple(releases),
        bounds={name: [member["bounds"].get(name) for member in members] for name in members[0]["bounds"]},
        settings={"parts": members},
        assumptions=tuple(dict.fromkeys(words for part in parts for words in part.assumptions)),
        notes=tuple(dict.fromkeys(words for part in parts for words in part.notes)),
        randomness="; ".join(dict.fromkeys(part.randomness for part in parts)),
        n_samples=parts[0].n_samples,
        n_features=max(part.n_features for part in parts),
        versions=_versions(),
        unit=parts[0].unit,
    )


def _member(part: Certificate) -> dict[str, Any]:
    """What a combined certificate keeps of a part, beside its releases."""
    kept = ("algorithm", "epsilon", "delta", "grade", "n_features", "bounds", "settings", "ledger")
    return {**{name: getattr(part, name) for name in kept}, "releases": len(part.releases)}


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


def _entries(releases: tuple[Release, ...], answers: tuple[Answer, ...]) -> list[dict[str, Any]]:
    """The planned releases, equal ones as one, used more often; after a filter, what it let pass."""
    planned = {release: release.times * releases.count(release) for release in releases}
    passed = Counter(answer.release for answer in answers if answer.release not in planned)
    entries = [_entry(release, times, answers) for release, times in planned.items()]
    return entries + [{**_entry(release, times, answers), "within": "filter"} for release, times in passed.items()]


def _entry(release: Release, times: int, answers: tuple[Answer, ...]) -> dict[str, Any]:
    """A release and the answers it gave, equal ones counted together."""
    own = [(a.clip, a.sensitivity, a.scale) for a in answers if a.release == release]
    return {
        "release": replace(release, times=times).to_dict(),
        "question": release.question,
        "noise": release.noise,
        "answers": [
            {"count": len(list(group)), **dict(zip(("clip", "sensitivity", "scale"), map(_number, key), strict=True))}
            for key, group in groupby(own)
        ],
    }


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else str(value)


@cache
def _versions() -> dict[str, str]:
    names = ("thresher", "numpy", "scipy", "scikit-learn", "randomgen", "dp-accounting")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}
