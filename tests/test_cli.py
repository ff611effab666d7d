"""The command line: what a user types, and what comes back."""

import json
import os
import pty
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import click
import pytest
from click.testing import CliRunner

from tests.conftest import TUILAB
from tests.engine import look, newest, start, until, write_scenario
from tests.slow_cases import slow_cases
from tuilab.catalogue.params import parse
from tuilab.catalogue.scenario import Param
from tuilab.cli import subcommands
from tuilab.cli.front_page import VERBS
from tuilab.errors import ExitCode, TuilabError

Tuilab = Callable[..., "CompletedProcess[str]"]

JOURNAL = Path(__file__).parent / "journals" / "tour"
RUN = "20270115T080000000Z-tour-abc123"

PARAMS = '''"""A scenario with parameters.

## Predict
How many?

## Look for
- [slow] the mode is slow
"""
from typing import Literal
from tuilab import Lab

def run(
    lab: Lab,
    rows: int = 500,  # how many rows, 1..10000 (quick 10)
    cols: int = 50,  # how many columns, 1..100 (quick 5)
    rate: float = 0.5,  # how fast, 0.0..1.0
    mode: Literal["slow", "fast"] = "slow",  # which way
    device: Literal["auto", "cpu", "cuda"] = "auto",  # where
    shuffle: bool = False,  # in random order
) -> None:
    lab.log(0, rows=rows)
    lab.artifact("a.txt", "kept")
    lab.claim("slow", mode, equals="slow")
'''


@pytest.fixture
def form(tmp_path: Path) -> str:
    path = tmp_path / "form.py"
    path.write_text(PARAMS)
    return str(path)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one run that succeeded, for tests that only look at it."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "form.py").write_text(PARAMS)
    start(folder / "runs", "run", str(folder / "form.py"), "--headless", "--quiet").communicate()
    return folder / "runs"


@pytest.fixture
def finished(recorded: Path, root: Path) -> Path:
    """A copy of that run in the folder of the test."""
    shutil.copytree(recorded, root)
    (run_dir,) = root.iterdir()
    return run_dir


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str) -> None:
    done = CliRunner().invoke(subcommands.tuilab, [verb, "--help"], prog_name="tuilab")

    assert done.exit_code == 0
    assert f"Usage: tuilab {verb}" in done.stdout and done.stderr == ""


def test_the_overview_names_every_verb_and_exit_code(tuilab: Tuilab) -> None:
    shown = tuilab("--help").stdout

    assert all(f"\n  {verb} " in shown for verb in VERBS)
    assert [code for code in ExitCode if f"\n  {code} " not in shown] == []


def test_a_scenarios_parameters_are_options_with_help(tuilab: Tuilab, form: str) -> None:
    shown = " ".join(tuilab("run", form, "--help").stdout.split())

    assert "--rows INT how many rows; a whole number, 1..10000" in shown
    assert "--mode [slow|fast] which way" in shown
    assert "--shuffle / --no-shuffle in random order" in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--rows=abc",), "rows"),
        (("--rows", "0"), "1..10000"),
        (("--rows=20000",), "1..10000"),
        (("--rate", "nan"), "rate"),
        (("--mode", "medium"), "'slow', 'fast'"),
        (
            ("--device", "cuda:x"),
            'device: "cuda:x" is not one of auto, cpu, cuda, cuda:N (default auto)',
        ),
        (("--device=MIG-3f2a",), "to choose a GPU by its UUID, set CUDA_VISIBLE_DEVICES"),
        (("--rwos", "5"), "--rows"),
        (("--repeat", "0"), "--repeat"),
        (("extra",), "extra"),
    ],
)
@pytest.mark.first(2)
def test_a_wrong_parameter_is_named_with_what_it_takes(
    tuilab: Tuilab, root: Path, form: str, words: tuple[str, ...], sentence: str
) -> None:
    done = tuilab("run", form, "--headless", *words)

    assert done.returncode == 2
    assert sentence in done.stderr and "Traceback" not in done.stderr
    assert done.stdout == ""
    assert newest(root) is None


