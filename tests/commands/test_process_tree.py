"""What the processes of a command show about themselves."""

import pytest

from tuilab.commands.process_tree import Program


@pytest.mark.parametrize(
    ("options", "flags"),
    [
        ("-I train.py", "I"),
        ("-uE train.py -I", "uE"),
        ("-X dev -I train.py", "I"),
        ("-Wignore -W error -bE train.py", "bE"),
        ("-m train -I", ""),
        ("-Ic pass -E", "I"),
        ("- -I", ""),
        ("-X", ""),
        ("--help -I", ""),
    ],
)
def test_options_of_python_are_read_up_to_the_program(options: str, flags: str) -> None:
    program = Program("python", ["python", *options.split()])

    assert program.flags() == set(flags)
