"""What each document of `--json` has, as a JSON Schema; that of reports is kept beside their format, with what a run has."""

import json
from typing import Any, get_args, get_type_hints

import msgspec

from tuilab.cli.schemas import box, runs
from tuilab.reports.document import SCHEMA as RESULT
from tuilab.reports.formats.full import SCHEMA as REPORT
from tuilab.reports.formats.full import schema as schema_of_reports

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_OF_REPORTS = {  # what a run of a report has beyond its result
    *(
        "command",
        "started_wall_ns",
        "repeats",
        "variables",
        "earlier",
        "declared",
        "sweep",
        "gaps",
        "notes",
        "tags",
    ),
    *("lesson", "source", "images", "artifacts", "samples"),
}


def names() -> list[str]:
    """Return what each document calls its schema."""
    return sorted([RESULT, REPORT, *_documents()])


def schema_of(name: str) -> str:
    """Return the JSON Schema of the documents that name it."""
    if name == REPORT:
        return schema_of_reports()
    found = _of_results() if name == RESULT else msgspec.json.schema(_documents()[name])
    return json.dumps({"$schema": _DIALECT, "title": name, **_strict(found)}, indent=1) + "\n"


def _documents() -> dict[str, Any]:
    """Return the types of documents by their schema."""
    types = [one for room in (box, runs) for one in vars(room).values() if "schema" in getattr(one, "__annotations__", ())]
    return {get_args(get_type_hints(one)["schema"])[0]: one for one in types}


def _of_results() -> dict[str, Any]:
    """Return what `tuilab run --json` has: the runs of a report, without what only a report has."""
    found = json.loads(schema_of_reports())
    run = found["$defs"]["run"]
    run["properties"] = {name: what for name, what in run["properties"].items() if name not in _OF_REPORTS}
    run["required"] = [name for name in run["required"] if name not in _OF_REPORTS]
    heads = {"schema": {"const": RESULT}, "exit_code": {"type": "integer"}, "runs": found["properties"]["runs"]}
    return {"type": "object", "properties": heads, "required": [*heads], "$defs": found["$defs"]}


def _strict(schema: Any) -> Any:
    """Return a schema by which an object has what it names and nothing else, without defaults and the names of our types."""
    if isinstance(schema, list):
        return [_strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: _strict(inner) for name, inner in schema.items()}
    if isinstance(schema.get("properties"), dict):
        found = {name: inner for name, inner in found.items() if name not in ("title", "description")}
        found |= {"properties": {name: _plain(inner) for name, inner in found["properties"].items()}}
        return {**found, "additionalProperties": False}
    return found


def _plain(schema: Any) -> Any:
    return {name: inner for name, inner in schema.items() if name not in ("title", "default")}
