"""The vault of a module: per-example gradients of its parameters, clipped, summed over random batches, noised."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from torch import Tensor, nn

from thresher.privacy.arrays import Floats
from thresher.privacy.plan import Answer, Plan
from thresher.privacy.releases import Release, SampledRelease
from thresher.privacy.sensitivity import momentum_clip
from thresher.torch.examples import Examples, moved_beside
from thresher.torch.gradients import LEAST_CLIP, PerExample, clipped_sum, set_parameters, trainable_parameters
from thresher.vaults.randomness import NoiseSource
from thresher.vaults.vault import Vault, no_watch

__all__ = ["ModuleVault"]

Indices = NDArray[np.int64]
MEMORY, MOST = 2**22, 512  # numbers in the gradients that are worked on at a time, and examples; more is slower
Parts = Callable[[Tensor, Tensor], Floats]
"""What examples, inputs and targets, add to a sum."""


class ModuleVault(Vault):
    """Answers about a module's parameters as one flat vector theta, as other vaults do about coefficients.

    An example whose part in an answer has no finite norm counts as zero.

    Parameters
    ----------
    examples : ArrayExamples or DatasetExamples
        What is private; see ``thresher.torch.examples.examples_of``.
    module : torch.nn.Module
        Its parameters are set to the theta asked about.
    gradients : callable
        Computes every example's gradient on ``module``; see ``thresher.torch.probe.per_example_gradients``.
    plan : Plan
        What may be asked.
    noise : NoiseSource
        Where noise comes from.
    watch : callable
        Is called after every answer.
    virtual_batch : int
        How many examples are worked on at a time at most (None: a rule of the number of parameters), which bounds the
        memory and changes no answer.

    Examples
    --------
    >>> import torch
    >>> from thresher import Budget
    >>> from thresher.algorithms import DPSGD
    >>> from thresher.torch import ModuleProblem, ModuleVault
    >>> from thresher.torch.examples import examples_of
    >>> from thresher.torch.gradients import ByLayers, flattened, trainable_parameters
    >>> from thresher.vaults.randomness import NoiseSource
    >>> X, y, module = torch.rand(50, 3), torch.rand(50, 1), torch.nn.Linear(3, 1)
    >>> problem = ModuleProblem(50, flattened(trainable_parameters(module)))
    >>> plan = DPSGD(passes=2, batch=10, clip=1.0, step=0.1).plan(problem, Budget(3, 1e-4))
    >>> gradients = ByLayers(module, torch.nn.functional.mse_loss)
    >>> with ModuleVault(examples_of(X, y), module, gradients, plan, NoiseSource()) as vault:
    ...     vault.sampled_gradient(problem.origin(), plan.releases[0], 1.0).shape
    (4,)
    """

    def __init__(
        self,
        examples: Examples,
        module: nn.Module,
        gradients: PerExample,
        plan: Plan,
        noise: NoiseSource,
        watch: Callable[[], None] = no_watch,
        virtual_batch: int | None = None,
    ) -> None:
        super().__init__(plan, noise, watch)
        self._examples: Examples | None = examples
        self._parameters, self._gradients = trainable_parameters(module), gradients
        self._virtual_batch = virtual_batch or max(1, min(MOST, MEMORY // plan.problem.d))
        self._lost = 0

    # -- questions ----------------------------------------------------------------------------------------------

    def gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """(1/n) sum of all examples' gradients, each clipped to l2 norm ``clip``, + noise."""
        clip = float(clip)
        self._charge("gradient", release, (clip,), clip, theta)
        return self._answer(release, clip, lambda x, y: clipped_sum(self._at(theta, x, y), clip))

    def sampled_gradient(self, theta: Floats, release: Release, clip: float) -> Floats:
        """(1/b) sum of a batch's gradients, each clipped to l2 norm ``clip``, + noise; b is the expected size."""
        clip = float(clip)
        self._charge("sampled gradient", release, (clip,), clip, theta)
        return self._answer(release, clip, lambda x, y: clipped_sum(self._at(theta, x, y), clip))

    def sampled_momentum(
        self, theta: Floats, before: Floats, release: Release, clip: float, difference_clip: float, momentum: float
    ) -> Floats:
        """(1-g) clip_C2(gradient at ``theta`` - gradient ``before``) + g clip_C1(gradient at ``theta``), + noise.

        Both clips are of every example by itself, with C1 = ``clip``, C2 = ``difference_clip``, g = ``momentum``.
        """
        clip, difference_clip = float(clip), float(difference_clip)
        total = momentum_clip(clip, difference_clip, momentum)
        self._check_question(release, total, before)
        self._charge("sampled momentum", release, (clip, difference_clip), total, theta)

        def parts(x: Tensor, y: Tensor) -> Floats:
            then, now = self._at(before, x, y), self._at(theta, x, y)
            moves = [gradient - was for gradient, was in zip(now, then, strict=True)]
            return clipped_sum(now, clip, momentum) + clipped_sum(moves, difference_clip, 1 - momentum)

        return self._answer(release, total, parts)

    def whole_number(self, below: int) -> int:
        """A number that has nothing to do with the examples: 0, ..., below - 1, all alike."""
        return self._noise.whole_number(below)

    # -- going on after a stop ----------------------------------------------------------------------------------

    def resume(self, answers: tuple[Answer, ...], lost: int) -> None:
        """Charge ``answers``, which an earlier process gave, and answer the next ``lost`` questions with zeros.

        Lost answers may have been given, but the state that heard them is gone. They are paid for, as before, and no
        example is asked again.
        """
        for answer in answers:
            self._meter.charge(answer.release, answer.release.question.name)
            self._meter.record(answer)
            self._watch()
        self._lost = lost

    @property
    def charged(self) -> int:
        """How many questions were paid for."""
        return self._meter.charged

    def close(self) -> None:
        """Drop the examples. The answers stay."""
        self._examples = None

    # -- for the questions --------------------------------------------------------------------------------------

    def _charge(self, question: str, release: Release, clips: tuple[float, ...], total: float, theta: Floats) -> None:
        """Refuse what cannot be answered, then pay; only after this may an example be touched."""
        if self._examples is None:
            raise RuntimeError("the vault is closed: its examples are gone and it answers nothing more")
        self._check_question(release, total, theta)
        if min(clips) < LEAST_CLIP:
            raise ValueError(f"clip={min(clips)!r} is below {LEAST_CLIP:g}, which single precision cannot enforce")
        self._meter.charge(release, question)

    def _answer(self, release: Release, clip: float, parts: Parts) -> Floats:
        """The way out of every number: a sum over its expected size, noise as planned, and an entry in the record."""
        size = release.batch if isinstance(release, SampledRelease) else self.problem.n
        sensitivity = release.sensitivity(clip, self.problem.n, self._plan.budget.adjacency)
        if self._lost > 0:
            self._lost -= 1
            answer, scale = np.zeros(self.problem.dimension), release.multiplier * sensitivity
        else:
            value = self._sum(parts, release) / size
            answer, scale = self._noise.gaussian(value, sensitivity, release.multiplier)
        self._record(release, clip, sensitivity, scale)
        return answer

    def _sum(self, parts: Parts, release: Release) -> Floats:
        """``parts`` of the examples that ``release`` draws, a few at a time, added up."""
        assert self._examples is not None  # noqa: S101
        rows = np.arange(len(self._examples))
        if isinstance(release, SampledRelease):
            rows = self._noise.batch(len(self._examples), release.rate, release.sampling)
        total, like = np.zeros(self.problem.dimension), self._parameters[0]
        pieces = math.ceil(len(rows) / self._virtual_batch)
        for piece in np.array_split(rows, pieces) if pieces else ():
            total += self._part(parts, piece, like)
        return total

    def _part(self, parts: Parts, rows: Indices, like: Tensor) -> Floats:
        """What some examples add to a sum. What fails on them says no more than that: PyTorch quotes labels."""
        assert self._examples is not None  # noqa: S101
        try:
            inputs, targets = self._examples.take(rows)
            return parts(moved_beside(inputs, like), moved_beside(targets, like))
        except Exception as error:
            raise RuntimeError(
                f"module and loss, or the Dataset, fail on an example ({type(error).__name__}); what it says may quote "
                "the example. Are all labels below the number of outputs? Try them without privacy"
            ) from None

    def _at(self, theta: Floats, inputs: Tensor, targets: Tensor) -> list[Tensor]:
        """Per-example gradients at ``theta``."""
        set_parameters(self._parameters, theta)
        return self._gradients(inputs, targets)
