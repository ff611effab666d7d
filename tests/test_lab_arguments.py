"""Every argument of every call of the lab: refused at once with its name, or read back from the journal as it was given."""

import datetime
import fractions
import inspect
import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.engine import read_stream
from tests.test_docs import PLUMBING
from tuilab import Lab
from tuilab.catalogue.source import RACE_OPTIONS
from tuilab.engine import messages
from tuilab.engine.messages import WorkerOrder
from tuilab.engine.spawn import socket_pair
from tuilab.errors import BoxLacks
from tuilab.lab.races.race import Race, refuse_arms
from tuilab.probes.env import torch_facts
from tuilab.record import events
from tuilab.record.events import Unknown
from tuilab.record.journal.lines import Corrupt, Gap, Item
from tuilab.record.journal.writer import Writer


class Word(str):
    """A text that is more than a text."""


class Odd:
    """Cannot be told, and is no number."""

    def __repr__(self) -> str:
        raise RuntimeError("no words for it")

    def __float__(self) -> float:
        raise RuntimeError("no number either")


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


TWO = {1: "a", 2: "b"}  # values of a variable
ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)

EXAMPLES: list[Any] = [
    None, True, False, 0, 1, -1, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**400, 10**5000,
    0.0, -0.0, 1.5, 3.0, 5e-324, 1e308, math.nan, math.inf, -math.inf, 1j, Decimal("1e400"), fractions.Fraction(1, 3),
    "", "x", "nan", "1.5", "a\0b", "\x1b[2J", "\ud800", "caf\udce9", "\U0001f9ff", "x" * 5_000, "x" * 70_000, "\x01" * 20_000,
    Word("word"), b"", b"x", bytearray(b"x"), Path("x"), datetime.datetime(2030, 1, 1),
    np.int64(3), np.int64(-3), np.uint64(2**64 - 1), np.float32(0.5), np.float64("nan"), np.bool_(True), np.str_("word"),
    np.array(3), np.array([1.5, 2.5]), np.array([["x"]]), np.datetime64("2030-01-01"), np.complex64(1j),
    np.longdouble("1e4000"),
    torch.tensor(3), torch.tensor(0.5), torch.tensor([2]), torch.tensor([1.0, 2.0]), torch.tensor(1j), torch.tensor(True),
    torch.tensor(0.5, requires_grad=True), torch.empty((), device="meta"), torch.empty(0), torch.eye(2).to_sparse(),
    torch.eye(3, dtype=torch.float64) * 1e300, torch.tensor([[-1e308, 1e308]], dtype=torch.float64),
    [], [1, 2], (0, 1), [0, ""], ["a", 1.5, True], [None], [[1], [2, 3]], [[0.0, 1.0], [math.nan, math.inf]], nested(100),
    nested(5_000), ENDLESS, ["x" * 70_000], [1 / 3] * 4_000, {}, {"a": 1}, {"a": "b"}, {"a=b": "c"}, {"\ud800": "\0"}, {1: "x"},
    {2, 3}, object(), Odd(), int, len, lambda: 1,
]  # fmt: skip

values = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(st.characters()),
    st.binary(max_size=8),
    st.lists(st.one_of(st.integers(), st.floats(), st.text(st.characters())), max_size=4),
    st.floats(width=32).map(torch.tensor),
    st.integers(-(2**63), 2**63 - 1).map(np.int64),
)


FACTS = cache(
    torch_facts
)  # torch tells nothing new to one lab after the other, and is slow to tell
PLACE = (
    tempfile.TemporaryDirectory()
)  # for one lab after the other: where thousands had their own, removing them took longest
Path(PLACE.name, "scenario.py").write_text(
    '"""T.\n\n## Look for\n- [c] it is so\n"""\ndef run(lab): pass\n'
)


@pytest.fixture(autouse=True)
def known_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tuilab.lab.lab.torch_facts", FACTS)


