"""The lab: what a scenario calls, and what stands in the journal afterwards."""

import math
import os
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
import pytest
import torch

from tests.engine import read_stream
from tuilab import Lab
from tuilab.engine import messages
from tuilab.engine.messages import WorkerOrder
from tuilab.engine.spawn import socket_pair
from tuilab.lab.races.race import base_of
from tuilab.lab.races.timing import Pace
from tuilab.record import events
from tuilab.record.journal.lines import Corrupt, Gap
from tuilab.record.journal.writer import Writer
from tuilab.record.order import BEFORE, CYCLE, order, order_of_round

if TYPE_CHECKING:
    from tests.fakes.cuda import FakeCuda

pytest_plugins = ["tests.fakes.cuda"]

E = TypeVar("E", bound=events.Event)

LESSON = '''"""A lesson.

## Look for
- [slow] slow is slower
- [gpu] the GPU agrees, to
  `1e-6`.
"""
def run(lab): pass
'''


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    (tmp_path / "artifacts").mkdir()
    (tmp_path / "scenario.py").write_text(LESSON)
    ours, theirs = socket_pair()
    params: dict[str, Any] = {"rows": 20, "fast": True, "scale": 2.0}
    order = WorkerOrder(
        run_dir=str(tmp_path),
        writer="worker-0",
        source_dir=str(tmp_path),
        quick=True,
        params=params,
    )
    with ours, theirs, closing(Writer(tmp_path / "worker-0.jsonl")) as writer:
        yield Lab(writer, tmp_path, messages.WorkerLine(ours), order)


class Recorded(Protocol):
    """Returns the records of a kind so far."""

    def __call__(self, kind: type[E]) -> list[E]: ...


@pytest.fixture
def recorded(lab: Lab, tmp_path: Path) -> Recorded:
    def records(kind: type[E]) -> list[E]:
        return [item for item in read_stream(tmp_path / "worker-0.jsonl") if isinstance(item, kind)]

    return records


def test_scalars_of_every_kind_are_logged_as_numbers(lab: Lab, recorded: Recorded) -> None:
    weight = torch.tensor(2.5, requires_grad=True)

    lab.log(0, a=1, b=0.5, c=True, d=torch.tensor(3), e=weight * 2, f=math.nan, g=-math.inf)

    (record,) = recorded(events.Logged)
    assert (
        repr(record.v) == "{'a': 1.0, 'b': 0.5, 'c': 1.0, 'd': 3.0, 'e': 5.0, 'f': nan, 'g': -inf}"
    )


def test_names_and_arms_may_hold_anything(lab: Lab, recorded: Recorded) -> None:
    lab.log(7, arm='a"\n\x1b[2J', **{'na"me\\': 1.0})

    (record,) = recorded(events.Logged)
    assert (record.s, record.a, record.v) == (7, 'a"\n\x1b[2J', {'na"me\\': 1.0})


@pytest.mark.parametrize("step", ["1", None, math.nan, math.inf, 2**70, torch.ones(2), [1.5]])
def test_what_is_no_place_on_an_axis_is_refused(lab: Lab, step: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"^step takes a (whole |finite )?number"):
        lab.log(step, loss=1.0)


def test_a_sweep_is_logged_where_it_stands_and_counted(lab: Lab, recorded: Recorded) -> None:
    for x in (0.5, torch.tensor(88.75), 3, 1e-30):
        lab.log(x, total=1.0)  # type: ignore[arg-type]

    found = recorded(events.Logged)
    assert [(record.s, record.x, record.place) for record in found] == [
        (0, 0.5, 0.5), (1, 88.75, 88.75), (3, None, 3), (2, 1e-30, 1e-30),
    ]  # fmt: skip


def test_axes_have_names_and_some_are_logarithmic(lab: Lab, recorded: Recorded) -> None:
    lab.axes("backward_ms", x="rows", y="backward, ms", log="xy")
    lab.axes("loss")

    rows, loss = recorded(events.AxesNamed)
    assert (rows.metric, rows.x, rows.y, rows.log) == ("backward_ms", "rows", "backward, ms", "xy")
    assert (loss.x, loss.y, loss.log) == ("", "", None)
    with pytest.raises(ValueError, match=r"^log takes x, y, xy or an empty text, not 'z'$"):
        lab.axes("loss", log="z")  # type: ignore[arg-type]


