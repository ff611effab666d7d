"""Time commands of tuilab from start to end, next to an empty interpreter and commands of peers."""

import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from benchmarks.pairs import Measurement, Row, in_rounds
from benchmarks.processes import (
    PYTHON,
    STUCK_S,
    as_peer,
    environment,
    find_program,
    time_command,
    timed,
)
from tests.made_runs import finished

FULL = {"rounds": 11, "runs": 5000}
TINY = {"rounds": 1, "runs": 20}
BARE = "python -c pass"
PEERS = (
    "pyperf --help",
    "nvitop --help",
    "memray --help",
    "tensorboard --version",
    "wandb --version",
)
DOCTOR_ENDS_WITH = (0, 1, 2)  # the exit code says how healthy the machine is
REFUTED_RUNS = ("runs", "--verdict", "refuted")  # no run matches, so every run is checked


def rows(place: Path, *, rounds: int, runs: int) -> Iterator[Row]:
    """Yield the times of the commands."""
    tuilab = find_program("tuilab")
    no_runs = place / "none"
    no_runs.mkdir()
    many_runs = place / "many"
    make_runs(many_runs, runs)

    def time_tuilab(
        *words: str, root: Path = no_runs, extra: Mapping[str, str] | None = None
    ) -> dict[str, float]:
        variables = {"TUILAB_ROOT": str(root), **(extra or {})}
        return time_command([tuilab, *words], place, variables)

    def time_with_cold_catalogue() -> dict[str, float]:
        remove_files(place / ".cache", "catalog*")
        return time_tuilab("list")

    def time_with_cold_index() -> dict[str, float]:
        remove_files(many_runs, ".index-*")
        return time_tuilab(*REFUTED_RUNS, root=many_runs)

    def time_first_answer() -> dict[str, float]:
        return {"ms": ms_to_first_output([tuilab, "doctor", "--all"], place)}

    complete_subcommand = completion_variables("tuilab ru", 1)
    complete_scenario = completion_variables("tuilab run sof", 2)
    last_of_many = f"tuilab runs, {runs:,} runs"  # the last 20 runs
    all_of_many = f"runs --verdict, {runs:,} runs"
    doctor = [tuilab, "doctor"]
    measurements: dict[str, Measurement] = {
        BARE: partial(time_command, [PYTHON, "-c", "pass"], place),
        "tuilab --help": partial(time_tuilab, "--help"),
        "tuilab list": partial(time_tuilab, "list"),
        "tuilab list, cold catalogue": time_with_cold_catalogue,
        "completion of a verb": partial(time_tuilab, extra=complete_subcommand),
        "completion of a scenario": partial(time_tuilab, extra=complete_scenario),
        "tuilab runs, 0 runs": partial(time_tuilab, "runs"),
        last_of_many: partial(time_tuilab, "runs", root=many_runs),
        all_of_many: partial(time_tuilab, *REFUTED_RUNS, root=many_runs),
        f"{all_of_many}, cold index": time_with_cold_index,
        "tuilab doctor --all, to the first answer": time_first_answer,
        "tuilab doctor": partial(time_command, doctor, place, ends_with=DOCTOR_ENDS_WITH),
    }
    for words in PEERS:
        measurements[words] = as_peer(partial(time_peer, words, place))
    goals = {("tuilab runs, 0 runs", "processor ms"): "4 times"}
    yield from in_rounds(measurements, rounds, goals, beside=BARE)


def make_runs(root: Path, count: int) -> None:
    """Make finished runs, one for each minute."""
    for number in range(count):
        began_s = 1.6e9 + 60 * number
        finished(root, {"sum is fast": "SUPPORTED"}, at_s=began_s, end=f"{number:06x}")


def remove_files(folder: Path, pattern: str) -> None:
    """Remove the files of a folder whose names match a pattern."""
    for path in folder.rglob(pattern):
        path.unlink()


def completion_variables(line: str, word: int) -> dict[str, str]:
    """Return the variables by which bash asks for completions of a word of a line."""
    return {"_TUILAB_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(word)}


def time_peer(command: str, place: Path) -> dict[str, float]:
    """Return the cost of a command of a peer."""
    name, *arguments = command.split()
    return time_command([find_program(name), *arguments], place)


def ms_to_first_output(command: list[str], place: Path) -> float:
    """Return the milliseconds until a command prints anything; wait until it has ended."""
    with timed():
        began = time.perf_counter()
        with subprocess.Popen(
            command,
            cwd=place,
            env=environment(place),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as process:
            assert process.stdout
            select.select([process.stdout], [], [], STUCK_S)
            elapsed_s = time.perf_counter() - began
            process.communicate(timeout=STUCK_S)
    return 1e3 * elapsed_s
