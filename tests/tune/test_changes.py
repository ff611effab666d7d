"""A change to a script is written as a diff that applies, or not at all."""

import ast
import os
import subprocess
from pathlib import Path

import pytest

from tests.tune.situations import (
    make_ddp,
    make_loader,
    make_optimizer,
    make_root,
    make_settings,
    make_situation,
    make_steps,
    of_name,
    on_gpu,
)
from tuilab.commands.tune.planning.candidate import Situation
from tuilab.commands.tune.planning.change import CallEdit, StatementEdit, ZeroGradEdit, make_diff
from tuilab.commands.tune.planning.plan import plan
from tuilab.commands.tune.planning.sources import ScriptSource, read_sources
from tuilab.commands.tune.script_facts import ScriptFacts, ScriptPlace

IMPORT = "from torch.utils.data import DataLoader\n"
SCRIPT = """\
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader

loader = DataLoader(data, batch_size=32, shuffle=True)  # the whole set
model = DDP(net, device_ids=[0])
optimizer = torch.optim.AdamW(
    model.parameters(),
    lr=1e-3,  # tuned
)
for batch in loader:
    optimizer.zero_grad(set_to_none=False)
    model(batch).sum().backward()
    optimizer.step()
"""


def set_workers(line: int = 2, **others: object) -> CallEdit:
    edit = {
        "place": ScriptPlace(file="train.py", line=line),
        "callee": "DataLoader",
        "keywords": {"num_workers": "2", "persistent_workers": "True"},
        "most_positional": 5,
    }
    return CallEdit(**{**edit, **others})  # type: ignore[arg-type]


def diff_of(text: str, *edits: object, name: str = "train.py") -> str:
    return make_diff(edits, {"train.py": ScriptSource(name=name, text=text)})  # type: ignore[arg-type]