def test_bars_are_named_numbers_of_a_unit(lab: Lab, recorded: Recorded) -> None:
    lab.bars("kept", {"plain": 7_864_320, "ckpt": torch.tensor(0.5), "none": math.nan}, unit="B")

    (bars,) = recorded(events.BarsShown)
    assert (bars.title, bars.names, bars.unit) == ("kept", ["plain", "ckpt", "none"], "B")
    assert repr(bars.values) == "[7864320.0, 0.5, nan]"
    with pytest.raises(
        ValueError, match=r"^values takes at most 40 bars, not 41; show the most important bars"
    ):
        lab.bars("many", {str(at): at for at in range(41)})


def test_a_table_holds_texts_and_numbers(lab: Lab, recorded: Recorded) -> None:
    lab.table(
        "calls",
        [["a + b", 2, True], [np.str_("3"), torch.tensor(0.5), math.inf]],
        head=("call", "n", "raises"),
    )

    (table,) = recorded(events.TableShown)
    assert (table.head, table.rows) == (
        ["call", "n", "raises"],
        [["a + b", 2, "yes"], ["3", 0.5, "Inf"]],
    )


@pytest.mark.parametrize(
    ("rows", "head", "sentence"),
    [
        ([["x"]] * 41, (), "rows takes at most 40 rows, not 41"),
        ([["x"] * 9], (), "rows takes at most 8 columns, not 9"),
        (
            [["x"], ["x", "y"]],
            (),
            "rows takes rows as long as each other and as head, not rows of 1 and 2",
        ),
        (
            [["x"]],
            ("a", "b"),
            "rows takes rows as long as each other and as head, not rows of 1 and 2",
        ),
        ([["x" * 500]], (), "a cell of rows takes a text of at most 400 characters"),
        (
            [["\U0001f9ff" * 400] * 8] * 40,
            (),
            "rows: too long, .* a record holds 65536 bytes at most",
        ),
        ("abc", (), "rows takes a list of rows"),
        ([["x"]], "ab", "head takes a list of texts"),
        ([[None]], (), "a cell of rows takes a number, not None"),
    ],
)
def test_a_table_that_nobody_could_take_in_is_refused(
    lab: Lab, rows: Any, head: Any, sentence: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{sentence}"):
        lab.table("calls", rows, head=head)


def test_a_span_lies_on_a_lane(lab: Lab, recorded: Recorded) -> None:
    lab.span("worker 1", 10.5, 11, "loads", arm="2 workers")
    lab.span("gpu", 3, 3, unit="steps")

    first, last = recorded(events.SpanShown)
    assert (first.lane, first.began, first.ended, first.name, first.arm, first.unit) == (
        "worker 1", 10.5, 11.0, "loads", "2 workers", "s",
    )  # fmt: skip
    assert (last.began, last.ended, last.name, last.arm, last.unit) == (3.0, 3.0, "", "", "steps")
    with pytest.raises(
        ValueError, match=r"^ended takes a number of at least began, which is 2\.0, not 1\.0$"
    ):
        lab.span("gpu", 2, 1)


def test_a_picture_has_only_so_many_spans_and_lanes(lab: Lab) -> None:
    for at in range(events.SPAN_LIMIT):
        lab.span("loop", at, at + 1, arm="a")
    for at in range(32):
        lab.span(f"lane {at}", 0, 1, arm="b")

    with pytest.raises(
        ValueError,
        match=r"^a picture has at most 2000 spans; show fewer spans, or give some of them another arm$",
    ):
        lab.span("loop", 0, 1, arm="a")
    with pytest.raises(ValueError, match=r"^a picture has at most 32 lanes; show fewer lanes"):
        lab.span("one more", 0, 1, arm="b")


def test_progress_is_written_now_and_then_and_at_the_end(lab: Lab, recorded: Recorded) -> None:
    for step in range(1000):
        lab.progress(step + 1, 1000)

    found = recorded(events.Progressed)
    assert len(found) < 100
    assert found[-1].done == 1000


def test_an_image_keeps_its_range_and_marks_what_is_not_finite(
    lab: Lab, recorded: Recorded
) -> None:
    lab.image("board", [[0.0, 1.0], [math.nan, math.inf]])

    (image,) = recorded(events.ImageShown)
    assert (image.rows, image.cols, image.low, image.high, image.cells) == (
        2,
        2,
        0.0,
        1.0,
        "AP7//w==",
    )


def test_a_large_image_is_thinned(lab: Lab, recorded: Recorded) -> None:
    lab.image("board", torch.rand(1000, 300))

    (image,) = recorded(events.ImageShown)
    assert (image.rows, image.cols) == (125, 100)


@pytest.mark.parametrize("name", ["../evil", "/etc/passwd", "", ".hidden", "a/b"])
def test_an_artifact_stays_in_its_folder(lab: Lab, name: str) -> None:
    with pytest.raises(ValueError, match="plain file name"):
        lab.artifact(name, "x")


def test_an_artifact_is_kept_with_its_digest(lab: Lab, recorded: Recorded) -> None:
    path = lab.artifact("note.txt", "kept")

    (saved,) = recorded(events.ArtifactSaved)
    assert path.read_text() == "kept" and path.stat().st_mode & 0o777 == 0o600
    assert (saved.bytes_total, saved.sha256[:8]) == (4, "79f076ab")


@pytest.mark.parametrize("bound", [{}, {"equals": 1, "at_most": 2}])
def test_a_claim_has_exactly_one_bound(lab: Lab, bound: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="one of equals"):
        lab.claim("slow", 1, **bound)


def test_a_race_is_on_the_device_that_the_scenario_was_given(
    lab: Lab, recorded: Recorded, cuda: "FakeCuda"
) -> None:
    """As is what a block holds; where the scenario never asked for one, it is the CPU."""
    lab.race(one=lambda: cuda.sleep(0.001), two=lambda: cuda.sleep(0.001), seconds=0.01)
    lab.device()
    lab.race(three=lambda: cuda.work(100_000), four=lambda: cuda.work(100_000), seconds=0.01)
    with lab.memory("block"):
        cuda.gpus[0].allocate(512)
    lab.race(
        five=lambda: cuda.sleep(0.001),
        six=lambda: cuda.sleep(0.001),
        seconds=0.01,
        device=torch.device("cpu"),
    )

    assert [race.device for race in recorded(events.RaceStarted)] == ["cpu", "cuda", "cpu"]
    assert recorded(events.MemoryMeasured)[0].values["cuda_peak_bytes"] == 512
    times = [
        block.wall_ns / block.loops for block in recorded(events.BlockTimed) if block.arm == "three"
    ]
    assert min(times) == pytest.approx(100_000, rel=0.02)


def test_a_claim_about_a_ratio_is_on_record_before_the_race(lab: Lab, recorded: Recorded) -> None:
    lab.claim_ratio("slow", "slow/fast", at_least=2)
    lab.race(slow=lambda: sum(range(2000)), fast=lambda: sum(range(200)), seconds=0.2)

    (claim,) = recorded(events.ClaimDeclared)
    blocks = recorded(events.BlockTimed)
    assert (claim.over, claim.under, claim.op, claim.bound) == ("slow", "fast", "at_least", 2.0)
    assert claim.n < min(block.n for block in blocks)


@pytest.mark.parametrize(
    "claim",
    [
        lambda lab: lab.claim("gpu", lacks="a CUDA device"),
        lambda lab: lab.claim_ratio("gpu", "slow/fast", at_least=2, cores=2, lacks="a CUDA device"),
    ],
)
def test_a_claim_that_lacks_something_is_not_testable_whatever_it_got(
    lab: Lab, recorded: Recorded, claim: Callable[[Lab], None]
) -> None:
    claim(lab)

    (record,) = recorded(events.ClaimNotTestable)
    assert (record.key, record.text, record.needs) == (
        "gpu",
        "the GPU agrees, to 1e-6",
        "a CUDA device",
    )
    assert not recorded(events.ClaimDeclared) and not recorded(events.CoresMeasured)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"at_least": 0}, "the claimed bound of a ratio has to be above 0 and finite, not 0"),
        (
            {"at_least": math.inf},
            "the claimed bound of a ratio has to be above 0 and finite, not inf",
        ),
        ({"at_least": math.nan}, "at_least= takes one number"),
        ({"at_least": 2, "margin": -0.1}, "the margin of a ratio has to be 0 or more"),
        ({"at_least": 2, "at_most": 3}, "lab.claim_ratio takes either at_least= or at_most="),
        ({}, "lab.claim_ratio takes either at_least= or at_most="),
        (
            {"ratio": "slow", "at_least": 2},
            "ratio takes the names of two arms, for example slow/fast, not 'slow'",
        ),
        ({"ratio": "slow/slow", "at_least": 2}, "ratio takes the names of two arms"),
        ({"at_least": 2, "cores": 1.5}, "cores takes a whole number, not 1.5"),
        ({"at_least": 2, "tolerance": 0.1}, "unexpected keyword argument 'tolerance'"),
    ],
)
def test_a_wrong_argument_of_a_claim_about_a_ratio_is_refused_at_the_call(
    lab: Lab, recorded: Recorded, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(told)):
        lab.claim_ratio("slow", **{"ratio": "slow/fast", **wrong})

    assert not recorded(events.ClaimDeclared)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"ratio": "slow/fast", "at_least": 2},
            "Lab.claim() got an unexpected keyword argument 'ratio'",
        ),
        ({"lacks": "a GPU", "at_most": 2, "at_least": 1}, "one of equals="),
        ({"equal": 1, "equals": 1}, "Lab.claim() got an unexpected keyword argument 'equal'"),
        (
            {"got": "slow/fast", "at_least": 2},
            "got takes numbers with at_least=, not 'slow/fast'; for two arms of a race, use",
        ),
        (
            {"tolerance": 0.1, "at_most": 2},
            "tolerance takes a finite number, and only with equals=",
        ),
        (
            {"tolerance": math.inf, "equals": 2},
            "tolerance takes a finite number, and only with equals=",
        ),
        ({"between": (2, 1)}, "between= takes two numbers, the smaller one first"),
        ({"at_most": math.nan}, "at_most= takes one number"),
        ({"at_most": [1, 2]}, "at_most= takes one number"),
        (
            {"equals": 1, "key": "slo"},
            "no bullet under Look for has the key [slo]; add the bullet, or correct the key",
        ),
        ({"equals": 1, "key": 5}, "key takes a text, not 5"),
        ({"equals": 1, "key": ""}, "key takes the key of a bullet, not an empty text"),
        (
            {"got": None},
            'got is missing; pass the measured value: lab.claim("slow", got, equals=1)',
        ),
        ({"got": None, "at_most": 2}, "got is missing"),
    ],
)
def test_a_wrong_argument_of_a_claim_is_refused_at_the_call(
    lab: Lab, recorded: Recorded, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(told)):
        lab.claim(**{"key": "slow", "got": 1, **wrong})

    assert not recorded(events.ClaimMeasured)


