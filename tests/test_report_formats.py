"""The formats for programs and code hosts: every number is in them, and no name is more than a name."""

import csv
import io
import json
import math
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from msgspec.structs import replace as replace_fields

from tests.made_runs import make_run, started
from tests.report_aids import (
    ALIKE,
    ALL,
    PREFIX,
    damaged_run,
    find_misfits,
    hostile_run,
    json_document,
    recorded,
    run_of_alike_arms,
)
from tests.strict_readers import crc32c, junit_faults, scalars_of, trace_faults
from tuilab.cli.schemas import schema_of
from tuilab.cli.verbs import runs
from tuilab.drawings.lines import lines_of, thin_line
from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.record.series import Series
from tuilab.reports import samples
from tuilab.reports.charts.geometry import draw_chart
from tuilab.reports.charts.panels import Panel, machine_panels
from tuilab.reports.formats import csv as table
from tuilab.reports.formats import html, junit, markup, md, tensorboard
from tuilab.reports.formats.safe_names import safe_name
from tuilab.reports.formats.trace import trace
from tuilab.reports.png import png
from tuilab.reports.reported_run import read_subject
from tuilab.reports.write_report import GITHUB_LIMIT


def rows_of(*names: str) -> list[dict[str, str]]:
    return list(
        csv.DictReader(io.StringIO("".join(table.render([recorded(name) for name in names]))))
    )


def test_the_table_has_verdicts_with_their_estimates_and_intervals() -> None:
    rows = [row for row in rows_of("tour") if row["kind"] == "claim"]

    assert [row["verdict"] for row in rows] == [
        "SUPPORTED",
        "SUPPORTED",
        "NOT TESTABLE HERE",
        "SUPPORTED",
        "REFUTED",
    ]
    assert [rows[3][name] for name in ("arm", "value", "low", "high")] == [
        "two/one",
        "1.98782194",
        "1.92023506",
        "2.05778769",
    ]
    assert [
        row["value"]
        for row in rows_of("tour")
        if (row["kind"], row["arm"]) == ("claimed", "two/one")
    ] == ["1.5"]


def test_the_table_has_what_a_scenario_showed_and_its_sizes(tmp_path: Path) -> None:
    run_dir = make_run(
        tmp_path,
        started(prediction=3.0),
        events.BarsShown(title="largest", names=["a", "b"], values=[1.5, math.inf], unit="ms"),
        events.TableShown(title="calls", head=["call", "n"], rows=[["x @ y", 2], ["x + y", 3.5]]),
        events.SpanShown(lane="loader", began=1.0, ended=3.0, name="loads", arm="two"),
        events.MemoryMeasured(name="step", values={"peak_bytes": 4.0}, arm="one"),
        events.FirstCalled(arm="one", wall_ns=5_000_000),
        events.StateChanged(state="succeeded"),
    )

    rows = [*csv.DictReader(io.StringIO("".join(table.render([read_subject(run_dir)]))))]

    found = [
        (row["kind"], row["name"], row["arm"], row["place"], row["value"], row["unit"], row["note"])
        for row in rows
    ]
    assert found[:-1] == [
        ("predicted", "answer", "", "", "3.0", "", ""),
        ("bar", "largest", "a", "0", "1.5", "ms", ""),
        ("bar", "largest", "b", "1", "inf", "ms", ""),
        ("cell", "calls", "n", "0", "2", "", "x @ y"),
        ("cell", "calls", "n", "1", "3.5", "", "x + y"),
        ("span", "loads", "two", "1.0", "2.0", "s", "loader"),
        ("memory", "peak_bytes", "one", "", "4.0", "bytes", "step"),
        ("first_call", "first call", "one", "0", "0.005", "s", ""),
    ]
    assert (found[-1][0], rows[-1]["note"]) == ("run", "succeeded")


