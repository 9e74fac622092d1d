"""What somebody without SPU's environment is told, and arguments that are refused before anything starts."""

from __future__ import annotations

import importlib.util
import sys
from typing import Any

import pytest

from thresher.federated.spu import SPUAggregation


def test_without_an_interpreter_the_error_says_how_to_make_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THRESHER_SPU_PYTHON", raising=False)
    with pytest.raises(ValueError, match="THRESHER_SPU_PYTHON is not set") as caught:
        SPUAggregation(2)
    assert ".venv-spu/bin/pip install" in str(caught.value)
    assert "export THRESHER_SPU_PYTHON=" in str(caught.value)


@pytest.mark.skipif(importlib.util.find_spec("spu") is not None, reason="this interpreter has spu")
def test_an_interpreter_without_spu_is_named_with_the_remedy() -> None:
    with pytest.raises(ValueError, match="cannot import spu") as caught:
        SPUAggregation(2, python=sys.executable, timeout=20)
    assert sys.executable in str(caught.value)
    assert "pip install spu==" in str(caught.value)


def test_an_interpreter_that_does_not_exist_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THRESHER_SPU_PYTHON", "/no/such/python")
    with pytest.raises(ValueError, match=r"/no/such/python.*cannot import spu"):
        SPUAggregation(2)


@pytest.mark.parametrize(
    ("arguments", "name"),
    [({"parties": 0}, "parties=0"), ({"protocol": "semi2k"}, "protocol='semi2k'"), ({"timeout": 0.0}, "timeout=0.0")],
)
def test_bad_arguments_are_named(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(ValueError, match=name):
        SPUAggregation(**{"parties": 2, "python": sys.executable} | arguments)