CLAIMS_AT: list[Callable[[Lab, dict[str, Any]], None]] = [
    lambda lab, at: lab.claim("gpu", 1, equals=2, at=at),
    lambda lab, at: lab.claim_ratio("gpu", "slow/fast", at_least=2, cores=2, at=at),
    lambda lab, at: lab.claim("gpu", lacks="a CUDA device", at=at),
]


@pytest.mark.parametrize("claim", CLAIMS_AT)
@pytest.mark.parametrize(
    ("at", "needs"),
    [
        ({"rows": 500}, "claimed for rows=500"),
        ({"rows": [500, 100]}, "claimed for rows=500 or 100"),
        ({"fast": False, "rows": 20}, "claimed for fast=false, rows=20"),
        ({"scale": 0.5, "fast": True}, "claimed for scale=0.5, fast=true"),
    ],
)
def test_claim_about_other_values_is_recorded_as_not_testable(
    lab: Lab, recorded: Recorded, claim: Callable[[Lab, Any], None], at: dict[str, Any], needs: str
) -> None:
    claim(lab, at)

    (record,) = recorded(events.ClaimNotTestable)
    assert (record.key, record.needs) == ("gpu", needs)
    assert not recorded(events.ClaimMeasured) and not recorded(events.ClaimDeclared)