def test_the_table_has_a_row_for_every_number() -> None:
    rows = rows_of("tour")

    summary = recorded("tour").summary
    logged = sum(series.count for series in summary.series.values())
    timed = sum(
        len(blocks) for found in (summary.blocks, summary.controls) for blocks in found.values()
    )
    assert sum(row["kind"] == "logged" for row in rows) == logged == 984
    assert sum(row["kind"] == "timed" for row in rows) == timed == 257
    assert sum(row["kind"] == "sampled" for row in rows) == sum(
        series.count for series in summary.resources.values()
    )
    assert [
        row["value"]
        for row in rows
        if (row["name"], row["arm"], row["writer"]) == ("loss", "bold", "worker-0")
    ][-1] == "nan"


@pytest.mark.parametrize(
    "text", ["=cmd|' /C calc'!A0", "@SUM(1)", "+1+1", "-1+1", "\t=1+1", " =1", "\r=1"]
)
def test_no_cell_of_words_is_a_formula(tmp_path: Path, text: str) -> None:
    subject = read_subject(hostile_run(tmp_path, text))

    rows = list(csv.reader(io.StringIO("".join(table.render([subject])))))

    words = [cell for row in rows for at, cell in enumerate(row) if at not in (6, 7, 8, 10, 11)]
    assert any("1" in cell or "cmd" in cell for cell in words)
    assert [cell for cell in words if cell.lstrip()[:1] in tuple("=+-@")] == []


@pytest.mark.parametrize(
    ("device", "names"), [("cpu", ["step_s", "thread_s"]), ("cuda", ["step_s"])]
)
def test_what_a_verdict_on_cpu_time_rests_on_stands_beside_the_time_of_the_wall(
    tmp_path: Path, device: str, names: list[str]
) -> None:
    race = events.RaceStarted(arms=["one"], threads=1, device=device, loops={"one": 4})
    block = events.BlockTimed(
        arm="one",
        round=3,
        slot=0,
        loops=4,
        wall_ns=8000,
        cpu_ns=5000,
        thread_ns=4000,
        waits=0,
        is_disturbed=True,
    )
    subject = read_subject(
        make_run(tmp_path, started(), race, block, events.StateChanged(state="succeeded"))
    )

    rows = [*csv.DictReader(io.StringIO("".join(table.render([subject]))))]

    found = [row for row in rows if row["kind"] == "timed"]
    assert [row["name"] for row in found] == names
    assert {(row["arm"], row["place"], row["note"]) for row in found} == {("one", "3", "disturbed")}
    assert [float(row["value"]) for row in found] == pytest.approx([2e-6, 1e-6][: len(names)])


def test_the_document_has_every_raw_sample_and_what_repeats_the_run() -> None:
    document = json_document([recorded("tour")])

    (run,) = document["runs"]
    assert document["schema"] == "tuilab.report/2"
    assert run["command"] == ["tuilab", "run", "tour", "--repeat", "6", "--headless"]
    measured = [row for row in rows_of("tour") if row["kind"] in ("logged", "sampled", "timed")]
    assert sum(len(piece["value"]) for piece in run["samples"]) == len(measured)
    assert run["claims"][3]["estimate"] == 1.98782194
    assert run["declared"][0]["bound"] == 1.5
    assert [claim.get("measure") for claim in run["claims"]].count("wall") == len(
        run["declared"]
    )  # of exact ones nothing
    assert run["source"].startswith('"""Everything that a run can show.')
    assert [image["title"] for image in run["images"]] == ["ramp", "ramp with a hole"]


def test_pieces_of_a_long_line_follow_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_dir = make_run(tmp_path, started(), events.StateChanged(state="succeeded"))
    with closing(Writer(run_dir / "journal" / "worker-0.jsonl")) as writer:
        for step in range(3000):
            writer.append(
                events.Logged(
                    s=step,
                    v={"loss": math.nan if step == 2000 else step / 2},
                    x=None if step else 0.5,
                )
            )
    monkeypatch.setattr(samples, "_PIECE_LIMIT", 1000)

    (run,) = json_document([read_subject(run_dir)])["runs"]

    assert len(run["samples"]) > 1 and all("note" not in piece for piece in run["samples"])
    assert [place for piece in run["samples"] for place in piece["place"]] == [0.5, *range(1, 3000)]
    values = [value for piece in run["samples"] for value in piece["value"]]
    assert (values[:2], values[2000], len(values)) == ([0.0, 0.5], "nan", 3000)


