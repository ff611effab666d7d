"""The check for authors: each sentence appears when its fault is there, and only then."""

import inspect
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tuilab.catalogue import catalog
from tuilab.catalogue.check import check
from tuilab.catalogue.check_claims import TAKES
from tuilab.catalogue.check_guide import check_guide
from tuilab.catalogue.check_words import check_words
from tuilab.catalogue.checked_file import CheckFinding
from tuilab.catalogue.lesson import notes_apart
from tuilab.catalogue.source import read as read_scenario
from tuilab.cli.verbs import show as show_verb
from tuilab.cli.verbs.authors import check as check_verb
from tuilab.cli.verbs.authors import new as new_verb
from tuilab.errors import CannotRecord, UsageError

RULE = "a-z, 0-9 and -, a letter first, 40 at most"
GOOD = '''\
"""One operator, not five hundred slices.
In practice: use sum.
## Predict
How many times faster is sum?

## Look for
- [sum-50] `sum` is at least 50 times faster
  than slicing.
- [row-1] row 1 is 1.0

## Try next
`--row-count 5`: the loop is short.
refutes: row-1

## Source
Here.
"""

import torch
from tuilab import Lab


def by_index(x):
    return x


def by_sum(x):
    return x.sum(0)


def run(
    lab: Lab,
    row_count: int = 500,  # operator calls, 1..10000
) -> None:
    lab.claim_ratio("sum-50", "slices/sum", at_least=50, answers=True)
    lab.claim(f"row-{row_count}", 1, equals=1)
    lab.race(slices=lambda: by_index(x), sum=lambda: by_sum(x))
    lab.log(1, loss=2)
'''


def findings(tmp_path: Path, source: str) -> list[CheckFinding]:
    path = tmp_path / "mine.py"
    path.write_text(source)
    return check(read_scenario(path))


