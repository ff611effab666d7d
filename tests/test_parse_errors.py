"""The errors of click's parser, in the words of tuilab's other errors."""

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

Tuilab = Callable[..., CompletedProcess[str]]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list", "nothing"], "got unexpected extra argument (nothing); see `tuilab list --help`"),
        (["show"], "missing argument NAME; see `tuilab show --help`"),
        (
            ["queue", "zz"],
            "no subcommand zz; there are again, cancel, move, pause, resume; see `tuilab queue --help`",
        ),
        (["runn"], "no subcommand runn; did you mean run? See `tuilab --help`"),
        (["queue", "mov"], "no subcommand mov; did you mean move? See `tuilab queue --help`"),
        (["--zz"], "no option --zz; see `tuilab --help`"),
        (
            ["run", "softmax", "--quik"],
            "no option --quik; did you mean --quick or --quiet? See `tuilab run --help`",
        ),
        (
            ["run", "softmax", "--predict"],
            "option '--predict' requires an argument; see `tuilab run --help`",
        ),
        (
            ["run", "softmax", "--repeat", "0"],
            "--repeat: 0 is not in the range 1<=x<=1000; see `tuilab run --help`",
        ),
        (
            ["runs", "--limit", "x"],
            "--limit: 'x' is not a valid whole number; see `tuilab runs --help`",
        ),
        (
            ["config", "zz"],
            "'zz' is not one of 'print', 'path', 'validate'; see `tuilab config --help`",
        ),
        (
            ["config", "print", "--json=1"],
            "option '--json' does not take a value; see `tuilab config --help`",
        ),
        (["import", "/none.tgz"], "file '/none.tgz' does not exist; see `tuilab import --help`"),
        (
            ["sweep", "--set", "lr=1", "python", "train.py", "--steps", "2"],
            "no option --steps; for an option of your own command, write -- before the command; see `tuilab sweep --help`",
        ),
        (
            ["run", "/usr"],
            "/usr is a folder; name a .py file in it, or use it as a catalogue: tuilab run NAME --scenarios /usr",
        ),
        (["check", "/etc/passwd"], "/etc/passwd is not a scenario: its name does not end in .py"),
    ],
)
def test_parser_errors_are_plain_and_name_the_right_help(
    tuilab: "Callable[..., CompletedProcess[str]]", words: list[str], told: str
) -> None:
    done = tuilab(*words)

    assert (done.returncode, done.stderr) == (2, f"tuilab: {told}\n")