@pytest.mark.parametrize("name", ALL)
def test_the_document_is_what_its_schema_says(name: str) -> None:
    described = json.loads(schema_of("tuilab.report/2"))

    assert find_misfits(json_document([recorded(name)]), described, described) == []


def test_the_document_of_a_run_that_left_nothing_or_has_odd_names_is_what_the_schema_says(
    tmp_path: Path,
) -> None:
    described = json.loads(schema_of("tuilab.report/2"))
    (tmp_path / "20270115T080000000Z-x-abcdef" / "journal").mkdir(parents=True)
    subjects = [
        read_subject(tmp_path / "20270115T080000000Z-x-abcdef"),
        read_subject(hostile_run(tmp_path, "name")),
    ]

    document = json_document(subjects)
    assert find_misfits(document, described, described) == []
    assert (
        find_misfits({**document, "runs": [{}]}, described, described)[0] == "$.runs[0]: lacks run"
    )


def test_a_refuted_claim_fails_and_an_undecided_one_is_skipped_in_junit() -> None:
    suites = ElementTree.fromstring(
        junit.render([recorded(name) for name in ("tour", "not-a-number", "outliers")])
    )

    counts = [
        [suite.get(name) for name in ("tests", "failures", "errors", "skipped")] for suite in suites
    ]
    assert counts == [["5", "1", "0", "1"], ["3", "2", "0", "0"], ["1", "0", "0", "1"]]


def two_claims_of_one_sentence(root: Path) -> Path:
    records = [
        events.VerdictReached(key=key, text="it is finite", verdict=verdict, rule="r")
        for key, verdict in (("loss", "SUPPORTED"), ("norm", "REFUTED"), ("", "INVALID"))
    ]
    return make_run(root, started(), *records, events.StateChanged(state="succeeded"))


def test_the_document_tells_what_time_was_judged_and_how_often_it_was_before(
    tmp_path: Path,
) -> None:
    declared = events.ClaimDeclared(text="slower", over="a", under="b", op="at_least", bound=1.5)
    reached = events.VerdictReached(text="slower", verdict="SUPPORTED", rule="r", measure="cpu")
    run_dir = make_run(
        tmp_path, started(), declared, reached, events.StateChanged(state="succeeded")
    )
    subject = replace(read_subject(run_dir), earlier={"slower": "2nd run of this claim"})

    (run,) = json_document([subject])["runs"]

    assert [claim["measure"] for claim in run["claims"]] == ["cpu"]
    assert run["earlier"] == {"slower": "2nd run of this claim"}


def test_a_case_of_junit_is_called_by_the_key_of_its_claim_and_says_its_sentence(
    tmp_path: Path,
) -> None:
    (suite,) = ElementTree.fromstring(
        junit.render([read_subject(two_claims_of_one_sentence(tmp_path))])
    )

    assert [case.get("name") for case in suite.iter("testcase")] == ["loss", "norm", "it is finite"]
    assert suite.findtext("testcase/system-out") == "it is finite: SUPPORTED: "
    assert [case.attrib["message"] for case in suite.iter("failure")] == [
        "it is finite: REFUTED: ",
        "INVALID: ",
    ]


def test_claims_of_one_sentence_keep_their_verdicts(tmp_path: Path) -> None:
    two_claims_of_one_sentence(tmp_path)

    listed = (
        CliRunner()
        .invoke(runs.command, ["--json", "--root", str(tmp_path)], standalone_mode=False)
        .stdout
    )
    told = [
        (one["key"], one["text"], one["verdict"]) for one in json.loads(listed)["runs"][0]["claims"]
    ]
    same = "it is finite"
    assert told == [("loss", same, "SUPPORTED"), ("norm", same, "REFUTED"), (None, same, "INVALID")]


