"""JSON that says one thing: no field twice, no number that is none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

__all__ = ["Record", "parse_json", "read_record", "reject_device", "without_repeats"]


Record = Mapping[str, Any]
"""An object of JSON, or what is to become one: fields by their names. Whoever reads one checks what they are."""


def read_record(path: str | Path) -> Any:
    """What a file of JSON holds."""
    reject_device(path)
    return parse_json(Path(path).read_text())


def reject_device(path: str | Path) -> None:
    """A device, such as /dev/zero, may never end."""
    place = Path(path)
    if place.is_char_device() or place.is_block_device():
        raise ValueError(f"{str(path)!r} is a device; give the path of a file")


def parse_json(text: str) -> Any:
    """What ``text`` holds, or a ValueError that says what two readers could take in two ways."""
    try:
        return json.loads(text, object_pairs_hook=without_repeats, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("the JSON is nested too deeply to be one of ours") from None


def without_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """An object's fields; of a field that is given twice, one reader takes the first and another the last."""
    found: dict[str, object] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"field {name[:80]!r} is given twice")
        found[name] = value
    return found


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number that JSON knows")
