"""The settings that follow from measurements: only those that a supported claim of this box speaks for."""

import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.report_aids import hostile_run
from tests.tui.made_up import make_run, started
from tuilab.probes.settings import Setting, read_setting
from tuilab.record import events
from tuilab.reports.advice import advise, env_file
from tuilab.reports.subject import Subject, read_subject

HOST = socket.gethostname()
Tuilab = Callable[..., "subprocess.CompletedProcess[str]"]


def measured(root: Path, claim: str, setting: str, verdict: str = "SUPPORTED", *, state: str = "succeeded") -> Subject:
    """Return a run with one claim that speaks for a setting."""
    run_dir = make_run(
        root,
        started(scenario="omp-threads", topic="cpu", changed=["size"], params={"size": 512}),
        events.SettingAdvised(text=claim, setting=setting),
        events.VerdictReached(text=claim, verdict=verdict, rule="r", why="6 repeats"),
        events.StateChanged(state=state),
    )
    return read_subject(run_dir)


def test_a_supported_claim_sets_its_variable_and_is_named_above_it(tmp_path: Path) -> None:
    text = env_file(advise([measured(tmp_path, "all threads are faster", "OMP_NUM_THREADS=8")], HOST))

    assert text.endswith(
        "# all threads are faster: SUPPORTED\n"
        "#   6 repeats\n"
        "#   cpu/omp-threads, run abcdef\n"
        "#   again: tuilab run omp-threads --size 512 --headless\n"
        "OMP_NUM_THREADS=8\n"
    )


@pytest.mark.parametrize("verdict", ["REFUTED", "WEAKER THAN CLAIMED", "INCONCLUSIVE", "INVALID", "NOT TESTABLE HERE"])
def test_any_other_verdict_sets_nothing_and_says_so(tmp_path: Path, verdict: str) -> None:
    text = env_file(advise([measured(tmp_path, "c", "OMP_NUM_THREADS=8", verdict)], HOST))

    assert [line for line in text.splitlines() if line and not line.startswith("#")] == []
    assert "Nothing is set: no claim that speaks for a setting was supported on this box." in text
    assert f"#   OMP_NUM_THREADS=8: {verdict}: c\n#     6 repeats, run abcdef\n" in text


def test_a_run_that_failed_supports_nothing(tmp_path: Path) -> None:
    assert advise([measured(tmp_path, "c", "OMP_NUM_THREADS=8", state="failed")], HOST).settings == {}


def test_runs_of_another_box_are_named_and_do_not_count(tmp_path: Path) -> None:
    found = advise([measured(tmp_path, "c", "OMP_NUM_THREADS=8")], "elsewhere")

    assert found.settings == {}
    assert "Left out, because they ran on another box: cpu/omp-threads abcdef" in env_file(found)


def test_claims_that_disagree_set_nothing(tmp_path: Path) -> None:
    both = [measured(tmp_path / at, f"claim {at}", f"OMP_NUM_THREADS={at}") for at in ("1", "2")]

    text = env_file(advise(both, HOST))

    assert "# OMP_NUM_THREADS is not set: supported claims speak for different values" in text
    assert "\nOMP_NUM_THREADS=" not in text


def test_a_shell_reads_the_file(tmp_path: Path) -> None:
    settings = ["OMP_NUM_THREADS=8", "LAUNCH_PREFIX=numactl --cpunodebind=0 --membind=0", "LD_PRELOAD=/usr/lib/libx.so.2"]
    subjects = [measured(tmp_path / str(at), f"claim $(reboot) {at}\nX=1", setting) for at, setting in enumerate(settings)]
    (file := tmp_path / "box.env").write_text(env_file(advise(subjects, HOST)))

    shell = ["env", "-i", "/bin/sh", "-c", f'set -a; . {file}; echo "$OMP_NUM_THREADS|$LAUNCH_PREFIX|$LD_PRELOAD|$X"']
    done = subprocess.run(shell, capture_output=True, text=True, check=True)

    assert done.stdout == "8|numactl --cpunodebind=0 --membind=0|/usr/lib/libx.so.2|\n"


def test_what_is_read_by_nothing_by_itself_is_told_apart(tmp_path: Path) -> None:
    text = env_file(advise([measured(tmp_path, "c", "DATALOADER_NUM_WORKERS=4")], HOST))

    assert "# The following are read by nothing by themselves: pass them on" in text


@pytest.mark.parametrize("text", ["", "OMP_NUM_THREADS", "PATH=/evil", "OMP_NUM_THREADS=", "OMP_NUM_THREADS=1\nX=2",
                                  "OMP_NUM_THREADS=$(reboot)", "OMP_NUM_THREADS=1;reboot", "omp_num_threads=1"])  # fmt: skip
def test_only_variables_of_training_with_plain_values_are_settings(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="setting"):
        read_setting(text)

    assert env_file(advise([read_subject(hostile_run(tmp_path, "x", advises=text))], HOST)).count("=") == 0


def test_a_setting_is_a_name_and_a_value() -> None:
    assert read_setting("OMP_PROC_BIND=false") == Setting("OMP_PROC_BIND", "false")


def test_the_command_writes_the_file_for_the_newest_runs(
    tuilab: Callable[..., subprocess.CompletedProcess[str]], root: Path, tmp_path: Path
) -> None:
    measured(root, "all threads are faster", "OMP_NUM_THREADS=8")
    target = tmp_path / "box.env"

    done = tuilab("advise", "-o", str(target))

    assert (done.returncode, done.stderr) == (0, f"1 setting: {target}\n")
    assert "\nOMP_NUM_THREADS=8\n" in target.read_text()


def test_a_run_from_an_archive_sets_nothing_here_whatever_host_it_names(tuilab: Tuilab, tmp_path: Path) -> None:
    there = make_run(
        tmp_path / "there",
        started(run="20270115T080000000Z-softmax-abcdef"),
        events.SettingAdvised(text="c", setting="LD_PRELOAD=/tmp/evil.so"),
        events.VerdictReached(text="c", verdict="SUPPORTED", rule="r"),
        events.StateChanged(state="succeeded"),
    )
    tuilab("export", str(there.name), "-o", str(tmp_path / "x.tgz"), "--root", str(there.parent))
    tuilab("import", str(tmp_path / "x.tgz"), "--root", str(tmp_path / "here"))

    trusted = tuilab("advise", "--root", str(tmp_path / "there"))
    imported = tuilab("advise", "--root", str(tmp_path / "here"))

    assert "\nLD_PRELOAD=/tmp/evil.so\n" in trusted.stdout
    assert "LD_PRELOAD" not in imported.stdout and "left out 1 run from archives" in imported.stderr
