"""The losses, as objects that know all that is asked about them. One's own is one more class: docs/adding.md."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from thresher.vaults.losses.logistic import LOGISTIC, MULTINOMIAL, Logistic, Multinomial
from thresher.vaults.losses.loss import Loss, Pieces
from thresher.vaults.losses.measured import MEASUREMENTS, Measured, measurement_of
from thresher.vaults.losses.squared import SQUARED, Squared

__all__ = [
    "LOGISTIC",
    "LOSSES",
    "MEASUREMENTS",
    "MULTINOMIAL",
    "SQUARED",
    "Logistic",
    "Loss",
    "Measured",
    "Multinomial",
    "Pieces",
    "Squared",
    "assumed_of_loss",
    "is_own",
    "loss_named",
    "measurement_of",
]

LOSSES: Mapping[str, Loss] = MappingProxyType({loss.name: loss for loss in (SQUARED, LOGISTIC, MULTINOMIAL)})
"""Those that files and other machines may name."""

OWN = (Squared, Logistic, Multinomial, Measured)


def loss_named(name: str, measurement: str = "linear") -> Loss:
    """The loss that a file, another machine or a command line names."""
    if name not in LOSSES:
        raise ValueError(f"loss={name!r} must be one of {', '.join(map(repr, LOSSES))}")
    if measurement not in MEASUREMENTS:
        raise ValueError(f"measurement={measurement!r} must be one of {', '.join(map(repr, MEASUREMENTS))}")
    if measurement == "linear":
        return LOSSES[name]
    if LOSSES[name].classifies:
        raise ValueError(f"measurement={measurement!r} is for targets that are numbers, not for classes")
    return MEASUREMENTS[measurement]


def is_own(loss: Loss) -> bool:
    """Whether the loss is one of thresher's, whose properties are proved, and not a caller's."""
    return type(loss) in OWN


def assumed_of_loss(loss: Loss) -> tuple[str, ...]:
    """What must be assumed of a caller's loss: no code can enforce it."""
    if is_own(loss):
        return ()
    return (
        f"the loss {loss.name!r} is the caller's: a row's residual depends on that row alone, does not decrease in the "
        "margin, and has a slope of at most the curvature that the loss states",
    )
