"""Whether a certificate holds: its cost recomputed from the listed releases, and nothing in it that denies the rest."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np

from thresher.privacy.accounting import Cost
from thresher.privacy.budget import Adjacency, Budget
from thresher.privacy.grades import REAL_NOISE, Grade, real_noise
from thresher.privacy.pricing import epsilon_in_order, epsilon_of_sum
from thresher.privacy.releases import RandomTrials, Release, SampledRelease, ZCDPFilter, release_from_dict
from thresher.privacy.strict_json import Record
from thresher.privacy.trust import trust_words_of_first_format
from thresher.privacy.verification.answers import problems_of_answers, problems_of_bounds, problems_of_clips
from thresher.privacy.verification.recipes import RECIPES, problems_of_order, problems_of_recipe
from thresher.privacy.verification.statements import FORMATS, problems_of_fields, problems_of_statements, trust_of

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = [
    "Verification",
    "missing_parts",
    "parts_of",
    "price_of",
    "problems_of_sum",
    "second_opinion_of",
    "statement_of_sum",
    "verify_certificate",
]

NOTHING = "nothing"
FINER = 64.5  # cells of the exact composition: another grid than noise is calibrated on, and mostly tighter
COMPOSED = 1e-4  # relative: prices are written with six digits

Listed = tuple[Release, Record]
"""A release as it was, and how it is listed."""


@dataclass(frozen=True)
class Verification:
    """The outcome of ``Certificate.verify``; true if nothing contradicts what the certificate claims.

    Parameters
    ----------
    ok : bool
        Whether nothing contradicts the rest.
    epsilon : float
        What the listed releases cost, recomputed.
    method : str
        By which proof.
    problems : tuple of str
        What is contradicted.
    warnings : tuple of str
        What is no contradiction, but should be known.

    Examples
    --------
    >>> from thresher.privacy.certificate import Verification
    >>> bool(Verification(False, 2.0, "zCDP", ("the listed releases cost more than stated",)))
    False
    """

    ok: bool
    epsilon: float
    method: str
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    """What is no contradiction, but should be known."""

    @property
    def readable(self) -> bool:
        """Whether its fields are what they must be, so that there was something to recompute."""
        return self.method != NOTHING

    def __bool__(self) -> bool:
        return self.ok


def verify_certificate(certificate: Certificate) -> Verification:
    try:
        return _recomputed(certificate)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        return Verification(False, math.inf, NOTHING, (f"the certificate is malformed: {error!r}",))


def _recomputed(certificate: Certificate) -> Verification:
    problems = problems_of_fields(certificate)
    if problems:
        return Verification(False, math.inf, NOTHING, tuple(problems))
    if certificate.is_old and certificate.model is not None:
        problems.append("it has the hash of a model, which its format does not know")
    if not certificate.releases:
        problems.append("no release is listed, yet a model was released")
    if "parts" in certificate.settings:
        problems += problems_of_sum(certificate)
    total, prices, warnings = Cost(), list[float](), list[str]()
    for at, part in enumerate(parts_of(certificate)):
        listed = [(release_from_dict(entry["release"]), entry) for entry in part.releases]
        paid = tuple(release for release, entry in listed if entry.get("within") is None)
        epsilon, method = price_of(part, paid)
        found = _problems_of_fit(part, listed)
        if part is not certificate and not certificate.is_old:  # the first format's parts stated too little
            found += _problems_of_price(part, epsilon)
        if part is certificate or not certificate.is_old:
            found += problems_of_statements(part, [release for release, _ in listed])
        of = f"part {at} ({part.algorithm}): " if part is not certificate else ""
        problems += [of + problem for problem in found]
        warnings += [of + warning for warning in _warnings(part, listed)]
        total = sum((release.cost() for release in paid), total)
        prices.append(epsilon)
    if "parts" in certificate.settings:
        epsilon, method = epsilon_of_sum(total, prices, certificate.delta)
    problems += _problems_of_price(certificate, epsilon)
    return Verification(not problems, epsilon, method, tuple(problems), tuple(warnings))


def price_of(fit: Certificate, paid: tuple[Release, ...]) -> tuple[float, str]:
    """What one fit's releases cost at its delta, in the order that its settings state, if they state one.

    Every grid proves a price. Where another than noise is calibrated on proves a little less, that one counts as well.
    """
    order = fit.settings.get("order")
    claimed = math.inf if fit.claimed_epsilon is None else fit.claimed_epsilon
    budget = Budget(claimed, fit.delta, Adjacency(fit.adjacency))
    asked = None if order is None else tuple(order)
    found = epsilon_in_order(paid, asked, budget, FINER)
    return found if found[0] <= claimed else min(found, epsilon_in_order(paid, asked, budget))


def _warnings(fit: Certificate, listed: list[Listed]) -> Iterator[str]:
    """What a reader should know of a fit's certificate, though nothing denies it."""
    if fit.epsilon is not None and fit.delta >= 1 / fit.n_samples:
        yield (
            f"delta={fit.delta:g} is not below 1/n={1 / fit.n_samples:g}: it allows publishing some {fit.counted} in "
            "the clear"
        )
    if fit.model is None:
        yield "it has no hash of a model, so nothing binds it to the one that it comes with"
    if fit.algorithm not in RECIPES:
        yield f"algorithm {fit.algorithm!r} is not thresher's own: what it should release is not known"
    rounded = real_noise(fit.randomness, [release for release, _ in listed])
    if fit.is_old and fit.claimed_epsilon is not None and rounded:
        yield f"it is of an earlier version, which did not say what is assumed: {REAL_NOISE}"