@pytest.mark.parametrize(
    "at", [None, {"rows": 20}, {"rows": (500, 20)}, {"scale": 2, "fast": True}]
)
def test_claim_about_the_values_of_the_run_is_recorded_as_usual(
    lab: Lab, recorded: Recorded, at: Any
) -> None:
    lab.claim("slow", 1, equals=2, at=at)
    lab.claim_ratio("gpu", "slow/fast", at_least=2, at=at)

    assert len(recorded(events.ClaimMeasured)) == len(recorded(events.ClaimDeclared)) == 1
    assert not recorded(events.ClaimNotTestable)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ({}, "at takes a dict of parameters and their values"),
        ("rows", "at takes a dict of parameters and their values"),
        ({"row": 500}, "at names 'row', which is not a parameter of run; did you mean rows?"),
        ({5: 500}, "at names 5, which is not a parameter of run"),
        ({"rows": []}, "at takes numbers, texts, True or False for rows, not []"),
        ({"rows": None}, "at takes numbers, texts, True or False for rows, not None"),
        ({"rows": [[500]]}, "at takes numbers, texts, True or False for rows"),
    ],
)
@pytest.mark.parametrize("claim", CLAIMS_AT)
def test_wrong_at_of_a_claim_is_refused_at_the_call(
    lab: Lab, recorded: Recorded, claim: Callable[[Lab, Any], None], at: Any, words: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=re.escape(words)):
        claim(lab, at)

    assert not recorded(events.ClaimMeasured) and not recorded(events.ClaimNotTestable)


