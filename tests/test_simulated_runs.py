"""Simulated runs keep their verdicts, unless the rule of the verdicts gets another version.

    python -m tests.test_simulated_runs

records them again, which is right after the version in record/verdicts.py was raised.
"""

from pathlib import Path

from tests.simulated_runs import simulated_runs
from tuilab.judging.judge_run import judge
from tuilab.record.verdicts import RULE, Verdict

RECORDED = Path(__file__).with_name("simulated_verdicts.txt")
COUNT = 2000
IN_A_LINE = 40
NO_VERDICT = "."
LETTERS = {
    Verdict.SUPPORTED: "S",
    Verdict.WEAKER: "W",
    Verdict.REFUTED: "R",
    Verdict.NO_DIFFERENCE: "N",
    Verdict.INCONCLUSIVE: "?",
    Verdict.INVALID: "!",
}


def list_verdicts() -> list[str]:
    """Return the verdicts of each run, a letter for each claim."""
    verdicts = []
    for run in simulated_runs(COUNT):
        letters = [LETTERS[Verdict(reached.verdict)] for reached in judge(run)]
        verdicts.append("".join(letters) or NO_VERDICT)
    return verdicts


def test_verdicts_change_only_with_the_version_of_the_rule() -> None:
    rule, *lines = RECORDED.read_text().splitlines()
    recorded = " ".join(lines).split()
    verdicts = list_verdicts()

    assert rule == RULE
    assert len(recorded) == COUNT
    assert {
        number for number, letters in enumerate(verdicts) if letters != recorded[number]
    } == set()
    assert set(LETTERS.values()) <= set("".join(verdicts))


def record() -> None:
    verdicts = list_verdicts()
    lines = [RULE]
    for start in range(0, COUNT, IN_A_LINE):
        lines.append(" ".join(verdicts[start : start + IN_A_LINE]))
    RECORDED.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    record()
