"""The documents: what they show works, and what exists is in them."""

import ast
import os
import re
import runpy
import shutil
import subprocess
import textwrap
from pathlib import Path

import click
import pytest

from tests.conftest import CHECKOUT, TUILAB
from tests.documents import (
    LANGUAGES,
    MANUAL,
    PAGES,
    Block,
    anchors,
    blocks,
    indented,
    joined,
    lines_of_tuilab,
    links,
    prose,
    python_file,
    sessions_on_a_cluster,
    whole,
    words,
)
from tests.packages import PACKAGES
from tests.record_journals import JOURNALS
from tuilab.catalogue import catalog
from tuilab.catalogue.check import check
from tuilab.catalogue.check_words import check_words
from tuilab.catalogue.source import read
from tuilab.cli import subcommands
from tuilab.cli.front_page import VERBS
from tuilab.config import SETTINGS
from tuilab.doctor.ask_all import GROUPS, checks_of
from tuilab.doctor.gpu_page import IDS
from tuilab.errors import MEANINGS, ExitCode
from tuilab.record.events import Event

README = (CHECKOUT / "README.md").read_text()
CONTRIBUTING = (CHECKOUT / "CONTRIBUTING.md").read_text()
SCENARIOS = (CHECKOUT / "docs" / "writing-scenarios.md").read_text()
ARCHITECTURE = (CHECKOUT / "docs" / "architecture.md").read_text()
STABLE = (CHECKOUT / "docs" / "stability.md").read_text()
LINKED = [  # pages that link to files but whose commands no session types
    CHECKOUT / "CHANGELOG.md",
    CHECKOUT / "SECURITY.md",
    CHECKOUT / "examples" / "README.md",
    *sorted((CHECKOUT / "benchmarks").rglob("*.md")),
]
PLUMBING = {
    "record",
    "records_written",
    "close",
    "bring_over",
    "tell_holdings",
    "tell_holdings_after_failure",
}
JOINED = ["several-machines.md", "sweeps.md"]  # pages that are one session
SESSIONS = [  # test_release.py types the commands of a release, tests/fleet those on a cluster
    block
    for block in blocks()
    if block.language == "sh"
    and block.page not in ("releasing.md", *JOINED)
    and not block.needs_cluster
]
SCENARIO_GUIDE = CHECKOUT / "docs" / "guides" / "write-a-scenario.md"
SESSIONS += [whole(CHECKOUT / "docs" / "tutorial.md"), whole(SCENARIO_GUIDE), *map(joined, JOINED)]

# What is shown and not typed by the sessions below, and why.
ELSEWHERE = {
    "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e . && .venv/bin/tuilab run stability --headless":
        "tests/test_release.py runs its last part in an environment of its own",
    "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[test]' && .venv/bin/pytest": "`.ci/run` types it",
    "pip install -c constraints.txt torch --extra-index-url https://download.pytorch.org/whl/cpu": "fetches a torch",
    "pip install -c constraints.txt torch --extra-index-url https://download.pytorch.org/whl/cu126": "fetches another torch",
    "pip install -c constraints.txt -e .": "`.ci/run` types the same",
    "pip install -c constraints.txt -e '.[docs]'": "`.ci/run` types it",
    "python docs/site.py && mkdocs build --strict": "tests/test_site.py does both, in a folder of its own",
    "python -m http.server -d site": "serves until it is stopped",
    "uv tool install .": "fetches a torch",
    "uvx --from . tuilab list": "fetches a torch",
    "ray start --head --port=6379 --node-name=gpu1": "tests/fleet/conftest.py starts its clusters like this",
    "ray start --address=gpu1:6379 --node-name=gpu2": "tests/fleet/conftest.py adds nodes to its clusters like this",
    ".ci/run": "it runs these tests",
    "python -m tests.faults.soak --minutes 60 --seed 1": "takes an hour; tests/faults/test_f_soak.py runs a minute",
    '.venv/bin/pytest tests/test_docs.py -n 0 -m "slow or not slow" -k session': "it is this test",
}  # fmt: skip

