"""What a command takes from its start to its end, beside an empty interpreter and the commands of peers."""

import select
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.pairs import Row, Way, in_rounds
from benchmarks.processes import PYTHON, STUCK_S, command, cost, counted, environment, of_peer
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
DOCTOR_ENDS_WITH = (0, 1, 2)  # how the box is


def rows(place: Path, *, rounds: int, runs: int) -> Iterator[Row]:
    tuilab, of_many, all_of_many = (
        command("tuilab"),
        f"tuilab runs, {runs:,} runs",
        f"runs --verdict, {runs:,} runs",
    )
    refuted = ("runs", "--verdict", "refuted")  # none is: all are looked at
    (place / "none").mkdir()
    for number in range(runs):
        finished(
            place / "many",
            {"sum is fast": "SUPPORTED"},
            at_s=1.6e9 + 60 * number,
            end=f"{number:06x}",
        )

    def plain(*words: str, root: str = "none", more: dict[str, str] | None = None) -> Way:
        return lambda: cost(
            [tuilab, *words], place, {"TUILAB_ROOT": str(place / root), **(more or {})}
        )

    def with_cold_catalogue() -> dict[str, float]:
        remove(place / ".cache", "catalog*")
        return plain("list")()

    def with_cold_index() -> dict[str, float]:
        remove(place / "many", ".index-*")
        return plain(*refuted, root="many")()

    ways: dict[str, Way] = {
        BARE: lambda: cost([PYTHON, "-c", "pass"], place),
        "tuilab --help": plain("--help"),
        "tuilab list": plain("list"),
        "tuilab list, cold catalogue": with_cold_catalogue,
        "completion of a verb": plain(more=completing("tuilab ru", 1)),
        "completion of a scenario": plain(more=completing("tuilab run sof", 2)),
        "tuilab runs, 0 runs": plain("runs"),
        of_many: plain("runs", root="many"),  # the last 20
        all_of_many: plain(*refuted, root="many"),
        f"{all_of_many}, cold index": with_cold_index,
        "tuilab doctor --all, to the first answer": lambda: {
            "ms": ms_to_first_word([tuilab, "doctor", "--all"], place)
        },
        "tuilab doctor": lambda: cost([tuilab, "doctor"], place, ends_with=DOCTOR_ENDS_WITH),
    } | {words: of_peer(lambda words=words: peer(words, place)) for words in PEERS}  # type: ignore[misc]  # bound now
    yield from in_rounds(
        ways, rounds, {("tuilab runs, 0 runs", "processor ms"): "4 times"}, beside=BARE
    )


def remove(folder: Path, pattern: str) -> None:
    for path in folder.rglob(pattern):
        path.unlink()


def completing(line: str, word: int) -> dict[str, str]:
    return {"_TUILAB_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(word)}


def peer(words: str, place: Path) -> dict[str, float]:
    name, *more = words.split()
    return cost([command(name), *more], place)


def ms_to_first_word(words: list[str], place: Path) -> float:
    """Return the milliseconds until a command prints anything; it ends before this does."""
    with counted():
        began = time.perf_counter()
        with subprocess.Popen(
            words, cwd=place, env=environment(place), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, start_new_session=True,
        ) as process:  # fmt: skip
            assert process.stdout
            select.select([process.stdout], [], [], STUCK_S)
            taken = time.perf_counter() - began
            process.communicate(timeout=STUCK_S)
    return 1e3 * taken
