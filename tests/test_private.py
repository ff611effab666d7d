"""What is handed on, a report or an archive, has no secret of the run in it, and says so."""

import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.engine import newest, write_scenario
from tests.test_scrub import TOKENS
from tests.test_tampering import read, write
from tuilab.judging.integrity import examine
from tuilab.record.events import ImageShown, Logged, MemoryMeasured, TextShown
from tuilab.record.journal.lines import Item
from tuilab.record.origin.taken_out import taken_out
from tuilab.runs.archive.unpack import unpack
from tuilab.runs.redaction import Redactor

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]

TOLD, PRINTED, RAISED, NOTED, WRITTEN, LOGGED = (
    TOKENS[kind] for kind in ("GitHub", "Hugging Face", "OpenAI", "npm", "Stripe", "AWS")
)
LEAKS = f"""
print("logged in with {PRINTED}")
lab.log(0, loss=1.0)
lab.log(0, **{{"{LOGGED}": 2.0}})
lab.text("token={TOLD}", title="token")
# {WRITTEN}
raise RuntimeError("no entry for {RAISED} in " + os.path.expanduser("~/data"))
"""


@pytest.fixture
def run_dir(tuilab: Tuilab, root: Path, tmp_path: Path) -> Path:
    """A run that says secrets wherever it can."""
    tuilab("run", str(write_scenario(tmp_path, LEAKS)), "--headless", "--quick")
    tuilab("note", "last", f"see {NOTED}")
    found = newest(root)
    assert found
    return found


@pytest.fixture
def old_run_dir(run_dir: Path) -> Path:
    """The same run as an older tuilab recorded it, with secrets in its record."""
    add_secrets(run_dir)
    return run_dir


def add_secrets(run_dir: Path) -> None:
    streams = read(run_dir)
    streams["worker-0"] = [
        json.loads(
            json.dumps(record)
            .replace('{"(removed)": 2.0}', json.dumps({LOGGED: 2.0}))
            .replace("no entry for (removed)", f"no entry for {RAISED}")
            .replace("token=(removed)", f"token={TOLD}")
        )
        for record in streams["worker-0"]
    ]
    write(run_dir, streams)


def secrets_in(text: str) -> set[str]:
    return {secret for secret in (TOLD, PRINTED, RAISED, NOTED, WRITTEN, LOGGED) if secret in text}


@pytest.mark.parametrize("ending", ["html", "md", "json", "csv", "xml"])
def test_no_report_has_a_secret_unless_it_is_asked_for(
    tuilab: Tuilab, old_run_dir: Path, tmp_path: Path, ending: str
) -> None:
    for name, words in {"clean": [], "whole": ["--keep-private"]}.items():
        done = tuilab("report", "last", "-o", f"{tmp_path}/{name}.{ending}", *words)
        assert done.returncode == 0, done.stderr
    clean, whole = ((tmp_path / f"{name}.{ending}").read_text() for name in ("clean", "whole"))

    assert secrets_in(clean) == set()
    assert ending == "csv" or RAISED in whole
    assert ending == "xml" or LOGGED in whole
    assert ending in ("csv", "xml") or (
        "words taken out, for they look like secrets: " in clean and "--keep-private" in clean
    )
    assert "taken out" not in whole


