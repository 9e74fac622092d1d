"""Answers that their release does not pay for: too many or too few, or noise that does not go with the clip."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import MOST_ROWS_EACH
from thresher.privacy.grades import is_hardened
from thresher.privacy.questions import CertifiedSearch
from thresher.privacy.releases import JointRelease, Release, SampledRelease
from thresher.privacy.sensitivity import CAPACITY, CERTIFIED, SUM_ERROR
from thresher.privacy.verification.recipes import RECIPES
from thresher.privacy.verification.statements import trust_of

if TYPE_CHECKING:
    from thresher.privacy.certificate import Certificate

__all__ = ["problems_of_answers"]

CLOSE = 1e-9  # relative: what is computed twice from the same numbers is as close as that
WIDENED = 1e-6  # relative: by which exact noise is widened beside what grows with rows and columns


def problems_of_answers(release: Release, answers: list[dict[str, Any]], certificate: Certificate) -> list[str]:
    """``certificate`` is that of the fit which made the release."""
    problems = [*_problems_of_count(release, answers, certificate), *_problems_of_facts(release, certificate)]
    if release.multiplier > 0:
        for answer in answers:
            problems += _problems_of_noise(release, answer, certificate)
    return problems


def _problems_of_count(release: Release, answers: list[dict[str, Any]], certificate: Certificate) -> list[str]:
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


def _problems_of_noise(release: Release, answer: Mapping[str, Any], certificate: Certificate) -> list[str]:
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
