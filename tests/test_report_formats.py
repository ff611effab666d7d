"""The formats for programs and code hosts: every number is in them, and no name is more than a name."""

import csv
import io
import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from tests.report_aids import ALL, hostile_run, misfits, recorded
from tests.tui.made_up import make_run, started
from tuilab.cli.verbs import runs
from tuilab.drawings.lines import lines_of, thinned
from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.record.series import Series
from tuilab.reports.charts.geometry import draw
from tuilab.reports.charts.panels import Panel
from tuilab.reports.files import GITHUB_LIMIT
from tuilab.reports.formats import csv as table
from tuilab.reports.formats import html, junit, markdown
from tuilab.reports.formats.full import full, schema
from tuilab.reports.formats.pyperf import pyperf
from tuilab.reports.formats.trace import trace
from tuilab.reports.png import png
from tuilab.reports.subject import read_subject


def rows_of(*names: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(table.render([recorded(name) for name in names])))))


def test_the_table_has_a_row_for_every_number() -> None:
    rows = rows_of("tour")

    summary = recorded("tour").summary
    logged = sum(series.count for series in summary.series.values())
    timed = sum(len(blocks) for found in (summary.blocks, summary.controls) for blocks in found.values())
    assert sum(row["kind"] == "logged" for row in rows) == logged == 984
    assert sum(row["kind"] == "timed" for row in rows) == timed == 257
    assert sum(row["kind"] == "sampled" for row in rows) == sum(series.count for series in summary.resources.values())
    assert [row["value"] for row in rows if (row["name"], row["arm"], row["writer"]) == ("loss", "bold", "worker-0")][
        -1
    ] == "nan"


@pytest.mark.parametrize("text", ["=cmd|' /C calc'!A0", "@SUM(1)", "+1+1", "-1+1", "\t=1+1", " =1", "\r=1"])
def test_no_cell_of_words_is_a_formula(tmp_path: Path, text: str) -> None:
    subject = read_subject(hostile_run(tmp_path, text))

    rows = list(csv.reader(io.StringIO("".join(table.render([subject])))))

    words = [cell for row in rows for at, cell in enumerate(row) if at not in (6, 7, 8)]
    assert any("1" in cell or "cmd" in cell for cell in words)
    assert [cell for cell in words if cell.lstrip()[:1] in tuple("=+-@")] == []


def test_the_document_has_every_raw_sample_and_what_repeats_the_run() -> None:
    document = json.loads(json.dumps(full([recorded("tour")]), allow_nan=False))

    (run,) = document["runs"]
    assert document["schema"] == "tuilab.report/1"
    assert run["command"] == ["tuilab", "run", "tour", "--repeat", "6", "--headless"]
    assert len(run["samples"]) == len(rows_of("tour"))
    assert run["claims"][3]["estimate"] == 1.98782194
    assert run["declared"][0]["bound"] == 1.5
    assert [claim.get("measure") for claim in run["claims"]].count("wall") == len(run["declared"])  # of exact ones nothing
    assert run["source"].startswith('"""Everything that a run can show.')
    assert [image["title"] for image in run["images"]] == ["ramp", "ramp with a hole"]


@pytest.mark.parametrize("name", ALL)
def test_the_document_is_what_its_schema_says(name: str) -> None:
    described = json.loads(schema())

    assert misfits(json.loads(json.dumps(full([recorded(name)]))), described, described) == []


def test_the_document_of_a_run_that_left_nothing_or_has_odd_names_is_what_the_schema_says(tmp_path: Path) -> None:
    described = json.loads(schema())
    (tmp_path / "20270115T080000000Z-x-abcdef" / "journal").mkdir(parents=True)
    subjects = [read_subject(tmp_path / "20270115T080000000Z-x-abcdef"), read_subject(hostile_run(tmp_path, "name"))]

    document = json.loads(json.dumps(full(subjects)))
    assert misfits(document, described, described) == []
    assert misfits({**document, "runs": [{}]}, described, described)[0] == "$.runs[0]: lacks run"


def test_a_refuted_claim_fails_and_an_undecided_one_is_skipped_in_junit() -> None:
    suites = ElementTree.fromstring(junit.render([recorded(name) for name in ("tour", "not-a-number", "outliers")]))

    counts = [[suite.get(name) for name in ("tests", "failures", "errors", "skipped")] for suite in suites]
    assert counts == [["5", "1", "0", "1"], ["3", "2", "0", "0"], ["1", "0", "0", "1"]]


def two_claims_of_one_sentence(root: Path) -> Path:
    records = [
        events.VerdictReached(key=key, text="it is finite", verdict=verdict, rule="r")
        for key, verdict in (("loss", "SUPPORTED"), ("norm", "REFUTED"), ("", "INVALID"))
    ]
    settings = [
        events.SettingAdvised(key=key, text="it is finite", setting=f"OMP_NUM_THREADS={key}") for key in ("loss", "norm")
    ]
    return make_run(root, started(), *settings, *records, events.StateChanged(state="succeeded"))


def test_the_document_tells_what_time_was_judged_and_how_often_it_was_before(tmp_path: Path) -> None:
    declared = events.ClaimDeclared(text="slower", over="a", under="b", op="at_least", bound=1.5)
    reached = events.VerdictReached(text="slower", verdict="SUPPORTED", rule="r", measure="cpu")
    run_dir = make_run(tmp_path, started(), declared, reached, events.StateChanged(state="succeeded"))
    subject = replace(read_subject(run_dir), before={"slower": "2nd run of this claim"})

    (run,) = full([subject])["runs"]

    assert [claim["measure"] for claim in run["claims"]] == ["cpu"]
    assert run["earlier"] == {"slower": "2nd run of this claim"}


