"""What a schema may say, and what it is told when it says something else."""

import tomllib

import pytest

from thresher import Schema

GOOD = """
[columns.age]
bounds = [0, 110]
typical = 40
unit = "years"
missing = "indicator"

[columns.sex]
categories = ["female", "male"]
base = "male"

[columns.seen]
bounds = [2010-01-01, 2019-12-31]

[columns.stay]
role = "target"
bounds = [0, 30]
missing = 4
"""


def schema(text=GOOD, **changed):
    entries = tomllib.loads(text)
    for name, column in changed.items():
        entries["columns"].setdefault(name, {}).update(column)
    return Schema.from_dict(entries)


def test_a_schema_says_what_it_means():
    facts = schema()
    assert [column.kind for column in facts.columns] == ["number", "category", "date", "number"]
    assert facts.task == "regression"
    assert facts.target.span == (0.0, 30.0)
    assert facts.encoding().names == ["age", "age missing", "sex=female", "seen"]
    assert facts.encoding().units == ["years", "", "", "days since 2010-01-01"]
    assert [(column.holds, column.gap) for column in facts.columns] == [
        ("0 to 110 years", "a column of its own"), ("2 categories against male", "male"),
        ("2010-01-01 to 2019-12-31", "the middle"), ("0 to 30", "4"),
    ]  # fmt: skip


def test_a_schema_survives_json():
    facts = schema()
    again = Schema.from_dict(facts.to_dict())
    assert again.to_dict() == facts.to_dict()
    assert again.digest == facts.digest
    assert again.encoding().centre.tolist() == facts.encoding().centre.tolist()
    assert schema(age={"bounds": [0, 100]}).digest != facts.digest


BAD = {
    "age": [
        ({"bounds": [110, 0]}, "bounds = [110, 0] must be in their order"),
        ({"bounds": [0]}, "must be a pair"),
        ({"bounds": ["a", "b"]}, "two finite numbers"),
        ({"bounds": [0, float("inf")]}, "two finite numbers"),
        ({"typical": 111}, "typical = 111 must lie within the bounds"),
        ({"missing": -1}, "missing = -1 must be \"indicator\" or lie within the bounds"),
        ({"missing": "none"}, "missing = 'none' must be"),
        ({"outside": "drop"}, 'outside = \'drop\' must be "clip" or "missing"'),
        ({"categories": ["a"]}, "either bounds = [low, high] or categories = [...]"),
        ({"role": "label"}, "role = 'label' must be one of feature, target, person, ignore"),
        ({"bound": 3}, "unknown key 'bound'"),
        ({"separator": ";"}, "separator means nothing"),
        ({"scale": "yes"}, "scale = 'yes' must be a bool"),
    ],
    "sex": [
        ({"categories": []}, "a list with at least one name"),
        ({"categories": ["a", 1]}, "all text"),
        ({"categories": ["a", " b"]}, "no blanks at the ends"),
        ({"categories": ["a", "a"]}, "all be different"),
        ({"missing": "other"}, "or one of the categories"),
        ({"undeclared": "drop"}, 'undeclared = \'drop\' must be "missing" or "other"'),
        ({"base": "none"}, "base = 'none' must be one of the categories"),
        ({"separator": ";"}, "base = 'male' must be left out"),
        ({"unit": "kg"}, "unit means nothing"),
    ],
    "seen": [({"bounds": ["2010-01-01", 5]}, "be dates"), ({"missing": 2011}, "lie within the bounds")],
    "stay": [
        ({"missing": "indicator"}, "a target has no indicator"),
        ({"scale": False}, "scale means nothing for a target"),
        ({"role": "feature"}, '0 columns have role = "target"'),
    ],
    "new": [({"role": "target", "bounds": [0, 1]}, '2 columns have role = "target"'), ({}, "needs either bounds")],
    "age missing": [({"bounds": [0, 1]}, "two encoded columns would be named 'age missing'")],
}  # fmt: skip


@pytest.mark.parametrize(("name", "change", "says"), [(name, *case) for name, cases in BAD.items() for case in cases])
def test_what_makes_no_sense_is_refused_with_the_column_and_a_remedy(name, change, says):
    with pytest.raises(ValueError, match="schema: ") as caught:
        schema(**{name: change})
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ({"column": {}}, "[column] is unknown"),
        ({"table": {"separator": ";"}}, "unknown key 'separator'"),
        ({"table": {"delimiter": "x"}}, "delimiter = 'x' must be one of"),
        ({"table": {"decimal": ";"}}, "decimal = ';' must be"),
        ({"table": {"thousands": "."}}, "' ', and another one than decimal"),
        ({"table": {"thousands": "-"}}, "thousands = '-' must be one of"),
        ({"table": {"encoding": "latin-99"}}, "encoding = 'latin-99' is unknown; use utf-8, cp1252"),
        ({"table": {"encoding": "hex"}}, "encoding = 'hex' is unknown"),
        ({"table": {"encoding": 8}}, "encoding = 8 is unknown"),
        ({"table": {"quote": "'"}}, "unknown key 'quote'; use delimiter, decimal, thousands, encoding"),
        ({"columns": {"y": {"role": "target", "bounds": [0, 1]}}}, "no column is a feature"),
        ({"columns": {"y": 3}}, "must be a table"),
    ],
)
def test_what_is_wrong_with_the_file_as_a_whole_is_said(entries, says):
    with pytest.raises(ValueError, match="schema: ") as caught:
        Schema.from_dict(entries)
    assert says in str(caught.value)


def test_a_file_that_is_missing_or_no_toml_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"no\.toml' cannot be read"):
        Schema.read(tmp_path / "no.toml")
    (tmp_path / "bad.toml").write_text("[columns\n")
    with pytest.raises(ValueError, match=r"bad\.toml' is not TOML"):
        Schema.read(tmp_path / "bad.toml")


def test_columns_without_an_entry_are_refused_by_their_place_or_declared_together():
    facts = schema()
    with pytest.raises(ValueError, match=r"2 column\(s\) that the schema does not declare .*number 5, 6\)") as caught:
        facts.for_columns(["age", "sex", "seen", "stay", "Ada Lovelace", "Berlin"])
    assert "Ada" not in str(caught.value)
    wide = schema(GOOD + "\n[others]\nbounds = [0, 2]\n").for_columns(["age", "sex", "seen", "stay", "g1", "g2"])
    assert wide.encoding().names[-2:] == ["g1", "g2"]
    assert wide.others is None
    assert wide.extends(schema(GOOD + "\n[others]\nbounds = [0, 2]\n"))
    left = schema(GOOD + '\n[others]\nrole = "ignore"\n').for_columns(["age", "sex", "seen", "stay", "g1"])
    assert left.encoding().names == facts.encoding().names


def test_values_read_from_the_data_are_assumptions():
    assert schema().assumptions == ()
    (assumption,) = schema(age={"read_from_data": True}, sex={"read_from_data": True}).assumptions
    assert "of age, sex are public" in assumption
