"""The catalogue: read from source text, whatever the files contain, and fast the second time."""

import itertools
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tuilab.catalogue import catalog, lesson, source
from tuilab.catalogue.scenario import Param, Scenario
from tuilab.catalogue.source import read as read_scenario
from tuilab.cli.verbs.list import describe_scenarios, render
from tuilab.errors import UsageError
from tuilab.storage import places
from tuilab.storage.files import sealed, unsealed
from tuilab.text.wrapping import flow

GOOD = '''\
"""One operator, not five hundred slices.

A slice costs a call.

## Predict
How many times faster is sum?

## Look for
- [sum-50] sum is at least 50 times faster
- [row-1] row 1 is 0.0

## Source
Here.
"""
from typing import Literal
import torch_is_not_imported


def run(
    lab: Lab,
    rows: int = 500,  # operator calls in the loop, 1..10000 (quick 100)
    *,
    lr: float = 1,
    device: Literal["auto", "cpu"] = "auto",  # where the tensors live
) -> None:
    lab.claim_ratio("sum-50", "slices/sum", at_least=50)
    for row in range(2):
        lab.claim(f"row-{row + 1}", row, equals=row)
    lab.race(slices=f, sum=g, same=1e-6, seconds=1, threads=1, device=device)
    lab.arm("two threads", f, env={"OMP_NUM_THREADS": "2"})
'''


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A cache that knows what comes with tuilab: no test needs to read all that once more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("known")))
        catalog.load()
        return Path(catalog.cache_path()).read_bytes()


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, known: bytes) -> Path:
    """The cache file of one test, which has no runs either."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("TUILAB_ROOT", str(tmp_path / "runs"))
    file = Path(catalog.cache_path())
    file.parent.mkdir(parents=True)
    file.write_bytes(known)
    return file


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A folder of scenarios with one good file."""
    folder = tmp_path / "mine"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "good.py").write_text(GOOD)
    return folder


