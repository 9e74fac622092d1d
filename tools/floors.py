"""The lowest versions that pyproject.toml allows, as requirements: ./dev floors installs exactly these, and tests.

Of the core and of extras that install in a minute. Torch, Flower and the documentation's packages are left out.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

EXTRAS = ("dask", "parquet", "report", "mpc", "postgres")


def floor(requirement: str) -> str:
    """``name[extra]==1.2`` for ``name[extra]>=1.2``; one that is pinned stays as it is."""
    found = re.fullmatch(r"([\w.-]+(?:\[[\w,]+\])?)(?:>=|==)([\w.]+)", requirement)
    if found is None:
        raise ValueError(f"{requirement!r} in pyproject.toml does not say which version is the lowest")
    return "{}=={}".format(*found.groups())


def floors(project: dict[str, object]) -> list[str]:
    """Of the core, of the extras, and of pandas, whose tables are read but which nothing requires."""
    core, extras = project["dependencies"], project["optional-dependencies"]
    assert isinstance(core, list)  # noqa: S101  (for the type checker)
    assert isinstance(extras, dict)  # noqa: S101
    tables = [requirement for requirement in extras["test"] if requirement.startswith(("pandas", "polars"))]
    return [floor(requirement) for requirement in (*core, *(each for name in EXTRAS for each in extras[name]), *tables)]


if __name__ == "__main__":
    content = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8"))
    print("\n".join(floors(content["project"])))