@contextmanager
def new_lab() -> Iterator[tuple[Lab, Writer, Path]]:
    folder = Path(PLACE.name)
    (folder / "artifacts").mkdir(exist_ok=True)
    for left in [folder / "worker-0.jsonl", *(folder / "artifacts").iterdir()]:
        left.unlink(missing_ok=True)
    ours, theirs = socket_pair()
    order = WorkerOrder(run_dir=PLACE.name, writer="worker-0", source_dir=PLACE.name, quick=True)
    writer = Writer(folder / "worker-0.jsonl")
    with ours, theirs:
        yield Lab(writer, folder, messages.WorkerLine(ours), order), writer, folder
    writer.close()


def read_back(folder: Path) -> list[Item]:
    """Return the records after the one that every lab begins with."""
    return read_stream(folder / "worker-0.jsonl")[1:]


# ---- what should be read back


def as_number(value: Any) -> float:
    return float(value.item() if hasattr(value, "item") else value)


def as_plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def as_text(value: str) -> str:
    return value if len(value) <= 8000 else f"{value[:8000]}\n… {len(value) - 8000} characters more"


def as_cells(rows: Any) -> list[list[Any]]:
    """Return the cells of a table as they should be read back: a number that is not finite is a word there."""
    words = {"nan": "NaN", "inf": "Inf", "-inf": "-Inf"}
    return [[words.get(repr(as_plain(cell)), as_plain(cell)) for cell in row] for row in rows]