@pytest.mark.parametrize(
    "order",
    slow_cases(
        ("run", "--rows", "7", "{}"),
        ("run", "{}", "--rows", "7"),
        ("run", "--headless", "--rows=7", "{}"),
    ),
)
def test_options_may_stand_before_or_after_the_name(
    tuilab: Tuilab, form: str, order: tuple[str, ...]
) -> None:
    done = tuilab(*(word.format(form) for word in order), "--json", "--quiet")

    assert done.returncode == 0, done.stderr
    (run,) = json.loads(done.stdout)["runs"]
    assert (run["params"]["rows"], run["changed"]) == (7, ["rows"])


def test_quick_takes_the_quick_sizes_but_never_overrides_what_was_given(
    tuilab: Tuilab, form: str
) -> None:
    """Wherever that stands: here before the name, and the rest after it."""
    (run,) = json.loads(tuilab("run", "--rows", "600", form, "--quick", "--json").stdout)["runs"]

    assert run["changed"] == ["rows", "cols"]
    assert run["params"] == {
        "rows": 600,
        "cols": 5,
        "rate": 0.5,
        "mode": "slow",
        "device": "auto",
        "shuffle": False,
    }


def test_json_is_one_document_and_stays_free_of_nan(tuilab: Tuilab, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, 'lab.log(0, loss=float("nan"))\nlab.log(1, loss=float("inf"))')

    done = tuilab("run", str(path), "--json")

    document = json.loads(
        done.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON")
    )
    (series,) = document["runs"][0]["series"]
    assert document["schema"] == "tuilab.result/1"
    assert (series["last"], series["not_finite"], series["low"]) == ("inf", 2, None)


def test_jsonl_gives_every_record_as_it_was_written(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    path = write_scenario(tmp_path, "for i in range(50): lab.log(i, loss=i)")

    done = tuilab("run", str(path), "--jsonl", "--quiet")

    records = [json.loads(line) for line in done.stdout.splitlines()]
    run_dir = newest(root)
    assert run_dir is not None
    lines = sum(stream.read_bytes().count(b"\n") for stream in (run_dir / "journal").iterdir())
    assert len(records) == lines
    assert [record["v"]["loss"] for record in records if record["k"] == "logged"] == [
        float(i) for i in range(50)
    ]


def test_a_reader_that_goes_early_does_not_end_the_run(root: Path, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, 'lab.claim("one-is-one", True)')
    command = f"{TUILAB} run {path} --headless --json | head -c 1"

    done = subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, "TUILAB_ROOT": str(root)},
        timeout=60,
    )

    assert done.stdout == "{"
    assert "Traceback" not in done.stderr and "Broken" not in done.stderr
    assert look(newest(root) or root).summary.state == "succeeded"


@pytest.mark.parametrize("subcommand", ["list", "queue", "runs", "attach", "run xyy --headless"])
def test_root_that_is_a_file_is_one_sentence(
    tuilab: Tuilab, tmp_path: Path, subcommand: str
) -> None:
    file = tmp_path / "file"
    file.touch()

    done = tuilab(*subcommand.split(), "--root", str(file))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "cannot read the folder of runs" in done.stderr


def test_a_full_stdout_is_one_sentence(root: Path, finished: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [TUILAB, "attach", "last", "--headless", "--quiet"],
            stdout=full, stderr=subprocess.PIPE, text=True, env={**os.environ, "TUILAB_ROOT": str(root)}, timeout=60,
        )  # fmt: skip

    assert done.returncode == 5
    assert done.stderr == "tuilab: cannot write the result: No space left on device\n"


