"""Numbers in what a command prints: the user's patterns, and which total tells how far it is."""

import pytest

from tuilab.commands.output import scan_numbers
from tuilab.commands.output.patterns import number, split, sure_text
from tuilab.commands.output.scan_numbers import NumberScanner, PrintedNumber
from tuilab.commands.output.totals import CommandProgress, Totals
from tuilab.errors import UsageError


def told(lines: str) -> CommandProgress | None:
    """Return how far a command is that printed these lines."""
    totals = Totals()
    for line in lines.splitlines():
        totals.take(line.encode())
        totals.progress()
    return totals.progress()


def told_along(lines: list[str]) -> list[CommandProgress | None]:
    """Return how far it was after each line."""
    totals = Totals()
    found = []
    for line in lines:
        totals.take(line.encode())
        found.append(totals.progress())
    return found


@pytest.mark.parametrize(
    "line",
    [
        "step {}/200 loss 3.2", "[{}/200]", "Iter {} of 200", " 40%|████▌     | {}/200 [00:10<00:15,  4.00it/s]",
        "({}/200)", "step={}/200,",
    ],
)  # fmt: skip
def test_a_total_that_is_counted_up_to_tells_how_far_it_is(line: str) -> None:
    assert told("\n".join(line.format(at) for at in (10, 20, 30))) == CommandProgress(
        30, 200, "steps"
    )


@pytest.mark.parametrize(
    "line", ["Epoch 3:  40%|████ | {}/200 [00:01]", "Train Epoch: 3 [{}/200 (0%)]\tLoss: 2.3"]
)
def test_a_total_of_an_epoch_is_not_how_far_the_whole_is(line: str) -> None:
    """Nobody knows how many more epochs there are: no time that is left follows from it."""
    lines = [line.format(at) for at in (10, 20, 30)]

    assert told("\n".join(lines)) == CommandProgress(30, 200, "steps, epoch 3")
    assert told(
        "\n".join([*lines, *(one.replace("3", "4", 1) for one in lines)])
    ) == CommandProgress(30, 200, "steps, epoch 4")


def test_a_total_that_goes_on_from_epoch_to_epoch_is_that_of_all() -> None:
    lines = [f"epoch {at // 100} step {at}/400" for at in range(10, 200, 10)]

    assert told("\n".join(lines)) == CommandProgress(190, 400, "steps")


@pytest.mark.parametrize(
    "line",
    [
        "on 11/24 at 10:0{}", "on 1{}/11/2026", "version 2.{}/3", "{}.5/9.5 GB", "1/1 [====]", "a/{}/200/b", "{}M/200M",
        "Accuracy: 984{}/10000 (98%)", "top5 correct 4{}/60", "http://host/{}/200", "10:{}/20", "rank {}/2",
    ],
)  # fmt: skip
def test_dates_versions_sizes_paths_and_scores_do_not(line: str) -> None:
    assert told("\n".join(line.format(at) for at in range(2, 8))) is None


@pytest.mark.parametrize(
    "epoch",
    [
        "Epoch [{}/5] Step [{}/40]",
        "epoch {}/5:  40%|████ | {}/40 [00:01<00:02]",
        "Epoch {}/5\n{}/40 loss 3",
    ],
)
def test_steps_that_begin_again_with_each_epoch_are_counted_on_through_all_of_them(
    epoch: str,
) -> None:
    lines = [
        line
        for e in range(1, 6)
        for at in (4, 16, 28, 40)
        for line in epoch.format(e, at).split("\n")
    ]

    found = [one for one in told_along(lines) if one]
    assert {one.unit for one in found if one.total == 40} <= {
        "steps",
        "steps, epoch 1/5",
    }  # they may be all there are
    later = [one for one in found if one.total != 40]
    assert {(one.total, one.unit) for one in later} == {(200, "steps")}
    assert [one.done for one in later] == sorted(one.done for one in later) and later[
        -1
    ].done == 200


def test_epochs_that_begin_with_0_and_those_that_are_gone_on_with_are_counted_right() -> None:
    def line(of: range) -> str:
        return "\n".join(f"epoch {e}/8 {at}/40" for e in of for at in (4, 16, 28, 40))

    assert told(line(range(3))) == CommandProgress(120, 320, "steps")
    assert told(line(range(5, 8))) == CommandProgress(280, 320, "steps")


