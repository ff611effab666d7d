"""The name of a run's folder: its start time, its scenario, and a random id that names the run.

Kept free of slow imports, because `tuilab list` reads the names of all runs.
"""

import os
import time

_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)  # of the months, without leap days


class RunName:
    """The parts of the name of a folder.

    A folder may have a name that tuilab did not give it. Its id is then the text after the last
    hyphen, or the whole name. Its scenario is empty unless the name has a text between two hyphens,
    and its start time is not known.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.id = text.rpartition("-")[2] or text
        self.scenario = text.partition("-")[2].rpartition("-")[0]

    @property
    def started_s(self) -> float | None:
        """The start time in seconds since 1970; None if the name has none."""
        digits = _digits(self.text)
        if not digits:
            return None
        # strptime takes ten times as long, and loading it takes longer than a list.
        from datetime import datetime

        try:
            second = datetime.fromisoformat(f"{digits[:8]}T{digits[8:14]}Z")
        except ValueError:
            return None
        return second.timestamp() + int(digits[14:]) / 1000

    @property
    def started(self) -> str:
        """The start time as users see it, to the minute."""
        digits = _digits(self.text)
        if _is_plain_time(digits):
            year, month, day = digits[:4], digits[4:6], digits[6:8]
            return f"{year}-{month}-{day} {digits[8:10]}:{digits[10:12]}Z"
        started_s = self.started_s
        if started_s is None:
            return "n/a"
        return time.strftime("%Y-%m-%d %H:%MZ", time.gmtime(started_s))


def _digits(text: str) -> str:
    """Return the 17 digits of the time with which a name begins: 8 of the day, 9 of the clock.

    Empty if tuilab did not give the name.
    """
    digits = text[:8] + text[9:18]
    if len(digits) == 17 and text[8] == "T" and digits.isascii() and digits.isdigit():
        return digits
    return ""


def _is_plain_time(digits: str) -> bool:
    """Return whether digits are a time that can be shown without a conversion.

    Loading `datetime` for the conversion takes longer than a list.
    """
    if digits < "1":  # no digits, or a year before 1000
        return False
    month, day = int(digits[4:6]), int(digits[6:8])
    hour, minute, second = int(digits[8:10]), int(digits[10:12]), int(digits[12:14])
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS[month - 1]:
        return False
    return hour < 24 and minute < 60 and second < 60


def kind_of_run(scenario: str, verb: str) -> str:
    """Return the scenario as the name of a run has it; for a user's command, with its subcommand.

    So a script with the name of a lesson does not count as a run of the lesson.
    """
    return f"{scenario[:50]}.{verb}" if verb else scenario


def is_watched(run: str) -> bool:
    """Return whether a run is one of `tuilab exec`, and not of a scenario or a comparison."""
    return RunName(run).scenario.endswith(".exec")


def is_of_command(run: str) -> bool:
    """Return whether a run is of a user's command: watched, compared or tuned."""
    return RunName(run).scenario.endswith((".exec", ".ab", ".tune"))


def by_time(name: str) -> tuple[bool, str]:
    """Return the key that sorts names of runs by their start; names without a time come first."""
    return name[:8].isdigit() and name[8:9] == "T", name


def new_name(scenario: str) -> str:
    """Return the name of a new run; such names sort by time."""
    import re  # imported here: `tuilab list` makes no run

    now_s = time.time()
    second = time.strftime("%Y%m%dT%H%M%S", time.gmtime(now_s))
    milliseconds = int(now_s * 1000) % 1000
    # The name of a scenario file may have characters that the name of a run must not have.
    scenario = re.sub(r"(?a:[^\w.+-])", "_", scenario)[:60]
    return f"{second}{milliseconds:03}Z-{scenario}-{os.urandom(3).hex()}"
