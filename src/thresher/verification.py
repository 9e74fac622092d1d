"""What may be wrong with a certificate: answers that no release pays for, caps that were crossed, parts left out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from thresher.budget import Adjacency, is_whole
from thresher.clipping import (
    counts_sensitivity,
    gradient_sensitivity,
    gram_sensitivity,
    mean_loss_sensitivity,
    minimiser_sensitivity,
    report_sensitivity,
)
from thresher.releases import JointRelease, RandomTrials, Release, SampledRelease, ZCDPFilter

if TYPE_CHECKING:
    from thresher.certificate import Certificate

__all__ = ["Listed", "missing_parts", "problems_of_answers", "problems_of_filters", "problems_of_trials"]

Listed = tuple[int, Release, str | None]
"""The part of a combined certificate, a release of it, and what it is within and paid for by."""


def missing_parts(certificate: Certificate) -> list[str]:
    """Fits of a combined certificate that no longer list every release they made."""
    parts = certificate.settings["parts"]
    listed = Counter(entry["part"] for entry in certificate.releases)
    problems = [
        f"part {at} ({part['algorithm']}) made {part['releases']} releases; listed are {listed[at]}"
        for at, part in enumerate(parts)
        if listed[at] != part["releases"]
    ]
    if certificate.algorithm != " + ".join(part["algorithm"] for part in parts):
        problems.append(f"the parts are not those of {certificate.algorithm!r}")
    return problems


def problems_of_filters(entries: list[Listed]) -> list[str]:
    """Caps that were crossed: of each part, the zCDP that the filter let pass must not exceed the filter's."""
    problems = []
    for part in {part for part, _, _ in entries}:
        # a filter within a filter would be paid for by itself
        own = [(release, within == "filter") for at, release, within in entries if at == part]
        caps = math.fsum(release.rho for release, within in own if isinstance(release, ZCDPFilter) and not within)
        costs = [release.cost() for release, within in own if within]
        # batches have no zCDP, and a filter pays for no events of a small chance
        passed = math.fsum(math.inf if cost.sampled or cost.lost > 0 else cost.rho for cost in costs)
        if not passed <= caps:
            problems.append(f"releases of zCDP {passed:.6g} are listed within a filter of {caps:.6g}")
    return problems


def problems_of_trials(entries: list[Listed], certificate: Certificate) -> list[str]:
    """Of each part, what is listed within trials must be what one of them makes, and these must be as the settings say.

    Only "filter" and "trials" pay for what is within them."""
    problems = [
        f"{release!r} is listed within {w!r}" for _, release, w in entries if w not in (None, "filter", "trials")
    ]
    for part in {part for part, release, within in entries if within == "trials" or isinstance(release, RandomTrials)}:
        searches = [r for at, r, within in entries if at == part and isinstance(r, RandomTrials) and within is None]
        made = _counted(release for at, release, within in entries if at == part and within == "trials")
        if len(searches) != 1 or made not in [_counted((*fit, searches[0].score)) for fit in searches[0].fits]:
            problems.append("what is listed within trials is not what one of them releases")
            continue
        (search,), parts = searches, certificate.settings.get("parts")
        settings = parts[part]["settings"] if parts else certificate.settings
        told = {name: settings[name] for name in ("trials", "fit_rows", "score_rows")}
        if told != {name: getattr(search, name) for name in told} or (
            search.fit_rows + search.score_rows != certificate.n_samples
        ):
            problems.append("the trials are not those that the settings and the number of rows tell of")
        sampled = (release for release in search.parts if isinstance(release, SampledRelease))
        if any(release.adjacency != certificate.adjacency for release in sampled):
            problems.append("a trial is priced for other neighbours than the certificate's")
    return problems


def _counted(releases: Iterable[Release]) -> Counter[Release]:
    """How often each is used, however they are listed."""
    counts = Counter[Release]()
    for release in releases:
        counts[replace(release, times=1)] += release.times
    return counts


def problems_of_answers(release: Release, answers: list[dict[str, Any]], certificate: Certificate) -> list[str]:
    """Answers that the release does not pay for: too many, or too little noise for the clip that was in force."""
    counts = [answer["count"] for answer in answers]
    problems = []
    if not all(is_whole(count) and count > 0 for count in counts) or sum(counts) > release.times:
        problems.append(f"{release!r} pays for {release.times} answers; listed are {counts}")
    if isinstance(release, SampledRelease) and (
        release.adjacency != certificate.adjacency or release.population != certificate.n_samples
    ):
        problems.append(
            f"{release!r} is priced for other neighbours or another number of {certificate.counted} than the "
            "certificate's"
        )
    if isinstance(release, SampledRelease) and release.sampling != certificate.settings.get("sampling"):
        problems.append(f"{release!r} draws batches in another way than the settings say")
    if isinstance(release, JointRelease):
        needed = max(certificate.n_features, certificate.settings["coordinates"])
        if release.touched < needed:
            problems.append(f"{release!r} pays for fewer coordinates than {needed}")
    if release.multiplier == 0:
        return problems
    for answer in answers:
        sensitivity, scale = float(answer["sensitivity"]), float(answer["scale"])
        least = _least_sensitivity(release, float(answer["clip"]), certificate)
        if not (least > 0 and 0 < scale < math.inf):
            problems.append(f"a {release.question} with clip {answer['clip']} and noise {scale:.6g} cannot be")
        if not sensitivity >= least * (1 - 1e-9):
            problems.append(
                f"sensitivity {sensitivity:.6g} of a {release.question} is below {least:.6g}, what its clip gives"
            )
        if not scale >= release.multiplier * sensitivity * (1 - 1e-9):
            problems.append(f"noise scale {scale:.6g} is below what {release!r} needs")
    return problems


def _least_sensitivity(release: Release, clip: float, certificate: Certificate) -> float:
    question, n, adjacency = release.question, certificate.n_samples, Adjacency(certificate.adjacency)
    if isinstance(release, SampledRelease):
        return gradient_sensitivity(clip, release.batch, adjacency)
    if question in ("quantile", "votes"):
        return 1.0  # one row moves one rank, or one block's vote, for either adjacency
    if question == "categories":
        return counts_sensitivity(adjacency)
    if question in ("minimiser", "labels"):  # the clip of labels is that of the teacher times the public rows' norm
        return minimiser_sensitivity(clip, n, adjacency, certificate.settings["ridge"], tolerance=0.0)
    if question in ("local gradient", "local labels"):
        return report_sensitivity(clip, adjacency)
    if question in ("step length", "score"):
        return mean_loss_sensitivity(clip, n)
    if question == "gram":
        return gram_sensitivity(clip, n, adjacency)
    return gradient_sensitivity(clip, n, adjacency)
