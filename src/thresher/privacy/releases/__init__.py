"""The releases: each is one kind of private answer, described by a few numbers, that knows its own price.

A release is priced by its noise *multiplier* (noise scale over sensitivity), never by an absolute scale: the vault
derives the sensitivity from the clip in force and scales the multiplier. So a clip level may be chosen while
running, from earlier private answers, without touching the price.
"""

from __future__ import annotations

from typing import Any

from thresher.privacy.releases.base import ExactRelease, Release
from thresher.privacy.releases.central import (
    GaussianCategories,
    GaussianGradient,
    GaussianGram,
    GaussianLabels,
    GaussianMinimiser,
    GaussianMoments,
    GaussianRestrictedGradient,
    GumbelQuantile,
    GumbelSelection,
    GumbelStep,
    GumbelVertex,
    GumbelVotes,
    L2LaplaceMinimiser,
    LaplaceVertex,
    PerturbedMinimiser,
    PrintedLabels,
)
from thresher.privacy.releases.composed import GaussianScore, RandomTrials, ZCDPFilter
from thresher.privacy.releases.federated import (
    BinomialGradient,
    BinomialMinimiser,
    BinomialRelease,
    JointRelease,
    PrintedGradient,
    SkellamGradient,
    SkellamMinimiser,
    SkellamRelease,
)
from thresher.privacy.releases.local import (
    ClassReport,
    GaussianReport,
    HypercubeReport,
    LaplaceReport,
    PiecewiseReport,
    SphereReport,
)
from thresher.privacy.releases.sampled import SampledGradient, SampledMomentum, SampledRelease, least_noise, noise_guess
from thresher.privacy.strict_json import Record

__all__ = [
    "BinomialGradient",
    "BinomialMinimiser",
    "BinomialRelease",
    "ClassReport",
    "ExactRelease",
    "GaussianCategories",
    "GaussianGradient",
    "GaussianGram",
    "GaussianLabels",
    "GaussianMinimiser",
    "GaussianMoments",
    "GaussianReport",
    "GaussianRestrictedGradient",
    "GaussianScore",
    "GumbelQuantile",
    "GumbelSelection",
    "GumbelStep",
    "GumbelVertex",
    "GumbelVotes",
    "HypercubeReport",
    "JointRelease",
    "L2LaplaceMinimiser",
    "LaplaceReport",
    "LaplaceVertex",
    "PerturbedMinimiser",
    "PiecewiseReport",
    "PrintedGradient",
    "PrintedLabels",
    "RandomTrials",
    "Release",
    "SampledGradient",
    "SampledMomentum",
    "SampledRelease",
    "SkellamGradient",
    "SkellamMinimiser",
    "SkellamRelease",
    "SphereReport",
    "ZCDPFilter",
    "is_priced_here",
    "least_noise",
    "noise_guess",
    "release_from_dict",
]

_KINDS: dict[str, type[Release]] = {
    kind.__name__: kind
    for kind in (
        GaussianGradient, GaussianRestrictedGradient, GaussianMoments, GaussianGram, GaussianCategories,
        GaussianMinimiser, L2LaplaceMinimiser, PerturbedMinimiser, GaussianLabels, PrintedLabels,
        GumbelSelection, GumbelVotes, GumbelQuantile, GumbelVertex, GumbelStep, LaplaceVertex, ExactRelease,
        SampledGradient, SampledMomentum, ZCDPFilter, GaussianScore, RandomTrials,
        BinomialGradient, BinomialMinimiser, SkellamGradient, SkellamMinimiser, PrintedGradient,
        SphereReport, HypercubeReport, LaplaceReport, PiecewiseReport, GaussianReport, ClassReport,
    )
}  # fmt: skip


def release_from_dict(fields: Record) -> Release:
    """The release a certificate lists; only kinds priced here are known."""
    arguments: dict[str, Any] = {name: _read(value) for name, value in fields.items()}
    kind = _KINDS.get(arguments.pop("kind", None))
    if kind is None:
        raise ValueError(f"unknown release kind {fields.get('kind')!r}; known: {', '.join(_KINDS)}")
    return kind(**arguments)


def _read(value: object) -> object:
    """A field as it was: some releases are made of others."""
    if isinstance(value, dict):
        return release_from_dict(value)
    return tuple(map(_read, value)) if isinstance(value, (list, tuple)) else value


def is_priced_here(release: object) -> bool:
    """Whether ``release`` is one of our own kinds, and not a look-alike with a price of its own."""
    return type(release) in _KINDS.values() and all(map(is_priced_here, getattr(release, "parts", ())))
