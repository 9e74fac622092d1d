"""Private training of a small convolutional network: milliseconds of a step as ratios to Opacus's.

Every kind of step alternates in one run. What training reaches is an experiment: thresher reproduce x14.

Run: ./dev neural steps
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from opacus import GradSampleModule
from opacus.optimizers import DPOptimizer
from torch.nn.functional import cross_entropy

from machine import describe
from ratios import Ratio, part_of
from thresher import Budget
from thresher.algorithms import DPSGD, DPSRM
from thresher.torch.examples import ArrayExamples
from thresher.torch.gradients import ByFunctions, ByLayers, PerExample, flattened, trainable_parameters
from thresher.torch.problem import ModuleProblem
from thresher.torch.vault import ModuleVault
from thresher.vaults.randomness import NoiseSource
from thresher_papers.experiments.mnist_networks import network

BATCH, ROUNDS, WARM = 256, 60, 5  # the first steps of each kind warm up


def opacus_step(inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[], None]:
    """A step of plain Opacus: hooks, clipping, noise, SGD with momentum."""
    module = GradSampleModule(network("ReLU"))
    inner = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    optimizer = DPOptimizer(inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=len(inputs))

    def step() -> None:
        optimizer.zero_grad()
        cross_entropy(module(inputs), targets).backward()
        optimizer.step()

    return step


def our_step(algorithm: Any, ways: type, inputs: torch.Tensor, targets: torch.Tensor) -> Callable[[], None]:
    """A round of ``algorithm``: a batch drawn from twice as many examples, clipped, noised, moved."""
    module = network("ReLU")
    problem: Any = ModuleProblem(2 * len(inputs), flattened(trainable_parameters(module)))
    plan = algorithm.plan(problem, Budget(1.0, 1e-5))
    examples = ArrayExamples(torch.cat([inputs, inputs]), torch.cat([targets, targets]))
    gradients: PerExample = ways(module, cross_entropy)
    vault = ModuleVault(examples, module, gradients, plan, NoiseSource(0))
    state = algorithm.start(vault)

    def step() -> None:
        nonlocal state
        state = algorithm.advance(vault, state)

    return step


def steps(rounds: int = ROUNDS, batch: int = BATCH) -> list[Ratio]:
    inputs, targets = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
    fixed: Any = {"passes": 2.0 * rounds, "batch": batch, "step": 0.1, "clip": 1.0, "sampling": "fixed"}
    sgd, srm = DPSGD(**fixed), DPSRM(**fixed, difference_clip=0.1)
    kinds = {
        "opacus": opacus_step(inputs, targets),
        "dp-sgd": our_step(sgd, ByLayers, inputs, targets),
        "dp-sgd by torch.func": our_step(sgd, ByFunctions, inputs, targets),
        "dp-srm": our_step(srm, ByLayers, inputs, targets),
    }
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for _ in range(rounds):
        for name, step in kinds.items():
            start = time.perf_counter()
            step()
            times[name].append(time.perf_counter() - start)
    middle = {name: float(np.median(taken[WARM:])) for name, taken in times.items()}
    return [
        part_of("dp-sgd step", middle["dp-sgd"], middle["opacus"], "Opacus", must=1.2, aim=1.0),
        part_of("dp-srm step", middle["dp-srm"], middle["opacus"], "Opacus DP-SGD", must=2.2, aim=2.0),
        part_of("dp-sgd by torch.func", middle["dp-sgd by torch.func"], middle["opacus"], "Opacus", None, None),
    ]


def print_steps() -> None:
    print(
        f"{describe()}; {torch.get_num_threads()} threads; median of {ROUNDS - WARM} alternating steps, batch {BATCH}"
    )
    print("| what | measured | must | aim | reached | times |", "|---|---|---|---|---|---|", sep="\n")
    for ratio in steps():
        print(ratio.row())


def smallest() -> None:
    for ratio in steps(WARM + 1, batch=8):
        print(ratio.row())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=["steps"])
    parser.add_argument("--threads", type=int, default=1)
    torch.set_num_threads(parser.parse_args().threads)
    print_steps()
