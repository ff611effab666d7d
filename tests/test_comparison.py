"""What differs between runs, from their records."""

from pathlib import Path
from typing import Any

import pytest

from tests.made_runs import hostile, started
from tests.record_journals import JOURNALS
from tuilab.drawings.glyphs import Style
from tuilab.record import events
from tuilab.record.folding.fold import fold
from tuilab.record.live_run import read_run
from tuilab.record.summary import RunSummary
from tuilab.reports.compare_text import claims_on_boxes
from tuilab.reports.comparison_words import number_tables, shift_words, verdict_and_measured
from tuilab.runs.comparing import comparison
from tuilab.runs.comparing.claim_pairs import Side
from tuilab.tui.widgets.compare.compared import run_names


def summary(*records: events.Record, **fields: Any) -> RunSummary:
    """Return the summary of a run with these records."""
    return fold([("supervisor", started(**fields)), *(("worker-0", record) for record in records)])


def ratio(
    estimate: float, low: float, high: float, *, verdict: str = "SUPPORTED", **more: Any
) -> list[events.Record]:
    declared = events.ClaimDeclared(text="faster", over="a", under="b", op="at_least", bound=1.0)
    usual = {"unit": "repeats", "confidence": 0.95, **more}
    reached = events.VerdictReached(
        text="faster",
        verdict=verdict,
        rule="r",
        estimate=estimate,
        low=low,
        high=high,
        units=6,
        **usual,
    )
    return [declared, reached]


def exact(value: float, verdict: str = "SUPPORTED") -> list[events.Record]:
    number = events.Measured(numbers=[value])
    return [
        events.ClaimMeasured(text="bytes", got=number, op="equals", want=number),
        events.VerdictReached(text="bytes", verdict=verdict, rule="r", estimate=value),
    ]


def test_runs_of_the_same_thing_differ_in_nothing() -> None:
    found = comparison.compare([summary(*exact(2.0), params={"rows": 5})] * 2)

    assert found.differences == ()
    assert found.same > 5
    assert [comparison.difference_words(pair) for pair in found.claims] == [""]


def test_a_changed_parameter_comes_before_the_environment() -> None:
    box = [
        events.EnvironmentRecorded(part="torch", facts={"threads": threads}) for threads in (2, 8)
    ]
    found = comparison.compare(
        [summary(box[0], params={"rows": 5}), summary(box[1], params={"rows": 500})]
    )

    assert [(row.part, row.name, row.values) for row in found.differences] == [
        ("parameter", "rows", ("5", "500")),
        ("environment", "torch threads", ("2", "8")),
    ]


def test_what_was_not_recorded_is_not_available_rather_than_the_same() -> None:
    facts = {"governor": "powersave"}, {"missing": {"governor": "no frequency control"}}
    found = comparison.compare(
        [summary(events.EnvironmentRecorded(part="box", facts=one)) for one in (*facts, {})]
    )

    assert [row.values for row in found.differences] == [
        ("powersave", "n/a: no frequency control", "n/a: not recorded")
    ]


@pytest.mark.parametrize(
    ("recorded", "is_going_on", "told"),
    [
        ([], True, "n/a: not recorded yet"),
        ([], False, "n/a: the run ended before it was recorded"),
        (
            [events.EnvironmentRecorded(part="torch", facts={"version": "2.13"})],
            False,
            "n/a: not recorded",
        ),
    ],
)
def test_what_a_run_has_not_recorded_of_the_box_is_told_once(
    recorded: list[events.Record], is_going_on: bool, told: str
) -> None:
    """A run that waits has recorded nothing; what others differ in stays, and how busy the box was is compared with nothing."""
    box = {"kernel": "6.1", "machine": "x86_64", "cpu": {"load_average": [1, 0, 0]}}
    whole: list[events.Record] = [
        events.EnvironmentRecorded(part="torch", facts={"version": "2.12"}),
        events.EnvironmentRecorded(part="box", facts=box),
        events.Unavailable(what="gpu", reason="none"),
    ]
    other: list[events.Record] = [
        events.EnvironmentRecorded(part="torch", facts={"version": "2.13"}),
        *whole[1:],
    ]
    found = comparison.compare(
        [summary(*whole), summary(*other), summary(*recorded)], {2} if is_going_on else ()
    )

    (torch, rest) = found.differences
    assert (torch.name, torch.values[:2]) == ("torch version", ("2.12", "2.13"))
    assert (rest.name, rest.values) == ("the rest", ("3 facts", "3 facts", told))


