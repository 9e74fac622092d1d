"""Files from strangers: each ends in clean output or in one line, and steers neither the program nor the terminal."""

import copy
import itertools
import json
import os
import sys
import threading

import numpy as np
import pytest
from click.testing import CliRunner
from typer.main import get_command

import thresher
from thresher import Certificate, Ledger, SparseClassifier, SparseRegressor, load_model
from thresher.cli.app import app
from thresher.report.words import DisplayableStream, displayable

HOSTILE = "\x1b]0;title\x07\x9b31m\u202e[/b][link=x]:bomb:\r\nThe certificate holds.\x00\u2066\ud800"
BOUNDS = ["--target", "stay", "--sparsity", "1", "--feature-bound", "1", "--target-bound", "0,1"]

COMMAND = get_command(app)  # once: it takes longer than most of what is run


def run(*arguments):
    return CliRunner().invoke(COMMAND, [str(argument) for argument in arguments])


def check_clean(ended, statuses=(0, 1, 2)):
    """No traceback, one line where it is refused, and nothing but printed characters and line ends."""
    assert ended.exception is None or isinstance(ended.exception, SystemExit), repr(ended.exception)
    assert ended.exit_code in statuses, ended.output
    if ended.exit_code == 2:
        assert len(ended.stderr.splitlines()) == 1
        assert ended.stderr.startswith("thresher: ")
    assert all(line.isprintable() for line in ended.output.replace("\xa0", " ").split("\n"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strange")
    table = np.random.default_rng(0).uniform(0, 1, (200, 3))
    np.savetxt(folder / "t.csv", table, delimiter=",", header="age,dose,stay", comments="")
    bounds = {"age": {"bounds": [0, 1]}, "dose": {"bounds": [0, 1]}, "stay": {"bounds": [0, 1], "role": "target"}}
    SparseRegressor.from_schema({"columns": bounds}, sparsity=1, epsilon=50.0).fit(folder / "t.csv").save(
        folder / "declared.json"
    )
    assert run("fit", folder / "t.csv", *BOUNDS, "--epsilon", "50", "--out", folder / "m.json").exit_code == 0
    three = SparseClassifier(2, classes=[0, 1, 2], epsilon=50.0, feature_bound=1.0)
    three.fit(table[:, :2], np.digitize(table[:, 2], [0.3, 0.6])).save(folder / "three.json")
    return folder


def places(value, path=()):
    """Where something can be put into parsed JSON."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


def with_entry(value, path, new):
    if not path:
        return new
    value = copy.copy(value)
    value[path[0]] = with_entry(value[path[0]], path[1:], new)
    return value


STRANGE = [None, True, HOSTILE, "/dev/zero", 10**12, -1, 1e308, 10**400, [], {}, [[HOSTILE]], {HOSTILE: HOSTILE}]


@pytest.mark.parametrize("name", ["m.json", "declared.json", "three.json"])
def test_models_with_anything_anywhere_predict_or_end_in_one_line(name, folder, tmp_path):
    model = json.loads((folder / name).read_text())
    path, data = tmp_path / "strange.json", folder / "t.csv"
    if name == "three.json":
        data = tmp_path / "two.csv"
        data.write_text("\n".join(line.rpartition(",")[0] for line in (folder / "t.csv").read_text().split("\n")))
    for where, new in itertools.product(places(model), STRANGE):
        if where[:1] == ("certificate",) and len(where) > 2:  # predictions need nothing of it
            continue
        path.write_text(json.dumps(with_entry(model, where, new)))
        check_clean(run("predict", path, data, "--json"))


def test_a_hostile_text_anywhere_in_a_certificate_is_shown_and_does_nothing(folder, tmp_path):
    model, path = json.loads((folder / "m.json").read_text()), tmp_path / "strange.json"
    for where in places(model):
        if isinstance(_at(model, where), str) and where[:1] == ("certificate",):
            path.write_text(json.dumps(with_entry(model, where, HOSTILE)))
            check_clean(run("verify", path))
    for name in ("notes", "assumptions"):
        strange = with_entry(model, ("certificate", name), [HOSTILE, "[/b]"])
        path.write_text(json.dumps(strange))
        ended = run("verify", path)
        check_clean(ended, (0, 1))
        assert "[/b]" in ended.output
        assert "\\x1b]0;title" in ended.output.replace("\n", "")


def _at(value, path):
    for key in path:
        value = value[key]
    return value


@pytest.mark.parametrize("where", ["feature_names", "classes"])
def test_names_of_features_and_classes_are_shown_and_do_nothing(where, folder, tmp_path):
    model = json.loads((folder / "three.json").read_text())
    names = [HOSTILE.replace("\ud800", ""), "[/b]", "plain"]
    strange = {**model, where: names[: 2 if where == "feature_names" else 3]}
    (tmp_path / "m.json").write_text(json.dumps(strange))
    shown = str(_unbound(tmp_path / "m.json").summary())
    assert "\\x1b]0;title\\x07\\x9b31m\\u202e[/b]" in shown
    assert all(line.isprintable() for line in shown.split("\n"))


def _unbound(path):
    """A model as it is, whether or not its certificate is that of another one."""
    return thresher.models.files._read(json.loads(path.read_text()))


def test_reports_of_strange_names_are_text(folder, tmp_path):
    model = json.loads((folder / "three.json").read_text())
    strange = {**model, "feature_names": ["<script>x</script>", HOSTILE.replace("\ud800", "")]}
    (tmp_path / "m.json").write_text(json.dumps(strange))
    _unbound(tmp_path / "m.json").report(tmp_path / "r.html")
    assert "<script>x" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_model_opens_no_other_file(folder, tmp_path):
    """A pipe nobody writes to would hang, and a device without an end take all memory."""
    os.mkfifo(tmp_path / "pipe")
    model = json.loads((folder / "m.json").read_text())
    for schema in (str(tmp_path / "pipe"), "/dev/zero", str(folder / "t.csv"), 5, ["a"]):
        (tmp_path / "m.json").write_text(json.dumps(with_entry(model, ("params", "schema"), schema)))
        found = []
        reader = threading.Thread(
            target=lambda found=found: found.append(run("predict", tmp_path / "m.json", folder / "t.csv")), daemon=True
        )
        reader.start()
        reader.join(60)
        assert found, f"{schema!r} is waited for"
        check_clean(found[0], (2,))
        assert "schema" in found[0].stderr


@pytest.mark.parametrize("columns", [10**12, 2**40, 0, -5, 2.5, True, "9", None])
def test_a_model_takes_no_more_room_than_it_needs(columns, folder, tmp_path):
    model = {**json.loads((folder / "m.json").read_text()), "n_features": columns, "feature_names": None}
    (tmp_path / "m.json").write_text(json.dumps(model))
    ended = run("predict", tmp_path / "m.json", folder / "t.csv")
    check_clean(ended, (2,))
    with pytest.raises(ValueError, match=r"m\.json"):
        load_model(tmp_path / "m.json")


DEEP = {
    "lists.json": "[" * 200_000,
    "tables.json": '{"a":' * 100_000,
    "model.json": '{"format": "thresher-model-1", "params": ' + "[" * 100_000,
    "long.json": '{"n_features": ' + "9" * 10_000 + "}",
}


@pytest.mark.parametrize("name", DEEP)
@pytest.mark.parametrize("command", ["predict", "verify", "ledger verify"])
def test_deep_json_ends_in_one_line(name, command, folder, tmp_path):
    (tmp_path / name).write_text(DEEP[name])
    Ledger(tmp_path / "b.db").create()
    words = {"ledger verify": ["ledger", "verify", tmp_path / "b.db", "--model", tmp_path / name]}
    check_clean(
        run(*words.get(command, [command, tmp_path / name]), *([folder / "t.csv"] * (command == "predict"))), (2,)
    )
    for read in (load_model, Certificate.read):
        with pytest.raises(ValueError, match=r"nested too deeply|damaged|digits|not a model|format|certificate"):
            read(tmp_path / name)


@pytest.mark.parametrize("text", ["a = " + "[" * 100_000, "a" + ".a" * 2_000 + " = 1", "a = " + "{a=" * 100_000])
def test_deep_toml_ends_in_one_line(text, folder, tmp_path):
    (tmp_path / "t.toml").write_text(text)
    for words in (
        ["schema", "check", folder / "t.csv", "--schema", tmp_path / "t.toml"],
        ["fit", folder / "t.csv", "--schema", tmp_path / "t.toml", "--out", tmp_path / "m.json"],
        ["federate", "plan", tmp_path / "t.toml"],
    ):
        check_clean(run(*words), (2,))


GOOD = {
    "table": {"delimiter": ",", "decimal": ".", "encoding": "utf-8"},
    "columns": {
        "age": {"bounds": [0, 1], "typical": 0.5, "unit": "years", "missing": "indicator", "outside": "clip"},
        "dose": {"bounds": [0.0, 1.0], "scale": True, "read_from_data": True},
        "stay": {"bounds": [0, 1], "role": "target"},
    },
    "others": {"role": "ignore"},
    "spent": {"epsilon": 1.0, "delta": 1e-6},
}
TOML = [
    '"\\u001B]0;x\\u0007[/b]\\u202E"',
    "true",
    "9" * 400,
    "-1",
    "1e308",
    "nan",
    "inf",
    "[]",
    "{}",
    "[[1]]",
    "1979-05-27",
]


def as_toml(value, path, text):
    """A table in TOML with ``text`` at one place."""
    if not path:
        return text
    return "{" + ", ".join(
        f"{json.dumps(key)} = {as_toml(inner, path[1:], text) if path[0] == key else _toml(inner)}"
        for key, inner in value.items()
    ) + "}"  # fmt: skip


def _toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + "}"
    return json.dumps(value)


def test_schemas_with_anything_anywhere_end_in_one_line_or_are_shown(folder, tmp_path):
    path = tmp_path / "t.toml"
    paths = [where for where in places(GOOD) if where and not isinstance(where[-1], int)]
    for where, text in itertools.product(paths, TOML):
        entries = {
            key: as_toml(value, where[1:], text) if key == where[0] else _toml(value) for key, value in GOOD.items()
        }
        path.write_text("\n".join(f"{key} = {value}" for key, value in entries.items()))
        check_clean(run("schema", "check", folder / "t.csv", "--schema", path), (0, 2))


def test_columns_with_hostile_names_are_shown_and_do_nothing(tmp_path):
    name = HOSTILE.replace("\ud800", "").replace("\r\n", " ").replace("\x00", "")
    table = np.random.default_rng(0).uniform(0, 1, 2000)
    (tmp_path / "t.csv").write_text(f"{name},stay\n" + "\n".join(f"{a},{a}" for a in table), encoding="utf-8")
    fitted = run("fit", tmp_path / "t.csv", *BOUNDS, "--epsilon", "50", "--out", tmp_path / "m.json")
    check_clean(fitted, (0,))
    assert "\\x1b]0" in fitted.stdout
    check_clean(run("predict", tmp_path / "m.json", tmp_path / "t.csv"), (0,))
    (tmp_path / "u.csv").write_text("a,stay\n1,2\n")
    check_clean(run("predict", tmp_path / "m.json", tmp_path / "u.csv"), (2,))
    drafted = run("schema", "draft", tmp_path / "t.csv", "--target", "stay")
    check_clean(drafted, (0,))
    check_clean(run("schema", "check", tmp_path / "t.csv", "--schema", tmp_path / "t.toml"), (0,))
    check_clean(
        run("fit", tmp_path / "t.csv", "--target", "no", "--feature-bound", "1", "--out", tmp_path / "n.json"), (2,)
    )


def test_names_in_a_ledger_are_shown_and_do_nothing(tmp_path):
    ledger = Ledger(tmp_path / "b.db")
    name = HOSTILE.replace("\ud800", "").replace("\x00", "")
    ledger.grant(name, 1.0, 1e-6)
    ledger.grant(name, 1.0, 1e-6, analyst=name)
    for words in (["show"], ["history", name], ["verify"], ["show", "--json"]):
        check_clean(run("ledger", words[0], tmp_path / "b.db", *words[1:]), (0,))


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\x00" + b"\xff" * 5000, b"\x1b[31m" * 1000])
def test_what_is_no_ledger_ends_in_one_line(content, tmp_path):
    (tmp_path / "b.db").write_bytes(content)
    (tmp_path / "b.db.key").write_bytes(b"k" * 32)
    for command in (["show"], ["history", "x"], ["verify"]):
        check_clean(run("ledger", command[0], tmp_path / "b.db", *command[1:]), (1, 2))


@pytest.mark.parametrize("index", [2**31 - 2, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**64, 10**30, -1])
@pytest.mark.parametrize("whole", [True, False])
def test_a_wild_index_of_svmlight_ends_in_one_line(index, whole, folder, tmp_path):
    (tmp_path / "parts").mkdir()
    path = tmp_path / "t.svm" if whole else tmp_path / "parts"
    lines = f"1 1:0.5 {index}:1\n0 2:0.5\n" if index > 0 else f"1 {index}:1 1:0.5\n0 2:0.5\n"
    (path if whole else path / "a.svm").write_text(lines)
    options = ["--feature-bound", "1", "--target-bound", "1", "--out", tmp_path / "m.json"]
    check_clean(run("fit", path, *options), (2,))
    model = json.loads((folder / "m.json").read_text())
    (tmp_path / "old.json").write_text(json.dumps({**model, "feature_names": None}))
    check_clean(run("predict", tmp_path / "old.json", path), (2,))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("option", ["--n", "--d", "--sparsity", "--epsilon", "--delta", "--feature-bound", "--signal"])
@pytest.mark.parametrize(
    "value", ["1" + "0" * 400, "-1", "nan", "inf", "1e308", "0", HOSTILE.replace("\ud800", "").replace("\x00", "")]
)
def test_plans_of_huge_numbers_end_in_one_line(option, value):
    given = {"--n": "1000", "--d": "20", "--sparsity": "2", option: value}
    ended = run("plan", "--no-simulate", *itertools.chain(*given.items()))
    assert ended.exception is None or isinstance(ended.exception, SystemExit), repr(ended.exception)
    if "Usage" not in ended.stderr:
        check_clean(ended, (0, 2))


def test_predictions_on_a_terminal_are_cleaned_and_in_a_pipe_they_are_not():
    class Lines(list):
        def write(self, text):
            self.append(text)
            return len(text)

    shown = Lines()
    DisplayableStream(shown).write("1,\x1b[31m\r\n")
    assert shown == ["1,\\x1b[31m\r\n"]


@pytest.mark.parametrize("text", ["plain", "größe\xa0(cm)", "年齢", "a\u202fb", "Σ β²", "🙂"])
def test_names_in_any_language_are_shown_as_they_are(text):
    assert displayable(text) == text


def test_whatever_steers_a_terminal_is_written_out():
    assert displayable("\x1b[0m\x07\x9b\x7f\r\n\t\u202e\u2066\u200b\u2028\ud800") == (
        r"\x1b[0m\x07\x9b\x7f\r\n\t\u202e\u2066\u200b\u2028\ud800"
    )
    for code in range(sys.maxunicode + 1):
        shown = displayable(chr(code))
        assert shown == chr(code) or (shown.isascii() and shown.isprintable())
        assert shown != chr(code) or not (code < 32 or 127 <= code < 160)


# -- what is no file --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such devices here")
@pytest.mark.parametrize("ending", ["csv", "npz", "svm", "parquet"])
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_table_that_may_never_end_is_refused(kind, ending, folder, tmp_path):
    strange = tmp_path / f"endless.{ending}"
    if kind == "device":
        strange.symlink_to("/dev/full")  # which, read, is zeros without end
    else:
        os.mkfifo(strange)
    for command in (["predict", folder / "m.json", strange], ["fit", strange, *BOUNDS, "--out", tmp_path / "new.json"]):
        ended = run(*command)
        check_clean(ended, (2,))
        assert "is not a file" in ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such devices here")
@pytest.mark.parametrize("command", ["verify", "predict", "ledger"])
def test_a_model_that_may_never_end_is_refused(command, folder, tmp_path):
    device = tmp_path / "endless.json"
    device.symlink_to("/dev/full")
    rest = {"verify": ["verify", device], "predict": ["predict", device, folder / "t.csv"]}
    ended = run(*rest.get(command, ["ledger", "verify", tmp_path / "budget.db", "--model", device]))
    check_clean(ended, (2,))
    assert "is a device" in ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such devices here")
@pytest.mark.parametrize("command", ["schema check", "fit", "federate plan"])
def test_a_schema_or_a_task_that_may_never_end_is_refused(command, folder, tmp_path):
    device = tmp_path / "endless.toml"
    device.symlink_to("/dev/full")
    words = {"federate plan": ["federate", "plan", device], "fit": ["fit", folder / "t.csv", "--schema", device]}
    ended = run(*words.get(command, ["schema", "check", folder / "t.csv", "--schema", device]))
    check_clean(ended, (2,))
    assert "is a device" in ended.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no such devices here")
@pytest.mark.parametrize("kind", ["device", "pipe"])
def test_a_key_that_may_never_end_is_refused(kind, tmp_path):
    """A ledger's folder may be a stranger's, too."""
    Ledger(tmp_path / "b.db").create()
    key = tmp_path / "b.db.key"
    key.unlink()
    if kind == "device":
        key.symlink_to("/dev/full")
    else:
        os.mkfifo(key)
    ended = run("ledger", "show", tmp_path / "b.db")
    check_clean(ended, (2,))
    assert "does not have 32 bytes" in ended.stderr


@pytest.mark.parametrize("option", ["--out", "--report"])
def test_a_link_into_a_folder_that_does_not_exist_is_refused_before_anything_is_paid(option, folder, tmp_path):
    ledger, link = Ledger(tmp_path / "budget.db"), tmp_path / "link.html"
    ledger.grant("stays", 1.0, 1e-6)
    link.symlink_to(tmp_path / "missing" / "page.html")
    outputs = {"--out": tmp_path / "new.json", option: link}
    paid = ["--ledger", tmp_path / "budget.db", "--dataset", "stays", "--epsilon", "0.5", "--delta", "1e-7"]
    ended = run("fit", folder / "t.csv", *BOUNDS, *paid, *(word for pair in outputs.items() for word in pair))
    check_clean(ended, (2,))
    assert "cannot be written" in ended.stderr
    assert [entry.status for entry in ledger.history("stays")] == ["granted"]