def test_a_run_that_failed_is_an_error_in_junit() -> None:
    (suite,) = ElementTree.fromstring(junit.render([recorded("crash-in-the-third-repeat")]))

    error = suite.find("testcase/error")
    assert error is not None and error.get("message") == "ArmFailed: ended by SIGSEGV"
    assert 'File "crash-in-the-third-repeat.py", line 19, in run' in (
        error.text or ""
    )  # as its author calls it


def test_a_suite_says_when_and_where_it_ran_and_for_how_long(tmp_path: Path) -> None:
    root = ElementTree.fromstring(junit.render([recorded("tour"), recorded("not-a-number")]))

    suite, other = root
    assert (suite.get("timestamp"), suite.get("hostname"), suite.get("id")) == (
        "2027-01-15T08:00:00",
        "box",
        "0",
    )
    assert [suite.get("time"), other.get("time")] == ["12.155", other.get("time")]
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("8", "3", "0")
    assert float(root.get("time", "nan")) == pytest.approx(
        float(suite.get("time", "nan")) + float(other.get("time", "nan"))
    )
    properties = {one.get("name"): one.get("value") for one in suite.iter("property")}
    assert (
        properties["command"] == "tuilab run tour --repeat 6 --headless"
        and properties["parameter rate"] == "3.0"
    )
    assert (
        properties["torch version"] == "2.13.0+cpu"
        and properties["record"] == recorded("tour").result.record.digest
    )
    times = {case.get("name"): case.get("time") for case in suite.iter("testcase")}
    assert times["the picture has a hole"] is None  # which took no time of its own that is known
    assert 0.1 < float(times["two products take at least 1.5 times as long as one"] or 0) < 12


@pytest.mark.parametrize(
    ("argv", "failures"), [(["run", "softmax"], 1), (["run", "softmax", "--strict"], 3)]
)
def test_a_run_that_was_asked_for_strictly_is_judged_strictly_in_junit(
    tmp_path: Path, argv: list[str], failures: int
) -> None:
    verdicts = ("SUPPORTED", "REFUTED", "INCONCLUSIVE", "NOT TESTABLE HERE")
    reached = [
        events.VerdictReached(text=verdict, verdict=verdict, rule="r") for verdict in verdicts
    ]
    declared = events.ClaimDeclared(
        text="never judged", over="a", under="b", op="at_least", bound=1.5
    )
    run_dir = make_run(
        tmp_path, started(argv=argv), declared, *reached, events.StateChanged(state="succeeded")
    )

    (suite,) = ElementTree.fromstring(junit.render([read_subject(run_dir)]))

    assert (suite.get("failures"), suite.get("skipped")) == (str(failures), str(4 - failures))


def test_option_strict_of_the_users_command_changes_nothing_in_junit(tmp_path: Path) -> None:
    command = ["python", "train.py", "--strict"]
    undecided = events.VerdictReached(text="is faster", verdict="INCONCLUSIVE", rule="r")
    run_started = started(argv=["ab", "--", *command], command=command)
    run_dir = make_run(tmp_path, run_started, undecided, events.StateChanged(state="succeeded"))

    (suite,) = ElementTree.fromstring(junit.render([read_subject(run_dir)]))

    assert suite.get("failures") == "0"
    assert suite.get("skipped") == "1"


def test_junit_is_red_when_the_record_is_damaged(tmp_path: Path) -> None:
    root = ElementTree.fromstring(junit.render([read_subject(damaged_run(tmp_path))]))

    (error,) = root.iter("error")
    assert (error.get("type"), error.get("message")) == (
        "damaged",
        "1 line: corrupt and left out. 1 record: missing from the journal.",
    )
    assert root.get("errors") == "1"


def test_runs_of_one_scenario_are_suites_of_their_own(tmp_path: Path) -> None:
    subjects = [recorded("tour"), read_subject(damaged_run(tmp_path))]

    suites = ElementTree.fromstring(junit.render(subjects))

    assert [suite.get("name") for suite in suites] == ["journals/tour tour", "journals/tour dadada"]
    assert len({case.get("classname") for case in suites.iter("testcase")}) == 2