# How a command exits that does not end in 0, and why.
CODES = {
    "tuilab": {2},  # no terminal; tests/tui shows it in one
    "tuilab --read-only": {2},
    "tuilab replay last": {2},
    "tuilab tune --budget 15m -- python examples/train_cnn.py": {2},  # nobody can be asked
    "tuilab compare last~1 last --fail-on regression": {
        1
    },  # they are of two scenarios: claims of the first are gone
    "tuilab compare last~1 last --fail-on slower:5%": {2},  # one of them times nothing
    "tuilab run softmax --tied 1000 --headless": {1},  # which refutes three claims
    "tuilab doctor": {0, 1, 2},  # how the box is
    "tuilab doctor --all": {0, 1, 2},
    "tuilab doctor --json > doctor.json": {0, 1, 2},
    "tuilab doctor --bundle box.tar.gz": {0, 1, 2},
    "tuilab doctor --gpu": {0, 1, 2, 3},  # whether there is a GPU
    "tuilab doctor --gpu cuda:1": {0, 1, 2, 3},
    "tuilab sweep row-reduce --set rows=20,2000 --quick": {
        0,
        1,
    },  # what a claim about time comes to is the box's affair
    "tuilab sweep row-reduce --set rows=20,100,500,2000 --quick": {0, 1},
    "ssh gpu1 tuilab attach last --headless": {0, 1},
    "tuilab run row-reduce --headless --quick": {
        0,
        1,
    },  # what a claim about time comes to is the box's affair
    "tuilab run row-reduce --rows 50 --quick": {0, 1},
    "tuilab run row-reduce --headless": {0, 1},
    "tuilab run row-reduce --rows 20 --headless": {0, 1},
    "tuilab ab --headless --arm base --arm 'bf16: -- --precision bf16' -- python examples/train_cnn.py --steps 100": {
        0,
        1,
    },
    "tuilab run ./my-idea.py --headless --quick": {0, 1},
    "tuilab run ./cat-once.py --headless --quick --plot": {0, 1},
    "tuilab run ./cat-once.py --headless": {0, 1},
    "tuilab run ./cat-once.py --parts 10 --headless": {1},  # which refutes a claim
    "tuilab ab --arm base --arm 'workers: -- --workers 4' --claim 'workers 2x base'"
    " -- python examples/train_cnn.py --steps 25 --wait 2": {
        0,
        1,
    },
    "tuilab ab --arm base --arm 'small: -- --batch 4' --measure memory --different-learning"
    " -- python examples/train_gpt.py --steps 10": {
        0,
        1,
    },
    "tuilab run ckpt-segments --headless --quick": {0, 1},
    "tuilab run loader-workers --headless --quick": {0, 1},
    "tuilab ab --arm base --arm 'two: OMP_NUM_THREADS=2' --claim 'two 1.3x base' -- python examples/train_cnn.py --steps 40": {
        0,
        1,
    },
}

SSH = """#!/bin/sh
# ssh [-t] HOST COMMAND...
[ "$1" = -t ] && shift
cd "$HOSTS/$1" || exit 255
shift
unset TUILAB_ROOT XDG_STATE_HOME
HOME=$PWD exec sh -c "$*"
"""
SCP = """#!/bin/sh
# scp -qr HOST:FOLDER COPY
exec cp -r "$HOSTS/${2%%:*}/${2#*:}" "$3"
"""


def page_name(path: Path) -> str:
    """Return the name of a page for the id of a test."""
    return path.relative_to(CHECKOUT).with_suffix("").as_posix()