def test_nothing_is_said_about_a_good_scenario(tmp_path: Path) -> None:
    assert findings(tmp_path, GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "finding"),
    [
        ("## Predict", "## Guess", (1, "the section ## Predict is missing or empty; write it")),
        ("Here.", "", (1, "the section ## Source is missing or empty; write it")),
        (
            "How many times faster is sum?",
            "Is sum faster?",
            (3, 'Predict has no question with a number as its answer; ask "How many times ...?"'),
        ),
        (
            "How many times faster is sum?",
            "How many times faster it is.",
            (3, 'Predict has no question with a number as its answer; ask "How many times ...?"'),
        ),
        ("`--row-count 5`", "`--rows 5`", (11, "Try next names no parameter of run; write --row-count or another")),
        ("- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- [fun] it is fun\n",
         (10, "nothing claims the key [fun]; add lab.claim or lab.claim_ratio, or remove the bullet")),
        ("- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- it is fun\n",
         (10, 'this bullet has no key; write "- [a-key] it is fun", and claim it by that key')),
        ("- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- [row-1] again\n",
         (9, "2 bullets have the key [row-1]; give each bullet its own key")),
        ("lab.log(1, loss=2)\n", 'lab.log(1, loss=2)\n    lab.claim("fun", True)\n',
         (39, "no bullet under Look for has the key [fun]; add the bullet, or correct the key")),
        ('claim_ratio("sum-50", "slices/sum"', 'claim("sum-50", ratio="slices/sum"',
         (35, "lab.claim takes no ratio; for two arms of a race, use lab.claim_ratio(key, ratio, ...)")),
        ("- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- [fun]it is fun\n",
         (10, "there is no space after [fun]; add a space, so that it is read as a key")),
        ("- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- [fun]\n",
         (10, "the key [fun] has no sentence; write the claim after it")),
        ("- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- [row-{n}] row\n",
         (10, f"[row-{{n}}] is not a key ({RULE}); write a key instead, and claim it by that key")),
        ("- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- [row-2] row 1 is 1.0.\n",
         (10, "another bullet has the same sentence; give each claim its own sentence")),
        ("lab.log(1, loss=2)\n", 'lab.log(1, loss=2)\n    lab.claim("sum-50", lacks="time")\n',
         (39, "the key [sum-50] is claimed twice; make each claim once in a run")),
        ("lab.log(1, loss=2)\n", 'lab.log(1, loss=2)\n    if lab:\n        lab.claim_ratio(key="sum-50", ratio="a/b")\n',
         (40, "the key [sum-50] is claimed twice; make each claim once in a run")),
        ('1, equals=1)', '1, equals=1, margin=0.1)',
         (36, "lab.claim takes no margin; for two arms of a race, use lab.claim_ratio(key, ratio, ...)")),
        ('1, equals=1)', '1, equal=1, margins=2)', (36, "lab.claim takes no equal and no margins")),
        (", answers=True", "", (3, "no claim answers Predict; add answers= to the one that measures the number")),
        ("1, equals=1)", "1, equals=1, answers=1)", (36, "line 35 already answers Predict; use answers= in one claim only")),
        ('at_least=50,', 'at_least=50, tolerance=2,', (35, "lab.claim_ratio takes no tolerance")),
        ("    lab.claim_ratio(", "    with lab.memory('race'):\n        lab.race(other=len, sum=len)\n    lab.claim_ratio(",
         (37, "sum were raced before this claim; claim first, then measure")),
        ('"slices/sum"', '"same/sum"',
         (35, "same is a parameter of lab.race, and cannot be the name of an arm; give the arm another name")),
        ("slices=lambda: by_index(x)", "slices=lambda: lambda: by_index(x)",
         (37, "slices returns a function, so only its creation is timed; add factories=True")),
        ("refutes: row-1", "refutes: the row, row-1",
         (13, f'"the row" after refutes: is not a key ({RULE}); write keys with commas between them')),
        ("refutes: row-1", "refutes: Row-1.",
         (13, f'"Row-1" after refutes: is not a key ({RULE}); write keys with commas between them')),
        ("refutes: row-1", "refutes: sum-50",
         (13, "Try next refutes [sum-50], which is about time, so the result depends on the machine; describe it in words")),
        ("`--row-count 5`", "refutes: row-1\n`--row-count 5`",
         (12, "refutes: comes before any change; write it after a `--option`")),
        ("refutes: row-1", "refutes: row-1, row-7",
         (13, "Try next refutes [row-7], but no bullet under Look for has this key; correct the key, or add the bullet")),
        ('lab.log(1, loss=2)\n', 'lab.log(1, loss=2)\n    lab.claim(text, 1, equals=1)\n',
         (39, "the key of this claim is not a literal; write it as a literal string")),
        ("  # operator calls, 1..10000", "", (33, "row_count has no label; describe it in a comment after it")),
        ("  # operator calls, 1..10000", "  # 1..10000", (33, "row_count has no label; describe it in a comment after it")),
        ("calls, 1..10000", "calls 1..10000 of them",
         (33, "the comment of row_count has an unclear range or quick value; end it for example with 1..100 (quick 5)")),
        ("lab: Lab", "lab", (31, "lab has no type; write lab: Lab")),
        (" -> None", "", (31, "run has no return type; write -> None")),
        ("lab.log(1, loss=2)", "pass",
         (31, "the scenario draws no curve and no picture; add lab.log, lab.image or lab.memory(timeline=True)")),
        ("return x\n", "return x.to(torch.cuda.current_device())\n",
         (24, "torch.cuda is used directly; use lab.device() and torch.get_device_module(device)")),
        ("import torch\n", "import torch.cuda.amp\n",
         (19, "torch.cuda is used directly; use lab.device() and torch.get_device_module(device)")),
        ("import torch\n", "from torch import nn, cuda\n",
         (19, "torch.cuda is used directly; use lab.device() and torch.get_device_module(device)")),
        ("import torch\n", "from torch.cuda import Event\n",
         (19, "torch.cuda is used directly; use lab.device() and torch.get_device_module(device)")),
        ("by_sum(x):", "by_sum(x, dim):",
         (37, "the arms take different numbers of parameters (slices 1, sum 2); give them the same shape")),
        ("    lab.claim(f", "    @lab.once\n    def exact():\n        lab.race(a=by_index, b=by_sum)\n    lab.claim(f",
         (38, "lab.race cannot be called in a part that runs once; call it after that part")),
        ("    lab.claim_ratio(", "    @lab.once\n    def exact():\n        lab.claim_ratio(",
         (37, "lab.claim_ratio cannot be called in a part that runs once; call it after that part")),
        ("    lab.claim(f", "    @lab.once()\n    def exact():\n        pass\n    lab.claim(f",
         (36, "lab.once is a decorator; write @lab.once above a function, without parentheses")),
        ("    lab.claim(f", "    with lab.once:\n        pass\n    lab.claim(f",
         (36, "lab.once is a decorator; write @lab.once above a function, without parentheses")),
        ("    lab.claim(f", "    with lab.once():\n        pass\n    lab.claim(f",
         (36, "lab.once is a decorator; write @lab.once above a function, without parentheses")),
        ("    lab.claim(f", "    @lab.once\n    def exact(x):\n        lab.text(x)\n    lab.claim(f",
         (37, "exact runs right where it is defined, so it takes no parameters; use the names of run inside it")),
        ("1, equals=1)", '1, equals=1, at={"rows": 500})',
         (36, "at= names rows, which is not a parameter of run; there are row_count")),
        ("1, equals=1)", '1, equals=1, at={"row_count": [5, 50]})',
         (36, "at= leaves out the default of row_count, so a run with defaults does not test this claim; add 500 to at=")),
        ("1, equals=1)", '1, equals=1, at={"row_count": 500})',
         (13, "Try next changes row_count to refute [row-1], but at= limits this claim to other values; "
              "leave row_count out of at=")),
        ("500,", "None,", (33, "row_count: None is not a literal; write a number, True, False or a text")),
    ],
)  # fmt: skip
def test_each_fault_has_its_line_and_sentence(
    tmp_path: Path, old: str, new: str, finding: tuple[int, str]
) -> None:
    assert old in GOOD

    assert findings(tmp_path, GOOD.replace(old, new, 1)) == [finding]


