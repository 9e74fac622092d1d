"""What a certificate lists: the releases its algorithm makes, with answers, clips and bounds that go together."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import MOST_ROWS_EACH, PublicFacts, Settings
from thresher.privacy.grades import is_hardened
from thresher.privacy.pricing import is_order_of
from thresher.privacy.questions import CertifiedSearch, Clips
from thresher.privacy.releases import (
    HypercubeReport,
    JointRelease,
    PerturbedMinimiser,
    Release,
    SampledGradient,
    SampledRelease,
    SphereReport,
)
from thresher.privacy.releases.central import TOLERANCE_FACTOR
from thresher.privacy.sensitivity import CAPACITY, CERTIFIED, SUM_ERROR
from thresher.privacy.strict_json import Record
from thresher.privacy.verification.statements import trust_of

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = [
    "RECIPES", "problems_of_answers", "problems_of_bounds", "problems_of_clips", "problems_of_order",
    "problems_of_recipe",
]  # fmt: skip

CLOSE = 1e-9  # relative: what is computed twice from the same numbers is as close as that

Asked = dict[str, int]
"""How often each question is asked."""


# -- what each algorithm releases, and how often, by its settings -----------------------------------------------------


def problems_of_recipe(algorithm: str, settings: Settings, columns: int, releases: Iterable[Release]) -> list[str]:
    """Where the releases are not those that the algorithm makes with these settings on so many columns."""
    releases = list(releases)
    if algorithm not in RECIPES:
        return []
    listed = Counter[str]()
    for release in releases:
        listed[release.question.name] += release.times
    try:
        recipes = [Counter(recipe) for recipe in RECIPES[algorithm](settings, columns)]
    except (LookupError, TypeError) as error:
        return [f"the settings of {algorithm} are not its own: {error!r}"]
    classes = settings.get("classes", 1)  # one against the rest asks everything for each class
    if listed not in [Counter({question: classes * times for question, times in each.items()}) for each in recipes]:
        return [f"{algorithm} with these settings does not ask for {dict(listed)}"]
    return [problem for release in releases for problem in _problems_of_batch(release, settings)]


def _problems_of_batch(release: Release, settings: Settings) -> list[str]:
    if isinstance(release, SampledRelease):
        known = (settings["first_batch"],) if _is_first(release, settings) else (settings["batch"],)
        return [] if release.batch in known else [f"{release!r} is of other batches than the settings say"]
    if isinstance(release, JointRelease) and release.touched != settings["coordinates"]:
        return [f"{release!r} is of other coordinates than the {settings['coordinates']} of the settings"]
    return []


def _is_first(release: Release, settings: Settings) -> bool:
    return isinstance(release, SampledGradient) and settings.get("first_batch", 0) > 0


def _rounds(*questions: str) -> Callable[[Settings, int], list[Asked]]:
    def asked(settings: Settings, columns: int) -> list[Asked]:
        rounds: int = settings["rounds"]
        return [dict.fromkeys(questions, rounds)]

    return asked


def _once(question: str) -> Callable[[Settings, int], list[Asked]]:
    return lambda settings, columns: [{question: 1}]


def _pursuit(settings: Settings, columns: int) -> list[Asked]:
    """With moments or Gram matrices; with or without an intercept that is started privately."""
    stages, rounds = settings["stages"], settings["stages"] + settings["refinements"]
    by_moments = {"selection": stages, "moments": stages, "restricted gradient": rounds}
    by_grams = {"selection": stages, "gram": rounds, "restricted gradient": rounds}
    return [
        {**each, "quantile": quantiles * rounds + median, "restricted gradient": rounds + start}
        for each, quantiles in ((by_moments, 2), (by_grams, 3))
        for median, start in ((0, 0), (1, 0), (0, 1))
    ]


def _newton(settings: Settings, columns: int) -> list[Asked]:
    """Without an intercept, or with one, which starts at a median or at the shares of the classes."""
    stages = settings["stages"]
    picked, steps = sum(picks > 0 for picks, *_ in stages), sum(steps for _, steps, _ in stages)
    means = picked if stages[0][0] else 1
    asked = {"gram": len(stages), "restricted gradient": steps, "near maximum": len(stages) + picked + steps}
    asked |= {"selection": picked} if picked else {}
    asked["gram"] += settings["why_no_intervals"] is None  # the second moments of gradients
    centred = {**asked, "mean": means, "near maximum": asked["near maximum"] + means}
    return [
        asked,
        {**centred, "quantile": 1, "near maximum": centred["near maximum"] + 1, "restricted gradient": steps + 1},
        {**centred, "restricted gradient": steps + 2},
    ]


def _peeling(settings: Settings, columns: int) -> list[Asked]:
    rounds: int = settings["rounds"]
    asked = {"selection": rounds, "restricted gradient": rounds}
    if settings["loop"] == "paper":
        return [asked]
    searched = {**asked, "near maximum": rounds, "step length": rounds + 1}
    ends = {"quantile": 1, "near maximum": rounds + 1, "restricted gradient": rounds + 1}  # of an intercept of numbers
    return [searched, {**searched, **ends}]


def _screened(settings: Settings, columns: int) -> list[Asked]:
    """Without an intercept, or with one, which for classes starts at their shares."""
    rounds: int = settings["rounds"]
    asked = {"mean": 1, "near maximum": rounds + 1}
    return [{**asked, "restricted gradient": count} for count in (rounds, 2 * rounds, 2 * rounds + 1)]


def _two_stage(settings: Settings, columns: int) -> list[Asked]:
    return [{"votes" if settings["stage_one"] == "votes" else "selection": 1, "perturbed minimiser": 1}]


def _dpsl_kt(settings: Settings, columns: int) -> list[Asked]:
    by_teacher: dict[str | None, Asked] = {
        "support": {"selection": 1, "labels": 1}, "convex": {"labels": 1}, None: {"printed labels": 1},
    }  # fmt: skip
    return [by_teacher[settings.get("teacher")]]


def _batches(settings: Settings, columns: int) -> list[Asked]:
    question = "gradient" if settings["sampling"] == "none" else "sampled gradient"
    return [{question: settings["rounds"]}]


def _momentum(settings: Settings, columns: int) -> list[Asked]:
    if not settings["first_batch"]:
        return [{"sampled momentum": settings["rounds"]}]
    later = {"sampled momentum": settings["rounds"] - 1}
    return [{**later, "sampled gradient": 1}, {**later, "gradient": 1}]


def _scaler(settings: Settings, columns: int) -> list[Asked]:
    return [{"quantile": (3 if settings["centre"] else 2) * columns}]


RECIPES: Mapping[str, Callable[[Settings, int], list[Asked]]] = {
    "newton": _newton, "pursuit": _pursuit, "dp-ight": _rounds("gradient"), "ight": _rounds("gradient"),
    "screened-ight": _screened,
    "peeling": _peeling, "two-stage": _two_stage, "dpsl-kt": _dpsl_kt,
    "output-perturbation": _once("minimiser"), "objective-perturbation": _once("perturbed minimiser"),
    "frank-wolfe": _rounds("vertex"), "noisy-frank-wolfe": _rounds("gradient"),
    "dp-gd": _batches, "dp-sgd": _batches, "dp-adam": _batches, "dp-lssgd": _batches, "dp-lsadam": _batches,
    "rrpsgd": _batches, "sgd": _batches, "lssgd": _batches, "dp-srm": _momentum, "storm": _momentum,
    "rajkumar-agarwal": _rounds("printed gradient"), "dp-agd": _once("any"),
    "ldp-iht": _rounds("local gradient"), "label-ldp-iht": _once("local labels"), "label-lasso": _once("local labels"),
    "private-search": _once("trials"), "private-scaler": _scaler, "column-shares": _once("gradient"),
    "categories": lambda settings, columns: [{"categories": columns}],
}  # fmt: skip
"""Several possibilities where bounds and budgets decide that no setting tells of."""


def problems_of_order(algorithm: str, settings: Settings, releases: Sequence[Release]) -> list[str]:
    """Where the order that the price relies on is not one in which the algorithm asks."""
    if "order" not in settings or algorithm not in IN_ORDER:
        return []
    if not is_order_of(releases, tuple(settings["order"])):
        return ["the order of the settings is not one of the listed releases"]
    names = [release.question.name for release in dict.fromkeys(releases)]
    asked = "".join(f"{names[at]};" for at in settings["order"])
    if re.fullmatch(f"({IN_ORDER[algorithm]}){{{int(settings.get('classes', 1))}}}", asked):
        return []
    return [f"{algorithm} does not ask in the order that the settings tell of"]


IN_ORDER: Mapping[str, str] = {
    "pursuit": "(restricted gradient;|quantile;)?"
    "(quantile;(selection;)?(moments;)?(quantile;gram;)?quantile;restricted gradient;)+",
    "screened-ight": "(restricted gradient;)?mean;near maximum;(near maximum;(restricted gradient;){1,2})+",
    "peeling": "(selection;restricted gradient;)+"
    "|(quantile;)?(near maximum;selection;restricted gradient;step length;)+step length;"
    "(near maximum;restricted gradient;)?",
    "two-stage": "(selection;|votes;)perturbed minimiser;",
    "dpsl-kt": "selection;labels;",
    "private-scaler": "(quantile;)+",
}
"""In which order those ask whose price relies on one, as a pattern of questions."""


# -- bounds that go with each other and with the columns; clips that they and the settings allow ----------------------


MISSING = object()
OF_A_MODULE = {"gradient"}  # a network's examples are clipped by what they move, and by nothing else


def problems_of_bounds(certificate: Certificate) -> list[str]:
    if set(certificate.bounds) == OF_A_MODULE:
        return []
    try:
        enforced = _facts_of(certificate).enforced
    except (LookupError, TypeError, ValueError) as error:
        return [f"the bounds are none of {certificate.n_features} columns: {error}"]
    return [
        f"bounds: {name} is {certificate.bounds.get(name)!r}, which the others make {enforced.get(name)!r}"
        for name in sorted(set(enforced) | set(certificate.bounds))
        if not _alike(certificate.bounds.get(name, MISSING), enforced.get(name, MISSING))
    ]


def problems_of_clips(certificate: Certificate, entries: list[tuple[Release, list[Record]]]) -> list[str]:
    """``entries`` are the releases of one fit, whose settings the certificate has, with their answers."""
    if set(certificate.bounds) == OF_A_MODULE:
        expected = certificate.settings.get("clip")
        clips = [float(answer["clip"]) for _, answers in entries for answer in answers]
        plain = certificate.algorithm not in ("dp-srm", "storm") and isinstance(expected, (int, float))
        return [f"a clip of {clip:.6g} is not that of the settings" for clip in clips if plain and clip != expected]
    facts, problems = _facts_of(certificate), []
    picks = next((release.picks for release, _ in entries if hasattr(release, "picks")), facts.d)
    for release, answers in entries:
        problems += _problems_of_coordinates(release, facts, certificate.settings)
        if isinstance(release, PerturbedMinimiser) and certificate.algorithm in RECIPES:
            problems += _problems_of_objective(release, facts, certificate.settings["ridge"], picks)
        for clip in sorted({float(answer["clip"]) for answer in answers}) if release.multiplier > 0 else ():
            least, most = _clips(release, facts, certificate.algorithm, certificate.settings, picks)
            if not least * (1 - CLOSE) <= clip <= most * (1 + CLOSE):
                allowed = f"{least:.6g}" if least == most else f"at most {most:.6g}"
                problems.append(f"a clip of {clip:.6g} for a {release.question}: settings and bounds make it {allowed}")
            if (denied := release.question.objection_to(clip)) is not None:
                problems.append(denied)
    return problems


def _facts_of(certificate: Certificate) -> PublicFacts:
    """The public facts that the bounds tell of."""
    feature, target = certificate.bounds["feature"], certificate.bounds["target"]
    bounds = Bounds(
        tuple(feature) if isinstance(feature, (list, tuple)) else feature,
        certificate.bounds["row"],
        None if target is None else tuple(target),
    )
    intercept = bool(certificate.bounds["intercept_column"])
    return PublicFacts(certificate.n_samples, certificate.n_features, bounds, intercept)


def _classifies(facts: PublicFacts) -> bool:
    return facts.bounds.target is None


def _alike(stated: Any, computed: Any) -> bool:
    if stated is MISSING or computed is MISSING:
        return False
    if isinstance(computed, tuple):
        return isinstance(stated, (list, tuple)) and len(stated) == len(computed) and all(map(_alike, stated, computed))
    if computed is None or stated is None:
        return stated is computed
    return not isinstance(stated, (str, bool)) and math.isclose(stated, computed, rel_tol=CLOSE)


def _problems_of_coordinates(release: Release, facts: PublicFacts, settings: Settings) -> list[str]:
    """Reports and sums of another number of coordinates than the columns make."""
    if isinstance(release, (SphereReport, HypercubeReport)) and release.dimension != facts.dimension:
        return [f"{release!r} reports other coordinates than {facts.dimension}"]
    if isinstance(release, JointRelease) and settings["coordinates"] % facts.dimension:
        return [f"coordinates={settings['coordinates']} are not those of {facts.d} columns"]
    return []


def _problems_of_objective(release: PerturbedMinimiser, facts: PublicFacts, ridge: float, picks: int) -> list[str]:
    """A row that bends the objective more, or noise on top of the minimiser that is more, than the settings allow."""
    problems = []
    curvature = 0.25 if _classifies(facts) else 1.0  # of the logistic and of the squared loss
    least = curvature * facts.norm_in_units(picks) ** 2 / (facts.n * ridge)  # of a party with few rows, more
    if not release.curvature_ratio >= least * (1 - CLOSE):
        problems.append(f"{release!r}: bounds and ridge make its curvature_ratio at least {least:.6g}")
    if not release.sd_per_tolerance <= TOLERANCE_FACTOR * release.sd_per_sensitivity * (1 + CLOSE):
        problems.append(f"{release!r}: its sd_per_tolerance is at most {TOLERANCE_FACTOR:g} times sd_per_sensitivity")
    return problems


def _clips(release: Release, facts: PublicFacts, algorithm: str, settings: Settings, picks: int) -> Clips:
    """The least and the largest clip that there can be; from 0 to infinity where nothing listed decides."""
    decided = release.question.clips_of_bounds(facts)
    if decided is not None:
        return decided
    if algorithm == "pursuit":  # its clips are private answers, from levels below what the bounds allow
        largest = 1.0 if _classifies(facts) else 2 * facts.target_radius
        return 0.0, release.clips_of_settings(facts, {"clip": largest}, facts.d)[1]
    if algorithm == "column-shares":
        return facts.row_norm, facts.row_norm
    if algorithm not in RECIPES or not isinstance(settings.get("clip"), (int, float)):
        return 0.0, math.inf
    return release.clips_of_settings(facts, settings, picks)


# -- answers that their release pays for, with noise that goes with the clip ------------------------------------------


WIDENED = 1e-6  # relative: by which exact noise is widened beside what grows with rows and columns


def problems_of_answers(release: Release, answers: list[Record], certificate: Certificate) -> list[str]:
    """``certificate`` is that of the fit which made the release."""
    problems = [*_problems_of_count(release, answers, certificate), *_problems_of_facts(release, certificate)]
    if release.multiplier > 0:
        for answer in answers:
            problems += _problems_of_noise(release, answer, certificate)
    return problems


def _problems_of_count(release: Release, answers: list[Record], certificate: Certificate) -> list[str]:
    counts = [answer["count"] for answer in answers]
    asked = release.times if release.terms is None else 0
    if any(count < 1 for count in counts) or sum(counts) > asked:
        return [f"{release!r} pays for {asked} answers; listed are {counts}"]
    if sum(counts) < asked and not _may_stop(certificate):
        return [f"{release!r} was to give {asked} answers; listed are {counts}"]
    return []


def _may_stop(certificate: Certificate) -> bool:
    """Whether fewer answers than planned can be honest: a network's training that was interrupted goes on without those
    that were lost, and what a stranger's algorithm does is not known."""
    return set(certificate.bounds) == {"gradient"} or certificate.algorithm not in RECIPES


