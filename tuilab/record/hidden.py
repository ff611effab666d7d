"""Keeps the values of secret parameters out of whatever a run writes: its records and what it prints."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from tuilab.record.events import ImageShown, Unavailable, Unknown, tag_of

Clean = Callable[[Any], Any]  # of plain data


def cleaner(params: Mapping[str, Any], secrets: Sequence[str], words: Sequence[str] = ()) -> Clean | None:
    """Return what takes the values of secret parameters, and the secrets in a command's words, out of plain data, if any."""
    if not (secrets or words):
        return None
    from tuilab.scrub import scrubber_of, secrets_in  # most runs have no use for it

    values = [*(str(params[name]) for name in secrets if name in params), *secrets_in(words)]
    return scrubber_of(values) if values else None


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
