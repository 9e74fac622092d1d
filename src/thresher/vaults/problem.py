"""What a linear model is asked: public facts about a table, and a loss, a sparsity, a penalty, an intercept."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from thresher.privacy.facts import PublicFacts, Settings
from thresher.privacy.plan import Plan
from thresher.vaults.losses import LOSSES, Loss, assumed_of_loss, is_own
from thresher.vaults.penalties import NO_PENALTY, Penalty

__all__ = ["LinearProblem", "linear_problem"]


@dataclass(frozen=True)
class LinearProblem(PublicFacts):
    """Public facts only, and what is asked of them: a model with at most ``sparsity`` coefficients per output."""

    sparsity: int = field(kw_only=True)
    loss: Loss = field(kw_only=True)
    as_many_as_pay: bool = field(default=False, kw_only=True)
    """Whether coefficients that do not pay for their noise go, so that there are fewer than ``sparsity``."""
    intercept: bool = True
    outputs: int = field(default=1, kw_only=True)
    """Linear predictors fitted side by side: 1, or one per class if there are more than two."""
    penalty: Penalty = field(default=NO_PENALTY, kw_only=True)
    """What is added to the loss: public, so it needs no noise. Sparse algorithms have a ridge of their own instead."""

    def __post_init__(self) -> None:
        if not isinstance(self.loss, Loss):
            raise ValueError(
                f"loss={self.loss!r} must be a loss, such as thresher.vaults.losses.Squared(); loss_named(name) gives "
                f"that of a name: {', '.join(map(repr, LOSSES))}"
            )
        if not self.loss.classifies and self.bounds.target is None:
            raise ValueError(
                "target_bound=None: give the public range of the target, a number B for [-B, B] or a pair (low, high); "
                "targets outside are clipped"
            )
        super().__post_init__()
        for name in ("sparsity", "outputs"):
            self._set_whole(name)
        if self.loss.several_outputs != (self.outputs > 1):
            raise ValueError(
                f"outputs={self.outputs} with loss={self.loss.name!r}: several outputs are for losses such as "
                "'multinomial'"
            )
        if self.sparsity > self.d:
            raise ValueError(
                f"sparsity={self.sparsity} is larger than the number of columns, {self.d}; ask for at most {self.d}"
            )

    @property
    def width(self) -> int:
        """Coordinates of the iterate that are coefficients: d for each output, one output after the other."""
        return self.outputs * self.d

    @property
    def dimension(self) -> int:
        """Coordinates of the iterate: the coefficients and, last, the intercepts if there are any."""
        return self.width + self.outputs * self.intercept

    @property
    def target_centre(self) -> float:
        """The public midpoint of the target range, taken off the targets when an intercept can give it back."""
        return super().target_centre if self.loss.shift_invariant else 0.0

    @property
    def curvature(self) -> float:
        """The loss's largest second derivative in the margin; for a non-linear measurement, a typical one."""
        return self.loss.curvature

    def of_one_output(self) -> LinearProblem:
        """The problem of telling one class from the rest."""
        return replace(self, loss=self.loss.for_outputs(1), outputs=1)

    def gradient_change(self, distance: float) -> float:
        """The most by which a row's gradient can change, in l2 norm, when theta moves by this distance."""
        return self.curvature * self.row_norm**2 * distance

    @property
    def public_choices(self) -> Settings:
        """What else certificates list: choices that cost no privacy but shape the model."""
        loss = {} if is_own(self.loss) else {"loss": self.loss.name}  # ours follow from the targets
        return {**loss, "penalty": asdict(self.penalty)} if self.penalty.strength else loss

    @property
    def assumed(self) -> tuple[str, ...]:
        """What certificates assume of the loss, if it is a caller's."""
        return assumed_of_loss(self.loss)

    def penalty_gradient(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """That of the penalty, which leaves intercepts alone."""
        gradient = np.zeros_like(theta)
        gradient[: self.width] = self.penalty.gradient(theta[: self.width])
        return gradient

    def by_column(self, theta: NDArray[np.float64]) -> NDArray[np.float64]:
        """The iterate as the rows of X meet it: a vector, or a matrix with one column for each of several outputs."""
        if self.outputs == 1:
            return theta
        coefficients = theta[: self.width].reshape(self.outputs, self.d).T
        return np.vstack([coefficients, theta[self.width :].reshape(-1, self.outputs)])

    def stacked(self, matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        """The inverse of ``by_column``."""
        if self.outputs == 1:
            return matrix
        return np.concatenate([matrix[: self.d].T.ravel(), matrix[self.d :].ravel()])

    def model_of(self, theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """One row of coefficients and one intercept per output, in the units of the rows and the target."""
        intercepts = np.full(self.outputs, self.target_centre)
        if self.intercept:
            intercepts += self.intercept_column * theta[self.width :]
        return theta[: self.width].reshape(self.outputs, self.d), intercepts


def linear_problem(plan: Plan) -> LinearProblem:
    """What a plan asks of a linear model."""
    if not isinstance(plan.problem, LinearProblem):
        raise TypeError(f"a plan of {plan.algorithm!r} is about {type(plan.problem).__name__}, not a linear model")
    return plan.problem
