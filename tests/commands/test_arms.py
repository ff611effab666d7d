"""Arms of a command and claims about them, as users write them."""

import pytest

from tuilab.commands.arms import command_of, parse, parse_claims, shared_outputs
from tuilab.engine.messages import CommandArm
from tuilab.errors import UsageError

ARMS = [CommandArm(name="base"), CommandArm(name="bf16", words=["--bf16"])]


def test_an_arm_has_variables_then_a_prefix_and_words_behind_the_command() -> None:
    base, arm = parse(["base", "numa: OMP_NUM_THREADS=8 NOTE='a b' numactl -N 0 -- --batch 64"])

    assert (base.env, base.prefix, base.words) == ({}, [], [])
    assert arm.env == {"OMP_NUM_THREADS": "8", "NOTE": "a b"}
    assert command_of(arm, ["python", "train.py"]) == [
        "numactl",
        "-N",
        "0",
        "python",
        "train.py",
        "--batch",
        "64",
    ]


def test_where_one_other_way_is_named_the_command_as_it_is_comes_first() -> None:
    assert [arm.name for arm in parse(["threads8: OMP_NUM_THREADS=8"])] == ["base", "threads8"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["base"], "name at least two arms"),
        (["base", "base: A=1"], "two arms are named base"),
        (["base", "plain:"], "base and plain are the same command"),
        (["one: A=1", "two: A=1"], "one and two are the same command"),
        (["base", ": A=1"], "--arm takes NAME"),
        (["base", "a b: A=1"], "--arm takes NAME"),
        (["base", "one: A='1"], "--arm one: No closing quotation"),
        (
            ["base", "one: A=1 --lr 3"],
            "--lr 3 would come before the command; to add it after the command, write 'one: -- --lr 3'",
        ),
        (
            [f"a{number}: A={number}" for number in range(13)],
            "13 arms are too many; use at most 12",
        ),
    ],
)
def test_arms_that_cannot_race_are_told_in_a_sentence(given: list[str], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse(given)


def test_a_claim_names_the_faster_arm_first() -> None:
    (claim,) = parse_claims(["bf16 1.3x base"], ARMS)

    assert (claim.over, claim.under, claim.bound) == ("base", "bf16", 1.3)
    assert claim.text == "bf16 is at least 1.3 times faster than base"


def test_without_a_claim_each_arm_is_held_against_the_first() -> None:
    assert [claim.text for claim in parse_claims([], ARMS)] == ["bf16 is faster than base"]
    assert [claim.text for claim in parse_claims([], ARMS, "memory")] == [
        "bf16 has less memory than base"
    ]


def test_a_bound_below_one_is_what_an_arm_may_lose() -> None:
    assert (
        parse_claims(["bf16 0.8x base"], ARMS)[0].text
        == "bf16 takes at most 1.25 times as long as base"
    )
    assert (
        parse_claims(["bf16 0.8x base"], ARMS, "acc")[0].text
        == "bf16 takes at most 1.25 times as much acc as base"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("fp16 1.3x base", "no arm is named fp16; did you mean bf16"),
        ("bf16 1.3x bse", "no arm is named bse"),
        ("bf16 fast base", "--claim takes 'ARM 1.3x OTHER'"),
        ("bf16 0x base", "--claim takes"),
        ("bf16 1.2.3x base", "--claim takes"),
        ("base 2x base", "both arms are the same; name two different arms"),
    ],
)
def test_claims_that_cannot_be_judged_are_told_in_a_sentence(text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse_claims([text], ARMS)


def test_a_claim_that_is_made_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="given twice"):
        parse_claims(["bf16 2x base", "bf16 2x base"], ARMS)


def test_a_folder_that_all_arms_write_to_is_told() -> None:
    words = ["train.py", "--output_dir", "out", "--save-dir=ckpt", "--steps", "3", "--log"]

    assert shared_outputs(ARMS, words) == ["--output_dir out", "--save-dir ckpt"]
    apart = [CommandArm(name="base"), CommandArm(name="other", words=["--output_dir", "out2"])]
    assert shared_outputs(apart, words) == ["--save-dir ckpt"]
