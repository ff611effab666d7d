"""What can go wrong for a user, each with the exit code it ends in.

    TuilabError
    ├── UsageError          2    a name, option or file that the user gave is not usable
    ├── BoxLacks            3    this box lacks what was asked for
    ├── ScenarioError       4    the scenario failed, was stopped or was lost
    └── CannotRecord        5    the run folder cannot be written

The text of each is one sentence that names the thing and the next step. They are raised near the cause and caught once, in
`cli.main`.
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """Every exit code of `tuilab`; the README lists them in these words."""

    DONE = 0  # done, and no verdict stands against its claim
    REFUTED = 1  # a claim came out refuted, weaker, without a difference or invalid (with --strict: or inconclusive)
    USAGE = 2  # a wrong name, option or file
    BOX_LACKS = 3  # nothing of the scenario could be run: the box lacks what it needs
    FAILED = 4  # the scenario failed, was stopped, timed out or was lost
    CANNOT_RECORD = 5  # the run folder cannot be written
    INTERRUPTED = 130  # Ctrl-C


class TuilabError(Exception):
    """A mistake or a lack that one sentence explains."""

    exit_code = ExitCode.USAGE


class UsageError(TuilabError):
    """A name, option or file that the user gave is not usable."""


class BoxLacks(TuilabError):
    """This box lacks what was asked for."""

    exit_code = ExitCode.BOX_LACKS


class ScenarioError(TuilabError):
    """The scenario failed, was stopped or was lost."""

    exit_code = ExitCode.FAILED


class CannotRecord(TuilabError):
    """The run folder cannot be written."""

    exit_code = ExitCode.CANNOT_RECORD
