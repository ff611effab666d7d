"""The user's configuration: what counts, who says so, and mistakes in it."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tests.channels import find_obeyed, hostile_word
from tests.engine import look, write_scenario
from tests.faults.oracle import view
from tests.test_archive import RUN, make_run
from tuilab.runs.command_line import rerun_words

Tuilab = Callable[..., "CompletedProcess[str]"]
Configured = Callable[..., "CompletedProcess[str]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A config folder."""
    path = tmp_path / "config" / "tuilab"
    path.mkdir(parents=True)
    return path


@pytest.fixture
def configured(tuilab: Tuilab, tmp_path: Path, folder: Path) -> Configured:
    """Run `tuilab` with that config folder and without variables of ours, unless they are given."""

    def run(*words: str, **environ: str) -> "CompletedProcess[str]":
        return tuilab(
            *words, env={"TUILAB_ROOT": "", "XDG_CONFIG_HOME": str(tmp_path / "config"), **environ}
        )

    return run


def test_without_a_file_everything_has_its_default(configured: Configured, folder: Path) -> None:
    shown = configured("config").stdout

    assert shown.startswith(f"# {folder}/config.toml (no such file)\n")
    assert shown.count("# default\n") == 4
    assert configured("config", "path").stdout == f"{folder}/config.toml\n"
    assert (
        configured("config", "validate").stdout
        == f"there is no {folder}/config.toml: all settings have their defaults\n"
    )


def test_an_option_counts_before_a_variable_before_the_file(
    configured: Configured, folder: Path, tmp_path: Path
) -> None:
    for name, end in (("file", "1"), ("variable", "2"), ("option", "3")):
        make_run(tmp_path / name, RUN[:-1] + end)
    (folder / "config.toml").write_text(f'root = "{tmp_path}/file"\n')

    def newest(*words: str, **environ: str) -> str:
        return str(
            json.loads(configured("runs", "--json", *words, **environ).stdout)["runs"][0]["run"][-1]
        )

    variable = {"TUILAB_ROOT": f"{tmp_path}/variable"}
    assert [newest(), newest(**variable), newest("--root", f"{tmp_path}/option", **variable)] == [
        "1",
        "2",
        "3",
    ]


def test_what_is_printed_is_toml_and_says_who_set_it(
    configured: Configured, folder: Path, tmp_path: Path
) -> None:
    (folder / "config.toml").write_text(f'# mine\nfps = 1\nscenarios = ["{tmp_path}"]\n')

    shown = configured("config", TUILAB_ROOT="/some/where").stdout
    assert tomllib.loads(shown) == {
        "root": "/some/where",
        "scenarios": [str(tmp_path)],
        "fps": 1.0,
        "device": "auto",
    }
    assert [line.partition("  # ")[2] for line in shown.splitlines()[1:]] == [
        "TUILAB_ROOT",
        "line 3",
        "line 2",
        "default",
    ]
    assert configured("config", "validate").stdout == f"{folder}/config.toml is valid: 2 settings\n"


def test_scenarios_of_the_file_are_found_by_every_command(
    configured: Configured, folder: Path, tmp_path: Path
) -> None:
    mine = tmp_path / "mine" / "own"
    mine.mkdir(parents=True)
    write_scenario(mine, 'lab.claim("one-is-one", True)', name="my-idea")
    (folder / "config.toml").write_text(
        f'scenarios = ["{tmp_path}/mine"]\nroot = "{tmp_path}/runs"\n'
    )

    said = [
        configured("list"),
        configured("show", "my-idea"),
        configured("run", "my-idea", "--headless", "--quiet"),
    ]
    assert [done.returncode for done in said] == [0, 0, 0], [done.stderr for done in said]
    assert "my-idea" in said[0].stdout


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (b"\nfps = 'two'\n", "line 2: fps takes a number from 0.1 to 30"),
        (b"fps = true\n", "line 1: fps takes a number"),
        (b"fps = nan\n", "line 1: fps takes a number"),
        (b"root = 'runs'\n", "line 1: root takes an absolute path"),
        (b"root = 5\n", "line 1: root takes an absolute path"),
        (b"\n\n  scenarios = '/x'\n", "line 3: scenarios takes a list"),
        (b"scenarios = ['/a:b']\n", "line 1: scenarios takes a list"),
        (b"fps = 1\nfbs = 2\n", "line 2: unknown setting fbs; did you mean fps?"),
        (
            b"fps = 1\n[theme]\nname = 'x'\n",
            "line 2: unknown setting theme; there are root, scenarios, fps, device",
        ),
        (b"device = 'cuda:'\n", "line 1: device takes auto, cpu, cuda or a GPU such as cuda:3"),
        (b"device = 3\n", "line 1: device takes auto"),
        (
            b"device = 'MIG-3f2a'\n",
            "a GPU such as cuda:3; to choose a GPU by its UUID, set CUDA_VISIBLE_DEVICES",
        ),
        (b"root = 'GPU-1'\n", "or a path that begins with ~\n"),
        (b"fps = = 2\n", "(at line 1, column 7)"),
        (b"fps = 1\nroot = '\xff'\n", "line 2 is not UTF-8; save the file as UTF-8"),
        (b"a = " + b"[" * 5000, "is not valid TOML"),
        (b"\x1b[2J = 1\n", "is not valid TOML"),
    ],
)
@pytest.mark.first(5)
def test_a_mistake_is_one_sentence_with_its_line(
    configured: Configured, folder: Path, text: bytes, sentence: str
) -> None:
    (folder / "config.toml").write_bytes(text)

    done = configured("config", "validate")

    assert done.returncode == 2 and done.stderr.count("\n") == 1 and sentence in done.stderr, (
        done.stderr
    )
    assert "\x1b" not in done.stderr