def test_closed_standard_streams_do_no_harm(root: Path, tmp_path: Path) -> None:
    path = write_scenario(tmp_path, 'lab.claim("one-is-one", True)')

    done = subprocess.run(
        ["bash", "-c", f"{TUILAB} run {path} --headless <&- >&- 2>&-"],
        env={**os.environ, "TUILAB_ROOT": str(root)},
        timeout=60,
    )

    assert done.returncode == 0


ENVIRONMENTS = [
    {"LC_ALL": "C"},
    {"TERM": "dumb"},
    {"NO_COLOR": "1"},
    {"LC_ALL": "", "LANG": "C.UTF-8"},
]


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.first(1)
def test_piped_output_has_no_escapes_whatever_the_terminal(
    tuilab: Tuilab, finished: Path, env: dict[str, str]
) -> None:
    done = tuilab("attach", "last", "--headless", "--plot", env=env)

    assert done.returncode == 0
    assert "\x1b" not in done.stdout + done.stderr
    assert env.get("LC_ALL") != "C" or done.stdout.isascii()


def test_into_a_pipe_it_runs_headless_and_says_so_without_escapes(
    tuilab: Tuilab, form: str
) -> None:
    done = tuilab("run", form, env={"LC_ALL": "C"})

    assert done.returncode == 0
    assert "there is no terminal; printing the result instead (same as --headless)" in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    assert done.stdout.isascii()


