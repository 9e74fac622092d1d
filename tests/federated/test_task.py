"""Task files: what parties agree on, its hash, and the faults that are named."""

from __future__ import annotations

import pytest

from thresher.federated.task import JointTask

TASK = """
task = "regression"
features = 20
sparsity = 3
epsilon = 1.0
feature_bound = 1.0
target_bound = [0.0, 30.0]
[[party]]
name = "a"
address = "10.0.0.1:9000"
rows = 1000
[[party]]
name = "b"
address = "10.0.0.2:9000"
rows = 500
[[party]]
name = "c"
address = "10.0.0.3:9000"
rows = 500
"""


def read(tmp_path, text=TASK):
    path = tmp_path / "task.toml"
    path.write_text(text)
    return JointTask.read(path)


def test_the_plan_is_for_the_rows_of_all_parties(tmp_path):
    task = read(tmp_path)
    assert (task.plan.problem.n, task.plan.problem.d, task.plan.budget.delta) == (2000, 20, 2000**-2.0)
    assert task.plan.trust == "mpyc"
    assert task.plan.releases[0].noise == "dithered binomial"
    assert task.plan.epsilon <= 1.0
    assert "3 parties, which hold at most 1000, 500, 500 rows: these bounds are public" in task.plan.notes
    assert task.position_of("b") == 1


@pytest.mark.parametrize(
    "change",
    [
        ("epsilon = 1.0", "epsilon = 1.1"),
        ("rows = 1000", "rows = 1001"),
        ("target_bound = [0.0, 30.0]", "target_bound = [0.0, 31.0]"),
        ("sparsity = 3", "sparsity = 4"),
        ("10.0.0.3:9000", "10.0.0.3:9001"),
        ('name = "c"', 'name = "d"'),
        ("features = 20", "features = 21"),
        ("sparsity = 3", "sparsity = 3\nrounds = 7"),
        ("sparsity = 3", "sparsity = 3\nadjacency = 'add-remove'"),
    ],
)
def test_whatever_differs_changes_the_hash(tmp_path, change):
    assert change[0] in TASK
    assert read(tmp_path).hash != read(tmp_path, TASK.replace(*change)).hash


def test_spaces_and_comments_do_not(tmp_path):
    assert read(tmp_path).hash == read(tmp_path, "# ours\n" + TASK.replace(" = ", "=")).hash


def test_rounds_are_those_asked_for(tmp_path):
    text = TASK.replace("sparsity = 3", "sparsity = 3\nrounds = 7")
    assert read(tmp_path, text).plan.releases[0].times == 7
    dense = TASK.replace("sparsity = 3", 'algorithm = "mpc-grad-p"\npenalty = 0.01\nrounds = 9')
    plan = read(tmp_path, dense).plan
    assert (plan.algorithm, plan.releases[0].times, plan.problem.penalty.strength) == ("dp-gd", 9, 0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("epsilon = 1.0", ""), "epsilon is missing"),
        (("epsilon = 1.0", "epsilon = -1.0"), "epsilon=-1.0"),
        (("epsilon = 1.0", "epsilon = inf"), "never add up without noise"),
        (("epsilon = 1.0", "epsilom = 1.0\nepsilon = 1.0"), "epsilom is not a setting"),
        (('task = "regression"', 'task = "guessing"'), "task='guessing'"),
        (('task = "regression"', 'task = ["regression"]'), "task="),
        (('task = "regression"', 'task = "classification"\nclasses = 3'), "classes=3 must be a list"),
        (('task = "regression"', 'task = "classification"\nclasses = [1, 1]'), "at least two different labels"),
        (("features = 20", 'features = ["y", "x"]'), "target='y' must be the name of a column that is no feature"),
        (("sparsity = 3", "sparsity = 3\nrounds = 0"), "rounds=0"),
        (("sparsity = 3", 'sparsity = 3\nfit_intercept = "no"'), "fit_intercept='no'"),
        (("features = 20", "features = []"), "features must be"),
        (("features = 20", 'features = ["x", "x"]'), "features must be"),
        (("features = 20", "features = 0"), "features must be"),
        (("sparsity = 3", "sparsity = 21"), "sparsity=21"),
        (("feature_bound = 1.0", ""), "bound"),
        (('name = "b"', 'name = "a"'), r"names=\['a', 'a', 'c'\] must differ"),
        (("10.0.0.2:9000", "10.0.0.1:9000"), "two parties have the same address"),
        (('name = "b"', 'name = "B. Hospital"'), "lower-case letters"),
        (("10.0.0.2:9000", "10.0.0.2"), "HOST:PORT"),
        (("10.0.0.2:9000", "10.0.0.2:99999"), "HOST:PORT"),
        (("rows = 1000", "rows = 0"), "rows=0"),
        (("rows = 1000", 'rows = 1000\nkey = "x"'), "party 1 must have exactly"),
        (("target_bound = [0.0, 30.0]", "classes = [0, 1]\ntarget_bound = [0.0, 30.0]"), "classes=.* is not a setting"),
        (('task = "regression"', 'task = "classification"'), "classes is missing"),
        (("sparsity = 3", 'sparsity = 3\nalgorithm = "pursuit"'), "algorithm='pursuit' must be one of 'dp-ight'"),
        (("sparsity = 3", 'algorithm = "local-grad-p"'), "is a baseline"),
        (("[[party]]", "[[party]"), "cannot be read"),
    ],
)
def test_faults_are_named(tmp_path, change, message):
    assert change[0] in TASK
    with pytest.raises(ValueError, match=message):
        read(tmp_path, TASK.replace(*change, 1)).plan  # noqa: B018


def test_two_parties_are_too_few(tmp_path):
    with pytest.raises(ValueError, match="party: 3 to 10 are needed"):
        read(tmp_path, TASK[: TASK.rindex("[[party]]")])


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"TASK=.*absent\.toml.* cannot be read"):
        JointTask.read(tmp_path / "absent.toml")


def test_a_name_that_is_no_party_is_refused(tmp_path):
    with pytest.raises(ValueError, match="--me='z' is none of the task's parties: a, b, c"):
        read(tmp_path).position_of("z")