def test_a_mistake_stops_every_verb_but_help_and_those_that_tell_of_it(
    configured: Configured, folder: Path
) -> None:
    (folder / "config.toml").write_bytes(b"fps = 0\n")

    for words in (("config",), ("runs",), ("list",)):
        assert configured(*words).returncode == 2
    assert configured("--help").returncode == 0
    assert configured("config", "path").returncode == 0


@pytest.mark.slow
def test_the_doctor_works_with_a_file_that_is_wrong_and_says_so(
    configured: Configured, folder: Path
) -> None:
    (folder / "config.toml").write_text("fps = 0\n")

    (check,) = [
        one
        for one in json.loads(configured("doctor", "--json").stdout)["checks"]
        if one["id"] == "lab.config"
    ]
    assert check["status"] == "fail" and "line 1" in check["found"]


def test_a_variable_that_makes_no_sense_is_one_sentence(configured: Configured) -> None:
    said = [configured("config", TUILAB_FPS="often"), configured("attach", TUILAB_FPS="often")]
    said += [
        configured(*words, TUILAB_DEVICE="gpu")
        for words in (["config"], ["run", "xyy", "--headless"])
    ]

    assert [done.returncode for done in said] == [2] * 4
    assert all(
        done.stderr.startswith("tuilab: TUILAB_") and done.stderr.count("\n") == 1 for done in said
    )


def test_a_device_that_is_set_counts_where_a_command_line_says_nothing_and_is_told_like_one(
    configured: Configured, folder: Path, root: Path, tmp_path: Path
) -> None:
    head = "from typing import Literal\n\n"
    path = write_scenario(tmp_path, 'lab.claim("one-is-one", True)', head)
    taking = 'run(lab: Lab, device: Literal["auto", "cpu", "cuda"] = "auto")'
    path.write_text(path.read_text().replace("run(lab: Lab)", taking))
    (folder / "config.toml").write_text(f'device = "cpu"\nroot = "{root}"\n')

    for words in ([], ["--device", "auto"]):
        assert configured("run", str(path), "--headless", "--quiet", *words).returncode == 0
    chosen = [look(run).summary.run for run in sorted(root.glob("2*"))]

    assert [run.params["device"] for run in chosen if run] == ["cpu", "auto"]
    assert [rerun_words(run, 1)[3:-1] for run in chosen if run] == [["--device", "cpu"], []]


def test_a_folder_that_is_not_there_fails_validation(configured: Configured, folder: Path) -> None:
    (folder / "config.toml").write_text('fps = 1\nscenarios = ["/not/there"]\n')

    done = configured("config", "validate")
    assert done.returncode == 2 and "line 2: no folder /not/there; correct scenarios" in done.stderr
    listed = configured("list")
    assert (
        listed.returncode == 2
        and "/not/there is not a folder; TUILAB_SCENARIOS, or the config file" in listed.stderr
    )


@pytest.mark.parametrize(
    "line",
    ["fps = {}", "device = {}", "scenarios = [{}]", "root = {}", "{} = 1", "[{}]\nx = 1", "{}{}"],
)
def test_no_word_of_the_file_is_obeyed(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    evil = json.dumps(f"/{hostile_word('config').replace(':', '')}").replace("\x7f", "\\u007f")
    (folder / "config.toml").write_text(line.format(evil, evil))

    said = "".join(view("config", *more)[1] for more in ([], ["--json"], ["validate"]))

    assert "owned" in said or "line 1" in said
    assert find_obeyed(said) == []