def test_every_format_says_that_the_record_is_damaged(tmp_path: Path) -> None:
    subject = read_subject(damaged_run(tmp_path))
    told = "1 line: corrupt and left out. 1 record: missing from the journal."

    (run,) = json_document([subject])["runs"]
    schedule = trace([subject])

    assert {
        row["record"] for row in csv.DictReader(io.StringIO("".join(table.render([subject]))))
    } == {told}
    assert told in " ".join(run["gaps"]) and run["record"]["corrupt"] == 1
    assert schedule["otherData"]["damaged"] == {subject.run_dir.name: told}
    assert any(
        one["args"]["name"].endswith(" DAMAGED")
        for one in schedule["traceEvents"]
        if one["name"] == "process_name"
    )
    assert told.split(". ")[0] in html.render([subject]) and told.split(". ")[0] in md.render(
        [subject]
    )


def test_a_record_that_is_whole_is_said_to_be() -> None:
    assert {row["record"] for row in rows_of("tour")} == {"whole"}
    assert trace([recorded("tour")])["otherData"] == {}


def test_characters_that_xml_cannot_hold_are_replaced(tmp_path: Path) -> None:
    subject = read_subject(hostile_run(tmp_path, "a\x00b\x1b]0;x\x07\ufffe</testcase><x>&amp;"))

    (suite,) = ElementTree.fromstring(junit.render([subject]))

    assert {case.tag for case in suite} == {"properties", "testcase"}


@pytest.mark.parametrize("name", ALL)
def test_what_reads_junit_finds_nothing_that_it_does_not_know(name: str) -> None:
    assert junit_faults(junit.render([recorded(name), recorded(name)])) == []


def test_what_reads_junit_can_read_hostile_names(tmp_path: Path) -> None:
    subjects = [
        read_subject(hostile_run(tmp_path, "a\x00]]>\ufffe<!-- &lt;")),
        read_subject(run_of_alike_arms(tmp_path / "alike")),
    ]

    assert junit_faults(junit.render(subjects)) == []
    assert junit_faults(
        "<testsuites><testsuite name='x' tests='2' failures='0' errors='0'/></testsuites>"
    ) == ["testsuite: tests is 2 of 0"]


def test_what_reads_traces_finds_lanes_of_which_no_two_events_cross(tmp_path: Path) -> None:
    subjects = [
        recorded("tour"),
        read_subject(run_of_alike_arms(tmp_path)),
        read_subject(hostile_run(tmp_path / "h", "\x1b[0m")),
    ]

    assert trace_faults(trace(subjects)) == []
    crossing = [
        {"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": ts, "dur": 2.0} for ts in (0.0, 1.0)
    ]
    assert trace_faults({"traceEvents": crossing}) == ["1 has no name", "1 1: events cross at 1.0"]


def test_markdown_shows_claims_charts_and_the_command() -> None:
    text = md.render([recorded("tour")])

    assert (
        "| ✓ SUPPORTED | two products take at least 1.5 times as long as one | two/one 1.99 \\[1.92, 2.06\\] (95 %)"
        in text
    )
    assert "loss (log)  ⠒ careful  ▚ bold" in text
    assert "NaN and Inf bold" in text
    assert "tuilab run tour --repeat 6 --headless" in text


def test_what_a_change_refutes_stands_below_it_in_reports() -> None:
    tour = recorded("tour")
    lesson = {"Try next": "Much:\n`--rows 5`: few\nrefutes: loss\n`--rows 9`: more"}
    subject = replace(tour, scenario=tour.scenario._replace(sections=lesson))

    assert "Much:\n\n- `--rows 5`: few\\\n  refutes: loss\n- `--rows 9`: more\n" in md.render(
        [subject]
    )
    assert '<p class="soft small">refutes: loss</p>' in html.render([subject])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("[x](http://e.org)", "\\[x\\](http\\:\\/\\/e.org)"),
        ("![x](//e)", "!\\[x\\](//e)"),
        ("<img src=x>", "\\<img src=x\\>"),
        ("@everyone and www.e.org", "@\u200beveryone and www\\.e.org"),
        ("a | b `c` *d* _e_ ~f~", "a \\| b \\`c\\` \\*d\\* \\_e\\_ \\~f\\~"),
        ("# head", "\\# head"),
        ("- item", "\\- item"),
        ("12. item", "12\\. item"),
        ("1.5 times", "1.5 times"),
        ("two\nlines", "two lines"),
    ],
)
def test_words_are_only_words_in_markdown(text: str, shown: str) -> None:
    assert markup.escape(text) == shown