@pytest.mark.parametrize("word", ["Row-2", "row_2", "röw", " ", "", "2-rows", "a" * 41, "1, 2"])
def test_a_bullet_whose_key_is_none_is_told_the_rule(tmp_path: Path, word: str) -> None:
    source = GOOD.replace("- [row-1] row 1 is 1.0\n", f"- [row-1] row 1 is 1.0\n- [{word}] row 2\n")

    (found,) = findings(tmp_path, source)
    assert found == (
        10,
        f"[{word}] is not a key ({RULE}); write a key instead, and claim it by that key",
    )


def test_factories_are_followed_to_the_functions_that_they_make(tmp_path: Path) -> None:
    arms = "slices=lambda: lambda: by_index(x), sum=lambda: lambda: by_sum(x), factories=True"
    source = GOOD.replace("slices=lambda: by_index(x), sum=lambda: by_sum(x)", arms)

    assert findings(tmp_path, source) == []
    (found,) = findings(tmp_path, source.replace("by_sum(x):", "by_sum(x, dim):"))
    assert found.sentence.startswith(
        "the arms take different numbers of parameters (slices 1, sum 2)"
    )


LOOP = """for key, got in [("row-1", 1), ("row-2", 2)]:
        lab.claim(key, got, equals=1)"""
LOOPED = GOOD.replace('lab.claim(f"row-{row_count}", 1, equals=1)', LOOP).replace(
    "- [row-1] row 1 is 1.0\n", "- [row-1] row 1 is 1.0\n- [row-2] row 2 is 1.0\n"
)


def test_claims_in_a_loop_may_have_their_keys_from_its_head(tmp_path: Path) -> None:
    assert findings(tmp_path, LOOPED) == []
    assert findings(tmp_path, LOOPED.replace('("row-2", 2)', '("row-3", 2)')) == [
        (
            10,
            "nothing claims the key [row-2]; add lab.claim or lab.claim_ratio, or remove the bullet",
        )
    ]


@pytest.mark.parametrize(
    "body",
    [
        'if row_count:\n        lab.claim("sum", 1, equals=1)\n    else:\n        lab.claim("sum", lacks="rows")',
        'if not row_count:\n        lab.claim("sum", lacks="rows")\n        return\n    lab.claim("sum", 1, equals=1)',
        'try:\n        lab.claim("sum", 1 / row_count)\n    except ZeroDivisionError:\n        lab.claim("sum", lacks="rows")',
    ],
)
def test_a_key_may_be_claimed_on_several_ways_through_the_code(tmp_path: Path, body: str) -> None:
    source = GOOD.replace("lab.log(1, loss=2)", f"lab.log(1, loss=2)\n    {body}").replace(
        "\n## Try", "- [sum] once\n\n## Try"
    )

    assert findings(tmp_path, source) == []


def test_the_check_knows_the_arguments_of_every_call_that_claims() -> None:
    from tuilab import Lab

    calls = {name: inspect.signature(getattr(Lab, name)).parameters for name in TAKES}
    assert {name: {*list(found)[1:]} - {"old"} for name, found in calls.items()} == TAKES