def _problems_of_price(certificate: Certificate, epsilon: float) -> list[str]:
    """What is stated as a number, and in words: no less than the releases cost, and one like the other."""
    if certificate.epsilon is not None and not epsilon <= certificate.epsilon:
        return [f"the listed releases cost epsilon={epsilon:.6g}, more than the stated {certificate.epsilon:.6g}"]
    if certificate.is_old:  # of a sum it told the delta of what was spent, not of what was stated
        return []
    told = re.match(r"epsilon=(\S+) at delta=(\S+) by ", certificate.composition)
    most = math.inf if certificate.epsilon is None else certificate.epsilon * (1 + COMPOSED)
    try:
        if told and told[2] == f"{certificate.delta:.6g}" and epsilon * (1 - COMPOSED) <= float(told[1]) <= most:
            return []
    except ValueError:
        pass
    return [
        f"composition {certificate.composition[:80]!r} is not what the releases cost at delta={certificate.delta:g}"
    ]


# -- one fit --------------------------------------------------------------------------------------------------------


def _problems_of_fit(fit: Certificate, listed: list[Listed]) -> list[str]:
    problems = problems_of_bounds(fit)
    for release, entry in listed:
        if "part" in entry:
            problems.append(f"{release!r} is listed for part {entry['part']} of a certificate that has none")
        if (entry["question"], entry["noise"]) != (release.question.name, release.noise):
            problems.append(f"{release!r} is listed as a {entry['question']} with {entry['noise']} noise")
        problems += problems_of_answers(release, entry["answers"], _maker_of(fit, entry))
    problems += _problems_of_filter(listed)
    problems += _problems_of_trials(listed, fit)
    if problems or not listed:
        return problems  # what follows takes the settings and bounds at their word
    paid = [release for release, entry in listed if entry.get("within") is None]
    problems += problems_of_recipe(fit.algorithm, fit.settings, fit.n_features, paid)
    problems += problems_of_order(fit.algorithm, fit.settings, paid)
    made = [each for each in listed if _is_tried(fit, each[1])] or listed
    maker = _maker_of(fit, made[0][1])
    if maker is not fit:  # what the filter of a trial let pass is the filter's
        tried = [release for release, entry in made if entry["within"] == "trials"]
        problems += problems_of_recipe(maker.algorithm, maker.settings, fit.n_features, tried)
    return problems or problems_of_clips(maker, [(release, entry["answers"]) for release, entry in made])


