"""Whether bounds, clips and answers that a certificate lists go with each other and with its releases."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from thresher.privacy.bounds import Bounds
from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import MOST_ROWS_EACH, PublicFacts, Settings
from thresher.privacy.grades import is_hardened
from thresher.privacy.questions import CertifiedSearch, Clips
from thresher.privacy.releases import (
    HypercubeReport,
    JointRelease,
    PerturbedMinimiser,
    Release,
    SampledRelease,
    SphereReport,
)
from thresher.privacy.releases.minimisers import TOLERANCE_FACTOR
from thresher.privacy.sensitivity import CAPACITY, CERTIFIED, SUM_ERROR
from thresher.privacy.strict_json import Record
from thresher.privacy.verification.recipes import RECIPES
from thresher.privacy.verification.statements import trust_of

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["problems_of_answers", "problems_of_bounds", "problems_of_clips"]

CLOSE = 1e-9  # relative: what is computed twice from the same numbers is as close as that

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
