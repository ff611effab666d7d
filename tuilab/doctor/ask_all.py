"""Asks all questions of the doctor: each group in a process of its own, which may hang or crash without harm to the others.

python -P -m tuilab.doctor.ask_all GROUP [ROOT]    one line of JSON for each question of a group
"""

import contextlib
import json
import os
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import asdict, astuple, dataclass
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from tuilab.doctor import Box, DoctorFinding, Group, answer, unknown
from tuilab.doctor.facts import Fact
from tuilab.doctor.own_process import AskedProcess, ForkedProcess, hear, may_fork, start, to_its_end
from tuilab.text.display import show

T = TypeVar("T")

# In this order they are shown; torch, which may have to be waited for, comes last.
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
HERE = "terminal"  # which only the process that has it can ask
ALONE = "processor"  # it measures how many cores there are: nothing else of ours may run meanwhile
LAST = "torch_worker"  # it tells how long torch takes to load: not beside all the others
PATIENCE_S = 3.0  # for each question
_FACTS = "facts"
_MODULE = "tuilab.doctor.ask_all"
_GPU_PATIENCE_S = (
    2.0  # less than PATIENCE_S: who is asked must be able to say that there was no answer
)


@dataclass(frozen=True)
class PendingAnswers:
    """What was asked, and is answered sooner or later: facts, and each group's answers by id."""

    facts: Future[list[Fact]]
    groups: dict[str, Future[dict[str, DoctorFinding]]]
    names: list[str]  # the ids of all questions

    def found(self) -> dict[str, DoctorFinding]:
        """Return every answer by its id, when all are there."""
        return {
            name: finding
            for group in self.groups.values()
            for name, finding in group.result().items()
        }


def ask_all(
    patience_s: float = PATIENCE_S, root: Path = Path("/"), *, has_facts: bool = True
) -> PendingAnswers:
    """Ask every question, most groups at once; they are listed in the order in which they are shown."""
    names = [name for group in GROUPS for name in checks_of(group)]
    here, alone = _ask_here(HERE, root), _hear_group(ALONE, _begin(ALONE, root), patience_s)
    begun = {group: _begin(group, root) for group in GROUPS if group not in (HERE, ALONE, LAST)}
    box = _begin(_FACTS, root) if has_facts else None
    crowd = ThreadPoolExecutor(len(GROUPS) + 1)
    asked = {
        group: crowd.submit(_hear_group, group, process, patience_s)
        for group, process in begun.items()
    }
    facts = crowd.submit(_facts, box, patience_s)

    def ask_last() -> dict[str, DoctorFinding]:
        wait(asked.values())
        wait([facts])
        return ask_group(LAST, patience_s, root)

    answers = {HERE: answered(here), ALONE: answered(alone), **asked, LAST: crowd.submit(ask_last)}
    return PendingAnswers(facts, {group: answers[group] for group in GROUPS}, names)


def answered(value: T) -> "Future[T]":
    """Return what is known already as what others have to be waited for."""
    future: Future[T] = Future()
    future.set_result(value)
    return future


def _begin(group: str, root: Path) -> AskedProcess | str:
    """Begin to ask a group in a process of its own, and return it; why not where there can be none."""
    try:
        return (
            ForkedProcess(lambda: main(group, str(root)))
            if may_fork()
            else start(_MODULE, [group, str(root)])
        )
    except OSError as problem:
        return f"cannot start a process for this check: {problem.strerror}"


def _hear_group(
    group: str, process: AskedProcess | str, patience_s: float
) -> dict[str, DoctorFinding]:
    """Return the answers of a group; what is not answered in time is n/a with the reason."""
    output, reason = _heard(process, patience_s)
    return _complete(list(checks_of(group)), parse(output), reason)


def _heard(process: AskedProcess | str, patience_s: float) -> tuple[bytes, str]:
    return (b"", process) if isinstance(process, str) else to_its_end(process, patience_s)


def checks_of(group: str) -> Group:
    """Return the questions of a group."""
    checks: Group = import_module(f"tuilab.doctor.{group}").CHECKS
    return checks


def _ask_here(group: str, root: Path) -> dict[str, DoctorFinding]:
    return {name: answer(check, Box(root)) for name, check in checks_of(group).items()}


def ask_group(group: str, patience_s: float, root: Path = Path("/")) -> dict[str, DoctorFinding]:
    """Ask a group in a process of its own; what it does not answer in time is n/a with the reason."""
    output, reason = hear(_MODULE, [group, str(root)], patience_s)
    return _complete(list(checks_of(group)), parse(output), reason)


def _facts(process: AskedProcess | str | None, patience_s: float) -> list[Fact]:
    """Return the facts of the box as the Box screen has them, or the one that they are not known, and why."""
    if process is None:
        return []  # nobody asked for them
    output, reason = _heard(process, patience_s)
    with contextlib.suppress(ValueError, TypeError):
        return [Fact(*fields) for fields in json.loads(output)]
    return [Fact("Machine", "facts", "", reason)]


def parse(output: bytes) -> dict[str, DoctorFinding]:
    """Return the answers by id, of lines that are one each."""
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
    """Return an answer to every question: the first that has none is the one that went wrong."""
    missing = [name for name in names if name not in findings]
    for name in missing:
        findings[name] = unknown(
            reason if name == missing[0] else f"not checked, because {missing[0]} failed to answer"
        )
    return {name: findings[name] for name in names}


def main(group: str, root: str = "/") -> None:
    """Answer the questions of a group, one line each; or tell the facts, in one."""
    if group == _FACTS:
        from tuilab.doctor import facts as box
        from tuilab.probes.gpu import own_process

        facts_of_machine = [*box.facts(Path(root)), *box.gpu_facts(own_process.ask(_GPU_PATIENCE_S))]
        answered = [astuple(fact) for facts in box.in_order(facts_of_machine).values() for fact in facts]
        os.write(1, json.dumps(answered).encode() + b"\n")
        return
    os.write(
        1, b"\n"
    )  # a process that starts slowly takes nothing from the time of its first question
    for name, check in checks_of(group).items():
        tell(name, answer(check, Box(Path(root))))


def tell(name: str, finding: DoctorFinding) -> None:
    """Say the answer to a question in a line, at once."""
    os.write(1, json.dumps({"id": name, **asdict(finding)}).encode() + b"\n")


def document(pending: PendingAnswers, exit_code: int, version: str) -> dict[str, object]:
    """Return the answers for `--json`."""
    findings = pending.found()
    counts = {
        status: sum(finding.status == status for finding in findings.values())
        for status in ("pass", "warn", "fail", "n/a")
    }
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
    os._exit(0)  # taking torch down in order takes a quarter of a second
