"""How sure a model is of its coefficients: standard errors, intervals and stability, from released answers alone."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from thresher.privacy.arrays import Floats

__all__ = ["Uncertainty"]


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """One entry per selected feature, as in ``coef_[..., support_]``; NaN where a class does not use a feature.

    All of it is computed from answers that were released anyway and from public facts, so it costs no privacy.
    """

    noise: Floats
    """The standard error that the privacy noise, whose law is known, gives a coefficient."""
    sampling: Floats
    """The standard error that other rows of the same law would give it."""
    stability: Floats
    """The chance that a fresh run on fresh rows of the same law would keep this feature, if its true coefficient is
    the one found: the chance that its score stands out of those of columns that mean nothing when features are picked,
    times the chance that its value, spread by the standard error, is not set to zero as possible noise.
    """
    method: str
    """How it was computed and what it leaves out."""

    @property
    def standard_errors(self) -> Floats:
        """Noise and sampling together, which are independent."""
        return np.hypot(self.noise, self.sampling)

    def intervals(self, coefficients: Floats, level: float = 0.9) -> Floats:
        """(low, high) for each coefficient: ``coefficients`` -+ the normal quantile times the standard error."""
        if not 0 < level < 1:
            raise ValueError(f"level={level!r} must lie strictly between 0 and 1, for example 0.9")
        coefficients = np.asarray(coefficients, dtype=np.float64)
        if coefficients.shape != self.noise.shape:
            raise ValueError(f"coefficients have shape {coefficients.shape}, the standard errors {self.noise.shape}")
        reach = ndtri((1 + level) / 2) * self.standard_errors
        return np.stack([coefficients - reach, coefficients + reach], axis=-1)

    def of(self, coefficients: Floats, support: NDArray[np.intp]) -> Self:
        """What belongs to the ``support``, of entries for all ``coefficients``; those that are zero have none."""
        unused = np.where(coefficients[support] != 0, 0.0, np.nan)
        noise, sampling, stability = (part[support] + unused for part in (self.noise, self.sampling, self.stability))
        return replace(self, noise=noise, sampling=sampling, stability=stability)

    @classmethod
    def stacked(cls, rows: list[Self]) -> Self:
        """One row per class."""
        noise, sampling, stability = (np.stack([getattr(row, part) for row in rows]) for part in PARTS)
        return replace(rows[0], noise=noise, sampling=sampling, stability=stability)

    def to_dict(self) -> dict[str, Any]:
        """For JSON, which knows neither NaN nor infinity: null."""
        return {**{part: _plain(getattr(self, part)) for part in PARTS}, "method": self.method}

    @classmethod
    def from_dict(cls, entries: dict[str, Any]) -> Self:
        noise, sampling, stability = (np.array(entries[part], dtype=np.float64) for part in PARTS)
        return cls(noise, sampling, stability, entries["method"])


PARTS = ("noise", "sampling", "stability")


def _plain(array: Floats) -> Any:
    some: NDArray[Any] = array.astype(object)
    some[~np.isfinite(array)] = None
    return some.tolist()
