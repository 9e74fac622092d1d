"""The front door: a module, a loss, an algorithm and a budget in; a trained module and its certificate out."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from torch import nn

from thresher.data.concealment import without_causes
from thresher.ledger import Ledger, Reservation, ledger_at, without_password
from thresher.models.fit import Design, Fit, Outcome
from thresher.privacy import logs
from thresher.privacy.arrays import Floats
from thresher.privacy.budget import Adjacency, Budget, is_whole
from thresher.privacy.model_hash import model_hash
from thresher.privacy.plan import Plan
from thresher.torch.checkpoint import Checkpoint, Standing, facts_of
from thresher.torch.defaults import algorithm_of, with_neural_defaults
from thresher.torch.examples import Examples, examples_of, placed
from thresher.torch.gradients import Loss, flat, set_flat, trainable
from thresher.torch.probe import check_parameters, per_example_gradients
from thresher.torch.problem import ModuleProblem
from thresher.torch.vault import ModuleVault
from thresher.vaults.randomness import NoiseSource

__all__ = ["PrivateTrainer", "parts_of"]

STOPS = 100  # checkpoints in a training, so that a kill loses at most one part in so many


class PrivateTrainer:
    """Trains ``module`` so that what comes out is differentially private in the examples.

    ``loss(outputs, targets)`` is applied to every example by itself, as a batch of one. ``optimizer`` names an
    algorithm ("dp-sgd", "dp-srm", "dp-lssgd", ...) or is one (``thresher.algorithms.DPSGD(clip=0.5)``); what it leaves
    open takes the rules of ``thresher.torch.defaults``. The module is trained in the mode (train or eval) it is in,
    from the parameters it has, which must not depend on the examples.

    ``virtual_batch`` is how many examples are worked on at a time at most. With ``checkpoint``, a file, a training
    that was stopped goes on where it was (``thresher.torch.checkpoint``), saved every ``checkpoint_every`` rounds
    (None: a hundredth of all). With ``ledger`` and ``dataset``, an account of a ``thresher.Ledger`` pays,
    once for a training however often it is stopped. ``random_state`` is for tests and research only.
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
        optimizer: Any,
        budget: Budget,
        *,
        virtual_batch: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int | None = None,
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        for name, value in (("virtual_batch", virtual_batch), ("checkpoint_every", checkpoint_every)):
            if value is not None and not (is_whole(value) and value >= 1):
                raise ValueError(f"{name}={value!r} must be a whole number of at least 1, or None")
        if not isinstance(budget, Budget):
            raise TypeError(f"budget={budget!r} must be a thresher.Budget, such as Budget(epsilon=3, delta=1e-5)")
        self.module, self.loss, self.budget = module, loss, budget
        self.optimizer = algorithm_of(optimizer)
        self.virtual_batch, self.random_state, self.verbose = virtual_batch, random_state, verbose
        self.checkpoint, self.checkpoint_every = checkpoint, checkpoint_every
        self.ledger, self.dataset = without_password(ledger), dataset

    def plan(self, n: int) -> Plan:
        """What would be released for so many examples, and with what noise. Touches no data, spends nothing."""
        plan = self._design(n).plan()
        logs.planned(plan)
        return plan

    def _design(self, n: int) -> Design:
        check_parameters(self.module)
        problem: Any = ModuleProblem(n, flat(trainable(self.module)))  # what algorithms ask of a Problem, it has
        return Design(problem, with_neural_defaults(self.optimizer, n, self.budget), self.budget)

    @without_causes
    def fit(self, X: Any, y: Any = None) -> Self:
        """Train on ``X`` and ``y`` (tensors or arrays), or on a map-style Dataset of pairs (input, target)."""
        return self._fit(examples_of(X, y))

    def _fit(self, examples: Examples) -> Self:
        design = self._design(len(examples))
        plan = design.plan()
        module = copy.deepcopy(self.module)  # what a training does to buffers stays with the copy
        inputs, targets = examples.take(np.arange(1))
        like = trainable(module)[0]
        gradients = per_example_gradients(module, self.loss, (placed(inputs[0], like), placed(targets[0], like)))
        fit = Fit(plan, self.verbose)
        for name in ("certificate_", "plan_", "algorithm_"):  # an interrupted fit leaves none
            self.__dict__.pop(name, None)
        checkpoint, ledger = None, None if self.ledger is None else ledger_at(self.ledger)
        if self.checkpoint is not None:
            shapes = {"input": list(inputs.shape[1:]), "target": list(targets.shape[1:]), "dataset": self.dataset}
            path, seal = Path(self.checkpoint).resolve(), None if ledger is None else ledger.seal  # not a link to it
            checkpoint = Checkpoint(path, facts_of(plan, shapes), seal)
        with checkpoint.held() if checkpoint else nullcontext():
            found = checkpoint.read(plan) if checkpoint else None
            if found and found.account and ledger:  # an older copy of the file would say less than was asked
                found = replace(found, charged=max(found.charged, ledger.charged(found.account)))
            noise = NoiseSource(self.random_state, stream=found.charged if found else 0)
            fit.pay(ledger, self.dataset, begun=found.account if found else None)
            outcome = fit.ask(
                lambda watch: ModuleVault(examples, module, gradients, plan, noise, watch, self.virtual_batch),
                lambda vault: self._trained(vault, design.algorithm, found, checkpoint, fit.paid),
            )
        versions = {name: version(name) for name in ("torch", "opacus")}
        assumed = self._assumptions(len(examples))
        self.certificate_ = fit.complete(_Trained(self.module), outcome, assumed, versions=versions)
        self.plan_, self.algorithm_ = plan, plan.algorithm
        return self

    def _trained(
        self, vault: ModuleVault, algorithm: Any, found: Standing | None, checkpoint: Checkpoint | None,
        paid: Reservation | None,
    ) -> Floats:  # fmt: skip
        """Ask what is left to ask, no round before it is charged in the ledger and reserved in the checkpoint."""
        plan, rounds = vault.plan, vault.plan.settings["rounds"]
        account = None if paid is None else paid.account
        every = self.checkpoint_every or max(1, rounds // STOPS)
        if found is None:
            found = Standing(algorithm.start(vault))
        vault.resume(found.answers, found.lost)
        state, heard, ahead = found.state, len(found.answers), found.charged
        try:
            while heard < rounds:
                if checkpoint and heard == ahead:
                    ahead = min(heard + every, rounds)
                    if paid is not None:
                        paid.ledger.charge(paid.account, heard, ahead)
                    checkpoint.write(Standing(state, vault.answers, ahead, account), plan)
                state, heard = algorithm.advance(vault, state), heard + 1
        finally:  # a clean end, however early, counts exactly
            if checkpoint:
                charged = max(vault.charged, found.charged)
                checkpoint.write(Standing(state, vault.answers[:heard], charged, account), plan)
        theta: Floats = algorithm.finish(vault, state)
        return theta

    def _assumptions(self, n: int) -> tuple[str, ...]:
        assumptions: tuple[str, ...] = ()
        if self.budget.adjacency is Adjacency.ADD_REMOVE:
            assumptions += (f"the number of examples, {n}, is public: it was read from the data",)
        return assumptions


def parts_of(module: Any) -> dict[str, Any]:
    """What the hash in a certificate covers: every parameter and buffer, by name."""
    return {name: value.detach().cpu().double().numpy() for name, value in module.state_dict().items()}


class _Trained:
    """A module that gets the parameters that were found; until all is settled, it can have its old ones again."""

    def __init__(self, module: Any) -> None:
        self._module, self._before = module, flat(trainable(module))

    def keep(self, outcome: Outcome) -> str:
        set_flat(trainable(self._module), outcome.found)
        return model_hash(parts_of(self._module))

    def forget(self) -> None:
        set_flat(trainable(self._module), self._before)
