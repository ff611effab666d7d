"""Every channel through which foreign text reaches tuilab, each with a text that tries to be obeyed.

Each text names its channel: if a reader obeys a text, the test can name where the text came from.
`make_world` uses all channels.
"""

import io
import json
import os
import tarfile
from collections.abc import Iterator
from functools import partial
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

# Sequences that a terminal obeys (in seven bits and in eight), and characters that turn lines around
# or break them. The markup is that of HTML, Markdown, spreadsheets, shells and Textual.
CONTROLS = "\x1b]0;{0}\x07\x1b]52;c;{0}\x1b\\\x1b[2J\x1bP{0}\x1b\\\x9b31m\x9d0;{0}\x9c\x85\x0e\x08\r\x7f\u202e\u2066\u2028\ufeff"
MARKUP = "<owned {0}=1>[/b][red][@click=app.leave]x[/] ![o](http://owned/{0}) <!--]]></script> `$(owned)` | **x** &amp; {{y}}"


def hostile_word(channel: str) -> str:
    """Return the text for a channel. It begins like a formula, and like no name may."""
    name = "".join(letter if letter.isalnum() else "-" for letter in channel)
    return f"=owned-{name}" + (CONTROLS + MARKUP).format(name)


# ---- readers that would obey
_HARMLESS_EVENTS = {"draw", "linefeed", "tab", "select_graphic_rendition"}  # of an emulator
_HARMLESS_CHARACTERS = "\t\n\u00a0\u202f\u00ad\u3000"


def find_obeyed(text: str) -> list[str]:
    """Return what a terminal would do for a text besides showing it.

    These are the events of an emulator, and the characters that are not printable.
    """
    obeyed: list[str] = []

    def ignore(*_: Any, **__: Any) -> None:
        pass

    def note(event: str, *words: Any, **_: Any) -> None:
        obeyed.append(f"{event} {words}")

    listener: Any = SimpleNamespace()
    for event in pyte.Stream.events:
        handler = ignore if event in _HARMLESS_EVENTS else partial(note, event)
        setattr(listener, event, handler)
    pyte.Stream(listener).feed(text)
    for letter in dict.fromkeys(text):
        if not letter.isprintable() and letter not in _HARMLESS_CHARACTERS:
            obeyed.append(f"{letter!a} is there")
    return obeyed


