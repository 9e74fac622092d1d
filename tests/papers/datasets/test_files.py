"""Where a set's files are looked for, and what is said when they are not there."""

import pytest

from thresher_papers.datasets import REAL_SETS, MissingDataError, load
from thresher_papers.datasets.files import LOADERS, Files


@pytest.mark.parametrize("ending", ["", ".gz", ".bz2"])
def test_files_are_found_plain_or_packed(tmp_path, ending):
    (tmp_path / f"a9a{ending}").write_bytes(b"")
    assert Files("a9a", tmp_path).all_of("a9a") == [tmp_path / f"a9a{ending}"]


def test_all_files_must_be_there(tmp_path):
    (tmp_path / "a9a").write_bytes(b"")
    assert Files("a9a", tmp_path).all_of("a9a", "a9a.t") is None


@pytest.mark.parametrize("name", REAL_SETS)
def test_a_missing_set_says_which_files_to_put_where(name, tmp_path):
    with pytest.raises(MissingDataError, match=rf"data set '{name}': '.*' does not hold it; put .* THRESHER_DATA"):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("e2006", ["E2006.train and E2006.test", "imdb_rating can stand in"]),
        ("rcv1", ["rcv1_train.binary and rcv1_test.binary", "download=True", "imdb", "rcv1_small"]),
        ("kddcup98", ["cup98LRN.txt", "diabetes130_stay can stand in"]),
        ("covertype", ["covtype.data, or covtype.libsvm.binary, or covtype.npz", "download=True"]),
        ("mnist", ["train-images-idx3-ubyte", "t10k-labels-idx1-ubyte", "mnist.npz"]),
        ("cifar10", ["cifar-10-batches-bin/data_batch_1.bin", "cifar10_subset.npz"]),
    ],
)
def test_the_message_names_every_way_to_have_the_set(name, words, tmp_path):
    with pytest.raises(MissingDataError) as caught:
        load(name, tmp_path)
    assert all(word in str(caught.value) for word in words)


def test_the_error_is_both_of_the_kinds_a_caller_may_expect(tmp_path):
    with pytest.raises(FileNotFoundError):
        load("a9a", tmp_path)
    with pytest.raises(ValueError, match="a9a"):
        load("a9a", tmp_path)


def test_what_cannot_be_fetched_says_so(tmp_path):
    with pytest.raises(MissingDataError, match="no place download=True could take it from"):
        load("a9a", tmp_path, download=True)


def test_without_a_folder_the_variable_is_asked_and_then_named(monkeypatch, tmp_path):
    monkeypatch.setenv("THRESHER_DATA", str(tmp_path))
    with pytest.raises(MissingDataError, match=str(tmp_path)):
        load("a9a")
    monkeypatch.delenv("THRESHER_DATA")
    with pytest.raises(MissingDataError, match=r"no folder is named; put a9a and a9a\.t"):
        load("a9a")


def test_every_listed_set_has_a_function_and_the_other_way_round():
    assert set(LOADERS) == set(REAL_SETS)
    assert len(REAL_SETS) == len(set(REAL_SETS))


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="name='mnits' is not a data set; it must be one of a9a, adult, cifar10"):
        load("mnits")