def test_a_claim_about_an_arm_that_never_raced_is_told_with_those_that_did(lab: Lab) -> None:
    lab.claim_ratio("slow", "slwo/fast", at_least=2)
    lab.race(slow=lambda: sum(range(2000)), fast=lambda: sum(range(200)), seconds=0.1)

    with pytest.raises(
        ValueError,
        match=r"“slow” names slwo, which no lab\.race has as an arm; raced arms: fast, slow",
    ):
        lab.close()


def test_a_race_that_lacks_something_is_skipped_and_its_claims_are_not_testable(
    lab: Lab, recorded: Recorded
) -> None:
    lab.claim_ratio("slow", "slow/fast", at_least=2)

    race = lab.race(slow=pytest.fail, fast=pytest.fail, lacks="a second core")

    lab.close()
    (record,) = recorded(events.ClaimNotTestable)
    assert (record.key, record.text, record.needs) == ("slow", "slow is slower", "a second core")
    assert not recorded(events.RaceStarted) and race.step_s == {}
    with pytest.raises(
        ValueError,
        match="over has no times: the race was skipped, because this machine lacks a second core",
    ):
        race.ratio("slow", "fast")
    with pytest.raises(ValueError, match="the arms fast, slow were already raced"):
        lab.race(slow=pytest.fail, fast=pytest.fail)


def test_a_race_that_lacks_something_leaves_claims_about_other_arms(
    lab: Lab, recorded: Recorded
) -> None:
    lab.claim_ratio("slow", "slow/fast", at_least=2)
    lab.race(one=pytest.fail, two=pytest.fail, lacks="a second core")

    with pytest.raises(
        ValueError, match=r"“slow” names fast and slow, which no lab\.race has as an arm"
    ):
        lab.close()
    assert not recorded(events.ClaimNotTestable)


def test_a_claim_after_its_race_is_refused(lab: Lab, recorded: Recorded) -> None:
    lab.race(slow=lambda: sum(range(2000)), fast=lambda: sum(range(200)), seconds=0.1)

    with pytest.raises(
        ValueError,
        match="fast and slow were raced before the claim “slow”; claim first, then measure",
    ):
        lab.claim_ratio("slow", "slow/fast", at_least=2)
    assert not recorded(events.ClaimDeclared)


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        (
            "one is one",
            'write the bullet "- [a-key] one is one" under ## Look for, and claim "a-key"',
        ),
        (
            "slow is slower",
            'is a sentence, not a key (a-z, 0-9 and -, a letter first, 40 at most); write "slow"',
        ),
    ],
)
def test_claim_of_a_sentence_is_refused_and_names_what_to_write(
    lab: Lab, recorded: Recorded, word: str, advice: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(advice)):
        lab.claim(word, 1, equals=1)
    with pytest.raises(ValueError, match=re.escape(advice)):
        lab.claim_ratio(word, "slow/fast", at_least=2)

    assert not recorded(events.ClaimMeasured) and not recorded(events.ClaimDeclared)


def test_values_of_a_variable_are_held_against_each_other_before_they_race(
    lab: Lab, recorded: Recorded
) -> None:
    arms = {1: "one", "2": "two"}
    lab.advise("OMP_NUM_THREADS", arms, default=2, about="sums", against="others wait", ranks=4)
    lab.advise("MALLOC_ARENA_MAX", {1: 5e8, 8: 1e9}, default=8, about="memory", unit="B")

    raced, counted = recorded(events.SettingRaced)
    assert [(one.value, one.arm, one.cost) for one in raced.candidates] == [
        ("1", "one", None),
        ("2", "two", None),
    ]
    assert (raced.default, raced.about, raced.against, raced.ranks) == (
        "2",
        "sums",
        "others wait",
        4,
    )
    assert [(one.value, one.cost) for one in counted.candidates] == [("1", 5e8), ("8", 1e9)]


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (
            {"name": "DATALOADER_NUM_WORKERS"},
            "name takes a known variable of threads, allocators or pinning",
        ),
        ({"values": {2: "two"}}, "values takes a dict of 2 to 20 values"),
        (
            {"values": {"$(reboot)": "one", 2: "two"}},
            "values takes plain values, for example 4 or close",
        ),
        ({"values": {1: "one", 2: 3.0}}, "values takes either arms or measured costs, not both"),
        ({"default": 3}, "default takes one of the values, not '3'"),
        ({"about": ""}, "about is empty; name the work that is compared"),
    ],
)
def test_values_that_cannot_be_held_against_each_other_are_refused(
    lab: Lab, given: dict[str, Any], problem: str
) -> None:
    usual: dict[str, Any] = {
        "name": "OMP_NUM_THREADS",
        "values": {1: "one", 2: "two"},
        "default": 2,
        "about": "sums",
    }

    with pytest.raises((TypeError, ValueError), match=problem):
        lab.advise(**{**usual, **given})


