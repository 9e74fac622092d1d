"""Every benchmark can be imported and runs: its smallest part, which says nothing about speed or accuracy."""

import sys
from importlib import import_module
from importlib.metadata import packages_distributions

import pytest

from repository import BENCHMARKS, ROOT

SCRIPTS = sorted([*BENCHMARKS.glob("*.py"), *(ROOT / "tools").rglob("*.py")])
NAMES = [path.stem for path in SCRIPTS if path.parent.name == "benchmarks" and "__main__" in path.read_text()]
NEEDED = {  # packages of extras
    "aggregation": ["cryptography", "mpyc"],
    "dask_rounds": ["dask", "distributed"],
    "dense": ["torch", "opacus"],
    "federated_sparse": ["mpyc"],
    "masking": ["cryptography"],
    "neural": ["torch", "opacus"],
    "real_tables": ["pandas"],
}
PINNED = {line.split("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
PACKAGES = {*sys.stdlib_module_names, *packages_distributions(), *PINNED}


@pytest.mark.parametrize("name", [path.stem for path in SCRIPTS])
def test_no_script_is_named_like_a_package(name):
    """The folder of a script comes first where Python looks: a package that imports the name would get the script."""
    assert name not in PACKAGES


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_part_of_a_benchmark_runs(name, capsys):
    for package in NEEDED.get(name, ()):
        pytest.importorskip(package)
    import_module(name).smallest()
    assert capsys.readouterr().out
