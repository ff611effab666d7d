"""What the story of a step says to look at: the part that most could be gained of, and nothing of what was not measured."""

import re

import pytest

from tuilab.catalogue.catalog import load
from tuilab.commands import watched
from tuilab.commands.next_step import LEAST, Computing, computing_of, loading_of, next_step
from tuilab.commands.steps import Step

AVOIDABLE = "largest avoidable part: "
UNTRIED = Computing(("AdamW",), ("bfloat16", "torch.compile"))


@pytest.mark.parametrize(
    ("shares", "begins"),
    [
        (
            {"waits for data": 43, "backward": 30, "optimizer": 27},
            AVOIDABLE + "waits for data, 43 %; use more DataLoader workers",
        ),
        (
            {"waits for data": 12, "logging": 30, "rest": 29},
            AVOIDABLE + "logging, 30 %; log fewer values",
        ),
        (
            {"waits for data": 12, "backward": 30, "optimizer": 38},
            AVOIDABLE + "optimizer, 38 %; try fused=True for AdamW",
        ),
        (
            {"waits for data": 9, "forward": 20, "backward": 30, "rest": 39},
            AVOIDABLE + "rest, 39 %; check the rest of the loop",
        ),
        (
            {"waits for data": 9, "forward": 30, "backward": 50, "rest": 9},
            "largest part: forward and backward, 80 %; try",
        ),
        (
            {"backward": 60, "optimizer": 10, "forward + rest": 30},
            "largest part: backward, 60 %; try bfloat16 or torch.compile",
        ),
        (
            {"backward": 30, "optimizer": 10, "forward + rest": 60},
            "",
        ),  # of which nobody knows what it is
        (
            {"backward": 2, "optimizer": 1, "forward + rest": 97},
            AVOIDABLE + "forward + rest, 97 % (backward, usually longer",
        ),
        ({"backward": 15, "optimizer": 40, "forward + rest": 45}, AVOIDABLE + "optimizer, 40 %"),
        (
            {"optimizer": 10, "forward + rest": 90},
            "",
        ),  # beside no backward that it could be held against
        ({}, ""),
    ],
)
def test_the_part_that_most_could_be_gained_of_is_told(
    shares: dict[str, float], begins: str
) -> None:
    said = next_step(shares, LEAST, computing=UNTRIED)

    assert said.startswith(begins)
    assert bool(said) == bool(begins)
    assert next_step(shares, LEAST - 1, computing=UNTRIED) == ""


@pytest.mark.parametrize(
    ("shares", "garbage", "part"),
    [
        ({"backward": 1, "optimizer": 1, "forward + rest": 98}, 97, "garbage collection, 97 %"),
        ({"backward": 80, "forward + rest": 20}, 10, "garbage collection, 10 %"),
        ({"waits for data": 60, "backward": 30}, 12, "waits for data, 60 %"),
        ({"waits for data": 60, "backward": 30}, 30, "garbage collection, 30 %"),
        ({"rest": 30, "backward": 30}, 9, "rest, 30 %"),
    ],
)
def test_garbage_collection_is_named_if_no_other_part_exceeds_it_without_it(
    shares: dict[str, float], garbage: float, part: str
) -> None:
    advice = next_step(shares, LEAST, garbage=garbage)

    assert advice.startswith(AVOIDABLE + part)
    assert ("gc.freeze()" in advice) == part.startswith("garbage")


def test_of_several_ranks_nobody_says_that_a_backward_computes() -> None:
    assert next_step({"backward": 90}, LEAST, is_alone=False, computing=UNTRIED) == ""
    advice = next_step({"backward": 70, "optimizer": 30}, LEAST, is_alone=False, computing=UNTRIED)
    assert advice.startswith(AVOIDABLE + "optimizer")


@pytest.mark.parametrize("part", ["waits for data", "optimizer"])
def test_a_lesson_that_is_named_is_there(part: str) -> None:
    advice = next_step({part: 90}, LEAST, computing=UNTRIED)
    (named,) = re.findall(r"`tuilab run ([\w-]+)`", advice)

    assert named in {scenario.id for scenario in load()}