def test_values_that_have_raced_are_too_late_to_be_advised(lab: Lab) -> None:
    lab.race(one=lambda: 1, two=lambda: 2, seconds=0.001)

    with pytest.raises(ValueError, match=r"one and two were raced before lab\.advise"):
        lab.advise("OMP_NUM_THREADS", {1: "one", 2: "two"}, default=2, about="sums")


@pytest.mark.parametrize(
    "again",
    [
        lambda lab: lab.claim("slow", 1, equals=2),
        lambda lab: lab.claim_ratio("slow", "slow/fast", at_least=2),
        lambda lab: lab.claim("slow", lacks="a GPU"),
    ],
)
def test_a_key_is_claimed_once_in_a_run(
    lab: Lab, recorded: Recorded, again: Callable[[Lab], None]
) -> None:
    with pytest.raises(TypeError):
        lab.claim("slow", None, equals=1)  # no claim was made
    lab.claim("slow", 1, equals=1)

    with pytest.raises(
        ValueError, match=r"^the key \[slow\] is claimed twice; make each claim once in a run$"
    ):
        again(lab)
    assert len(recorded(events.AboutClaim)) == 1


def test_what_runs_once_runs_in_the_first_repeat_only_and_its_claims_say_so(
    lab: Lab, recorded: Recorded
) -> None:
    @lab.once
    def exact() -> None:
        lab.claim("slow", 2, equals=2)

    lab.repeat = 1
    lab.once(lambda: lab.claim("gpu", 1, equals=1))
    lab.claim("gpu", 1, equals=1)

    assert [(claim.key, claim.is_once) for claim in recorded(events.ClaimMeasured)] == [
        ("slow", True),
        ("gpu", False),
    ]


@pytest.mark.parametrize("method", ["race", "claim_ratio"])
def test_no_times_are_taken_in_what_runs_once(lab: Lab, method: str) -> None:
    calls = {
        "race": lambda: lab.race(slow=lambda: 1, fast=lambda: 1),
        "claim_ratio": lambda: lab.claim_ratio("slow", "slow/fast", at_least=2),
    }

    with pytest.raises(
        ValueError,
        match=f"{method} cannot be called in a part that runs once, because every repeat has to time",
    ):
        lab.once(calls[method])


def test_after_a_part_that_failed_nothing_counts_as_run_once(lab: Lab, recorded: Recorded) -> None:
    with pytest.raises(ZeroDivisionError):
        lab.once(lambda: 1 / 0)
    lab.claim("slow", 1, equals=1)

    (claim,) = recorded(events.ClaimMeasured)
    assert not claim.is_once


def test_a_race_is_made_of_whole_cycles(lab: Lab, recorded: Recorded) -> None:
    lab.race(slow=lambda: sum(range(2000)), fast=lambda: sum(range(200)), seconds=0.1)

    rounds = {block.round for block in recorded(events.BlockTimed) if not block.is_warmup}
    assert len(rounds) >= 6 and len(rounds) % 2 == 0 and min(rounds) % 2 == 0


def test_the_order_of_a_race_is_drawn_again_from_its_record(lab: Lab, recorded: Recorded) -> None:
    lab.race(slow=lambda: sum(range(2000)), fast=lambda: sum(range(200)), seconds=0.1)

    (race,), blocks = recorded(events.RaceStarted), recorded(events.BlockTimed)
    numbers = {("slow", ""): 0, ("fast", ""): 1, (race.base, "same"): 2, (race.base, "delayed"): 3}
    rounds = [blocks[i : i + 4] for i in range(0, len(blocks), 4)]
    assert race.seed is not None and len(rounds) >= 8
    for turn, found in enumerate(rounds):
        assert [(block.round, block.slot) for block in found] == [
            (turn, 0),
            (turn, 1),
            (turn, 2),
            (turn, 3),
        ]
        assert [numbers[block.arm, block.control] for block in found] == order_of_round(
            race.seed, turn, 4
        )


@pytest.mark.slow
def test_each_race_draws_another_order_whatever_the_scenario_seeds(
    lab: Lab, recorded: Recorded
) -> None:
    for number in range(2):
        torch.manual_seed(0)
        random.seed(0)
        arms: dict[str, Any] = {f"a{number}": sum_up, f"b{number}": sum_up}
        lab.race(**arms, seconds=0.01)

    one, other = recorded(events.RaceStarted)
    assert one.seed != other.seed  # two of 2**32


