"""What each document of `--json` has, as a JSON Schema."""

import json
from typing import Any, get_args, get_type_hints

import msgspec

from tuilab.cli.schemas import box, runs
from tuilab.reports.advice.advice_document import AdviceDocument
from tuilab.reports.compare_document import CompareDocument, HistoryDocument
from tuilab.reports.formats.json import Report
from tuilab.reports.result import Results
from tuilab.reports.sweeps.document import SweepDocument

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}  # as documents spell a float
_OF_STRUCTS: dict[str, Any] = {
    str(document.__struct_config__.tag): document
    for document in (AdviceDocument, CompareDocument, HistoryDocument, Report, Results, SweepDocument)
}


def names() -> list[str]:
    """Return what each document calls its schema."""
    return sorted(_documents())


def schema_of(name: str) -> str:
    """Return the JSON Schema of the documents that name it."""
    document = _documents()[name]
    heads = {"$schema": _DIALECT, "title": name}
    if document.__doc__:
        heads["description"] = " ".join(document.__doc__.split())
    return json.dumps({**heads, **_strict(msgspec.json.schema(document))}, indent=1) + "\n"


def _documents() -> dict[str, Any]:
    """Return the types of documents by their schema."""
    types = [one for room in (box, runs) for one in vars(room).values() if "schema" in getattr(one, "__annotations__", ())]
    return {**_OF_STRUCTS, **{get_args(get_type_hints(one)["schema"])[0]: one for one in types}}


def _strict(schema: Any) -> Any:
    """Return a schema by which an object has what it names and nothing else, without defaults and the names of our types."""
    if isinstance(schema, list):
        return [_strict(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == {"type": "number"}:
        return _NUMBER
    strict = {name: _strict(inner) for name, inner in schema.items()}
    if isinstance(schema.get("properties"), dict):
        strict = {name: inner for name, inner in strict.items() if name not in ("title", "description")}
        strict["properties"] = {name: _plain(inner) for name, inner in strict["properties"].items()}
        strict["additionalProperties"] = False
    return strict


def _plain(schema: Any) -> Any:
    return {name: inner for name, inner in schema.items() if name not in ("title", "default")}