def test_steps_of_the_whole_training_beside_epochs_are_those() -> None:
    lines = [f"epoch {1 + at // 100}/4 step {at}/400" for at in range(10, 400, 10)]

    assert {(one.total, one.unit) for one in told_along(lines)[12:] if one} == {(400, "steps")}
    assert told("\n".join(lines)) == CommandProgress(390, 400, "steps")


def test_an_evaluation_in_each_epoch_counts_for_nothing() -> None:
    lines = []
    for epoch in (1, 2, 3):
        lines += [f"Epoch {epoch}/3 train {at}/40" for at in (1, 16, 28, 40)]
        lines += [f"Epoch {epoch}/3 val {at}/8" for at in range(1, 9)]

    found = [one for one in told_along(lines) if one]
    assert [one.done for one in found] == sorted(one.done for one in found)
    assert {one.total for one in found} == {40, 120} and found[-1] == CommandProgress(
        120, 120, "steps"
    )


def test_bars_that_begin_again_and_again_are_followed_and_their_round_is_told() -> None:
    assert told("\n".join(f"{at}/40" for _ in range(3) for at in (4, 20, 30))) == CommandProgress(
        30, 40, "steps, round 3"
    )


def test_a_download_before_the_training_is_over_when_that_goes_on() -> None:
    loading = [f"Map: {at}/1000" for at in (1, 500, 1000)]

    assert told("\n".join([*loading, *(f"{at}/40" for at in range(1, 9))])) == CommandProgress(
        8, 40, "steps"
    )
    again = [f"{at}/40" for _ in range(3) for at in range(1, 40)]
    assert told("\n".join([*loading, *again])) == CommandProgress(39, 40, "steps, round 3")


def test_what_is_counted_beside_the_training_and_then_no_more_is_over() -> None:
    lines = [f"loading shard {at}/8" for at in range(1, 8)] + [f"{at}/400" for at in range(1, 20)]

    assert told("\n".join(lines)) == CommandProgress(19, 400, "steps")


def test_bars_of_an_evaluation_do_not_take_the_place_of_those_of_the_training() -> None:
    lines = []
    for step in range(1, 60):
        lines.append(f"{step}/200")
        if step % 20 == 0:
            lines += [f"{at}/13" for at in range(1, 14)]

    assert {one.total for one in told_along(lines) if one} == {200}


def test_two_totals_side_by_side_do_not_flicker() -> None:
    lines = [f"step {at}/200 tokens {at * 512}/102400" for at in range(1, 30)]

    assert len({one.total for one in told_along(lines) if one}) == 1


def values(metrics: list[str], *portions: bytes) -> list[PrintedNumber]:
    """Return what is found in what was printed in these portions."""
    looked = NumberScanner(metrics, clock=lambda: 0.0)
    ear = looked.add_stream()
    found = []
    for portion in portions:
        ear(portion)
        found += list(looked.values())
    return [*found, *looked.values(is_last=True)]


def test_a_pattern_finds_its_numbers_in_lines_that_come_in_pieces_and_at_the_end_without_one() -> (
    None
):
    found = values(
        ["acc=acc ([0-9.]+)"],
        b"acc 0.5\nloss 3\nac",
        b"c 0.7",
        b"5\rbar\racc 0.8 acc 0.81\nacc 0.9",
    )

    assert [one.value for one in found] == [0.5, 0.75, 0.8, 0.81, 0.9]


def test_two_streams_are_not_taken_for_one_line() -> None:
    looked = NumberScanner(
        ["acc=acc ([0-9.]+)"], clock=lambda: 0.0
    )  # a turn has time for all of it, however busy the box is
    one, other = looked.add_stream(), looked.add_stream()
    one(b"acc 0")
    other(b"acc 7\n")
    one(b".5\n")

    assert sorted(value.value for value in looked.values()) == [0.5, 7.0]


def test_a_quoted_number_is_one_as_the_trainer_of_hugging_face_prints_it() -> None:
    found = values(
        ["loss='loss': ([^,}]+)"],
        b"{'loss': '3.901', 'epoch': '0.5'}\n{'loss': 3.8}\n{'loss': 'n/a'}\n",
    )

    assert [one.value for one in found] == [3.901, 3.8]
    assert [number(text) for text in (b"'nan'", b" 12%", b"1,5", b"")] == pytest.approx(
        [float("nan"), 12.0, None, None], nan_ok=True
    )