def test_a_race_says_whether_its_times_had_settled(lab: Lab, recorded: Recorded) -> None:
    """An arm that gets slower with each call never settles; what was measured of it counts all the same."""
    calls = iter(range(100, 10**9, 100))

    lab.race(steady=sum_up, slower=lambda: sum(range(next(calls))), seconds=0.05)

    (finished,) = recorded(events.RaceFinished)
    assert not finished.is_settled  # or there were too few rounds to tell
    assert [block for block in recorded(events.BlockTimed) if not block.is_warmup]


def test_the_controls_of_a_race_of_factories_are_instances_of_their_own(
    lab: Lab, recorded: Recorded
) -> None:
    """The fast arm is made once for itself and once for each control; each instance is called, and timed."""
    made: dict[str, list[Counter[str]]] = {"slow": [], "fast": []}

    def make(name: str, count: int) -> Callable[[], int]:
        calls: Counter[str] = Counter()
        made[name].append(calls)
        return lambda: calls.update(["call"]) or sum(range(count))

    lab.race(
        slow=lambda: make("slow", 20_000),
        fast=lambda: make("fast", 200),
        factories=True,
        seconds=0.05,
        same=1e6,
    )

    (race,) = recorded(events.RaceStarted)
    assert (race.base, race.has_instances) == ("fast", True)
    assert (len(made["slow"]), len(made["fast"])) == (1, 3)
    blocks = [
        block for block in recorded(events.BlockTimed) if block.arm == "fast" and block.control
    ]
    of_controls = sorted(calls["call"] for calls in made["fast"][1:])
    extra = round(race.delay * race.loops["fast"])
    rounds = len(blocks) // 2
    led = Counter(
        block.control for block in blocks if block.slot == 0 and block.round % CYCLE == 0
    )  # untimed blocks
    loops = race.loops["fast"]
    same = 1 + (rounds + led["same"]) * loops
    delayed = 1 + rounds * (loops + extra) + led["delayed"] * loops
    assert of_controls == sorted([same, delayed])


@pytest.mark.parametrize("steps", [(1.0, 0.9, 1.1), (1.0, 1.1, 0.9), (1.3, 1.0, 9.0)])
def test_of_arms_that_are_about_as_fast_the_controls_are_made_of_the_first(
    steps: tuple[float, ...],
) -> None:
    """Of the fastest they would come out slower in every process: it has the luck of the process, and they have not."""
    paces = {name: Pace(10, step_s, 1.0) for name, step_s in zip("abc", steps, strict=True)}

    assert base_of(paces) == "a"


def test_no_control_is_made_of_an_arm_that_is_much_slower_than_another_one() -> None:
    assert (
        base_of(
            {
                "slow": Pace(1, 0.5, 1.0),
                "fast": Pace(10, 0.001, 1.0),
                "as fast": Pace(10, 0.00099, 1.0),
            }
        )
        == "fast"
    )


def test_without_factories_the_controls_are_the_arm_itself(lab: Lab, recorded: Recorded) -> None:
    lab.race(a=sum_up, b=sum_up, seconds=0.01)

    (race,) = recorded(events.RaceStarted)
    assert race.has_instances is False


@pytest.mark.slow
def test_who_is_made_first_differs_from_process_to_process(lab: Lab, recorded: Recorded) -> None:
    """Each race draws it from its seed: who allocates first would else be the same arm in every process."""
    for number in range(3):
        made: list[str] = []
        names = [f"a{number}", f"b{number}", f"c{number}"]
        arms: dict[str, Any] = {
            name: partial(lambda made, name: made.append(name) or sum_up, made, name)
            for name in names
        }
        lab.race(**arms, factories=True, seconds=0.001)
        race = recorded(events.RaceStarted)[-1]
        assert race.seed is not None
        assert made[:3] == [names[i] for i in order(race.seed, BEFORE, 3)]
        assert race.arms == names


def test_the_arm_that_differs_first_is_named_whoever_was_made_first(
    lab: Lab, recorded: Recorded
) -> None:
    for number in range(2):
        arms: dict[str, Any] = {
            f"{name}{number}": lambda value=value: lambda: value
            for name, value in zip("abc", (1, 2, 3), strict=True)
        }
        lab.race(**arms, factories=True, same=0.0, seconds=0.001)

    told = [finished.difference for finished in recorded(events.RaceFinished)]
    assert told == [f"b{number} does not compute what a{number} does" for number in range(2)]


