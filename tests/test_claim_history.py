"""One claim, run after run."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from tests.engine import write_scenario
from tests.report_aids import checked_document

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def run(tuilab: Tuilab, folder: Path, size: int) -> None:
    path = write_scenario(
        folder, 'lab.claim("half", size // 2, equals=50)', claims={"half": "half of it is 50"}
    )
    path.write_text(path.read_text().replace("lab: Lab)", "lab: Lab, size: int = 100)"))
    done = tuilab("run", str(path), "--headless", "--quiet", "--size", str(size))
    assert done.returncode in (0, 1), done.stderr


def test_the_verdicts_stand_in_their_order_with_what_changed(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    for size in (100, 100, 80):
        run(tuilab, tmp_path, size)

    done = tuilab("runs", "--claim", "half")

    lines = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert lines[0].startswith("probe  [half] half of it is 50")
    verdicts = [line.split()[5] for line in lines if line[:3].strip().isdigit() and "Z  " in line]
    assert verdicts == ["SUPPORTED", "SUPPORTED", "REFUTED"]
    assert "     since the previous run: parameter size: 100 -> 80" in lines
    assert lines[-1].startswith("2 SUPPORTED, 1 REFUTED")


def test_as_a_document_it_has_every_change(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    for size in (100, 80):
        run(tuilab, tmp_path, size)

    told = checked_document(json.loads(tuilab("runs", "--claim", "half of", "--json").stdout))

    assert (told["schema"], told["scenario"], told["key"]) == (
        "tuilab.claim-history/1",
        "probe",
        "half",
    )
    assert [one["side"]["verdict"] for one in told["runs"]] == ["SUPPORTED", "REFUTED"]
    assert told["runs"][0]["changes"] == []
    assert told["runs"][1]["changes"][0] == {
        "part": "parameter",
        "name": "size",
        "values": ["100", "80"],
    }


def test_a_claim_that_no_run_makes_is_told_with_those_that_are(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    run(tuilab, tmp_path, 100)

    done = tuilab("runs", "--claim", "twice")

    assert (done.returncode, done.stderr) == (
        2,
        "tuilab: 0 of 1 run have a claim twice; their claims are half\n",
    )


def test_words_of_several_claims_name_these_claims(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    body = 'lab.claim("first", True)\nlab.claim("second", True)'
    path = write_scenario(
        tmp_path, body, claims={"first": "it is so", "second": "it is so as well"}
    )
    tuilab("run", str(path), "--headless", "--quiet")

    done = tuilab("runs", "--claim", "it is")

    message = "tuilab: several claims of probe contain it is; name one: first, second\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_without_runs_there_is_nothing_to_follow(tuilab: Tuilab, root: Path) -> None:
    done = tuilab("runs", "--claim", "half")

    assert (
        done.returncode == 2
        and "0 of 0 runs have a claim half; list the runs: tuilab runs" in done.stderr
    )
