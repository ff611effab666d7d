"""What a run prints: of any size, of any bytes, to whoever reads it."""

import os
import random
from pathlib import Path

import pytest

from tests.engine import until, write_scenario
from tests.faults.gates import STEPS, gates, reaches
from tests.faults.oracle import check, is_well
from tests.faults.sites import Site, latest
from tests.faults.victims import supervisor_of

pytestmark = pytest.mark.faults


def test_51_a_gigabyte_without_a_line_break_is_kept_in_bounded_memory(site: Site) -> None:
    at = gates(site)
    body = 'chunk = bytes([65]) * 2**20\nfor _ in range(1024): os.write(1, chunk)\nos.write(1, b"the end")\nwait_for("printed")'
    run_dir = site.detach(write_scenario(site.folder, body, STEPS))
    reaches(at, "printed")
    pid, _ = supervisor_of(run_dir)
    until(lambda: (run_dir / "stdout.log").read_bytes().endswith(b"the end"))
    status = dict(row.split(":\t") for row in Path(f"/proc/{pid}/status").read_text().splitlines())
    descriptors = len(os.listdir(f"/proc/{pid}/fd"))
    (at / "printed").touch()

    printed = check(site, run_dir, "succeeded").summary.outputs["stdout"]
    assert (printed.bytes_total, printed.bytes_head, printed.bytes_tail) == (
        2**30 + 7,
        2**19,
        2**19,
    )
    assert (run_dir / "stdout.log").stat().st_size == 2**20
    assert int(status["VmHWM"].split()[0]) < 64 * 1024
    assert descriptors < 32


def test_51_any_bytes_are_kept_as_they_were_printed(site: Site) -> None:
    chance = random.Random(1)
    noise = chance.randbytes(300_000) + b"\xff\xfe\0\r\x1b[2J\xe7\x9b" * 1000
    (site.folder / "noise").write_bytes(noise)
    body = f"data = open({str(site.folder / 'noise')!r}, 'rb').read()\nfor fd in (1, 2):\n    for at in range(0, len(data), 4097): os.write(fd, data[at:at + 4097])"

    done = site.run("run", str(write_scenario(site.folder, body)), "--headless")

    run_dir = latest(site)
    check(site, run_dir, "succeeded")
    assert is_well(done)
    assert (run_dir / "stdout.log").read_bytes() == (run_dir / "stderr.log").read_bytes() == noise


@pytest.mark.timeout(240)
def test_50_more_gigabytes_than_four_bytes_count_come_at_full_speed_and_are_counted_to_the_last_byte(
    site: Site,
) -> None:
    """They are pages of one file that are passed on, so that the supervisor is the slower one."""
    body = """
size, chunk = 5 * 2**30, 2**20
source = os.memfd_create("source")
os.write(source, b"x" * (chunk - 1) + b"\\n")
sent = 0
while sent < size: sent += os.sendfile(1, source, 0, chunk)
os.write(1, b"the end")
"""
    done = site.run(
        "run", str(write_scenario(site.folder, body)), "--headless", "--quiet", timeout=200
    )

    printed = check(site, latest(site), "succeeded").summary.outputs["stdout"]
    assert done.returncode == 0 and is_well(done)
    assert printed.bytes_total >= 5 * 2**30 + 7
    assert (latest(site) / "stdout.log").stat().st_size == 2**20
    assert (latest(site) / "stdout.log").read_bytes().endswith(b"the end")
