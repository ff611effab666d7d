"""Lessons in another language: which is chosen, what is shown and recorded, and what is wrong with a translation."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from tuilab import language
from tuilab.catalogue import catalog, numbers, translation
from tuilab.catalogue.check_translation import check_translation
from tuilab.catalogue.source import read as read_scenario
from tuilab.catalogue.translation import digest, languages, place, translated

Tuilab = Callable[..., "CompletedProcess[str]"]

LESSON = '''\
"""Four is two and two.

Numbers add up.
## Predict
How many is 2 and 2?
## Look for
- [four] 2 and 2 are 4
## Try next
`--two 3`: then it is 6. refutes: four
## Source
Here.
"""
from tuilab import Lab


def run(
    lab: Lab,
    two: int = 2,  # what is added to itself
) -> None:
    lab.stage("adding")
    lab.axes("sum", x="number", y="sum so far")
    lab.log(0, sum=two)
    lab.claim("four", two + two, equals=4)
'''
CHINESE = """\
<!-- made from 000000000000 -->
# 二加二等于四。

数可以
相加。

## 先猜一猜
2 加 2 是多少？
## 看什么
- [four] 2 加 2 等于 4
## 再试试
`--two 3`：这时是 6。refutes: four
## 出处
这里。
## 参数
- two: 与自己相加的数
## 标签
- adding: 相加
- number: 数
- sum so far: 和
"""


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TUILAB_LANG", "LC_ALL", "LC_MESSAGES", "LC_CTYPE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    translation.read.cache_clear()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A lesson with a translation beside it that says the same."""
    file = tmp_path / "sums" / "four.py"
    file.parent.mkdir()
    file.write_text(LESSON)
    write(file, CHINESE)
    return file


def write(path: Path, text: str) -> None:
    scenario = read_scenario(path)
    Path(place(scenario, "zh")).write_text(text.replace("000000000000", digest(scenario)))


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.GB2312"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "de_DE.UTF-8"}, "de"),
        ({"LANG": "de_DE.UTF-8", "TUILAB_LANG": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "TUILAB_LANG": "en"}, "en"),
        ({"LANG": "\x1b[2J"}, "en"),
    ],
)
def test_the_language_is_the_one_asked_for_or_that_of_the_locale(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], code: str
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert language.chosen() == code


