"""The import rules of the architecture, checked on the source: who may touch rows, noise and sensitivities."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import thresher

ROOT = Path(thresher.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def room(path):
    """The first part of a module's name below thresher: "plan", "vaults", "algorithms", ..."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(path):
    """The rooms a file imports, at the top or inside a function, absolutely or relatively."""
    package = ("thresher", *path.relative_to(ROOT).parent.parts)
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join((*base, node.module) if node.module else base)
            names = [f"{module}.{alias.name}" for alias in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("thresher.")}
    return rooms


def importers(name):
    return {room(path) for path in FILES if name in imports(path)}


def files_of(name):
    return [path for path in FILES if room(path) == name]


def test_the_import_reader_sees_every_kind_of_import(tmp_path, monkeypatch):
    source = "import thresher.engines.dense\nfrom thresher import losses\nfrom ..randomness import NoiseSource\n"
    source += "def late():\n    from thresher.plan import Plan\n    from .. import clipping\nimport numpy.random\n"
    (tmp_path / "algorithms").mkdir()
    path = tmp_path / "algorithms" / "bad.py"
    path.write_text(source)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert imports(path) == {"engines", "losses", "randomness", "plan", "clipping"}


@pytest.mark.parametrize("path", files_of("algorithms"), ids=lambda path: path.stem)
def test_algorithms_touch_no_row_and_draw_no_noise(path):
    assert not imports(path) & {"engines", "randomness", "losses"}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("engines", {"engines", "vaults"}),
        ("losses", {"engines", "vaults", "plan", "experiments"}),  # which judge models exactly
        ("randomness", {"randomisers", "vaults", "fitting", "local", "audit", "torch", "federated", "experiments"}),
        ("audit", {"audit", "report", "display", "cli"}),
        ("torch", {"torch", "experiments"}),  # some of which train networks
    ],
)
def test_rows_losses_noise_and_attacks_are_handled_only_where_they_belong(name, allowed):
    assert importers(name)
    assert importers(name) <= allowed


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("warnings", set()),
        ("budget", {"warnings"}),
        ("subsampling", {"budget"}),
        ("accounting", {"budget", "subsampling"}),
        ("dithered", set()),
        ("skellam", set()),
        ("releases", {"accounting", "subsampling", "budget", "dithered", "skellam"}),
    ],
)
def test_the_privacy_core_depends_on_nothing_above_it(name, allowed):
    assert files_of(name)
    assert set().union(*map(imports, files_of(name))) <= {*allowed, name}


CHAIN = [
    "budget", "accounting", "releases", "plan", "certificate", "ledger", "vaults", "algorithms",
    "fitting", "models", "estimators", "loading", "cli",
]  # fmt: skip


@pytest.mark.parametrize("name", CHAIN[:-1])
def test_dependencies_point_one_way(name):
    above = set(CHAIN[CHAIN.index(name) + 1 :])
    assert files_of(name)
    assert not {path.name for path in files_of(name) if imports(path) & above}


NOISELESS = [
    "budget",
    "subsampling",
    "dithered",
    "skellam",
    "accounting",
    "releases",
    "penalties",
    "clipping",
    "losses",
    "plan",
    "polytopes",
    "measurements",
    "randomisers",
    "vaults",
    "engines",
    "models",
    "local_estimators",
    "report",
    "torch",
]


SECRETS = {"additive.py", "secret_shares.py", "masks.py", "spu_worker.py", "table.py"}


@pytest.mark.parametrize("name", [*NOISELESS, "algorithms", "fitting", "estimators", "certificate"])
def test_random_bits_come_from_one_place_only(name):
    source = "\n".join(path.read_text() for path in files_of(name))
    assert source
    assert not re.search(r"\b(np|numpy)\.random\b|^\s*(import|from) (random|secrets|randomgen)\b", source, re.MULTILINE)


