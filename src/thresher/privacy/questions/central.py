"""Questions that a curator answers, who holds all rows: choices, averages, minimisers, and what is made of others."""

from __future__ import annotations

import math

from thresher.privacy.budget import Adjacency
from thresher.privacy.facts import PublicFacts, Settings
from thresher.privacy.questions.base import CertifiedSearch, Clips, Question
from thresher.privacy.sensitivity import (
    counts_sensitivity,
    gradient_sensitivity,
    gram_sensitivity,
    mean_loss_sensitivity,
    minimiser_sensitivity,
    momentum_clip,
)

__all__ = [
    "AnyQuestion",
    "BatchGradient",
    "BatchMomentum",
    "BestOfTrials",
    "Categories",
    "Gradient",
    "GradientAsPrinted",
    "Gram",
    "Labels",
    "LabelsAsPrinted",
    "Mean",
    "Minimiser",
    "Moments",
    "NearMaximum",
    "Quantile",
    "RestrictedGradient",
    "Score",
    "Selection",
    "StepLength",
    "TiltedMinimiser",
    "Vertex",
    "Votes",
]


# -- averages over the rows -------------------------------------------------------------------------------------------


class Gradient(Question):
    """The mean gradient of the loss."""

    name = "gradient"
    words = "in which direction the coefficients should move"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return settings["clip"], settings["clip"]


class GradientAsPrinted(Question):
    """A mean gradient with noise as a paper prints it, which has no price."""

    name = "printed gradient"
    words = "in which direction the coefficients should move, with noise as printed"
    of_rows_only = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)


class RestrictedGradient(Question):
    """The mean gradient on public columns, in units of their bounds, or in a public basis."""

    name = "restricted gradient"
    words = "in which direction the coefficients of the columns in use should move"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        only = settings["clip"] * facts.norm_in_units(columns)
        return only, only


class Mean(Question):
    """The mean of public columns, in units of their bounds."""

    name = "mean"
    words = "what the columns in use are on the average"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return 0.0, facts.norm_in_units(columns)  # of the row norm, which is a private answer


class Moments(Question):
    """The mean squares of public columns, over their bounds."""

    name = "moments"
    words = "how large the values of the columns in use are"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 0.5, math.sqrt(facts.d) / 2

    def objection_to(self, clip: float) -> str | None:
        columns = 4 * clip * clip
        if math.isclose(columns, max(1, round(columns)), rel_tol=CLOSE):
            return None
        return f"a clip of {clip:.6g} is not half the root of a number of columns"


class Gram(Question):
    """The mean of x x' over public columns, in units of their bounds, or in a public basis."""

    name = "gram"
    words = "how the columns in use vary together"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gram_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return 0.0, facts.norm_in_units(columns) ** 2  # of the row norm, which is a private answer


class BatchGradient(Question):
    """The gradient of a random batch. Its sensitivity is that of a release, which knows the size of the batch."""

    name = "sampled gradient"
    words = "in which direction the coefficients should move, by a random batch of {rows}"
    of_rows_only = False
    of_several_outputs = True

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return settings["clip"], settings["clip"]


class BatchMomentum(Question):
    """A step of a recursive momentum by a random batch. Its sensitivity is that of a release, as above."""

    name = "sampled momentum"
    words = "how that direction changed, by a random batch of {rows}"
    of_rows_only = False
    of_several_outputs = True

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        """The clip of changes follows the moves, below what the settings allow."""
        clip, largest, momentum = settings["clip"], settings["difference_clip"], settings["momentum"]
        return momentum_clip(clip, 0.0, momentum), momentum_clip(clip, largest, momentum)


# -- choices among public candidates, by scores that are sums over the rows -------------------------------------------


class Selection(Question):
    """The columns with the largest entries of a mean gradient; of several outputs, with the longest."""

    name = "selection"
    words = "which columns go along most with what is not explained yet"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        only = settings.get("selection_clip", settings["clip"])
        return only, only


class Votes(Question):
    """The columns that most blocks of rows vote for."""

    name = "votes"
    words = "which columns most blocks of {rows} would select"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return 1.0  # one row is in one block, whose votes count once each, for either adjacency

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0


