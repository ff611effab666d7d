"""Make runs that never ran, and scenarios, for tests of the screens and of other readers."""

import json
import os
import time
from pathlib import Path
from typing import Any

import msgspec

from tuilab.record import events, presence
from tuilab.record.journal.writer import Writer
from tuilab.storage import places

HOSTILE = "[/b][red]x[/]\x1b]0;owned\x07\x1b[2J\u202e\x9b31m\ud800 $(reboot) [@click=app.leave]y[/]"
FAST = '''"""A fast sum.

Adding up is `quick` when *one* operator does it.

## Predict
How many times faster is it?
## Look for
- [right] the sum is right
- [fast] sum is fast
## Try next
`--rows 5`: less to add. `--no-tidy --work mul`: other work. `--gone 1` is no option.
"""
from typing import Literal
from tuilab import Lab

def run(
    lab: Lab,
    rows: int = 500,  # rows to add up, 1..2000 (quick 10)
    scale: float = 1.5,  # factor
    tidy: bool = True,  # delete names
    work: Literal["add", "mul"] = "add",  # what is done
    word: str = "plain \\x1b[31m",  # a text
) -> None:
    lab.claim("right", rows, equals=500)
    lab.claim_ratio("fast", "loop/sum", at_least=2)
    lab.race(loop=run, sum=run)
'''
# The key of each claim that `finished` knows.
KEYS = {"the sum is right": "right", "sum is fast": "fast", "it holds": "it-holds"}
PLAIN = '"""A plain one.\n\n## Look for\n- [it-holds] it holds\n"""\ndef run(lab) -> None:\n    lab.claim("it-holds", True)\n'


def identity(*, is_alive: bool) -> events.Identity:
    """Return this process, or a process that has ended."""
    me = presence.identify(os.getpid())
    assert me is not None
    if is_alive:
        return me
    return msgspec.structs.replace(me, start=me.start - 1)


def started(*, is_alive: bool = False, **fields: Any) -> events.RunStarted:
    """Return the first record of a run."""
    defaults: dict[str, Any] = {
        "format": events.FORMAT,
        "run": "made-up",
        "scenario": "softmax",
        "topic": "stability",
        "title": "Made up.",
        "source_sha256": "",
        "params": {},
        "supervisor": identity(is_alive=is_alive),
        "tuilab": "0",
        "wall_ns": 0,
    }
    return events.RunStarted(**{**defaults, **fields})


def make_run(
    root: Path,
    *records: events.Event,
    name: str = "softmax",
    at_s: float = 1.8e9,
    end: str = "abcdef",
) -> Path:
    """Make the folder of a run with these records. It started at `at_s`, in seconds since 1970."""
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(at_s)) + "000Z"
    run_dir = root / f"{stamp}-{name}-{end}"
    (run_dir / "journal").mkdir(parents=True)
    journal = Writer(run_dir / "journal" / "supervisor.jsonl")
    for record in records:
        journal.append(record)
    journal.close()
    return run_dir


def finished(
    root: Path, verdicts: dict[str, str], *, state: str = "succeeded", **more: Any
) -> Path:
    """Make a finished run with a verdict for each claim.

    `more` are fields of its first record, or arguments of `make_run`.
    """
    where = {key: more.pop(key) for key in ("name", "at_s", "end") if key in more}
    records: list[events.Event] = [started(scenario=where.get("name", "softmax"), **more)]
    for text, verdict in verdicts.items():
        key = KEYS.get(text, "")
        records.append(events.VerdictReached(text=text, key=key, verdict=verdict, rule="r"))
    records.append(events.StateChanged(state=state))
    return make_run(root, *records, **where)


def judged(
    root: Path, number: int, verdict: str = "SUPPORTED", *, name: str = "softmax", **more: Any
) -> Path:
    """Make the n-th run of a scenario that claims a ratio and a count.

    If `verdict` is empty, the claim about the ratio has no verdict.
    """
    fields: dict[str, Any] = {
        "scenario": name,
        "source_sha256": "abc",
        "claims": ["sum is fast", "one"],
        "claim_keys": ["sum", "one"],
    }
    ratio: dict[str, Any] = {"text": "sum is fast", "key": "sum"}
    records: list[events.Event] = [
        started(**{**fields, **more}),
        events.ClaimDeclared(**ratio, over="loop", under="sum", op="at_least", bound=2.0),
    ]
    if verdict:
        reached = events.VerdictReached(**ratio, verdict=verdict, rule="r", why="so", estimate=3.0)
        records.append(reached)
    records.append(events.VerdictReached(text="one", key="one", verdict="SUPPORTED", rule="r"))
    records.append(events.StateChanged(state="succeeded"))
    return make_run(root, *records, name=name, at_s=1.6e9 + number, end=f"{number:06}")


def hostile(root: Path) -> Path:
    """Make a run in which every word that a scenario can choose would like to steer the terminal."""
    text = HOSTILE.replace("\ud800", "")
    first = started(
        scenario=text,
        topic=text,
        title=text,
        params={text: text},
        changed=[text],
        claims=[text],
        source_sha256=text,
    )
    facts = {text: text, "deep": {text: [text]}, "missing": {text: text}}
    tenants = [events.Tenant(1, text), events.Tenant(2, "", text)]
    reading = {text: {"busy_percent": 5.0}}
    words = events.Measured(words=text)
    records = [
        events.EnvironmentRecorded(part="box", facts=facts),
        events.GpuFound(uuid=text, index=0, name=text, bytes_total=1, slice=text),
        events.XidReported(uuid=text, xid=31),
        events.GpuHeld(uuid=text, allocated_bytes=1, reserved_bytes=2),
        events.GpuShared(uuid=text, others=tenants, count=2),
        events.Sampled(processes=1, threads=1, cpu_percent=1.0, rss_bytes=1, gpus=reading),
        events.Unavailable(what=text, reason=text),
        events.Logged(s=0, v={text: float("nan")}, a=text),
        events.Logged(s=1, v={text: float("inf")}, a=text),
        events.AxesNamed(metric=text, x=text, y=text),
        events.BarsShown(title=text, names=[text], values=[1.0], unit=text),
        events.TableShown(title=text + "2", head=[text], rows=[[text]]),
        events.SpanShown(lane=text, began=0.0, ended=1.0, name=text, arm=text, unit=text),
        events.MemoryMeasured(name=text, values={text: 1.0}, arm=text),
        events.ClaimMeasured(text=text, got=words, op="equals", want=words, unit=text),
        events.VerdictReached(text=text, verdict="REFUTED", rule="r", why=text),
        events.ScenarioFailed(type=text, message=text, traceback=text, hint=text),
        events.StateChanged(state="failed", reason=text),
    ]
    return make_run(root, first, *records, name="evil", end="ev1l00")


def write(folder: Path, **sources: str) -> Path:
    """Write scenario files into the topic `mine` of a folder. Return the folder."""
    topic = folder / "mine"
    topic.mkdir(parents=True, exist_ok=True)
    for name, source in sources.items():
        (topic / f"{name}.py").write_text(source)
    return folder


def note_done(*lessons: str) -> None:
    """Note that lessons were done."""
    path = Path(places.score_file())
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps({"lesson": lesson, "run": "r"}) for lesson in lessons]
    path.write_text("".join(f"{line}\n" for line in lines))
