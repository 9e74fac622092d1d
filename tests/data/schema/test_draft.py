"""First versions of schemas: what is guessed, how coarse it is, and that it can be read again."""

import tomllib
from datetime import date

import numpy as np
import pandas as pd
import pytest

from thresher import Schema, SparseRegressor
from thresher.data.reading.csv import Dialect
from thresher.data.schema.draft import FEWEST, draft, is_id_name
from thresher.data.schema.writing import round_outwards, round_within, toml_string


def frame(n=1000, seed=0):
    rng = np.random.default_rng(seed)
    made = pd.DataFrame({
        "patient id": np.arange(n) + 10_000_000,
        "name": [f"person {i}" for i in range(n)],
        "age": rng.integers(18, 90, n),
        "gain": np.where(rng.random(n) < 0.9, 0.0, rng.uniform(1, 9000, n)),
        "ward": rng.choice(["A", "B, east", 'C "new"'], n, p=[0.6, 0.3, 0.1]),
        "admission_type": rng.integers(1, 4, n),
        "seen": (np.datetime64("2015-03-01") + rng.integers(0, 2000, n)).astype(str),
        "comment": [f"free text {rng.integers(10**9)}" for _ in range(n)],
        "often empty": np.where(rng.random(n) < 0.5, "", "yes"),
        "stay": rng.normal(10, 2, n).round(2),
    })  # fmt: skip
    made.loc[0, ["age", "ward"]] = [7.5e8, "the only one"]
    return made


def drafted(data, target="stay", person=None):
    text = draft(data, target, person)
    return text, Schema.from_dict(tomllib.loads(text))


def test_every_kind_of_column_is_recognised():
    text, schema = drafted(frame())
    columns = {column.name: column for column in schema.columns}
    assert {name for name, column in columns.items() if column.role == "ignore"} == {"patient id", "name", "comment"}
    assert columns["age"].bounds == (10, 100)
    assert columns["age"].typical == 56  # the median
    assert columns["gain"].bounds == (0, 10_000)
    assert columns["gain"].typical == 0
    assert columns["ward"].categories == ("A", "B, east", 'C "new"')
    assert columns["ward"].base == "A"
    assert columns["admission_type"].categories == (1, 2, 3)
    assert columns["seen"].bounds == (date(2015, 1, 1), date(2020, 12, 31))
    assert columns["often empty"].has_indicator
    assert columns["stay"].role == "target"
    assert all(column.read_from_data for column in columns.values() if column.kind != "none")
    assert "READ FROM THE DATA" in text


def test_a_draft_tells_nothing_that_only_few_rows_hold():
    text, _ = drafted(frame())
    for rare in ("the only one", "7.5", "750000000", "10000000", "person", "free text"):
        assert rare not in text.split("\n\n", 1)[1].replace('role = "person"', "").replace("free text: too many", "")
    few = frame()
    few.loc[: FEWEST - 2, "ward"] = "a rare ward"
    assert "a rare ward" not in drafted(few)[0]
    few.loc[: FEWEST - 1, "ward"] = "a rare ward"
    assert "a rare ward" in drafted(few)[0]


def test_a_draft_can_be_used_as_it_is_and_marks_the_certificate():
    schema = drafted(frame(), person="patient id")[1]
    assert schema.person.name == "patient id"
    model = SparseRegressor.from_schema(schema, sparsity=3, epsilon=4.0).fit(frame())
    assert model.certificate_.grade == "conditional"
    assert "read from the data" in model.certificate_.assumptions[0]


@pytest.mark.parametrize("empty", ["", None, np.nan])
def test_a_column_without_any_cell_is_ignored(empty, tmp_path):
    table = frame().assign(nothing=empty)
    assert [c.role for c in drafted(table)[1].columns if c.name == "nothing"] == ["ignore"]
    table.to_csv(tmp_path / "t.csv", index=False)
    assert [c.role for c in drafted(tmp_path / "t.csv")[1].columns if c.name == "nothing"] == ["ignore"]
    with pytest.raises(ValueError, match="neither numbers nor a few classes"):
        draft(table, "nothing")


