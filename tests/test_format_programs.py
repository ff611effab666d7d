"""Reports, opened in the programs that their formats are for; one that is not installed is a skipped test.

`pip install -c constraints.txt -e '.[tools]'` brings them.
"""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.engine import until
from tests.made_runs import make_run, started
from tests.report_aids import ALIKE, ALL, hostile_run, json_document, recorded, run_of_alike_arms
from tuilab.cli.schemas import names, schema_of
from tuilab.record import events
from tuilab.reports.formats import event_file
from tuilab.reports.formats.tensorboard import folder_name
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.reports.write_report import write

pytestmark = pytest.mark.tools

KINDS = {".csv": "csv", ".json": "json", ".xml": "junit", ".tfevents": "tensorboard"}


@pytest.fixture
def subjects(tmp_path: Path) -> list[ReportedRun]:
    """Two runs of one scenario, and two with names that are alike or hostile."""
    again = tmp_path / "20270101T000000000Z-tour-again1"
    again.symlink_to(recorded("tour").run_dir)
    alike, hostile = (
        run_of_alike_arms(tmp_path / "alike"),
        hostile_run(tmp_path / "hostile", "<script>\x1b[0m ](x) ]]>"),
    )
    return [recorded("tour"), read_subject(again), read_subject(alike), read_subject(hostile)]


def written(subjects: list[ReportedRun], folder: Path, ending: str) -> Path:
    target = folder / f"report{ending}"
    write(subjects, str(target), KINDS[ending])
    return target


