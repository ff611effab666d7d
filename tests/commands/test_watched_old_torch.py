"""A torch older than 2.5 does not load the watcher: the command runs unwatched, and the reason is given."""

import os
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
SCRIPT = """
import sys
import torch
print("training", flush=True)
sys.stdin.readline()
sys.exit(7)
"""


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Make a folder of packages with a torch 2.4 in it."""
    torch = tmp_path / "packages" / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "__init__.py").write_text(TORCH)
    (torch / "version.py").write_text("__version__ = '2.4.1+cu121'\n")
    (torch / "lib" / "libtorch_cpu.so").write_bytes(b"\0" * 4096)
    return torch.parent


def test_command_with_an_old_torch_runs_unwatched_with_its_own_exit_code(
    tmp_path: Path, packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(packages))
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

    assert command.communicate(timeout=100) == (b"training\n", b"")
    assert command.returncode == 7
    why = why_unseen(MarksFolder(tmp_path / "marks"), process_tree, [])
    assert why == "torch 2.4.1+cu121 was loaded, but the watcher needs torch 2.5 or newer"
