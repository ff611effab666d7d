"""Streams as they stand after a power cut, with a writer that goes on, and streams of millions of records."""

import os
from zlib import crc32

import pytest

from tests.engine import write_scenario
from tests.faults.fabricated_runs import fabricate_run, run_started
from tests.faults.fronts import Open
from tests.faults.gates import STEPS, gates, reaches
from tests.faults.oracle import check, items_of
from tests.faults.sites import Site, latest
from tuilab.record import events
from tuilab.record.live_run import Watch

pytestmark = pytest.mark.faults

# What is left of the last record of a stream: half of it, all but its newline, its first byte, nothing.
TEARS = {
    "half a record": -40,
    "a record without its newline": -1,
    "its first byte": None,
    "nothing": 0,
}


@pytest.mark.parametrize("tear", TEARS)
def test_43_a_writer_that_goes_on_after_a_torn_record_loses_that_one_alone(
    site: Site, tear: str
) -> None:
    """The scenario closes every descriptor, so that its stream is opened again where the torn record ends."""
    body = """
for step in range(10): lab.log(step, half=step / 2)
wait_for("torn")
os.closerange(3, 256)
for step in range(10, 20): lab.log(step, half=step / 2)
"""
    at = gates(site)
    front = site.start(
        "run", str(write_scenario(site.folder, body, STEPS)), "--headless", "--quiet"
    )
    reaches(at, "torn")
    stream = latest(site) / "journal" / "worker-0.jsonl"
    data = stream.read_bytes()
    begins = data[:-1].rindex(b"\n") + 1
    cut = TEARS[tear]
    os.truncate(stream, begins + 1 if cut is None else len(data) + cut)
    (at / "torn").touch()
    front.communicate(timeout=60)

    is_torn = tear != "nothing"
    summary = check(site, latest(site), is_whole=not is_torn).summary
    logged = {
        item.s
        for item in items_of(latest(site))["worker-0.jsonl"].values()
        if isinstance(item, events.Logged)
    }
    assert logged <= set(range(20)) and logged >= set(range(9)), sorted(logged)
    assert is_torn or summary.series["half", "", "worker-0"].count == 20


def test_46_a_million_records_are_shown_before_they_are_read_and_then_are_all_there(
    site: Site, screens: Open
) -> None:
    run_dir = fabricate_run(site, run_started(), events.StateChanged(state="running"))
    lines = []
    for n in range(1_000_000):
        body = b'{"n":%d,"t":%d,"k":"logged","s":%d,"v":{"half":%d.5}}' % (n, n + 1, n, n)
        lines.append(b"%08x %b\n" % (crc32(body), body))
    (run_dir / "journal" / "worker-0.jsonl").write_bytes(b"".join(lines))
    watch = Watch(run_dir)
    watch.refresh()
    first, every = watch.bytes_read
    term = screens("attach", run_dir.name)
    term.wait_for("made")
    term.type("q")
    code = term.wait()
    while watch.refresh():
        pass
    watch.close()

    assert first < every / 100
    assert code == 0 and term.is_restored() and term.strange() == []
    (series,) = watch.summary.series.values()
    assert series.count == 1_000_000 and not watch.summary.damage.is_any