def test_many_gpus_of_a_model_are_counted() -> None:
    eight = [
        events.GpuFound(uuid=f"GPU-{n}", index=n, name="H100" if n else "T4", bytes_total=80)
        for n in range(8)
    ]
    found = comparison.compare([summary(*eight), summary(*eight[:2])])

    assert [row.values for row in found.differences if row.name == "GPUs"] == [
        ("7x H100, T4", "H100, T4")
    ]


def test_how_busy_the_box_was_is_told_apart_from_what_it_is() -> None:
    boxes = [{"cpu": {"load_average": [load, 0, 0], "model": "x"}} for load in (0.5, 7.25)]
    found = comparison.compare(
        [summary(events.EnvironmentRecorded(part="box", facts=facts)) for facts in boxes]
    )

    assert [(row.part, row.values) for row in found.differences] == [
        ("conditions", ("0.5", "7.25"))
    ]


@pytest.mark.parametrize(
    ("other", "is_apart"),
    [
        ((2.0, 1.9, 2.1), False),
        ((2.1, 2.0, 2.2), False),  # the intervals overlap, and so does their ratio
        ((2.17, 2.07, 2.27), True),  # they overlap a little, and still the ratio leaves out 1
        ((4.0, 3.9, 4.1), True),
        ((1.0, 0.9, 1.1), True),
    ],
)
def test_estimates_differ_when_the_interval_of_their_ratio_leaves_out_1(
    other: tuple[float, ...], is_apart: bool
) -> None:
    found = comparison.compare([summary(*ratio(2.0, 1.9, 2.1)), summary(*ratio(*other))])

    (shift,) = found.claims[0].shifts
    assert shift is not None
    assert shift.ratio == pytest.approx(other[0] / 2)
    assert shift.is_apart is is_apart


def test_the_interval_of_a_ratio_is_as_wide_as_independent_errors_make_it() -> None:
    """Two intervals of +-10 % (on a log scale) give one of +-10 % times the root of 2."""
    found = comparison.compare(
        [summary(*ratio(1.0, 1 / 1.1, 1.1)), summary(*ratio(1.0, 1 / 1.1, 1.1))]
    )

    (shift,) = found.claims[0].shifts
    assert shift is not None
    assert shift.high == pytest.approx(1.1**2**0.5)
    assert shift.low == pytest.approx(1 / 1.1**2**0.5)


def test_runs_of_one_process_each_differ_with_a_warning() -> None:
    found = comparison.compare(
        [
            summary(*ratio(2.0, 1.9, 2.1, unit="rounds")),
            summary(*ratio(3.0, 2.9, 3.1, unit="rounds")),
        ]
    )

    (shift,) = found.claims[0].shifts
    assert comparison.difference_words(found.claims[0]) == "different estimates"
    assert shift and shift_words(2, shift).endswith("], of one process each")


@pytest.mark.parametrize(
    "broken",
    [(2.0, None, None), (2.0, 0.0, 3.0), (2.0, 1.0, float("inf")), (float("nan"), 1.0, 3.0)],
)
def test_an_estimate_without_an_interval_is_not_held_against_another(
    broken: tuple[Any, ...],
) -> None:
    found = comparison.compare([summary(*ratio(2.0, 1.9, 2.1)), summary(*ratio(*broken))])

    assert found.claims[0].shifts == (None,)