def test_targets_are_numbers_or_classes():
    classes = frame().assign(sick=np.where(np.arange(1000) % 3 == 0, "yes", "no"), code=np.arange(1000) % 2 * 2 - 1)
    assert drafted(classes, "sick")[1].target.categories == ("no", "yes")
    assert drafted(classes, "code")[1].target.categories == (-1, 1)
    assert drafted(frame(), "ward")[1].task == "classification"
    with pytest.raises(ValueError, match="neither numbers nor a few classes"):
        drafted(frame(), "name")
    with pytest.raises(ValueError, match="'nothing' is not a column of DATA"):
        drafted(frame(), "nothing")


def test_other_delimiters_and_decimal_commas_are_recognised(tmp_path):
    frame().to_csv(tmp_path / "t.csv", sep=";", decimal=",", index=False)
    _, schema = drafted(tmp_path / "t.csv")
    assert schema.dialect == Dialect(";", ",")
    _, rows = schema.rows(tmp_path / "t.csv")
    assert abs(rows.y.mean() - 10) < 0.3
    assert schema.target.bounds == (2, 20)


def test_a_table_as_a_spreadsheet_in_western_europe_writes_it(tmp_path):
    """Semicolons, decimal commas, points between groups of digits, a Windows encoding, numbered rows, units."""
    rng = np.random.default_rng(0)
    pay = rng.uniform(800, 9000, 1000).round(2)
    data = pd.DataFrame({
        "Kunde Nr.": np.arange(1000) + 7_000_000, "Größe (cm)": rng.integers(150, 200, 1000),
        "Gehalt [€]": [f"{each:,.2f}".translate(str.maketrans(",.", ".,")) for each in pay],
        "Ort": rng.choice(["Köln", "Bonn"], 1000), "stay": rng.normal(10, 2, 1000).round(2),
    })  # fmt: skip
    data.to_csv(tmp_path / "t.csv", sep=";", decimal=",", encoding="cp1252")
    _, schema = drafted(tmp_path / "t.csv")
    columns = {column.name: column for column in schema.columns}
    assert schema.dialect == Dialect(";", ",", ".", "cp1252")
    assert (columns[""].role, columns["Kunde Nr."].role) == ("ignore", "ignore")
    assert (columns["Größe (cm)"].unit, columns["Gehalt [€]"].unit) == ("cm", "€")
    assert (columns["Größe (cm)"].bounds, columns["Gehalt [€]"].bounds) == ((100, 200), (500, 10_000))
    assert columns["Ort"].categories == ("Bonn", "Köln")
    _, rows = schema.rows(tmp_path / "t.csv")
    at, scaled = schema.encoding().names.index("Gehalt [€]"), columns["Gehalt [€]"]
    spread = max(scaled.typical - 500, 10_000 - scaled.typical)
    assert np.allclose(rows.X[:, at] * spread + scaled.typical, pay)
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings_are_recognised_wherever_the_first_letter_stands(tmp_path, encoding):
    data = frame().assign(ward=np.where(np.arange(1000) < 970, "east", "süd"))
    data.to_csv(tmp_path / "t.csv", index=False, encoding=encoding)
    _, schema = drafted(tmp_path / "t.csv")
    assert schema.dialect == Dialect(encoding=encoding.removesuffix("-sig"))
    (ward,) = [column for column in schema.columns if column.name == "ward"]
    assert ward.categories == ("east", "süd")
    assert schema.rows(tmp_path / "t.csv")[1].X.shape[0] == 1000


def test_groups_of_digits_are_recognised_only_where_they_make_numbers(tmp_path):
    written = [f"{1000 * at:,}" for at in range(1000)]
    assert drafted(frame().assign(pay=written))[1].dialect.thousands == ","
    assert drafted(frame().assign(pay=[text.replace(",", "\u202f") for text in written]))[1].dialect.thousands == " "
    assert drafted(frame().assign(pay=[text.replace(",", "'") for text in written]))[1].dialect.thousands == "'"
    assert drafted(frame().assign(pay=[f"{at},{at % 7}" for at in range(1000)]))[1].dialect.thousands == ""


