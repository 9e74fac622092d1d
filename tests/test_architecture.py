"""The import rules of the architecture, checked on the source: who may touch rows, noise and sensitivities."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

import house
import thresher

FLOORS = [set(floor) for floor in house.FLOORS]
ROOT = Path(thresher.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))


def module(path):
    """A file's dotted name below thresher: "privacy.plan", "vaults.central.rows", "data.schema", ..."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def room(path):
    """The first part of a module's name below thresher: "privacy", "vaults", "algorithms", ..."""
    return path.relative_to(ROOT).with_suffix("").parts[0]


def imports(path):
    """What a file imports of thresher, at the top or inside a function, absolutely or relatively, as dotted names."""
    package = ("thresher", *path.relative_to(ROOT).parent.parts)
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else ()
            source = ".".join((*base, node.module) if node.module else base)
            names |= {f"{source}.{alias.name}" for alias in node.names}
    return {name.removeprefix("thresher.") for name in names if name.startswith("thresher.")}


def within(name, places):
    """Whether a dotted name is one of the places, or lies in one."""
    return any(name == place or name.startswith(f"{place}.") for place in places)


def files_of(*places):
    return [path for path in FILES if within(module(path), places)]


def test_the_import_reader_sees_every_kind_of_import(tmp_path, monkeypatch):
    source = "import thresher.vaults.engines.dense\nfrom thresher import losses\nfrom ..randomness import NoiseSource\n"
    source += (
        "def late():\n    from thresher.privacy.plan import Plan\n    from .. import clipping\nimport numpy.random\n"
    )
    (tmp_path / "algorithms").mkdir()
    path = tmp_path / "algorithms" / "bad.py"
    path.write_text(source)
    monkeypatch.setattr(sys.modules[__name__], "ROOT", tmp_path)
    assert imports(path) == {
        "vaults.engines.dense", "losses", "randomness.NoiseSource", "privacy.plan.Plan", "clipping",
    }  # fmt: skip


def test_the_pictures_of_the_house_are_drawn_from_this_code():
    """If not: ./dev run python tools/house.py"""
    assert house.draw_floors() == (house.FIGURES / "floors.svg").read_text()
    assert house.draw_journey() == (house.FIGURES / "journey.svg").read_text()


def test_every_file_is_in_a_room_of_a_floor():
    assert {room(path) for path in FILES if path.name not in ("__init__.py", "accounting.py")} <= set().union(*FLOORS)


@pytest.mark.parametrize("floor", range(len(FLOORS)))
def test_imports_point_down_or_to_a_neighbour(floor):
    above = set().union(*FLOORS[floor + 1 :], set())
    looking_up = {
        f"{module(path)} -> {name}"
        for path in FILES if room(path) in FLOORS[floor]
        for name in imports(path) if name.split(".")[0] in above
    }  # fmt: skip
    assert looking_up == set()


def defined_twice(sources):
    """Names of classes that several files define, with these files."""
    places = defaultdict(list)
    for name, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(name)
    return {name: files for name, files in places.items() if len(files) > 1}


def test_no_two_classes_have_one_name():
    known = {"Answer": ["privacy.plan", "privacy.profiles"]}  # what a vault gave; a protocol of what is composed
    twice = defined_twice({module(path): path.read_text() for path in FILES})
    assert {name: files for name, files in twice.items() if known.get(name) != files} == {}


def test_a_class_that_is_defined_twice_is_seen():
    assert defined_twice({"a": "class One: pass", "b": "def f():\n    class One: pass"}) == {"One": ["a", "b"]}