def test_a_parameter_with_the_name_of_an_option_is_found(tmp_path: Path) -> None:
    source = GOOD.replace("row_count", "repeat").replace("row-count", "repeat")

    assert findings(tmp_path, source) == [
        (33, "repeat is an option of tuilab run itself; choose another name")
    ]


def test_a_scenario_without_a_claim_is_told_so(tmp_path: Path) -> None:
    source = "\n".join(line for line in GOOD.splitlines() if "lab.claim" not in line)

    assert (31, "the scenario makes no claim; add lab.claim or lab.claim_ratio") in findings(
        tmp_path, source
    )


@pytest.mark.parametrize("where", ["bullets", "calls"])
def test_very_many_claims_are_not_held_against_each_other(tmp_path: Path, where: str) -> None:
    """Of 20,000 that would take hours."""
    source = GOOD
    if where == "bullets":
        source = GOOD.replace(
            "\n\n## Try next",
            "".join(f"\n- [c{at}] it is {at}" for at in range(200)) + "\n\n## Try next",
        )
    else:
        source += "".join(f'    lab.claim("c{at}", True)\n' for at in range(200))

    assert sentences(tmp_path, source) == [
        "there are 202 claims, too many to check; use at most 200"
    ]


def test_long_scenario_has_no_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, GOOD.replace("return x\n", "return x\n" + "\n" * 500, 1)) == []


def test_a_file_that_cannot_be_read_is_one_finding(tmp_path: Path) -> None:
    assert findings(tmp_path, '"""T."""\n\n(') == [(3, "'(' was never closed")]
    assert check(read_scenario(tmp_path / "nowhere.py")) == [
        (1, "cannot be read: No such file or directory")
    ]


def test_the_scenarios_that_come_with_tuilab_lack_nothing() -> None:
    assert [
        (scenario.id, finding) for scenario in catalog.load() for finding in check(scenario)
    ] == []


def test_every_lesson_of_tuilab_names_its_source_with_an_address() -> None:
    sources = {scenario.id: scenario.sections["Source"] for scenario in catalog.load()}

    assert [id for id, source in sources.items() if "https://" not in source] == []
    assert [id for id, source in sources.items() if re.search(r"\b00[0-9]\b", source)] == []


# ---- the verbs


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)


def test_check_prints_path_line_and_sentence_and_returns_1(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.replace("lab: Lab", "lab"))

    done = CliRunner().invoke(check_verb.command, ["./mine.py"], standalone_mode=False)

    assert done.stdout == "mine.py:31: lab has no type; write lab: Lab\n"
    assert done.stderr == "1 finding in 1 scenario\n"
    assert done.return_value == 1


def test_check_takes_several_names_and_looks_at_each_scenario_once(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.replace("lab: Lab", "lab"))
    (tmp_path / "other.py").write_text(GOOD)

    done = CliRunner().invoke(
        check_verb.command, ["./mine.py", "./other.py", "./mine.py"], standalone_mode=False
    )

    assert done.stdout == "mine.py:31: lab has no type; write lab: Lab\n"
    assert (done.stderr, done.return_value) == ("1 finding in 2 scenarios\n", 1)


def test_check_returns_0_when_nothing_is_missing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD)

    done = CliRunner().invoke(check_verb.command, ["./mine.py"], standalone_mode=False)

    assert (done.stdout, done.stderr, done.return_value) == ("", "0 findings in 1 scenario\n", 0)


def test_warnings_name_line_and_sentence_and_do_not_fail_the_check(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD.replace("Here.", "Of the papers this is the first."))

    done = CliRunner().invoke(check_verb.command, ["./mine.py"], standalone_mode=False)

    assert done.stdout == (
        'mine.py:16: warning: "Of the papers this is the first.": '
        'start with "if", "when" or the thing that acts, not with "Of"\n'
    )
    assert (done.stderr, done.return_value) == ("0 findings, 1 warning in 1 scenario\n", 0)


def test_warnings_follow_the_findings_and_leave_the_exit_code_to_them(tmp_path: Path) -> None:
    source = GOOD.replace("Here.", "Of the papers this is the first.").replace("lab: Lab", "lab")
    (tmp_path / "mine.py").write_text(source)

    done = CliRunner().invoke(check_verb.command, ["./mine.py"], standalone_mode=False)

    assert [line.split()[0] for line in done.stdout.splitlines()] == ["mine.py:31:", "mine.py:16:"]
    assert (done.stderr, done.return_value) == ("1 finding, 1 warning in 1 scenario\n", 1)


