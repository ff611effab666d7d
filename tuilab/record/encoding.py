"""How a record becomes the JSON of its line: exactly, or as much of it as a line holds.

What a scenario hands in is written exactly or refused. What tuilab itself has to say is written whatever it holds: half a
character is replaced, and of texts and lists that are too long the beginning is kept, with a word of what is left out.
"""

import json
import math
from typing import Any

import msgspec

from tuilab.record.events import Event
from tuilab.text.display import clip

LINE_LIMIT = 64 * 1024
_BODY_LIMIT = LINE_LIMIT - 10  # beside the checksum, a space and the line feed
_CUTS = (
    (4000, 400),
    (1000, 100),
    (100, 20),
)  # characters of a text and entries of a list that are kept, from try to try
_ARGUMENTS = {
    "s": "step",
    "a": "arm",
    "v": "the names and values together",
}  # what the short keys of the hot record stand for

_encode_json = msgspec.json.Encoder().encode


def encode_finite(event: Event) -> bytes:
    """Return the JSON of an event without NaN and Inf, however long: the hot path of `Lab.log`."""
    try:
        return _encode_json(event)
    except UnicodeEncodeError:
        raise refusal(event) from None


def encode_exactly(event: Event) -> bytes:
    """Return the JSON of an event, or raise ValueError that names what cannot be written."""
    try:
        body = _encode_json(spell_out(msgspec.to_builtins(event)))
    except UnicodeEncodeError:
        raise refusal(event) from None
    if len(body) > _BODY_LIMIT:
        raise refusal(event)
    return body


def encode_anything(event: Event) -> bytes:
    """Return the JSON of an event, of long texts and lists only the beginning when the whole is too long for a line."""
    plain = spell_out(msgspec.to_builtins(event))
    body = _encode_plain(plain)
    for characters, entries in _CUTS:
        if len(body) <= _BODY_LIMIT:
            break
        body = _encode_plain(_cut(plain, characters, entries))
    return body


def refusal(event: Event) -> ValueError:
    """Return why an event cannot be written exactly: the field with half a character, or the longest one."""
    sizes: dict[str, int] = {}
    for key, value in msgspec.to_builtins(event).items():
        name = _ARGUMENTS.get(key, key)
        try:
            sizes[name] = len(_encode_json(spell_out(value)))
        except UnicodeEncodeError:
            return ValueError(
                f"{name}: half a character (a lone surrogate) cannot be recorded, as in {ascii(value)[:60]}"
            )
    longest = max(sizes, key=lambda name: sizes[name])
    return ValueError(
        f"{longest}: too long, {sizes[longest]} bytes; a record holds {LINE_LIMIT} bytes at most"
    )


def spell_out(value: Any) -> Any:
    """Return plain data with non-finite floats spelled as strings: JSON has no word for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else spell(value)
    if isinstance(value, dict):
        return {key: spell_out(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [spell_out(inner) for inner in value]
    return value


def for_programs(document: Any, indent: int | None = 2) -> str:
    """Return a document, plain data or a struct, as JSON that every reader takes: NaN and Inf, which JSON lacks, are texts."""
    return json.dumps(spell_out(msgspec.to_builtins(document)), indent=indent, allow_nan=False)


def spell(value: float) -> str:
    """Return how a journal spells a non-finite float."""
    return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"


def _encode_plain(plain: Any) -> bytes:
    try:
        return _encode_json(plain)
    except UnicodeEncodeError:  # half a character, as in a file name that is not UTF-8
        return json.dumps(plain, ensure_ascii=False).encode(errors="replace")


def _cut(value: Any, characters: int, entries: int) -> Any:
    """Return plain data with long texts, and long lists and tables of texts, cut; whatever reads it finds the same types."""
    if isinstance(value, str):
        return clip(value, characters)
    if isinstance(value, list):
        kept = value[:entries] if all(isinstance(part, str) for part in value) else value
        more = [f"… {len(value) - len(kept)} more"] if len(kept) < len(value) else []
        return [_cut(part, characters, entries) for part in kept] + more
    if isinstance(value, dict):
        keys = list(value)[
            : entries if all(isinstance(part, str) for part in value.values()) else None
        ]
        rest = {"…": f"{len(value) - len(keys)} more"} if len(keys) < len(value) else {}
        return {
            _cut(key, characters, entries): _cut(value[key], characters, entries) for key in keys
        } | rest
    return value
