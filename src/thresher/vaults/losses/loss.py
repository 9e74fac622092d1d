"""What a loss is: a frozen object that knows everything about itself that vaults, algorithms and reports ask."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from thresher.privacy.arrays import Floats

__all__ = ["Loss", "Pieces"]


@dataclass(frozen=True)
class Pieces:
    """A residual s psi(s m - o) whose psi is within ``off`` of constants[k] + slopes[k] u between two knots.

    psi itself is the identity, or the logistic function if ``logistic``, clipped.
    """

    signs: Floats
    offsets: Floats
    knots: Floats
    slopes: Floats
    constants: Floats
    off: float
    logistic: bool = False


class Loss(ABC):
    """What a row costs, by its margin m = <x, theta> and its target y: its gradient is residual(m, y) x.

    A loss of one's own is a frozen dataclass with ``name``, ``curvature`` and ``residual``, which must not decrease in
    the margin (docs/adding.md). All else has defaults, those of a loss of numbers, or is optional: an algorithm that
    cannot do without it says so when it plans. Every function takes arrays, and treats each row by itself.

    A vault clips the residual whatever it is. That it is a row's own, increasing, and of slope at most ``curvature``
    cannot be enforced, so certificates list it as an assumption (``assumed_of_loss``).
    """

    classifies: ClassVar[bool] = False
    """Whether targets are classes: 0 or 1, or one such column for each of more than two; else they are numbers, which
    are clipped to a public range."""

    several_outputs: ClassVar[bool] = False
    """Whether a row has several margins, one for each class, and as many residuals, which are clipped together."""

    residuals_stay: ClassVar[bool] = False
    """Whether residuals stay about as large as at the origin, however good the model: those of classes do, for a label
    is a coin toss even to the true model."""

    shift_invariant: ClassVar[bool] = False
    """Whether residual(m + c, y + c) = residual(m, y): then targets may be centred, and the intercept gives the centre
    back."""

    linear_in_target: ClassVar[bool] = False
    """Whether the residual is a function of the margin less the target: then an unbiased report of a target makes an
    unbiased gradient."""

    likelihood: ClassVar[Literal["gaussian", "bernoulli"] | None] = None
    """The law whose negative log-likelihood the loss is, of numbers around the margin or of classes whose log-odds it
    is. What is derived for one of them, such as a standard error, holds for no other loss."""

    measurement: ClassVar[str] = "linear"
    """What the target measures: the margin itself, or the named function of it."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What certificates, files and fingerprints tell it by: losses that differ have different names."""

    @property
    @abstractmethod
    def curvature(self) -> float:
        """The largest second derivative in the margin."""

    @abstractmethod
    def residual(self, margin: Floats, target: Floats) -> Floats:
        """The derivative in the margin, as a new array: one number for each row, or for each of its outputs."""

    # -- optional -------------------------------------------------------------------------------------------------

    def value(self, margin: Floats, target: Floats) -> Floats:
        """The loss of each row. Needed where steps are chosen by it."""
        raise NotImplementedError(f"loss={self.name!r} states no value")

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        """The loss whose derivative is the residual clipped to [-limit, limit]. Needed where it is minimised."""
        raise NotImplementedError(f"loss={self.name!r} states no clipped_value")

    def pieces(self, targets: Floats, clip: float) -> Pieces:
        """The clipped residual, nearly, as lines on pieces. Needed to follow a Frank-Wolfe walk; read afresh at every
        step without."""
        raise NotImplementedError(f"loss={self.name!r} states no pieces")

    def states(self, what: str) -> bool:
        """Whether the loss has this optional function."""
        return getattr(type(self), what) is not getattr(Loss, what)

    # -- with defaults of a loss of numbers -----------------------------------------------------------------------

    def for_outputs(self, outputs: int) -> Loss:
        """The loss of a model with one output, or with one for each of several classes."""
        return self

    def inverse_link(self, margin: Floats) -> Floats:
        """The prediction that belongs to a margin; the chances of the classes."""
        return margin

    def largest_residual(self, radius: float) -> float:
        """What no residual of a useful model exceeds in size, of targets within ``radius`` of 0."""
        return 2 * radius

    def typical_margin(self, radius: float) -> float:
        """How far the margins of a useful model spread."""
        return radius / 3

    def adds_to(self, classes: Sequence[object] | None) -> str:
        """What one more unit of a feature adds its coefficient to, in words."""
        return "prediction"
