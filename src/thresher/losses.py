"""The losses, as functions of a row's margin m = <x, theta> and its target; the gradient is residual * x."""

from __future__ import annotations

from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from thresher.measurements import LINEAR, Measurement

__all__ = ["LOSSES", "Logistic", "Loss", "Measured", "Multinomial", "Squared", "loss_of"]

Floats = NDArray[np.float64]


class Loss(Protocol):
    """A loss whose derivative in the margin is ``residual``; clipping that derivative keeps the loss convex."""

    curvature: ClassVar[float]
    """The largest second derivative in the margin."""

    def residual(self, margin: Floats, target: Floats) -> Floats: ...

    def value(self, margin: Floats, target: Floats) -> Floats:
        """The loss of each row."""
        ...

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        """The loss whose derivative is the residual clipped to [-limit, limit]."""
        ...


class Squared:
    """(m - y)^2 / 2; with a clipped residual, the Huber loss."""

    curvature: ClassVar[float] = 1.0

    def residual(self, margin: Floats, target: Floats) -> Floats:
        return margin - target

    def value(self, margin: Floats, target: Floats) -> Floats:
        return np.square(margin - target) / 2

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        size = np.abs(margin - target)
        inner = np.minimum(size, limit)
        return inner * (size - inner / 2)


class Logistic:
    """log(1 + e^m) - y m for y in {0, 1}; the residual sigmoid(m) - y lies in [-1, 1]."""

    curvature: ClassVar[float] = 0.25

    def residual(self, margin: Floats, target: Floats) -> Floats:
        residual: Floats = np.tanh(margin / 2)  # sigmoid(m) = (1 + tanh(m/2)) / 2: vectorised, and never overflows
        residual += 1
        residual /= 2
        residual -= target
        return residual

    def value(self, margin: Floats, target: Floats) -> Floats:
        value: Floats = np.logaddexp(0.0, margin) - target * margin
        return value

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        # In the signed margin z = (1 - 2y) m the loss is softplus(z) with derivative sigmoid(z) in (0, 1). Where that
        # exceeds limit < 1 the clipped loss continues along its tangent.
        z = (1 - 2 * target) * margin
        slope = np.clip(limit, np.finfo(np.float64).tiny, 1.0)
        with np.errstate(divide="ignore"):
            knee = np.log(slope) - np.log1p(-slope)  # sigmoid(knee) = limit; infinite if there is no clip
        beyond = np.maximum(z - knee, 0.0)
        value: Floats = np.logaddexp(0.0, np.minimum(z, knee)) + slope * beyond
        return value


class Multinomial:
    """log sum_k e^m_k - m_y for several margins a row; the residuals softmax(m) - onehot(y) have l2 norm <= sqrt 2."""

    curvature: ClassVar[float] = 0.5

    def residual(self, margin: Floats, target: Floats) -> Floats:
        margin = np.nan_to_num(margin)  # infinite margins have no difference; the largest finite ones do
        residual: Floats = np.exp(margin - margin.max(axis=1, keepdims=True))
        residual /= residual.sum(axis=1, keepdims=True)
        residual -= target
        return residual

    def value(self, margin: Floats, target: Floats) -> Floats:
        margin = np.nan_to_num(margin)
        value: Floats = logsumexp(margin, axis=1) - np.einsum("ij,ij->i", margin, target)
        return value

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        raise NotImplementedError("residuals that are clipped together are the gradient of no function")


class Measured:
    """The loss of y = f(m) + noise that is convex for every increasing f: its residual is f(m) - y."""

    curvature: ClassVar[float] = 1.0  # times the measurement's own slope

    def __init__(self, measurement: Measurement) -> None:
        self._function = measurement.function

    def residual(self, margin: Floats, target: Floats) -> Floats:
        return np.asarray(self._function(margin), dtype=np.float64) - target

    def value(self, margin: Floats, target: Floats) -> Floats:
        raise NotImplementedError("the loss of a measurement is known by its slope only")

    def clipped_value(self, margin: Floats, target: Floats, limit: Floats) -> Floats:
        raise NotImplementedError("the loss of a measurement is known by its slope only")


LOSSES: dict[str, Loss] = {"squared": Squared(), "logistic": Logistic(), "multinomial": Multinomial()}


def loss_of(name: str, measurement: Measurement = LINEAR) -> Loss:
    """The loss of this name; the squared one of a non-linear measurement is ``Measured``."""
    return LOSSES[name] if measurement == LINEAR else Measured(measurement)
