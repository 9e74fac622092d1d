"""Bounds that do not go with each other, or with the columns; clips that bounds and settings make impossible."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thresher.privacy.bounds import Bounds
from thresher.privacy.facts import PublicFacts
from thresher.privacy.questions import Clips
from thresher.privacy.releases import HypercubeReport, JointRelease, PerturbedMinimiser, Release, SphereReport
from thresher.privacy.releases.central import TOLERANCE_FACTOR
from thresher.privacy.verification.recipes import RECIPES

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["problems_of_bounds", "problems_of_clips"]

CLOSE = 1e-9  # relative: what is computed twice from the same numbers is as close as that
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


def problems_of_clips(certificate: Certificate, entries: list[tuple[Release, list[Mapping[str, Any]]]]) -> list[str]:
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
            if (denied := release.question.denied(clip)) is not None:
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


def _problems_of_coordinates(release: Release, facts: PublicFacts, settings: Mapping[str, Any]) -> list[str]:
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


def _clips(release: Release, facts: PublicFacts, algorithm: str, settings: Mapping[str, Any], picks: int) -> Clips:
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
