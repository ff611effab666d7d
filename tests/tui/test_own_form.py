"""The form of a command of the user's: a race is run again as it was, whatever made it one."""

from pathlib import Path

import pytest

from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.tui.state.draft import Draft
from tuilab.tui.state.own import own_form
from tuilab.tui.state.own.own_commands import of_run

ARMS = ["--arm", "base", "--arm", "slow: -- --step-ms 15"]


def draft_of(options: list[str], folder: Path) -> Draft:
    command = ["python3", "train.py"]
    me = events.Identity(host="h", boot="b", pid=1, start=1)
    run = events.RunStarted(
        format=1, run="r", scenario="train", topic="ab", title="t", source_sha256="", params={}, tuilab="0", wall_ns=0,
        supervisor=me, argv=["ab", *options, "--", *command], command=command, folder=str(folder),
    )  # fmt: skip
    return Draft(of_run(run))


@pytest.mark.parametrize(
    "options",
    [
        ARMS,
        [*ARMS, "--claim", "base 1.3x slow", "--repeat", "8"],
        [*ARMS, "--measure", "memory"],
        [*ARMS, "--repeat", "6", "--different-learning"],
    ],
)
def test_a_race_is_run_again_with_all_that_it_was_run_with(
    options: list[str], tmp_path: Path
) -> None:
    words = own_form.run_words(draft_of(options, tmp_path).text, tmp_path / "runs")

    assert words[: words.index("--root")] == ["tuilab", "ab", *options]


def test_the_order_of_a_form_has_what_is_measured_and_whether_learning_may_differ(
    tmp_path: Path,
) -> None:
    ordered = own_form.order(
        draft_of([*ARMS, "--measure", "memory", "--different-learning"], tmp_path).text, tmp_path
    )

    assert ordered.command is not None
    assert (ordered.command.measure, ordered.command.has_guard) == ("memory", False)
    assert ordered.claims == ["slow has less memory than base"]


@pytest.mark.parametrize("repeats", ["two", "0", "1001", "2.5", "-3", "9" * 5000])
def test_a_wrong_number_of_repeats_is_a_problem_of_its_field(repeats: str, tmp_path: Path) -> None:
    draft = draft_of(ARMS, tmp_path)
    draft.type("repeat", repeats)

    assert own_form.problem(draft.text, "repeat") == "a number from 1 to 1000"
    with pytest.raises(UsageError, match="a number from 1 to 1000"):
        own_form.run_line(draft.text, tmp_path)