def test_many_columns_that_are_alike_are_declared_together():
    """Genes and a flag are; a column of another size, one with gaps and those that are no numbers are not."""
    rng = np.random.default_rng(0)
    genes = pd.DataFrame(rng.integers(0, 3, (1000, 70)), columns=[f"gene {at}" for at in range(70)])
    data = pd.concat([frame(), genes, pd.DataFrame({"flag": rng.integers(0, 2, 1000)})], axis=1)
    data["gappy"] = np.where(rng.random(1000) < 0.5, np.nan, genes["gene 0"])
    text, schema = drafted(data, person="patient id")
    assert "# 71 columns of numbers have no entry of their own" in text
    assert (schema.others.bounds, schema.others.typical, schema.others.read_from_data) == ((0, 2), 1, True)
    assert {column.name for column in schema.columns} == {*frame().columns, "gappy"}
    whole, rows = schema.rows(data)
    assert len(whole.columns) == len(data.columns)
    assert rows.X[:, whole.encoding().names.index("gene 3")].tolist() == (genes["gene 3"] - 1).tolist()
    few, declared = drafted(data.drop(columns=genes.columns[:30]))
    assert "[others]" not in few
    assert declared.others is None


@pytest.mark.parametrize(
    ("value", "bounds", "typical"),
    [(174.6, (100, 200), 170), (54.6, (10, 100), 55), (2012.4, (2000, 5000), 2000), (30.4, (0, 50_000), 30),
     (0, (0, 10), 0), (-0.034, (-0.1, 1), -0.03), (1e-9, (0, 1e-6), 1e-9), (7.0, (0, 5), 5)],
)  # fmt: skip
def test_what_is_typical_is_rounded_to_a_hundredth_of_the_range_or_finer(value, bounds, typical):
    assert round_within(value, bounds) == pytest.approx(typical)


def test_columns_that_are_named_like_ids():
    ids = ["id", "patient_id", "Kunde Nr.", "patient_nbr", "CustomerID", "userId", "account number", "case no"]
    assert [name for name in ids if not is_id_name(name)] == []
    assert [
        name for name in ["paid", "Madrid", "number of visits", "inr", "casino", "PID controller"] if is_id_name(name)
    ] == []


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d %b %Y"])
def test_other_ways_to_write_dates_are_recognised(form):
    days = pd.to_datetime(frame()["seen"])
    written = frame().assign(seen=days.dt.strftime(form))
    written.loc[3, "seen"] = "unknown"
    schema = drafted(written)[1]
    (seen,) = [column for column in schema.columns if column.name == "seen"]
    assert (seen.format, seen.bounds) == (form, (date(2015, 1, 1), date(2020, 12, 31)))
    _, rows = schema.rows(written)
    wanted = (days - pd.Timestamp("2015-01-01")).dt.days.to_numpy() / (seen.span[1] / 2) - 1
    at = schema.encoding().names.index("seen")
    assert np.allclose(np.delete(rows.X[:, at], 3), np.delete(wanted, 3))
    assert rows.X[3, at] == 0


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [(17, 83, (10, 100)), (0, 0, (0, 1)), (-3, 0.4, (-5, 0.5)), (3, 3, (2, 5)), (-70, -12, (-100, -10)),
     (1e-4, 2e-4, (1e-4, 2e-4))],
)  # fmt: skip
def test_ranges_are_rounded_outwards(low, high, wanted):
    found = round_outwards(low, high)
    assert found[0] <= low <= high <= found[1] * (1 + 1e-12)
    assert found == pytest.approx(wanted)


@pytest.mark.parametrize("text", ['a "b"', "back\\slash", "line\nend", "tab\t", "\x01", "ü", "é'", ""])
def test_texts_are_quoted_as_toml_wants_them(text):
    assert tomllib.loads(f"x = {toml_string(text)}")["x"] == text