def test_exact_values_and_verdicts_that_differ_are_told() -> None:
    values = comparison.compare([summary(*exact(2.0)), summary(*exact(3.0))])
    verdicts = comparison.compare([summary(*exact(2.0)), summary(*exact(3.0, "REFUTED"))])

    assert comparison.difference_words(values.claims[0]) == "different values"
    assert comparison.difference_words(verdicts.claims[0]) == "different verdicts"


def test_not_a_number_is_the_same_as_not_a_number() -> None:
    found = comparison.compare([summary(*exact(float("nan"))), summary(*exact(float("nan")))])

    assert comparison.difference_words(found.claims[0]) == ""


def test_a_claim_that_only_one_run_makes_has_no_other_side() -> None:
    found = comparison.compare([summary(*exact(2.0)), summary()])

    assert [side is None for side in found.claims[0].sides] == [False, True]


def test_recorded_runs_are_compared_with_their_times_and_curves() -> None:
    found = comparison.compare(
        [read_run(JOURNALS / "two-repeats"), read_run(JOURNALS / "outliers")]
    )

    assert found.times
    assert all(value is None or value > 0 for _, values in found.times for value in values)


def test_a_number_that_a_run_has_not_says_why() -> None:
    timed = summary(events.MemoryMeasured(name="forward", arm="a", values={"peak_bytes": 1024.0}))
    found = comparison.compare([timed, summary(), RunSummary(), summary()], running={3})

    (cells,) = number_tables(found)[0].rows

    assert cells == [
        "forward a peak_bytes",
        "1 KiB",
        "n/a: not in this run",
        "n/a: nothing was recorded",
        "n/a: not yet",
    ]


def test_an_estimate_without_an_interval_says_why() -> None:
    side = Side(
        "INCONCLUSIVE",
        0.0828,
        None,
        None,
        why="1 repeat is too few, 6 are needed; judged on CPU time",
    )

    assert verdict_and_measured(side) == (
        "INCONCLUSIVE",
        "0.0828, no interval: 1 repeat is too few, 6 are needed",
    )


def test_a_ratio_is_rounded_as_every_table_does() -> None:
    large, near = (
        Side("SUPPORTED", 1432.4, 1198.2, 1711.0, bound=100),
        Side("SUPPORTED", 1.42, 1.3004, 1.5, bound=1.3),
    )

    assert [verdict_and_measured(one)[1] for one in (large, near)] == [
        "1432 [1198, 1711]",
        "1.42 [1.3004, 1.5]",
    ]


def test_sizes_of_the_box_are_told_in_units() -> None:
    one, other = (
        summary(events.EnvironmentRecorded(part="box", facts={"memory_total_bytes": gib << 30}))
        for gib in (7, 8)
    )
    found = comparison.compare([one, other])

    assert [(row.name, row.values) for row in found.differences] == [
        ("memory total", ("7 GiB", "8 GiB"))
    ]


def test_a_size_that_one_box_does_not_tell_stands_beside_that_of_the_other() -> None:
    boxes = {"memory_limit_bytes": 4 << 30}, {"missing": {"memory_limit_bytes": "no limit is set"}}
    found = comparison.compare(
        [summary(events.EnvironmentRecorded(part="box", facts=facts)) for facts in boxes]
    )

    assert [(row.name, row.values) for row in found.differences] == [
        ("memory limit", ("4 GiB", "n/a: no limit is set"))
    ]


def test_hostile_records_are_compared_like_any_other(tmp_path: Path) -> None:
    one = read_run(hostile(tmp_path))
    found = comparison.compare([one, RunSummary(), one])

    assert found.names[1] == "n/a"
    assert all(len(row.values) == 3 for row in found.differences)


def test_sources_differ_by_their_lines() -> None:
    assert comparison.source_changes("a\nb\nc", "a\nB\nc") == [
        "@@ -1,3 +1,3 @@",
        " a",
        "-b",
        "+B",
        " c",
    ]
    assert comparison.source_changes("a", "a") == []


