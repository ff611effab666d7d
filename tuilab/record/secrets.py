"""Keeps secrets out of whatever a run writes: its records and what it prints.

The values of secret parameters go from records and from what is printed. From records go also the values of this process's
secret variables, and what has the form of a token: an error or the name of a curve may hold one.
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

Clean = Callable[[Any], Any]  # of plain data

_NAMES_KEPT = 4096  # of curves, arms and units; a script that makes up new ones all the time is looked at again
_STRUCTURE = frozenset(  # fields that say what a record is about: no free text, and a part of them is no name of anything
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
    }
    | {"retry_of", "sha256", "uuid", "host", "cells"}
)


def cleaner(
    params: Mapping[str, Any], secrets: Sequence[str], words: Sequence[str] = ()
) -> Clean | None:
    """Return what takes the values of secret parameters, and the secrets in a command's words, out of plain data, if any."""
    if not (secrets or words):
        return None
    from tuilab.scrub import scrubber_of, secrets_in  # most runs have no use for it

    values = [*(str(params[name]) for name in secrets if name in params), *secrets_in(words)]
    return scrubber_of(values) if values else None


class Hiding:
    """Takes secrets out of the records of one process before they are written.

    What is logged at each step costs a look-up of its names, and no more.
    """

    def __init__(self, values: Clean | None = None) -> None:
        """Hide what `values` takes out, too."""
        self._values = values
        self._plain_names = {""}  # names without a secret in them
        self._curves: dict[
            str, str
        ] = {}  # what the names of curves with a secret in them are recorded as

    def __call__(self, event: Event) -> Event:
        """Return a record as it may be written: itself if there is no secret in it."""
        if type(event) is Logged:
            plain = self._plain_names
            return (
                event if plain.issuperset(event.v) and event.a in plain else self._hide_names(event)
            )
        if isinstance(event, ScenarioFailed):
            _without_secrets.cache_clear()  # the scenario may have set variables since, as from a file of secrets
        names = _names_of(event)
        if names and self._plain_names.issuperset(names):
            return event
        hidden: Event = without(event, self._clean)
        if names and hidden is event:
            self._keep(names)
        return hidden

    def _hide_names(self, event: Logged) -> Event:
        """Return a record of logged values as it may be written."""
        arm = self._text(event.a)
        values = {self._curve(name): value for name, value in event.v.items()}
        if arm == event.a and values.keys() == event.v.keys():
            self._keep((arm, *values))
            return event
        return msgspec.structs.replace(event, v=values, a=arm)

    def _curve(self, name: str) -> str:
        """Return the name of a curve without secrets: curves of different names keep different names."""
        clean = self._text(name)
        if clean == name:
            return name
        if name not in self._curves:
            shown = clean
            count = 1
            while shown in self._curves.values():
                count += 1
                shown = f"{clean} {count}"
            self._curves[name] = shown
        return self._curves[name]

    def _keep(self, names: Sequence[str]) -> None:
        if len(self._plain_names) > _NAMES_KEPT:
            self._plain_names = {""}
        self._plain_names.update(names)

    def _clean(self, plain: dict[str, Any]) -> dict[str, Any]:
        """Return the fields of a record without secrets."""
        return {
            name: value if name in _STRUCTURE else self._walk(value)
            for name, value in plain.items()
        }

    def _walk(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, dict):
            return {self._text(str(name)): self._walk(inner) for name, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._walk(inner) for inner in value]
        return value

    def _text(self, text: str) -> str:
        clean: str = text if self._values is None else self._values(text)
        return _without_secrets()(clean)


@lru_cache(1)
def _without_secrets() -> Callable[[str], str]:
    """Return what takes the values of secret variables, and the forms of tokens, out of a text."""
    from tuilab.scrub import (
        cleaner_of_texts,
    )  # `tuilab list` does without it, and reads records as well

    return cleaner_of_texts()


def _names_of(event: Event) -> tuple[str, ...]:
    """Return all texts of a record of which there may be many; nothing for other kinds."""
    if isinstance(event, BlockTimed):
        return (event.arm,)
    if isinstance(event, Progressed):
        return (event.unit,)
    if isinstance(event, MemoryMeasured):
        return (event.name, event.arm, *event.values)
    return ()


def without(record: Any, clean: Clean) -> Any:
    """Return a record without what `clean` takes out: itself where that is nothing, a note where its parts no longer fit."""
    plain = msgspec.to_builtins(record)
    cells = (
        plain.pop("cells", None) if isinstance(record, ImageShown) else None
    )  # base64, which looks like a secret
    cleaned = clean(plain)
    if cleaned == plain:
        return record
    if cells is not None:
        cleaned["cells"] = cells
    try:
        return msgspec.convert(cleaned, type(record), strict=False)
    except msgspec.ValidationError:
        what = name_of(record).replace("_", " ")
        return Unavailable(
            n=record.n, t=record.t, what=what, reason="it held a secret, which was taken out"
        )


def name_of(record: Any) -> str:
    """Return what records of this kind are called in a journal."""
    return record.k if isinstance(record, Unknown) else tag_of(type(record))


def clean_bytes(data: bytes, clean: Clean) -> bytes:
    """Return printed bytes without what is hidden."""
    text: str = clean(_decoded(data))
    return text.encode(errors="surrogateescape")


def secret_places(log: Path, environ: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return from where to where values of secret variables stand in what a run printed: characters of the file."""
    from tuilab.scrub.values import places_in, secret_values  # `tuilab list` does without it

    values = secret_values(environ)
    return places_in(_decoded(log.read_bytes()), values) if values else []


def without_places(data: bytes, places: Sequence[tuple[int, int]]) -> bytes:
    """Return printed bytes without what stands in some places, which come in their order."""
    text = _decoded(data)
    kept = []
    at = 0
    for begin, end in places:
        if at <= begin <= end:
            kept += [text[at:begin], GONE]
            at = end
    return "".join([*kept, text[at:]]).encode(errors="surrogateescape")


def _decoded(data: bytes) -> str:
    return data.decode(errors="surrogateescape")