@pytest.mark.parametrize(
    "pattern", ["^x ([0-9])$", "(?i)X ([0-9])", "[x] ([0-9])", "(?:x|y) ([0-9])", "x{1,2} ([0-9])"]
)
def test_a_line_is_found_whether_or_not_it_has_a_text_that_is_sure(pattern: str) -> None:
    assert [one.value for one in values([f"x={pattern}"], b"a\nx 1\nb\nx 2\n\nx 3")] == [
        1.0,
        2.0,
        3.0,
    ]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (b"acc ([0-9.]+)", b"acc "), (b"(?i)acc ([0-9])", b""), (b"a|b([0-9])", b""), (b"(?:loss|acc): ([0-9])", b": "),
        (b"(loss)?: ([0-9])", b": "), (b"x(?=longer)([0-9])", b"x"), (b"(?-i:abc) ([0-9])", b"abc"), (b"\n([0-9])", b"\n"),
    ],
)  # fmt: skip
def test_what_every_match_has_is_known_from_the_pattern(pattern: bytes, text: bytes) -> None:
    assert sure_text(pattern) == text


def test_a_pattern_that_takes_for_ever_is_given_up_and_the_others_are_not() -> None:
    looked = NumberScanner(["bad=(a+)+b", "good=good ([0-9])"], clock=lambda: 0.0)
    ear = looked.add_stream()
    for _ in range(5):
        ear(b"a" * 60 + b"c\ngood 1\n")

    assert [one.value for one in looked.values(is_last=True)] == [1.0] * 5
    assert looked.given_up == ["bad"] and looked.counts == {"bad": 0, "good": 5}


def test_a_pattern_with_a_line_break_ends() -> None:
    assert values(["x=\n([0-9])"], b"a\n1\nb\n2\n") == []


def test_what_comes_faster_than_it_is_looked_at_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan_numbers, "_MOST_WAITING", 1000)
    looked = NumberScanner(["x=x ([0-9])"], clock=lambda: 0.0)
    ear = looked.add_stream()
    for _ in range(300):
        ear(b"x 1\nabc\n\n")

    found = list(looked.values(is_last=True))
    assert len(found) * 9 + looked.skipped_bytes == 2700 and looked.skipped_bytes > 1000


def test_values_that_are_found_are_all_counted_however_many() -> None:
    looked = NumberScanner(["x=x ([0-9])"], clock=lambda: 0.0)
    looked.add_stream()(b"x 1\n" * 50_000)

    assert len(list(looked.values(is_last=True))) == looked.counts["x"] == 50_000


def test_progress_is_told_once_and_not_of_half_a_line() -> None:
    clock = iter(range(1000))
    looked = NumberScanner([], clock=lambda: next(clock))
    ear = looked.add_stream()
    found = []
    for portion in (b"1/20", b"0\n2/200\n3/200\n4/2", b"00\n", b"", b"5/200"):
        ear(portion)
        found.append(looked.progress())

    assert [one.done if one else None for one in found] == [None, 3, 4, None, None]
    assert looked.progress(is_last=True) == CommandProgress(5, 200, "steps")


def test_lines_that_are_cut_because_much_was_printed_are_not_read() -> None:
    clock = iter(range(1000))
    looked = NumberScanner([], clock=lambda: next(clock))
    ear = looked.add_stream()
    ear(b"".join(b"%d/20000\n" % at for at in range(1, 10_000)))

    assert looked.progress() == CommandProgress(9999, 20000, "steps")


@pytest.mark.parametrize(
    ("metric", "why"),
    [
        ("acc", "NAME=PATTERN"), ("=([0-9])", "NAME=PATTERN"), ("acc=", "NAME=PATTERN"),
        ("acc=([0-9]", "is not a valid regular expression"),
        ("acc=[0-9]", "has 0 groups"), ("acc=(a)(b)", "has 2 groups"), ("acc=(\udc80)", "is not a valid regular expression"),
    ],
)  # fmt: skip
def test_a_pattern_that_is_none_is_named_with_what_is_taken(metric: str, why: str) -> None:
    with pytest.raises(UsageError, match=why) as refused:
        split(metric)

    assert "\n" not in str(refused.value)
