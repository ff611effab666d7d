"""Every channel through which somebody else's words reach us, each with a word that would like to be obeyed there.

A word names its channel, so that whatever is obeyed tells where it came from. In `world` all of them are at once.
"""

import io
import json
import os
import tarfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import msgspec
import pyte

from tests.made_runs import identity, make_run
from tests.test_archive import make_run as make_tour
from tuilab.record import events
from tuilab.record.states import RunState
from tuilab.runs import queue
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import FILE
from tuilab.runs.queue import Ticket
from tuilab.storage.files import sealed

# What a terminal obeys (in seven bits and in eight), what turns lines around or breaks them, and what HTML, Markdown,
# a spreadsheet, a shell and our own markup take for theirs.
CONTROLS = "\x1b]0;{0}\x07\x1b]52;c;{0}\x1b\\\x1b[2J\x1bP{0}\x1b\\\x9b31m\x9d0;{0}\x9c\x85\x0e\x08\r\x7f\u202e\u2066\u2028\ufeff"
MARKUP = "<owned {0}=1>[/b][red][@click=app.leave]x[/] ![o](http://owned/{0}) <!--]]></script> `$(owned)` | **x** &amp; {{y}}"


def hostile_word(channel: str) -> str:
    """Return what comes through a channel; it begins as a formula does, and as no name may."""
    name = "".join(letter if letter.isalnum() else "-" for letter in channel)
    return f"=owned-{name}" + (CONTROLS + MARKUP).format(name)


# ---- what obeys


def find_obeyed(text: str) -> list[str]:
    """Return what a terminal would do for a text besides showing it: the events that an emulator sees, and what none knows."""
    done: list[str] = []
    harmless = {"draw", "linefeed", "tab", "select_graphic_rendition"}
    heard = {
        event: (lambda *_, **__: None)
        if event in harmless
        else lambda *words, event=event, **_: done.append(f"{event} {words}")
        for event in pyte.Stream.events
    }
    listener: Any = SimpleNamespace(**heard)
    pyte.Stream(listener).feed(text)
    odd = [
        letter
        for letter in text
        if letter not in "\t\n"
        and not letter.isprintable()
        and letter not in "\u00a0\u202f\u00ad\u3000"
    ]
    return done + [f"{letter!a} is there" for letter in dict.fromkeys(odd)]


class Elements(HTMLParser):
    """The elements and attributes of a page that came out of a word."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        where = [
            name
            for name, value in attrs
            if "owned" in name or (name in ("href", "src") and "owned" in (value or "")[:9])
        ]
        if "owned" in tag or (tag == "img" and "owned" in str(attrs)) or where:
            self.found.append(f"{tag} {attrs}")

    def handle_comment(self, data: str) -> None:
        if data.startswith("]]>"):
            self.found.append(f"comment {data}")


# ---- what brings it


def hostile_records() -> Iterator[events.Event]:
    """Yield a record of every kind that there is, with its own word in every field that takes one."""
    for kind in get_args(events.Record):
        fields = _fill(msgspec.inspect.type_info(kind), kind.__name__)
        yield msgspec.convert({**fields, "k": events.tag_of(kind)}, kind, strict=False)


def _fill(kind: Any, channel: str) -> Any:
    match kind:
        case msgspec.inspect.StructType(cls=events.Measured):
            return {"words": hostile_word(channel)}
        case msgspec.inspect.StructType(fields=fields):
            return {
                one.name: _fill(one.type, f"{channel} {one.name}")
                for one in fields
                if one.name != "cost"
            }
        case msgspec.inspect.UnionType(types=types):
            return _fill(
                next(one for one in types if not isinstance(one, msgspec.inspect.NoneType)), channel
            )
        case (
            msgspec.inspect.ListType(item_type=item) | msgspec.inspect.VarTupleType(item_type=item)
        ):
            return [_fill(item, channel)]
        case msgspec.inspect.TupleType(item_types=items):
            return [_fill(item, channel) for item in items]
        case msgspec.inspect.DictType(key_type=key, value_type=value):
            return {_fill(key, f"{channel} key"): _fill(value, channel)}
        case msgspec.inspect.LiteralType(values=values):
            return values[0]
        case msgspec.inspect.StrType(pattern=str()):
            return "running"
        case msgspec.inspect.StrType() | msgspec.inspect.AnyType():
            return hostile_word(channel)
        case msgspec.inspect.BoolType():
            return False
        case _:
            return 1


def hostile_source() -> str:
    """Return a scenario with a word in everything that its source says."""
    label, key = hostile_word("label").replace("\r", "").replace("\u2028", " "), "key"
    return f'''"""{hostile_word("title")}

{hostile_word("lesson")}

