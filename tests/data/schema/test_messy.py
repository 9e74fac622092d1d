"""From a large messy file to a certificate with one schema and one command; bad rows as declared."""

import csv
import json

import numpy as np
import pytest
from typer.testing import CliRunner

from messy_table import SCHEMA, write_messy
from thresher import Certificate, Schema
from thresher.cli.app import app

ROWS = 200_000  # several reads of the file, and the noise is far below what is asked


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    folder = tmp_path_factory.mktemp("messy")
    write_messy(folder / "messy.csv", ROWS)
    (folder / "messy.toml").write_text(SCHEMA)
    return folder


def test_one_command_goes_from_the_file_to_a_certificate(table):
    """No seed is set; the bounds are ten standard deviations of the noise away, and more. The law: .1 a year of age, 6
    for diabetes."""
    model, data = table / "model.json", table / "messy.csv"
    run = CliRunner().invoke(
        app, ["fit", str(data), "--schema", str(table / "messy.toml"), "--sparsity", "4", "--out", str(model)]
    )
    assert run.exit_code == 0, run.output
    certificate = Certificate.read(model)
    assert (certificate.grade, certificate.unit) == ("proved", "person")
    assert certificate.verify()
    found = json.loads(model.read_text())
    coefficients = dict(zip((found["feature_names"][j] for j in found["support"]), found["coefficients"], strict=True))
    assert abs(coefficients["age"] - 0.1) < 0.01
    assert abs(coefficients["diagnosis=diabetes"] - 6) < 0.6
    shown = CliRunner().invoke(app, ["predict", str(model), str(data)])
    lines = shown.stdout.splitlines()
    assert lines[0] == "prediction"
    assert len(lines) == 1 + ROWS + 1


def test_every_line_is_one_row_and_bad_ones_count_as_declared(table):
    """Read once more with Python's own tools, cell by cell."""
    schema = Schema.read(table / "messy.toml")
    _, rows = schema.rows(table / "messy.csv")
    assert rows.X.shape == (ROWS + 1, 9)
    names = schema.encoding().names
    with (table / "messy.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = [line for line, _ in zip(csv.reader(file), range(20_000), strict=False)][1:]
    torn = np.array([len(line) != 8 for line in lines])
    some = rows.X[: len(lines)]
    age, gap = some[:, names.index("age")], some[:, names.index("age missing")]
    assert 0.005 < torn.mean() < 0.02
    assert np.all(gap[torn] == 1)
    assert np.all(rows.y[: len(lines)][torn] == 10)
    for at, line in enumerate(lines[:5000]):
        if torn[at]:
            continue
        readable = line[2].strip().isdigit()
        assert gap[at] == (not readable)
        assert abs(age[at] - ((min(int(line[2]), 110) - 50) / 60 if readable else 0)) < 1e-12
    diagnosis = some[:, [names.index(f"diagnosis{end}") for end in ("=asthma", "=diabetes", "=(other)", " missing")]]
    wanted = {"asthma": 0, "diabetes": 1, "Asthma?": 2, "": 3}
    for at, line in enumerate(lines[:5000]):
        code = 3 if torn[at] else wanted.get(line[6])
        assert diagnosis[at].tolist() == [float(k == code) for k in range(4)]