class OwnedElements(HTMLParser):
    """Find the elements and attributes of a page that came out of a hostile text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_owned = "owned" in tag or (tag == "img" and "owned" in str(attrs))
        for name, value in attrs:
            is_link = name in ("href", "src")
            if "owned" in name or (is_link and "owned" in (value or "")[:9]):
                is_owned = True
        if is_owned:
            self.found.append(f"{tag} {attrs}")

    def handle_comment(self, data: str) -> None:
        if data.startswith("]]>"):
            self.found.append(f"comment {data}")


# ---- the channels


def hostile_records() -> Iterator[events.Event]:
    """Yield a record of every kind, with a text of its own in every field that can have one."""
    for kind in get_args(events.Record):
        fields = _fill(msgspec.inspect.type_info(kind), kind.__name__)
        yield msgspec.convert({**fields, "k": events.tag_of(kind)}, kind, strict=False)


def _fill(kind: Any, channel: str) -> Any:
    """Return a value of a type of msgspec, with the text of a channel wherever a text fits."""
    match kind:
        case msgspec.inspect.StructType(cls=events.Measured):
            return {"words": hostile_word(channel)}
        case msgspec.inspect.StructType(array_like=True, fields=fields):
            return [_fill(field.type, f"{channel}-{field.name}") for field in fields]
        case msgspec.inspect.StructType(fields=fields):
            values = {}
            for field in fields:
                if field.name != "cost":
                    values[field.name] = _fill(field.type, f"{channel} {field.name}")
            return values
        case msgspec.inspect.UnionType(types=types):
            some = [option for option in types if not isinstance(option, msgspec.inspect.NoneType)]
            return _fill(some[0], channel)
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
    """Make runs, scenarios and small files with hostile texts. Return the environment that uses them."""
    runs = folder / "runs"
    # As long as a name of a file may be, with as many bytes.
    file_name = hostile_word("file").replace("/", "")[:200]
    file_name = file_name.encode()[:200].decode(errors="ignore")
    foreign = msgspec.structs.replace(
        identity(is_alive=False), host=hostile_word("host of a run"), boot="another"
    )
    tour = _make_runs(runs, foreign)
    for run_dir in runs.iterdir():
        _add_files(run_dir, file_name)
    (runs / f"20270115T080000000Z-{file_name}-abcdef" / "journal").mkdir(parents=True)
    _enter_queue(runs, "here", identity(is_alive=True), has_begun=True)
    _enter_queue(runs, "there", foreign, has_begun=False)
    _write_scenarios(folder / "own" / f"topic{file_name}", f"name{file_name}")
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
    _write_calibrations(folder / "calibration.json")
    state = folder / "state" / "tuilab"
    state.mkdir(parents=True)
    done = {"lesson": hostile_word("lesson done"), "run": hostile_word("its run")}
    (state / "learned.jsonl").write_text(json.dumps(done) + "\n")
    make_archives(folder)
    environment = {name: hostile_word(name) for name in _VARIABLES}
    environment["TUILAB_ROOT"] = str(runs)
    environment["XDG_STATE_HOME"] = str(folder / "state")
    environment["XDG_CACHE_HOME"] = str(folder / "cache")
    return environment


_VARIABLES = (
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


def _make_runs(runs: Path, foreign: events.Identity) -> Path:
    """Make runs with every kind of record, and the tour. Return the tour.

    `foreign` is a supervisor on another machine.
    """
    (start,) = [record for record in hostile_records() if isinstance(record, events.RunStarted)]
    first = msgspec.structs.replace(
        start, format=events.FORMAT, supervisor=identity(is_alive=False)
    )
    end = events.StateChanged(state=RunState.FAILED, reason=hostile_word("reason"))
    others = []
    others_of_time = []  # the same, but the race compares times
    for record in hostile_records():
        if isinstance(record, events.RunStarted):
            continue
        others.append(record)
        if isinstance(record, events.RaceStarted):
            record = msgspec.structs.replace(record, measure="")
        others_of_time.append(record)
    make_run(runs, first, *others, end, name="evil", end="ev1l00")
    make_run(runs, first, *others_of_time, end, name="evil", end="71aed0")
    first_of_foreign = msgspec.structs.replace(first, supervisor=foreign)
    make_run(runs, first_of_foreign, name="there", end="e15ewe")
    return make_tour(runs)


def _add_files(run_dir: Path, file_name: str) -> None:
    """Give a run output, notes, an artifact and a foreign file."""
    (run_dir / "artifacts").mkdir(exist_ok=True)
    (run_dir / "artifacts" / file_name).write_text(hostile_word("artifact"))
    (run_dir / file_name).write_text(hostile_word("left out"))
    for name in ("stdout.log", "stderr.log", "supervisor.log", "fault-worker-0.log"):
        (run_dir / name).write_text(hostile_word(name))
    (run_dir / "scenario.py").write_text(hostile_source())
    note = {"wall_s": 1.0, "text": hostile_word("note"), "tags": [hostile_word("tag"), "even"]}
    (run_dir / "notes.jsonl").write_text(json.dumps(note) + "\n")


def _enter_queue(runs: Path, name: str, supervisor: events.Identity, *, has_begun: bool) -> None:
    """Put a run into the queue."""
    ticket = Ticket(
        run=f"20270116T080000000Z-{name}-abcdef",
        name=hostile_word("name of a ticket"),
        devices=[hostile_word("device of a ticket")],
        supervisor=supervisor,
        place=1,
        since_ns=1,
        has_begun=has_begun,
    )
    queue.enter(runs, ticket)


def _write_scenarios(topic: Path, name: str) -> None:
    """Write two scenarios, one of which has a hostile name, and a translation."""
    topic.mkdir(parents=True)
    (topic / "good.py").write_text(hostile_source())
    (topic / f"{name[:150]}.py").write_text(hostile_source())
    title = hostile_word("translated")
    lesson = hostile_word("lesson in chinese")
    (topic / "good.zh.md").write_text(f"# {title}\n\n{lesson}\n")


def _write_calibrations(path: Path) -> None:
    """Write calibrations of this machine, of a GPU, and of another machine."""
    trials = {"trials": 1, "false": 0, "delays": 1, "seen": 1}
    ways = {hostile_word("way of judging"): trials}
    host = os.uname().nodename
    calibrations = {
        host: ways,
        f"GPU {hostile_word('UUID')}": {
            "name": hostile_word("name of a GPU"),
            "box": host,
            **ways,
        },
        hostile_word("host"): {hostile_word("calibration"): 3},
    }
    path.write_text(json.dumps(calibrations))


def make_archives(folder: Path) -> None:
    """Make archives with hostile names: of a run, of a member next to a run or in it, and of a link."""
    run_dir = next((folder / "runs").glob("*-abc123"))
    run = run_dir.name
    stream = run_dir / "journal" / "supervisor.jsonl"
    name = hostile_word("member").replace("/", "")
    journal = f"{run}/journal/supervisor.jsonl"
    link = tarfile.TarInfo(f"{run}/artifacts/{name}")
    link.type = tarfile.SYMTYPE
    link.linkname = hostile_word("link")
    archives = {
        "run": [tarfile.TarInfo(f"{name}/journal/supervisor.jsonl")],
        "member": [tarfile.TarInfo(journal), tarfile.TarInfo(f"{run}/{name}")],
        "stream": [tarfile.TarInfo(f"{run}/journal/{name}.jsonl")],
        "link": [tarfile.TarInfo(journal), link],
    }
    for archive_name, members in archives.items():
        with tarfile.open(folder / f"{archive_name}.tgz", "w:gz") as archive:
            for member in members:
                data = b"" if member.issym() else stream.read_bytes()
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))