## Predict
{hostile_word("question")} how many?
## Look for
- [{key}] {hostile_word("claim of a lesson")}
## Try next
`--rows 5` {hostile_word("change")}
## Source
{hostile_word("source")}
"""
from typing import Literal
from tuilab import Lab

def run(
    lab: Lab,
    text: str = {hostile_word("default")!r},  # {label}
    choice: Literal[{hostile_word("choice")!r}, "b"] = "b",
    rows: int = 5,  # {label}, 1..9
) -> None:
    lab.claim("{key}", True)
    lab.race(**{{{hostile_word("arm")!r}: lambda: 1}})
'''


def make_world(folder: Path) -> dict[str, str]:
    """Make runs, scenarios and small files of ours, each with its words, and return the environment that leads to them."""
    runs, file = (
        folder / "runs",
        hostile_word("file").replace("/", "")[:200].encode()[:200].decode(errors="ignore"),
    )
    (start,) = (one for one in hostile_records() if isinstance(one, events.RunStarted))
    first = msgspec.structs.replace(
        start, format=events.FORMAT, supervisor=identity(is_alive=False)
    )
    rest = [one for one in hostile_records() if not isinstance(one, events.RunStarted)]
    end = events.StateChanged(state=RunState.FAILED, reason=hostile_word("reason"))
    make_run(runs, first, *rest, end, name="evil", end="ev1l00")
    of_time = [
        msgspec.structs.replace(one, measure="") if isinstance(one, events.RaceStarted) else one
        for one in rest
    ]
    make_run(runs, first, *of_time, end, name="evil", end="71aed0")
    there = msgspec.structs.replace(
        identity(is_alive=False), host=hostile_word("host of a run"), boot="another"
    )
    make_run(runs, msgspec.structs.replace(first, supervisor=there), name="there", end="e15ewe")
    tour = make_tour(runs)
    for run_dir in runs.iterdir():
        (run_dir / "artifacts").mkdir(exist_ok=True)
        (run_dir / "artifacts" / file).write_text(hostile_word("artifact"))
        (run_dir / file).write_text(hostile_word("left out"))
        for name in ("stdout.log", "stderr.log", "supervisor.log", "fault-worker-0.log"):
            (run_dir / name).write_text(hostile_word(name))
        (run_dir / "scenario.py").write_text(hostile_source())
        line = {"wall_s": 1.0, "text": hostile_word("note"), "tags": [hostile_word("tag"), "even"]}
        (run_dir / "notes.jsonl").write_text(json.dumps(line) + "\n")
    (runs / f"20270115T080000000Z-{file}-abcdef" / "journal").mkdir(parents=True)
    queued = {"here": identity(is_alive=True), "there": there}
    for name, supervisor in queued.items():
        run = f"20270116T080000000Z-{name}-abcdef"
        begun = name == "here"
        devices = [hostile_word("device of a ticket")]
        queue.enter(
            runs,
            Ticket(
                run=run,
                name=hostile_word("name of a ticket"),
                devices=devices,
                supervisor=supervisor,
                place=1,
                since_ns=1,
                has_begun=begun,
            ),
        )
    own = folder / "own" / f"topic{file}"
    own.mkdir(parents=True)
    for name in ("good", f"name{file}"):
        (own / f"{name[:150]}.py").write_text(hostile_source())
    (own / "good.zh.md").write_text(
        f"# {hostile_word('translated')}\n\n{hostile_word('lesson in chinese')}\n"
    )
    entry = RunEntry(
        tour.name,
        hostile_word("kept scenario"),
        hostile_word("kept topic"),
        hostile_word("kept title"),
        RunState.SUCCEEDED,
        hostile_word("kept reason"),
        claims=[(hostile_word("kept claim"), hostile_word("kept verdict"))],
        gpu_names={hostile_word("kept UUID"): hostile_word("kept GPU")},
        sweep=hostile_word("kept sweep"),
        host=hostile_word("kept host"),
        point={hostile_word("kept name"): hostile_word("kept value")},
    )
    (runs / FILE).write_bytes(sealed(f"{tour.name}\t5\t{json.dumps(entry)}".encode()))
    ways = {hostile_word("way of judging"): {"trials": 1, "false": 0, "delays": 1, "seen": 1}}
    gpu = {"name": hostile_word("name of a GPU"), "box": os.uname().nodename, **ways}
    calibrations = {
        os.uname().nodename: ways,
        f"GPU {hostile_word('UUID')}": gpu,
        hostile_word("host"): {hostile_word("calibration"): 3},
    }
    (folder / "calibration.json").write_text(json.dumps(calibrations))
    (folder / "state" / "tuilab").mkdir(parents=True)
    (folder / "state" / "tuilab" / "learned.jsonl").write_text(
        json.dumps({"lesson": hostile_word("lesson done"), "run": hostile_word("its run")}) + "\n"
    )
    make_archives(folder)
    names = (
        "USER",
        "LOGNAME",
        "OMP_NUM_THREADS",
        "OMP_PLACES",
        "CUDA_VISIBLE_DEVICES",
        "PYTORCH_ALLOC_CONF",
        "LS_COLORS",
        "HOSTNAME",
        "EDITOR",
    )
    odd = {name: hostile_word(name) for name in names}
    return {
        "TUILAB_ROOT": str(runs),
        "XDG_STATE_HOME": str(folder / "state"),
        "XDG_CACHE_HOME": str(folder / "cache"),
        **odd,
    }


def make_archives(folder: Path) -> None:
    """Make archives with words in them: in the names of a run, of a member and of a link, beside a run and in one."""
    run_dir = next((folder / "runs").glob("*-abc123"))
    run, evil, stream = (
        run_dir.name,
        hostile_word("member").replace("/", ""),
        run_dir / "journal" / "supervisor.jsonl",
    )
    link = tarfile.TarInfo(f"{run}/artifacts/{evil}")
    link.type, link.linkname = tarfile.SYMTYPE, hostile_word("link")
    archives = {
        "run": [tarfile.TarInfo(f"{evil}/journal/supervisor.jsonl")],
        "member": [
            tarfile.TarInfo(f"{run}/journal/supervisor.jsonl"),
            tarfile.TarInfo(f"{run}/{evil}"),
        ],
        "stream": [tarfile.TarInfo(f"{run}/journal/{evil}.jsonl")],
        "link": [tarfile.TarInfo(f"{run}/journal/supervisor.jsonl"), link],
    }
    for name, members in archives.items():
        with tarfile.open(folder / f"{name}.tgz", "w:gz") as made:
            for member in members:
                data = b"" if member.issym() else stream.read_bytes()
                member.size = len(data)
                made.addfile(member, io.BytesIO(data))
