"""The name of a run's folder: when it started, its scenario, and a random end that is enough to name it.

Kept free of slow imports, as `tuilab list` reads the names of all runs.
"""

import os
import time

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


class RunName:
    """What the name of a folder tells of its run.

    A folder may have a name that tuilab did not give it. Its id is then what follows the last hyphen, or all of it; its
    scenario is "" unless something stands between two hyphens, and when it started is not known.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.id = text.rpartition("-")[2] or text
        self.scenario = text.partition("-")[2].rpartition("-")[0]

    @property
    def started_s(self) -> float | None:
        """When it started, in seconds since 1970."""
        digits = _digits(self.text)
        if not digits:
            return None
        from datetime import (
            datetime,
        )  # strptime takes ten times as long, and longer to load than a list

        try:
            return (
                datetime.fromisoformat(f"{digits[:8]}T{digits[8:14]}Z").timestamp()
                + int(digits[14:]) / 1000
            )
        except ValueError:
            return None

    @property
    def started(self) -> str:
        """When it started, for people, to the minute."""
        if _is_plain_time(_digits(self.text)):
            day, clock = self.text[:8], self.text[9:13]
            return f"{day[:4]}-{day[4:6]}-{day[6:]} {clock[:2]}:{clock[2:]}Z"
        started_s = self.started_s
        return (
            "n/a" if started_s is None else time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(started_s))
        )


def _digits(text: str) -> str:
    """Return the digits of the time that a name begins with; none of a name that tuilab did not give."""
    digits = text[:8] + text[9:18]
    return (
        digits
        if len(digits) == 17 and text[8] == "T" and digits.isascii() and digits.isdigit()
        else ""
    )


def _is_plain_time(digits: str) -> bool:
    """Say whether they are a time of which nothing has to be reckoned: what does that takes longer to load than a list."""
    if not digits:
        return False
    month, day, hour, minute, second = (int(digits[at : at + 2]) for at in range(4, 14, 2))
    return (
        digits > "1"
        and 1 <= month <= 12
        and 1 <= day <= _DAYS[month - 1]
        and hour < 24
        and minute < 60
        and second < 60
    )


def kind_of_run(scenario: str, verb: str) -> str:
    """Return what stands for its scenario in the name of a run: a command of the user's has the verb in it, as no lesson has.

    So a script that is called as a lesson is has no part in what is said of the lesson.
    """
    return f"{scenario[:50]}.{verb}" if verb else scenario


def is_watched(run: str) -> bool:
    """Say whether a run is of a command that was watched, and not of a scenario or a race."""
    return RunName(run).scenario.endswith(".exec")


def by_time(name: str) -> tuple[bool, str]:
    """Return the key that sorts names of runs by when they started; one that tells no time comes before all that do."""
    return name[:8].isdigit() and name[8:9] == "T", name


def new_name(scenario: str) -> str:
    """Return the name of a new run; such names sort by time."""
    now = time.time()
    stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now)) + f"{int(now * 1000) % 1000:03}Z"
    import re

    odd = r"(?a:[^\w.+-])"  # what a scenario file may be called, and a run is not
    return f"{stamp}-{re.sub(odd, '_', scenario)[:60]}-{os.urandom(3).hex()}"
