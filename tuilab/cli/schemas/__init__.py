"""Make the JSON Schema of each document that `--json` prints."""

import ast
import inspect
import json
from itertools import pairwise
from typing import Any, get_args, get_type_hints

import msgspec

from tuilab.cli.schemas import box, runs, shared
from tuilab.reports import result
from tuilab.reports.advice import advice_document
from tuilab.reports.documents import compare_document
from tuilab.reports.formats import json as report
from tuilab.reports.sweeps import document
from tuilab.reports.tuning import document as tuning_document

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
# Documents spell a float so that JSON can hold it.
_NUMBER = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
# The modules with the types of documents; the module of a base class comes first.
_MODULES = (
    tuning_document,
    result,
    advice_document,
    compare_document,
    report,
    document,
    shared,
    box,
    runs,
)


def names() -> list[str]:
    """Return the names of all schemas, such as `tuilab.runs/1`."""
    return sorted(_find_document_types())


def schema_of(name: str) -> str:
    """Return the JSON Schema of the documents that have this name in their field `schema`.

    Raises KeyError for an unknown name: see `names`.
    """
    document_type = _find_document_types()[name]
    schema = msgspec.json.schema(document_type)
    _add_descriptions(schema["$defs"])
    header = {"$schema": _DIALECT, "title": name}
    if document_type.__doc__:
        header["description"] = " ".join(document_type.__doc__.split())
    return json.dumps({**header, **_make_strict(schema)}, indent=1) + "\n"


def _find_document_types() -> dict[str, Any]:
    """Return the types of documents by the name of their schema.

    A type has that name as its tag, or as the only value of its field `schema`.
    """
    types = {}
    for module in _MODULES:
        for candidate in vars(module).values():
            config = getattr(candidate, "__struct_config__", None)
            if config and config.tag_field == "schema":
                types[config.tag] = candidate
            elif "schema" in getattr(candidate, "__annotations__", ()):
                (name,) = get_args(get_type_hints(candidate)["schema"])
                types[name] = candidate
    return types


# ---- descriptions of fields


def _add_descriptions(definitions: dict[str, Any]) -> None:
    """Describe each field by the text below it in the source of its type; changes `definitions`."""
    texts_of_types = _read_texts()
    for type_name, definition in definitions.items():
        texts = texts_of_types.get(type_name, {})
        for name, field in definition.get("properties", {}).items():
            if name in texts:
                field["description"] = texts[name]


def _read_texts() -> dict[str, dict[str, str]]:
    """Return by type the text below each field, inherited fields included."""
    texts_of_types: dict[str, dict[str, str]] = {}
    for module in _MODULES:
        for node in ast.parse(inspect.getsource(module)).body:
            if not isinstance(node, ast.ClassDef):
                continue
            texts: dict[str, str] = {}
            for base in node.bases:
                texts |= texts_of_types.get(ast.unparse(base), {})
            texts_of_types[node.name] = texts | _read_texts_of(node)
    return texts_of_types


def _read_texts_of(node: ast.ClassDef) -> dict[str, str]:
    """Return the text below each field of a class, by the name that the field has in JSON."""
    texts = {}
    for field, below in pairwise(node.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name), value=value), ast.Expr(
                ast.Constant(str(text))
            ):
                for keyword in getattr(value, "keywords", []):  # of msgspec.field(name=...)
                    if keyword.arg == "name":
                        name = keyword.value.value
                texts[name] = " ".join(text.split())
    return texts


# ---- strictness


def _make_strict(schema: Any) -> Any:
    """Return a schema without defaults and names of types, whose objects have no other fields."""
    if isinstance(schema, list):
        return [_make_strict(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    if schema == {"type": "number"}:
        return _NUMBER
    strict = {name: _make_strict(inner) for name, inner in schema.items()}
    if isinstance(schema.get("properties"), dict):
        strict = _without(strict, "title", "description")
        properties = strict["properties"].items()
        strict["properties"] = {
            name: _without(inner, "title", "default") for name, inner in properties
        }
        strict["additionalProperties"] = False
    return strict


def _without(schema: dict[str, Any], *left_out: str) -> dict[str, Any]:
    return {name: inner for name, inner in schema.items() if name not in left_out}