def _is_tried(fit: Certificate, entry: Record) -> bool:
    """Whether it is an answer of the trial that a search tells of."""
    return "trial" in fit.settings and entry.get("within") is not None and entry["question"] != "score"


def _maker_of(fit: Certificate, entry: Record) -> Certificate:
    """The fit, or the trial of a search with the rows it was made on."""
    if entry.get("within") is None or "trial" not in fit.settings:
        return fit
    trial = fit.settings["trial"]
    rows = fit.settings["score_rows" if entry["question"] == "score" else "fit_rows"]
    return replace(fit, algorithm=trial["algorithm"], settings=trial["settings"], n_samples=rows)


def _problems_of_filter(listed: list[Listed]) -> list[str]:
    """A cap that was crossed: the zCDP that the filter let pass must not exceed the filter's."""
    # a filter within a filter would be paid for by itself
    own = [(release, entry.get("within") == "filter") for release, entry in listed]
    cap = math.fsum(release.rho for release, within in own if isinstance(release, ZCDPFilter) and not within)
    costs = [release.cost() for release, within in own if within]
    # batches have no zCDP, and a filter pays for no events of a small chance
    passed = math.fsum(math.inf if cost.sampled or cost.lost > 0 else cost.rho for cost in costs)
    return [] if passed <= cap else [f"releases of zCDP {passed:.6g} are listed within a filter of {cap:.6g}"]


def _problems_of_trials(listed: list[Listed], fit: Certificate) -> list[str]:
    """What is listed within trials must be what one of them makes, and these must be as the settings say.

    Only "filter" and "trials" pay for what is within them."""
    within = [(release, entry.get("within")) for release, entry in listed]
    problems = [f"{release!r} is listed within {w!r}" for release, w in within if w not in (None, "filter", "trials")]
    if not any(w == "trials" or isinstance(release, RandomTrials) for release, w in within):
        return problems
    searches = [release for release, w in within if isinstance(release, RandomTrials) and w is None]
    made = _counted(release for release, w in within if w == "trials")
    if len(searches) != 1 or made not in [_counted((*each, searches[0].score)) for each in searches[0].fits]:
        return [*problems, "what is listed within trials is not what one of them releases"]
    (search,) = searches
    if search.orders:
        told_order = fit.settings["trial"]["settings"].get("order")
        asked = () if told_order is None else tuple(told_order)
        fits = zip(search.fits, search.orders, strict=True)
        if not any(made == _counted((*each, search.score)) and order in (asked, ()) for each, order in fits):
            problems.append("the trial does not ask in an order that the search is priced for")
    told = {name: fit.settings[name] for name in ("trials", "fit_rows", "score_rows")}
    if told != {name: getattr(search, name) for name in told} or search.fit_rows + search.score_rows != fit.n_samples:
        problems.append("the trials are not those that the settings and the number of rows tell of")
    sampled = (release for release in search.parts if isinstance(release, SampledRelease))
    if any(release.adjacency != fit.adjacency for release in sampled):
        problems.append("a trial is priced for other neighbours than the certificate's")
    return problems


def _counted(releases: Iterable[Release]) -> Counter[Release]:
    """How often each is used, however they are listed."""
    counts = Counter[Release]()
    for release in releases:
        counts[replace(release, times=1)] += release.times
    return counts


# -- several fits on the same rows: what is stated follows from the parts, and none is left out -----------------------


def statement_of_sum(parts: Sequence[Record]) -> dict[str, Any]:
    """What a sum states that its parts alone decide."""
    claims = [part["claimed_epsilon"] for part in parts]
    return {
        "algorithm": " + ".join(part["algorithm"] for part in parts),
        "delta": math.fsum(part["delta"] for part in parts),
        "grade": max((part["grade"] for part in parts), key=get_args(Grade).index),
        "claimed_epsilon": None if None in claims else math.fsum(claims),
        "bounds": {name: [part["bounds"].get(name) for part in parts] for name in parts[0]["bounds"]},
        "assumptions": tuple(dict.fromkeys(words for part in parts for words in part["assumptions"])),
        "notes": tuple(dict.fromkeys(words for part in parts for words in part["notes"])),
        "randomness": "; ".join(dict.fromkeys(part["randomness"] for part in parts)),
        "n_features": max(part["n_features"] for part in parts),
    }