def test_a_case_of_junit_is_called_by_the_key_of_its_claim_and_says_its_sentence(tmp_path: Path) -> None:
    (suite,) = ElementTree.fromstring(junit.render([read_subject(two_claims_of_one_sentence(tmp_path))]))

    assert [case.get("name") for case in suite] == ["loss", "norm", "it is finite"]
    assert suite[0].findtext("system-out") == "it is finite: SUPPORTED: "
    assert [case.attrib["message"] for case in suite.iter("failure")] == ["it is finite: REFUTED: ", "INVALID: "]


def test_claims_of_one_sentence_keep_their_settings_and_their_verdicts(tmp_path: Path) -> None:
    run_dir = two_claims_of_one_sentence(tmp_path)
    (run,) = full([read_subject(run_dir)])["runs"]

    assert run["settings"] == {"loss": "OMP_NUM_THREADS=loss", "norm": "OMP_NUM_THREADS=norm"}
    listed = CliRunner().invoke(runs.command, ["--json", "--root", str(tmp_path)], standalone_mode=False).stdout
    assert json.loads(listed)["runs"][0]["verdicts"] == {"loss": "SUPPORTED", "norm": "REFUTED", "it is finite": "INVALID"}


def test_a_run_that_failed_is_an_error_in_junit() -> None:
    (suite,) = ElementTree.fromstring(junit.render([recorded("crash-in-the-third-repeat")]))

    error = suite.find("testcase/error")
    assert error is not None and error.get("message") == "ArmFailed: ended by SIGSEGV"


def test_characters_that_xml_cannot_hold_are_replaced(tmp_path: Path) -> None:
    subject = read_subject(hostile_run(tmp_path, "a\x00b\x1b]0;x\x07\ufffe</testcase><x>&amp;"))

    (suite,) = ElementTree.fromstring(junit.render([subject]))

    assert {case.tag for case in suite} == {"testcase"}


def test_markdown_shows_claims_charts_and_the_command() -> None:
    text = markdown.render([recorded("tour")])

    assert "| ✓ SUPPORTED | two products take at least 1.5 times as long as one | two/one 1.99 \\[1.92, 2.06\\] (95 %)" in text
    assert "loss (log)  ⠒ careful  ▚ bold" in text
    assert "NaN and Inf bold" in text
    assert "tuilab run tour --repeat 6 --headless" in text


def test_what_a_change_refutes_stands_below_it_in_reports() -> None:
    tour = recorded("tour")
    lesson = {"Try next": "Much:\n`--rows 5`: few\nrefutes: loss\n`--rows 9`: more"}
    subject = replace(tour, scenario=replace(tour.scenario, sections=lesson))

    assert "Much:\n\n- `--rows 5`: few\\\n  refutes: loss\n- `--rows 9`: more\n" in markdown.render([subject])
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
    assert markdown.escape(text) == shown


def test_nothing_ends_a_block_of_code_from_inside() -> None:
    assert markdown.fence("a\n```\nb\n`````") == "``````\na\n```\nb\n`````\n``````"


@pytest.mark.slow
def test_a_long_report_for_a_code_host_is_cut_to_its_limit() -> None:
    subjects = [recorded("tour")] * 60

    text = markdown.render(subjects, limit=GITHUB_LIMIT)

    assert len(markdown.render(subjects)) > 65_000
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


def test_pyperf_gets_a_benchmark_for_each_arm_and_a_run_for_each_repeat() -> None:
    suite = pyperf([recorded("tour")])

    assert [benchmark["metadata"]["name"] for benchmark in suite["benchmarks"]] == [
        "journals/tour one", "journals/tour two", "journals/tour copy",
    ]  # fmt: skip
    assert [len(benchmark["runs"]) for benchmark in suite["benchmarks"]] == [6, 6, 6]
    assert all(0 < value < 1 for benchmark in suite["benchmarks"] for run in benchmark["runs"] for value in run["values"])


def test_pyperf_refuses_a_run_without_times() -> None:
    with pytest.raises(UsageError, match="no arms raced"):
        pyperf([recorded("not-a-number")])


def chart_of(*values: float, is_log: bool = False) -> str:
    series = Series("loss")
    for step, value in enumerate(values):
        series.add(step, step, value)
    (curve,) = draw(Panel("loss", lines_of([series]), is_log=is_log)).curves
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
    thin = thinned(line, 100)

    assert len(thin.xs) == 100
    assert (thin.highs.max(), thin.lows.min()) == (9.0, 1.0)
    assert thin.breaks.sum() == 1
    assert len(thin.bad_xs) == 1


def test_a_damaged_picture_is_left_out() -> None:
    image = events.ImageShown(title="x", rows=2, cols=2, cells="AAAA", low=0, high=1)

    assert png(image) == b""


def test_a_source_that_is_not_the_one_that_ran_is_told(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path, started(source_sha256="0" * 64), events.StateChanged(state="succeeded"))
    (run_dir / "scenario.py").write_text('"""Another."""\n')

    subject = read_subject(run_dir)

    assert subject.source_note == "this is not the source that ran: its digest is another than the recorded one"


def test_a_source_behind_a_link_is_not_read(tmp_path: Path) -> None:
    run_dir = make_run(tmp_path, started(), events.StateChanged(state="succeeded"))
    (tmp_path / "secret.py").write_text("secret")
    (run_dir / "scenario.py").symlink_to(tmp_path / "secret.py")

    subject = read_subject(run_dir)

    assert subject.source == ""
    assert "cannot be read" in subject.source_note