def loads(*workers: int, is_iterable: bool = False) -> dict[str, object]:
    """Return what a process on four cores says that began loaders with so many workers."""
    return {
        "cores": 4,
        "loaders": [{"workers": count, "is_iterable": is_iterable} for count in workers],
    }


@pytest.mark.parametrize(
    ("own", "others", "cores", "says"),
    [
        (
            loads(0),
            [],
            4,
            "use more DataLoader workers (now 0, for 4 cores), or do less work for each item",
        ),
        (
            loads(2, 0),
            [],
            64,
            "use more DataLoader workers (now 2, for 4 cores), or do less work for each item",
        ),
        (
            loads(4),
            [],
            4,
            "do less work for each item, or prepare batches in advance; 4 processes load data already",
        ),
        (
            loads(2),
            [],
            2,
            "do less work for each item, or prepare batches in advance; 2 processes load data already",
        ),
        (
            loads(1),
            [loads(1), loads(2)],
            4,
            "do less work for each item, or prepare batches in advance; 4 processes",
        ),
        (
            loads(0),
            [loads(0)],
            2,
            "do less work for each item, or prepare batches in advance; 2 processes load",
        ),
        (
            loads(0),
            [{}],
            2,
            "do less work for each item, or prepare batches in advance; 2 processes load",
        ),
        (
            loads(0),
            [],
            1,
            "do less work for each item, or prepare batches in advance; 1 process loads data already",
        ),
        (
            loads(1, is_iterable=True),
            [],
            4,
            "use more DataLoader workers (now 1, for 4 cores), if the IterableDataset",
        ),
        ({}, [], 4, "use more DataLoader workers, or do less work for each item"),
        (
            {"loaders": [{"workers": "many"}, 3], "cores": "all"},
            [],
            4,
            "use more DataLoader workers, or do less work",
        ),
    ],
)
def test_advice_on_data_looks_at_workers_and_cores(
    own: dict[str, object], others: list[dict[str, object]], cores: int, says: str
) -> None:
    loading = loading_of(own, others, cores)

    assert next_step({"waits for data": 40}, LEAST, loading=loading).startswith(
        f"{AVOIDABLE}waits for data, 40 %; {says}"
    )


def test_advice_on_data_of_a_busy_machine_is_no_more_workers() -> None:
    loading = loading_of(loads(0), [], 4, is_starved=True)

    said = next_step({"waits for data": 40}, LEAST, loading=loading)
    assert said.endswith(
        "40 %; do less work for each item, or prepare batches in advance; "
        "other processes use the cores, so more workers help only if loading waits, for example for a disk"
    )


def test_advice_on_data_of_workers_that_leave_cores_idle_is_more_workers() -> None:
    loading = loading_of(loads(2), [], 2, are_idle=True)

    said = next_step({"waits for data": 40}, LEAST, loading=loading)
    assert (
        "40 %; use more DataLoader workers (now 2, for 2 cores that are partly idle), or do less work"
        in said
    )


def test_advice_on_workers_that_start_in_every_epoch_is_to_keep_them() -> None:
    loading = loading_of(loads(2), [], 4)

    advice = next_step({"waits for data": 40}, LEAST, loading=loading, starting=80)
    assert "80 % of these waits start workers" in advice
    assert "persistent_workers=True" in advice
    assert "more DataLoader workers" not in advice


def test_advice_on_persistent_workers_is_not_to_keep_them() -> None:
    process = loads(2)
    process["loaders"] = [{"workers": 2, "is_persistent": True}]
    loading = loading_of(process, [], 4)

    advice = next_step({"waits for data": 40}, LEAST, loading=loading, starting=80)
    assert "persistent_workers" not in advice


def test_advice_on_tensors_in_memory_is_to_index_them() -> None:
    process = loads(0)
    process["loaders"] = [{"workers": 0, "is_in_memory": True}]
    loading = loading_of(process, [], 4)

    advice = next_step({"waits for data": 40}, LEAST, loading=loading)
    assert "take whole batches from the tensors by index" in advice
    assert "more DataLoader workers" not in advice