class Quantile(Question):
    """The public level that a share of the rows does not exceed."""

    name = "quantile"
    words = "at which size the values of a quantity should be cut off"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return 1.0  # one row moves one rank, for either adjacency

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0


class NearMaximum(Question):
    """The lowest public level above which there are hardly any rows."""

    name = "near maximum"
    words = "which size of a quantity hardly any of the {rows} exceed"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return 1.0  # the scores of all levels move the same way, none by more than 1 further than another

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0


class Vertex(Question):
    """The vertex of a public polytope that the loss falls towards most."""

    name = "vertex"
    words = "along which column to move next"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        if "radius" not in settings:
            return 0.0, math.inf  # of a polytope that is not listed
        only = settings["clip"] * settings["radius"] * facts.bounds.largest_entry(facts.d)
        return only, only


class StepLength(Question):
    """The point on a line with the least mean loss."""

    name = "step length"
    words = "how far to move"
    of_rows_only = False
    of_several_outputs = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return mean_loss_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return settings["loss_clip"], settings["loss_clip"]


class Score(Question):
    """The mean score of held-out rows, by which trials are chosen."""

    name = "score"
    words = "how well a model does on rows it was not fitted to"
    of_rows_only = False

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return mean_loss_sensitivity(clip, n, adjacency)

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0


CLOSE = 1e-9  # relative: what is computed twice from the same numbers is as close as that


# -- minimisers of the regularised loss, which are searched for -------------------------------------------------------


class Minimiser(Question):
    """The minimiser itself (erratum E-7: it is known up to a certified distance)."""

    name = "minimiser"
    words = "the best coefficients, found at once"
    of_rows_only = False
    searched = True
    certified = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return _moved(self, clip, n, adjacency, search)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return settings["clip"], settings["clip"]


class Labels(Question):
    """Predictions of a minimiser for public rows; the clip is a row's, times the norm of the public rows."""

    name = "labels"
    words = "what a model of the rows predicts for public rows"
    of_rows_only = False
    searched = True
    certified = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return _moved(self, clip, n, adjacency, search)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        return 0.0, math.inf  # of public rows that are not listed


class TiltedMinimiser(Question):
    """The minimiser of a loss with a random linear term, whose noise hides a gradient."""

    name = "perturbed minimiser"
    words = "the best coefficients for a randomly tilted loss"
    of_rows_only = True
    searched = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return gradient_sensitivity(clip, n, adjacency)

    def clips_of_settings(self, facts: PublicFacts, settings: Settings, columns: int) -> Clips:
        only = settings["clip"] * facts.norm_in_units(columns)
        return only, only


class LabelsAsPrinted(Question):
    """Predictions of a teacher that is not stable (erratum E-5): no number bounds how far a row moves them."""

    name = "printed labels"
    words = "what a model of the rows predicts for public rows, with noise as printed"
    of_rows_only = True


def _moved(question: Question, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None) -> float:
    if search is None:
        raise ValueError(f"a {question} moves as far as its ridge lets it; give the search")
    return minimiser_sensitivity(clip, n, adjacency, search.ridge, search.tolerance)


# -- texts that nobody has listed -------------------------------------------------------------------------------------


class Categories(Question):
    """The texts of a column that many rows hold."""

    name = "categories"
    words = "which texts of a column many rows hold"
    of_rows_only = True

    def sensitivity(self, clip: float, n: int, adjacency: Adjacency, search: CertifiedSearch | None = None) -> float:
        return counts_sensitivity(adjacency)

    def clips_of_bounds(self, facts: PublicFacts) -> Clips:
        return 1.0, 1.0


# -- what others ask, whose own rules hold for what they answer -------------------------------------------------------


class AnyQuestion(Question):
    """Whatever is asked while running, within a cap."""

    name = "any"
    words = "whatever is decided on while running, within a cap"
    of_rows_only = False
    answered_as = "any"


class BestOfTrials(Question):
    """What a secret number of trials ask."""

    name = "trials"
    words = "which of a secret number of trials is best"
    of_rows_only = False
    answered_as = "any"