def test_nothing_ends_a_block_of_code_from_inside() -> None:
    assert markup.fence("a\n```\nb\n`````") == "``````\na\n```\nb\n`````\n``````"


@pytest.mark.slow
def test_a_long_report_for_a_code_host_is_cut_to_its_limit() -> None:
    subjects = [recorded("tour")] * 60

    text = md.render(subjects, limit=GITHUB_LIMIT)

    assert len(md.render(subjects)) > 65_000
    assert len(text) < 65_000
    assert text.count("\n```\n") % 2 == 0 or text.count("```") % 2 == 0
    assert text.startswith("# journals/tour, side by side")


def test_the_trace_has_a_lane_for_each_arm_and_control_of_each_process() -> None:
    events_ = trace([recorded("tour")])["traceEvents"]

    spans = [event for event in events_ if event["ph"] == "X"]
    assert len(spans) == 257
    assert min(event["ts"] for event in spans) > 0 and min(event["dur"] for event in spans) > 0
    assert {event["args"]["name"] for event in events_ if event["name"] == "thread_name"} >= {
        "one",
        "two",
        "copy",
        "copy (same)",
    }
    assert len({event["pid"] for event in spans}) == 6


def test_a_metric_that_was_never_measured_has_no_curve_in_tensorboard(tmp_path: Path) -> None:
    idle = events.Sampled(processes=0, threads=0, cpu_percent=0.0, rss_bytes=0)
    run_dir = make_run(tmp_path / "runs", started(), idle, events.StateChanged(state="succeeded"))

    tensorboard.export([read_subject(run_dir)], str(tmp_path / "x.tfevents"))

    (file,) = (tmp_path / "x.tfevents").rglob("events.out.*")
    assert b"sampled/cpu_percent" in file.read_bytes()
    assert b"sampled/rss_bytes" not in file.read_bytes()


def test_spans_in_time_are_lanes_of_a_trace_and_bars_its_counters(tmp_path: Path) -> None:
    spans = [
        ("a", 5.0, 9.0, "s"),
        ("a", 6.0, 7.0, "s"),
        ("a", 9.0, 10.0, "s"),
        ("b", 5.5, 6.0, "s"),
        ("c", 1.0, 2.0, "MiB"),
    ]
    run_dir = make_run(
        tmp_path,
        started(),
        *[
            events.SpanShown(lane=lane, began=began, ended=ended, name="loads", unit=unit)
            for lane, began, ended, unit in spans
        ],
        events.BarsShown(title="largest", names=["x", "y"], values=[1.5, math.nan]),
        events.SpanShown(lane="far", began=0.0, ended=1e300),
        events.StateChanged(state="succeeded"),
    )

    shown = trace([read_subject(run_dir)])["traceEvents"]

    boxes = [event for event in shown if event["ph"] == "X"]
    names = {
        event["tid"]: event["args"]["name"] for event in shown if event["name"] == "thread_name"
    }
    lanes: dict[int, list[tuple[float, float]]] = {}
    for event in boxes:
        lanes.setdefault(event["tid"], []).append((event["ts"], event["dur"]))
    assert [(names[tid], found) for tid, found in lanes.items()] == [
        ("a", [(0.0, 4e6), (4e6, 1e6)]), ("b", [(5e5, 5e5)]), ("a", [(1e6, 1e6)]),
    ]  # fmt: skip
    assert [event["args"] for event in shown if event["ph"] == "C"] == [{"x": 1.5}]
    json.dumps(shown, allow_nan=False)


