"""Runs that never ran: folders with records that were made up."""

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
    """Return the first record of a run; by default its supervisor is long gone."""
    me = presence.identify(os.getpid())
    assert me is not None
    gone = msgspec.structs.replace(me, start=me.start - 1)
    usual: dict[str, Any] = {
        "format": events.FORMAT, "run": "made-up", "scenario": "made", "topic": "up", "title": "Made up.", "source_sha256": "",
        "params": {}, "supervisor": gone, "tuilab": "0", "wall_ns": 0,
    }  # fmt: skip
    return events.RunStarted(**{**usual, **fields})


def fabricate_run(site: Site, *records: events.Event | str, stream: str = "supervisor") -> Path:
    """Make the folder of a run that holds these records (or their JSON without n and t); nothing ever ran."""
    run_dir = store.create("made", site.root)
    lines = []
    for number, record in enumerate(records):
        plain = (
            record
            if isinstance(record, str)
            else msgspec.json.encode(spell_out(msgspec.to_builtins(record))).decode()[1:-1]
        )
        body = f'{{"n":{number},"t":{number + 1},{plain}}}'.encode()
        lines.append(b"%08x %b\n" % (zlib.crc32(body), body))
    (run_dir / "journal" / f"{stream}.jsonl").write_bytes(b"".join(lines))
    return run_dir
