"""Which value of a variable follows: the one that won against all others here, while the box is what it was."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.advice_aids import HERE, HOST, THREADS, make_raced_run, setting_raced
from tests.made_runs import make_run, started
from tests.report_aids import checked_document
from tuilab.catalogue.scenario import Scenario
from tuilab.probes.settings import VariableSetting, read_setting
from tuilab.record import events
from tuilab.reports.advice.advised import Advice, AdvisedSetting, advise
from tuilab.reports.advice.env_file import env_file
from tuilab.reports.advice.winner import ChosenValue, choose_value
from tuilab.reports.reported_run import ReportedRun, read_subject

Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]
SHELLS = [pytest.param(name, marks=pytest.mark.skipif(not shutil.which(name), reason=f"there is no {name}"))
          for name in ("sh", "bash", "dash", "zsh")]  # fmt: skip
OMP = Scenario("omp-threads", "cpu", "", settings=(("OMP_NUM_THREADS", "program"),))
RANK = Scenario("rank-threads", "cpu", "", settings=(("OMP_NUM_THREADS", "ranks"),))


def chosen(subject: ReportedRun) -> ChosenValue:
    return choose_value(subject.summary, next(iter(subject.summary.settings.values())))


def advised(*subjects: ReportedRun, **more: Any) -> Advice:
    return advise(subjects, {**HERE, "host": HOST}, **more)


def values(found: list[AdvisedSetting]) -> list[tuple[str, str]]:
    return [(one.name, one.choice.value) for one in found]


def unfolded(advice: Advice) -> str:
    """Return the file without the ends of its lines."""
    return " ".join(env_file(advice).replace("#  ", "").split())


# ---- which value won


def test_the_value_wins_that_is_better_than_the_default_and_all_others(tmp_path: Path) -> None:
    found = chosen(make_raced_run(tmp_path))

    assert (found.value, found.is_decided) == ("4", True)
    assert {value: round(judged.estimate or 0, 1) for value, judged in found.against.items()} == {
        "1": 4.0,
        "2": 2.0,
        "8": 1.5,
    }


@pytest.mark.parametrize(
    ("times", "won"),
    [
        ({"1": 1.0, "2": 1.01, "8": 1.5}, "1"),  # a tie goes to the one that takes less
        ({"1": 1.0, "2": 0.9, "8": 1.5}, "2"),
        ({"1": 4.0, "2": 1.5, "8": 1.5}, ""),  # a tie with the default leaves it
        ({"1": 4.0, "2": 1.48, "8": 1.5}, ""),  # too little for a variable
        ({"1": 4.0, "2": 2.0, "8": 1.0}, ""),  # the default itself is never advised
    ],
)
def test_a_tie_goes_to_the_default_or_else_to_the_cheaper_value(
    tmp_path: Path, times: dict[str, float], won: str
) -> None:
    found = chosen(make_raced_run(tmp_path, times))

    assert (found.value, found.is_decided, found.why) == (won, True, "")


def test_what_the_box_was_too_disturbed_for_is_not_decided(tmp_path: Path) -> None:
    cores = (events.CoresMeasured(processes=8, effective=2.0),)

    found = chosen(make_raced_run(tmp_path, cores=8, before=cores))

    assert (found.value, found.is_decided) == ("", False)
    assert (
        found.why
        == "1 against the default, 8: 8 busy processes got only 2.0 cores between them: the machine is too busy or too small"
    )


def test_a_difference_that_noise_hides_is_not_decided(tmp_path: Path) -> None:
    found = chosen(make_raced_run(tmp_path, {"1": 1.0, "8": 1.12}, noise=0.3))

    assert (found.value, found.is_decided) == ("", False)


def test_values_that_were_named_after_their_race_are_not_chosen_among(tmp_path: Path) -> None:
    subject = make_raced_run(tmp_path)
    begun = events.RaceStarted(
        arms=[f"arm {value}" for value in THREADS], threads=1, device="cpu", loops={}
    )
    late = read_subject(make_run(tmp_path / "late", started(), begun, setting_raced(THREADS)))

    assert chosen(subject).value == "4"
    assert chosen(late).why == "the candidate values were declared after the timing had started"


def test_of_what_was_counted_the_least_wins_in_every_repeat(tmp_path: Path) -> None:
    bytes_of = {"expandable_segments:True": 5e8, "expandable_segments:False": 1e9}
    more: dict[str, Any] = {"name": "PYTORCH_ALLOC_CONF", "is_counted": True, "unit": "B"}

    assert chosen(make_raced_run(tmp_path, bytes_of, **more)).value == "expandable_segments:True"
    assert (
        chosen(
            make_raced_run(tmp_path / "2", {**bytes_of, "expandable_segments:True": 9.9e8}, **more)
        ).value
        == ""
    )


# ---- which runs count


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"run": {"quick": True}}, "it ran with other options: --quick"),
        (
            {"run": {"changed": ["size"], "params": {"size": 32}}},
            "it ran with other options: --size 32",
        ),
        ({"state": "failed"}, "it ended as failed"),
        ({"variables": {"OMP_PROC_BIND": "close"}}, "OMP_PROC_BIND was already set when it ran"),
        ({"box": {**HERE, "torch": "2.1.0"}}, f"torch was 2.1.0, is {HERE['torch']}"),
        ({"box": {**HERE, "cores": "77"}}, f"cores was 77, is {HERE['cores']}"),
        ({"box": {**HERE, "CPU": "Z80"}}, f"CPU was Z80, is {HERE['CPU']}"),
    ],
)
def test_a_run_that_cannot_speak_for_the_box_is_named_with_the_reason(
    tmp_path: Path, change: dict[str, Any], why: str
) -> None:
    found = advised(make_raced_run(tmp_path, **change), scenarios=[OMP])

    assert (values(found.settings), [one.why for one in found.unused]) == ([], [why])
    assert "export" not in env_file(found)
    assert f"OMP_NUM_THREADS: cpu/omp-threads, run abcdef: {why}" in unfolded(found)
    assert "#   OMP_NUM_THREADS: tuilab run omp-threads --headless\n" in env_file(found)


def test_runs_of_another_box_do_not_count(tmp_path: Path) -> None:
    found = advise([make_raced_run(tmp_path)], {**HERE, "host": "elsewhere"})

    assert [one.why for one in found.unused] == ["it ran on another machine"]


def test_on_a_gpu_its_driver_and_its_model_count_too(tmp_path: Path) -> None:
    on_gpu = events.EnvironmentRecorded(
        part="cuda", facts={"chosen": "u-1", "devices": [{"uuid": "u-1", "name": "NVIDIA H200"}]}
    )
    driver = events.EnvironmentRecorded(part="gpu", facts={"driver": "580.1"})
    subject = make_raced_run(tmp_path, before=(on_gpu, driver))
    then = {**HERE, "host": HOST, "driver": "580.1", "GPU": "NVIDIA A100, NVIDIA H200"}

    same, newer, other = (
        advise([subject], {**then, **now})
        for now in ({}, {"driver": "590.2"}, {"GPU": "NVIDIA A100"})
    )

    assert values(same.settings) == [("OMP_NUM_THREADS", "4")]
    assert [one.why for one in newer.unused] == ["driver was 580.1, is 590.2"]
    assert [one.why for one in other.unused] == ["GPU was NVIDIA H200, is NVIDIA A100"]


def test_of_several_runs_the_newest_that_counts_speaks(tmp_path: Path) -> None:
    old = make_raced_run(tmp_path, {"1": 1.0, "8": 2.0}, end="000001", run={"wall_ns": 10**18})
    new = make_raced_run(tmp_path, {"1": 4.0, "8": 2.0}, end="000002", run={"wall_ns": 2 * 10**18})
    quick = make_raced_run(
        tmp_path, {"1": 1.0, "8": 2.0}, end="000003", run={"wall_ns": 3 * 10**18, "quick": True}
    )

    found = advised(old, quick, new)

    assert (found.settings, found.unused, [one.subject.id for one in found.unchanged]) == (
        [],
        [],
        ["000002"],
    )


def test_scenarios_that_disagree_set_nothing(tmp_path: Path) -> None:
    others = {"topic": "cpu", "scenario": "another"}

    found = advised(
        make_raced_run(tmp_path), make_raced_run(tmp_path / "2", {"1": 1.0, "8": 2.0}, run=others)
    )

    assert found.settings == [] and sorted(values(found.conflicts)) == [
        ("OMP_NUM_THREADS", "1"),
        ("OMP_NUM_THREADS", "4"),
    ]
    assert "Not set, because the runs disagree" in env_file(found)


def test_ranks_have_values_of_their_own_and_only_for_as_many_as_raced(tmp_path: Path) -> None:
    of_four = make_raced_run(
        tmp_path,
        {"1": 2.0, "2": 1.0},
        ranks=4,
        default="1",
        run={"changed": ["ranks"], "params": {"ranks": 4}},
    )

    assert advised(of_four).settings == []
    assert values(advised(of_four, ranks=4).settings) == [("OMP_NUM_THREADS", "2")]
    eight = advised(of_four, ranks=8, scenarios=[RANK, OMP])
    assert (
        eight.settings == []
        and "#   OMP_NUM_THREADS: tuilab run rank-threads --ranks 8 --headless\n" in env_file(eight)
    )
    assert "each of 4 ranks that torchrun starts on this machine (--nproc-per-node 4)" in unfolded(
        advised(of_four, ranks=4)
    )


# ---- the file


def test_a_setting_says_what_it_won_against_what_speaks_against_it_and_whence_it_comes(
    tmp_path: Path,
) -> None:
    found = advised(make_raced_run(tmp_path, against="beside others it is slower"))

    lines = unfolded(found)
    assert (
        "# OMP_NUM_THREADS=4: large products. Other values relative to it: 1 x4 [" in lines
        and "8 (the default) x1.5 [" in lines
    )
    assert "# drawback: beside others it is slower" in lines
    assert "# cpu/omp-threads, run abcdef of 2001-09-09 (tuilab run omp-threads" in lines
    assert (
        f"Measured on {HOST}, {HERE['CPU']}, {HERE['cores']} cores, torch {HERE['torch']}." in lines
    )
    assert "\nexport OMP_NUM_THREADS=4\n" in env_file(found)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_sources_it_has_the_settings_whatever_words_are_in_it(
    tmp_path: Path, shell: str
) -> None:
    evil = "'; reboot #\n$(reboot) `reboot` \\"
    subject = make_raced_run(
        tmp_path, about=evil, against=evil, run={"scenario": evil, "title": evil}
    )
    (file := tmp_path / "box.env").write_text(env_file(advised(subject)))

    assert sourced(shell, file) == ("4\n", "")


@pytest.mark.parametrize("shell", SHELLS)
def test_shell_on_another_host_has_no_settings_and_goes_on(tmp_path: Path, shell: str) -> None:
    elsewhere = "it's elsewhere"
    found = advise([make_raced_run(tmp_path)], {**HERE, "host": HOST})
    found.facts["host"] = elsewhere

    (file := tmp_path / "box.env").write_text(env_file(found))

    assert sourced(shell, file) == (
        "unset\n",
        f"box.env sets nothing: it was measured on {elsewhere}\n",
    )


def test_file_is_plain_shell_without_a_program_in_it(tmp_path: Path) -> None:
    lines = env_file(advised(make_raced_run(tmp_path))).splitlines()

    code = [line for line in lines if line and not line.startswith("#")]
    assert len(code) == 5 and code[3] == "export OMP_NUM_THREADS=4"


def sourced(shell: str, file: Path) -> tuple[str, str]:
    """Source a file in a strict shell; return what OMP_NUM_THREADS is in a program that it starts, and what was said."""
    code = f"set -eu; . {file}; /bin/sh -c 'echo \"${{OMP_NUM_THREADS-unset}}\"'"
    done = subprocess.run([shell, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout, done.stderr


# ---- the words of a setting


@pytest.mark.parametrize("text", ["", "OMP_NUM_THREADS", "PATH=/evil", "OMP_NUM_THREADS=", "OMP_NUM_THREADS=1\nX=2",
                                  "OMP_NUM_THREADS=$(reboot)", "OMP_NUM_THREADS=1;reboot", "omp_num_threads=1"])  # fmt: skip
def test_only_variables_of_training_with_plain_values_are_settings(text: str) -> None:
    with pytest.raises(ValueError, match="setting"):
        read_setting(text)


@pytest.mark.parametrize(
    ("name", "value"),
    [("PATH", "1"), ("DATALOADER_NUM_WORKERS", "1"), ("OMP_NUM_THREADS", "$(reboot)")],
)
def test_a_journal_that_names_another_variable_or_value_sets_nothing(
    tmp_path: Path, name: str, value: str
) -> None:
    assert "export" not in env_file(
        advised(make_raced_run(tmp_path, {value: 1.0, "8": 2.0}, name=name))
    )


def test_a_setting_is_a_name_and_a_value() -> None:
    assert read_setting("OMP_PROC_BIND=false") == VariableSetting("OMP_PROC_BIND", "false")


# ---- the command


@pytest.mark.real_torch
def test_the_command_writes_the_file_for_the_newest_runs_that_count(
    tuilab: Tuilab, root: Path, tmp_path: Path
) -> None:
    make_raced_run(root, end="000001")
    make_raced_run(root, end="000002", run={"quick": True})
    target = tmp_path / "box.env"

    done = tuilab("advise", "-o", str(target))

    assert (done.returncode, done.stderr) == (0, f"1 setting: {target}\n")
    assert "\nexport OMP_NUM_THREADS=4\n" in target.read_text()


def test_the_result_of_a_run_says_what_came_of_it_and_of_a_quick_one_nothing(
    tuilab: Tuilab, root: Path
) -> None:
    won, stays, quick = (
        tuilab("attach", make_raced_run(root, **more).run_dir.name).stdout
        for more in (
            {"end": "000001"},
            {"end": "000002", "values": {"1": 4.0, "8": 1.0}, "ranks": 2},
            {"end": "000003", "run": {"quick": True}},
        )
    )

    assert "OMP_NUM_THREADS  4 beat the default, 8; to use it: tuilab advise" in won
    assert "OMP_NUM_THREADS, 2 ranks  no value beat the default, 8" in stays
    assert "OMP_NUM_THREADS" not in quick


@pytest.mark.real_torch
def test_as_json_it_says_what_to_set_what_was_left_and_what_is_not_known(
    tuilab: Tuilab, root: Path
) -> None:
    make_raced_run(root, {"1": 4.0, "8": 1.0})

    found = checked_document(json.loads(tuilab("advise", "--json").stdout))

    assert (found["schema"], found["ranks"], found["settings"]) == ("tuilab.advice/1", None, [])
    (left,) = found["left"]
    assert (left["name"], left["value"], left["default"], left["is_decided"]) == (
        "OMP_NUM_THREADS",
        None,
        "8",
        True,
    )
    assert [other["value"] for other in left["others"]] == ["1"]
    assert ["tuilab", "run", "prealloc", "--headless"] in [
        one["command"] for one in found["not_known"]
    ]


@pytest.mark.real_torch
def test_for_ranks_it_finds_the_run_with_as_many_behind_newer_ones_of_others(
    tuilab: Tuilab, root: Path
) -> None:
    eight: dict[str, Any] = {"changed": ["ranks"], "params": {"ranks": 8}}
    make_raced_run(
        root,
        {"1": 2.0, "2": 1.0},
        ranks=8,
        default="1",
        scenario="rank-threads",
        end="000001",
        run=eight,
    )
    for end in ("000002", "000003", "000004", "000005"):
        make_raced_run(
            root, {"1": 1.0, "2": 2.0}, ranks=2, default="1", scenario="rank-threads", end=end
        )

    assert "\nexport OMP_NUM_THREADS=2\n" in tuilab("advise", "--ranks", "8").stdout
    assert "no value beat the default, 1" in tuilab("advise", "--ranks", "2").stdout


def test_where_nothing_ran_it_says_what_would_tell(tuilab: Tuilab) -> None:
    done = tuilab("advise", "--ranks", "8")

    assert done.returncode == 0
    assert "#   OMP_NUM_THREADS: tuilab run rank-threads --ranks 8 --headless\n" in done.stdout


@pytest.mark.real_torch
def test_a_run_from_an_archive_sets_nothing_here_whatever_host_it_names(
    tuilab: Tuilab, tmp_path: Path
) -> None:
    there = make_raced_run(
        tmp_path / "there", run={"run": "20270115T080000000Z-omp-threads-abcdef"}
    ).run_dir
    tuilab("export", there.name, "-o", str(tmp_path / "x.tgz"), "--root", str(there.parent))
    tuilab("import", str(tmp_path / "x.tgz"), "--root", str(tmp_path / "here"))

    trusted = tuilab("advise", "--root", str(tmp_path / "there"))
    imported = tuilab("advise", "--root", str(tmp_path / "here"))

    assert "\nexport OMP_NUM_THREADS=4\n" in trusted.stdout
    assert "export" not in imported.stdout and "left out 1 imported run" in imported.stderr
