"""The errors of click's parser, in the words of tuilab's other errors."""

from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

Tuilab = Callable[..., CompletedProcess[str]]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["list", "nothing"], "unexpected argument nothing; see `tuilab list --help`"),
        (["show"], "missing argument NAME; see `tuilab show --help`"),
        (["queue", "zz"], "no subcommand zz; see `tuilab queue --help`"),
        (["--zz"], "no option --zz; see `tuilab --help`"),
        (["run", "softmax", "--quik"], "no option --quik; did you mean --quick or --quiet? See `tuilab run --help`"),
        (["run", "softmax", "--predict"], "--predict needs a value; see `tuilab run --help`"),
        (["run", "softmax", "--repeat", "0"], "--repeat: 0 is out of range; it takes 1..1000; see `tuilab run --help`"),
        (["runs", "--limit", "x"], "--limit: 'x' is not a whole number; see `tuilab runs --help`"),
        (["config", "zz"], "'zz' is not one of print, path, validate; see `tuilab config --help`"),
        (["config", "print", "--json=1"], "--json takes no value; see `tuilab config --help`"),
        (["import", "/none.tgz"], "file /none.tgz does not exist; see `tuilab import --help`"),
    ],
)
def test_parser_errors_are_plain_and_name_the_right_help(
    tuilab: "Callable[..., CompletedProcess[str]]", words: list[str], told: str
) -> None:
    done = tuilab(*words)

    assert (done.returncode, done.stderr) == (2, f"tuilab: {told}\n")