def test_an_arm_that_is_called_like_a_control_of_another_has_a_lane_of_its_own(
    tmp_path: Path,
) -> None:
    block = events.BlockTimed(arm="one", round=0, slot=0, loops=1, wall_ns=1000, cpu_ns=1)
    blocks = [block, replace_fields(block, control="same"), replace_fields(block, arm="one (same)")]
    run_dir = make_run(tmp_path, started(), *blocks, events.StateChanged(state="succeeded"))

    boxes = [event for event in trace([read_subject(run_dir)])["traceEvents"] if event["ph"] == "X"]

    assert len({event["tid"] for event in boxes}) == 3
    assert [(event["name"], event["cat"]) for event in boxes] == [
        ("one", "block"), ("one (same)", "block"), ("one (same)", "control"),
    ]  # fmt: skip


def test_a_trace_refuses_a_run_in_which_nothing_was_timed() -> None:
    with pytest.raises(UsageError, match="neither a race nor spans"):
        trace([recorded("not-a-number")])


def test_arms_that_are_alike_stay_apart_in_every_format(tmp_path: Path) -> None:
    subject = read_subject(run_of_alike_arms(tmp_path))

    rows = [*csv.DictReader(io.StringIO("".join(table.render([subject]))))]
    lanes = [
        one["args"]["name"]
        for one in trace([subject])["traceEvents"]
        if one["name"] == "thread_name"
    ]
    tensorboard.export([subject], str(tmp_path / "x.tfevents"))
    folders = [
        path for path in (tmp_path / "x.tfevents" / subject.run_dir.name).iterdir() if path.is_dir()
    ]

    assert len({row["arm"] for row in rows if row["kind"] == "logged"}) == len(ALIKE)
    assert len(set(lanes)) == len(set(folders)) == len(ALIKE)
    assert PREFIX + "one" in lanes
    assert {"lr=1e-3", "LR=1e-3", "lr_1e-3"} < {path.name for path in folders}
    assert all(len([*path.iterdir()]) == 1 for path in folders)


def test_events_for_tensorboard_have_every_number_its_step_and_its_time(tmp_path: Path) -> None:
    assert crc32c(b"123456789") == 0xE3069283  # as RFC 3720 has it
    steps, values = [0, 127, 128, 2**40, -5, 2**63 - 1], [1.5, 0.0, 1e300, -math.inf, 2.0, -3.0]
    logged = [
        events.Logged(s=s, v={"a/é": v}, x=None if s else 0.5)
        for s, v in zip(steps, values, strict=True)
    ]
    run_dir = make_run(
        tmp_path, started(wall_ns=10**18), *logged, events.StateChanged(state="succeeded")
    )

    tensorboard.export([read_subject(run_dir)], str(tmp_path / "x.tfevents"))

    (file,) = (tmp_path / "x.tfevents" / run_dir.name).iterdir()
    found = scalars_of(file.read_bytes())
    assert [one[:2] for one in found] == [("logged/a/é", step) for step in steps]
    assert [one[2] for one in found] == [1.5, 0.0, math.inf, -math.inf, 2.0, -3.0]
    assert all(0 <= one[3] - 1e9 < 60 for one in found)


