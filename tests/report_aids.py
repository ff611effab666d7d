"""What tests of reports share: recorded runs as subjects, a run with hostile names, and a real browser."""

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

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
ALL = [
    path.name
    for path in sorted(JOURNALS.iterdir())
    if path.is_dir() and (path / "journal").is_dir()
]


def in_chromium(test: Callable[..., None]) -> Any:
    """Mark a test that opens a page in a real browser."""
    return pytest.mark.tools(
        pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")(test)
    )


def recorded(name: str) -> ReportedRun:
    return read_subject(JOURNALS / name)


def damaged_run(root: Path) -> Path:
    """Copy the tour to where runs are kept, and change a digit in the middle of one of its records."""
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
    exact = events.Measured(numbers=[1.0])
    run_dir = make_run(
        root,
        started(
            scenario=text,
            topic=text,
            title=text,
            params={"rows": text},
            changed=["rows"],
            claims=[text],
            argv=[text],
        ),
        events.EnvironmentRecorded(part="box", facts={text: text, "deep": {text: [text]}}),
        events.GpuFound(uuid=text, index=0, name=text, bytes_total=1, slice=text),
        events.XidReported(uuid=text, xid=31),
        events.XidReported(uuid=text + "2", xid=31),
        events.Unavailable(what=text, reason=text),
        events.StageEntered(name=text),
        events.Logged(s=0, v={text: 1.0}, a=text),
        events.Logged(s=1, v={text: float("nan")}, a=text),
        events.GpuHeld(uuid=text, allocated_bytes=1, reserved_bytes=2),
        events.GpuShared(
            uuid=text, others=[events.Tenant(1, text), events.Tenant(2, "", text)], count=2
        ),
        events.Sampled(
            processes=1,
            threads=1,
            cpu_percent=1.0,
            rss_bytes=1,
            gpus={
                text: {
                    "memory_used_bytes": 1.0,
                    "busy_percent": 5.0,
                    "throttle_mask": 8.0,
                    text: 2.0,
                }
            },
        ),
        events.ClaimMeasured(
            text=text, got=events.Measured(words=text), op="equals", want=exact, unit=text
        ),
        events.TextShown(text=text, title=text),
        events.ImageShown(
            title=text,
            rows=1,
            cols=1,
            cells=base64.b64encode(b"\x00").decode(),
            low=0,
            high=1,
            arm=text,
        ),
        events.AxesNamed(metric=text, x=text, y=text),
        events.BarsShown(title=text, names=[text], values=[1.0], unit=text),
        events.TableShown(title=text + "2", head=[text], rows=[[text]]),
        events.SpanShown(lane=text, began=0.0, ended=1.0, name=text, arm=text, unit=text),
        events.MemoryMeasured(name=text, values={text: 1.0}, arm=text),
        events.ArtifactSaved(name=text, bytes_total=1, sha256=text),
        events.BlockTimed(arm=text, round=0, slot=0, loops=1, wall_ns=1000, cpu_ns=1000),
        events.RaceFinished(arms=[text], is_same=False, difference=text),
        events.ScenarioFailed(type=text, message=text, traceback=text, hint=text),
        events.LeftoversEnded(processes=[text], count=1),
        events.VerdictReached(text=text, verdict="SUPPORTED", rule="r", why=text),
        events.StateChanged(state="failed", reason=text),
        end="f00d00",
    )
    (run_dir / "scenario.py").write_text(f'"""{text}"""\n# {text}\ndef run(lab): pass\n')
    return run_dir


PREFIX = (
    "llama_7b_bf16_flash_attention_zero3_grad_checkpoint_batch_32_seq_4096_tp_8_pp_2_dp_4_lr_" * 4
)
ALIKE = [
    *(PREFIX + "one", PREFIX + "two", "日本語ラベル" * 60),
    *("lr=1e-3", "lr:1e-3", "LR=1e-3", "lr_1e-3", "a", "a ", " ", "=a", "'=a"),
    *("x\x1b[0m", "x\x1b[1m", "nul\x00", "\ufffe", "\uffff", "\u202e"),
    *("..", ".", "../a", "a/b", "a\\b", "con."),
]