@pytest.mark.slow
@pytest.mark.real_torch
@pytest.mark.timeout(2400)
@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
def test_a_session_of_the_documents_works_from_its_first_line_to_its_last(
    session: Block, recorded_runs: Path, tmp_path: Path
) -> None:
    """In an empty folder, as a newcomer would type it, on a box where a few things have run."""
    here = {"HOME": str(tmp_path), "TMUX_TMPDIR": str(tmp_path), "TUILAB_ROOT": str(recorded_runs)}
    environment = {**os.environ, **here, "PATH": f"{Path(TUILAB).parent}:{os.environ['PATH']}"}
    if "tmux " in session.text and shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")

    if "ssh " in session.text:
        make_hosts(tmp_path, recorded_runs)
        environment |= {
            "PATH": f"{tmp_path}/bin:{environment['PATH']}",
            "HOSTS": str(tmp_path / "hosts"),
        }
    (tmp_path / "examples").symlink_to(
        CHECKOUT / "examples"
    )  # where it is a clone that one stands in
    codes = {}
    for command in session.commands():
        shell = ["bash", "-o", "pipefail", "-c", command]
        done = subprocess.run(
            shell,
            capture_output=True,
            text=True,
            env=environment,
            stdin=subprocess.DEVNULL,
            timeout=1200,  # only a command that hangs needs so long, also on a slow machine
            errors="replace",
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        if done.returncode not in CODES.get(command, {0}):
            codes[command] = (done.returncode, done.stderr[-500:])
        if command == "tuilab new cat-once":
            (tmp_path / "cat-once.py").write_text(python_file(SCENARIO_GUIDE))

    assert codes == {}


def make_hosts(folder: Path, runs: Path) -> None:
    """Put stand-ins for ssh and scp into a folder: a host is a home folder on this machine, with some runs."""
    for name, text in (("ssh", SSH), ("scp", SCP)):
        path = folder / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o700)
    for host in ("gpu1", "gpu2"):
        shutil.copytree(runs, folder / "hosts" / host / ".local/state/tuilab/runs")


def test_every_command_of_the_documents_is_typed_by_a_session_or_says_why_not() -> None:
    typed = {
        command
        for session in [*SESSIONS, *sessions_on_a_cluster()]
        for command in session.commands()
    }
    shown = {
        command for block in blocks() if block.language == "console" for command in block.commands()
    }
    shown |= {command for page in PAGES for command in indented(page)}

    assert shown - typed == ELSEWHERE.keys()
    assert CODES.keys() - typed == set()


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session.name)
def test_a_file_that_is_called_like_a_scenario_is_of_the_run_before_it(session: Block) -> None:
    names = {scenario.id for scenario in catalog.load()}
    ran = ""
    for command in session.commands():
        if found := re.match(r"tuilab (?:run|sweep) ([\w-]+)", command):
            ran = found[1]
        written = re.match(r"tuilab report last -o ([\w-]+)\.", command)
        assert not written or written[1] not in names or written[1] == ran


def test_every_block_says_what_it_is() -> None:
    assert [block.name for block in blocks() if block.language not in LANGUAGES] == []


def options_of(verb: str) -> set[str]:
    """Return the options of a verb; for `run`, those of every scenario, too."""
    context = click.Context(subcommands.tuilab)
    command = subcommands.tuilab.get_command(context, verb) if verb else subcommands.tuilab
    assert command is not None, f"there is no verb {verb}"
    found = {opt for param in command.params for opt in (*param.opts, *param.secondary_opts)} | {
        "--help",
        "-h",
    }
    if verb == "run":
        found |= {
            f"--{param.name.replace('_', '-')}"
            for scenario in catalog.load()
            for param in scenario.params
        }
        found.add("--parts")  # a parameter of the scenario in the guide
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_verb_and_option_of_a_page_exists(page: Path) -> None:
    unknown = []
    for line in lines_of_tuilab(page):
        named = words(line)[1:]
        named = (
            named[: named.index("--")] if "--" in named else named
        )  # behind it stands somebody else's command
        verb = named[0] if named and re.fullmatch("[a-z]+", named[0]) else ""
        given = {word.partition("=")[0] for word in named if re.match(r"--?[a-z]", word)}
        if verb in VERBS or not verb:
            unknown += [f"{line}: {option}" for option in given - options_of(verb)]
        else:
            unknown.append(line)

    assert unknown == []


def test_every_option_that_is_named_alone_is_one_of_some_verb() -> None:
    known = set().union(*map(options_of, ["", *VERBS]))
    named = {
        word
        for page in [CHECKOUT / "README.md", *MANUAL]
        for word in re.findall(r"`(--[a-z-]+)[^`]*`", page.read_text())
    }

    assert len(named) > 10
    assert named - known == set()


def test_the_manual_shows_every_verb() -> None:
    shown = {
        words(line)[1] for page in MANUAL for line in lines_of_tuilab(page) if len(words(line)) > 1
    }

    assert VERBS.keys() - shown == set()


@pytest.mark.parametrize("page", [*PAGES, *LINKED], ids=page_name)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        target, _, heading = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (heading and heading not in anchors(path)):
            broken.append(link)

    assert broken == []


