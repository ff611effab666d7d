"""Run all checks of the doctor, each group in its own process, which may hang or crash.

python -P -m tuilab.doctor.ask_all GROUP [ROOT]    print a line of JSON for each check of a group
"""

import contextlib
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, astuple, dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar, get_args

from tuilab.doctor import Box, DoctorFinding, Group, Status, answer, unknown
from tuilab.doctor.facts import Fact
from tuilab.doctor.own_process import AskedProcess, ForkedProcess, hear, may_fork, start, to_its_end
from tuilab.text.display import show

T = TypeVar("T")

# In the order in which they are shown; torch, which may take long to load, comes last.
GROUPS = (
    "terminal",
    "processor",
    "memory",
    "gpus",
    "software",
    "libraries",
    "storage",
    "session",
    "stopping",
    "lab",
    "torch_worker",
)
HERE = "terminal"  # only this process has the terminal
ALONE = "processor"  # it measures how many cores are free, so nothing of ours may run beside it
LAST = "torch_worker"  # it measures how long torch takes to load, so it runs after the others
PATIENCE_S = 3.0  # for each check
_FACTS = "facts"
_MODULE = "tuilab.doctor.ask_all"
# Less than PATIENCE_S: the process that waits for the GPUs must have time to report their silence.
_GPU_PATIENCE_S = 2.0


@dataclass(frozen=True)
class PendingAnswers:
    """The facts and the findings by group, as futures: the processes may still be at work."""

    facts: Future[list[Fact]]
    groups: dict[str, Future[dict[str, DoctorFinding]]]
    names: list[str]  # the ids of all checks

    def found(self) -> dict[str, DoctorFinding]:
        """Wait for all findings and return them by id."""
        findings: dict[str, DoctorFinding] = {}
        for group in self.groups.values():
            findings |= group.result()
        return findings


def ask_all(
    patience_s: float = PATIENCE_S, root: Path = Path("/"), *, has_facts: bool = True
) -> PendingAnswers:
    """Start every check, most groups at once; return them in the order in which they are shown.

    `terminal` and `processor` have ended when this returns; the others may still be at work. A
    check without an answer in `patience_s` is n/a.
    """
    names: list[str] = []
    for group in GROUPS:
        names += checks_of(group)
    findings_here = _ask_here(HERE, root)
    findings_alone = _read_group(ALONE, _start_group(ALONE, root), patience_s)
    processes = {}
    for group in GROUPS:
        if group not in (HERE, ALONE, LAST):
            processes[group] = _start_group(group, root)
    facts_process = _start_group(_FACTS, root) if has_facts else None

    # A fork needs a process with one thread, so the threads start after all forks.
    threads = ThreadPoolExecutor(len(GROUPS) + 1)
    answers = {}
    for group, process in processes.items():
        answers[group] = threads.submit(_read_group, group, process, patience_s)
    facts = threads.submit(_read_facts, facts_process, patience_s)
    earlier_answers = list(answers.values())

    def ask_last() -> dict[str, DoctorFinding]:
        wait(earlier_answers)
        wait([facts])
        return ask_group(LAST, patience_s, root)

    answers[HERE] = answered(findings_here)
    answers[ALONE] = answered(findings_alone)
    answers[LAST] = threads.submit(ask_last)
    return PendingAnswers(facts, {group: answers[group] for group in GROUPS}, names)


def answered(value: T) -> "Future[T]":
    """Return a future that already has its value."""
    future: Future[T] = Future()
    future.set_result(value)
    return future


def _start_group(group: str, root: Path) -> AskedProcess | str:
    """Start the process of a group and return it, or the reason why it cannot be started."""
    try:
        if may_fork():
            return ForkedProcess(lambda: main(group, str(root)))
        return start(_MODULE, [group, str(root)])
    except OSError as problem:
        return f"cannot start a process for this check: {problem.strerror}"


def _read_group(
    group: str, process: AskedProcess | str, patience_s: float
) -> dict[str, DoctorFinding]:
    """Return the findings of a group; a check without an answer in time is n/a."""
    output, reason = _read_output(process, patience_s)
    return _complete(list(checks_of(group)), parse(output), reason)


