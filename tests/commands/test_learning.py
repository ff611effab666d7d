"""Whether arms learn the same, by the first values that each went backward from."""

from tuilab.judging.learning import compare_learning
from tuilab.record import events
from tuilab.record.summary import RunSummary

CLAIM = events.ClaimDeclared(
    text="bf16 is faster", over="base", under="bf16", op="at_least", bound=1.0
)
SAME = [2.0, 1.5, 1.2]


def raced(
    *repeats: dict[str, list[float]],
    dtypes: dict[str, str] | None = None,
    guard: str = "backward root",
) -> RunSummary:
    summary = RunSummary()
    loops = {"base": 1, "bf16": 1}
    for at, learned in enumerate(repeats):
        race = events.RaceStarted(
            arms=[*loops], threads=0, device="process", loops=loops, base="base", guard=guard
        )
        summary.races.append((f"worker-{at}", race))
        done = events.RaceFinished(arms=[*loops], learned=learned, dtypes=dtypes or {})
        summary.differences.append((f"worker-{at}", done))
    return summary


def repeat(bf16: list[float], again: list[float] = SAME) -> dict[str, list[float]]:
    return {"base": SAME, "base again": again, "bf16": bf16}


def test_arms_whose_first_values_are_equal_learn_the_same() -> None:
    assert compare_learning(CLAIM, raced(repeat(SAME), repeat(SAME))) == ("", "")


def test_rounding_is_no_difference_and_another_seed_is_one() -> None:
    assert compare_learning(CLAIM, raced(repeat([2.00001, 1.50001, 1.2]))) == ("", "")
    assert compare_learning(CLAIM, raced(repeat([2.0, 1.53, 1.2]))) == (
        "bf16 learns something else than base: what it goes backward from differs by 2 % at step 1; if that "
        "is intended, add --different-learning", "",
    )  # fmt: skip


def test_what_rounding_may_do_depends_on_the_dtype() -> None:
    values = repeat([2.0, 1.51, 1.2])

    assert compare_learning(CLAIM, raced(values, dtypes={"bf16": "bfloat16"})) == (
        "", "the arms are held to learn the same within 1 %, as bfloat16 rounds",
    )  # fmt: skip
    assert compare_learning(CLAIM, raced(repeat([2.0, 1.523, 1.2]), dtypes={"bf16": "bfloat16"}))[
        0
    ]  # another learning rate
    assert compare_learning(CLAIM, raced(values, dtypes={"bf16": "float32"}))[0]


def test_without_a_seed_arms_differ_by_the_chance_that_the_first_shows_against_itself() -> None:
    by_chance = [
        repeat([2.02, 1.5, 1.21], [1.98, 1.52, 1.2]),
        repeat([1.99, 1.49, 1.2], [2.01, 1.49, 1.19]),
    ]
    otherwise = [
        repeat([2.4, 1.9, 1.6], [1.98, 1.52, 1.2]),
        repeat([2.4, 1.9, 1.6], [2.01, 1.49, 1.19]),
    ]

    assert compare_learning(CLAIM, raced(*by_chance)) == (
        "", "the arms are held to learn the same within 2.4 %, as chance has it",
    )  # fmt: skip
    assert "bf16 learns something else" in compare_learning(CLAIM, raced(*otherwise))[0]


def test_where_chance_is_large_it_cannot_be_judged() -> None:
    told = compare_learning(CLAIM, raced(repeat(SAME, [4.0, 3.0, 2.0])))

    assert told[0] == ""
    assert told[1].startswith(
        "whether the arms learn the same cannot be judged: base against itself differs by "
    )


def test_nan_is_nan_and_no_number() -> None:
    nan = float("nan")

    assert compare_learning(CLAIM, raced(repeat([2.0, nan, 1.2])))[0] == (
        "bf16 learns something else than base: what it goes backward from differs by more than any number at step 1; if that "
        "is intended, add --different-learning"
    )
    assert compare_learning(CLAIM, raced({"base": [nan], "base again": [nan], "bf16": [nan]})) == (
        "",
        "",
    )


def test_where_nothing_went_backward_or_the_arms_differ_on_purpose_nothing_is_said_against_them() -> (
    None
):
    assert compare_learning(CLAIM, raced({}))[1].startswith(
        "whether the arms learn the same was not seen"
    )
    assert compare_learning(CLAIM, raced(repeat([9.0]), guard="")) == ("", "")