UNFUSED = {"class": "AdamW", "takes_fused": True, "is_fused": False}
FUSED = {"class": "AdamW", "takes_fused": True, "is_fused": True}
LBFGS = {"class": "LBFGS", "takes_fused": False, "is_fused": False}


@pytest.mark.parametrize(
    ("optimizers", "advice"),
    [
        ([UNFUSED], "largest avoidable part: optimizer, 60 %; try fused=True for AdamW;"),
        (
            [UNFUSED, {**UNFUSED, "class": "SGD"}],
            "largest avoidable part: optimizer, 60 %; try fused=True for AdamW, SGD;",
        ),
        ([FUSED], AVOIDABLE + "rest, 25 %"),
        ([LBFGS], AVOIDABLE + "rest, 25 %"),
        ([UNFUSED, LBFGS], AVOIDABLE + "rest, 25 %"),
        ([UNFUSED, FUSED], AVOIDABLE + "rest, 25 %"),
        ([], AVOIDABLE + "rest, 25 %"),
        ([{}, UNFUSED], AVOIDABLE + "rest, 25 %"),
        ("AdamW", AVOIDABLE + "rest, 25 %"),
        (None, AVOIDABLE + "rest, 25 %"),  # as in the marks of an older watcher
    ],
)
def test_fused_is_advised_only_if_all_optimizers_can_change_to_it(
    optimizers: object, advice: str
) -> None:
    computing = computing_of({"optimizers": optimizers}, has_fast_bfloat16=True)

    shares = {"optimizer": 60, "rest": 25}
    assert next_step(shares, LEAST, computing=computing).startswith(advice)


@pytest.mark.parametrize(
    ("facts", "ways"),
    [
        ({"dtype": "float32", "has_compiled": False}, "try bfloat16 or torch.compile;"),
        ({"dtype": "float32", "has_compiled": True}, "try bfloat16;"),
        ({"dtype": "bfloat16", "has_compiled": False}, "try torch.compile;"),
        ({"dtype": "float16", "has_compiled": False}, "try torch.compile;"),
        ({"dtype": "bfloat16", "has_compiled": True}, ""),
        ({"dtype": "bfloat16"}, ""),
    ],
)
def test_no_way_to_compute_is_advised_that_is_used_already(
    facts: dict[str, object], ways: str
) -> None:
    computing = computing_of({"optimizers": [FUSED], **facts}, has_fast_bfloat16=True)

    advice = next_step({"backward": 60}, LEAST, computing=computing)
    assert ways in advice
    assert bool(advice) == bool(ways)


@pytest.mark.parametrize(
    ("has_compiled", "advice"),
    [
        (
            False,
            "largest part: backward, 60 %; try torch.compile; "
            "`tuilab tune` tries such changes on the script",
        ),
        (True, ""),
    ],
)
def test_bfloat16_is_advised_only_if_it_is_fast(has_compiled: bool, advice: str) -> None:
    facts = {"optimizers": [FUSED], "dtype": "float32", "has_compiled": has_compiled}
    computing = computing_of(facts, has_fast_bfloat16=False)

    assert next_step({"backward": 60}, LEAST, computing=computing) == advice


@pytest.mark.parametrize(
    ("instructions", "gpu_ns", "is_fast"),
    [
        (["amx_bf16", "avx512_bf16"], None, True),
        (["avx512_bf16"], None, False),
        ([], None, False),
        (None, None, False),
        ([], 7, True),
    ],
)
def test_bfloat16_is_fast_on_a_gpu_or_with_amx(
    monkeypatch: pytest.MonkeyPatch,
    instructions: list[str] | None,
    gpu_ns: int | None,
    is_fast: bool,
) -> None:
    monkeypatch.setattr(watched, "read_bf16_instructions", lambda: instructions)

    assert watched.has_fast_bfloat16([Step(0, 10, gpu_ns=gpu_ns)]) == is_fast


def test_marks_without_facts_about_optimizers_give_no_advice_on_computing() -> None:
    computing = computing_of({"dtype": "float32"}, has_fast_bfloat16=True)

    assert next_step({"backward": 60}, LEAST, computing=computing) == ""
