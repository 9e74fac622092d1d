"""The tables and figures of the papers: a file for each, named after it, and files that several of them share."""

from __future__ import annotations

from importlib import import_module

from thresher_papers.experiments.experiment import Experiment

__all__ = ["NAMES", "find_experiments"]

FILES = {
    "x1": "dp_ight_figure_1ab",
    "x2": "dp_ight_figure_1cd",
    "x3": "dp_ight_table_2",
    "x4": "dp_ight_table_3",
    "x5": "dpsl_kt_figure_2ab",
    "x6": "dpsl_kt_figure_2cd",
    "x7": "dpsl_kt_table_2",
    "x8": "dpsl_kt_table_3",
    "x9": "ldp_figure_1",
    "x10": "ldp_figure_2",
    "x11": "ldp_appendix",
    "x12": "thesis_table_4_2",
    "x13": "thesis_table_4_3",
    "x14": "thesis_figure_4_2",
    "x17": "thesis_table_5_2",
    "x18": "thesis_figure_5_5",
    "x20": "thesis_figure_5_2",
    "x21": "thesis_figure_6_1",
    "x22": "thesis_figure_6_2",
    "x23": "thesis_figure_6_7",
    "x24": "thesis_table_6_1",
    "x25": "thesis_table_6_2",
}
"""The experiments by the name that the command line and the pages of results have for them."""

NAMES = tuple(FILES)


def find_experiments(names: list[str]) -> list[Experiment]:
    """By name, in any spelling of case; all of them if none is named."""
    wanted = [name.lower() for name in names] or list(NAMES)
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        raise ValueError(f"ID={unknown[0]!r} is no experiment; it must be one of {', '.join(NAMES)}, or list")
    return [import_module(f"thresher_papers.experiments.{FILES[name]}").EXPERIMENT for name in wanted]
