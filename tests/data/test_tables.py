"""Reading files: what is refused, and that no cell value leaks into a message."""

from __future__ import annotations

import numpy as np
import pytest

from thresher.data.people import person_of_each_row
from thresher.data.reading.table import read_table


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("is empty",)),
        ("a,b\n1,secret\n", ("column 'b'", "schema")),
        ("a,b\n1,\n", ("column 'b'", "missing values")),
        ("a,b\n1,nan\n", ("column 'b'", "missing values")),
        ("a,b\n1,2,3\n", ("2 column names", "3 columns")),
        ("a,b\n1,2\n1\n", ("t.csv",)),
        ("31337.42,0.9\n1,2\n", ("first line must name the columns",)),
        ("a,a\n1,2\n", ("a name of its own",)),
    ],
)
def test_a_broken_csv_is_refused_by_column_without_its_values(text, words, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        read_table(tmp_path / "t.csv", None)
    for word in words:
        assert word in str(caught.value)
    assert "secret" not in str(caught.value)
    assert "31337" not in str(caught.value)


def test_a_broken_svmlight_file_is_refused_without_its_values(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:secret\n")
    with pytest.raises(ValueError, match="is not svmlight") as caught:
        read_table(tmp_path / "t.svm", None)
    assert "secret" not in str(caught.value)


def test_quoted_names_with_commas_and_a_byte_order_mark_are_read(tmp_path):
    (tmp_path / "t.csv").write_text('\ufeff"age, years",y\n"1.5",2\n3,4\n', encoding="utf-8")
    table = read_table(tmp_path / "t.csv", "y")
    assert table.names == ["age, years"]
    assert table.X.tolist() == [[1.5], [3.0]]
    assert table.y.tolist() == [2.0, 4.0]


def test_only_takes_the_named_columns_in_order(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n1,2,text\n")
    assert read_table(tmp_path / "t.csv", None, only=["b", "a"]).X.tolist() == [[2.0, 1.0]]
    with pytest.raises(ValueError, match="column 'z' of the model is not in the table"):
        read_table(tmp_path / "t.csv", None, only=["z"])


def test_a_dense_npz_and_a_missing_array(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=np.ones(2))
    assert read_table(tmp_path / "t.npz", "y").X.shape == (2, 2)
    with pytest.raises(ValueError, match=r"--target='z' is not in t\.npz"):
        read_table(tmp_path / "t.npz", "z")


@pytest.mark.parametrize("ids", [["p 1", "p 2", "p 1"], ["7", "8", "7"]], ids=["text", "numbers"])
def test_ids_of_people_are_no_feature(tmp_path, ids):
    (tmp_path / "t.csv").write_text("a,who,y\n" + "".join(f"{at},{who},1\n" for at, who in enumerate(ids)))
    table = read_table(tmp_path / "t.csv", "y", person="who")
    assert table.names == ["a"]
    assert table.X.tolist() == [[0.0], [1.0], [2.0]]
    assert table.people[0] == table.people[2] != table.people[1]
    assert read_table(tmp_path / "t.csv", "y", only=["a"]).people is None


def test_ids_of_people_may_be_an_array_beside_the_rows(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=np.ones(2), who=np.array(["a", "b"]))
    assert read_table(tmp_path / "t.npz", "y", person="who").people.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match=r"--person='z' is not in t\.npz"):
        read_table(tmp_path / "t.npz", "y", person="z")


@pytest.mark.parametrize("last", ["9", "text", "9007199254740997"])
def test_whose_a_row_is_depends_on_its_own_id_alone(tmp_path, last):
    """As one column of floating-point numbers or of text, one id would decide which of the others are alike."""
    ids = ["7", "7.0", "07", " 8", "9007199254740993", "9007199254740995", last]
    rows = "\n".join(f"{at},1,{person}" for at, person in enumerate(ids))
    (tmp_path / "t.csv").write_text(f"a,y,who\n{rows}\n")
    owners = person_of_each_row(read_table(tmp_path / "t.csv", "y", person="who").people, len(ids))
    assert owners.tolist() == [0, 0, 0, 1, 2, 3, 4]


@pytest.mark.parametrize("person", ["z", "y"])
def test_ids_that_are_not_there_or_are_the_target_are_refused(tmp_path, person):
    (tmp_path / "t.csv").write_text("a,who,y\n1,2,3\n")
    with pytest.raises(
        ValueError, match=f"--person='{person}' is not a column beside the target; the others are a, who"
    ):
        read_table(tmp_path / "t.csv", "y", person=person)


def test_files_without_columns_and_folders_have_no_ids_of_people(tmp_path):
    (tmp_path / "t.svm").write_text("1 1:2\n")
    with pytest.raises(ValueError, match="--person='who': svmlight has features and a target only"):
        read_table(tmp_path / "t.svm", None, person="who")
    with pytest.raises(ValueError, match="--person='who': a folder of parts has no people"):
        read_table(tmp_path, None, person="who")


def test_an_unknown_ending_lists_the_known_ones(tmp_path):
    (tmp_path / "t.xls").write_text("x")
    with pytest.raises(ValueError, match=r"t\.xls.*\.csv, \.parquet"):
        read_table(tmp_path / "t.xls", None)