@pytest.mark.parametrize("factory", [lambda: torch.ones(2), lambda: None, lambda: 3])
def test_a_factory_that_makes_no_function_is_told(
    lab: Lab, recorded: Recorded, factory: Any
) -> None:
    with pytest.raises(
        TypeError,
        match="with factories=True b has to return the function to time, but it returned ",
    ):
        lab.race(a=lambda: sum_up, b=factory, factories=True)

    assert not recorded(events.RaceStarted)


def test_arms_in_processes_of_their_own_have_no_factories(lab: Lab) -> None:
    one, two = lab.arm("one", test_an_arm_races_once), lab.arm("two", test_an_arm_races_once)

    with pytest.raises(TypeError, match="factories=True is for functions; leave it out"):
        lab.race(one=one, two=two, factories=True)


def sum_up() -> int:
    return sum(range(200))


def test_a_race_times_every_arm_and_both_controls_in_every_round(
    lab: Lab, recorded: Recorded
) -> None:
    lab.race(
        slow=lambda: sum(range(2000)),
        fast=lambda: sum(range(200)),
        seconds=0.2,
        same=lambda a, b: True,
    )

    blocks = [block for block in recorded(events.BlockTimed) if not block.is_warmup]
    by_round: dict[int, list[tuple[str, str]]] = {}
    for block in blocks:
        by_round.setdefault(block.round, []).append((block.arm, block.control))
    assert len(by_round) >= 6
    expected = [("fast", ""), ("fast", "delayed"), ("fast", "same"), ("slow", "")]
    assert {tuple(sorted(found)) for found in by_round.values()} == {
        tuple(expected)
    }  # each once: nothing is run again
    assert len({found[0] for found in by_round.values()}) > 1  # the first slot goes round
    assert all(block.records == 0 for block in blocks)
    (finished,) = recorded(events.RaceFinished)
    assert finished.is_same is True and finished.record_ns > 0


def test_arms_that_compute_different_things_are_found(lab: Lab, recorded: Recorded) -> None:
    lab.race(right=lambda: torch.ones(2), wrong=lambda: torch.zeros(2), seconds=0.1, same=1e-6)

    (finished,) = recorded(events.RaceFinished)
    assert (finished.is_same, finished.difference) == (
        False,
        "wrong does not compute what right does",
    )


def test_a_race_puts_the_number_of_threads_back(lab: Lab) -> None:
    before = torch.get_num_threads()

    with pytest.raises(ZeroDivisionError):
        lab.race(one=lambda: 1 / 0, two=lambda: 1)

    assert torch.get_num_threads() == before


@pytest.mark.parametrize("name", ["a/b", ""])
def test_an_arm_that_no_ratio_can_name_is_refused_before_it_is_called(lab: Lab, name: str) -> None:
    with pytest.raises(ValueError, match="an arm takes a name without /"):
        lab.race(**{name: pytest.fail, "c": pytest.fail})  # type: ignore[arg-type]


def test_an_arm_races_once(lab: Lab) -> None:
    lab.race(a=lambda: 1, b=lambda: 2, seconds=0.05)

    with pytest.raises(ValueError, match="were already raced"):
        lab.race(a=lambda: 1, c=lambda: 2)


def test_functions_and_processes_do_not_race_each_other(lab: Lab) -> None:
    with pytest.raises(TypeError, match="not both"):
        lab.race(one=lab.arm("one", test_an_arm_races_once), two=lambda: 1)


HOT_LOOP = """
import sys
from pathlib import Path
from tuilab.engine import messages
from tuilab.engine.spawn import socket_pair
from tuilab.record.journal.writer import Writer
from tuilab.record.order import CYCLE
from tuilab import Lab
from tuilab.lab.races.race import base_of
from tuilab.lab.races.timing import Pace
folder = Path(sys.argv[1])
order = messages.WorkerOrder(run_dir=str(folder), writer="worker-0", source_dir=str(folder))
lab = Lab(Writer(folder / "worker-0.jsonl"), folder, messages.WorkerLine(socket_pair()[0]), order)
step = 0
while True:
    lab.log(step, loss=0.5)
    if step % 1000 == 0:
        print(step, flush=True)
    step += 1
"""


def test_a_kill_in_a_hot_loop_loses_no_scalar(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOT_LOOP, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    reported = [int(process.stdout.readline()) for _ in range(5)][-1]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()

    items = read_stream(tmp_path / "worker-0.jsonl")

    logged = [item.s for item in items if isinstance(item, events.Logged)]
    assert not [item for item in items if isinstance(item, Corrupt | Gap)]
    assert logged == list(range(len(logged))) and len(logged) > reported