def test_every_page_of_the_manual_is_in_its_index_and_the_readme_leads_there() -> None:
    index = CHECKOUT / "docs" / "index.md"
    pages = {page.relative_to(index.parent).as_posix() for page in MANUAL}

    assert pages - {"index.md"} - set(links(index)) == set()
    assert "docs/index.md" in links(CHECKOUT / "README.md")


def test_every_page_of_the_manual_is_in_the_navigation_of_the_site() -> None:
    settings = (CHECKOUT / "mkdocs.yml").read_text()
    named = re.findall(r"(?m)^ +- [^:]+: (\S+\.md)$", settings)

    assert [page for page in named if not (CHECKOUT / page).exists()] == []
    assert {page.relative_to(CHECKOUT).as_posix() for page in PAGES} - set(named) == set()


@pytest.mark.parametrize("page", [*PAGES, *LINKED], ids=page_name)
def test_lists_and_tables_look_the_same_on_the_site_as_on_a_code_host(page: Path) -> None:
    """The site reads a list only after an empty line, nests by four spaces, and ends a cell at each `|`."""
    problems = []
    before = ""
    for line in prose(page).splitlines():
        is_item = re.match(r" *(?:[-*]|[0-9]+\.) \S", line) is not None
        is_in_list = re.match(r" *(?:[-*]|[0-9]+\.) \S|  ", before) is not None
        if re.match(r" {1,3}[-*] ", line) or (is_item and before and not is_in_list):
            problems.append(line)
        if line.startswith("|") and r"\|" in line:
            problems.append(line)
        before = line

    assert problems == []


def test_help_lists_every_exit_code_with_its_meaning() -> None:
    shown = subcommands.tuilab.get_help(click.Context(subcommands.tuilab, info_name="tuilab"))
    helped = " ".join(shown.partition("Exit codes:\n")[2].split())

    assert helped == " ".join(f"{code} {when}" for code, when in MEANINGS.items())
    assert set(MEANINGS) == set(ExitCode)


def test_the_ids_of_the_doctor_that_stay_are_those_that_it_has() -> None:
    listed = re.findall(r"`([a-z]+\.[a-z0-9_]+)`", STABLE.partition("## Ids of the doctor")[2])

    of_one_gpu = {name for names in IDS.values() for name in names}
    assert sorted(listed) == sorted(
        {name for subcommands in GROUPS for name in checks_of(subcommands)} | of_one_gpu
    )


def test_the_schemas_that_stay_are_those_that_are_written() -> None:
    written = {
        schema
        for path in (CHECKOUT / "tuilab").rglob("*.py")
        for schema in re.findall(r'"(tuilab\.[a-z-]+/[0-9]+)"', path.read_text())
    }

    assert set(re.findall(r"`(tuilab\.[a-z-]+/[0-9]+)`", STABLE)) == written


def test_every_setting_is_in_the_manual() -> None:
    box = (CHECKOUT / "docs" / "box.md").read_text()

    assert [
        key
        for key, setting in SETTINGS.items()
        if f"\n{key} = " not in box or f"`{setting.variable}`" not in box
    ] == []


def test_architecture_page_names_every_package() -> None:
    named = set(re.findall(r"`tuilab/(\w+)/`", ARCHITECTURE))
    packages = {path.parent.name for path in (CHECKOUT / "tuilab").glob("*/__init__.py")}

    assert named >= packages


def test_readme_lists_the_packages_in_import_order() -> None:
    listed = re.findall(r"(?m)^  ([a-z]+)/ ", README.partition("## The packages")[2])

    assert (
        listed == PACKAGES[1:]
    )  # the first is "shared": text, storage, scrub and the modules in tuilab/ itself


@pytest.mark.parametrize("page", [*PAGES, *LINKED], ids=page_name)
def test_every_file_that_a_page_names_exists(page: Path) -> None:
    named = re.findall(
        r"`((?:tuilab|tests|docs|scenarios|benchmarks|\.ci)/[\w./-]*)`", page.read_text()
    )

    assert [path for path in named if not (CHECKOUT / path).exists()] == []