def run_in(module: str, *words: str | Path) -> str:
    """Run a program of this environment and return what it printed."""
    pytest.importorskip(module)
    done = subprocess.run(
        [sys.executable, "-m", module, *map(str, words)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_pandas_reads_the_table(subjects: list[ReportedRun], tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")

    table = pandas.read_csv(written(subjects, tmp_path, ".csv"), low_memory=False)

    claims = table[(table["kind"] == "claim") & (table["run"] == "tour")].set_index("name")
    assert claims["verdict"].value_counts().to_dict() == {
        "SUPPORTED": 3,
        "NOT TESTABLE HERE": 1,
        "REFUTED": 1,
    }
    assert claims.loc["two products take at least 1.5 times as long as one", ["low", "value", "high"]].tolist() == [
        1.92023506, 1.98782194, 2.05778769,
    ]  # fmt: skip
    assert [str(table[name].dtype) for name in ("time_s", "value", "low", "high", "place")] == [
        "float64"
    ] * 5
    alike = table[(table["kind"] == "logged") & (table["scenario"] == "stability/softmax")]
    assert alike.groupby("arm", dropna=False)["value"].count().tolist() == [1] * len(ALIKE)
    assert set(table["record"]) == {"whole"}


@pytest.mark.parametrize("name", ALL)
def test_the_document_is_valid_by_its_schema(name: str) -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(
        json.loads(schema_of("tuilab.report/2"))
    )

    validator.check_schema(json.loads(schema_of("tuilab.report/2")))
    assert [error.message for error in validator.iter_errors(json_document([recorded(name)]))] == []


@pytest.mark.parametrize("name", names())
def test_every_schema_of_what_verbs_print_is_one(name: str) -> None:
    pytest.importorskip("jsonschema").Draft202012Validator.check_schema(json.loads(schema_of(name)))


def test_the_document_of_odd_names_is_valid_by_its_schema(subjects: list[ReportedRun]) -> None:
    validator = pytest.importorskip("jsonschema").Draft202012Validator(
        json.loads(schema_of("tuilab.report/2"))
    )

    assert [error.message for error in validator.iter_errors(json_document(subjects))] == []


def test_samples_of_the_document_are_a_table_in_a_line(subjects: list[ReportedRun]) -> None:
    pandas = pytest.importorskip("pandas")

    table = pandas.concat(map(pandas.DataFrame, json_document(subjects)["runs"][0]["samples"]))

    loss = table[
        (table["name"] == "loss") & (table["arm"] == "careful") & (table["writer"] == "worker-0")
    ]
    assert len(loss) == subjects[0].summary.series["loss", "careful", "worker-0"].count
    assert set(table["kind"]) == {"logged", "sampled", "timed"}


def test_a_viewer_of_junit_makes_a_page(subjects: list[ReportedRun], tmp_path: Path) -> None:
    page = tmp_path / "page.html"

    run_in("junit2htmlreport", written(subjects, tmp_path, ".xml"), page)

    shown = page.read_text()
    assert (
        "journals/tour again1" in shown
        and "two products take at least 1.5 times as long as one" in shown
    )
    assert (
        "tuilab run tour --repeat 6 --headless" in shown
        and "12.155 sec" in shown
        and "0.916 sec" in shown
    )
    assert "<script>\ufffd" not in shown


# ---- TensorBoard


def accumulator(folder: Path) -> Any:
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    found = module.EventAccumulator(
        str(folder), size_guidance={"scalars": 0, "tensors": 0, "images": 0}
    )
    return found.Reload()


def test_tensorboard_keeps_the_curves_of_arms_apart(
    subjects: list[ReportedRun], tmp_path: Path
) -> None:
    root = written(subjects, tmp_path, ".tfevents") / subjects[2].run_dir.name

    found = {
        arm: [
            (one.step, one.value)
            for one in accumulator(root / folder_name(arm)).Scalars("logged/loss")
        ]
        for arm in ALIKE
    }

    assert found == {arm: [(0, float(at))] for at, arm in enumerate(ALIKE)}


def test_tensorboard_reads_every_number_and_when_it_was_taken(
    subjects: list[ReportedRun], tmp_path: Path
) -> None:
    root = written(subjects[:1], tmp_path, ".tfevents") / "tour"

    read = accumulator(root / "careful").Scalars("logged/loss")

    (piece,) = [one for one in json_document(subjects[:1])["runs"][0]["samples"]
                if (one["name"], one["arm"], one["writer"]) == ("loss", "careful", "worker-0")]  # fmt: skip
    assert [one.step for one in read] == piece["place"]
    assert [one.value for one in read] == pytest.approx(piece["value"], rel=1e-6)
    assert [one.wall_time - 1.8e9 for one in read] == pytest.approx(piece["time_s"], abs=1e-5)


def test_tensorboard_lists_one_run_for_each_arm(
    subjects: list[ReportedRun], tmp_path: Path
) -> None:
    """The processes of an arm are groups of curves, and no runs of their own: six of them would be twenty entries."""
    target = written(subjects[:1], tmp_path, ".tfevents")
    summary = subjects[0].summary
    arms = {"", *(arm for _, arm, _ in summary.series), *(arm for _, arm in summary.blocks)}
    arms |= {arm for _, arm in summary.images}
    writers = {writer for name, arm, writer in summary.series if (name, arm) == ("loss", "careful")}

    found = {path.parent.relative_to(target) for path in target.rglob("events.*")}
    tags = accumulator(target / "tour" / "careful").Tags()["scalars"]

    assert found == {Path("tour", folder_name(arm)) if arm else Path("tour") for arm in arms}
    assert len(writers) == 6
    others = {f"{writer}/logged/loss" for writer in writers - {"worker-0"}}
    assert {tag for tag in tags if tag.endswith("logged/loss")} == {"logged/loss", *others}


def test_tensorboard_export_replaces_an_older_one_of_the_same_run(
    subjects: list[ReportedRun], tmp_path: Path
) -> None:
    target = tmp_path / "report.tfevents"
    old = target / "tour" / "worker-5" / "sum"
    old.mkdir(parents=True)
    (old / "events.out.tfevents.1.tuilab").write_bytes(b"old")
    kept = target / "tour" / "mine.txt"
    kept.write_text("mine")

    written(subjects[:1], tmp_path, ".tfevents")

    assert kept.read_text() == "mine"
    assert not old.parent.exists()


def test_tensorboard_reads_odd_steps_and_numbers(tmp_path: Path) -> None:
    steps, values = (
        [0, 127, 128, 2**40, -5, 2**63 - 1],
        [1.5, math.nan, 1e300, -math.inf, 0.0, -3.0],
    )
    data = event_file.scalar_records("é", [1.0] * 6, steps, values)
    (tmp_path / "events.out.tfevents.1.x").write_bytes(event_file.file_header(1.0) + data)

    read = accumulator(tmp_path).Scalars("é")

    assert [one.step for one in read] == steps
    assert [str(one.value) for one in read] == ["1.5", "nan", "inf", "-inf", "0.0", "-3.0"]


def test_tensorboard_shows_pictures_texts_and_verdicts(
    subjects: list[ReportedRun], tmp_path: Path
) -> None:
    target = written(subjects, tmp_path, ".tfevents") / "tour"

    run = accumulator(target)

    (image,) = run.Images("pictures/ramp")
    assert image.encoded_image_string.startswith(b"\x89PNG") and (image.width, image.height) == (
        8,
        8,
    )
    (verdicts,) = [one.tensor_proto.string_val[0].decode() for one in run.Tensors("verdicts")]
    assert (
        "| SUPPORTED | two products take at least 1.5 times as long as one | two/one 1.99"
        in verdicts
    )
    assert run.Scalars("claim/two products take at least 1.5 times as long as one/estimate")[
        0
    ].value == pytest.approx(1.98782194)
    assert {tag.partition("/")[0] for tag in run.Tags()["tensors"]} >= {
        "verdicts",
        "text",
        "what is missing",
        "_hparams_",
    }


def test_tensorboard_serves_runs_with_their_parameters(tmp_path: Path) -> None:
    ends = [events.StateChanged(state="succeeded")], [events.StateChanged(state="failed")]
    for rate, end in zip((0.1, 0.2), ends, strict=True):
        logged = [events.Logged(s=step, v={"loss": rate * step}) for step in (0, 5, 2**40)]
        make_run(
            tmp_path, started(params={"rate": rate, "word": "a b"}), *logged, *end, end=f"{rate}"
        )
    subjects = [read_subject(path) for path in sorted(tmp_path.iterdir())]
    target = written(subjects, tmp_path, ".tfevents")

    with served(target) as address:
        until(lambda: len(asked(f"{address}/data/runs")) == 2)
        name = quote(subjects[1].run_dir.name, safe="")
        read = asked(f"{address}/data/plugin/scalars/scalars?run={name}&tag=logged%2Floss")
        experiment = asked(
            f"{address}/data/plugin/hparams/experiment",
            {"experimentName": "", "includeMetrics": True},
        )

    assert [(step, value) for _, step, value in read] == [
        (0, 0.0),
        (5, 1.0),
        (2**40, pytest.approx(0.2 * 2**40)),
    ]
    infos = {one["name"]: one for one in experiment["hparamInfos"]}
    assert infos["rate"]["domainInterval"] == {"minValue": 0.1, "maxValue": 0.2}
    assert infos["word"]["domainDiscrete"] == ["a b"]


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve a folder in a TensorBoard of its own and yield its address."""
    pytest.importorskip("tensorboard")
    words = ["tensorboard.main", "--logdir", str(folder), "--host", "127.0.0.1", "--port", "0"]
    log = folder.parent / "log"
    with log.open("wb") as out:
        server = subprocess.Popen(
            [sys.executable, "-m", *words],
            stdout=out,
            stderr=out,
            env={**os.environ, "COLUMNS": "200"},
        )
    try:
        until(lambda: "http://" in log.read_text() or server.poll() is not None)
        yield f"http://{log.read_text().partition('http://')[2].partition('/')[0]}"
    finally:
        server.terminate()
        server.wait(20)


def asked(address: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urlopen(
        Request(address, data, {"Content-Type": "application/json"}), timeout=60
    ) as answer:
        return json.load(answer)
