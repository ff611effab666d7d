"""What lies below a run's folder, however deep: counted, and removed, by every verb and screen that does so."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.test_archive import make_run
from tuilab.errors import UsageError
from tuilab.runs import store
from tuilab.storage import filetree

Tuilab = Callable[..., "CompletedProcess[str]"]
RUN = "20270115T080000000Z-tour-abc123"


def dig(folder: Path, depth: int, name: str) -> None:
    """Make folders one in another, each with a file of 10 bytes; no path is used, so none is too long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        there = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = there
        with open(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=here), "wb") as file:
            file.write(bytes(10))
    os.close(here)


@pytest.fixture
def run_dir(root: Path) -> Path:
    made = make_run(root, RUN)
    (made / "artifacts").mkdir()
    return made


@pytest.fixture(
    params=[(1500, "d"), (1500, "a folder with a long name"), (40, "x" * 255)],
    ids=["deep", "long path", "long names"],
)
def deep(run_dir: Path, request: pytest.FixtureRequest) -> tuple[Path, int]:
    """A run with folders in folders, and the bytes of their files."""
    depth, name = request.param
    before = sum(path.stat().st_size for path in run_dir.rglob("*") if path.is_file())
    dig(run_dir / "artifacts", depth, name)
    return run_dir, before + 10 * depth


@pytest.mark.first(1)
def test_a_run_of_any_depth_is_shown_counted_packed_and_deleted(
    tuilab: Tuilab, root: Path, tmp_path: Path, deep: tuple[Path, int]
) -> None:
    shown = tuilab("runs", "--json")
    others = [
        tuilab("list"),
        tuilab("attach", "last", "--headless"),
        tuilab("export", "last", "-o", str(tmp_path / "x.tgz")),
    ]
    deleted = tuilab("rm", "abc123")

    (run,) = json.loads(shown.stdout)["runs"]
    assert run["bytes"] == deep[1]
    assert ["Traceback" in done.stderr for done in others] == [False] * 3
    assert (deleted.returncode, deleted.stdout) == (0, f"deleted {RUN}\n")
    assert store.list_runs(root) == [] and not os.path.lexists(deep[0])


@pytest.mark.first(1)
def test_few_descriptors_are_enough_for_any_depth(root: Path, deep: tuple[Path, int]) -> None:
    script = (
        "import resource, sys; from pathlib import Path; from tuilab.storage import filetree\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8))\n"
        "print(filetree.size(Path(sys.argv[1]))); filetree.remove(Path(sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(deep[0])], capture_output=True, text=True
    )

    assert (done.stdout, done.stderr) == (f"{deep[1]}\n", "")
    assert os.listdir(root) == []


def test_what_is_behind_a_link_is_neither_counted_nor_removed(
    run_dir: Path, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mine").write_bytes(bytes(10**6))
    before = filetree.size(run_dir)
    links = [run_dir / "artifacts" / "folder", run_dir / "artifacts" / "file", run_dir / "dangling"]
    for link, target in zip(links, ("elsewhere", "elsewhere/mine", "nowhere"), strict=True):
        link.symlink_to(tmp_path / target)

    assert before is not None
    assert filetree.size(run_dir) == before + sum(link.lstat().st_size for link in links)
    store.remove(run_dir)
    assert (tmp_path / "elsewhere" / "mine").stat().st_size == 10**6


def test_a_run_that_is_gone_already_is_told_by_its_name(run_dir: Path) -> None:
    store.remove(run_dir)
    with pytest.raises(UsageError, match=f"^{store.short_id(run_dir.name)} is already deleted$"):
        store.remove(run_dir)


def test_a_link_in_the_place_of_a_run_is_not_followed(run_dir: Path, tmp_path: Path) -> None:
    run_dir.rename(tmp_path / "kept")
    run_dir.symlink_to(tmp_path / "kept")

    with pytest.raises(OSError):
        filetree.remove(run_dir)
    assert filetree.size(run_dir) is None
    assert (tmp_path / "kept" / "journal").is_dir()


def test_a_folder_with_more_than_is_counted_has_no_size(run_dir: Path) -> None:
    assert sum(1 for _ in filetree.walk(run_dir, most=12)) == 12

    with pytest.raises(OSError, match="too much"):
        list(filetree.walk(run_dir, most=11))


def test_a_folder_moved_away_meanwhile_ends_the_walk(run_dir: Path, tmp_path: Path) -> None:
    (run_dir / "artifacts" / "sub" / "folder").mkdir(parents=True)
    (run_dir / "artifacts" / "sub" / "folder" / "file").touch()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").touch()
    seen = []

    with pytest.raises(OSError, match="moved"):
        for entry in filetree.walk(run_dir):
            seen.append(entry.name)
            if entry.name == "file":
                (run_dir / "artifacts" / "sub").rename(tmp_path / "outside" / "sub")
    assert "precious" not in seen


def test_a_walk_stays_where_it_is_when_a_folder_without_others_is_moved_away(
    run_dir: Path, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        (run_dir / "artifacts" / name).mkdir()
        (run_dir / "artifacts" / name / f"file of {name}").touch()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "precious").touch()
    seen = []

    for entry in filetree.walk(run_dir / "artifacts"):
        seen.append(entry.name)
        if len(seen) == 1:
            first = entry.name.removeprefix("file of ")
            (run_dir / "artifacts" / first).rename(tmp_path / "outside" / first)

    assert sorted(seen) == ["file of one", "file of two", "one", "two"]


AS_NOBODY = """
import os, sys
from tuilab.runs import read_entry, store
from tuilab.errors import TuilabError
from pathlib import Path
mode, root = int(sys.argv[1]), Path(".")
closed = root / sys.argv[2] / "artifacts" / "closed"
if os.getuid() == 0:
    for folder, _, files in os.walk(root):
        for path in (folder, *(os.path.join(folder, file) for file in files)):
            os.chown(path, 65534, 65534)
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
closed.chmod(mode)
try:
    store.remove(root / sys.argv[2])
except TuilabError as problem:
    print(problem.exit_code, problem)
print([run.name for run in store.list_runs(root)], read_entry.read_entry(root / sys.argv[2]).bytes_total)
closed.chmod(0o700)
store.remove(root / sys.argv[2])
print(store.list_runs(root))
"""


@pytest.mark.parametrize(
    ("mode", "place"), [(0o000, "closed"), (0o300, "closed"), (0o400, "file"), (0o500, "file")]
)
def test_a_folder_whose_rights_were_taken_away_is_one_sentence_and_the_run_can_be_deleted_later(
    root: Path, run_dir: Path, mode: int, place: str
) -> None:
    (run_dir / "artifacts" / "closed").mkdir()
    (run_dir / "artifacts" / "closed" / "file").write_bytes(bytes(10))
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(mode), RUN],
        cwd=root,
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
    )

    said, still_there, gone = done.stdout.splitlines()
    assert (
        said
        == f"5 cannot delete {RUN}: Permission denied at {place}; give yourself the right to it: chmod -R u+rwX {RUN}"
    )
    assert still_there.startswith(f"['{RUN}'] ") and (still_there.endswith(" None")) == (
        mode != 0o500
    )
    assert (gone, done.stderr) == ("[]", "")
