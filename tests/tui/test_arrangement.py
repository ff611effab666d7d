"""The panes of a run fill the screen, whatever its size and whatever the run has to show."""

from itertools import product
from typing import Any

import pytest

from tests.made_runs import started
from tuilab.record import events
from tuilab.record.summary import RunSummary
from tuilab.tui.widgets.run.arrangement import Arrangement, GridSize, arrange

KINDS = list(
    product(range(7), (False, True), (False, True), (2, 40))
)  # charts, figures, pictures, lines of the claims


def summary_with(*, figures: bool, pictures: bool) -> RunSummary:
    summary = RunSummary()
    some: Any = object()
    summary.figures = {"bars": some} if figures else {}
    summary.images = {("picture", ""): some} if pictures else {}
    return summary


def places(found: Arrangement, columns: int) -> dict[tuple[int, int], str]:
    """Return which pane has which place, as Textual gives them: each the next at which it overlaps no other."""
    taken: dict[tuple[int, int], str] = {}
    at = 0
    for name, span in found.spans.items():
        while True:
            column, row = at % columns, at // columns
            at += 1
            mine = [
                (column + x, row + y)
                for x in range(span)
                for y in range(2 if name in found.tall else 1)
            ]
            if not taken.keys() & mine:
                break
        taken.update(dict.fromkeys(mine, name))
    return taken


@pytest.mark.parametrize("width", [60, 80, 120, 160, 169, 170, 180, 200, 250])
def test_no_place_is_empty_and_each_row_has_its_height(width: int) -> None:
    for height, (charts, figures, pictures, claims) in product(range(15, 81), KINDS):
        room = GridSize(width, height)
        needs = {"claims": claims, "output": 3, "notes": 5, "figures": 30 if claims == 40 else 4}
        summary = summary_with(figures=figures, pictures=pictures)
        found = arrange(
            summary, [f"m{number}" for number in range(charts)], room, needs, has_notes=pictures
        )
        taken = places(found, room.columns)
        rows = found.rows.split()
        what = (width, height, charts, figures, pictures, claims, found)

        assert taken.keys() == {
            (column, row) for column in range(room.columns) for row in range(len(rows))
        }, what
        fixed = {
            taken[column, row]
            for column in range(room.columns)
            for row, one in enumerate(rows)
            if one.isdigit()
        }
        if "1fr" in rows:
            assert fixed <= {"claims", "notes", "output"}, what  # what is drawn takes what is left
        least = min((int(one) for one in rows[:-1] if one.isdigit()), default=9)
        assert (
            int(rows[-1]) <= max(needs["output"], needs["claims"], needs["notes"]) + 2
            and least >= 3
        ), what


@pytest.mark.parametrize("size", [(180, 50), (200, 40), (200, 50)])
def test_a_last_chart_beside_figures_of_two_rows_leaves_no_hole(size: tuple[int, int]) -> None:
    summary = summary_with(figures=True, pictures=False)
    found = arrange(
        summary,
        ["loss"],
        GridSize(*size),
        {"claims": 32, "output": 3, "figures": 40},
        has_notes=False,
    )

    assert found.tall == frozenset()
    assert len(found.rows.split()) == 2 and found.rows.startswith("1fr ")


def test_figures_of_a_few_lines_take_one_row() -> None:
    summary, room = summary_with(figures=True, pictures=False), GridSize(120, 40)
    names = ["one", "two", "three"]

    assert arrange(summary, names, room, {"figures": 3}, has_notes=False).tall == frozenset()
    assert arrange(summary, names, room, {"figures": 30}, has_notes=False).tall == {"figures"}


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 50)])
def test_of_a_command_its_output_stands_before_its_words_until_there_is_more_to_tell(
    size: tuple[int, int],
) -> None:
    summary, room = summary_with(figures=True, pictures=False), GridSize(*size)
    summary.run = started(command=["python", "train.py"])
    names, needs = (
        ["loss", "step_ms", "data_ms", "rest_ms"],
        {"output": 7, "notes": 1, "figures": 5},
    )
    quiet = [*arrange(summary, names, room, needs, has_notes=False).spans]
    summary.texts = [events.TextShown(text="a step takes 3 ms", title="steps")]
    told = [*arrange(summary, names, room, needs, has_notes=False).spans]

    assert quiet.index("output") < quiet.index("notes") and told.index("notes") < told.index(
        "output"
    )
    assert "output" in quiet[:4] or room.columns == 3


def test_claims_stay_as_high_when_what_to_try_next_comes_above_the_output() -> None:
    summary, room = summary_with(figures=False, pictures=False), GridSize(120, 40)
    needs = {"claims": 30, "notes": 7, "output": 7}
    going, over = (
        arrange(summary, ["loss", "acc"], room, needs, has_notes=has_notes)
        for has_notes in (False, True)
    )

    assert going.rows.split() == ["1fr", "1fr", "20"]
    assert over.rows.split() == ["1fr", "1fr", "9", "11"] and over.tall == {"claims"}
    assert [places(over, 2)[1, row] for row in (2, 3)] == ["notes", "output"]
