"""What a verdict amounts to is one table: for exit codes, for JUnit and for the report of a box."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.made_runs import make_run, started
from tuilab.cli.exit_codes import exit_code_of_run
from tuilab.cli.headless import list_news
from tuilab.cli.verbs.authors import new
from tuilab.drawings.glyphs import Style
from tuilab.errors import CannotRecord, ExitCode
from tuilab.record import events
from tuilab.reports.formats import junit, md
from tuilab.reports.missing_data import gaps
from tuilab.reports.opening import opening_of
from tuilab.reports.reported_run import ReportedRun, read_subject
from tuilab.reports.result import document, results_of
from tuilab.reports.result_text import render

TABLE = [  # verdict, claimed bound; exit code, with --strict; JUnit; heading in the report of a box
    ("SUPPORTED", 2.0, 0, 0, "system-out", "Holds on this machine, and by how much"),
    ("NOT TESTABLE HERE", 2.0, 0, 0, "skipped", "Not tested here, and why"),
    ("INCONCLUSIVE", 2.0, 0, 1, "skipped", "Not decided"),
    ("REFUTED", 2.0, 1, 1, "failure", "Does not hold on this machine"),
    ("WEAKER THAN CLAIMED", 2.0, 1, 1, "failure", "Holds, but by less than is claimed"),
    ("INVALID", 2.0, 1, 1, "failure", "A control failed"),
    ("NO MEANINGFUL DIFFERENCE", 2.0, 1, 1, "failure", "Does not hold on this machine"),
    ("NO MEANINGFUL DIFFERENCE", 1.0, 0, 0, "system-out", "Holds on this machine, and by how much"),
]


def judged(root: Path, verdict: str, bound: float, *more: events.Event) -> ReportedRun:
    """Return a run whose one claim about a ratio came out so."""
    declared = events.ClaimDeclared(
        key="k", text="it is so", over="a", under="b", op="at_least", bound=bound
    )
    reached = events.VerdictReached(
        key="k",
        text="it is so",
        verdict=verdict,
        rule="r",
        estimate=1.0,
        low=0.9,
        high=1.1,
        units=6,
        unit="repeats",
    )
    return read_subject(
        make_run(root, started(), declared, *more, reached, events.StateChanged(state="succeeded"))
    )


@pytest.mark.parametrize(("verdict", "bound", "code", "strictly", "case", "heading"), TABLE)
def test_a_verdict_amounts_to_the_same_everywhere(
    tmp_path: Path, verdict: str, bound: float, code: int, strictly: int, case: str, heading: str
) -> None:
    subject = judged(tmp_path, verdict, bound)

    assert exit_code_of_run(subject.summary, subject.state) == code
    assert exit_code_of_run(subject.summary, subject.state, is_strict=True) == strictly
    assert ElementTree.fromstring(junit.render([subject])).find(f".//testcase/{case}") is not None
    assert [group.heading for group in opening_of([subject]).groups] == [heading]


def test_a_box_that_lacks_something_is_told_only_where_nothing_could_be_run(tmp_path: Path) -> None:
    lacked = events.BoxLacked(needs="a GPU")

    nothing = judged(tmp_path / "nothing", "NOT TESTABLE HERE", 2.0, lacked)
    something = judged(tmp_path / "something", "SUPPORTED", 2.0, lacked)

    assert exit_code_of_run(nothing.summary, nothing.state) == ExitCode.BOX_LACKS
    assert exit_code_of_run(something.summary, something.state) == ExitCode.DONE


def test_what_a_box_lacks_is_told_to_programs_and_to_readers_of_a_report(tmp_path: Path) -> None:
    one = judged(
        tmp_path,
        "NOT TESTABLE HERE",
        2.0,
        events.BoxLacked(needs="cuda:9: torch sees 8 GPUs, cuda:0 to cuda:7"),
    )

    (told,) = document(results_of([(one.summary, one.state, one.run_dir)], ExitCode.BOX_LACKS))[
        "runs"
    ]
    assert told["box_lacks"] == "cuda:9: torch sees 8 GPUs, cuda:0 to cuda:7"
    assert "Not testable here: cuda:9: torch sees 8 GPUs, cuda:0 to cuda:7." in gaps(one)


def test_what_a_run_lacks_is_said_once_and_not_of_each_claim(tmp_path: Path) -> None:
    lacked = events.BoxLacked(needs="a GPU")
    reached = [
        events.VerdictReached(text=text, verdict="NOT TESTABLE HERE", rule="r", why="a GPU")
        for text in ("one", "two")
    ]
    run_dir = make_run(
        tmp_path, started(), lacked, *reached, events.StateChanged(state="succeeded")
    )

    found = render(
        read_subject(run_dir).summary, "succeeded", run_dir, Style(), 100, has_chart=False
    )
    assert found.count("a GPU") == found.count("not testable here: a GPU") == 1
    assert found.count("NOT TESTABLE HERE") == 2
    assert "needs: a GPU" in md.render([read_subject(run_dir)])


def test_an_option_that_a_claim_needs_is_no_lack_of_the_box_in_any_view(tmp_path: Path) -> None:
    needing = events.ClaimNotTestable(text="compiled, it is one kernel", needs="--compile")
    goes_on = make_run(tmp_path / "on", started(), needing)
    reached = events.VerdictReached(
        text=needing.text, verdict="NOT TESTABLE HERE", rule="r", why="--compile"
    )
    over = make_run(
        tmp_path / "over", started(), needing, reached, events.StateChanged(state="succeeded")
    )

    assert ("claim", "– compiled, it is one kernel  needs: --compile") in list_news(
        read_subject(goes_on).summary, Style()
    )
    (group,) = opening_of([read_subject(over)]).groups
    assert (group.heading, group.findings[0].measured) == (
        "Not tested here, and why",
        "needs: --compile",
    )
    assert group.about == "If the reason names an option or a value, a run with it tests the claim."


def test_what_authors_write_where_nothing_can_be_written_ends_as_any_result_does() -> None:
    with pytest.raises(CannotRecord, match=r"^cannot write ") as refused:
        new.write("mine", Path("/proc"))

    assert refused.value.exit_code == ExitCode.CANNOT_RECORD
