"""A name, an id, a rare number and a rare category are planted in a table and looked for in everything that comes out.

Nothing that a person's cells hold may be told by an error, a log at any level, a certificate, a model, a report or a
check of the schema. A draft is the one file that may hold values of the data; what it holds is held by many rows.
"""

import io
import logging
import warnings

import pandas as pd
import pytest
from typer.testing import CliRunner

from messy_table import PLANTED, SCHEMA, write_messy
from thresher import SparseRegressor
from thresher.cli.app import app

SPELLINGS = [
    *PLANTED.values(), *(text.lower() for text in PLANTED.values()),
    "918273.6", "918273,6", "918,273", "9.18273645", "9.18273e", "9.1827e", "9.183e+05", "id-867", "Zaphod",
    "Beeblebrox", "kuru",
]  # fmt: skip
"""Long enough not to turn up by chance among the digits of predictions: less than once in a million runs."""

ROWS = 3_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("planted")
    write_messy(made / "t.csv", ROWS)
    (made / "t.toml").write_text(SCHEMA)
    return made


@pytest.fixture
def seen():
    """Everything that is logged at any level, by anybody."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s %(args)s %(exc_info)s"))
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.NOTSET)
    yield stream
    root.removeHandler(handler)
    root.setLevel(before)


def found(text):
    return [spelling for spelling in SPELLINGS if spelling in text]


def run(*arguments, status=0):
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        ended = CliRunner().invoke(app, list(map(str, arguments)))
    assert ended.exit_code == status, ended.output
    assert not (ended.exception and not isinstance(ended.exception, SystemExit)), ended.exception
    return ended.output + ended.stderr


def test_the_planted_values_are_in_the_table(folder):
    text = (folder / "t.csv").read_text(encoding="utf-8-sig")
    assert set(found(text)) >= set(PLANTED.values())


@pytest.mark.parametrize("algorithm", ["pursuit", "dp-ight", "output-perturbation", "frank-wolfe", "dp-srm"])
def test_no_model_certificate_report_or_log_tells_a_planted_value(folder, tmp_path, seen, algorithm):
    out = run("-vv", "fit", folder / "t.csv", "--schema", folder / "t.toml", "--sparsity", 4, "--algorithm", algorithm,
              "--out", tmp_path / "m.json", "--report", tmp_path / "r.html", "--json")  # fmt: skip
    out += run("-vv", "verify", tmp_path / "m.json")
    out += run("-vv", "predict", tmp_path / "m.json", folder / "t.csv", "--out", tmp_path / "p.csv")
    written = "".join(path.read_text() for path in tmp_path.iterdir())
    assert len(list(tmp_path.iterdir())) == 3
    assert found(out + written + seen.getvalue()) == []
    assert "thresher" in seen.getvalue()


def test_neither_check_nor_draft_tell_a_planted_value(folder, tmp_path, seen):
    out = run("-vv", "schema", "check", folder / "t.csv", "--schema", folder / "t.toml")
    out += run("-vv", "schema", "check", folder / "t.csv", "--schema", folder / "t.toml", "--json")
    out += run("-vv", "schema", "draft", folder / "t.csv", "--target", "stay", "--out", tmp_path / "d.toml")
    out += run("-vv", "schema", "check", folder / "t.csv", "--schema", tmp_path / "d.toml")
    assert found(out + (tmp_path / "d.toml").read_text() + seen.getvalue()) == []


def changed(schema, old, new):
    assert old in schema
    return schema.replace(old, new)


def only_the_last(table):
    return "\n".join([table.split("\n", 1)[0], table.rsplit("\n", 2)[1], ""])


def unclosed(table):
    return table.replace(PLANTED["id"], '"' + PLANTED["id"]) + "x" * 200_000


WRONG = {
    "a column is missing": lambda text, table: (text + '\n[columns.weight]\nbounds = [0, 1]\n', table),
    "a column is not declared": lambda text, table: (changed(text, '[columns.name]\nrole = "ignore"\n', ""), table),
    "no line names the columns": lambda text, table: (text, table.split("\n", 1)[1]),
    "the planted row is the first": lambda text, table: (text, table.rstrip("\n").rsplit("\n", 1)[1] + "\n" + table),
    "a quote is never closed": lambda text, table: (text, unclosed(table)),
    "only the planted row": lambda text, table: (text, only_the_last(table)),
    "two targets": lambda text, table: (changed(text, 'role = "ignore"', 'role = "target"\nbounds = [0, 1]'), table),
    "no line names the columns, and others may be there": lambda text, table: (
        text + "\n[others]\nbounds = [0, 1]\n", only_the_last(table).split("\n", 1)[1] + table.split("\n", 1)[1]
    ),
    "the wrong delimiter": lambda text, table: ('[table]\ndelimiter = ";"\n' + text, table),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_no_error_tells_a_planted_value(folder, tmp_path, seen, wrong):
    text, table = WRONG[wrong](SCHEMA, (folder / "t.csv").read_text(encoding="utf-8-sig"))
    (tmp_path / "t.toml").write_text(text)
    (tmp_path / "t.csv").write_text(table)
    said = run(
        "-vv", "fit", tmp_path / "t.csv", "--schema", tmp_path / "t.toml", "--out", tmp_path / "m.json", status=2
    )
    assert "thresher: " in said
    assert not (tmp_path / "m.json").exists()
    assert found(said + seen.getvalue()) == []


def test_files_without_a_schema_tell_no_planted_value_either(folder, tmp_path, seen):
    """Numbers only, as fit takes them without a schema; the planted row is in it."""
    for target in ("stay", "age", PLANTED["name"][:3]):
        said = run(
            "-vv", "fit", folder / "t.csv", "--target", target, "--feature-bound", 1, "--target-bound", 1, status=2
        )
        assert found(said + seen.getvalue()) == []


def test_frames_tell_no_planted_value(folder, seen):
    """Tracebacks as Python prints them: messages of the error and of those it came from."""
    frame = pd.read_csv(folder / "t.csv", on_bad_lines="skip")
    model = SparseRegressor.from_schema(folder / "t.toml", sparsity=3)
    caught = []
    for bad in (frame.drop(columns="age"), frame.tail(1), frame.rename(columns={"age": PLANTED["name"]}), frame.T):
        with pytest.raises((ValueError, TypeError)) as error:
            model.fit(bad)
        caught.append(error.value)
    for error in caught:
        told = [f"{error!r} {error.args}"]
        while (error := error.__cause__ or (None if error.__suppress_context__ else error.__context__)) is not None:
            told.append(repr(error))
        assert found(" ".join(told)) == []
    fitted = model.fit(frame)
    assert found(repr(fitted) + str(vars(fitted)) + fitted._repr_html_() + seen.getvalue()) == []


def test_planted_values_would_be_found():
    assert found(f"ValueError: could not convert string to float: '{PLANTED['number']}'")
    assert found(str({"x": float(PLANTED["number"])}))
