"""Define the errors that users see, each with the exit code of the command.

    TuilabError
    ├── UsageError          2    a name, option or file of the user cannot be used
    ├── BoxLacks            3    this machine lacks something that the scenario needs
    ├── ScenarioError       4    the scenario failed, was stopped or was lost
    └── CannotRecord        5    the run folder cannot be written

The text of each is one sentence that names the thing and the next step. They are raised near the
cause and caught once, in `cli.main`.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Every exit code of `tuilab`; MEANINGS explains them."""

    DONE = 0
    REFUTED = 1
    USAGE = 2
    BOX_LACKS = 3
    FAILED = 4
    CANNOT_RECORD = 5
    INTERRUPTED = 130


MEANINGS = {  # `tuilab --help` and docs/reference/exit-codes.md list them in these words
    ExitCode.DONE: "done; every claim is SUPPORTED, INCONCLUSIVE, NOT TESTABLE HERE or not judged",
    ExitCode.REFUTED: "a claim is REFUTED, WEAKER THAN CLAIMED, INVALID, or NO MEANINGFUL "
    "DIFFERENCE where one was claimed; with --strict also INCONCLUSIVE or not judged",
    ExitCode.USAGE: "a wrong name, option or file",
    ExitCode.BOX_LACKS: "nothing could be run: the machine lacks what the scenario needs",
    ExitCode.FAILED: "the run failed, was stopped, timed out or was lost",
    ExitCode.CANNOT_RECORD: "the run cannot be recorded, or the result cannot be written",
    ExitCode.INTERRUPTED: "Ctrl-C",
}


class TuilabError(Exception):
    """A mistake or a lack that one sentence explains."""

    exit_code = ExitCode.USAGE


class UsageError(TuilabError):
    """A name, option or file of the user cannot be used."""


class BoxLacks(TuilabError):
    """This machine lacks something that the scenario needs."""

    exit_code = ExitCode.BOX_LACKS


class ScenarioError(TuilabError):
    """The scenario failed, was stopped or was lost."""

    exit_code = ExitCode.FAILED


class CannotRecord(TuilabError):
    """The run folder cannot be written."""

    exit_code = ExitCode.CANNOT_RECORD