def test_a_claim_is_compared_by_its_key_whatever_its_words_are() -> None:
    found = comparison.compare(
        [summary(*keyed("limit", "up to 88.7")), summary(*keyed("limit", "up to a logit of 88.72"))]
    )

    ((text, key),) = [(pair.text, pair.key) for pair in found.claims]
    assert (text, key) == ("up to a logit of 88.72", "limit")


def test_a_run_without_keys_is_compared_by_the_words() -> None:
    old, new = summary(*keyed("", "up to 88.72")), summary(*keyed("limit", "up to 88.72"))

    for runs in ([old, new], [new, old]):
        (pair,) = comparison.compare(runs).claims
        assert pair.key == "limit" and None not in pair.sides


def test_a_claim_whose_key_alone_is_another_is_the_same_claim_and_that_is_said() -> None:
    one, two = summary(*keyed("one", "it is so")), summary(*keyed("two", "it is so"))

    (pair,) = comparison.compare([one, two]).claims
    assert (pair.key, pair.former_keys, None in pair.sides) == ("two", ("one",), False)
    assert comparison.key_words(pair) == "claim [one] is [two] now"
    assert comparison.difference_words(pair) == ""
    assert comparison.key_words(comparison.compare([one, one]).claims[0]) == ""


def test_a_key_that_both_runs_have_is_another_claim_though_the_words_are_the_same() -> None:
    old = summary(*keyed("one", "it is so"))
    new = summary(*keyed("one", "it is not"), *keyed("two", "it is so"))

    for runs in ([old, new], [new, old]):
        found = comparison.compare(runs).claims
        assert [(pair.key, pair.former_keys) for pair in found] == [("one", ()), ("two", ())]


def test_claims_of_one_sentence_are_all_compared() -> None:
    old = summary(*keyed("one", "it is so"), *keyed("two", "it is so"))
    new = summary(*keyed("three", "it is so"))

    for runs in ([old, new], [new, old]):
        assert {pair.key for pair in comparison.compare(runs).claims} == {"one", "two", "three"}


def keyed(key: str, text: str) -> list[events.Record]:
    number = events.Measured(numbers=[1.0])
    return [
        events.ClaimMeasured(key=key, text=text, got=number, op="equals", want=number),
        events.VerdictReached(key=key, text=text, verdict="SUPPORTED", rule="r"),
    ]


def test_claims_of_several_boxes_are_told_box_by_box() -> None:
    """The same host may have several nodes of a cluster; without one the host is the box."""
    runs = [
        summary(*ratio(123.4, 120.0, 126.0), *exact(2.0), node="one"),
        summary(*ratio(0.91, 0.9, 1.02, verdict="REFUTED"), *exact(3.0), node="two"),
        summary(*exact(2.0)),
    ]
    found = comparison.compare(runs)
    assert runs[2].run
    host = runs[2].run.supervisor.host

    table = claims_on_boxes(found, Style(is_utf8=True, has_colour=False), 120).splitlines()
    assert found.boxes == ("one", "two", host)
    assert [" ".join(line.split()) for line in table] == [
        "2 claims in 3 runs on 3 machines",
        f"one two {host}",
        "faster ✓ 123 [120, 126] ✗ 0.91 [0.9, 1.02] – not claimed",
        "bytes ✓ 2 ✓ 3 ✓ 2",
    ]
    assert len({line.index("✗") if "✗" in line else line.rindex("✓ 3") for line in table[2:]}) == 1
    assert [name.plain for name in run_names(3, found.boxes)] == [
        "run 1, one",
        "run 2, two",
        f"run 3, {host}",
    ]
    narrow = claims_on_boxes(found, Style(is_utf8=True, has_colour=False), 40).splitlines()
    assert len(narrow) == 1 + 3 * 3 and max(map(len, narrow)) <= 40


def test_on_one_box_there_is_no_table_of_boxes() -> None:
    found = comparison.compare([summary(*exact(2.0))] * 2)

    assert (
        found.boxes == ()
        and claims_on_boxes(found, Style(is_utf8=True, has_colour=False), 120) == ""
    )
