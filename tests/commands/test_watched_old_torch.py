"""If torch does not load the watcher, the command runs unwatched, and the result gives the reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engine import until
from tuilab.commands.marks import MarksFolder
from tuilab.commands.process_tree import ProcessTree
from tuilab.commands.start_command import start
from tuilab.commands.why_no_steps import why_unseen

# Maps a library of its own, as torch does: tuilab reads the version from the files next to the mapped library.
TORCH = """
import mmap, pathlib
library = open(pathlib.Path(__file__).parent / "lib" / "libtorch_cpu.so", "rb")
mapped = mmap.mmap(library.fileno(), 0, prot=mmap.PROT_READ)
"""
INTERRUPTED_TORCH = """
import sys
sys.stdin.readline()
raise KeyboardInterrupt
"""
SCRIPT = """
import sys
import torch
print("training", flush=True)
sys.stdin.readline()
sys.exit(7)
"""


def make_torch(folder: Path, version: str, source: str) -> None:
    """Make a package torch of a version in a folder, with this source."""
    torch = folder / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "__init__.py").write_text(source)
    (torch / "version.py").write_text(f"__version__ = '{version}'\n")
    (torch / "lib" / "libtorch_cpu.so").write_bytes(b"\0" * 4096)


def run_until_torch_is_seen(tmp_path: Path) -> "tuple[subprocess.Popen[bytes], ProcessTree]":
    """Run the script until the library of torch is seen, and then let the script end."""
    (tmp_path / "marks").mkdir()
    (tmp_path / "train.py").write_text(SCRIPT)
    reading, writing = os.pipe()
    command = start(
        [sys.executable, "train.py"], tmp_path / "marks", "all", folder=str(tmp_path), stdin=reading
    )
    process_tree = ProcessTree(command.pid)

    def is_seen() -> bool:
        process_tree.look()
        return any("torch" in program.holds for program in process_tree.programs.values())

    until(is_seen)
    os.close(reading)
    os.close(writing)  # the script ends
    return command, process_tree


def test_command_with_an_old_torch_runs_unwatched_with_its_own_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_torch(tmp_path / "packages", "2.4.1+cu121", TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))

    command, process_tree = run_until_torch_is_seen(tmp_path)

    assert command.communicate(timeout=100) == (b"training\n", b"")
    assert command.returncode == 7
    why = why_unseen(MarksFolder(tmp_path / "marks"), process_tree, [])
    assert why == "torch 2.4.1+cu121 was loaded, but the watcher needs torch 2.5 or newer"


def test_command_interrupted_during_import_of_torch_names_that_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_torch(tmp_path / "packages", "2.13.0", TORCH + INTERRUPTED_TORCH)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "packages"))

    command, process_tree = run_until_torch_is_seen(tmp_path)

    command.communicate(timeout=100)
    why = why_unseen(MarksFolder(tmp_path / "marks"), process_tree, [])
    assert why == (
        "the process loaded libraries of torch 2.13.0, but not the watcher: the process may have "
        "ended during `import torch`, set TORCH_DEVICE_BACKEND_AUTOLOAD=0, or changed sys.path"
    )
