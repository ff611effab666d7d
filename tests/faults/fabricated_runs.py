"""Make folders of runs that never ran, with any records."""

import os
import zlib
from pathlib import Path
from typing import Any

import msgspec

from tests.faults.sites import Site
from tuilab.record import events, presence
from tuilab.record.encoding import spell_out
from tuilab.runs import store


def run_started(**fields: Any) -> events.RunStarted:
    """Return the first record of a run. By default its supervisor has ended."""
    me = presence.identify(os.getpid())
    assert me is not None
    ended = msgspec.structs.replace(me, start=me.start - 1)
    defaults: dict[str, Any] = {
        "format": events.FORMAT,
        "run": "made-up",
        "scenario": "made",
        "topic": "up",
        "title": "Made up.",
        "source_sha256": "",
        "params": {},
        "supervisor": ended,
        "tuilab": "0",
        "wall_ns": 0,
    }
    return events.RunStarted(**{**defaults, **fields})


def fabricate_run(site: Site, *records: events.Event | str, stream: str = "supervisor") -> Path:
    """Make the folder of a run with these records. A text is the JSON of a record without n and t."""
    run_dir = store.create("made", site.root)
    lines = []
    for number, record in enumerate(records):
        fields = record if isinstance(record, str) else _encode_fields(record)
        body = f'{{"n":{number},"t":{number + 1},{fields}}}'.encode()
        lines.append(b"%08x %b\n" % (zlib.crc32(body), body))
    (run_dir / "journal" / f"{stream}.jsonl").write_bytes(b"".join(lines))
    return run_dir


def _encode_fields(record: events.Event) -> str:
    """Return the JSON of a record without its braces."""
    return msgspec.json.encode(spell_out(msgspec.to_builtins(record))).decode()[1:-1]
