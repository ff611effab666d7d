"""Keeps the values of secret parameters out of whatever a run writes: its records and what it prints."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tuilab.record.events import ImageShown, Unavailable, Unknown, tag_of

Clean = Callable[[Any], Any]  # of plain data


def cleaner(params: Mapping[str, Any], secrets: Sequence[str]) -> Clean | None:
    """Return what takes the values of secret parameters out of plain data; nothing where there are none."""
    if not secrets:
        return None
    from tuilab.scrub import scrubber_of  # most runs have no use for it

    return scrubber_of(str(params[name]) for name in secrets if name in params)


def without(record: Any, clean: Clean) -> Any:
    """Return a record without what `clean` takes out: itself where that is nothing, a note where its parts no longer fit."""
    plain = msgspec.to_builtins(record)
    cells = plain.pop("cells", None) if isinstance(record, ImageShown) else None  # base64, which looks like a secret
    cleaned = clean(plain)
    if cleaned == plain:
        return record
    if cells is not None:
        cleaned["cells"] = cells
    try:
        return msgspec.convert(cleaned, type(record), strict=False)
    except msgspec.ValidationError:
        what = name_of(record).replace("_", " ")
        return Unavailable(n=record.n, t=record.t, what=what, reason="it held a secret, which was taken out")


def name_of(record: Any) -> str:
    """Return what records of this kind are called in a journal."""
    return record.k if isinstance(record, Unknown) else tag_of(type(record))


def clean_bytes(data: bytes, clean: Clean) -> bytes:
    """Return printed bytes without what is hidden."""
    text: str = clean(data.decode(errors="surrogateescape"))
    return text.encode(errors="surrogateescape")
