"""A torch older than 2.5, which lets nobody in itself: a stand-in of that age in an environment of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands.seen import Seen, seen
from tuilab.commands.started import start
from tuilab.commands.torch_version import has_no_door

TORCH = """
import sys, types
__version__ = "2.4.1"
_C = types.SimpleNamespace()
class Tensor: ...
class autocast:
    def __enter__(self): ...
def get_num_threads(): return 1
autograd = types.SimpleNamespace(backward=lambda tensors, *given: None)
hooks = []
class SGD:
    param_groups = []
    def step(self): [hook(self, (), {}) for hook in hooks]
optimizer = sys.modules["torch.optim.optimizer"] = types.ModuleType("torch.optim.optimizer")
optimizer.register_optimizer_step_pre_hook = optimizer.register_optimizer_step_post_hook = hooks.append
"""
SCRIPT = """
import os, subprocess, sys
import torch, sitecustomize
print(sitecustomize.__file__, sitecustomize.WORD, [name for name in ("is_first", "is_again") if name in sys.argv])
torch.autograd.backward([]); torch.SGD().step()
if "is_first" in sys.argv: subprocess.run([sys.executable, sys.argv[0], "is_again"], check=True)
"""


@pytest.fixture
def python(tmp_path: Path) -> Path:
    """Make an environment with a torch of 2.4."""
    packages = tmp_path / "env" / "lib" / f"python3.{sys.version_info[1]}" / "site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "__init__.py").write_text(TORCH)
    (packages / "torch-2.4.1+cu121.dist-info").mkdir()
    (tmp_path / "env" / "bin").mkdir()
    (tmp_path / "env" / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    (tmp_path / "env" / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    return tmp_path / "env" / "bin" / "python"


def run(tmp_path: Path, *words: str) -> Seen:
    (tmp_path / "marks").mkdir()
    child = start(words, tmp_path / "marks", "all")
    out, err = child.communicate(timeout=100)
    return seen(tmp_path / "marks", subprocess.CompletedProcess(words, child.returncode, out.decode(), err.decode()))


def test_an_old_torch_is_watched_and_the_users_sitecustomize_is_loaded_as_ever(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In what the script starts as well."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "sitecustomize.py").write_text("WORD = 'their own'")
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))

    found = run(tmp_path, str(python), str(tmp_path / "train.py"), "is_first")
    own = f"{tmp_path}/own/sitecustomize.py their own"
    assert (found.done.returncode, found.done.stderr) == (0, "")
    assert sorted(found.done.stdout.splitlines()) == [f"{own} ['is_again']", f"{own} ['is_first']"]
    assert found.kinds == "back step back step"
    assert [process.hello["torch"] for process in found.processes] == ["2.4.1", "2.4.1"]


def test_warning_of_an_old_torch_names_the_script_that_imports_it(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", "")
    (init,) = tmp_path.glob("env/lib/*/site-packages/torch/__init__.py")
    init.write_text(f"import warnings\nwarnings.warn('old', stacklevel=2)\n{TORCH}")
    (tmp_path / "train.py").write_text("import torch\ntorch.SGD().step()\n")

    found = run(tmp_path, str(python), str(tmp_path / "train.py"))
    assert found.done.stderr.startswith(f"{tmp_path}/train.py:1: UserWarning: old")
    assert found.kinds == "step"


def test_an_error_of_the_users_sitecustomize_is_told_by_python_as_ever(
    tmp_path: Path, python: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("raise ValueError('their own')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    found = run(tmp_path, str(python), "-c", "import torch; torch.SGD().step()")
    assert found.done.returncode == 0
    assert "ValueError: their own" in found.done.stderr
    assert found.kinds == "step"


def test_how_old_torch_is_is_told_by_the_files_of_the_commands_python(tmp_path: Path, python: Path) -> None:
    script, other = tmp_path / "torchrun", tmp_path / "train.sh"
    for path, first in ((script, f"#!{python} -s\n"), (other, "#!/bin/sh\n")):
        path.write_text(first)
        path.chmod(0o700)
    nowhere = {"PATH": "/nonexistent"}

    assert has_no_door([str(python), "train.py"], nowhere)
    assert has_no_door([str(script), "train.py"], nowhere)
    assert has_no_door(["/usr/bin/env", "A=1", str(python), "train.py"], nowhere)
    assert has_no_door([str(other)], {"PATH": f"{python.parent}:{os.environ['PATH']}"})
    assert not has_no_door([str(other)], nowhere)
    assert not has_no_door([sys.executable, "train.py"], nowhere)