@pytest.fixture
def no_lessons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes with tuilab: where no cache is of use, reading all that takes most of a second."""
    monkeypatch.setattr(catalog, "scenario_dirs", lambda extra=(): [*map(str, extra)])


def load(*folders: Path) -> list[Scenario]:
    """Load the scenarios of some folders, without those that come with tuilab."""
    return [
        s
        for s in catalog.load(folders)
        if any(Path(s.path).is_relative_to(folder) for folder in folders)
    ]


def test_a_scenario_is_read_from_its_source(mine: Path) -> None:
    (scenario,) = load(mine)

    assert (scenario.id, scenario.topic, scenario.path) == (
        "good",
        "memory",
        str(mine / "memory" / "good.py"),
    )
    assert scenario.title == "One operator, not five hundred slices"
    assert scenario.lesson.startswith("A slice costs a call.\n\n## Predict\n")
    assert scenario.sections == {
        "Predict": "How many times faster is sum?",
        "Look for": "- [sum-50] sum is at least 50 times faster\n- [row-1] row 1 is 0.0",
        "Source": "Here.",
    }
    assert scenario.params == (
        Param("rows", "int", 500, label="operator calls in the loop", low=1, high=10000, quick=100),
        Param("lr", "float", 1.0),
        Param("device", "choice", "auto", choices=("auto", "cpu"), label="where the tensors live"),
    )
    assert scenario.arms == ("slices", "sum", "two threads")
    assert scenario.claims == (
        ("sum-50", "sum is at least 50 times faster"),
        ("row-1", "row 1 is 0.0"),
    )
    assert scenario.error == ""


def test_the_lab_may_have_any_name(mine: Path) -> None:
    (mine / "memory" / "good.py").write_text(
        '"""T."""\ndef run(bench: Lab) -> None:\n    bench.race(a=1, b=2)\n    lab.race(c=3)\n'
    )

    assert load(mine)[0].arms == ("a", "b")


def test_of_two_parameters_on_a_line_the_last_one_has_the_comment(mine: Path) -> None:
    (mine / "memory" / "good.py").write_text(
        '"""T."""\ndef run(lab, a: int = 1, b: int = 2):  # label of b\n    pass\n'
    )

    assert [param.label for param in load(mine)[0].params] == ["", "label of b"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("", "the function run(lab, ...) is missing"),
        ("def run(lab): pass", "line 1: the docstring is missing; its first line is the title"),
        ('"""T."""\nasync def run(lab): pass', "the function run(lab, ...) is missing"),
        ('"""T."""\ndef run(): pass', "line 2: run has no parameter lab; write run(lab, ...)"),
        (
            '"""T."""\ndef run(lab, *rest): pass',
            "line 2: run has *args, **kwargs or /; use plain parameters",
        ),
        (
            '"""T."""\ndef run(lab, a: int): pass',
            "line 2: a: the default is missing; write one after =",
        ),
        (
            '"""T."""\ndef run(lab, a=3): pass',
            "line 2: a: the type missing is not supported; use int, float, bool, str or Literal[...]",
        ),
        (
            '"""T."""\ndef run(lab,\n  a: list[int] = []): pass',
            "line 3: a: the type list[int] is not supported; use int, float, bool, str or Literal[...]",
        ),
        (
            '"""T."""\ndef run(lab, a: int = f()): pass',
            "line 2: a: f() is not a literal; write a number, True, False or a text",
        ),
        (
            '"""T."""\ndef run(lab, a: str = None): pass',
            "line 2: a: None is not a literal; write a number, True, False or a text",
        ),
        (
            '"""T."""\ndef run(lab, a: int = "x"): pass',
            'line 2: a: "x" is not a whole number (default x)',
        ),
        (
            '"""T."""\ndef run(lab, a: float = 1e999): pass',
            'line 2: a: "inf" is not a number (default inf)',
        ),
        (
            '"""T."""\ndef run(lab, a: Literal["x"] = "y"): pass',
            'line 2: a: "y" is not one of x (default y)',
        ),
        ('"""T."""\n\ndef run(lab:\n', "line 3: '(' was never closed"),
        ('"""T."""\nx = \0', "line 2: the file has a null byte"),
        (b'"""T."""\n\n# \xff', "line 3: the file is not UTF-8; save it as UTF-8"),
        ("#" * 1024 * 1024 + "#", "cannot be read: it is larger than 1024 KiB"),
        ("-" * 200_000 + "1", "its code is nested too deeply to be read; use shorter expressions"),
        ("1" + "+1" * 300_000, "its code is nested too deeply to be read; use shorter expressions"),
        (
            '"""T\\ud800."""\ndef run(lab): pass',
            "cannot be read as Python: 'utf-8' codec can't encode",
        ),
        (
            '"""T."""\ndef run(lab):\n  lab.arm(f"{0x' + "f" * 9000 + '}")',
            "cannot be read as Python: Exceeds the limit (4300",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_listed_with_the_reason_and_hurts_no_other(
    mine: Path, source: str | bytes, reason: str
) -> None:
    (mine / "memory" / "bad.py").write_bytes(
        source if isinstance(source, bytes) else source.encode()
    )

    bad, good = load(mine)

    assert bad.error.startswith(reason)
    assert (bad.id, bad.topic, good.error) == ("bad", "memory", "")


def test_what_is_no_regular_file_is_not_waited_for(mine: Path) -> None:
    os.mkfifo(mine / "memory" / "fifo.py")
    (mine / "memory" / "lost.py").symlink_to("nowhere")
    (mine / "memory" / "null.py").symlink_to("/dev/zero")

    errors = {scenario.id: scenario.error for scenario in load(mine)}

    assert errors == {
        "fifo": "cannot be read: it is not a regular file",
        "good": "",
        "lost": "cannot be read: No such file or directory",
        "null": "cannot be read: it is not a regular file",
    }


def test_hidden_files_private_files_and_deeper_folders_are_passed_over(mine: Path) -> None:
    for name in (".hidden.py", "_helper.py", "notes.txt"):
        (mine / "memory" / name).write_text("not python")
    (mine / "memory" / "deeper").mkdir()
    (mine / "memory" / "deeper" / "x.py").write_text("not python")

    assert [scenario.id for scenario in load(mine)] == ["good"]


@pytest.mark.parametrize(
    "name", ["all.py", "two words.py", "\x1b[2J.py", "naïve.py", "x" * 61 + ".py", "-h.py"]
)
def test_a_name_that_would_not_do_as_an_id_is_refused(mine: Path, name: str) -> None:
    (mine / "memory" / name).write_text(GOOD)

    errors = [scenario.error for scenario in load(mine) if scenario.id != "good"]

    assert errors == [
        "its file name cannot be a scenario name; use up to 60 letters, digits, - and _, but not `all`"
    ]


@given(
    st.binary(max_size=200)
    | st.binary(max_size=80).map(lambda junk: GOOD[:300].encode() + junk + GOOD[300:].encode())
)
def test_no_content_of_a_file_raises(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "any.py")
        path.write_bytes(content)

        scenario = read_scenario(path)

    assert scenario.error or scenario.title


def test_an_id_that_is_taken_names_both_files(mine: Path) -> None:
    (mine / "basics").mkdir()
    (mine / "basics" / "good.py").write_text(GOOD)

    first, second = load(mine)

    assert (first.topic, first.error) == ("basics", "")
    assert (
        second.error
        == f"{mine}/memory/good.py has the same name as {mine}/basics/good.py; rename one"
    )
    assert catalog.find([first, second], "good") == [first]


def test_topics_have_the_order_of_the_course_and_unknown_ones_follow(mine: Path) -> None:
    for topic in ("zoo", "distributed", "basics", "art"):
        (mine / topic).mkdir()
        (mine / topic / f"in-{topic}.py").write_text(GOOD)

    assert [scenario.topic for scenario in load(mine)] == [
        "basics",
        "memory",
        "distributed",
        "art",
        "zoo",
    ]


def test_a_file_beside_the_topics_has_its_folders_name_as_topic(mine: Path) -> None:
    (mine / "loose.py").write_text(GOOD)

    assert [(scenario.topic, scenario.id) for scenario in load(mine)] == [
        ("memory", "good"),
        ("mine", "loose"),
    ]


def test_a_folder_given_twice_is_listed_once(mine: Path) -> None:
    assert [scenario.error for scenario in load(mine, mine / "memory", mine)] == [""]


def test_a_folder_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(
        UsageError, match="nowhere is not a folder; --scenarios takes a folder with scenario files"
    ):
        catalog.load([tmp_path / "nowhere"])


def test_scenarios_are_found_by_id_topic_both_all_and_path(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = load(mine)
    monkeypatch.chdir(mine / "memory")

    assert [
        catalog.find(listed, name) for name in ("good", "memory/good", "memory", "all", "./good.py")
    ] == [listed] * 5


@pytest.mark.usefixtures("no_lessons")
def test_an_unknown_name_that_lessons_speak_of_gets_the_first_three_of_them(mine: Path) -> None:
    for name in "abcd":
        (mine / "memory" / f"{name}.py").write_text(
            GOOD.replace("A slice costs", "Foreach takes a call;")
        )

    with pytest.raises(UsageError) as caught:
        catalog.find(catalog.load([mine]), "foreach", [mine])
    words = "no scenario named foreach; scenarios that mention it: a, b, c; `tuilab list` lists all scenarios"
    assert str(caught.value) == words


@pytest.mark.usefixtures("no_lessons")
def test_a_part_of_a_word_speaks_of_nothing(mine: Path) -> None:
    with pytest.raises(UsageError) as caught:
        catalog.find(catalog.load([mine]), "lic", [mine])  # as in slice
    assert "named lic; there are good, memory" in str(caught.value)


def test_an_unknown_name_gets_a_suggestion_and_the_next_step(mine: Path) -> None:
    with pytest.raises(UsageError) as caught:
        catalog.find(load(mine), "godo")

    assert (
        str(caught.value)
        == "no scenario named godo; did you mean good? `tuilab list` lists all scenarios"
    )


@pytest.mark.parametrize(
    "name", ["idea", "w/idea"]
)  # as `tuilab runs` tells a file of the folder w
def test_the_name_of_a_file_that_is_here_gets_its_path(
    mine: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    listed = load(mine)
    monkeypatch.chdir(mine)
    Path("idea.py").write_text(GOOD)

    with pytest.raises(
        UsageError, match=f"named {name}; for the file in this folder, write ./idea.py; "
    ):
        catalog.find(listed, name)


def test_a_path_that_leads_nowhere_is_a_usage_error() -> None:
    with pytest.raises(
        UsageError, match=r"\./nowhere\.py cannot be read: No such file or directory; `tuilab list`"
    ):
        catalog.find([], "./nowhere.py")


def test_a_path_to_a_broken_file_gives_the_reason(tmp_path: Path) -> None:
    (tmp_path / "bad.py").write_text("(")

    assert catalog.find([], str(tmp_path / "bad.py"))[0].error == "line 1: '(' was never closed"


# ---- the cache


def test_what_is_cached_is_what_was_read(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = load(mine)
    monkeypatch.setattr(source, "read", None)

    assert load(mine) == before


def test_an_edit_is_seen(mine: Path) -> None:
    load(mine)
    (mine / "memory" / "good.py").write_text(GOOD.replace("One operator", "Two operators"))

    assert load(mine)[0].title == "Two operators, not five hundred slices"


def test_an_edit_that_keeps_size_and_time_is_seen(mine: Path) -> None:
    load(mine)
    path = mine / "memory" / "good.py"
    before = path.stat()
    path.write_text(GOOD.replace("One operator", "Two operator"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert load(mine)[0].title == "Two operator, not five hundred slices"


def test_a_deleted_file_is_not_listed(mine: Path) -> None:
    load(mine)
    (mine / "memory" / "good.py").unlink()

    assert load(mine) == []


def test_two_folders_share_the_cache(
    mine: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "second.py").write_text(GOOD.replace("One", "Another"))
    load(mine)
    load(other)
    monkeypatch.setattr(source, "read", None)

    assert [scenario.title[:7] for scenario in load(mine, other)] == ["One ope", "Another"]


@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "noise", "foreign", "folder", "fifo"])
def test_a_broken_cache_is_rebuilt(no_lessons: None, mine: Path, cache: Path, harm: str) -> None:
    before = load(mine)
    content = cache.read_bytes()
    cache.unlink()
    match harm:
        case "folder":
            cache.mkdir()
        case "fifo":
            os.mkfifo(cache)
        case _:
            broken = {
                "cut": content[:-9],
                "flip": content.replace(b"One", b"Won"),
                "empty": b"",
                "noise": b"\xff" * 999,
            }
            cache.write_bytes({**broken, "foreign": with_foreign_entries(content)}[harm])

    assert load(mine) == before


def with_foreign_entries(content: bytes) -> bytes:
    """Return a cache that is whole, of this tuilab and about the same files, with something else in it than scenarios."""
    document = json.loads(unsealed(content))
    odd = itertools.cycle([7, [], ["id"], {"id": 1}, None, "none"])
    document["files"] = {path: [stamp, next(odd)] for path, (stamp, _) in document["files"].items()}
    return sealed(json.dumps(document).encode())


def test_a_cache_of_another_version_is_not_used(
    mine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    load(mine)
    monkeypatch.setattr(catalog, "__version__", "99")
    monkeypatch.setattr(source, "read", lambda path: Scenario("new", "memory", str(path)))

    assert [scenario.id for scenario in load(mine)] == ["new"]


def test_the_cache_is_private_and_leaves_nothing_beside_it(mine: Path, cache: Path) -> None:
    load(mine)

    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert os.listdir(cache.parent) == [cache.name]


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null"])
def test_without_a_place_for_the_cache_all_goes_on(
    no_lessons: None, mine: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", place)

    assert [load(mine)[0].id, load(mine)[0].id] == ["good", "good"]


@pytest.mark.parametrize("given_folder", ["/some/where", "", "relative"])
def test_the_cache_is_where_platformdirs_has_it(
    monkeypatch: pytest.MonkeyPatch, given_folder: str
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", given_folder)

    assert places.cache_folder() == platformdirs.user_cache_dir("tuilab")


# ---- the list


def test_the_list_shows_topics_marks_titles_and_reasons(mine: Path) -> None:
    (mine / "basics").mkdir()
    (mine / "basics" / "broken.py").write_text("(")

    assert render(load(mine), {"basics": "tensors"}, {"good": "✓"}) == (
        "basics: tensors\n"
        "  ! broken  cannot be used: line 1: '(' was never closed\n"
        "\n"
        "memory\n"
        "  ✓ good    One operator, not five hundred slices"
    )


def test_in_a_terminal_titles_are_wrapped_beside_their_names(mine: Path) -> None:
    assert render(load(mine), {}, {}, width=44).splitlines()[1:] == [
        "    good  One operator, not five hundred",
        "          slices",
    ]


def test_an_empty_list_says_what_to_do() -> None:
    assert render([], {}, {}) == "no scenarios found; write one: tuilab new NAME"


def test_hostile_titles_cannot_steer_the_terminal() -> None:
    listed = render(
        [Scenario("x", "\x1b[31mtopic", "/x.py", title="\x1b]0;owned\x07\u202e")],
        {"\x1b[31mtopic": "\x1b[2J"},
        {},
    )

    assert "\x1b" not in listed
    assert "\u202e" not in listed


def test_the_list_as_json_has_what_a_program_may_know(mine: Path) -> None:
    first, *_ = json.loads(json.dumps(describe_scenarios(load(mine), {"good": "SUPPORTED"})))

    assert (
        " ".join(sorted(first))
        == "arms builds_on claims error is_timed last_verdict params path scenario title topic"
    )
    assert first["params"][0]["high"] == 10000
    assert first["last_verdict"] == "SUPPORTED"


def test_listing_imports_nothing_heavy(mine: Path) -> None:
    code = "\n".join([
        "import sys",
        "from tuilab.cli.verbs.list import command",
        f"command.main(['--scenarios', {str(mine)!r}], standalone_mode=False)",
        "heavy = {'torch', 'textual', 'numpy', 'msgspec', 'rich', 'platformdirs', 'psutil', 'plotext', 'scipy'}",
        "print('imported:', *sorted(heavy & set(sys.modules)))",
    ])  # fmt: skip

    listed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout

    assert "One operator, not five hundred slices" in listed
    assert listed.endswith("imported:\n")


def test_every_scenario_that_comes_with_tuilab_can_be_used() -> None:
    assert [(scenario.id, scenario.error) for scenario in catalog.load() if scenario.error] == []


@pytest.mark.parametrize("unit", ["a\n", " ", "refutes: ", "- a\n", "漢\n"])
def test_a_paragraph_is_put_together_once_however_many_lines_it_has(
    monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    """To add each line to what there is takes the square of their number."""
    seen: list[str] = []

    def counted(text: str) -> str:
        seen.append(text)
        return flow(text)

    monkeypatch.setattr(lesson, "flow", counted)

    lesson.blocks("a" + unit * (60_000 // len(unit)))
    assert sum(map(len, seen)) <= 121_000