def apply(folder: Path, diff: str, program: str = "patch") -> None:
    """Apply a diff to the files in a folder."""
    (folder / "change.diff").write_bytes(diff.encode())
    command = ["patch", "-p0", "--batch", "--fuzz=0", "-i", "change.diff"]
    if program == "git":
        command = ["git", "apply", "-p0", "--unidiff-zero", "change.diff"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def changed(folder: Path, text: str, *edits: object, name: str = "train.py") -> str:
    """Write a script, apply the diff of the edits, and return the new script, which must parse."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    diff = diff_of(text, *edits, name=name)
    assert diff
    apply(folder, diff)
    new_text = path.read_bytes().decode()
    ast.parse(new_text)
    return new_text


CALLS = {
    "a call in one line": (
        "x = DataLoader(data, 32)",
        "x = DataLoader(data, 32, num_workers=2, persistent_workers=True)",
    ),
    "a keyword that is set": (
        "x = DataLoader(data, num_workers=0, shuffle=True)",
        "x = DataLoader(data, num_workers=2, shuffle=True, persistent_workers=True)",
    ),
    "the last keyword is set": (
        "x = DataLoader(data, num_workers=args.workers)",
        "x = DataLoader(data, num_workers=2, persistent_workers=True)",
    ),
    "a comma at the end": (
        "x = DataLoader(data, 32, )",
        "x = DataLoader(data, 32, num_workers=2, persistent_workers=True, )",
    ),
    "no argument": (
        "x = DataLoader()",
        "x = DataLoader(num_workers=2, persistent_workers=True)",
    ),
    "a comment and a word of four bytes": (
        "x = f('\N{GRINNING FACE}'), DataLoader(data)  # \N{GRINNING FACE}",
        "x = f('\N{GRINNING FACE}'), DataLoader(data, num_workers=2, persistent_workers=True)"
        "  # \N{GRINNING FACE}",
    ),
    "several lines with comments": (
        "x = DataLoader(\n    data,  # all\n    shuffle=True,  # random\n)",
        "x = DataLoader(\n    data,  # all\n    shuffle=True, num_workers=2,"
        " persistent_workers=True,  # random\n)",
    ),
    "a call within a call": (
        "x = list(DataLoader(make(data)))",
        "x = list(DataLoader(make(data), num_workers=2, persistent_workers=True))",
    ),
    "a name with dots": (
        "x = torch.utils.data.DataLoader(data)",
        "x = torch.utils.data.DataLoader(data, num_workers=2, persistent_workers=True)",
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_call_gets_keywords_and_keeps_its_layout(case: str, tmp_path: Path) -> None:
    old, new = CALLS[case]

    assert changed(tmp_path, f"{IMPORT}{old}\n", set_workers()) == f"{IMPORT}{new}\n"


def test_imported_name_may_be_another_one(tmp_path: Path) -> None:
    text = "from torch.utils.data import DataLoader as DL\nx = DL(data)\n"

    new_text = changed(tmp_path, text, set_workers())

    assert "x = DL(data, num_workers=2, persistent_workers=True)\n" in new_text


UNSAFE = {
    "keywords in a dict": "x = DataLoader(data, **options)",
    "arguments in a list": "x = DataLoader(*arguments)",
    "too many positions": "x = DataLoader(data, 32, True, None, None, 4)",
    "another call": "x = make_loader(data)",
    "two calls in the line": "x = DataLoader(a), DataLoader(b)",
    "a generator that needs parentheses": "x = DataLoader(n for n in data)",
    "an argument in parentheses": "x = DataLoader((data))",
    "a class of the script": "class DataLoader: pass\nx = DataLoader(data)",
    "no call": "x = 1",
    "not Python": "x = DataLoader(data",
    "a zero byte": "x = DataLoader(data)\0",
    "a form feed": "\fx = DataLoader(data)",
    "an old line break": "x = DataLoader(data)\ry = 1",
    "a very long line": f"x = DataLoader(data)  # {'x' * 3000}",
    "deep nesting": f"x = DataLoader({'(' * 300}data{')' * 300})",
    "an empty file": "",
}


@pytest.mark.parametrize("case", UNSAFE)
def test_unsafe_change_has_no_diff(case: str) -> None:
    text = f"{IMPORT}{UNSAFE[case]}\n" if UNSAFE[case] else ""
    line = 3 if case == "a class of the script" else 2

    assert diff_of(text, set_workers(line)) == ""


def test_name_that_was_not_imported_has_no_diff() -> None:
    assert diff_of("\nx = DataLoader(data)\n", set_workers()) == ""


@pytest.mark.parametrize("line", [0, 1, 3, 2**62 - 1])
def test_script_that_changed_since_has_no_diff(line: int) -> None:
    assert diff_of(f"{IMPORT}x = DataLoader(data)\n", set_workers(line)) == ""


def test_keyword_that_contradicts_has_no_diff() -> None:
    edit = set_workers(excludes=("foreach",))

    assert diff_of(f"{IMPORT}x = DataLoader(data, foreach=True)\n", edit) == ""


def test_windows_line_breaks_stay(tmp_path: Path) -> None:
    text = f"{IMPORT}x = DataLoader(data)\ny = 1\n".replace("\n", "\r\n")
    (tmp_path / "train.py").write_bytes(text.encode())

    apply(tmp_path, diff_of(text, set_workers()), program="git")

    new_text = (tmp_path / "train.py").read_bytes().decode()
    assert new_text == text.replace("data)", "data, num_workers=2, persistent_workers=True)")


@pytest.mark.parametrize("program", ["patch", "git"])
def test_file_without_a_last_line_break_keeps_it_so(program: str, tmp_path: Path) -> None:
    text = f"{IMPORT}x = DataLoader(data)"
    (tmp_path / "train.py").write_text(text)

    apply(tmp_path, diff_of(text, set_workers()), program)

    new_text = (tmp_path / "train.py").read_text()
    assert new_text.endswith("persistent_workers=True)")


@pytest.mark.parametrize("name", ["train.py", "src/train.py", "my scripts/train it.py"])
@pytest.mark.parametrize("program", ["patch", "git"])
def test_diff_finds_its_file(name: str, program: str, tmp_path: Path) -> None:
    text = f"{IMPORT}x = DataLoader(data)\n"
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)

    apply(tmp_path, diff_of(text, set_workers(), name=name), program)

    assert "num_workers=2" in path.read_text()


@pytest.mark.parametrize(
    "name", ["a\nb.py", "a\tb.py", '"a".py', " a.py", "a\\b.py", "\u00e9.py", ""]
)
def test_odd_name_of_a_file_has_no_diff(name: str) -> None:
    assert diff_of(f"{IMPORT}x = DataLoader(data)\n", set_workers(), name=name) == ""


def test_call_in_a_loop_is_changed_once(tmp_path: Path) -> None:
    text = f"{IMPORT}for _ in range(3): x = DataLoader(data)\n"

    assert changed(tmp_path, text, set_workers(), set_workers()).count("num_workers") == 1


def test_two_calls_are_changed_in_one_diff(tmp_path: Path) -> None:
    text = f"{IMPORT}x = DataLoader(a)\ny = DataLoader(b)\n"

    new_text = changed(tmp_path, text, set_workers(2), set_workers(3))

    assert new_text.count("num_workers=2") == 2


def test_zero_grad_with_false_gets_true(tmp_path: Path) -> None:
    text = "a.zero_grad(False)\nb.zero_grad(set_to_none=False)\nc.zero_grad()\nf(False)\n"

    new_text = changed(tmp_path, text, ZeroGradEdit(file="train.py"))

    assert new_text == "a.zero_grad(True)\nb.zero_grad(set_to_none=True)\nc.zero_grad()\nf(False)\n"


def test_zero_grad_with_a_variable_has_no_diff() -> None:
    text = "a.zero_grad(set_to_none=flag)\n"

    assert diff_of(text, ZeroGradEdit(file="train.py")) == ""


BENCHMARK = StatementEdit(file="train.py", statement="torch.backends.cudnn.benchmark = True")


def test_statement_comes_below_the_import_of_torch(tmp_path: Path) -> None:
    text = '"""Train."""\n\nimport os\nimport torch  # 2.13\nimport sys\n'

    new_text = changed(tmp_path, text, BENCHMARK)

    assert new_text == text.replace("2.13\n", "2.13\ntorch.backends.cudnn.benchmark = True\n")


@pytest.mark.parametrize(
    "text",
    [
        "import os\n",
        "import torch as t\n",
        "import torch",
        "import torch; import os\n",
        "if True:\n    import torch\n",
        "import torch\ntorch.backends.cudnn.benchmark = False\n",
    ],
)
def test_statement_without_a_safe_place_has_no_diff(text: str) -> None:
    assert diff_of(text, BENCHMARK) == ""


# ---- the diffs of a plan


def situation_of(folder: Path, text: str = SCRIPT, *, has_gpu: bool = True) -> Situation:
    """Write a script, and return the situation in which its calls were seen."""
    (folder / "train.py").write_text(text)
    file = str(folder / "train.py")
    facts = ScriptFacts(
        loaders=[make_loader(file=file)],
        optimizers=[make_optimizer(file=file, fills_with_zeros=True)],
        roots=[make_root(numbers=100 << 20, convolutions=2)],
        ddp=[make_ddp(file=file)],
        settings=on_gpu() if has_gpu else make_settings(),
    )
    return Situation(
        facts=facts,
        steps=make_steps(data=30, forward=20, backward=20, optimizer=10, rest=20),
        machine=make_situation().machine,
        script="train.py",
        sources=read_sources(facts, "train.py", str(folder)),
    )


@pytest.mark.parametrize(
    ("name", "line", "words"),
    [
        ("workers", 5, "shuffle=True, num_workers=1, persistent_workers=True)  # the whole set"),
        ("pin", 5, "shuffle=True, pin_memory=True)  # the whole set"),
        ("fused", 7, "lr=1e-3, fused=True,  # tuned"),
        ("foreach", 7, "lr=1e-3, foreach=True,  # tuned"),
        ("set-to-none", 0, "zero_grad(set_to_none=True)"),
        ("tf32", 0, 'import torch\ntorch.backends.cuda.matmul.fp32_precision = "tf32"\n'),
        ("cudnn-benchmark", 0, "import torch\ntorch.backends.cudnn.benchmark = True\n"),
        ("ddp-view", 6, "DDP(net, device_ids=[0], gradient_as_bucket_view=True)"),
        ("ddp-static", 6, "DDP(net, device_ids=[0], static_graph=True)"),
        ("ddp-bucket", 6, "DDP(net, device_ids=[0], bucket_cap_mb=100)"),
    ],
)
def test_diff_of_a_planned_treatment_applies(
    name: str, line: int, words: str, tmp_path: Path
) -> None:
    (record,) = of_name(plan(situation_of(tmp_path), [name]), name)

    apply(tmp_path, record.diff)

    new_text = (tmp_path / "train.py").read_text()
    ast.parse(new_text)
    assert words in new_text
    assert record.line == line
    assert record.file in ("train.py", str(tmp_path / "train.py"))


@pytest.mark.parametrize("name", ["bf16", "channels-last", "compile", "threads", "jemalloc"])
def test_treatment_without_a_place_has_its_change_in_words(name: str, tmp_path: Path) -> None:
    record = of_name(plan(situation_of(tmp_path), [name]), name)[0]

    assert record.diff == ""
    assert record.change


def test_plan_never_writes_to_the_script(tmp_path: Path) -> None:
    situation = situation_of(tmp_path)
    os.utime(tmp_path / "train.py", (1, 1))

    plan(situation)

    assert (tmp_path / "train.py").read_text() == SCRIPT
    assert (tmp_path / "train.py").stat().st_mtime == 1
    assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_call_in_a_library_has_no_diff(tmp_path: Path) -> None:
    library = tmp_path / ".venv/lib/site-packages/trainer.py"
    library.parent.mkdir(parents=True)
    library.write_text(SCRIPT)
    facts = ScriptFacts(loaders=[make_loader(file=str(library))])

    sources = read_sources(facts, "", str(tmp_path))

    assert sources == {}


def test_file_outside_the_folder_has_no_diff(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "train.py").write_text(SCRIPT)

    assert read_sources(ScriptFacts(), "../train.py", str(tmp_path / "other")) == {}
    assert read_sources(ScriptFacts(), str(tmp_path / "train.py"), str(tmp_path / "other")) == {}


@pytest.mark.parametrize("kind", ["missing", "folder", "pipe", "latin-1", "huge", "loop", "zero"])
def test_file_that_cannot_be_read_has_no_diff(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    name = "train.py"
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "latin-1":
        path.write_bytes("# -*- coding: latin-1 -*-\n# \u00e9\n".encode("latin-1"))
    elif kind == "huge":
        path.write_bytes(b"#" * 1_000_001)
    elif kind == "loop":
        path.symlink_to("train.py")
    elif kind == "zero":
        name = "train\0.py"

    assert read_sources(ScriptFacts(), name, str(tmp_path)) == {}


def test_relative_and_absolute_paths_name_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    facts = ScriptFacts(loaders=[make_loader(file=str(tmp_path / "train.py"))])

    sources = read_sources(facts, "train.py", str(tmp_path))

    source = ScriptSource(name="train.py", text=SCRIPT)
    assert sources == {"train.py": source, str(tmp_path / "train.py"): source}