def test_every_picture_of_the_readme_is_there_and_fetches_nothing() -> None:
    pictures = [CHECKOUT / name for name in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)]

    assert len(pictures) == 4
    assert [
        picture.name for picture in pictures if not 10_000 < picture.stat().st_size < 400_000
    ] == []
    drawn = [picture.read_text() for picture in pictures if picture.suffix == ".svg"]
    assert [
        text for text in drawn if "url(http" in text or "@import" in text or "<script" in text
    ] == []


def test_the_pictures_of_the_verdicts_follow_the_rule() -> None:
    """`python docs/intervals.py` draws them again."""
    script = runpy.run_path(str(CHECKOUT / "docs" / "intervals.py"))

    for picture in script["PICTURES"]:
        assert (CHECKOUT / "docs" / f"{picture.name}.svg").read_text() == script["draw"](picture)


def test_the_scenario_of_the_guide_has_no_findings_and_no_warnings(tmp_path: Path) -> None:
    path = tmp_path / "cat-once.py"
    path.write_text(python_file(SCENARIO_GUIDE))
    scenario = read(path)

    assert (check(scenario), check_words(scenario)) == ([], [])
    assert [claim.key for claim in scenario.claims] == ["parts", "bytes", "time"]


def test_the_guide_shows_the_findings_of_a_wrong_key(tmp_path: Path) -> None:
    path = tmp_path / "cat-once.py"
    path.write_text(python_file(SCENARIO_GUIDE).replace('lab.claim("bytes"', 'lab.claim("byte"'))

    lines = [f"{path.name}:{line}: {sentence}" for line, sentence in check(read(path))]
    assert len(lines) == 2
    assert "\n".join(lines) in SCENARIO_GUIDE.read_text()


@pytest.mark.parametrize(
    "block",
    [block for block in blocks() if block.language == "python"],
    ids=lambda block: block.name,
)
def test_every_python_block_of_the_documents_can_be_parsed(block: Block) -> None:
    ast.parse(textwrap.dedent(block.text))


def test_the_reference_names_every_call_of_the_lab() -> None:
    from tuilab import Lab

    calls = [name for name in vars(Lab) if not name.startswith("_") and name not in PLUMBING]

    assert [
        name
        for name in calls
        if not re.search(rf"`@?(?:with |for \w+ in )?lab\.{name}[(`]", SCENARIOS)
    ] == []


def test_the_command_of_the_readme_is_what_ci_runs() -> None:
    command = "python3 -m venv .venv && .venv/bin/pip install -c constraints.txt -e '.[test]' && .venv/bin/pytest"

    assert f"\n    {command}\n" in README
    assert "sed -n" in (CHECKOUT / ".ci" / "run").read_text()


def test_the_reference_names_records_that_exist() -> None:
    table = SCENARIOS.partition("## What lab offers")[2].partition("| attribute")[0]
    kinds = set()
    waiting = Event.__subclasses__()
    while waiting:
        kind = waiting.pop()
        kinds.add(kind.__struct_config__.tag)
        waiting += kind.__subclasses__()

    named = {word for word in re.findall(r"`([a-z_]+)`", table) if "_" in word}
    assert len(named) > 15
    assert named - kinds == set()


def test_every_suite_of_ci_has_tests_and_stands_in_the_guide() -> None:
    done = subprocess.run([CHECKOUT / ".ci" / "run", "nonsense"], capture_output=True, text=True)

    suites = done.stdout.partition("there are: ")[2].split()
    marked = "".join(path.read_text() for path in (CHECKOUT / "tests").rglob("*.py"))
    assert done.returncode == 2 and {"default", "lint"} < set(suites)
    assert [
        name
        for name in suites
        if name not in ("default", "lint") and f"pytest.mark.{name}" not in marked
    ] == []
    assert [name for name in suites if f"`{name}`" not in CONTRIBUTING] == []


@pytest.mark.parametrize(
    "path", [*PAGES, *(page for page in LINKED if page.parent.name != "notes")], ids=page_name
)
def test_lines_are_short_enough_to_read_in_a_terminal(path: Path) -> None:
    lines = path.read_text().splitlines()

    assert [line for line in lines if len(line) > 130 and not line.startswith("|")] == []


@pytest.fixture
def recorded_runs(root: Path) -> Path:
    """A folder of two runs that succeeded."""
    shutil.copytree(JOURNALS / "format-1", root, ignore=shutil.ignore_patterns("*-fails-*"))
    return root