def problems_of_sum(certificate: Certificate) -> list[str]:
    """Where the sum of a certificate's parts is not what it states."""
    parts = certificate.settings["parts"]
    problems = missing_parts(certificate)
    if certificate.is_old:
        return problems
    expected = statement_of_sum(parts)
    for name in ("algorithm", "grade", "bounds", "assumptions", "randomness", "n_features"):
        if _plain(getattr(certificate, name)) != _plain(expected[name]):
            problems.append(f"{name} is not what the parts of the sum make it")
    # a budget that was fixed before the first fit is stated as a whole, even if not all of it was spent
    if certificate.claimed_epsilon not in (expected["claimed_epsilon"], certificate.epsilon):
        problems.append("claimed_epsilon is not what the parts of the sum make it")
    if not certificate.delta >= expected["delta"]:
        problems.append("delta is less than the parts of the sum have together")
    if not set(expected["notes"]) <= set(certificate.notes):
        problems.append("notes of parts are left out of the sum")
    if (certificate.epsilon is None) != any(part["epsilon"] is None for part in parts):
        problems.append("epsilon is stated of the sum and not of its parts, or of them and not of the sum")
    return problems


def parts_of(certificate: Certificate) -> list[Certificate]:
    """The certificate of each fit, which has its releases, settings and bounds; itself, if it is one fit's."""
    if "parts" not in certificate.settings:
        return [certificate]
    names, trust = {f.name for f in fields(certificate)} - {"releases"}, trust_of(certificate)
    words = {} if trust is None else {FORMATS[0]: trust_words_of_first_format(trust, certificate.unit)}
    return [
        replace(
            certificate,
            trust=words.get(part.get("format", certificate.format), certificate.trust),
            **{name: _listed(value) for name, value in part.items() if name in names},
            releases=tuple(
                {name: value for name, value in entry.items() if name != "part"}
                for entry in certificate.releases
                if entry.get("part", 0) == at
            ),
        )
        for at, part in enumerate(certificate.settings["parts"])
    ]


def missing_parts(certificate: Certificate) -> list[str]:
    """Fits that no longer list every release they made."""
    parts = certificate.settings["parts"]
    listed = Counter(entry["part"] for entry in certificate.releases)
    problems = [
        f"part {at} ({part['algorithm']}) made {part['releases']} releases; listed are {listed[at]}"
        for at, part in enumerate(parts)
        if listed[at] != part["releases"]
    ]
    if certificate.algorithm != " + ".join(part["algorithm"] for part in parts):
        problems.append(f"the parts are not those of {certificate.algorithm!r}")
    return problems + [f"a release is of part {at}, which there is none of" for at in listed if at >= len(parts)]


def _plain(value: object) -> object:
    """As JSON gives it back, to compare what was written with what is computed."""
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def _listed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# -- a second opinion: dp-accounting's Renyi accountant, which is not ours --------------------------------------------


def second_opinion_of(certificate: Certificate) -> float | None:
    """Epsilon at the certificate's delta: looser than the exact curve.

    Multipliers are relative to the sensitivity of the certificate's adjacency already, so its own default relation is
    the right one (its REPLACE_ONE would not double the sensitivity). None without a finite cost, and at a delta of 0,
    where it has no opinion.
    """
    if certificate.delta == 0:
        return None
    from dp_accounting import GaussianDpEvent, ZCDpEvent  # takes seconds to import
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant, compute_epsilon

    accountant, never_empty, lost = RdpAccountant(), 0.0, 0.0
    for entry in certificate.releases:
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
            accountant.compose(GaussianDpEvent(math.sqrt(release.times / costs[0].mu_squared)), release.times)
        else:
            accountant.compose(ZCDpEvent(rho))
    if lost >= certificate.delta:
        return None
    orders = np.asarray(accountant.orders)
    return float(compute_epsilon(orders, accountant.rdp + never_empty / (orders - 1), certificate.delta - lost)[0])
