"""Encodes a record as the JSON of its line: exactly, or as much of it as a line holds.

The values of a scenario are written exactly or refused. The records of tuilab itself are always
written: half a character is replaced, and long texts and lists are cut, with a note of how much is
left out.
"""

import json
import math
from typing import Any

import msgspec

from tuilab.record.events import Event
from tuilab.text.display import clip

LINE_LIMIT = 64 * 1024
_BODY_LIMIT = LINE_LIMIT - 10  # without the checksum, a space and the line feed
# Characters of a text and entries of a list that are kept, from the first try to the last.
_CUTS = ((4000, 400), (1000, 100), (100, 20))
# The meaning of the short keys of `Logged`, for people.
_ARGUMENTS = {"s": "step", "a": "arm", "v": "the names and values together"}

_encode_json = msgspec.json.Encoder().encode


def encode_finite(event: Event) -> bytes:
    """Return the JSON of an event that has no NaN and no Inf; the length is not checked.

    Raises ValueError for half a character. This is the hot path of `Lab.log`.
    """
    try:
        return _encode_json(event)
    except UnicodeEncodeError:
        raise refusal(event) from None


def encode_exactly(event: Event) -> bytes:
    """Return the JSON of an event, or raise ValueError that names the field that is refused."""
    try:
        body = _encode_json(spell_out(msgspec.to_builtins(event)))
    except UnicodeEncodeError:
        raise refusal(event) from None
    if len(body) > _BODY_LIMIT:
        raise refusal(event)
    return body


def encode_anything(event: Event) -> bytes:
    """Return the JSON of an event; if it is too long for a line, its texts and lists are cut."""
    plain = spell_out(msgspec.to_builtins(event))
    body = _encode_plain(plain)
    for characters, entries in _CUTS:
        if len(body) <= _BODY_LIMIT:
            break
        body = _encode_plain(_cut(plain, characters, entries))
    return body


def refusal(event: Event) -> ValueError:
    """Return the error of an event that cannot be written exactly.

    It names the field with half a character, or the longest field.
    """
    sizes: dict[str, int] = {}
    for key, value in msgspec.to_builtins(event).items():
        name = _ARGUMENTS.get(key, key)
        try:
            sizes[name] = len(_encode_json(spell_out(value)))
        except UnicodeEncodeError:
            example = ascii(value)[:60]
            return ValueError(
                f"{name}: half a character (a lone surrogate) cannot be recorded, as in {example}"
            )
    longest = max(sizes, key=lambda name: sizes[name])
    return ValueError(
        f"{longest}: too long, {sizes[longest]} bytes; a record holds {LINE_LIMIT} bytes at most"
    )


def spell_out(value: Any) -> Any:
    """Return plain data with non-finite floats as strings, because JSON has no form for them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else spell(value)
    if isinstance(value, dict):
        return {key: spell_out(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [spell_out(inner) for inner in value]
    return value


def for_programs(document: Any, indent: int | None = 2) -> str:
    """Return plain data or a struct as JSON for any reader: NaN and Inf are texts."""
    return json.dumps(spell_out(msgspec.to_builtins(document)), indent=indent, allow_nan=False)


def spell(value: float) -> str:
    """Return the text of a non-finite float in a journal."""
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"


def _encode_plain(plain: Any) -> bytes:
    """Return plain data as JSON, with half a character replaced."""
    try:
        return _encode_json(plain)
    except UnicodeEncodeError:  # half a character, as in a file name that is not UTF-8
        return json.dumps(plain, ensure_ascii=False).encode(errors="replace")


def _cut(value: Any, characters: int, entries: int) -> Any:
    """Return plain data with long texts cut, and long lists and tables of texts; types stay."""
    if isinstance(value, str):
        return clip(value, characters)
    if isinstance(value, list):
        return _cut_list(value, characters, entries)
    if isinstance(value, dict):
        return _cut_dict(value, characters, entries)
    return value


def _cut_list(values: list[Any], characters: int, entries: int) -> list[Any]:
    """Return a list with long texts cut; a list of texts alone also loses its further entries.

    Then the last entry says how many are left out.
    """
    kept = values
    if all(isinstance(value, str) for value in values):
        kept = values[:entries]
    cut = [_cut(value, characters, entries) for value in kept]
    if len(kept) < len(values):
        cut.append(f"… {len(values) - len(kept)} more")
    return cut


def _cut_dict(values: dict[Any, Any], characters: int, entries: int) -> dict[Any, Any]:
    """Return a table with its texts cut; a table of texts also loses the entries above the limit.

    A struct is a table as well, but not of texts alone: it keeps all its fields.
    """
    keys = list(values)
    if all(isinstance(value, str) for value in values.values()):
        keys = keys[:entries]
    cut: dict[Any, Any] = {}
    for key in keys:
        short_key = _cut(key, characters, entries)
        if short_key not in cut:  # of keys that are alike once they are cut, the first one stays
            cut[short_key] = _cut(values[key], characters, entries)
    left_out = len(values) - len(cut)
    if left_out:
        cut["…"] = f"{left_out} more"
    return cut
