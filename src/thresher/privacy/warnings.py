"""Warnings by name, so that each can be silenced or made an error by itself. A fit that warns goes on."""

from __future__ import annotations

__all__ = [
    "FittedBefore", "LargeDelta", "NoiseDrowns", "PrintedNoise", "PrivacyOff", "PrivacyWarning", "ThresherWarning",
    "Unsettled", "UtilityWarning", "WideRanges",
]  # fmt: skip


class ThresherWarning(UserWarning):
    """Every warning of this library."""


class PrivacyWarning(ThresherWarning):
    """The guarantee is weaker than the numbers suggest, or absent."""


class PrivacyOff(PrivacyWarning):
    """epsilon is infinite: nothing is protected."""


class PrintedNoise(PrivacyWarning):
    """The noise is that of a formula as a paper prints it, which costs more than it claims."""


class LargeDelta(PrivacyWarning):
    """delta is so large that it allows publishing somebody's record."""


class FittedBefore(PrivacyWarning):
    """This process has fitted the same rows before, without a ledger: what they lose adds up."""


class Unsettled(PrivacyWarning):
    """A ledger could not be told that a fit is done. What it reserved stays reserved, and counts."""


class UtilityWarning(ThresherWarning):
    """What comes out is private but may be of little use."""


class NoiseDrowns(UtilityWarning):
    """By public facts alone, the noise is larger than any signal there can be."""


class WideRanges(UtilityWarning):
    """The ranges of columns may come out as wide as their public bounds."""