def reaches_into_other_files(source):
    """Underscore names that a file takes of what is not its own: imported, or of another object."""
    tree = ast.parse(source)
    own = {node.name for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    own |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            (own if _is_self(node.value) else found).add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            found |= {alias.name for alias in node.names}
    return {name for name in found - own if re.match("_[a-z]", name)}


def _is_self(node):
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


BREAKING_IN = {
    "audit.reopening",  # opens the vault of a game again
    "federated.mpyc_worker.runtime",  # MPyC has no other way
    "federated.mpyc_worker.serve", "federated.spu_worker",  # os._exit
    "torch.gradients", "torch.probe",  # hooks of PyTorch's modules
}  # fmt: skip


def test_no_file_reaches_into_another():
    names = {module(path): reaches_into_other_files(path.read_text()) for path in FILES}
    friends = {"models.linear": {"_outputs_declared", "_target_range", "_read", "_published"}}  # of its base classes
    reaching = {name: found - friends.get(name, set()) for name, found in names.items() if name not in BREAKING_IN}
    assert {name: found for name, found in reaching.items() if found} == {}
    assert reaches_into_other_files("from a import _b\nc._d\nself._e\nf._e") == {"_b", "_d"}


def test_the_wheel_holds_the_library_alone_which_knows_nothing_of_the_papers():
    configured = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert configured["packages"]["find"] == {"where": ["src"]}
    assert {path.name for path in ROOT.parent.iterdir() if path.suffix != ".egg-info"} == {"thresher"}
    assert not [path for path in FILES if "thresher_papers" in path.read_text()]


def test_rooms_form_no_cycle_lazily_or_eagerly():
    rooms = set().union(*FLOORS)
    known = {each: {to.split(".")[0] for path in FILES if room(path) == each for to in imports(path)} for each in rooms}
    for each in rooms:
        reached, left = set(), [each]
        while left:
            new = (known.get(left.pop(), set()) & rooms) - reached
            reached |= new
            left += new
        assert each not in {to for other in reached - {each} for to in known[other]}, each


@pytest.mark.parametrize("path", files_of("algorithms"), ids=lambda path: path.stem)
def test_algorithms_touch_no_row_and_draw_no_noise(path):
    behind = ("vaults.engines", "vaults.randomness", "vaults.losses", "vaults.kernels")
    assert not {name for name in imports(path) if within(name, behind)}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("vaults.engines", ("vaults",)),
        ("vaults.losses", ("vaults", "models", "local", "estimates", "audit")),
        ("vaults.randomness", ("vaults", "models.estimator", "local", "audit", "torch", "federated")),
        ("audit", ("audit", "cli")),
        ("torch", ("torch",)),
    ],
)
def test_rows_losses_noise_and_attacks_are_handled_only_where_they_belong(name, allowed):
    importers = {module(path) for path in FILES if any(within(each, (name,)) for each in imports(path))}
    assert importers
    assert {importer for importer in importers if not within(importer, (name, *allowed))} == set()


def test_the_privacy_floor_knows_no_table_and_no_model():
    assert files_of("privacy")
    known = set().union(*map(imports, files_of("privacy")))
    assert {name for name in known if not within(name, ("privacy",))} == set()


ROUNDING = {"norm_error", "ROUND_OFF", "most_present", "round_off"}
MOMENTUM = {"momentum_clip"}  # a clip made of two others


def test_vaults_and_the_verifier_ask_releases_how_far_a_row_moves_an_answer():
    """Those who hold rows, or judge certificates, know no sensitivity of their own."""
    asking = files_of("vaults", "torch", "federated", "estimates", "privacy.verification", "privacy.plan")
    known = {name.rpartition(".")[2] for name in set().union(*map(imports, asking)) if "privacy.sensitivity" in name}
    assert known - ROUNDING - MOMENTUM == {"CAPACITY", "CERTIFIED", "SUM_ERROR"}


PUBLIC_DRAWS = {"algorithms.public_rows"}  # rows of nobody

NOISELESS = [
    "privacy",
    "data.schema",
    "data.reading",
    "data.tables",
    "vaults.clipping",
    "vaults.losses",
    "vaults.penalties",
    "vaults.polytopes",
    "vaults.randomisers",
    "vaults.central",
    "vaults.engines",
    "algorithms",
    "models",
    "local.estimators",
    "report",
    "torch",
]


SECRETS = {"spu.py", "secret_shares.py", "crypto.py", "seals.py", "spu_worker.py", "runtime.py"}


@pytest.mark.parametrize("name", NOISELESS)
def test_random_bits_come_from_one_place_only(name):
    source = "\n".join(path.read_text() for path in files_of(name) if module(path) not in PUBLIC_DRAWS)
    source = re.sub(r"^ *>>>.*", "", source, flags=re.MULTILINE)  # users' own, in examples
    assert source
    assert not re.search(r"\b(np|numpy)\.random\b|^\s*(import|from) (random|secrets|randomgen)\b", source, re.MULTILINE)


def test_parties_draw_secrets_of_their_own_but_no_noise():
    """Keys, masks and shares are secrets; coins are the servers' of SPU, which run in an environment of their own."""
    drawing = r"\b(np|numpy)\.random\b|^\s*(import|from) (random|secrets|randomgen)\b|urandom"
    sources = {path.name: re.sub(r"^ *>>>.*", "", path.read_text(), flags=re.M) for path in files_of("federated")}
    found = {name for name, source in sources.items() if re.search(drawing, source, re.MULTILINE)}
    assert found == SECRETS


def test_torch_draws_random_numbers_for_made_up_inputs_only():
    drawing = r"torch\.(rand|normal|bernoulli|poisson|multinomial|seed|manual_seed|Generator)|\.(normal|uniform)_\("
    sources = {path.name: re.sub(r"^ *>>>.*", "", path.read_text(), flags=re.MULTILINE) for path in files_of("torch")}
    assert {name for name, source in sources.items() if re.search(drawing, source)} == {"probe.py"}


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