def run_of_alike_arms(root: Path) -> Path:
    """Make a run whose arms have names that are alike, or that no file can hold."""
    logged = [events.Logged(s=0, v={"loss": float(at)}, a=arm) for at, arm in enumerate(ALIKE)]
    timed = [
        events.BlockTimed(arm=arm, round=0, slot=at, loops=1, wall_ns=1000 + at, cpu_ns=1)
        for at, arm in enumerate(ALIKE)
    ]
    return make_run(root, started(), *logged, *timed, events.StateChanged(state="succeeded"))


def open_page(page: Path, *flags: str) -> str:
    """Open a page in a headless browser with a profile of its own and return what it printed."""
    return open_address(page.as_uri(), page.parent / "profile", *flags)


def open_address(address: str, profile: Path, *flags: str) -> str:
    """Open an address in a headless browser and return what the browser printed."""
    assert CHROMIUM is not None
    usual = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        f"--user-data-dir={profile}",
    )
    done = subprocess.run(
        [CHROMIUM, *usual, *flags, address], capture_output=True, text=True, timeout=100
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
        """Return the attributes of elements of a tag that have certain ones (`class_` for class)."""
        named = {name.rstrip("_"): value for name, value in wanted.items()}
        return [
            has
            for found, has in self.found
            if found == tag and all(has.get(name) == value for name, value in named.items())
        ]


def checked_document(told: dict[str, Any]) -> dict[str, Any]:
    """Return a document, which is what the schema that it names says and nothing else."""
    schema = json.loads(schema_of(told["schema"]))
    assert find_misfits(told, schema, schema) == []
    return told


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
    value: Any, schema: dict[str, Any], root: dict[str, Any], at: str = "$"
) -> list[str]:
    """Return where a document is not what a JSON Schema says; of the language it knows what ours is written in."""
    assert set(schema) <= _KNOWN, at
    if "$ref" in schema:
        return find_misfits(value, root["$defs"][schema["$ref"].rpartition("/")[2]], root, at)
    if "anyOf" in schema:
        found = [find_misfits(value, one, root, at) for one in schema["anyOf"]]
        return [] if [] in found else found[0]
    if "enum" in schema or "const" in schema:
        return [] if value in schema.get("enum", [schema.get("const")]) else [f"{at}: {value!r}"]
    wanted = schema.get("type", [*_KINDS, "null"])
    if not any(_is_of(value, kind) for kind in (wanted if isinstance(wanted, list) else [wanted])):
        return [f"{at}: {value!r} is not {wanted}"]
    if isinstance(value, float | int) and not schema.get("minimum", value) <= value <= schema.get(
        "maximum", value
    ):
        return [f"{at}: {value} is out of bounds"]
    if isinstance(value, list):
        return [
            bad
            for i, one in enumerate(value)
            for bad in find_misfits(one, schema.get("items", {}), root, f"{at}[{i}]")
        ]
    return _misfits_of_object(value, schema, root, at) if isinstance(value, dict) else []


def _is_of(value: Any, kind: str) -> bool:
    return (
        value is None
        if kind == "null"
        else isinstance(value, _KINDS[kind]) and (kind == "boolean") == isinstance(value, bool)
    )


def _misfits_of_object(
    value: dict[str, Any], schema: dict[str, Any], root: dict[str, Any], at: str
) -> list[str]:
    named, others = schema.get("properties", {}), schema.get("additionalProperties", {})
    found = [f"{at}: lacks {name}" for name in schema.get("required", []) if name not in value]
    for name, inner in value.items():
        if name not in named and others is False:
            found.append(f"{at}: has {name}")
        else:
            found += find_misfits(inner, named.get(name, others), root, f"{at}.{name}")
    return found
