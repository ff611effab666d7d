"""Aids for tests of reports: recorded runs, a run with hostile names, and a real browser."""

import base64
import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import make_run, started
from tests.record_journals import JOURNALS
from tuilab.cli.schemas import schema_of
from tuilab.record import events
from tuilab.reports.formats.json import render
from tuilab.reports.reported_run import ReportedRun, read_subject


def find_chromium() -> str | None:
    """Return the path of a Chromium; None if there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    return None


CHROMIUM = find_chromium()
ALL = [path.parent.name for path in sorted(JOURNALS.glob("*/journal"))]


def in_chromium(test: Callable[..., None]) -> Any:
    """Mark a test that opens a page in a real browser."""
    needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
    return pytest.mark.tools(needs_chromium(test))


def recorded(name: str) -> ReportedRun:
    """Read one of the recorded runs."""
    return read_subject(JOURNALS / name)


def damaged_run(root: Path) -> Path:
    """Copy the recorded tour into a folder of runs, and damage one of its records."""
    run_dir = root / "20270101T000000000Z-tour-dadada"
    shutil.copytree(JOURNALS / "tour", run_dir)
    stream = run_dir / "journal" / "worker-0.jsonl"
    lines = stream.read_bytes().split(b"\n")
    lines[20] = lines[20].replace(b":", b";", 1)
    stream.write_bytes(b"\n".join(lines))
    return run_dir


def json_document(subjects: Sequence[ReportedRun]) -> Any:
    """Return the JSON document about some runs, as a program reads it."""
    return json.loads("".join(render(subjects)), parse_constant=pytest.fail)


def hostile_run(root: Path, text: str) -> Path:
    """Make a run in which every word that a scenario can choose is `text`."""
    first = started(
        scenario=text,
        topic=text,
        title=text,
        params={"rows": text},
        changed=["rows"],
        claims=[text],
        argv=[text],
    )
    end = events.StateChanged(state="failed", reason=text)
    records = [first, *_hostile_machine(text), *_hostile_output(text), *_hostile_end(text), end]
    run_dir = make_run(root, *records, end="f00d00")
    (run_dir / "scenario.py").write_text(f'"""{text}"""\n# {text}\ndef run(lab): pass\n')
    return run_dir


def _hostile_machine(text: str) -> list[events.Event]:
    """Return records about the machine, and the first values that were logged on it."""
    tenants = [events.Tenant(1, text), events.Tenant(2, "", text)]
    reading = {"memory_used_bytes": 1.0, "busy_percent": 5.0, "throttle_mask": 8.0, text: 2.0}
    return [
        events.EnvironmentRecorded(part="box", facts={text: text, "deep": {text: [text]}}),
        events.GpuFound(uuid=text, index=0, name=text, bytes_total=1, slice=text),
        events.XidReported(uuid=text, xid=31),
        events.XidReported(uuid=text + "2", xid=31),
        events.Unavailable(what=text, reason=text),
        events.StageEntered(name=text),
        events.Logged(s=0, v={text: 1.0}, a=text),
        events.Logged(s=1, v={text: float("nan")}, a=text),
        events.GpuHeld(uuid=text, allocated_bytes=1, reserved_bytes=2),
        events.GpuShared(uuid=text, others=tenants, count=2),
        events.Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=1, gpus={text: reading}),
    ]


def _hostile_output(text: str) -> list[events.Event]:
    """Return records of everything that a scenario can show."""
    one_black_cell = base64.b64encode(b"\x00").decode()
    return [
        events.ClaimMeasured(
            text=text,
            got=events.Measured(words=text),
            op="equals",
            want=events.Measured(numbers=[1.0]),
            unit=text,
        ),
        events.TextShown(text=text, title=text),
        events.ImageShown(
            title=text, rows=1, cols=1, cells=one_black_cell, low=0, high=1, arm=text
        ),
        events.AxesNamed(metric=text, x=text, y=text),
        events.BarsShown(title=text, names=[text], values=[1.0], unit=text),
        events.TableShown(title=text + "2", head=[text], rows=[[text]]),
        events.SpanShown(lane=text, began=0.0, ended=1.0, name=text, arm=text, unit=text),
        events.MemoryMeasured(name=text, values={text: 1.0}, arm=text),
        events.ArtifactSaved(name=text, bytes_total=1, sha256=text),
    ]


def _hostile_end(text: str) -> list[events.Event]:
    """Return records of a race, of a failure, and of a verdict."""
    return [
        events.BlockTimed(arm=text, round=0, slot=0, loops=1, wall_ns=1000, cpu_ns=1000),
        events.RaceFinished(arms=[text], is_same=False, difference=text),
        events.ScenarioFailed(type=text, message=text, traceback=text, hint=text),
        events.LeftoversEnded(processes=[text], count=1),
        events.VerdictReached(text=text, verdict="SUPPORTED", rule="r", why=text),
    ]


_SETTINGS = "batch_32_seq_4096_tp_8_pp_2_dp_4_lr_"
PREFIX = f"llama_7b_bf16_flash_attention_zero3_grad_checkpoint_{_SETTINGS}" * 4
ALIKE = [
    *(PREFIX + "one", PREFIX + "two", "日本語ラベル" * 60),
    *("lr=1e-3", "lr:1e-3", "LR=1e-3", "lr_1e-3", "a", "a ", " ", "=a", "'=a"),
    *("x\x1b[0m", "x\x1b[1m", "nul\x00", "\ufffe", "\uffff", "\u202e"),
    *("..", ".", "../a", "a/b", "a\\b", "con."),
]


def run_of_alike_arms(root: Path) -> Path:
    """Make a run whose arms have names that are alike, or that no file can have."""
    logged = []
    timed = []
    for slot, arm in enumerate(ALIKE):
        logged.append(events.Logged(s=0, v={"loss": float(slot)}, a=arm))
        wall_ns = 1000 + slot
        block = events.BlockTimed(arm=arm, round=0, slot=slot, loops=1, wall_ns=wall_ns, cpu_ns=1)
        timed.append(block)
    return make_run(root, started(), *logged, *timed, events.StateChanged(state="succeeded"))


def open_page(page: Path, *flags: str) -> str:
    """Open a page in a headless browser. Return what the browser printed."""
    return open_address(page.as_uri(), page.parent / "profile", *flags)


def open_address(address: str, profile: Path, *flags: str) -> str:
    """Open an address in a headless browser. Return what the browser printed."""
    assert CHROMIUM is not None
    fixed_flags = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
    done = subprocess.run(
        [CHROMIUM, *fixed_flags, f"--user-data-dir={profile}", *flags, address],
        capture_output=True,
        text=True,
        timeout=100,
    )
    return done.stdout


class Elements(HTMLParser):
    """The elements of a page as (tag, attributes), and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, {name: value or "" for name, value in attrs}))

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str, **wanted: str) -> list[dict[str, str]]:
        """Return the attributes of each element of a tag that has certain values.

        `class_` is for the attribute class.
        """
        matches = []
        for element_tag, attributes in self.found:
            if element_tag == tag and _has_values(attributes, wanted):
                matches.append(attributes)
        return matches