def _read_output(process: AskedProcess | str, patience_s: float) -> tuple[bytes, str]:
    """Return the output of a process and how it ended; a string says why it did not start."""
    if isinstance(process, str):
        return b"", process
    return to_its_end(process, patience_s)


def checks_of(group: str) -> Group:
    """Return the checks of a group."""
    checks: Group = import_module(f"tuilab.doctor.{group}").CHECKS
    return checks


def _ask_here(group: str, root: Path) -> dict[str, DoctorFinding]:
    return {name: answer(check, Box(root)) for name, check in checks_of(group).items()}


def ask_group(group: str, patience_s: float, root: Path = Path("/")) -> dict[str, DoctorFinding]:
    """Run a group in its own process; a check without an answer in time is n/a."""
    output, reason = hear(_MODULE, [group, str(root)], patience_s)
    return _complete(list(checks_of(group)), parse(output), reason)


def _read_facts(process: AskedProcess | str | None, patience_s: float) -> list[Fact]:
    """Return the facts of the machine, or one fact that says why they are unknown."""
    if process is None:
        return []
    output, reason = _read_output(process, patience_s)
    with contextlib.suppress(ValueError, TypeError):
        return [Fact(*fields) for fields in json.loads(output)]
    return [Fact("Machine", "facts", "", reason)]


def parse(output: bytes) -> dict[str, DoctorFinding]:
    """Return the findings by id, from output with a line of JSON for each."""
    findings: dict[str, DoctorFinding] = {}
    for line in output.split(b"\n"):
        with contextlib.suppress(ValueError, TypeError, KeyError):
            fields = json.loads(line)
            findings[fields["id"]] = DoctorFinding(
                fields["status"], fields["found"], fields["next_step"]
            )
    return findings


def _complete(
    names: list[str], findings: dict[str, DoctorFinding], reason: str
) -> dict[str, DoctorFinding]:
    """Return a finding for every check; the first without an answer is the one that went wrong."""
    missing = [name for name in names if name not in findings]
    for name in missing:
        findings[name] = unknown(f"not checked, because {missing[0]} failed to answer")
    if missing:
        findings[missing[0]] = unknown(reason)
    return {name: findings[name] for name in names}


def main(group: str, root: str = "/") -> None:
    """Print the findings of a group, a line of JSON each, or all facts in one line."""
    if group == _FACTS:
        from tuilab.doctor import facts as box
        from tuilab.probes.gpu import own_process

        facts_of_machine = box.facts(Path(root))
        facts_of_machine += box.gpu_facts(own_process.ask(_GPU_PATIENCE_S))
        rows = []
        for facts_of_section in box.in_order(facts_of_machine).values():
            rows += [astuple(fact) for fact in facts_of_section]
        os.write(1, json.dumps(rows).encode() + b"\n")
        return
    os.write(1, b"\n")  # so that the time of the first check does not include a slow start
    for name, check in checks_of(group).items():
        tell(name, answer(check, Box(Path(root))))


def tell(name: str, finding: DoctorFinding) -> None:
    """Print the finding of a check as a line of JSON, unbuffered."""
    os.write(1, json.dumps({"id": name, **asdict(finding)}).encode() + b"\n")


def document(pending: PendingAnswers, exit_code: int, version: str) -> dict[str, object]:
    """Return the document for `--json`."""
    findings = pending.found()
    count_of = Counter(finding.status for finding in findings.values())
    counts = {status: count_of[status] for status in get_args(Status)}
    checks = [{"id": name, **asdict(finding)} for name, finding in findings.items()]
    return {
        "schema": "tuilab.doctor/1",
        "tuilab": version,
        "wall_s": time.time(),
        "host": show(os.uname().nodename, 200),
        "exit_code": exit_code,
        "counts": counts,
        "checks": checks,
        "facts": [asdict(fact) for fact in pending.facts.result()],
    }


if __name__ == "__main__":
    main(*sys.argv[1:3])
    sys.stdout.flush()
    os._exit(0)  # the normal exit of torch takes a quarter of a second