def test_a_translated_lesson_is_shown_in_its_language(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TUILAB_LANG", "zh")
    shown = translated(read_scenario(path))

    assert shown.title == "二加二等于四"
    assert shown.lesson.startswith("数可以\n相加。\n## 先猜一猜\n2 加 2 是多少？\n## 看什么\n")
    assert shown.claims == (("four", "2 加 2 等于 4"),)
    assert [param.label for param in shown.params] == ["与自己相加的数"]
    assert shown.headings["Try next"] == "再试试"


def test_what_is_not_translated_is_shown_in_english(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario = read_scenario(path)
    assert translated(scenario) is scenario
    monkeypatch.setenv("TUILAB_LANG", "de")
    assert translated(scenario) is scenario
    write(path, "no translation")
    monkeypatch.setenv("TUILAB_LANG", "zh")
    assert translated(scenario) is scenario


def test_a_run_is_told_in_the_language_and_recorded_in_english(path: Path, tuilab: Tuilab) -> None:
    done = tuilab("run", str(path), "--headless", "--lang", "zh")

    assert "\n二加二等于四\n\n✓ SUPPORTED  2 加 2 等于 4  measured 4\n" in done.stdout
    assert "four: · 相加\n" in done.stderr
    (run,) = json.loads(tuilab("attach", "--json", "--lang", "zh").stdout)["runs"]
    assert (run["title"], run["claims"][0]["text"]) == ("Four is two and two", "2 and 2 are 4")
    assert "2 and 2 are 4" in tuilab("report", "last", "-o", "-", "--as", "md", env={"TUILAB_LANG": "zh"}).stdout


def test_what_a_lesson_said_in_other_words_is_not_translated(path: Path, tuilab: Tuilab) -> None:
    folder = str(path.parent.parent)
    tuilab("run", "four", "--headless", "--quiet", "--scenarios", folder)
    path.write_text(LESSON.replace("2 and 2 are 4", "2 and 2 are four in all"))
    told = tuilab("attach", "--headless", "--lang", "zh", env={"TUILAB_SCENARIOS": folder}).stdout

    assert "二加二等于四" in told
    assert "2 and 2 are 4" in told


def test_an_unknown_language_is_told_and_english_is_shown(tuilab: Tuilab) -> None:
    done = tuilab("list", "--lang", "tlh")

    assert done.stderr == "tuilab: no lessons in language tlh, showing English; --lang takes one of en, zh\n"
    assert "Subtract the largest logit" in done.stdout
    assert tuilab("list", "--lang", "en_US").stderr == ""
    assert tuilab("list", env={"TUILAB_LANG": "\x1b[2J"}).stderr.count("\x1b") == 0


def test_a_named_file_and_folders_of_ones_own_have_languages_too(path: Path, tuilab: Tuilab) -> None:
    Path(place(read_scenario(path), "zh")).rename(path.with_suffix(".de.md"))
    folder = str(path.parent.parent)

    for arguments in (["show", str(path)], ["show", "four", "--scenarios", folder], ["list", "--scenarios", folder]):
        shown = tuilab(*arguments, "--lang", "de")
        assert (shown.stderr, "二加二等于四" in shown.stdout) == ("", True)
    assert tuilab("list", env={"TUILAB_LANG": "de", "TUILAB_SCENARIOS": folder}).stderr == ""
    assert tuilab("run", str(path), "--headless", "--quiet", "--lang=de").stdout.count("二加二等于四") == 1
    assert tuilab("--lang", "tlh", "list", "--lang", "zh").stderr == ""


def test_the_help_of_a_run_has_the_labels_of_the_lesson(path: Path, tuilab: Tuilab) -> None:
    assert "与自己相加的数" in tuilab("run", str(path), "--help", "--lang", "zh").stdout
    assert "what is added to itself" in tuilab("run", str(path), "--help").stdout


@pytest.mark.parametrize(("name", "shown"), [("zh_TW.UTF-8", "zh_TW"), ("zh-hant", "zh-Hant"), ("zh_CN", "zh"), ("zh", "zh")])
def test_a_country_or_a_script_has_a_translation_of_its_own_before_that_of_the_language(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, shown: str
) -> None:
    for code in ("zh_TW", "zh-Hant"):
        text = CHINESE.replace("二加二等于四", code).replace("000000000000", digest(read_scenario(path)))
        path.with_suffix(f".{code}.md").write_text(text)
    monkeypatch.setenv("TUILAB_LANG", name)

    assert translated(read_scenario(path)).title == {"zh": "二加二等于四"}.get(shown, shown)
    assert languages([read_scenario(path)]) == ["en", "zh", "zh-Hant", "zh_TW"]


def test_the_languages_are_those_of_files_beside_lessons(path: Path) -> None:
    (path.parent / "README.md").write_text("x")
    (path.parent / "four.zh.md.bak").write_text("x")

    assert languages([read_scenario(path)]) == ["en", "zh"]


def test_a_translation_that_says_the_same_is_without_a_finding(path: Path) -> None:
    assert check_translation(read_scenario(path), "zh") == []


@pytest.mark.parametrize(
    ("right", "wrong", "line", "why"),
    [
        ("- [four] 2 加 2 等于 4", "", 1, "the claim [four] is missing"),
        ("[four] 2", "[five] 2", 1, "the claim [four] is missing"),
        ("[four] 2", "[five] 2", 10, "the lesson has no claim [five]"),
        ("等于 4", "等于 5", 10, "[four] has other numbers than the lesson: 4, 5"),
        ("--two 3", "--two 4", 12, "Try next has other options, or refutes other claims, than the lesson"),
        ("- two:", "- three:", 1, "labels are missing for the parameters two"),
        ("- two:", "- three:", 16, "the lesson has no parameters three"),
        ("2 加 2 是多少", "3 加 2 是多少", 8, "Predict has other numbers than the lesson: 3"),
        ("：这时是 6。", "：这时是 7。", 12, "Try next has other numbers than the lesson: 6, 7"),
        ("这里。", "这里 9。", 14, "Source has other numbers than the lesson: 9"),
        ("数可以\n相加。", "数可以\n相加 1。", 5, "the text has other numbers than the lesson: 1"),
        (
            "- [four] 2 加 2 等于 4",
            "- [four] 2 加 2 等于 4\n- [four] 2 加 2 等于 4",
            10,
            "these occur twice: four; remove one of each",
        ),
        ("- adding: 相加", "", 1, "labels are missing for adding"),
        ("- adding:", "- subtracting:", 18, "the lesson has no such names: subtracting"),
        ("这里。", "", 1, "the sections for Source are missing or empty"),
        ("数可以\n相加。", "", 1, "the title or the text is missing"),
    ],
)
def test_what_is_wrong_with_a_translation_is_told_with_its_line(
    path: Path, right: str, wrong: str, line: int, why: str
) -> None:
    assert right in CHINESE
    write(path, CHINESE.replace(right, wrong))

    assert (line, why) in check_translation(read_scenario(path), "zh")


PREDICT, LOOK_FOR = "## 先猜一猜\n2 加 2 是多少？", "## 看什么\n- [four] 2 加 2 等于 4"
WANTED = 'the sections have to be Predict, Look for, Try next, Source, the parameters, the labels, each after "## "'


@pytest.mark.parametrize(
    ("right", "wrong", "found"),
    [
        ("## 看什么", "##看什么", "先猜一猜, 再试试, 出处, 参数, 标签"),
        ("## 再试试", "### 再试试", "先猜一猜, 看什么, 出处, 参数, 标签"),
        (f"{PREDICT}\n{LOOK_FOR}", f"{LOOK_FOR}\n{PREDICT}", "看什么, 先猜一猜, 再试试, 出处, 参数, 标签"),
    ],
)
def test_sections_that_are_not_those_of_the_lesson_are_one_finding(path: Path, right: str, wrong: str, found: str) -> None:
    assert right in CHINESE
    write(path, CHINESE.replace(right, wrong))

    assert check_translation(read_scenario(path), "zh") == [(1, f"its sections are {found}; {WANTED}")]


def test_a_colon_may_be_a_wide_one(path: Path) -> None:
    write(path, CHINESE.replace("- two: ", "- two：").replace("- adding: ", "- adding： "))

    assert check_translation(read_scenario(path), "zh") == []


def test_numbers_may_be_written_as_the_language_has_them() -> None:
    same = [("1.3 times", "1,3-mal"), ("65,536 and 0.119", "65.536 und 0,119"), ("65,536.5", "65 536,5"), ("256", "２５６")]
    others = [("88.72", "99.72"), ("[0, 4]", "[0, 3]"), ("1.3", "13"), ("65,536", "65.53"), ("2", ""), ("", "2")]

    assert [numbers.others(*pair) for pair in same] == [()] * 4
    assert all(numbers.others(*pair) for pair in others)


def test_a_claim_with_other_numbers_or_without_words_is_shown_in_english(
    path: Path, monkeypatch: pytest.MonkeyPatch, tuilab: Tuilab
) -> None:
    write(path, CHINESE.replace("等于 4", "等于 5"))
    monkeypatch.setenv("TUILAB_LANG", "zh")
    assert translated(read_scenario(path)).claims == (("four", "2 and 2 are 4"),)
    assert "- [four] 2 and 2 are 4\n" in translated(read_scenario(path)).lesson
    assert "SUPPORTED  2 and 2 are 4" in tuilab("run", str(path), "--headless").stdout

    write(path, CHINESE.replace("- [four] 2 加 2 等于 4", ""))
    assert "- [four] 2 and 2 are 4\n" in tuilab("show", str(path)).stdout


def test_what_was_emptied_is_shown_in_english(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(path, CHINESE.replace("# 二加二等于四。", "#").replace("数可以\n相加。", "").replace("这里。", ""))
    monkeypatch.setenv("TUILAB_LANG", "zh")
    shown = translated(read_scenario(path))

    assert (shown.title, shown.sections["Source"]) == ("Four is two and two", "Here.")
    assert shown.lesson.startswith("Numbers add up.\n## 先猜一猜\n")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_lines_may_end_as_any_system_ends_them(path: Path, tuilab: Tuilab, end: str) -> None:
    write(path, CHINESE)
    beside = path.with_suffix(".zh.md")
    beside.write_bytes(beside.read_bytes().replace(b"\n", end.encode()))

    assert "二加二等于四" in tuilab("show", str(path), "--lang", "zh").stdout
    assert check_translation(read_scenario(path), "zh") == []


def test_what_cannot_be_shown_is_told_by_the_check(path: Path, tuilab: Tuilab) -> None:
    beside, folder = path.with_suffix(".zh.md"), str(path.parent.parent)
    for content, why in (
        (b"# \n\xff", ":2: not UTF-8; save it as UTF-8"),
        (b"# " + b"x" * 300_000, ":1: it is larger than 256 KiB"),
    ):
        beside.write_bytes(content)
        assert f"zh.md{why}\n" in tuilab("check", str(path)).stdout
    beside.unlink()
    beside.symlink_to(beside)
    assert "zh.md:1: Too many levels of symbolic links" in tuilab("check", str(path)).stdout
    assert "Four is two and two" in tuilab("list", "--scenarios", folder, "--lang", "zh").stdout


def test_files_that_look_like_translations_and_are_none_are_told(path: Path, tuilab: Tuilab) -> None:
    for name in ("four.ZH.md", "four.zh-tw.md", "orphan.zh.md", "four.zh_TW.md", "four.notes.md"):
        (path.parent / name).write_text(CHINESE)
    told = tuilab("check", "all", "--scenarios", str(path.parent.parent), cwd=path.parent.parent).stdout

    assert "sums/four.ZH.md:1: the file name has no language code; use for example four.zh.md or four.zh_TW.md\n" in told
    assert "sums/four.zh-tw.md:1: the file name has no language code" in told
    assert "sums/orphan.zh.md:1: this translates orphan.py, which does not exist; rename or remove this file\n" in told
    assert "four.notes.md" not in told


def test_a_lesson_that_changed_makes_its_translation_old_until_it_is_stamped(path: Path, tuilab: Tuilab) -> None:
    path.write_text(LESSON.replace("Numbers add up.", "Numbers add up, here as well."))
    old = tuilab("check", str(path))
    shown = tuilab("show", str(path), "--lang", "zh")
    stamped = tuilab("check", str(path), "--stamp")

    why = "the lesson has changed since this was translated; compare them, then: tuilab check"
    assert f".zh.md:1: {why} {path} --stamp\n" in old.stdout
    assert shown.stderr == "tuilab: translated from an older version of the lesson, which may differ now: four\n"
    assert stamped.stdout == f"{path.parent}/four.zh.md is marked as up to date with four\n"
    assert "zh.md" not in tuilab("check", str(path)).stdout
    assert tuilab("show", str(path), "--lang", "zh").stderr == ""


def test_only_a_translation_without_other_findings_is_stamped(path: Path, tuilab: Tuilab) -> None:
    beside, folder = path.with_suffix(".zh.md"), str(path.parent.parent)
    beside.write_text(CHINESE.partition("\n")[2].replace("等于 4", "等于 5"))
    refused = tuilab("check", "four", "--stamp", env={"TUILAB_SCENARIOS": folder}, cwd=Path(folder))

    assert refused.returncode == 1
    assert refused.stdout == "sums/four.zh.md:9: [four] has other numbers than the lesson: 4, 5\n"
    assert refused.stderr == f"{beside} is not marked as up to date: 1 finding\n"
    beside.write_text(CHINESE.partition("\n")[2])
    told = tuilab("check", "four", env={"TUILAB_SCENARIOS": folder}).stdout
    assert "it does not name the lesson's version; compare them, then: tuilab check four --stamp\n" in told
    assert "is marked as up to date" in tuilab("check", "four", "--stamp", env={"TUILAB_SCENARIOS": folder}).stdout
    assert beside.read_text().startswith("<!-- made from ")


def test_a_stamp_leaves_links_line_ends_and_the_mode_of_a_file_as_they_are(path: Path, tuilab: Tuilab) -> None:
    link, behind = path.with_suffix(".zh.md"), path.parent / "translated.txt"
    behind.write_bytes(CHINESE.replace("\n", "\r\n").encode())
    behind.chmod(0o644)
    link.unlink()
    link.symlink_to(behind)
    tuilab("check", str(path), "--stamp")

    assert link.is_symlink()
    assert behind.stat().st_mode & 0o777 == 0o644
    assert behind.read_bytes().split(b"\r\n")[0] == f"<!-- made from {digest(read_scenario(path))} -->".encode()
    assert behind.read_bytes().count(b"\r\n") == CHINESE.count("\n")


def test_a_file_that_is_no_translation_is_one_finding(path: Path) -> None:
    write(path, "no title\n")

    (finding,) = check_translation(read_scenario(path), "zh")
    assert finding.sentence.startswith('the first line has to be "# " and the title')


def test_the_translations_that_come_with_tuilab_lack_nothing() -> None:
    lessons = [(one, code) for one in catalog.load() for code in ("zh",) if Path(place(one, code)).exists()]

    assert {one.id for one, _ in lessons} >= {"softmax", "xent", "xyy"}
    assert [(one.id, finding) for one, code in lessons for finding in check_translation(one, code)] == []
