"""What reports tell of the GPUs of a run: charts along time with what held them down, who else was there, every number."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import make_run, started
from tests.report_aids import Elements, find_misfits, json_document
from tuilab.cli.schemas import schema_of
from tuilab.drawings.gpu_strips import strips_of
from tuilab.drawings.strips import Strip
from tuilab.record.events import (
    EnvironmentRecorded,
    GpuFound,
    GpuHeld,
    GpuShared,
    Record,
    Sampled,
    StateChanged,
    Tenant,
)
from tuilab.reports.formats import csv as table
from tuilab.reports.formats import html, md
from tuilab.reports.reported_run import ReportedRun, read_subject

BOX = [GpuFound(uuid=f"GPU-u{n}", index=n, name="H100", bytes_total=80 << 30) for n in (0, 1)]
GIVEN = EnvironmentRecorded(
    part="cuda", facts={"devices": [{"uuid": "u0"}, {"uuid": "u1"}], "chosen": "u1"}
)


def readings(count: int) -> list[Record]:
    """Return readings of both GPUs, half a second apart; the second one is held down in the middle third."""
    found: list[Record] = []
    for at in range(count):
        mask = 0x20 if count / 3 <= at < 2 * count / 3 else 0x4
        own = {
            "memory_used_bytes": 5.0 * (1 << 30),
            "busy_percent": 97.0,
            "power_w": 600.0,
            "sm_mhz": 1980.0,
        }
        gpus = {"GPU-u0": {"power_w": 77.0}, "GPU-u1": {**own, "throttle_mask": float(mask)}}
        asked = dict.fromkeys(gpus, 10**12 + at * 5 * 10**8)
        found.append(
            Sampled(
                processes=1,
                threads=1,
                cpu_percent=5.0,
                rss_bytes=1 << 30,
                gpus=gpus,
                gpus_asked=asked,
            )
        )
    return found


@pytest.fixture
def subject(tmp_path: Path) -> ReportedRun:
    shared = GpuShared(uuid="GPU-u1", others=[Tenant(4711, "alice", "", 3 << 30)], count=1)
    held = GpuHeld(uuid="u1", allocated_bytes=1 << 30, reserved_bytes=2 << 30)
    records: list[Any] = [
        started(),
        *BOX,
        GIVEN,
        shared,
        held,
        *readings(30),
        StateChanged(state="succeeded"),
    ]
    return read_subject(make_run(tmp_path, *records))


def test_a_page_charts_memory_load_power_and_clock_of_the_gpu_of_the_run_alone(
    subject: ReportedRun,
) -> None:
    page = Elements(html.render([subject]))

    titles = [
        chart["aria-label"].partition(",")[0]
        for chart in page.of("svg", role="img")
        if "data-unit" in chart
    ]
    assert titles == ["memory", "busy", "busy of the GPU", "power of the GPU", "clock of the GPU"]
    labels = [curve["data-label"] for curve in page.of("g", class_="curve")]
    assert labels == [
        "device",
        "reserved",
        "allocated",
        "processes",
        "processes (100 % is a core)",
        "GPU 1",
        "GPU 1",
        "GPU 1",
    ]
    assert "alice (pid 4711) 3 GiB" in page.text


def test_bars_above_power_and_clock_tell_when_and_why_they_were_held_down(
    subject: ReportedRun,
) -> None:
    page = Elements(html.render([subject]))

    grave, mild = page.of("rect", class_="held grave"), page.of("rect", class_="held")
    assert (len(grave), len(mild)) == (
        2,
        4,
    )  # in each of two charts once, and once before and after
    assert grave[0] == grave[1] and float(grave[0]["width"]) == pytest.approx(564 / 3, abs=12)
    assert "GPU 1: power cap 10 s; GPU 1: software thermal slowdown 5 s" in page.text


def test_markdown_has_strips_of_the_gpu_and_the_reasons(subject: ReportedRun) -> None:
    text = md.render([subject])

    strips = text.partition("## GPU\n")[2].partition("##")[0]
    assert [
        word in strips
        for word in ("busy", "97 %", "600 W", "1980 MHz", "▒▒██", "others alice (pid 4711) 3 GiB")
    ] == [True] * 6
    assert "throttled: power cap 10 s, software thermal slowdown 5 s." in strips
    assert "77 W" not in text


@pytest.mark.parametrize(("limit", "top"), [(700.0, 700.0), (550.0, 600.0), (None, None)])
def test_power_and_clock_are_drawn_of_what_the_gpu_can(
    tmp_path: Path, limit: float | None, top: float | None
) -> None:
    """A reading may be above the limit for a moment; who does not tell a limit has columns of the greatest reading."""
    gpu = GpuFound(
        uuid="GPU-u1", index=1, name="H100", power_limit_w=limit, most_sm_mhz=limit and 1980.0
    )
    run_dir = make_run(
        tmp_path, started(), gpu, GIVEN, *readings(4), StateChanged(state="succeeded")
    )
    strips = [
        row for row in strips_of(read_subject(run_dir).summary, [gpu], {}) if isinstance(row, Strip)
    ]

    assert [strip.top for strip in strips] == [100.0, top, limit and 1980.0]


def test_a_run_on_the_cpu_has_no_strips(tmp_path: Path) -> None:
    cpu = read_subject(
        make_run(tmp_path, started(), *BOX, *readings(30), StateChanged(state="succeeded"))
    )

    assert "## GPU" not in md.render([cpu]) and "power of the GPU" not in html.render([cpu])


def test_every_number_of_gpus_is_a_row_and_a_mask_says_what_it_means(subject: ReportedRun) -> None:
    rows = list(csv.DictReader(io.StringIO("".join(table.render([subject])))))

    own = [row for row in rows if row["arm"] == "GPU-u1"]
    assert {row["name"] for row in own} == {
        "memory_used_bytes",
        "busy_percent",
        "power_w",
        "sm_mhz",
        "throttle_mask",
    }
    notes = [row["note"] for row in own if row["name"] == "throttle_mask"]
    assert notes == ["power cap"] * 10 + ["software thermal slowdown"] * 10 + ["power cap"] * 10
    assert [(row["name"], row["value"]) for row in rows if row["arm"] == "u1"] == [
        ("allocated_bytes", str(float(1 << 30))), ("reserved_bytes", str(float(2 << 30))),
    ]  # fmt: skip


def test_the_document_says_which_gpus_are_the_runs_and_who_else_was_there(
    subject: ReportedRun,
) -> None:
    document = json_document([subject])

    gpus = document["runs"][0]["gpus"]
    assert [(gpu["uuid"], gpu["is_own"]) for gpu in gpus] == [("GPU-u0", False), ("GPU-u1", True)]
    assert gpus[1]["others"] == [{"pid": 4711, "user": "alice", "most_bytes": 3 << 30}]
    described = json.loads(schema_of("tuilab.report/2"))
    assert find_misfits(document, described, described) == []
