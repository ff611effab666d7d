"""Removes secrets from everything that a run writes: its records and its output.

The values of secret parameters are removed from both. From records, the values of this process's
secret variables and everything that looks like a token are removed as well: an error or the name of
a curve may contain one.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from tuilab.record.events import (
    BlockTimed,
    Event,
    ImageShown,
    Logged,
    MemoryMeasured,
    Progressed,
    ScenarioFailed,
    Unavailable,
    Unknown,
    tag_of,
)
from tuilab.text.display import GONE

Clean = Callable[[Any], Any]  # takes and returns plain data

_NAMES_KEPT = 4096  # curves, arms and units; a script that always makes new ones is checked again
# Fields that identify a record. They are no free text, and a part of them is no name of anything.
_STRUCTURE = frozenset(
    {
        "k",
        "run",
        "scenario",
        "topic",
        "source_sha256",
        "supervisor",
        "tuilab",
        "writer",
        "key",
        "claim_keys",
        "rule",
        "retry_of",
        "sha256",
        "uuid",
        "host",
        "cells",
    }
)


def cleaner(
    params: Mapping[str, Any], secrets: Sequence[str], words: Sequence[str] = ()
) -> Clean | None:
    """Return a function that removes the secrets of a run from plain data; None if it has none.

    These are the values of the parameters named in `secrets`, and the secrets among the words of a
    command.
    """
    if not (secrets or words):
        return None
    # imported here: most runs do not need it
    from tuilab.scrub import scrubber_of, secrets_in

    values = [str(params[name]) for name in secrets if name in params]
    values += secrets_in(words)
    if not values:
        return None
    return scrubber_of(values)


class Hiding:
    """Removes secrets from the records of one process before they are written.

    A record of a step costs only a look-up of its names.
    """

    def __init__(self, values: Clean | None = None) -> None:
        """Use `values` to remove further secrets."""
        self._values = values
        self._plain_names = {""}  # names that contain no secret
        self._curves: dict[str, str] = {}  # by name with a secret: the name that is recorded

    def __call__(self, event: Event) -> Event:
        """Return a record without secrets: the same object if it has none."""
        if type(event) is Logged:
            plain = self._plain_names
            if plain.issuperset(event.v) and event.a in plain:
                return event
            return self._hide_names(event)
        if isinstance(event, ScenarioFailed):
            # The scenario may have set secret variables meanwhile, for example from a file.
            _token_cleaner.cache_clear()
        names = _names_of(event)
        if names and self._plain_names.issuperset(names):
            return event
        hidden: Event = without(event, self._clean)
        if names and hidden is event:
            self._keep(names)
        return hidden

    def _hide_names(self, event: Logged) -> Event:
        """Return a record of logged values with names that contain no secret."""
        arm = self._text(event.a)
        values = {self._curve(name): value for name, value in event.v.items()}
        if arm == event.a and values.keys() == event.v.keys():
            self._keep((arm, *values))
            return event
        return msgspec.structs.replace(event, v=values, a=arm)

    def _curve(self, name: str) -> str:
        """Return the name of a curve without secrets; different curves keep different names."""
        clean = self._text(name)
        if clean == name:
            return name
        if name not in self._curves:
            recorded = clean
            count = 1
            while recorded in self._curves.values():
                count += 1
                recorded = f"{clean} {count}"
            self._curves[name] = recorded
        return self._curves[name]

    def _keep(self, names: Sequence[str]) -> None:
        """Remember names without secrets; if there are too many, forget the earlier ones."""
        if len(self._plain_names) > _NAMES_KEPT:
            self._plain_names = {""}
        self._plain_names.update(names)

    def _clean(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a record without secrets."""
        cleaned = {}
        for name, value in plain.items():
            if name in _STRUCTURE:
                cleaned[name] = value
            else:
                cleaned[name] = self._walk(value)
        return cleaned

    def _walk(self, value: Any) -> Any:
        """Return plain data with every text cleaned, also in dicts (keys too) and lists."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(str(name)): self._walk(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(inner) for inner in value]
        return value

    def _text(self, text: str) -> str:
        clean: str = text if self._values is None else self._values(text)
        return _token_cleaner()(clean)


@lru_cache(1)
def _token_cleaner() -> Callable[[str], str]:
    """Return a function that removes the values of secret variables, and tokens, from a text."""
    # imported here: `tuilab list` reads records as well, and does not need it
    from tuilab.scrub import cleaner_of_texts

    return cleaner_of_texts()


def _names_of(event: Event) -> tuple[str, ...]:
    """Return the texts of a record if its kind is frequent and has no other texts; else none."""
    if isinstance(event, BlockTimed):
        return (event.arm,)
    if isinstance(event, Progressed):
        return (event.unit,)
    if isinstance(event, MemoryMeasured):
        return (event.name, event.arm, *event.values)
    return ()


def without(record: Any, clean: Clean) -> Any:
    """Return a record without the secrets that `clean` removes: the same object if there are none.

    If the rest is no valid record, a note is returned instead.
    """
    plain = msgspec.to_builtins(record)
    cells = None
    if isinstance(record, ImageShown):
        cells = plain.pop("cells", None)  # base64, which looks like a secret
    cleaned = clean(plain)
    if cleaned == plain:
        return record
    if cells is not None:
        cleaned["cells"] = cells
    try:
        return msgspec.convert(cleaned, type(record), strict=False)
    except msgspec.ValidationError:
        what = name_of(record).replace("_", " ")
        reason = "it held a secret, which was taken out"
        return Unavailable(n=record.n, t=record.t, what=what, reason=reason)


def name_of(record: Any) -> str:
    """Return the name of a record's kind in the journal."""
    if isinstance(record, Unknown):
        return record.k
    return tag_of(type(record))


def clean_bytes(data: bytes, clean: Clean) -> bytes:
    """Return printed bytes without the secrets that `clean` removes."""
    text: str = clean(_decoded(data))
    return text.encode(errors="surrogateescape")


def secret_places(log: Path, environ: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return the places of secret values in a file of output, as (begin, end) in characters."""
    # imported here: `tuilab list` does not need it
    from tuilab.scrub.values import places_in, secret_values

    values = secret_values(environ)
    if not values:
        return []
    return places_in(_decoded(log.read_bytes()), values)


def without_places(data: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    """Return printed bytes without the characters at some places, which are in order."""
    text = _decoded(data)
    parts = []
    position = 0
    for begin, end in places:
        if position <= begin <= end:
            parts += [text[position:begin], GONE]
            position = end
    parts.append(text[position:])
    return "".join(parts).encode(errors="surrogateescape")


def _decoded(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
