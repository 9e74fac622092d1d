"""The releases: each is one kind of private answer, described by a few numbers, that knows its own price.

A release is priced by its noise *multiplier* (noise scale over sensitivity), never by an absolute scale: the vault
derives the sensitivity from the clip in force and scales the multiplier. So a clip level may be chosen while
running, from earlier private answers, without touching the price.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from thresher.privacy.releases.averages import *  # noqa: F403  (each file lists what it defines)
from thresher.privacy.releases.base import *  # noqa: F403
from thresher.privacy.releases.base import Release
from thresher.privacy.releases.choices import *  # noqa: F403
from thresher.privacy.releases.composed import *  # noqa: F403
from thresher.privacy.releases.federated import *  # noqa: F403
from thresher.privacy.releases.local import *  # noqa: F403
from thresher.privacy.releases.minimisers import *  # noqa: F403
from thresher.privacy.releases.sampled import *  # noqa: F403
from thresher.privacy.strict_json import Record


def _subclasses(kind: type[Release]) -> Iterator[type[Release]]:
    for each in kind.__subclasses__():
        yield each
        yield from _subclasses(each)


_KINDS = {kind.__name__: kind for kind in _subclasses(Release) if "question" in kind.__annotations__}
"""Those that state what is asked, by name: all of the files here, and none that is defined later, or elsewhere."""


def release_from_dict(fields: Record) -> Release:
    """The release a certificate lists; only kinds priced here are known."""
    arguments: dict[str, Any] = {name: _read(value) for name, value in fields.items()}
    kind = _KINDS.get(arguments.pop("kind", None))
    if kind is None:
        raise ValueError(f"unknown release kind {fields.get('kind')!r}; known: {', '.join(_KINDS)}")
    return kind(**arguments)


def _read(value: object) -> object:
    """A field as it was: some releases are made of others."""
    if isinstance(value, dict):
        return release_from_dict(value)
    return tuple(map(_read, value)) if isinstance(value, (list, tuple)) else value


def is_priced_here(release: object) -> bool:
    """Whether ``release`` is one of our own kinds, and not a look-alike with a price of its own."""
    return type(release) in _KINDS.values() and all(map(is_priced_here, getattr(release, "parts", ())))