def test_a_report_that_is_made_with_the_run_has_none_either(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    tuilab(
        "run",
        str(write_scenario(tmp_path, LEAKS)),
        "--headless",
        "--quick",
        "--report",
        f"{tmp_path}/x.html",
    )

    assert secrets_in((tmp_path / "x.html").read_text()) == set()


def test_a_comparison_that_is_written_has_none(
    tuilab: Tuilab, old_run_dir: Path, tmp_path: Path
) -> None:
    assert (
        tuilab("compare", str(old_run_dir), str(old_run_dir), "-o", f"{tmp_path}/x.html").returncode
        == 0
    )

    assert secrets_in((tmp_path / "x.html").read_text()) == set()


def test_no_archive_has_a_secret_and_the_run_that_comes_out_says_so(
    tuilab: Tuilab, old_run_dir: Path, tmp_path: Path
) -> None:
    packed = tuilab("export", "last", "-o", f"{tmp_path}/run.tgz")
    with tarfile.open(tmp_path / "run.tgz") as made:
        texts = [file.read().decode() for one in made if (file := made.extractfile(one))]
    came = unpack(tmp_path / "run.tgz", tmp_path / "other").run_dir

    assert set().union(*map(secrets_in, texts)) == set()
    assert (
        "taken out, for they look like secrets: " in packed.stderr and "in output" in packed.stderr
    )
    assert examine(came).wrong == []
    out = taken_out(came)
    assert out is not None and out.places.keys() == {
        "names of values",
        "texts",
        "failure",
        "output",
        "notes",
        "source",
    }
    assert len(out.digest) == 16
    report = tuilab(
        "report", "last", "-o", "-", "--as", "md", "--root", str(tmp_path / "other")
    ).stdout
    assert "Before this run was packed: " in report and out.digest in report


def test_what_is_kept_comes_out_as_it_was(
    tuilab: Tuilab, old_run_dir: Path, tmp_path: Path
) -> None:
    tuilab("export", "last", "-o", f"{tmp_path}/run.tgz", "--keep-private")

    came = unpack(tmp_path / "run.tgz", tmp_path / "other").run_dir

    assert secrets_in((came / "stdout.log").read_text()) == {PRINTED}
    assert examine(came).wrong == [] and taken_out(came) is None


def test_an_archive_of_an_archive_tells_of_both(
    tuilab: Tuilab, old_run_dir: Path, tmp_path: Path
) -> None:
    tuilab("export", "last", "-o", f"{tmp_path}/one.tgz")
    came = unpack(tmp_path / "one.tgz", tmp_path / "two").run_dir
    first = taken_out(came)
    two = "--root", str(tmp_path / "two")
    tuilab("note", "last", f"and {TOKENS['npm']}", *two)
    tuilab("export", "last", "-o", f"{tmp_path}/two.tgz", *two)

    again = taken_out(unpack(tmp_path / "two.tgz", tmp_path / "three").run_dir)

    assert first and again and again.digest == first.digest
    assert again.places == {**first.places, "notes": 2}


ORDINARY: list[Item] = [
    Logged(s=1, v={"loss": 0.5, "api_key": 3.0}, a="lr=1e-3"),
    MemoryMeasured(name="tokens", values={"token": 4.0, "password": 5.0}),
    ImageShown(
        title="x",
        rows=8,
        cols=8,
        cells="aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC2dF4hJ6kL8nP0rS2uV4xY6zA8cE==",
        low=0,
        high=1,
    ),
    TextShown(text="an ordinary sentence about a tokenizer", title="t"),
]


@pytest.mark.parametrize("record", ORDINARY, ids=lambda record: type(record).__name__)
def test_what_holds_no_secret_stays_itself(record: Item) -> None:
    private = Redactor()

    assert private.item(record) is record
    assert private.places == {}


def test_equal_words_stay_equal_and_numbers_stay() -> None:
    private = Redactor()
    token = TOKENS["GitHub"]

    first, second = (
        private.item(Logged(s=step, v={token: 1.5, "loss": 2.0}, a=token)) for step in (1, 2)
    )

    assert isinstance(first, Logged) and isinstance(second, Logged)
    assert (
        (first.a, first.v) == (second.a, second.v) == ("(removed)", {"(removed)": 1.5, "loss": 2.0})
    )


def test_an_archive_of_another_run_is_refused_before_it_is_unpacked(
    run_dir: Path, tuilab: Tuilab, tmp_path: Path
) -> None:
    """A bomb behind it would fill the disk first."""
    tuilab("export", "last", "-o", f"{tmp_path}/run.tgz")
    other = "20270115T080000000Z-probe-abc123"
    with (
        tarfile.open(tmp_path / "run.tgz") as made,
        tarfile.open(tmp_path / "bad.tgz", "w:gz") as bad,
    ):
        for one in sorted(made, key=lambda one: "supervisor.jsonl" not in one.name):
            data = made.extractfile(one)
            one.name = one.name.replace(run_dir.name, other)
            bad.addfile(one, data)
            if "supervisor.jsonl" in one.name:
                break
        huge = tarfile.TarInfo(f"{other}/artifacts/huge")
        huge.size = 1 << 40  # which is not there: reading on would end in another sentence
        bad.fileobj.write(huge.tobuf())

    done = tuilab("import", f"{tmp_path}/bad.tgz")

    assert (
        f"the archive calls the run {other}, its record {run_dir.name}: not unpacked" in done.stderr
    )
    assert json.dumps([*(run_dir.parent).glob(".import-*")]) == "[]"


PASSWORD = "tulip-43"
TELLS_ITS_PASSWORD = """"A probe."
import sys
from tuilab import Lab

def run(lab: Lab, password: str = "none") -> None:
    print("as " + password, flush=True)
    print(password, end="", file=sys.stderr)
    lab.log(0, **{"of " + password: 1.0})
    lab.text(f"the word is {password}", title=password)
    raise RuntimeError("401 for " + password)
"""
NAMES_A_PASSWORD = f""""A probe."
import os
from tuilab import Lab

def run(
    lab: Lab,
    size: int = 3,  # how large
    hf_token: str = "hf_abcdefghijklmnopqrst",
) -> None:
    print("MY_DB_PASSWORD=", os.environ.get("MY_DB_PASSWORD"))
    lab.log(0, loss=1.0)  # {WRITTEN}
"""


def test_the_value_of_a_secret_parameter_is_written_nowhere(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    (tmp_path / "probe.py").write_text(TELLS_ITS_PASSWORD)
    done = tuilab(
        "run", str(tmp_path / "probe.py"), "--password", PASSWORD, "--headless", "--quick"
    )

    found = newest(root)
    assert found
    written = {one.name: one.read_bytes() for one in found.rglob("*") if one.is_file()}
    assert [name for name, data in written.items() if PASSWORD.encode() in data] == []
    assert PASSWORD not in done.stdout + done.stderr and "401 for (removed)" in done.stdout
    assert written["stdout.log"] == b"as (removed)\n" and written["stderr.log"].startswith(
        b"(removed)"
    )
    assert tuilab("verify", "last").returncode == 0


def test_a_source_is_understood_as_it_is_however_much_is_taken_out(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    (tmp_path / "probe.py").write_text(NAMES_A_PASSWORD)
    tuilab("run", str(tmp_path / "probe.py"), "--headless", "--quick")

    page = tuilab("report", "last", "-o", "-").stdout
    assert (
        "how large" in page
        and "unmatched" not in page
        and "hf_abc" not in page
        and WRITTEN not in page
    )
