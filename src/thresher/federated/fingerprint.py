"""A hash by which machines know that they mean the same."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

__all__ = ["fingerprint"]


def fingerprint(facts: Any) -> str:
    """64 hexadecimal digits that tell these facts from others.

    Of a number nine digits count: the last ones of what is computed may differ between two machines' libraries.
    """
    return sha256(json.dumps(_plain(facts), sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float):
        return f"{value:.9g}"
    return value if isinstance(value, (bool, int, str)) or value is None else str(value)
