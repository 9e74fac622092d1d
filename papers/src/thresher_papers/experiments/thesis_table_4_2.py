"""Table 4.2 of the thesis: a9a."""

from __future__ import annotations

from thresher_papers.experiments.dense_tables import Printed, dense_experiment

__all__ = ["EXPERIMENT"]

EXPERIMENT = dense_experiment(
    "x12",
    "a9a",
    "Thesis, Table 4.2 and Figure 4.1",
    {
        ("dp-gd", 0.2): Printed(0.4155, 0.0107, 20, 0.0953),
        ("dp-agd", 0.2): Printed(0.3713, 0.0043, 360, 0.0437),
        ("rrpsgd", 0.2): Printed(0.4019, 0.0033, 8, 0.2175),
        ("dp-srm", 0.2): Printed(0.3579, 0.0009, 4, 0.0528),
        ("dp-gd", 0.5): Printed(0.3859, 0.0057, 20, 0.0866),
        ("dp-agd", 0.5): Printed(0.3627, 0.0038, 365, 0.0402),
        ("rrpsgd", 0.5): Printed(0.3861, 0.0028, 10, 0.1454),
        ("dp-srm", 0.5): Printed(0.3506, 0.0011, 5, 0.0502),
    },
    storm=0.3346,
    about="Rows are clipped to sqrt(14), which holds for every person: 14 attributes.",
)