def test_what_the_sampler_could_not_tell_is_a_gap_with_its_reason_in_every_format(
    tmp_path: Path,
) -> None:
    shares = [(1, 50.0), (0, math.nan), (2, math.nan), (1, 70.0)]
    read = [
        events.Sampled(processes=n, threads=n, cpu_percent=share, rss_bytes=1)
        for n, share in shares
    ]
    subject = read_subject(
        make_run(tmp_path, started(), *read, events.StateChanged(state="succeeded"))
    )

    table_of_all = csv.DictReader(io.StringIO("".join(table.render([subject]))))
    rows = [row for row in table_of_all if row["name"] == "cpu_percent"]
    document, described = json_document([subject]), json.loads(schema_of("tuilab.report/2"))
    (told,) = (one for one in document["runs"][0]["samples"] if one["name"] == "cpu_percent")
    memory, busy = map(draw_chart, machine_panels(subject.summary))
    tensorboard.export([subject], str(tmp_path / "x.tfevents"))
    (file,) = (tmp_path / "x.tfevents" / subject.run_dir.name).iterdir()
    why = [
        "",
        "n/a: nothing of the run was at work",
        "n/a: what a process that went had taken was counted nowhere",
        "",
    ]
    assert [(row["value"], row["note"]) for row in rows] == list(
        zip(["50.0", "", "", "70.0"], why, strict=True)
    )
    assert (told["value"], told["note"]) == ([50.0, None, None, 70.0], why)
    assert find_misfits(document, described, described) == []
    assert [one[2] for one in scalars_of(file.read_bytes()) if one[0] == "sampled/cpu_percent"] == [
        50.0,
        70.0,
    ]
    assert (busy.curves[0].path.count("M"), busy.curves[0].marks, busy.entries[0].value) == (
        2,
        (),
        "last 70 %",
    )
    assert memory.curves[0].path.count("M") == 2
    assert memory.notes == ("n/a where nothing of the run was at work",)
    assert busy.notes[0].startswith(
        "n/a where nothing of the run was at work, or what a process that went had taken"
    )
    assert "nan" not in "".join(md.render([subject])).lower()


def test_a_name_is_written_as_it_is_where_a_format_can_hold_it() -> None:
    assert [safe_name(name) for name in ("lr=1e-3", "日本語", "a b", "x" * 5000)] == [
        "lr=1e-3",
        "日本語",
        "a b",
        "x" * 5000,
    ]
    assert safe_name("a\nb") != safe_name("a b") and safe_name("a\nb").startswith("a b #")
    assert safe_name(safe_name("a\nb")) != safe_name(
        "a\nb"
    )  # a name that looks like one that was marked is marked, too


def chart_of(*values: float, is_log: bool = False) -> str:
    series = Series("loss")
    for step, value in enumerate(values):
        series.add(step, step, value)
    (curve,) = draw_chart(Panel("loss", lines_of([series]), is_log=is_log)).curves
    return curve.path


def test_a_rising_line_goes_from_the_lower_left_to_the_upper_right() -> None:
    assert chart_of(0, 1, 2) == "M62 208L339 115L616 22"


def test_equal_factors_are_equal_heights_on_a_logarithmic_axis() -> None:
    assert chart_of(1, 10, 100, is_log=True) == "M62 208L339 115L616 22"


def test_a_line_is_broken_where_there_was_no_number() -> None:
    assert chart_of(0, 2, math.nan, 2, 0).count("M") == 2


def test_thinning_keeps_every_spike_and_every_gap() -> None:
    series = Series("loss")
    for step in range(3000):
        series.add(step, step, math.inf if step == 2000 else 9.0 if step == 1234 else 1.0)

    (line,) = lines_of([series])
    thin = thin_line(line, 100)

    assert len(thin.xs) == 100
    assert (thin.highs.max(), thin.lows.min()) == (9.0, 1.0)
    assert thin.breaks.sum() == 1
    assert len(thin.bad_xs) == 1


def test_a_damaged_picture_is_left_out() -> None:
    image = events.ImageShown(title="x", rows=2, cols=2, cells="AAAA", low=0, high=1)

    assert png(image) == b""


def test_a_source_that_is_not_the_one_that_ran_is_told(tmp_path: Path) -> None:
    run_dir = make_run(
        tmp_path, started(source_sha256="0" * 64), events.StateChanged(state="succeeded")
    )
    (run_dir / "scenario.py").write_text('"""Another."""\n')

    subject = read_subject(run_dir)

    assert (
        subject.source_note
        == "not the source that ran: its digest differs from the recorded digest"
    )


def test_a_source_behind_a_link_is_not_read(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path, started(), events.StateChanged(state="succeeded"))
    (tmp_path / "secret.py").write_text("secret")
    (run_dir / "scenario.py").symlink_to(tmp_path / "secret.py")

    subject = read_subject(run_dir)

    assert subject.source == ""
    assert "cannot be read" in subject.source_note