def test_on_a_terminal_there_is_colour_and_it_is_left_as_it_was(root: Path, form: str) -> None:
    """A real pty: the cursor is shown again and the result is there."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [TUILAB, "run", form, "--headless"], stdin=theirs, stdout=theirs, stderr=theirs,
        env={**os.environ, "TUILAB_ROOT": str(root), "TERM": "xterm-256color", "LANG": "C.UTF-8"},
    )  # fmt: skip
    os.close(theirs)
    seen = b""
    with pytest.raises(OSError, match="Input/output"):
        while True:
            seen += os.read(ours, 65536)
    os.close(ours)

    assert process.wait() == 0
    assert b"\x1b[32m" in seen and b"the mode is slow" in seen
    assert seen.rfind(b"\x1b[?25h") > seen.rfind(b"\x1b[?25l")


def test_a_folder_that_cannot_be_written_is_one_sentence(tuilab: Tuilab, form: str) -> None:
    done = tuilab("run", form, "--headless", "--root", "/proc/no")

    assert done.returncode == 5
    assert (
        done.stderr.startswith("tuilab: cannot make a run folder in /proc/no (")
        and done.stderr.count("\n") == 1
    )


def test_a_home_that_is_missing_is_no_problem_with_a_root(tuilab: Tuilab, form: str) -> None:
    assert (
        tuilab("run", form, "--headless", "--quiet", env={"HOME": "/nonexistent"}).returncode == 0
    )


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "-rf", "a\nb", "x" * 300, "$(touch hit)", "; rm -rf .", "sofmax", ""],
)
@pytest.mark.first(2)
def test_an_unknown_name_is_one_sentence(tuilab: Tuilab, name: str) -> None:
    done = tuilab("run", "--headless", "--", name)

    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stderr


def test_a_near_miss_is_told_the_name(tuilab: Tuilab) -> None:
    assert "softmax" in tuilab("run", "sofmax").stderr
    assert (
        tuilab("runn").stderr
        == "tuilab: no subcommand runn; did you mean run? See `tuilab --help`\n"
    )


@pytest.mark.parametrize("verb", ["attach", "stop", "verify", "rm"])
def test_a_run_that_does_not_exist_is_one_sentence(tuilab: Tuilab, verb: str) -> None:
    done = tuilab(verb, "nope")

    assert done.returncode == 2
    assert "there are no runs in" in done.stderr


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("run", "FORM", "--plot", "--json"), "--plot has no effect with --json; drop one of them"),
        (
            ("run", "FORM", "--plot", "--detach"),
            "--plot has no effect with --detach; drop one of them",
        ),
        (
            ("run", "FORM", "--beside"),
            "--beside works only with --detach; add --detach or drop --beside",
        ),
        (
            ("ab", "--arm", "a", "--arm", "b: X=1", "--beside", "--", "true"),
            "--beside works only with --detach",
        ),
        (
            ("exec", "--watch", "nothing", "--step-of", "SGD", "--", "true"),
            "--step-of has no effect with --watch nothing",
        ),
        (
            ("attach", "last", "--plot", "--jsonl"),
            "--plot has no effect with --jsonl; drop one of them",
        ),
        (
            ("compare", "last", "last", "--plot", "-o", "x.html"),
            "--plot has no effect with -o; drop one of them",
        ),
        (
            ("compare", "last", "last", "--json", "-o", "x.html"),
            "--json has no effect with -o x.html; drop one of them",
        ),
        (
            ("calibrate", "--show", "--minutes", "3"),
            "--minutes has no effect with --show; drop one of them",
        ),
        (
            ("note", "last", "--tag", "x", "--untag", "x"),
            "--tag and --untag both name x; use only one of them",
        ),
        (("rm", "last", "--keep", "3"), "use either names of runs, or --older-than and --keep"),
        (
            ("verify", "sweep-last"),
            "sweep-last is a sweep, not a run; report, attach and stop take a sweep",
        ),
        (("runs", "verdict:"), "verdict: is an incomplete filter; filters are: words  !word"),
        (("runs", "softmax", "!"), "! is an incomplete filter; filters are: words  !word"),
    ],
)
def test_what_would_have_no_effect_is_one_sentence_and_never_passed_over(
    tuilab: Tuilab, form: str, finished: Path, words: tuple[str, ...], why: str
) -> None:
    done = tuilab(*(form if word == "FORM" else word for word in words))

    told = done.stderr.splitlines()
    assert (done.returncode, done.stdout, len(told)) == (2, "", 1)
    assert why in told[0]


def test_a_word_with_an_unknown_key_is_looked_for_and_told_where_no_run_has_it(
    tuilab: Tuilab, finished: Path
) -> None:
    odd, known = tuilab("runs", "verdct:refuted", "--json"), tuilab("runs", "tour:zzz", "form")

    assert (odd.returncode, json.loads(odd.stdout)["runs"]) == (0, [])
    assert odd.stderr.startswith(
        "tuilab: verdct:refuted is not a known filter and was searched for as text; filters are: words"
    )
    assert "tour:zzz is not a known filter" in known.stderr and known.stdout == "0 of 1 run match\n"
    assert tuilab("runs", "form").stderr == tuilab("runs", "tag:zzz").stderr == ""


def test_a_chart_that_is_asked_for_is_printed_without_talk_too(tuilab: Tuilab, form: str) -> None:
    done = tuilab("run", form, "--quiet", "--plot")

    assert done.stderr == "" and "rows" in done.stdout.partition("\n\n")[2]
    assert (
        len(done.stdout.splitlines()) > len(tuilab("run", form, "--quiet").stdout.splitlines()) + 5
    )


def takes_a_run(verb: str) -> bool:
    """Say whether a verb has an argument that is a run, as all call it."""
    command = subcommands.tuilab.get_command(click.Context(subcommands.tuilab), verb)
    assert command is not None
    return any(
        isinstance(param, click.Argument) and param.name in ("run", "runs")
        for param in command.params
    )


BY_RUN = [verb for verb in VERBS if takes_a_run(verb)]
MORE_WORDS = {"compare": ["last"], "report": ["-o", "-"]}


def test_these_verbs_take_a_run() -> None:
    assert {
        "attach",
        "replay",
        "stop",
        "rm",
        "report",
        "compare",
        "note",
        "export",
        "verify",
        "advise",
    } <= set(BY_RUN)


@pytest.mark.parametrize("reference", ["", " "], ids=["nothing", "a blank"])
@pytest.mark.parametrize("verb", BY_RUN)
@pytest.mark.first(4)
def test_an_empty_reference_names_no_run(
    tuilab: Tuilab, root: Path, verb: str, reference: str
) -> None:
    """`tuilab rm "$ID"` without an ID is no request to delete whatever there is."""
    run_dir = root / RUN
    shutil.copytree(JOURNAL, run_dir)
    before = sorted(run_dir.rglob("*"))

    done = tuilab(verb, reference, *MORE_WORDS.get(verb, []), cwd=root)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tuilab: the name of a run is empty; use an id, or last")
    assert sorted(run_dir.rglob("*")) == before and os.listdir(root) == [RUN]


def words_with_an_empty_one() -> list[tuple[str, list[str]]]:
    """Return every option and argument that takes a value, as it is called and on a line where it is empty."""
    tuilab = subcommands.tuilab
    commands = {verb: tuilab.get_command(click.Context(tuilab), verb) for verb in VERBS}
    lines = [
        (param.opts[-1], [param.opts[-1], ""]) for param in tuilab.params if takes_a_value(param)
    ]
    for verb, command in commands.items():
        assert command is not None
        needed = [
            NEEDED.get(verb, "last")
            for param in command.params
            if isinstance(param, click.Argument) and param.required
        ]
        for param in filter(takes_a_value, command.params):
            if isinstance(param, click.Option):
                lines.append((param.opts[-1], [verb, param.opts[-1], "", *needed]))
            else:
                others = needed if not param.required and verb == "note" else []
                lines.append(
                    (
                        ARGUMENTS.get(param.name or "", param.human_readable_name),
                        [verb, *others, "", *MORE_WORDS.get(verb, [])],
                    )
                )
    return lines


def takes_a_value(param: click.Parameter) -> bool:
    return not (isinstance(param, click.Option) and param.is_flag) and param.name not in (
        "help",
        "version",
    )


NEEDED = {"run": "stability", "show": "stability", "new": "mine"}
ARGUMENTS = {
    "names": "the name of a scenario",
    "run": "the name of a run",
    "runs": "the name of a run",
    "name": "name",
    "what": "print",
    "command": "the command",
    "words": "FILTER",
}
EMPTY = words_with_an_empty_one()


@pytest.mark.parametrize(("called", "words"), EMPTY, ids=[" ".join(words) for _, words in EMPTY])
def test_an_empty_word_is_a_mistake_and_never_the_same_as_none(
    called: str,
    words: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`tuilab new x --dir "$DIR"` without a DIR is no request for the folder that one happens to be in."""
    shutil.copytree(JOURNAL, tmp_path / "runs" / RUN)
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises((TuilabError, click.ClickException)) as refused:
        subcommands.tuilab.main(words, prog_name="tuilab", standalone_mode=False)

    problem = refused.value
    assert (
        isinstance(problem, TuilabError | click.ClickException)
        and problem.exit_code == ExitCode.USAGE
    )
    told = problem.format_message() if isinstance(problem, click.ClickException) else str(problem)
    assert called in told and "\n" not in told
    assert capsys.readouterr().out == "" and sorted(tmp_path.rglob("*")) == before


