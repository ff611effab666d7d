"""The description of a run: however long it is, it is recorded whole, or refused before there is a run."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine import look, newest, read_stream, write_scenario
from tuilab.catalogue.scenario import Param, Scenario, StatedClaim
from tuilab.engine import launch
from tuilab.engine.create_run import first_records
from tuilab.errors import UsageError
from tuilab.record import events
from tuilab.record.encoding import LINE_LIMIT, encode_anything
from tuilab.record.folding.fold import fold
from tuilab.record.journal.writer import Writer

LONG = ("params", "changed", "claims", "claim_keys", "argv")


def started(**more: Any) -> events.RunStarted:
    me = events.Identity(host="box", boot="b", pid=1, start=1)
    return events.RunStarted(
        format=1, run="r", scenario="s", topic="t", source_sha256="", supervisor=me, tuilab="0", wall_ns=1,
        **{"title": "T", "params": {}, **more},
    )  # fmt: skip


@given(
    params=st.dictionaries(
        st.text(max_size=20),
        st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(max_size=1000)),
        max_size=30,
    ),
    claims=st.lists(st.text(max_size=4000), max_size=40),
    argv=st.lists(st.text(max_size=4000), max_size=40),
    title=st.text(max_size=1000),
    has_keys=st.booleans(),
)
@settings(max_examples=30)
def test_a_description_of_any_length_is_read_back_whole(
    tmp_path_factory: pytest.TempPathFactory,
    params: dict[str, Any],
    claims: list[str],
    argv: list[str],
    title: str,
    has_keys: bool,
) -> None:
    keys = [f"key-{at}" for at in range(len(claims))] if has_keys else []
    whole = {
        "params": params,
        "changed": list(params),
        "claims": claims,
        "claim_keys": keys,
        "argv": argv,
    }
    path = tmp_path_factory.mktemp("journal") / "supervisor.jsonl"
    writer = Writer(path)

    assert all(writer.append(record) for record in first_records(started(title=title, **whole)))

    summary = fold([("supervisor", item) for item in read_stream(path)])
    assert summary.run is not None
    assert {name: getattr(summary.run, name) for name in LONG} == whole
    known = {name: (claim.key, claim.text) for name, claim in summary.claims.items()}
    pairs = zip(keys or [""] * len(claims), claims, strict=True)
    assert known == {key or text: (key, text) for key, text in pairs}
    assert summary.run.title == title


def test_a_short_description_is_one_record() -> None:
    usual = started(params={"rows": 5}, changed=["rows"], claims=["one is one"], argv=["run", "x"])

    assert first_records(usual) == [usual]


def test_each_record_of_a_long_description_fits_a_line() -> None:
    records = first_records(
        started(title="x" * 100_000, claims=["\x01" * 4000] * 50, argv=["\x01" * 100_000] * 3)
    )

    assert max(len(encode_anything(record)) for record in records) < LINE_LIMIT - 100
    (first, *_) = records
    assert isinstance(first, events.RunStarted) and first.title.endswith("… 99000 characters more")


@pytest.mark.slow
def test_a_run_with_a_thousand_claims_starts_and_is_whole(
    tmp_path: Path, root: Path, tuilab: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    texts = [
        f"claim number {number} is about as long as claims are, which is a line or so of text"
        for number in range(1500)
    ]
    claims = {f"c{number}": text for number, text in enumerate(texts)}
    body = 'lab.claim("c0", True)'

    done = tuilab(
        "run", str(write_scenario(tmp_path, body, claims=claims)), "--headless", "--quiet"
    )
    verified = tuilab("verify")

    run_dir = newest(root)
    assert run_dir is not None and done.returncode == 0, done.stderr
    assert [claim.text for claim in look(run_dir).summary.claims.values()] == texts
    assert verified.stdout.splitlines()[-1] == "complete and unchanged"


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (
            Scenario("s", "t", "s.py", claims=(StatedClaim("", "c" * 4001),)),
            "a claim takes up to 4000 characters; c+… has 4001",
        ),
        (
            Scenario(
                "s",
                "t",
                "s.py",
                params=(Param("kind", "choice", "a", choices=("a", "b" * 100_000)),),
            ),
            "kind: b+… cannot be recorded; use a text of up to 1000 characters",
        ),
        (
            Scenario(
                "s",
                "t",
                "s.py",
                params=tuple(Param(f"p{n}", "str", "x" * (900 + n // 2)) for n in range(120)),
            ),
            "parameters may have 100000 bytes together, not [0-9]+; the longest is p11[89]",
        ),
    ],
    ids=["a claim", "a choice", "all parameters"],
)
def test_what_cannot_be_recorded_is_refused_before_there_is_a_run(
    scenario: Scenario, said: str, tmp_path: Path
) -> None:
    given_values = {param.name: param.choices[-1] for param in scenario.params if param.choices}

    with pytest.raises(UsageError, match=said):
        launch.order(scenario, given_values, root=tmp_path)
