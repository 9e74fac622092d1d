"""The front door: a module, a loss, an algorithm and a budget in; a trained module and its certificate out."""

from __future__ import annotations

import copy
from contextlib import nullcontext
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Self, cast

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
from thresher.torch.checkpoint import Checkpoint, TrainingState, facts_of
from thresher.torch.defaults import RoundAlgorithm, trainable_algorithm, with_neural_defaults
from thresher.torch.examples import Arrays, Examples, MapDataset, examples_of, moved_beside
from thresher.torch.gradients import Loss, flattened, set_parameters, trainable_parameters
from thresher.torch.probe import check_parameters, per_example_gradients
from thresher.torch.problem import ModuleProblem
from thresher.torch.vault import ModuleVault
from thresher.vaults.randomness import NoiseSource

__all__ = ["PrivateTrainer", "parameter_arrays"]

STOPS = 100  # checkpoints in a training, so that a kill loses at most one part in so many


class PrivateTrainer:
    """Trains a module so that what comes out is differentially private in the examples.

    The module is trained in the mode (train or eval) it is in, from the parameters it has, which must not depend on the
    examples.

    Parameters
    ----------
    module : torch.nn.Module
        What is trained, in place.
    loss : callable
        ``loss(outputs, targets)``, applied to every example by itself, as a batch of one.
    optimizer : str or instance
        "dp-sgd", "dp-srm", "dp-lssgd", ... or an algorithm, such as ``thresher.algorithms.DPSGD(clip=0.5)``; what it
        leaves open takes the rules of ``thresher.torch.defaults``.
    budget : Budget
        What the training may cost.
    virtual_batch : int
        How many examples are worked on at a time at most.
    checkpoint : path
        A file from which a training that was stopped goes on where it was (``thresher.torch.checkpoint``).
    checkpoint_every : int
        After how many rounds it is saved. None: a hundredth of all.
    ledger : Ledger or its URL
        The account book that pays, once for a training however often it is stopped (``thresher.Ledger``).
    dataset : str
        The name of the ledger's account.
    random_state : int
        Repeatable noise, for tests and research only; it marks the certificate.
    verbose : int
        1 shows a progress bar on a terminal.

    Attributes
    ----------
    certificate_, plan_, algorithm_
        What it cost, what was planned, and what ran.

    Examples
    --------
    >>> import torch
    >>> from thresher import Budget
    >>> from thresher.torch import PrivateTrainer
    >>> X = torch.rand(200, 3)
    >>> y = (X[:, 0] > 0.5).long()
    >>> budget = Budget(epsilon=3, delta=1e-4)
    >>> trainer = PrivateTrainer(torch.nn.Linear(3, 2), torch.nn.functional.cross_entropy, "dp-sgd", budget)
    >>> trainer.fit(X, y).certificate_.epsilon
    3.0
    """

    def __init__(
        self,
        module: nn.Module,
        loss: Loss,
        optimizer: str | RoundAlgorithm,
        budget: Budget,
        *,
        virtual_batch: int | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: int | None = None,
        ledger: Ledger | str | Path | None = None,
        dataset: str | None = None,
        random_state: int | None = None,
        verbose: int = 0,
    ) -> None:
        for name, value in (("virtual_batch", virtual_batch), ("checkpoint_every", checkpoint_every)):
            if value is not None and not (is_whole(value) and value >= 1):
                raise ValueError(f"{name}={value!r} must be a whole number of at least 1, or None")
        if not isinstance(budget, Budget):
            raise TypeError(f"budget={budget!r} must be a thresher.Budget, such as Budget(epsilon=3, delta=1e-5)")
        self.module, self.loss, self.budget = module, loss, budget
        self.optimizer = trainable_algorithm(optimizer)
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
        problem = ModuleProblem(n, flattened(trainable_parameters(self.module)))
        return Design(problem, with_neural_defaults(self.optimizer, n, self.budget), self.budget)

    @without_causes
    def fit(self, X: Arrays | MapDataset, y: Arrays | None = None) -> Self:
        """Train on ``X`` and ``y`` (tensors or arrays), or on a map-style Dataset of pairs (input, target)."""
        return self._fit(examples_of(X, y))

    def _fit(self, examples: Examples) -> Self:
        design = self._design(len(examples))
        plan = design.plan()
        module = copy.deepcopy(self.module)  # what a training does to buffers stays with the copy
        inputs, targets = examples.take(np.arange(1))
        like = trainable_parameters(module)[0]
        gradients = per_example_gradients(
            module, self.loss, (moved_beside(inputs[0], like), moved_beside(targets[0], like))
        )
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
            algorithm = cast(RoundAlgorithm, design.algorithm)  # a trainer makes no design of another
            outcome = fit.ask(
                lambda watch: ModuleVault(examples, module, gradients, plan, noise, watch, self.virtual_batch),
                lambda vault: self._train(vault, algorithm, found, checkpoint, fit.paid),
            )
        versions = {name: version(name) for name in ("torch", "opacus")}
        assumed = self._assumptions(len(examples))
        self.certificate_ = fit.complete(_ModuleKeeper(self.module), outcome, assumed, versions=versions)
        self.plan_, self.algorithm_ = plan, plan.algorithm
        return self

    def _train(
        self, vault: ModuleVault, algorithm: RoundAlgorithm, found: TrainingState | None, checkpoint: Checkpoint | None,
        paid: Reservation | None,
    ) -> Floats:  # fmt: skip
        """Ask what is left to ask, no round before it is charged in the ledger and reserved in the checkpoint."""
        plan, rounds = vault.plan, vault.plan.settings["rounds"]
        account = None if paid is None else paid.account
        every = self.checkpoint_every or max(1, rounds // STOPS)
        if found is None:
            found = TrainingState(algorithm.start(vault))
        vault.resume(found.answers, found.lost)
        state, heard, ahead = found.state, len(found.answers), found.charged
        try:
            while heard < rounds:
                if checkpoint and heard == ahead:
                    ahead = min(heard + every, rounds)
                    if paid is not None:
                        paid.ledger.charge(paid.account, heard, ahead)
                    checkpoint.write(TrainingState(state, vault.answers, ahead, account), plan)
                state, heard = algorithm.advance(vault, state), heard + 1
        finally:  # a clean end, however early, counts exactly
            if checkpoint:
                charged = max(vault.charged, found.charged)
                checkpoint.write(TrainingState(state, vault.answers[:heard], charged, account), plan)
        theta: Floats = algorithm.finish(vault, state)
        return theta

    def _assumptions(self, n: int) -> tuple[str, ...]:
        assumptions: tuple[str, ...] = ()
        if self.budget.adjacency is Adjacency.ADD_REMOVE:
            assumptions += (f"the number of examples, {n}, is public: it was read from the data",)
        return assumptions


def parameter_arrays(module: nn.Module) -> dict[str, Floats]:
    """What the hash in a certificate covers: every parameter and buffer, by name."""
    return {name: value.detach().cpu().double().numpy() for name, value in module.state_dict().items()}


class _ModuleKeeper:
    """A module that gets the parameters that were found; until all is settled, it can have its old ones again."""

    def __init__(self, module: nn.Module) -> None:
        self._module, self._before = module, flattened(trainable_parameters(module))

    def keep(self, outcome: Outcome) -> str:
        set_parameters(trainable_parameters(self._module), outcome.found)
        return model_hash(parameter_arrays(self._module))

    def forget(self) -> None:
        set_parameters(trainable_parameters(self._module), self._before)
