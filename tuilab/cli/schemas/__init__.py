"""What each document of `--json` has, as a JSON Schema."""

import ast
import inspect
import json
from itertools import pairwise
from typing import Any, get_args, get_type_hints

import msgspec

from tuilab.cli.schemas import box, runs, shared
from tuilab.reports import compare_document, result
from tuilab.reports.advice import advice_document
from tuilab.reports.formats import json as report
from tuilab.reports.sweeps import document

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_NUMBER = {
    "anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]
}  # as documents spell a float
_MODULES = (
    result,
    advice_document,
    compare_document,
    report,
    document,
    shared,
    box,
    runs,
)  # a base class comes first


def names() -> list[str]:
    """Return what each document calls its schema."""
    return sorted(_documents())


def schema_of(name: str) -> str:
    """Return the JSON Schema of the documents that name it."""
    document_type = _documents()[name]
    schema = msgspec.json.schema(document_type)
    _describe(schema["$defs"])
    heads = {"$schema": _DIALECT, "title": name}
    if document_type.__doc__:
        heads["description"] = " ".join(document_type.__doc__.split())
    return json.dumps({**heads, **_strict(schema)}, indent=1) + "\n"


def _documents() -> dict[str, Any]:
    """Return the types of documents by their schema."""
    documents = {}
    for module in _MODULES:
        for found in vars(module).values():
            config = getattr(found, "__struct_config__", None)
            if config and config.tag_field == "schema":
                documents[config.tag] = found
            elif "schema" in getattr(found, "__annotations__", ()):
                documents[get_args(get_type_hints(found)["schema"])[0]] = found
    return documents


def _describe(definitions: dict[str, Any]) -> None:
    """Give each field of some types the text below it in the source as its description."""
    texts: dict[str, dict[str, str]] = {}
    for module in _MODULES:
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.ClassDef):
                inherited = [texts.get(ast.unparse(base), {}) for base in node.bases]
                texts[node.name] = {
                    name: text for base in inherited for name, text in base.items()
                } | _texts_of(node)
    for type_name, definition in definitions.items():
        for name, field in definition.get("properties", {}).items():
            if name in texts.get(type_name, {}):
                field["description"] = texts[type_name][name]


def _texts_of(node: ast.ClassDef) -> dict[str, str]:
    """Return the text below each field of a class by the name that the field has in JSON."""
    texts = {}
    for field, below in pairwise(node.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(name), value=value), ast.Expr(
                ast.Constant(str(text))
            ):
                for keyword in getattr(value, "keywords", []):
                    if keyword.arg == "name":
                        name = keyword.value.value
                texts[name] = " ".join(text.split())
    return texts


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
        strict = {
            name: inner for name, inner in strict.items() if name not in ("title", "description")
        }
        strict["properties"] = {name: _plain(inner) for name, inner in strict["properties"].items()}
        strict["additionalProperties"] = False
    return strict


def _plain(schema: Any) -> Any:
    return {name: inner for name, inner in schema.items() if name not in ("title", "default")}
