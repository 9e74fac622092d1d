"""How far a guarantee carries: the grade of a certificate, from what it rests on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from thresher.privacy.releases import RandomTrials, Release

__all__ = ["PRINTED_NOTE", "REAL_NOISE", "SEEDED", "Grade", "grade_of", "is_hardened", "real_noise"]

Grade = Literal["proved", "conditional", "printed", "none"]
"""proved: every bound enforced, accounting sound. conditional: sound if a named assumption holds. printed: a formula
kept as a paper prints it. none: no privacy."""

SEEDED = "random_state was set: whoever knows it can remove the noise"
REAL_NOISE = "noise is taken for real numbers: it was computed in floating point"  # the law's name may precede
PRINTED_NOTE = "the printed noise "  # how the note on noise as printed begins

EXACT_ALWAYS = (
    "hypercube",  # signs, flipped by coins of 2^-53 whose chance to lie is rounded up; nothing else hides the record
    "randomised response",  # a class, by the same coins
    "dithered binomial",  # whole numbers, counted from fair coins bit by bit; rounding is part of the price
)
"""Noise whose law on the machine is the one that is priced, or a kinder one, without further ado.

Not among them, though their reports lie on a grid or are whole numbers: spheres, and labels plus noise, which are
computed in floating point before they are rounded; Skellam noise, whose chances are right to 2e-9 of themselves; and
choices, whose chances are floating-point numbers unless they are hardened."""

EXACT_IF_HARDENED = ("gaussian", "gumbel", "thresholded gaussian")


def grade_of(
    private: bool, printed: bool, assumptions: Iterable[str], randomness: str, releases: Iterable[Release]
) -> tuple[Grade, tuple[str, ...]]:
    """The grade, and all assumptions: those given, and those that follow from how the noise was made."""
    complete = dict.fromkeys(assumptions)
    if "seeded by random_state" in randomness:
        complete[SEEDED] = None
    if not private:
        return "none", tuple(complete)
    complete |= dict.fromkeys(real_noise(randomness, releases))
    if printed:
        return "printed", tuple(complete)
    return "conditional" if complete else "proved", tuple(complete)


def is_hardened(randomness: str) -> bool:
    """Whether noise was added on a grid, in whole numbers."""
    return randomness.endswith("grid-rounded exact noise")


def real_noise(randomness: str, releases: Iterable[Release]) -> list[str]:
    """What is assumed of noise whose law on the machine is not the one that is priced; by name where other noise is."""
    if not is_hardened(randomness):
        return [REAL_NOISE] if _laws(releases) - set(EXACT_ALWAYS) else []
    return [f"{law} {REAL_NOISE}" for law in sorted(_laws(releases) - {*EXACT_ALWAYS, *EXACT_IF_HARDENED})]


def _laws(releases: Iterable[Release]) -> set[str]:
    """The laws of noise in what is listed; a search's are those of all its trials."""
    laws = set()
    for release in releases:
        laws |= _laws(release.parts) if isinstance(release, RandomTrials) else {release.noise}
    return laws - {"as listed", "none"}