def test_parties_draw_secrets_of_their_own_but_no_noise():
    """Keys, masks and shares are secrets; coins are the servers' of SPU, which run in an environment of their own."""
    drawing = r"\b(np|numpy)\.random\b|^\s*(import|from) (random|secrets|randomgen)\b|urandom"
    found = {path.name for path in files_of("federated") if re.search(drawing, path.read_text(), re.MULTILINE)}
    assert found == SECRETS


def test_torch_draws_random_numbers_for_made_up_inputs_only():
    drawing = r"torch\.(rand|normal|bernoulli|poisson|multinomial|seed|manual_seed|Generator)|\.(normal|uniform)_\("
    assert {path.name for path in files_of("torch") if re.search(drawing, path.read_text())} == {"probe.py"}


def doubled_sensitivities(source):
    """Products of a literal 2 with something named after a clip or a sensitivity.

    Round-off bounds are no sensitivities: a product with a factor of that name is left out.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
            factors = [ast.unparse(factor) for factor in _factors(node)]
            named = [re.search("clip|sensitiv", factor) for factor in factors]
            if any(factor in ("2", "2.0") for factor in factors) and any(named) and "ROUND_OFF" not in factors:
                found.append(ast.unparse(node))
    return found


def _factors(node):
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return _factors(node.left) + _factors(node.right)
    return [node]


@pytest.mark.parametrize("source", ["2 * clip / n", "clip / n * 2.0", "2 * (self.clip / n)", "x = 2 * sensitivity(c)"])
def test_a_literal_factor_of_two_would_be_noticed(source):
    assert doubled_sensitivities(source)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_adjacency_alone_says_how_many_clips_neighbours_are_apart(path):
    assert doubled_sensitivities(path.read_text()) == []


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_thresher_does_not_load_heavy_packages():
    """pandas and pyarrow are not listed: scikit-learn loads them itself where they are installed."""
    loaded = run("import sys, thresher; print(*{name.split('.')[0] for name in sys.modules})").stdout.split()
    assert "thresher" in loaded
    heavy = {"dp_accounting", "typer", "rich", "matplotlib", "polars", "torch", "dask", "distributed", "flwr"}
    assert not (heavy | {"cryptography"}) & set(loaded)


@pytest.mark.parametrize(
    "package", ["dp_accounting", "pandas", "polars", "pyarrow", "typer", "rich", "matplotlib", "dask", "distributed"]
)
def test_thresher_can_be_imported_where_a_heavy_package_is_missing(package):
    outcome = run(f"import sys; sys.modules[{package!r}] = None; import thresher; print(thresher.Budget(1, 0.1))")
    assert outcome.stdout.startswith("Budget"), outcome.stderr


MISSING = """
import sys
class Missing:
    def find_spec(self, name, *_):
        if name == {package!r}:
            raise ModuleNotFoundError(name=name)
sys.meta_path.insert(0, Missing())
import thresher
print(thresher.Budget(1, 0.1))
import thresher.torch
"""


@pytest.mark.parametrize("package", ["torch", "opacus"])
def test_the_torch_room_says_what_is_missing(package):
    """SciPy looks for torch among the modules, so an entry of None, as above, would disturb it."""
    outcome = run(MISSING.format(package=package))
    assert outcome.stdout.startswith("Budget"), outcome.stderr
    assert "thresher.torch needs one more package" in outcome.stderr
    assert "pip install 'thresher[torch]'" in outcome.stderr


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("skellam_aggregation", "cryptography", "flower"),
        ("secagg", "cryptography", "flower"),
        ("flower", "flwr", "flower"),
    ],
)
def test_the_federated_room_says_what_is_missing(module, package, extra):
    outcome = run(f"import sys; sys.modules[{package!r}] = None; import thresher.federated.{module}")
    assert outcome.returncode != 0
    assert f"one more package ({package})" in outcome.stderr
    assert f"pip install 'thresher[{extra}]'" in outcome.stderr
