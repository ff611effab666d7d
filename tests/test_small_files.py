"""The small files that we keep ourselves: whatever stands in their place, nothing is said that is wrong, and nothing breaks."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.file_damage import KINDS_OF_DAMAGE, damage, obeying_permissions
from tests.made_runs import finished
from tuilab import config
from tuilab.catalogue import catalog
from tuilab.catalogue.scenario import Scenario
from tuilab.errors import UsageError
from tuilab.judging import calibration_file
from tuilab.judging.calibration_file import Calibration, Trials
from tuilab.runs import notes
from tuilab.runs.entry import RunEntry
from tuilab.runs.index import FILE, Index
from tuilab.runs.notes import Notes
from tuilab.runs.representative import verdict_of
from tuilab.storage import filetree
from tuilab.storage.files import sealed, unsealed
from tuilab.tui.state import settings
from tuilab.tui.state.settings import Settings

RUN = "20270115T080000000Z-softmax-abcdef"


@dataclass(frozen=True)
class Kept:
    """A small file: where it is in the folder of a test, what makes it, what asks for it, and what is told without it."""

    path: str
    make: Callable[[], object]
    ask: Callable[[], object]
    without: object


def make_catalogue() -> None:
    Path("mine").mkdir()
    Path("mine/good.py").write_text(
        '"""One sum."""\n\n\ndef run(lab: "Lab", rows: int = 5) -> None:\n    lab.claim("a", True)\n'
    )
    ask_catalogue()


def ask_catalogue() -> list[str]:
    return [one.title for one in catalog.load(["mine"])]


def make_index() -> None:
    index = Index("runs")
    index.read(finished(Path("runs"), {"a": "REFUTED"}).name)
    index.save()


def ask_index() -> tuple[str, bool]:
    """Ask for what the index says of a run, as a process that knows nothing yet."""
    index = Index("runs")
    verdict = verdict_of(index.entry(RUN))
    index.save()
    return verdict, index.bytes_of([RUN]) == (filetree.size(f"runs/{RUN}"), True)


def make_notes() -> None:
    Path("runs", RUN).mkdir(parents=True)
    notes.add(Path("runs", RUN), "kept", ["good"])


def make_config() -> None:
    Path("config/tuilab").mkdir(parents=True)
    Path("config/tuilab/config.toml").write_text("fps = 1\n")


def ask_config() -> str:
    """Return what is wrong: a setting that its user wrote is not passed over in silence."""
    try:
        return str(config.read())
    except UsageError as problem:
        assert str(problem).startswith(
            ("cannot read ", f"{os.environ['XDG_CONFIG_HOME']}/tuilab/config.toml")
        )
        return "it says which file cannot be used"


def kept() -> dict[str, Kept]:
    """Return every small file that we read, but for those of the journal."""
    over = "over 6 processes"
    return {
        "catalogue": Kept(
            f"cache/tuilab/{os.path.basename(catalog.cache_path())}",
            make_catalogue,
            ask_catalogue,
            ["One sum"],
        ),
        "index": Kept(f"runs/{FILE}", make_index, ask_index, ("REFUTED", True)),
        "notes": Kept(
            f"runs/{RUN}/notes.jsonl", make_notes, lambda: notes.read(Path("runs", RUN)), Notes()
        ),
        "calibration": Kept(
            "calibration.json",
            lambda: calibration_file.save({over: Trials(1, 0, 1, 1)}),
            calibration_file.load,
            Calibration(),
        ),
        "settings": Kept(
            "state/tuilab/screens.json",
            lambda: settings.save(Settings(theme="nord")),
            settings.load,
            Settings(),
        ),
        "config": Kept(
            "config/tuilab/config.toml",
            make_config,
            ask_config,
            "it says which file cannot be used",
        ),
    }


KEPT = kept()


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is kept in the folder of the test, and the catalogue is one scenario, not sixty that take half a second."""
    monkeypatch.setattr(catalog, "scenario_dirs", lambda extra: list(map(os.path.realpath, extra)))
    for variable, folder in (
        ("TUILAB_ROOT", "runs"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_CONFIG_HOME", "config"),
    ):
        monkeypatch.setenv(variable, str(tmp_path / folder))


@pytest.mark.parametrize("kind", KINDS_OF_DAMAGE)
@pytest.mark.parametrize("name", KEPT)
@pytest.mark.first(24)  # of what tests/test_own_files.py does by other ways
def test_whatever_stands_in_the_place_of_a_small_file_is_passed_over_or_told(
    tmp_path: Path, name: str, kind: str
) -> None:
    file = KEPT[name]
    file.make()
    damage(tmp_path / file.path, kind)

    with obeying_permissions():
        told = file.ask()
    assert told == ("{}" if (name, kind) == ("config", "empty") else file.without)


@pytest.mark.parametrize("name", KEPT)
def test_a_small_file_is_what_it_was_made(tmp_path: Path, name: str) -> None:
    file = KEPT[name]
    file.make()

    assert (tmp_path / file.path).is_file()
    assert name in ("catalogue", "index") or file.ask() != file.without


MADE_AGAIN = [name for name in KEPT if name not in ("notes", "config")]  # which are people's


@pytest.mark.parametrize("kind", [kind for kind in KINDS_OF_DAMAGE if kind != "folder"])
@pytest.mark.parametrize("name", MADE_AGAIN)
def test_what_is_of_no_use_is_replaced_when_it_is_kept_again(
    tmp_path: Path, name: str, kind: str
) -> None:
    file = KEPT[name]
    file.make()
    good = file.ask()
    damage(tmp_path / file.path, kind)

    with obeying_permissions():
        file.ask() if name in ("catalogue", "index") else file.make()
    assert (tmp_path / file.path).is_file() and (
        tmp_path / file.path
    ).stat().st_mode & 0o777 == 0o600
    assert 2 < (tmp_path / file.path).stat().st_size < 100_000
    assert without_time(file.ask()) == without_time(good)


def without_time(told: object) -> object:
    return told.trials_of_method if isinstance(told, Calibration) else told


ENTRY = RunEntry(RUN, "softmax", state="succeeded", claims=[("a", "REFUTED")])


def index_of(row: bytes) -> bytes:
    """Return an index with one row, and with the right checksum."""
    return sealed(RUN.encode() + b"\t5\t" + row)


NO_ROWS = [
    b"3",
    b"null",
    b"[]",
    b'["x"]',
    b'{"run": 3}',
    b"[" * 60_000,
    b"[" + b"[]," * 15 + b"[]]",
]
ODD: list[dict[str, Any]] = [
    {"run": 3}, {"run": "20270115T080000000Z-softmax-abcdee"}, {"state": ""}, {"state": "lost"}, {"claims": 3},
    {"claims": [["a"]]}, {"claims": [["a", 3]]}, {"claim_keys": [3]}, {"changed": []}, {"changed": 3}, {"reason": {}},
    {"elapsed_s": "x"}, {"waited_s": []},
]  # fmt: skip
OF_ANOTHER_KIND = {
    "settings": [
        b'{"theme": 3, "scenario": null, "is_zoomed": "yes", "is_smooth": 1, "pane": ["a"]}',
        b'{"__class__": "x", "theme": true}',
    ],
    "calibration": [
        b'{"HOST": 3}',
        b'{"HOST": {"over 6 processes": {"trials": "many", "false": 0, "delays": 0, "seen": 0}}}',
        b'{"HOST": {"over 6 processes": {"trials": 5}}}',
        b'{"HOST": {"over 6 processes": []}}',
        b'{"HOST": {"wall_s": 1e300}}',
    ],
    "notes": [b'{"text": 3, "tags": "good", "wall_s": "never"}\n{"text": null, "tags": [3, null], "untags": {"a": 1}}\n'],
    "index": [
        *map(index_of, NO_ROWS),
        *(index_of(msgspec.json.encode(ENTRY._replace(**other))) for other in ODD),
        sealed(b"3"), sealed(b"\xff\t5\t[]"), sealed(RUN.encode() + b"\tfive\t[]"), sealed(RUN.encode() + b"\t-5\t[]"),
        sealed(index_of(b"[]")),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content"),
    [(name, content) for name, contents in OF_ANOTHER_KIND.items() for content in contents],
)
def test_values_of_another_kind_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "HOST")
    file = KEPT[name]
    file.make()
    (tmp_path / file.path).write_bytes(content)

    assert file.ask() == file.without


@pytest.mark.parametrize(
    "files",
    [
        "3",
        "[]",
        "null",
        '{"x": 3}',
        '{"x": []}',
        '{"x": ["", 3]}',
        '{"x": ["", [3]]}',
        '["x"]',
        "[[]]",
        '[["a"]]',
    ],
)
def test_a_cache_with_the_right_checksum_that_holds_no_scenarios_is_made_again(
    tmp_path: Path, files: str
) -> None:
    make_catalogue()
    path = tmp_path / KEPT["catalogue"].path
    reader = json.dumps(json.loads(unsealed(path.read_bytes()))["reader"])

    for document in (f'{{"reader": {reader}, "files": {files}}}', f'{{"reader": {reader}}}', files):
        path.write_bytes(sealed(document.encode()))
        assert ask_catalogue() == ["One sum"]


@pytest.mark.parametrize("field", Scenario._fields)
@pytest.mark.parametrize("value", [3, None, "x", [3], {"a": 3}, [["x"]], [[3, 4]]], ids=str)
def test_a_cached_scenario_with_a_field_of_another_kind_is_read_from_its_file(
    tmp_path: Path, field: str, value: object
) -> None:
    make_catalogue()
    path = tmp_path / KEPT["catalogue"].path
    document = json.loads(unsealed(path.read_bytes()))
    ((_, fields),) = document["files"].values()
    at = Scenario._fields.index(field)
    is_same_kind = type(fields[at]) is type(value)
    fields[at] = value
    path.write_bytes(sealed(json.dumps(document).encode()))

    assert ask_catalogue() == ["One sum"] or is_same_kind