def as_measured(value: Any) -> Any:
    """Return what a claim compares: numbers one after the other, or words."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, list | tuple):
        parts = [as_measured(part) for part in value]
        if any(isinstance(part, str) and part for part in parts):
            return " ".join(
                part if isinstance(part, str) and part else str(list(part)) for part in parts
            )
        return [number for part in parts for number in part]
    return str(value) if isinstance(value, str | bool) else [float(value)]


def as_one(value: Any) -> Any:
    (only,) = as_measured(value)
    return only


def measured(found: events.Measured) -> list[float] | str:
    return found.words or found.numbers


def is_same(given: Any, found: Any) -> bool:
    """Say whether two plain values are equal, and NaN is NaN; no words and no numbers are the same nothing."""
    if isinstance(given, float) and isinstance(found, float) and math.isnan(given):
        return math.isnan(found)
    if isinstance(given, list) and isinstance(found, list):
        return len(given) == len(found) and all(map(is_same, given, found))
    return bool(given == found) or (given in ("", []) and found in ("", []))


class Call(NamedTuple):
    """How a value is handed in, as what it should come back, and where it is found."""

    call: Callable[[Lab, Any], Any]
    expected: Callable[[Any], Any] = as_plain
    kind: type[events.Event] | None = None
    found: Callable[[Any], Any] | None = None


def bounds(op: str) -> Call:
    return Call(
        lambda lab, v: lab.claim("c", 1, **{op: v}),
        as_measured,
        events.ClaimMeasured,
        lambda r: measured(r.want),
    )


def an_arm(lab: Lab) -> int:
    return 1


def squared() -> torch.Tensor:
    return torch.ones(2, requires_grad=True).square()


CALLS = {
    "stage.name": Call(lambda lab, v: lab.stage(v), as_plain, events.StageEntered, lambda r: r.name),
    "log.step": Call(lambda lab, v: lab.log(v, loss=1.0), as_plain, events.Logged, lambda r: r.place),
    "log.arm": Call(lambda lab, v: lab.log(0, arm=v, loss=1.0), as_plain, events.Logged, lambda r: r.a),
    "log.values": Call(lambda lab, v: lab.log(0, values=v), as_number, events.Logged, lambda r: r.v["values"]),
    "progress.done": Call(lambda lab, v: lab.progress(v, 0), as_plain, events.Progressed, lambda r: r.done),
    "progress.total": Call(lambda lab, v: lab.progress(2**63 - 1, v), as_plain, events.Progressed, lambda r: r.total),
    "progress.unit": Call(lambda lab, v: lab.progress(1, 1, v), as_plain, events.Progressed, lambda r: r.unit),
    "steps.count": Call(lambda lab, v: lab.steps(v, "training"), lambda v: "training", events.StageEntered, lambda r: r.name),
    "steps.name": Call(lambda lab, v: lab.steps(3, v), as_plain, events.StageEntered, lambda r: r.name),
    "sweep.values": Call(lambda lab, v: lab.sweep(v, "sizes"), lambda v: "sizes", events.StageEntered, lambda r: r.name),
    "sweep.name": Call(lambda lab, v: lab.sweep([1], v), as_plain, events.StageEntered, lambda r: r.name),
    "limit.low": Call(lambda lab, v: lab.limit(lambda x: x < 10, v, 100)),
    "limit.high": Call(lambda lab, v: lab.limit(lambda x: x < 10, -100, v)),
    "text.text": Call(lambda lab, v: lab.text(v), lambda v: as_text(as_plain(v)), events.TextShown, lambda r: r.text),
    "text.title": Call(lambda lab, v: lab.text("x", title=v), as_plain, events.TextShown, lambda r: r.title),
    "image.title": Call(lambda lab, v: lab.image(v, [[1]]), as_plain, events.ImageShown, lambda r: r.title),
    "image.cells": Call(
        lambda lab, v: lab.image("x", v),
        lambda v: list(torch.as_tensor(v).shape),
        events.ImageShown,
        lambda r: [r.rows, r.cols],
    ),
    "image.arm": Call(lambda lab, v: lab.image("x", [[1]], arm=v), as_plain, events.ImageShown, lambda r: r.arm),
    "image.step": Call(lambda lab, v: lab.image("x", [[1]], step=v), as_plain, events.ImageShown, lambda r: r.step),
    "axes.metric": Call(lambda lab, v: lab.axes(v), as_plain, events.AxesNamed, lambda r: r.metric),
    "axes.x": Call(lambda lab, v: lab.axes("m", x=v), as_plain, events.AxesNamed, lambda r: r.x),
    "axes.y": Call(lambda lab, v: lab.axes("m", y=v), as_plain, events.AxesNamed, lambda r: r.y),
    "axes.log": Call(lambda lab, v: lab.axes("m", log=v), as_plain, events.AxesNamed, lambda r: r.log),
    "bars.title": Call(lambda lab, v: lab.bars(v, {"a": 1}), as_plain, events.BarsShown, lambda r: r.title),
    "bars.values": Call(
        lambda lab, v: lab.bars("t", v), lambda v: [*map(float, v.values())], events.BarsShown, lambda r: r.values
    ),
    "bars.unit": Call(lambda lab, v: lab.bars("t", {"a": 1}, unit=v), as_plain, events.BarsShown, lambda r: r.unit),
    "table.title": Call(lambda lab, v: lab.table(v, [["a"]]), as_plain, events.TableShown, lambda r: r.title),
    "table.rows": Call(lambda lab, v: lab.table("t", v), as_cells, events.TableShown, lambda r: r.rows),
    "table.head": Call(lambda lab, v: lab.table("t", [], head=v), list, events.TableShown, lambda r: r.head),
    "span.lane": Call(lambda lab, v: lab.span(v, 0, 1), as_plain, events.SpanShown, lambda r: r.lane),
    "span.began": Call(lambda lab, v: lab.span("l", v, 1e308), as_number, events.SpanShown, lambda r: r.began),
    "span.ended": Call(lambda lab, v: lab.span("l", -1e308, v), as_number, events.SpanShown, lambda r: r.ended),
    "span.name": Call(lambda lab, v: lab.span("l", 0, 1, v), as_plain, events.SpanShown, lambda r: r.name),
    "span.arm": Call(lambda lab, v: lab.span("l", 0, 1, arm=v), as_plain, events.SpanShown, lambda r: r.arm),
    "span.unit": Call(lambda lab, v: lab.span("l", 0, 1, unit=v), as_plain, events.SpanShown, lambda r: r.unit),
    "artifact.name": Call(lambda lab, v: lab.artifact(v, "x"), as_plain, events.ArtifactSaved, lambda r: r.name),
    "artifact.data": Call(
        lambda lab, v: lab.artifact("x", v).read_bytes(),
        lambda v: len(v.encode() if isinstance(v, str) else v),
        events.ArtifactSaved,
        lambda r: r.bytes_total,
    ),
    "device.wanted": Call(lambda lab, v: lab.device(v)),
    "needs.condition": Call(lambda lab, v: lab.needs(v, "a GPU")),
    "needs.what": Call(lambda lab, v: lab.needs(False, v)),
    "memory.name": Call(lambda lab, v: enter(lab.memory(v)), as_plain, events.MemoryMeasured, lambda r: r.name),
    "count.args": Call(lambda lab, v: lab.count(lambda x: None, v)),
    "count.backward": Call(lambda lab, v: lab.count(squared, backward=v)),
    "raises.args": Call(lambda lab, v: lab.raises(lambda x: None, v)),
    "warns.args": Call(lambda lab, v: lab.warns(lambda x: None, v)),
    "precision.name": Call(lambda lab, v: enter(lab.precision(v))),
    "lacks_units.dtype": Call(lambda lab, v: lab.lacks_units(v)),
    "memory.arm": Call(lambda lab, v: enter(lab.memory("x", arm=v)), as_plain, events.MemoryMeasured, lambda r: r.arm),
    "memory.model": Call(lambda lab, v: enter(lab.memory("x", model=v))),
    "memory.timeline": Call(lambda lab, v: enter(lab.memory("x", timeline=v))),
    "arm.name": Call(lambda lab, v: lab.arm(v, an_arm).name),
    "arm.body": Call(lambda lab, v: lab.arm("x", v)),
    "arm.args": Call(lambda lab, v: lab.arm("x", an_arm, v)),
    "arm.env": Call(lambda lab, v: lab.arm("x", an_arm, env=v)),
    "arm.prefix": Call(lambda lab, v: lab.arm("x", an_arm, prefix=v)),
    "arm.timeout": Call(lambda lab, v: lab.arm("x", an_arm, timeout=v)),
    "claim.key": Call(lambda lab, v: lab.claim(v, True)),
    "claim.got": Call(
        lambda lab, v: lab.claim("c", v, equals=1), as_measured, events.ClaimMeasured, lambda r: measured(r.got)
    ),
    "claim.equals": bounds("equals"),
    "claim.at_most": bounds("at_most"),
    "claim.at_least": bounds("at_least"),
    "claim.between": bounds("between"),
    "claim.tolerance": Call(
        lambda lab, v: lab.claim("c", 1, equals=1, tolerance=v), as_number, events.ClaimMeasured, lambda r: r.tolerance
    ),
    "claim.unit": Call(lambda lab, v: lab.claim("c", 1, equals=1, unit=v), as_plain, events.ClaimMeasured, lambda r: r.unit),
    "claim.lacks": Call(lambda lab, v: lab.claim("c", True, lacks=v)),
    "claim.answers": Call(lambda lab, v: lab.claim("c", True, answers=v)),
    "claim.at": Call(lambda lab, v: lab.claim("c", True, at=v)),
    "advise.name": Call(lambda lab, v: lab.advise(v, TWO, default=2, about="x")),
    "advise.values": Call(lambda lab, v: lab.advise("OMP_NUM_THREADS", {1: v, 2: v}, default=2, about="x")),
    "advise.default": Call(lambda lab, v: lab.advise("OMP_NUM_THREADS", TWO, default=v, about="x")),
    "advise.about": Call(
        lambda lab, v: lab.advise("OMP_NUM_THREADS", TWO, default=2, about=v), as_plain, events.SettingRaced, lambda r: r.about
    ),
    "advise.against": Call(lambda lab, v: lab.advise("OMP_NUM_THREADS", TWO, default=2, about="x", against=v)),
    "advise.ranks": Call(lambda lab, v: lab.advise("OMP_NUM_THREADS", TWO, default=2, about="x", ranks=v)),
    "advise.unit": Call(lambda lab, v: lab.advise("OMP_NUM_THREADS", TWO, default=2, about="x", unit=v)),
    "claim_ratio.key": Call(lambda lab, v: lab.claim_ratio(v, "a/b", at_least=2)),
    "claim_ratio.ratio": Call(
        lambda lab, v: lab.claim_ratio("c", v, at_least=2), as_plain, events.ClaimDeclared, lambda r: f"{r.over}/{r.under}"
    ),
    "claim_ratio.at_least": Call(
        lambda lab, v: lab.claim_ratio("c", "a/b", at_least=v), as_one, events.ClaimDeclared, lambda r: r.bound
    ),
    "claim_ratio.at_most": Call(
        lambda lab, v: lab.claim_ratio("c", "a/b", at_most=v), as_one, events.ClaimDeclared, lambda r: r.bound
    ),
    "claim_ratio.margin": Call(
        lambda lab, v: lab.claim_ratio("c", "a/b", at_least=2, margin=v), as_number, events.ClaimDeclared, lambda r: r.margin
    ),
    "claim_ratio.lacks": Call(lambda lab, v: lab.claim_ratio("c", "a/b", at_least=2, lacks=v)),
    "claim_ratio.answers": Call(lambda lab, v: lab.claim_ratio("c", "a/b", at_least=2, answers=v)),
    "claim_ratio.at": Call(lambda lab, v: lab.claim_ratio("c", "a/b", at_least=2, at=v)),
}  # fmt: skip

# Whatever these take makes them work for a while, or is called.
SLOW: dict[str, tuple[Callable[[Any, Any], object], list[Any]]] = {
    "once.part": (lambda lab, v: lab.once(v), [None, "x", 1, Odd()]),
    "count.f": (lambda lab, v: lab.count(v), [None, "x", 1, Odd()]),
    "limit.works": (
        lambda lab, v: lab.limit(v, 0, 1),
        [None, "x", 1, Odd(), lambda x: torch.ones(2)],
    ),
    "ranks.count": (lambda lab, v: lab.ranks(v, an_arm), [None, "2", 0, -1, 1.5, 65, 2**63, Odd()]),
    "ranks.body": (lambda lab, v: lab.ranks(2, v), [None, "x", 1, lambda: 1, Odd()]),
    "ranks.args": (
        lambda lab, v: lab.ranks(2, an_arm, v),
        [object(), torch.ones(2), "x" * 300_000, Odd()],
    ),
    "ranks.timeout": (
        lambda lab, v: lab.ranks(2, an_arm, timeout=v),
        [None, "2", 0, -1, math.nan, Odd()],
    ),
    "neighbours.count": (
        lambda lab, v: lab.neighbours(v),
        [None, "2", -1, 1.5, 2**63, 10**6, Odd()],
    ),
    "raises.f": (lambda lab, v: lab.raises(v), [None, "x", 1, Odd()]),
    "warns.f": (lambda lab, v: lab.warns(v), [None, "x", 1, Odd()]),
    "race.same": (
        lambda lab, v: lab.race(a=len, b=len, same=v),
        ["x", math.nan, -1, b"", [1], 2**70 * 1j],
    ),
    "race.seconds": (
        lambda lab, v: lab.race(a=len, b=len, seconds=v),
        [None, "1", 0, -1, math.nan, math.inf, 1e300, Odd()],
    ),
    "race.threads": (
        lambda lab, v: lab.race(a=len, b=len, threads=v),
        [None, "1", 0, -1, 1.5, 2**63, 10**6, Odd()],
    ),
    "race.device": (lambda lab, v: lab.race(a=len, b=len, device=v), ["cpu", 0, Odd()]),
    "race.factories": (
        lambda lab, v: lab.race(a=len, b=len, factories=v),
        [None, 0, 1, "yes", [True], Odd()],
    ),
    "race.lacks": (
        lambda lab, v: lab.race(a=len, b=len, lacks=v),
        [None, 1, "x" * 5_000, "caf\udce9", b"x", Odd()],
    ),
    "race.arms": (lambda lab, v: lab.race(arms=v, other=len), [None, 1, "x", Odd()]),
    "effective_cores.processes": (
        lambda lab, v: lab.effective_cores(v),
        [None, "2", 0, -1, 1.5, 2**63, 10**6, math.nan],
    ),
    "advise.cores": (
        lambda lab, v: lab.advise("OMP_NUM_THREADS", TWO, default=2, about="x", cores=v),
        [None, "2", -1, 1.5, 2**63, 10**6, Odd()],
    ),
    "claim_ratio.cores": (
        lambda lab, v: lab.claim_ratio("c", "a/b", at_least=2, cores=v),
        [None, "2", -1, 1.5, 2**63, 10**6, math.nan],
    ),
}
# A record names what it holds; where that has another name than the argument, either will do.
ARGUMENT = {
    "claim.lacks": ("lacks", "needs"),
    "claim.old": ("margin",),
    "claim_ratio.lacks": ("lacks", "needs"),
    "claim_ratio.ratio": ("ratio", "over", "under"),
    "claim_ratio.at_least": ("at_least", "bound"),
    "claim_ratio.at_most": ("at_most", "bound"),
}


def enter(block: AbstractContextManager[object]) -> None:
    with block:
        torch.zeros(2)


def arguments() -> set[str]:
    """Return every argument of every call that a scenario makes."""
    calls = {
        name: call
        for name, call in vars(Lab).items()
        if not name.startswith("_") and name not in PLUMBING
    }
    return {
        f"{name}.{given}"
        for name, call in calls.items()
        for given in list(inspect.signature(call).parameters)[1:]
    }


def test_every_argument_of_every_call_is_tried() -> None:
    assert set(CALLS) | set(SLOW) == arguments()


@pytest.mark.filterwarnings("ignore")  # of numpy and torch, about values that nobody would hand in
@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
@settings(max_examples=40, suppress_health_check=list(HealthCheck))
@given(value=values)
def test_an_argument_is_refused_by_its_name_or_read_back(name: str, value: Any) -> None:
    try_one(name, value)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CALLS)
def test_the_odd_values_are_refused_or_read_back(name: str) -> None:
    for place, value in enumerate(EXAMPLES):
        try:
            try_one(name, value)
        except BaseException as problem:
            pytest.fail(
                f"{name}: EXAMPLES[{place}], a {type(value).__name__}: {problem!r}"[:500],
                pytrace=False,
            )


def try_one(name: str, value: Any) -> None:
    call, expected, kind, found = CALLS[name]
    argument = ARGUMENT.get(name, (name.partition(".")[2],))
    with new_lab() as (lab, writer, folder):
        try:
            call(lab, value)
        except (TypeError, ValueError) as problem:
            assert any(word in str(problem) for word in argument), (name, str(problem))
            assert len(str(problem)) < 600
            items = read_back(folder)
            assert kind is None or not [item for item in items if isinstance(item, kind)]
        except BoxLacks as lack:
            assert name == "device.wanted" or str(lack) == (
                as_plain(value) if name == "needs.what" else "a GPU"
            )
            items = read_back(folder)
        else:
            items = read_back(folder)
            if kind is not None and found is not None:
                (record,) = (item for item in items if isinstance(item, kind))
                assert is_same(expected(value), found(record)), (name, value, record)
        assert not [item for item in items if isinstance(item, Corrupt | Gap | Unknown)]
        assert (writer.lost, writer.trouble) == (0, "")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SLOW)
def test_what_would_take_long_is_refused_before_it_begins(name: str) -> None:
    call, odd = SLOW[name]
    with new_lab() as (lab, _, folder):
        for value in odd:
            with pytest.raises((TypeError, ValueError), match=name.partition(".")[2]):
                call(lab, value)

        assert [
            item for item in read_back(folder) if not isinstance(item, events.ClaimDeclared)
        ] == []


@given(
    names=st.lists(
        st.text(st.characters(), min_size=1).filter(lambda n: n not in ("self", "step", "arm")),
        unique=True,
    )
)
@example(names=["\ud800"])
@example(names=["x" * 70_000])
@example(names=[f"scalar number {number}" for number in range(3000)])
@settings(max_examples=50)
@pytest.mark.parametrize("last", [1.0, math.nan])
def test_the_names_of_scalars_are_refused_or_read_back(names: list[str], last: float) -> None:
    scalars: dict[str, Any] = dict.fromkeys(names, last)
    with new_lab() as (lab, writer, folder):
        try:
            lab.log(0, **scalars)
        except ValueError as problem:
            assert "the names and values together: " in str(problem)
            scalars = {}
        found = [item.v for item in read_back(folder) if isinstance(item, events.Logged)]
        assert repr(found) == repr([scalars] if scalars or not names else [])
        assert writer.lost == 0


@pytest.mark.parametrize(
    "value", [1, np.float32(0.5), np.int64(7), torch.tensor(2.5), torch.tensor([3]), True, 2**60]
)
def test_an_honest_number_of_any_library_is_logged(value: Any) -> None:
    with new_lab() as (lab, _, folder):
        step: Any = np.int64(5)
        lab.log(step, loss=value)

        (record,) = read_back(folder)
        assert isinstance(record, events.Logged)
        assert (record.s, record.v) == (5, {"loss": float(value)})


@pytest.mark.parametrize("value", ["x" * 70_000, "caf\udce9"], ids=["too long", "half a character"])
def test_an_arm_of_a_race_that_cannot_be_recorded_is_refused_before_it_is_called(
    value: str,
) -> None:
    called: list[int] = []
    with new_lab() as (lab, _, _), pytest.raises(ValueError, match=r"arms|loops|base"):
        arms: dict[str, Any] = {value: lambda: called.append(1), "other": lambda: called.append(2)}
        lab.race(**arms)

    assert called == []


@pytest.mark.parametrize("name", sorted(RACE_OPTIONS))
@pytest.mark.parametrize("arm", [lambda: None, lambda n=2: n, Lab.arm], ids=["0", "1", "3"])
def test_arm_named_as_a_parameter_of_race_is_refused_in_a_sentence(name: str, arm: Any) -> None:
    arms: dict[str, Any] = {"other": lambda: None, "third": lambda: None, name: arm}
    sentence = f"^{name} .* cannot be the name of an arm; give the arm another name$"
    with new_lab() as (lab, _, _), pytest.raises(TypeError, match=sentence):
        lab.race(**arms)


@pytest.mark.parametrize("same", [torch.equal, torch.allclose, max, lambda a, b, c=1: True])
def test_function_of_two_outputs_is_no_arm(same: Any) -> None:
    device = torch.device("cpu")
    refuse_arms(same, seconds=2.0, threads=1, device=device, factories=False, lacks="")


def test_arm_and_metric_may_have_the_name_self() -> None:
    with new_lab() as (lab, _, folder):
        arms: dict[str, Any] = {"self": lambda: None, "other": lambda: None}
        lab.log(0, self=1.0)
        race = lab.race(lacks="a GPU", **arms)

        logged, *_ = read_back(folder)
    assert isinstance(logged, events.Logged)
    assert logged.v == {"self": 1.0}
    with pytest.raises(ValueError, match="lacks a GPU"):
        race.ratio("self", "other")


def test_check_knows_the_parameters_of_race() -> None:
    parameters = inspect.signature(Lab.race).parameters

    assert set(parameters) - {"self", "arms"} == RACE_OPTIONS


@pytest.mark.parametrize("arm", ["c", None, 1, "", [], "\ud800", b"a"])
def test_a_race_names_the_arm_that_it_did_not_have(arm: Any) -> None:
    race = Race({"a": [1.0], "b": [2.0]})
    for argument, arms in (("over", (arm, "b")), ("under", ("a", arm))):
        with pytest.raises((TypeError, ValueError), match=f"^{argument} takes"):
            race.ratio(*arms)


def test_a_record_that_interrupts_another_is_refused_where_it_is_handed_in() -> None:
    """A signal handler of the scenario may log in the middle of a record: what it hands in is judged there."""
    said: list[str] = []

    class Interrupting(events.StageEntered, tag="stage_entered"):
        pass

    with new_lab() as (lab, writer, folder):

        def encode_and_log(event: events.Event) -> bytes:
            for name in ("\ud800", "fine"):
                scalars: dict[str, Any] = {name: 1.0}
                try:
                    lab.log(1, **scalars)
                except ValueError as problem:
                    said.append(str(problem))
            return msgspec.json.encode(event)

        writer.append(Interrupting(name="slow"), encode_and_log)
        found = read_back(folder)

    assert [type(item) for item in found] == [events.StageEntered, events.Logged]
    assert len(said) == 1 and "half a character" in said[0]
