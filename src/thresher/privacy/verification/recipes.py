"""What each algorithm releases, how often and in which order, by its settings: what certificates must list."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from thresher.privacy.facts import Settings
from thresher.privacy.pricing import is_order_of
from thresher.privacy.releases import JointRelease, Release, SampledGradient, SampledRelease

__all__ = ["RECIPES", "problems_of_order", "problems_of_recipe"]

Asked = dict[str, int]
"""How often each question is asked."""


def problems_of_recipe(algorithm: str, settings: Settings, columns: int, releases: Iterable[Release]) -> list[str]:
    """Where the releases are not those that the algorithm makes with these settings on so many columns."""
    releases = list(releases)
    if algorithm not in RECIPES:
        return []
    listed = Counter[str]()
    for release in releases:
        listed[release.question.name] += release.times
    try:
        recipes = [Counter(recipe) for recipe in RECIPES[algorithm](settings, columns)]
    except (LookupError, TypeError) as error:
        return [f"the settings of {algorithm} are not its own: {error!r}"]
    classes = settings.get("classes", 1)  # one against the rest asks everything for each class
    if listed not in [Counter({question: classes * times for question, times in each.items()}) for each in recipes]:
        return [f"{algorithm} with these settings does not ask for {dict(listed)}"]
    return [problem for release in releases for problem in _problems_of_batch(release, settings)]


def _problems_of_batch(release: Release, settings: Settings) -> list[str]:
    if isinstance(release, SampledRelease):
        known = (settings["first_batch"],) if _is_first(release, settings) else (settings["batch"],)
        return [] if release.batch in known else [f"{release!r} is of other batches than the settings say"]
    if isinstance(release, JointRelease) and release.touched != settings["coordinates"]:
        return [f"{release!r} is of other coordinates than the {settings['coordinates']} of the settings"]
    return []


def _is_first(release: Release, settings: Settings) -> bool:
    return isinstance(release, SampledGradient) and settings.get("first_batch", 0) > 0


def _rounds(*questions: str) -> Callable[[Settings, int], list[Asked]]:
    def asked(settings: Settings, columns: int) -> list[Asked]:
        rounds: int = settings["rounds"]
        return [dict.fromkeys(questions, rounds)]

    return asked


def _once(question: str) -> Callable[[Settings, int], list[Asked]]:
    return lambda settings, columns: [{question: 1}]


def _pursuit(settings: Settings, columns: int) -> list[Asked]:
    """With moments or Gram matrices; with or without an intercept that is started privately."""
    stages, rounds = settings["stages"], settings["stages"] + settings["refinements"]
    by_moments = {"selection": stages, "moments": stages, "restricted gradient": rounds}
    by_grams = {"selection": stages, "gram": rounds, "restricted gradient": rounds}
    return [
        {**each, "quantile": quantiles * rounds + median, "restricted gradient": rounds + start}
        for each, quantiles in ((by_moments, 2), (by_grams, 3))
        for median, start in ((0, 0), (1, 0), (0, 1))
    ]


def _newton(settings: Settings, columns: int) -> list[Asked]:
    """Without an intercept, or with one, which starts at a median or at the shares of the classes, and is corrected at
    the end unless rows are few."""
    stages, end = settings["stages"], int(not settings["weak"])
    picked, steps = sum(picks > 0 for picks, *_ in stages), sum(steps for _, steps, _ in stages)
    means = picked if stages[0][0] else 1
    asked = {"gram": len(stages), "restricted gradient": steps, "near maximum": len(stages) + picked + steps}
    asked |= {"selection": picked} if picked else {}
    asked["gram"] += settings["why_no_intervals"] is None  # the second moments of gradients
    centred = {**asked, "mean": means, "near maximum": asked["near maximum"] + means}
    return [
        asked,
        {**centred, "quantile": 1, "near maximum": centred["near maximum"] + end, "restricted gradient": steps + end},
        {**centred, "restricted gradient": steps + 1 + end},
    ]


def _peeling(settings: Settings, columns: int) -> list[Asked]:
    rounds: int = settings["rounds"]
    asked = {"selection": rounds, "restricted gradient": rounds}
    if settings["loop"] == "paper":
        return [asked]
    searched = {**asked, "near maximum": rounds, "step length": rounds + 1}
    ends = {"quantile": 1, "near maximum": rounds + 1, "restricted gradient": rounds + 1}  # of an intercept of numbers
    return [searched, {**searched, **ends}]


def _screened(settings: Settings, columns: int) -> list[Asked]:
    """Without an intercept, or with one, which for classes starts at their shares."""
    rounds: int = settings["rounds"]
    asked = {"mean": 1, "near maximum": rounds + 1}
    return [{**asked, "restricted gradient": count} for count in (rounds, 2 * rounds, 2 * rounds + 1)]


def _two_stage(settings: Settings, columns: int) -> list[Asked]:
    return [{"votes" if settings["stage_one"] == "votes" else "selection": 1, "perturbed minimiser": 1}]


def _dpsl_kt(settings: Settings, columns: int) -> list[Asked]:
    by_teacher: dict[str | None, Asked] = {
        "support": {"selection": 1, "labels": 1}, "convex": {"labels": 1}, None: {"printed labels": 1},
    }  # fmt: skip
    return [by_teacher[settings.get("teacher")]]


def _batches(settings: Settings, columns: int) -> list[Asked]:
    question = "gradient" if settings["sampling"] == "none" else "sampled gradient"
    return [{question: settings["rounds"]}]


def _momentum(settings: Settings, columns: int) -> list[Asked]:
    if not settings["first_batch"]:
        return [{"sampled momentum": settings["rounds"]}]
    later = {"sampled momentum": settings["rounds"] - 1}
    return [{**later, "sampled gradient": 1}, {**later, "gradient": 1}]


def _scaler(settings: Settings, columns: int) -> list[Asked]:
    return [{"quantile": (3 if settings["centre"] else 2) * columns}]


RECIPES: Mapping[str, Callable[[Settings, int], list[Asked]]] = {
    "newton": _newton, "pursuit": _pursuit, "dp-ight": _rounds("gradient"), "ight": _rounds("gradient"),
    "screened-ight": _screened, "peeling": _peeling, "two-stage": _two_stage, "dpsl-kt": _dpsl_kt,
    "output-perturbation": _once("minimiser"), "objective-perturbation": _once("perturbed minimiser"),
    "frank-wolfe": _rounds("vertex"), "noisy-frank-wolfe": _rounds("gradient"),
    "dp-gd": _batches, "dp-sgd": _batches, "dp-adam": _batches, "dp-lssgd": _batches, "dp-lsadam": _batches,
    "rrpsgd": _batches, "sgd": _batches, "lssgd": _batches, "dp-srm": _momentum, "storm": _momentum,
    "rajkumar-agarwal": _rounds("printed gradient"), "dp-agd": _once("any"),
    "ldp-iht": _rounds("local gradient"), "label-ldp-iht": _once("local labels"), "label-lasso": _once("local labels"),
    "private-search": _once("trials"), "private-scaler": _scaler, "column-shares": _once("gradient"),
    "categories": lambda settings, columns: [{"categories": columns}],
}  # fmt: skip
"""Several possibilities where bounds and budgets decide that no setting tells of."""


def problems_of_order(algorithm: str, settings: Settings, releases: Sequence[Release]) -> list[str]:
    """Where the order that the price relies on is not one in which the algorithm asks."""
    if "order" not in settings or algorithm not in IN_ORDER:
        return []
    if not is_order_of(releases, tuple(settings["order"])):
        return ["the order of the settings is not one of the listed releases"]
    order = settings["order"]
    of_column = 3 if settings.get("centre") else 2
    repeats = len(order) // of_column if algorithm == "private-scaler" else int(settings.get("classes", 1))
    parts = [order[at : at + len(order) // repeats] for at in range(0, len(order), len(order) // repeats)]
    names = [release.question.name for release in dict.fromkeys(releases)]
    asked = [(names[at], at) for at in parts[0]]
    in_turn = sorted(asked) == sorted(asked, key=lambda each: each[0])  # what asks the same is used as it is listed
    pattern = re.fullmatch(IN_ORDER[algorithm], "".join(f"{name};" for name, _ in asked))
    if in_turn and pattern and all(part == parts[0] for part in parts):
        return []
    return [f"{algorithm} does not ask in the order that the settings tell of"]


IN_ORDER: Mapping[str, str] = {
    "newton": "(restricted gradient;|quantile;)?(near maximum;selection;)?(near maximum;mean;)?"
    "(near maximum;gram;(near maximum;restricted gradient;)+)+(gram;)?((near maximum;)?restricted gradient;)?",
    "pursuit": "(restricted gradient;|quantile;)?"
    "(quantile;(selection;)?(moments;)?(quantile;gram;)?quantile;restricted gradient;)+",
    "screened-ight": "mean;near maximum;(near maximum;restricted gradient;)+"
    "|(restricted gradient;)?mean;near maximum;(near maximum;restricted gradient;restricted gradient;)+",
    "peeling": "(selection;restricted gradient;)+"
    "|(quantile;)?(near maximum;selection;restricted gradient;step length;)+step length;"
    "(near maximum;restricted gradient;)?",
    "two-stage": "(selection;|votes;)perturbed minimiser;",
    "dpsl-kt": "selection;labels;",
    "private-scaler": "quantile;quantile;(quantile;)?",
}
"""In which order those ask whose price relies on one, as a pattern of questions."""