def _problems_of_facts(release: Release, certificate: Certificate) -> list[str]:
    """A price that is for other rows, neighbours or coordinates."""
    problems = []
    if isinstance(release, SampledRelease):
        if release.adjacency != certificate.adjacency or release.population != certificate.n_samples:
            problems.append(
                f"{release!r} is priced for other neighbours or another number of {certificate.counted} than the "
                "certificate's"
            )
        if release.sampling != certificate.settings.get("sampling"):
            problems.append(f"{release!r} draws batches in another way than the settings say")
    if isinstance(release, JointRelease):
        needed = max(certificate.n_features, certificate.settings["coordinates"])
        if release.touched < needed:
            problems.append(f"{release!r} pays for fewer coordinates than {needed}")
    return problems


def _problems_of_noise(release: Release, answer: Record, certificate: Certificate) -> list[str]:
    clip, sensitivity, scale = (float(answer[name]) for name in ("clip", "sensitivity", "scale"))
    least = _least_sensitivity(release, clip, certificate)
    if not (0 < least < math.inf and 0 < scale < math.inf):
        return [f"a {release.question} with clip {clip:.6g} and noise {scale:.6g} cannot be"]
    problems = []
    if not sensitivity >= least * (1 - CLOSE):
        problems.append(
            f"sensitivity {sensitivity:.6g} of a {release.question} is below {least:.6g}, what its clip gives"
        )
    most = _most_sensitivity(release, clip, certificate)
    if not sensitivity <= most * (1 + CLOSE):
        problems.append(
            f"sensitivity {sensitivity:.6g} of a {release.question} is above {most:.6g}, what its clip gives"
        )
    needed = release.scale(clip, sensitivity)
    if not scale >= needed * (1 - CLOSE):
        problems.append(f"noise scale {scale:.6g} is below what {release!r} needs")
    if not scale <= needed * (1 + CLOSE) * _widest(release, certificate):
        problems.append(f"noise scale {scale:.6g} is not what {release!r} adds to a sensitivity of {sensitivity:.6g}")
    if is_hardened(certificate.randomness) and release.noise == "gaussian" and not scale > needed * (1 + 2.0**-50):
        problems.append("exact noise is a little wider than its multiplier says, and this is not")
    return problems


