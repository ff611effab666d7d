"""`tuilab report` and `tuilab run --report`: which format, where to, and what is said when it cannot be."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.made_runs import make_run, started
from tests.record_journals import JOURNALS
from tests.report_aids import damaged_run
from tuilab.errors import CannotRecord
from tuilab.record.events import StateChanged
from tuilab.reports.formats import html, md
from tuilab.reports.opening import opening_of
from tuilab.reports.reported_run import read_subject
from tuilab.reports.write_report import ENDINGS, check_target, format_of
from tuilab.runs.store import list_runs

Tuilab = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def runs(root: Path) -> Path:
    """A folder with two recorded runs; the tour is the older one."""
    for at, name in enumerate(("tour", "not-a-number"), 1):
        shutil.copytree(JOURNALS / name, root / f"2027010{at}T000000000Z-{name}-aaaaa{at}")
    return root


@pytest.mark.parametrize("ending", [ending for ending in ENDINGS if ending != ".tfevents"])
@pytest.mark.first(1)
def test_the_ending_says_the_format(
    tuilab: Tuilab, runs: Path, tmp_path: Path, ending: str
) -> None:
    target = tmp_path / f"tour{ending}"

    done = tuilab("report", "aaaaa1", "-o", str(target))

    assert (done.returncode, done.stdout, done.stderr) == (0, "", f"1 run: {target}\n")
    assert target.stat().st_size > 500
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [target.name]


@pytest.mark.parametrize(
    ("target", "wanted", "kind"),
    [
        ("a.trace.json", "", "trace"),
        ("a.JSON", "", "json"),
        ("-", "", "md"),
        ("-", "csv", "csv"),
        ("a.txt", "html", "html"),
    ],
)
def test_the_longest_ending_counts_and_as_overrides_it(target: str, wanted: str, kind: str) -> None:
    assert format_of(target, wanted) == kind


def test_an_unknown_ending_names_the_known_ones(tuilab: Tuilab, runs: Path) -> None:
    done = tuilab("report", "last", "-o", "x.doc")

    assert done.returncode == 2
    assert done.stderr == (
        "tuilab: cannot tell the report format from x.doc; use one of the extensions "
        ".html, .htm, .md, .json, .csv, .xml, .trace.json, .tfevents, or --as FORMAT\n"
    )


def test_without_a_target_it_asks_for_one(tuilab: Tuilab, runs: Path) -> None:
    done = tuilab("report", "last")

    assert done.returncode == 2 and "name an output file, for example -o report.html" in done.stderr


def test_a_place_that_cannot_be_written_ends_in_5_and_leaves_nothing(
    tuilab: Tuilab, runs: Path, tmp_path: Path
) -> None:
    done = tuilab("report", "last", "-o", str(tmp_path / "nowhere" / "x.md"))

    assert done.returncode == 5
    assert "there is no folder " in done.stderr and "; name another file with -o" in done.stderr


def test_a_full_disk_ends_in_5(tuilab: Tuilab, runs: Path) -> None:
    done = tuilab("report", "last", "-o", "/dev/full", "--as", "html")

    assert done.returncode == 5
    assert "cannot write /dev/full: No space left on device" in done.stderr
    assert Path("/dev/full").is_char_device()


def test_a_dash_is_stdout(tuilab: Tuilab, runs: Path) -> None:
    done = tuilab("report", "last", "-o", "-")

    assert done.stdout.startswith("# A loss that overflows\n") and done.stderr == ""


def test_several_runs_and_all_open_with_the_box(tuilab: Tuilab, runs: Path, tmp_path: Path) -> None:
    done = tuilab("report", "all", "-o", "-")

    assert "# What holds on this machine" in done.stdout
    assert "2 runs; 4 of 8 claims supported" in done.stdout
    assert "## Not tested here, and why" in done.stdout
    assert "## Never run on this machine\n\n- basics/tensor-basics" in done.stdout


def test_all_takes_the_newest_finished_run_with_the_defaults(tuilab: Tuilab, runs: Path) -> None:
    changed = started(scenario="tour", params={"rate": 9.0}, changed=["rate"])
    make_run(runs, changed, StateChanged(state="succeeded")).rename(
        runs / "20270105T000000000Z-tour-bbbbb2"
    )
    quick = make_run(runs, started(scenario="tour", quick=True), StateChanged(state="succeeded"))
    quick.rename(runs / "20270106T000000000Z-tour-bbbbb3")

    done = tuilab("report", "all", "-o", "-")

    assert "run aaaaa1" in done.stdout and "bbbbb" not in done.stdout


def test_a_run_that_failed_counts_as_the_claims_that_it_left_open(runs: Path) -> None:
    make_run(
        runs,
        started(scenario="other", claims=["one", "two"]),
        StateChanged(state="failed", reason="it broke"),
    )

    opening = opening_of([read_subject(run) for run in list_runs(runs)])

    assert opening.counts == "3 runs; 4 of 10 claims supported"
    assert sum(part.count for part in opening.parts) == 10


def test_runs_of_one_scenario_are_told_side_by_side(
    tuilab: Tuilab, runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(JOURNALS / "tour", runs / "20270104T000000000Z-tour-bbbbb1")

    one = tuilab("report", "bbbbb1", "aaaaa1", "-o", "-").stdout
    two = tuilab("report", "bbbbb1", "aaaaa1", "aaaaa2", "-o", "-").stdout

    assert (
        one.startswith("# journals/tour, side by side\n")
        and "What holds on this machine" not in one
    )
    assert (
        "| 1 | aaaaa1 |" in one and "| ✓ SUPPORTED 1.99 \\[1.92, 2.06\\] | ✓ SUPPORTED 1.99" in one
    )
    assert (
        two.startswith("# What holds on this machine\n") and "## journals/tour, side by side" in two
    )


def test_what_a_comparison_has_no_room_for_is_counted(tmp_path: Path) -> None:
    claims = [f"claim {number}" for number in range(70)]
    for name in ("one", "two"):
        params = {f"size-{number}": f"{name} {number}" for number in range(65)}
        make_run(
            tmp_path,
            started(scenario="wide", claims=claims, params=params),
            StateChanged(state="succeeded"),
            name=name,
        )
    subjects = [read_subject(run) for run in list_runs(tmp_path)]
    document = md.render(subjects)
    page = html.render(subjects)

    # Markdown shows 60 claims, and a page 400. Both show 60 differences.
    assert "Left out here: 5 differences, 10 claims. The .json report has all of them." in document
    assert "Left out here: 5 differences. The .json report has all of them." in page


def test_the_schema_of_the_json_is_printed(tuilab: Tuilab) -> None:
    assert json.loads(tuilab("report", "--schema").stdout)["title"] == "tuilab.report/2"


def test_a_summary_of_a_job_is_appended_to_its_file(
    tuilab: Tuilab, runs: Path, tmp_path: Path
) -> None:
    summary = tmp_path / "summary.md"
    summary.write_text("before\n")

    done = tuilab("report", "aaaaa1", "--github", env={"GITHUB_STEP_SUMMARY": str(summary)})

    assert done.returncode == 0
    assert summary.read_text().startswith("before\n# Everything that a run can show\n")


def test_the_summary_of_a_job_is_nothing_but_markdown(tuilab: Tuilab, runs: Path) -> None:
    done = tuilab("report", "last", "--github", "-o", "x.html")

    assert (
        done.returncode == 2 and "--github writes Markdown, but x.html would be html" in done.stderr
    )


def test_without_a_job_the_summary_has_nowhere_to_go(tuilab: Tuilab, runs: Path) -> None:
    done = tuilab("report", "last", "--github", env={"GITHUB_STEP_SUMMARY": ""})

    assert (
        done.returncode == 2
        and "GITHUB_STEP_SUMMARY is not set; name an output file" in done.stderr
    )


def test_a_run_writes_its_report_at_the_end_also_when_it_failed(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    scenario = tmp_path / "broken.py"
    scenario.write_text(
        '"""It breaks."""\nfrom tuilab import Lab\n\n\ndef run(lab: Lab) -> None:\n    raise KeyError("gone")\n'
    )
    target = tmp_path / "broken.json"

    done = tuilab("run", str(scenario), "--report", str(target))

    (run,) = json.loads(target.read_text())["runs"]
    assert done.returncode == 4
    assert done.stderr.endswith(f"report: {target}\n")
    assert (run["state"], run["failure"]["type"], run["command"][:3]) == (
        "failed",
        "KeyError",
        ["tuilab", "run", str(scenario)],
    )


@pytest.mark.parametrize(("target", "code"), [("x.doc", 2), ("nowhere/x.md", 5)])
def test_a_report_that_cannot_be_written_stops_the_run_before_it_starts(
    tuilab: Tuilab, root: Path, target: str, code: int
) -> None:
    done = tuilab("run", "softmax", "--quick", "--report", target)

    assert done.returncode == code
    assert not root.exists()


def test_the_front_never_loads_torch_or_the_screens_for_a_report(runs: Path) -> None:
    code = "from tuilab.reports.formats import html; from tuilab.reports import write_report; import sys; "
    code += "from tuilab.reports.reported_run import read_subject; "
    code += f"from pathlib import Path; html.render([read_subject(Path({str(JOURNALS / 'tour')!r}))]); print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert {"torch", "textual", "matplotlib", "scipy"} & set(done.stdout.split()) == set()


def test_a_folder_for_tensorboard_needs_nothing_but_what_opens_it(
    tuilab: Tuilab, runs: Path, tmp_path: Path
) -> None:
    target = tmp_path / "tour.tfevents"

    first = tuilab("report", "aaaaa1", "-o", str(target))
    files = {path: path.read_bytes() for path in target.rglob("*") if path.is_file()}
    tuilab("report", "aaaaa1", "aaaaa2", "-o", str(target))

    if find_spec("tensorboard"):
        advice = ""
    else:
        advice = "tuilab: TensorBoard is not installed here; install it to open the report: pip install tensorboard\n"
    assert (first.returncode, first.stderr) == (0, f"{advice}1 run: {target}\n")
    assert len(files) == 9 and all(path.name.startswith("events.out.tfevents.") for path in files)
    assert all(path.read_bytes() == data for path, data in files.items())
    assert (
        len([*target.iterdir()]) == 2 and [path.name for path in tmp_path.glob(".tuilab-*")] == []
    )


def test_a_folder_may_be_written_again_where_a_format_is_one(tmp_path: Path) -> None:
    for name in ("x.tfevents", "x.html"):
        (tmp_path / name).mkdir()

    assert check_target(str(tmp_path / "x.tfevents")) == "tensorboard"
    with pytest.raises(CannotRecord, match="it is a folder; name another"):
        check_target(str(tmp_path / "x.html"))


def test_what_tensorboard_reads_is_no_stream_and_no_file(
    tuilab: Tuilab, runs: Path, tmp_path: Path
) -> None:
    (tmp_path / "x.tfevents").write_text("mine")

    stream, file = (
        tuilab("report", "aaaaa1", "--as", "tensorboard", "-o", name)
        for name in ("-", str(tmp_path / "x.tfevents"))
    )

    assert (stream.returncode, file.returncode) == (2, 5)
    assert (
        "is a folder and cannot go to stdout" in stream.stderr and "Not a directory" in file.stderr
    ) or "File exists" in file.stderr
    assert (tmp_path / "x.tfevents").read_text() == "mine"


def test_a_trace_of_a_run_without_times_is_refused(
    tuilab: Tuilab, runs: Path, tmp_path: Path
) -> None:
    done = tuilab("report", "aaaaa2", "-o", str(tmp_path / "x.trace.json"))

    assert (
        done.returncode == 2
        and done.stderr.count("\n") == 1
        and "choose .json or .csv" in done.stderr
    )
    assert not (tmp_path / "x.trace.json").exists()


def test_a_record_that_is_not_whole_is_told_beside_every_report(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    damaged_run(root)

    done = tuilab("report", "last", "-o", str(tmp_path / "x.csv"))

    assert done.returncode == 0
    assert (
        done.stderr.startswith("tuilab: the data of ")
        and "is incomplete: 1 line: corrupt and left out." in done.stderr
    )


@pytest.mark.parametrize(
    ("state", "title", "found"),
    [
        ("running", "the run is running", "it has no end yet"),
        ("failed", "the run ended: failed", "it has no recorded end"),
    ],
)
def test_a_box_says_of_a_run_without_success_how_it_stands(
    root: Path, state: str, title: str, found: str
) -> None:
    subject = replace(read_subject(make_run(root, started())), state=state)

    (finding,) = [finding for group in opening_of([subject]).groups for finding in group.findings]

    assert finding.text.endswith(f": {title}") and finding.measured == found