def _has_values(attributes: dict[str, str], wanted: dict[str, str]) -> bool:
    return all(attributes.get(name.rstrip("_")) == value for name, value in wanted.items())


def checked_document(document: dict[str, Any]) -> dict[str, Any]:
    """Return a document that conforms to the schema that it names. Fail if it does not."""
    schema = json.loads(schema_of(document["schema"]))
    assert find_misfits(document, schema, schema) == []
    return document


_KINDS: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
}
_KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "properties", "required", "items", "additionalProperties",
          "enum", "const", "anyOf", "minimum", "maximum", "exclusiveMaximum"}  # fmt: skip


def find_misfits(
    value: Any, schema: dict[str, Any], root: dict[str, Any], path: str = "$"
) -> list[str]:
    """Return where a document does not conform to a JSON Schema.

    This knows only the keywords of JSON Schema that our schemas use. Other keywords fail.
    """
    assert set(schema) <= _KNOWN, path
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return find_misfits(value, root["$defs"][name], root, path)
    if "anyOf" in schema:
        return _find_misfits_of_any(value, schema["anyOf"], root, path)
    if "enum" in schema or "const" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return [] if value in allowed else [f"{path}: {value!r}"]
    if "type" in schema and not _is_of_type(value, schema["type"]):
        return [f"{path}: {value!r} is not {schema['type']}"]
    if isinstance(value, float | int):
        low = schema.get("minimum", value)
        high = schema.get("maximum", value)
        if not low <= value <= high:
            return [f"{path}: {value} is out of bounds"]
    if isinstance(value, list):
        misfits = []
        for index, item in enumerate(value):
            misfits += find_misfits(item, schema.get("items", {}), root, f"{path}[{index}]")
        return misfits
    if isinstance(value, dict):
        return _find_misfits_of_object(value, schema, root, path)
    return []


def _find_misfits_of_any(
    value: Any, schemas: Sequence[dict[str, Any]], root: dict[str, Any], path: str
) -> list[str]:
    """Return the misfits to the first of several schemas; none if one schema fits."""
    misfits = [find_misfits(value, schema, root, path) for schema in schemas]
    return [] if [] in misfits else misfits[0]


def _is_of_type(value: Any, types: str | list[str]) -> bool:
    """Whether a value has one of the types of JSON Schema."""
    if isinstance(types, str):
        types = [types]
    if value is None:
        return "null" in types
    if isinstance(value, bool):  # for Python, it is a number as well
        return "boolean" in types
    for name in types:
        if name not in ("null", "boolean") and isinstance(value, _KINDS[name]):
            return True
    return False


def _find_misfits_of_object(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], path: str
) -> list[str]:
    properties = schema.get("properties", {})
    additional = schema.get("additionalProperties", {})
    misfits = [f"{path}: lacks {name}" for name in schema.get("required", []) if name not in value]
    for name, inner in value.items():
        if name not in properties and additional is False:
            misfits.append(f"{path}: has {name}")
        else:
            inner_schema = properties.get(name, additional)
            misfits += find_misfits(inner, inner_schema, root, f"{path}.{name}")
    return misfits