def _least_sensitivity(release: Release, clip: float, certificate: Certificate) -> float:
    """By the clip alone, as if a minimiser were known exactly."""
    search = CertifiedSearch(certificate.settings["ridge"]) if release.question.certified else None
    return release.sensitivity(clip, certificate.n_samples, Adjacency(certificate.adjacency), search)


def _most_sensitivity(release: Release, clip: float, certificate: Certificate) -> float:
    """As above but where more than the clip counts: the rows of a party, round-off, how well a minimiser is known."""
    least, n, round_off = _least_sensitivity(release, clip, certificate), certificate.n_samples, _round_off(certificate)
    if release.question.name in ("step length", "score") and certificate.adjacency == Adjacency.ADD_REMOVE:
        least *= 2  # earlier versions did not take half of the clip off
    if trust_of(certificate) == "parties":
        return least * n * (1 + CERTIFIED) * round_off  # of a party with one row
    margins = _margins(certificate) if release.question.certified else 0.0
    return release.most_sensitivity(least, n, round_off, margins)


def _margins(certificate: Certificate) -> float:
    """How much the round-off of margins may add to a search: they are known up to that of a row's products (the
    vault's ``certified_search``)."""
    norm: float = max(certificate.bounds["row_norm"] ** 2, certificate.n_features + 1)
    ridge: float = certificate.settings["ridge"]
    return 8 * (certificate.n_features + 1) * 2.0**-53 * norm * certificate.n_samples / ridge


def _widest(release: Release, certificate: Certificate) -> float:
    """How much wider than its multiplier says noise may be: not at all, or on its grid."""
    if "grid-rounded exact" not in certificate.randomness:  # an old sum tells of all its fits at once
        return 1.0
    coordinates = 16 * (certificate.n_features + 1)  # at least the root of how many numbers are answered
    return (1 + WIDENED + 2.0**-27 * (1 + release.multiplier) * coordinates) * _round_off(certificate)


def _round_off(certificate: Certificate) -> float:
    """1 and more than the round-off of a sum over all rows adds to what one row moves (``vaults.rows.round_off``), now
    or in the first format, whose sums were less careful."""
    n = certificate.n_samples
    most = n if certificate.adjacency == Adjacency.REPLACE_ONE else max(n, CAPACITY)
    terms = n * (MOST_ROWS_EACH if certificate.unit == "person" else 1)
    earlier = 64 * 2.0**-52 * (terms + 8) * n if certificate.is_old else 0.0
    return 1 + max(16 * 2.0**-53 * SUM_ERROR * most, earlier)
