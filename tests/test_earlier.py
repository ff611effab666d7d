"""Earlier runs of the same claim: which of them count, and how they are told."""

from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import identity, judged, make_run, started
from tuilab.drawings.glyphs import Style
from tuilab.record import events
from tuilab.record.live_run import read_run
from tuilab.record.origin.imported import mark_imported
from tuilab.reports import result_text
from tuilab.reports.pages import page_of
from tuilab.reports.reported_run import read_subject
from tuilab.runs import earlier_verdicts
from tuilab.runs.index import Index

STYLE = Style(has_colour=False, is_utf8=True)
SAID = "2nd run of this claim on this machine; the other: SUPPORTED"


def told(run_dir: Path) -> dict[str, str]:
    return earlier_verdicts.describe_earlier_verdicts(run_dir, read_run(run_dir))


def test_the_first_run_of_a_claim_says_nothing_and_each_other_one_counts_those_before_it(
    root: Path,
) -> None:
    runs = [
        judged(root, number, verdict)
        for number, verdict in enumerate(("INCONCLUSIVE", "SUPPORTED", "REFUTED"))
    ]

    assert [told(run) for run in runs] == [
        {},
        {"sum": "2nd run of this claim on this machine; the other: INCONCLUSIVE"},
        {"sum": "3rd run of this claim on this machine; the others: INCONCLUSIVE, SUPPORTED"},
    ]


def test_of_many_runs_that_nobody_has_read_yet_some_are_read_each_time(root: Path) -> None:
    *_, last = [judged(root, number) for number in range(8)]

    said = [told(last)["sum"].partition(" run of")[0] for _ in range(2)]

    assert said == [f"at least the {earlier_verdicts.MOST_READ + 1}th", "8th"]


@pytest.mark.parametrize(
    "more",
    [
        {"source_sha256": "abd"},
        {"params": {"rows": 5}, "changed": ["rows"]},
        {"name": "softmax-2"},
        {"verdict": ""},
        {"verdict": "NOT TESTABLE HERE"},
        {"supervisor": events.Identity(host="elsewhere", boot="b", pid=1, start=1)},
    ],
)
def test_a_run_of_other_work_of_another_box_or_without_a_verdict_does_not_count(
    root: Path, more: dict[str, Any]
) -> None:
    judged(root, 1)
    judged(root, 2, **more)

    assert told(judged(root, 3)) == {"sum": SAID}


def test_a_run_out_of_an_archive_does_not_count_and_has_none_before_it(root: Path) -> None:
    judged(root, 1)
    imported = judged(root, 2)
    mark_imported(imported)

    assert (told(judged(root, 3)), told(imported)) == ({"sum": SAID}, {})


def test_a_parameter_that_differs_and_one_that_is_the_same(root: Path) -> None:
    judged(root, 1, params={"rows": 5}, changed=["rows"])
    judged(root, 2, params={"rows": 6}, changed=["rows"])

    assert told(judged(root, 3, params={"rows": 5}, changed=["rows"])) == {"sum": SAID}


def test_the_result_of_a_run_and_its_report_tell_it_beside_the_verdict(root: Path) -> None:
    judged(root, 1)
    run_dir = judged(root, 2)

    result = result_text.render(
        read_run(run_dir), "succeeded", run_dir, STYLE, 100, has_chart=False, earlier=told(run_dir)
    )
    rows = page_of(read_subject(run_dir)).claims

    assert " ".join(result.split()).count(SAID) == 1
    assert [row.why.count(SAID) for row in rows] == [1, 0]


def test_many_verdicts_are_counted(root: Path) -> None:
    verdicts = ["INCONCLUSIVE"] * 2 + ["REFUTED"] + ["SUPPORTED"] * 7

    assert earlier_verdicts.describe_verdicts(verdicts) == (
        "11th run of this claim on this machine; the others: 7 SUPPORTED, 2 INCONCLUSIVE, 1 REFUTED"
    )
    assert earlier_verdicts.describe_verdicts(["REFUTED"], is_all=False).startswith(
        "at least the 2nd run of this claim on this machine; the other:"
    )


@pytest.mark.parametrize(
    ("number", "word"),
    [(2, "2nd"), (3, "3rd"), (4, "4th"), (12, "12th"), (21, "21st"), (113, "113th")],
)
def test_a_number_is_told_as_people_say_it(number: int, word: str) -> None:
    assert earlier_verdicts.describe_verdicts(["REFUTED"] * (number - 1)).startswith(
        f"{word} run of"
    )


def test_what_was_looked_up_is_kept_for_the_next_one(root: Path) -> None:
    first = judged(root, 1)
    told(judged(root, 2))

    known = Index(root).entry_if_over(first.name)
    assert known is not None and (known.source_sha256, known.host) == (
        "abc",
        identity(is_alive=True).host,
    )


def test_a_claim_of_the_old_form_is_known_by_its_words(root: Path) -> None:
    long = "sum is fast " * 100
    runs = [
        make_run(
            root,
            started(claims=[long]),
            events.ClaimDeclared(text=long, over="loop", under="sum", op="at_least", bound=2.0),
            events.VerdictReached(text=long, verdict="SUPPORTED", rule="r"),
            events.StateChanged(state="succeeded"),
            at_s=1.6e9 + number,
            end=f"{number:06}",
        )
        for number in range(2)
    ]

    assert told(runs[1]) == {long: SAID}
