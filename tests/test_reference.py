"""The reference pages say what the code does."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CHECKOUT
from tests.documents import prose
from tuilab.cli.front_page import VERBS
from tuilab.config import SETTINGS
from tuilab.errors import MEANINGS
from tuilab.tui.keys import KEYS

REFERENCE = CHECKOUT / "docs" / "reference"
SCRIPT: dict[str, Any] = runpy.run_path(str(CHECKOUT / "docs" / "reference.py"))
ENVIRONMENT = (REFERENCE / "environment.md").read_text()
FILES = (REFERENCE / "files.md").read_text()


def code_of_tuilab() -> str:
    return "\n".join(path.read_text() for path in sorted((CHECKOUT / "tuilab").rglob("*.py")))


@pytest.mark.parametrize("name", SCRIPT["PAGES"])
def test_generated_page_is_up_to_date(name: str) -> None:
    written = (REFERENCE / name).read_text()

    assert written == SCRIPT["PAGES"][name](), (
        f"docs/reference/{name} is out of date; renew it: python docs/reference.py"
    )


def test_subcommands_have_a_section_with_their_options() -> None:
    page = (REFERENCE / "commands.md").read_text()

    headings = re.findall(r"(?m)^### tuilab (\w+)$", page)
    assert headings == [*VERBS]
    run = page.partition("### tuilab run\n")[2].partition("\n### ")[0]
    assert (
        "| `--repeat N` | Run in N fresh processes. Values: 1 to 1000. | 6 for claims about time, 1 otherwise"
        in run
    )
    assert "| `--headless` | Do not open the screens; print the result. |  |" in run
    assert page.count("\n#### tuilab queue ") == 5


def test_every_place_of_the_screens_has_its_keys_on_the_page() -> None:
    places = [place for places in SCRIPT["PLACES"].values() for place in places]

    assert sorted(places) == sorted(place for place, keys in KEYS.items() if keys)


def test_exit_codes_of_the_page_are_those_of_the_code() -> None:
    page = (REFERENCE / "exit-codes.md").read_text().replace("`", "")

    assert {
        int(code): when for code, when in re.findall(r"(?m)^\| ([0-9]+) \| (.+) \|$", page)
    } == MEANINGS


def test_variables_of_the_page_are_those_that_the_code_reads_or_sets() -> None:
    in_code = set(re.findall(r"\b_?TUILAB_[A-Z_]+\b", code_of_tuilab()))
    on_page = set(re.findall(r"(?m)^\| `(_?TUILAB_[A-Z_]+)` \|", ENVIRONMENT))

    assert on_page == in_code
    assert {setting.variable for setting in SETTINGS.values()} < on_page


def test_variables_of_other_programs_on_the_page_are_in_the_code() -> None:
    code = code_of_tuilab()
    table = ENVIRONMENT.partition("## Variables of other programs")[2]

    named = re.findall(r"`([A-Z_]{4,})`", "".join(re.findall(r"(?m)^\| ([^|]+) \|", table)))
    assert len(named) > 10
    assert [name for name in named if name not in code] == []


def test_files_of_a_recorded_run_are_on_the_page(root: Path, tuilab: Any) -> None:
    tuilab("exec", "--quiet", "--", "true")
    tuilab("note", "last", "seen")
    (run_dir,) = [path for path in root.iterdir() if not path.name.startswith(".")]

    names = {path.relative_to(run_dir).as_posix() for path in run_dir.rglob("*")}
    assert {"journal/supervisor.jsonl", "scenario.py", "notes.jsonl"} <= names
    assert [name for name in names if f"`{name}`" not in FILES and f"`{name}/`" not in FILES] == []
    beside = {re.sub("[0-9]+", "N", path.name) for path in root.iterdir() if path != run_dir}
    assert [name for name in beside if f"`{name}`" not in FILES] == []


def test_folders_on_the_page_are_those_that_the_code_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    from tuilab.storage import places

    for variable in ("TUILAB_ROOT", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", "/home/me")

    folders = [
        places.runs_folder(),
        places.score_file(),
        places.settings_file(),
        places.config_file(),
        places.cache_folder(),
    ]
    table = prose(REFERENCE / "files.md")
    assert [
        folder for folder in folders if f"`{folder.replace('/home/me', '~')}`" not in table
    ] == []