def test_check_of_everything_shows_only_warnings_about_own_scenarios(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, ours = tmp_path / "own", tmp_path / "tuilab"
    for folder in (own, ours):
        folder.mkdir()
        (folder / f"of-{folder.name}.py").write_text(
            GOOD.replace("Here.", "Of the papers this is the first.")
        )
    monkeypatch.setattr(catalog, "scenario_dirs", lambda extra=(): [str(ours), str(own)])

    done = CliRunner().invoke(check_verb.command, [], standalone_mode=False)
    named = CliRunner().invoke(check_verb.command, ["of-tuilab"], standalone_mode=False)

    assert [line.partition(" ")[0] for line in done.stdout.splitlines()] == ["own/of-own.py:16:"]
    assert done.stderr == "0 findings, 1 warning in 2 scenarios\n"
    assert (named.stderr, named.return_value) == ("0 findings, 1 warning in 1 scenario\n", 0)


def test_a_new_scenario_passes_the_check_and_is_short(tmp_path: Path) -> None:
    done = CliRunner().invoke(new_verb.command, ["my-idea"], standalone_mode=False)
    path = tmp_path / "my-idea.py"

    assert done.stdout == (
        "wrote my-idea.py; run it: tuilab run ./my-idea.py\n"
        "see it on the screens: tuilab --scenarios .; "
        "to see it always, add this folder to scenarios in the file that `tuilab config path` prints\n"
    )
    assert check(read_scenario(path)) == []
    assert check_words(read_scenario(path)) == []
    assert check_guide(read_scenario(path)) == []
    assert 25 <= len(path.read_text().splitlines()) <= 50


def test_new_overwrites_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine.py").symlink_to(tmp_path / "elsewhere.py")

    with pytest.raises(UsageError, match=r"mine\.py already exists; choose another name"):
        new_verb.write("mine", tmp_path)
    assert not (tmp_path / "elsewhere.py").exists()


@pytest.mark.parametrize(
    "name", ["", "Mine", "1st", "../up", "a b", "all", "a" * 61, "mine.py", "\x1b[2J", "mine\n"]
)
def test_new_refuses_a_bad_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(
        UsageError,
        match="cannot be the name of a scenario; use up to 60 of a-z, 0-9 and -, with a letter first",
    ):
        new_verb.write(name, tmp_path)


def test_new_says_where_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(
        CannotRecord, match="No such file or directory; name another folder with --dir"
    ):
        new_verb.write("mine", tmp_path / "nowhere")


def test_show_has_lesson_form_claims_arms_and_source(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(GOOD)

    shown = (
        CliRunner()
        .invoke(show_verb.command, ["./mine.py", "--source"], standalone_mode=False)
        .stdout
    )

    assert (
        "- [sum-50] `sum` is at least 50 times faster than slicing.\n- [row-1] row 1 is 1.0\n\n## Try next\n"
        in shown
    )
    assert "--row-count  a whole number, 1..10000 (default 500)\n    operator calls\n" in shown
    assert "## Claims" not in shown  # they stand under Look for
    assert "## Arms\nslices, sum\n" in shown
    assert shown.endswith(GOOD)


def test_show_wraps_paragraphs_and_items_and_keeps_what_is_indented() -> None:
    lesson = "one two three\nfour\n\n- five six\n  seven eight\n- nine\n## Heading on its line\nten\n\n    code   as it is"

    assert show_verb.wrap_text(lesson, 12) == (
        "one two\nthree four\n\n- five six\n  seven\n  eight\n- nine\n## Heading on its line\nten\n\n    code   as it is"
    )


def test_show_has_what_a_change_refutes_on_a_line_of_its_own() -> None:
    lesson = "`--rows 5`: few,\nso slow; refutes: sum,\nspread\n`--cols 9`: wide\nrefutes: sum\nall"

    assert show_verb.wrap_text(notes_apart(lesson), 60).splitlines() == [
        "`--rows 5`: few, so slow",
        "refutes: sum, spread",
        "`--cols 9`: wide",
        "refutes: sum",
        "all",
    ]


def test_show_cannot_be_steered_by_a_scenario(tmp_path: Path) -> None:
    hostile = GOOD.replace("One operator", r"One \x1b[2J operator").replace(
        "operator calls", "\x9b31m"
    )
    (tmp_path / "mine.py").write_text(hostile)

    shown = (
        CliRunner()
        .invoke(show_verb.command, ["./mine.py", "--source"], standalone_mode=False)
        .stdout
    )

    assert "\x1b" not in shown
    assert "\x9b" not in shown


def test_show_of_a_broken_scenario_gives_the_reason(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("(")

    shown = CliRunner().invoke(show_verb.command, ["./mine.py"], standalone_mode=False).stdout

    assert shown.endswith("/mine.py\ncannot be used: line 1: '(' was never closed\n")


def test_a_timeline_of_memory_is_a_live_series(tmp_path: Path) -> None:
    timeline = GOOD.replace("lab.log(1, loss=2)", 'lab.memory("forward", timeline=True)', 1)

    assert findings(tmp_path, timeline) == []


def test_claim_of_a_sentence_is_told_which_key_to_write(tmp_path: Path) -> None:
    known = sentences(
        tmp_path, GOOD.replace('"sum-50"', '"sum is at least 50 times faster than slicing"')
    )
    unknown = sentences(tmp_path, GOOD.replace('"sum-50"', '"sum is fast"'))

    assert (
        known[-1]
        == f'"sum is at least 50 times faster than slicing" is a sentence, not a key ({RULE}); write "sum-50"'
    )
    assert unknown[-1] == (
        f'"sum is fast" is not a key ({RULE}); write the bullet "- [a-key] sum is fast" under ## Look for, and claim "a-key"'
    )


def test_what_is_advised_is_a_variable_that_programs_read_and_was_chosen_among_values(
    tmp_path: Path,
) -> None:
    advised = 'lab.advise("OMP_NUM_THREADS", {1: "loop", 2: "sum"}, default=2, about="sums")'
    good = GOOD.replace("lab.log(1, loss=2)", f"lab.log(1, loss=2); {advised}", 1)
    old = GOOD.replace("at_least=50,", 'at_least=50, advises="OMP_NUM_THREADS=2",', 1)

    assert findings(tmp_path, good) == findings(tmp_path, GOOD)
    assert sentences(tmp_path, good.replace("OMP_NUM_THREADS", "DATALOADER_NUM_WORKERS")) == [
        "DATALOADER_NUM_WORKERS is not a known setting of threads, allocators or pinning; name one, for example OMP_NUM_THREADS"
    ]
    assert sentences(tmp_path, good.replace('"OMP_NUM_THREADS"', "row_count")) == [
        "the name of the advised variable is not a literal; write it as a literal string"
    ]
    assert sentences(tmp_path, old) == [
        "lab.claim_ratio takes no advises; to recommend a value of a variable, use lab.advise(name, values, ...)"
    ]


def sentences(folder: Path, source: str) -> list[str]:
    return [finding.sentence for finding in findings(folder, source)]


def shown_of(folder: Path, source: str) -> str:
    (folder / "mine.py").write_text(source)
    return CliRunner().invoke(show_verb.command, ["./mine.py"], standalone_mode=False).stdout


RACING = '''"""T.

Slices cost calls.

## Predict
How many?
"""
import torch


@torch.no_grad()
def by_index(x):
    return x[0]


def helper():
    pass


def by_sum(x):
    return x.sum(0)


def run(lab, rows: int = 5):
    lab.race(loop=lambda: by_index(x), sum=lambda: by_sum(x))
'''


def test_show_has_the_functions_of_the_arms_between_the_mechanism_and_the_question(
    tmp_path: Path,
) -> None:
    shown = shown_of(tmp_path, RACING)

    assert (
        "Slices cost calls.\n\n    @torch.no_grad()\n    def by_index(x):\n        return x[0]\n\n"
        "    def by_sum(x):\n        return x.sum(0)\n\n## Predict\n" in shown
    )


def test_show_has_the_first_functions_of_a_scenario_without_arms(tmp_path: Path) -> None:
    shown = shown_of(tmp_path, RACING.replace("lab.race", "print"))

    assert "def by_index(x)" in shown
    assert "def helper()" in shown
    assert "def by_sum(x)" not in shown


def test_show_says_on_which_lessons_one_builds() -> None:
    shown = CliRunner().invoke(show_verb.command, ["linear-fit"], standalone_mode=False).stdout

    assert "\nbuilds on curve-fit, module-registry\n" in shown
