"""Where a step's time goes: a part that was not measured has no number anywhere, and the reason is told."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands.fake_trainer import write_trainer
from tests.made_runs import make_run, started
from tuilab.record import events
from tuilab.record.journal.writer import Writer
from tuilab.reports.formats import html, md
from tuilab.reports.reported_run import read_subject
from tuilab.runs.past_runs import read_past_run
from tuilab.tui.state.own import own_commands

ALL = ["waits for data", "backward", "optimizer", "forward + rest"]


@pytest.mark.parametrize(
    ("parts", "names", "curves", "told"),
    [
        ("data backward optimizer", ALL, ["data_ms", "backward_ms", "optimizer_ms", "rest_ms"], "forward + rest 40 %"),
        (
            "backward optimizer", ALL[1:], ["backward_ms", "optimizer_ms", "rest_ms"],
            "forward + rest 60 %\nwaits for data: n/a, no DataLoader was used\n",
        ),
        (
            "data backward", [ALL[0], ALL[1], ALL[3]], ["data_ms", "backward_ms", "rest_ms"],
            "optimizer: n/a, no optimizer step was seen",
        ),
        ("data optimizer", [ALL[0], *ALL[2:]], ["data_ms", "optimizer_ms", "rest_ms"], "backward: n/a, none was seen"),
        (
            "data forward backward optimizer", [ALL[0], "forward", *ALL[1:3], "rest"],
            ["data_ms", "forward_ms", "backward_ms", "optimizer_ms", "rest_ms"],
            "forward 10 %, backward 30 %, optimizer 10 %, rest 30 %\nlargest avoidable part: rest, 30 %",
        ),
        ("optimizer", [], [], "mean of 58 of 60 steps\n1 optimizer step"),
    ],
)  # fmt: skip
def test_a_part_that_was_not_measured_has_no_number(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"],
    tmp_path: Path,
    parts: str,
    names: list[str],
    curves: list[str],
    told: str,
) -> None:
    done = tuilab("exec", "--json", "--", sys.executable, write_trainer(tmp_path), "--parts", parts)

    (run,) = json.loads(done.stdout)["runs"]
    bars: list[dict[str, Any]] = run["bars"]
    assert [name for one in bars for name in one["names"]] == names
    assert [
        name for one in run["series"] if (name := one["name"]).endswith("_ms") and name != "step_ms"
    ] == curves
    assert told in run["texts"][0]["text"]


def test_shares_are_told_in_tenths_of_a_percent(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    done = tuilab(
        "exec", "--json", "--", sys.executable, write_trainer(tmp_path), "--step-ms", "0.0000075"
    )

    values = json.loads(done.stdout)["runs"][0]["bars"][0]["values"]
    assert values == [14.3, 28.6, 14.3, 42.9]


def test_steps_are_counted_where_nothing_that_is_printed_says_of_how_many(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    done = tuilab("exec", "--jsonl", "--", sys.executable, write_trainer(tmp_path))

    told = [
        record
        for line in done.stdout.splitlines()
        if (record := json.loads(line))["k"] == "progressed"
    ]
    assert [(one["done"], one["total"]) for one in told][-1] == (60, 0)


def test_the_lab_tells_what_was_seen_line_by_line(root: Path) -> None:
    told = "a step takes 3 ms, mean of 9 steps\n1 optimizer step a step"
    run_dir = make_run(
        root,
        started(scenario="train", topic="exec", command=["python", "train.py"]),
        name="train.exec",
    )
    journal = Writer(run_dir / "journal" / "worker-0.jsonl")
    journal.append(events.TextShown(text=told, title="steps"))
    journal.close()

    (command, _) = own_commands.last(read_past_run, root)
    assert "\n\n".join(told.splitlines()) in command.lesson


def test_a_report_of_a_command_tells_what_was_seen_first_and_nothing_of_repeats_and_claims(
    root: Path,
) -> None:
    bars = events.BarsShown(title="where a step goes", names=["backward"], values=[40.0], unit="%")
    records: list[events.Event] = [started(topic="exec", command=["python", "train.py"])]
    records += [events.TextShown(text="a step takes 3 ms", title="steps")]
    records += [
        bars,
        events.Unavailable(what="gpu", reason="there is none"),
        events.Logged(s=0, v={"loss": 1.0}),
    ]
    run_dir = make_run(root, *records, events.StateChanged(state="succeeded"))
    for text in ("".join(html.render([read_subject(run_dir)])), md.render([read_subject(run_dir)])):
        places = [
            text.index(words)
            for words in ("a step takes 3 ms", "where a step goes", "What is missing")
        ]

        assert places == sorted(places)
        assert "1 repeat" not in text and "no claims" not in text


def test_two_runs_of_a_command_are_compared_by_their_steps_and_the_last_values_of_their_curves(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], root: Path
) -> None:
    for at, loss in enumerate((0.5, 0.25)):
        story = events.TextShown(
            text=f"a step takes {3 + at} ms, median of 9 steps\nbackward 40 %", title="steps"
        )
        records = [
            events.Logged(s=0, v={"loss": loss, "step_ms": 3.0}),
            story,
            events.StateChanged(state="succeeded"),
        ]
        make_run(
            root,
            started(topic="exec", command=["python", "train.py"]),
            *records,
            at_s=1.8e9 + at,
            end=f"{at}" * 6,
        )

    told = " ".join(tuilab("compare", "000000", "111111").stdout.split())
    assert "run last loss 0.5 | 0.25" in told and "last step_ms" not in told
    assert "Commands have no claims; `tuilab ab` compares" in told
    assert (
        "a step takes 3 ms, median of 9 steps | a step takes 4 ms, median of 9 steps"
        in told.replace(" 2 a", " | a")
    )


def test_the_result_tells_the_last_values_of_curves_those_of_patterns_too(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    done = tuilab(
        "exec",
        "--headless",
        "--metric",
        "acc=acc ([0-9.]+)",
        "--",
        sys.executable,
        write_trainer(tmp_path),
    )

    told = dict(
        re.split(" {2,}", line) for line in done.stderr.splitlines() if line.startswith("last ")
    )
    assert (
        told["last acc (printed)"] == "0.5"
        and "last backward root" in " ".join(told)
        and "_ms" not in " ".join(told)
    )


def test_result_of_many_workers_advises_less_work_for_an_item(
    tuilab: Callable[..., "subprocess.CompletedProcess[str]"], tmp_path: Path
) -> None:
    path = Path(write_trainer(tmp_path))
    facts = '"threads": 1, "cores": 640, "loaders": [{"workers": 5000, "is_iterable": False}]'
    path.write_text(path.read_text().replace('"threads": 1', facts))

    done = tuilab("exec", "--json", "--", sys.executable, str(path))
    (run,) = json.loads(done.stdout)["runs"]
    assert "largest avoidable part: waits for data, 20 %; " in run["texts"][0]["text"]
    assert "5000 processes load data already" in run["texts"][0]["text"]