def test_every_option_with_a_text_or_a_path_is_tried_empty() -> None:
    tried = {called for called, _ in EMPTY}

    assert {
        "--report",
        "--tag",
        "--untag",
        "--dir",
        "--bundle",
        "--scenario",
        "--scenarios",
        "--root",
        "--output",
    } <= tried


def test_an_empty_text_is_a_value_of_a_scenarios_own_parameter() -> None:
    assert parse(Param("words", "str", "some"), "") == ""


@pytest.mark.parametrize(
    "variable", ["TUILAB_ROOT", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME", "TUILAB_SCENARIOS"]
)
def test_a_variable_that_is_empty_is_not_set_and_means_no_folder(
    tuilab: Tuilab, tmp_path: Path, variable: str
) -> None:
    given = {
        "TUILAB_ROOT": "",
        "XDG_STATE_HOME": "",
        "XDG_CONFIG_HOME": "",
        "HOME": str(tmp_path),
    } | {variable: ""}
    home = given["HOME"] or pwd.getpwuid(os.getuid()).pw_dir

    shown = tuilab("config", env=given, cwd=tmp_path).stdout.splitlines()

    assert shown[0].startswith(f"# {home}/.config/tuilab/config.toml")
    assert shown[1].partition("  #")[0].strip() == f'root = "{home}/.local/state/tuilab/runs"'
    assert shown[2].partition("  #")[0].strip() == "scenarios = []"


@pytest.mark.parametrize(
    "words",
    [("rm", "last", "--root", ""), ("--root", "", "rm", "last"), ("rm", "--root", " ", "last")],
)
def test_an_empty_folder_of_runs_is_not_the_usual_one(
    tuilab: Tuilab, root: Path, words: tuple[str, ...]
) -> None:
    shutil.copytree(JOURNAL, root / RUN)

    done = tuilab(*words)

    assert done.returncode == 2 and "--root" in done.stderr
    assert os.listdir(root) == [RUN]


@pytest.mark.parametrize("verb", ["rm", "stop"])
@pytest.mark.parametrize(
    ("reference", "needed"), [("2", 15), ("abc", 4), ("2027", 15), ("20270115T0800", 15)]
)
@pytest.mark.first(3)
def test_what_cannot_be_taken_back_wants_more_than_a_few_characters(
    tuilab: Tuilab, root: Path, verb: str, reference: str, needed: int
) -> None:
    shutil.copytree(JOURNAL, root / RUN)

    done = tuilab(verb, reference)

    assert done.returncode == 2
    assert f"too short to name {RUN} safely; give {needed} characters or more" in done.stderr
    assert os.listdir(root) == [RUN]


@pytest.mark.parametrize("reference", ["abc1", RUN[:15], RUN, "last", "last~0"])
def test_four_characters_are_enough_to_delete_the_only_run_they_fit(
    tuilab: Tuilab, root: Path, reference: str
) -> None:
    shutil.copytree(JOURNAL, root / RUN)

    assert tuilab("rm", reference).stdout == f"deleted {RUN}\n"


def test_a_run_can_be_listed_verified_and_deleted(
    tuilab: Tuilab, root: Path, finished: Path
) -> None:
    assert "succeeded" in tuilab("runs").stdout
    assert tuilab("verify").stdout.endswith("complete and unchanged\n")
    assert json.loads(tuilab("runs", "--json").stdout)["runs"][0]["claims"] == [
        {"key": "slow", "text": "the mode is slow", "verdict": "SUPPORTED"}
    ]
    assert tuilab("rm", "last").returncode == 0
    assert newest(root) is None


def test_a_run_that_goes_on_is_not_deleted(tuilab: Tuilab, root: Path, tmp_path: Path) -> None:
    tuilab("run", str(write_scenario(tmp_path, "time.sleep(600)")), "--detach")

    shutil.copytree(JOURNAL, root / RUN)
    done = tuilab("rm", RUN, "last~1", "--json")

    assert done.returncode == 2 and "stop it first" in done.stderr
    assert [one["run"] for one in json.loads(done.stdout)["runs"]] == [
        RUN
    ]  # what was done by then is told
    tuilab("stop", "last", "--now")
    until(lambda: tuilab("rm", "last").returncode == 0)


def test_verify_finds_what_was_changed(tuilab: Tuilab, finished: Path) -> None:
    (finished / "artifacts" / "a.txt").write_text("other")
    (finished / "scenario.py").write_text("other")
    judge = finished / "journal" / "judge.jsonl"
    judge.write_bytes(judge.read_bytes().replace(b"SUPPORTED", b"SUPPORTEd"))

    done = tuilab("verify")

    assert done.returncode == 1
    assert "artifact a.txt is missing, or differs from what was saved" in done.stdout
    assert "scenario.py is not the source that ran" in done.stdout
    assert "judge: checksum does not match at byte 0" in done.stdout


def test_a_refuted_claim_is_exit_code_1_and_stands_in_the_list(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    folder = tmp_path / "own" / "mine"
    folder.mkdir(parents=True)
    (folder / "form.py").write_text(PARAMS)
    words = ("--scenarios", str(tmp_path / "own"))

    before = json.loads(tuilab("list", "--json", *words).stdout)["scenarios"]
    done = tuilab("run", "form", "--headless", "--quiet", "--mode", "fast", *words)
    after = json.loads(tuilab("list", "--json", *words).stdout)["scenarios"]

    assert done.returncode == 1
    assert "REFUTED" in done.stdout and "measured fast, claimed slow" in done.stdout
    assert [s["last_verdict"] for s in before if s["scenario"] == "form"] == [None]
    assert [s["last_verdict"] for s in after if s["scenario"] == "form"] == ["REFUTED"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_scenarios_and_their_options(tuilab: Tuilab, shell: str) -> None:
    words = {
        "bash": ("tuilab run softmax --", "3"),
        "zsh": ("tuilab run softmax --", "3"),
        "fish": ("tuilab run softmax --", "--"),
    }
    line, at = words[shell]

    done = tuilab(
        env={"_TUILAB_COMPLETE": f"{shell}_complete", "COMP_WORDS": line, "COMP_CWORD": at}
    )

    assert "--headless" in done.stdout


@pytest.mark.parametrize(
    ("argv", "unwanted"),
    [
        (["--help"], {"torch", "textual", "numpy", "psutil", "rich", "msgspec", "json"}),
        (["list"], {"torch", "textual", "numpy", "psutil", "rich", "msgspec"}),
        (["run", "softmax", "--help"], {"torch", "textual", "numpy", "psutil"}),
        (["runs"], {"torch", "textual", "numpy", "psutil", "rich", "msgspec"}),
        (["runs", "softmax"], {"torch", "textual", "numpy", "psutil"}),
        (["COMPLETE", "tuilab ru"], {"torch", "textual", "numpy", "psutil", "msgspec"}),
        (["COMPLETE", "tuilab run so"], {"torch", "textual", "numpy", "psutil"}),
        (["doctor"], {"torch", "textual", "numpy", "pynvml"}),
        (["config"], {"torch", "textual", "numpy", "psutil", "tomllib"}),
    ],
)
@pytest.mark.first(3)
def test_the_front_never_loads_what_is_slow(
    tmp_path: Path, argv: list[str], unwanted: set[str]
) -> None:
    asked = {}
    if argv[0] == "COMPLETE":
        asked = {
            "_TUILAB_COMPLETE": "bash_complete",
            "COMP_WORDS": argv[1],
            "COMP_CWORD": str(argv[1].count(" ")),
        }
        argv = []
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "tuilab", *argv],
        capture_output=True,
        text=True,
        env={**os.environ, "TUILAB_ROOT": str(tmp_path), **asked},
    )

    loaded = {
        line.rpartition("|")[2].strip()
        for line in done.stderr.splitlines()
        if line.startswith("import time:")
    }
    assert "tuilab.cli" in loaded and unwanted & loaded == set()


IMPORTS = [  # what these import is covered with them
    ("tuilab.judging.stats", {"torch", "textual", "click"}),
    ("tuilab.judging.judge_run", {"torch", "textual", "numpy", "click"}),
    ("tuilab.catalogue.catalog", {"torch", "textual", "numpy", "click", "msgspec"}),
    ("tuilab.catalogue.params", {"torch", "textual", "numpy", "click", "msgspec"}),
    (
        "tuilab.engine.supervisor",
        {"torch", "textual", "numpy", "click", "psutil", "pynvml", "scipy"},
    ),
    (
        "tuilab.engine.early_start",
        {"torch", "textual", "numpy", "click", "psutil", "pynvml", "scipy", "msgspec"},
    ),
    ("tuilab.engine.sampler", {"torch", "textual", "numpy", "click", "scipy"}),
    ("tuilab.engine.judge", {"torch", "textual", "click"}),
    ("tuilab.lab.worker", {"textual", "click", "scipy"}),
    ("tuilab.lab.lab", {"textual", "click", "scipy"}),
    ("tuilab.cli.headless", {"torch", "textual", "numpy"}),
    ("tuilab.cli.verbs.run", {"torch", "textual", "numpy"}),
    ("tuilab.cli.verbs.compare", {"torch", "textual", "numpy", "plotext"}),
    ("tuilab.runs.archive.unpack", {"torch", "textual", "numpy", "click"}),
    ("tuilab.doctor.ask_all", {"torch", "textual", "numpy", "click"}),
    ("tuilab.reports.result_text", {"torch", "textual", "numpy", "click"}),
    ("tuilab.reports.write_report", {"torch", "textual", "click", "jinja2"}),
    ("tuilab.reports.formats.html", {"torch", "textual", "click", "scipy"}),
    ("tuilab.reports.advice.env_file", {"torch", "textual", "click", "scipy"}),
    ("tuilab.cli.verbs.advise", {"torch", "textual", "numpy"}),
]


@pytest.mark.parametrize(("module", "unwanted"), IMPORTS, ids=[module for module, _ in IMPORTS])
@pytest.mark.first(6)
def test_who_may_know_whom(module: str, unwanted: set[str]) -> None:
    code = f"import {module}, sys; print(*sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert unwanted & set(done.stdout.split()) == set()


@pytest.mark.tools
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_it_runs_inside_tmux(root: Path, form: str, tmp_path: Path) -> None:
    socket = str(tmp_path / "tmux")
    command = f"TUILAB_ROOT={root} {TUILAB} run {form} --headless; echo code $?"
    subprocess.run(
        [
            "tmux",
            "-S",
            socket,
            "new",
            "-d",
            "-x",
            "80",
            "-y",
            "24",
            f"bash -c '{command}; sleep 60'",
        ],
        check=True,
    )

    def screen() -> str:
        return subprocess.run(
            ["tmux", "-S", socket, "capture-pane", "-p", "-S", "-"], capture_output=True, text=True
        ).stdout

    until(lambda: "code 0" in screen())

    assert "SUPPORTED" in screen() and "the mode is slow" in screen()
    subprocess.run(["tmux", "-S", socket, "kill-server"], check=True)


@pytest.mark.parametrize("verb", ["run", "sweep", "exec", "ab"])
def test_every_verb_takes_a_timeout_as_the_lab_does(verb: str) -> None:
    command = subcommands.tuilab.get_command(click.Context(subcommands.tuilab), verb)
    assert command is not None
    (timeout,) = (option for option in command.params if option.name == "timeout")

    told = [
        timeout.type.convert(words, timeout, None)
        for words in ("90", "0.5", "90s", "2m", "1.5h", "2000000")
    ]
    assert told == [90, 0.5, 90, 120, 5400, 2_000_000]


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (("run", "softmax", "--timeout"), "duration"),
        (("run", "softmax", "--fps"), "number"),
        (("calibrate", "--minutes"), "number"),
        (("--fps",), "number"),
    ],
)
def test_nan_is_no_number_of_seconds_or_frames(
    tuilab: Tuilab, words: tuple[str, ...], kind: str
) -> None:
    done = tuilab(*words, "nan")

    assert (done.returncode, done.stdout) == (2, "") and f"'nan' is not a {kind}" in done.stderr
