"""What a verb says, for a program: one JSON document that names its schema."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest

from tests.engine import look, until, write_scenario
from tests.report_aids import checked_document, find_misfits
from tests.test_compare import put
from tuilab.cli import subcommands
from tuilab.cli.front_page import VERBS
from tuilab.cli.schemas import names, schema_of
from tuilab.judging import calibration, calibration_file
from tuilab.judging.calibration_file import Trials
from tuilab.runs import store

NAMED = r'"(tuilab\.[a-z-]+/[0-9]+)"'
REPOSITORY = Path(__file__).parents[1]
Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def ask(tuilab: Tuilab, *words: str, code: int = 0, name: str = "") -> Any:
    """Return what a verb says, which is what its schema says and nothing else."""
    done = tuilab(*words, "--json")
    assert done.returncode == code, done.stderr
    told = checked_document(json.loads(done.stdout))
    assert told.pop("schema") == f"tuilab.{name or words[0]}/1"
    return told


@pytest.fixture
def run_dir(root: Path) -> Path:
    return put(root, "tour", "aaaaaa", tour="20270115T080000000Z-tour-aaaaaa")


def test_every_verb_that_prints_something_has_a_document() -> None:
    """`replay` has screens only, and what `report` prints has a format of its own."""
    context = click.Context(subcommands.tuilab)
    commands = {verb: subcommands.tuilab.get_command(context, verb) for verb in VERBS}
    silent = [
        verb
        for verb, command in commands.items()
        if command and "--json" not in command.get_help(context)
    ]

    assert silent == ["replay", "report"]


def test_every_document_that_is_written_has_a_schema_and_every_schema_a_test_here() -> None:
    written = {
        name
        for path in (REPOSITORY / "tuilab").rglob("*.py")
        for name in re.findall(NAMED, path.read_text())
    }

    assert sorted(written) == names()
    asked = Path(__file__).read_text()
    short = [name.removeprefix("tuilab.").partition("/")[0] for name in names()]
    assert [name for name in short if f'"{name}"' not in asked] == []


def test_a_schema_is_printed_by_its_name_or_by_what_documents_call_it(tuilab: Tuilab) -> None:
    found = [tuilab("report", "--schema", name) for name in ("runs", "tuilab.runs/1", "run")]

    assert found[0].stdout == found[1].stdout == schema_of("tuilab.runs/1")
    assert found[2].returncode == 2 and "--schema takes advice, calibrate, check" in found[2].stderr


def test_what_a_schema_does_not_know_or_misses_is_seen() -> None:
    schema = json.loads(schema_of("tuilab.stop/1"))
    told = {"schema": "tuilab.stop/1", "run": "r", "path": "p", "done": 1, "more": None}

    assert find_misfits(told, schema, schema) == ["$.done: 1 is not string", "$: has more"]
    assert find_misfits({"schema": "tuilab.stop/1"}, schema, schema) == [
        "$: lacks done",
        "$: lacks path",
        "$: lacks run",
    ]


def test_every_schema_is_in_the_table_of_those_that_stay() -> None:
    table = (REPOSITORY / "docs/stability.md").read_text()

    assert [name for name in names() if f"`{name}`" not in table] == []


def test_show(tuilab: Tuilab) -> None:
    (told,) = ask(tuilab, "show", "softmax", "--source")["scenarios"]

    assert (told["scenario"], told["topic"], told["params"][0]["name"]) == (
        "softmax",
        "stability",
        "tied",
    )
    assert told["lesson"] and "def run(" in told["source"] and told["claims"][0]["key"]


def test_check(tuilab: Tuilab, tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text(
        '"""What is odd."""\nfrom tuilab import Lab\n\n\ndef run(lab: Lab) -> None:\n    pass\n'
    )

    told = ask(tuilab, "check", str(path), code=1)

    assert told["exit_code"] == 1 and told["paths"] == [str(path)]
    assert {tuple(finding) for finding in told["findings"]} == {("path", "line", "sentence")}
    warnings = [(warning["path"], warning["line"]) for warning in told["warnings"]]
    assert warnings == [(str(path), 1)] * 2  # the title, and no advice


def test_verify(tuilab: Tuilab, run_dir: Path) -> None:
    assert ask(tuilab, "verify", "last")["wrong"] == []
    (run_dir / "scenario.py").write_text("# edited")

    told = ask(tuilab, "verify", "last", code=1)

    assert told["wrong"] == ["scenario.py is not the source that ran"]
    assert (told["run"], told["exit_code"], told["is_over"]) == (run_dir.name, 1, True)
    assert len(told["recorded"]) == len(told["again"]) == 5
    assert told["recorded"][0]["verdict"] == "SUPPORTED"


def test_note(tuilab: Tuilab, run_dir: Path) -> None:
    told = ask(tuilab, "note", "last", "looks good", "--tag", "mine")

    assert (told["run"], told["tags"], [one["text"] for one in told["notes"]]) == (
        run_dir.name,
        ["mine"],
        ["looks good"],
    )


def test_sweep(tuilab: Tuilab, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, 'lab.claim("it-is-small", rows, at_most=10)')
    path.write_text(path.read_text().replace("lab: Lab", "lab: Lab, rows: int = 1"))

    told = ask(tuilab, "sweep", str(path), "--set", "rows=1,20", code=1)

    assert (told["exit_code"], told["values"], told["missing"]) == (1, {"rows": [1, 20]}, [])
    assert [(one["point"], one["verdict"], one["holds"]) for one in told["claims"][0]["points"]] == [
        ({"rows": 1}, "SUPPORTED", True), ({"rows": 20}, "REFUTED", False)
    ]  # fmt: skip


def test_sweeps_and_the_end_of_one(tuilab: Tuilab) -> None:
    tuilab("sweep", "--set", "n=1,2", "--quiet", "--", "true", "{n}")

    listed, stopped = (
        ask(tuilab, "sweep", name="sweeps"),
        ask(tuilab, "stop", "sweep-last", name="stop-sweep"),
    )

    (one,) = listed["sweeps"]
    assert (one["name"], one["values"], one["points"]) == (
        "true '{n}'",
        {"n": ["1", "2"]},
        {"succeeded": 2},
    )
    assert (stopped["sweep"], stopped["runs"]) == (one["sweep"], [])


def test_stop(tuilab: Tuilab, run_dir: Path) -> None:
    told = ask(tuilab, "stop", "aaaaaa")

    assert told == {
        "run": run_dir.name,
        "path": str(run_dir),
        "done": "aaaaaa has already ended: succeeded",
    }


def test_an_archive_and_back(tuilab: Tuilab, run_dir: Path, tmp_path: Path) -> None:
    packed = ask(tuilab, "export", "last", "-o", f"{tmp_path}/x.tgz")
    (came,) = ask(tuilab, "import", f"{tmp_path}/x.tgz", "--root", f"{tmp_path}/two")["runs"]

    assert (packed["run"], packed["file"], packed["taken_out"]) == (
        run_dir.name,
        f"{tmp_path}/x.tgz",
        {},
    )
    assert packed["bytes"] == (tmp_path / "x.tgz").stat().st_size
    assert (came["path"], came["left_out"], came["taken_out"]) == (
        f"{tmp_path}/two/{run_dir.name}",
        [],
        {},
    )


def test_rm_by_age_says_first_what_would_go(tuilab: Tuilab, run_dir: Path) -> None:
    would = ask(tuilab, "rm", "--keep", "0")
    assert run_dir.exists()
    done = ask(tuilab, "rm", "--keep", "0", "--yes")

    gone = {"run": run_dir.name, "path": str(run_dir)}
    assert would == {"is_done": False, "runs": [gone], "kept": []}
    assert done == {"is_done": True, "runs": [gone], "kept": []}
    assert not run_dir.exists()


def test_rm_by_name(tuilab: Tuilab, run_dir: Path) -> None:
    gone = {"run": run_dir.name, "path": str(run_dir)}
    assert ask(tuilab, "rm", "aaaaaa") == {"is_done": True, "runs": [gone], "kept": []}


def test_config(tuilab: Tuilab) -> None:
    told = ask(tuilab, "config")

    assert told["settings"]["fps"] == {"value": 2.0, "origin": "default"}
    assert (
        "--json works only with `tuilab config print`, not with path; drop it"
        in tuilab("config", "path", "--json").stderr
    )


def test_calibrate(tuilab: Tuilab) -> None:
    assert (
        ask(tuilab, "calibrate", "--show")["cpu"] is None
    )  # which is not a calibration without trials


def test_a_calibration_has_its_trials_by_the_way_of_judging() -> None:
    calibration_file.save({"over 6 processes": Trials(8, 1, 8, 7, 0.01)}, 0.039)
    calibration_file.save({"over 6 processes": Trials(8, 0, 8, 8, 0.01)}, None, "a-gpu", "Fake GPU")

    told = checked_document({"schema": "tuilab.calibrate/1", **calibration.export_saved()})
    (gpu,) = told["gpus"]

    assert (told["cpu"]["luck"], told["cpu"]["ways"]["over 6 processes"]["false"]) == (0.039, 1)
    assert (gpu["uuid"], gpu["name"], gpu["luck"], gpu["ways"]["over 6 processes"]["seen"]) == (
        "a-gpu",
        "Fake GPU",
        None,
        8,
    )


def test_new(tuilab: Tuilab, tmp_path: Path) -> None:
    told = ask(tuilab, "new", "mine", "--dir", str(tmp_path))

    assert told == {"path": f"{tmp_path}/mine.py"} and (tmp_path / "mine.py").exists()


def test_runs_that_nobody_waits_for(tuilab: Tuilab, root: Path) -> None:
    (begun,) = ask(tuilab, "run", "softmax", "--detach", name="started")["runs"]
    tuilab("attach", begun["run"], "--quiet")

    assert begun["path"] == f"{root}/{begun['run']}"


def test_a_queue_that_is_changed_is_told_as_it_stands_then(tuilab: Tuilab) -> None:
    found = [ask(tuilab, "queue", *words) for words in (("pause",), (), ("resume",), ("again",))]

    assert found == [
        {"is_paused": is_paused, "runs": []} for is_paused in (True, True, False, False)
    ]
    assert "tuilab queue pause --json" in tuilab("queue", "--json", "pause").stderr


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("runs",), "runs"),
        (("runs", "--claim", "the picture has a hole"), "claim-history"),
        (("compare", "last", "last"), "compare"),
        (("advise",), "advice"),
        (("list",), "list"),
        (("learn",), "learn"),
    ],
)  # fmt: skip
def test_what_is_told_of_many(
    tuilab: Tuilab, run_dir: Path, words: tuple[str, ...], name: str
) -> None:
    assert ask(tuilab, *words, name=name)


def test_a_result(tuilab: Tuilab, run_dir: Path) -> None:
    assert ask(tuilab, "attach", "last", code=1, name="result")["runs"][0]["run"] == run_dir.name


@pytest.mark.slow
def test_doctor(tuilab: Tuilab) -> None:
    done = tuilab("doctor", "--json")

    assert checked_document(json.loads(done.stdout))["exit_code"] == done.returncode


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (
            ("run", "softmax", "--json", "--jsonl"),
            "--jsonl every record as it is written; use only one of them",
        ),
        (
            ("attach", "last", "--json", "--jsonl"),
            "--jsonl every record as it is written; use only one of them",
        ),
        (("run", "softmax", "--detach", "--jsonl"), "tuilab attach last --jsonl"),
    ],
)
def test_of_two_ways_to_print_none_is_dropped_silently(
    tuilab: Tuilab, run_dir: Path, words: tuple[str, ...], why: str
) -> None:
    done = tuilab(*words)

    assert (done.returncode, done.stdout) == (2, "") and why in done.stderr


# As `tuilab run A B --detach --json` does, where the file of B goes away in between.
STARTING = """
import msgspec
from pathlib import Path
from tuilab.catalogue import catalog
from tuilab.cli.verbs.run import detach
from tuilab.engine import launch
order = launch.order(catalog.find([], {path!r})[0], {{}}, root=Path({root!r}))
detach([order, msgspec.structs.replace(order, path="/gone")], as_json=True)
"""


def test_what_was_started_is_told_although_a_later_run_cannot_be(
    root: Path, tmp_path: Path
) -> None:
    script = STARTING.format(path=str(write_scenario(tmp_path, "pass")), root=str(root))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)

    assert "cannot read /gone" in done.stderr
    (started,) = checked_document(json.loads(done.stdout))["runs"]
    assert started["path"] == str(store.find("last", root))
    until(lambda: look(Path(started["path"])).summary.is_over)
