"""Write a new scenario from a template, ready to run and to change.

NAME has up to 60 characters: a-z, 0-9 and -, with a letter first.
"""

import os
import re
from pathlib import Path

import click

from tuilab.cli import completion, options
from tuilab.errors import CannotRecord, UsageError
from tuilab.text.display import show

_NAME = re.compile(r"(?!all$)[a-z][a-z0-9-]{0,59}")

TEMPLATE = '''\
"""Replace a loop over rows by one reduction.

A slice costs a call of its own, and the call takes longer than adding up four numbers. \
sum makes one call for all rows.

In practice: write `x.sum(0)` instead of a loop over `x[i]`.

## Predict
How many times faster than the loop is one sum?

## Look for
- [same] a loop over the rows and x.sum(0) give the same totals
- [sum] x.sum(0) is at least 5 times faster than a loop over 500 rows

## Try next
`--rows 2`: two calls against one; sum still wins, by less than claimed.

## Source
The title, the chapter and the address of your source.
"""

import torch

from tuilab import Lab


def add_slices(x):
    total = torch.zeros(x.shape[1])
    for i in range(x.shape[0]):
        total += x[i]
    return total


def run(
    lab: Lab,
    rows: int = 500,  # calls in the loop, 2..10000 (quick 100)
) -> None:
    x = torch.arange(rows * 4.0).reshape(rows, 4) % 7

    @lab.once
    def exact():
        for step in range(rows):
            lab.log(step, total=x[: step + 1].sum())
        lab.claim("same", torch.equal(add_slices(x), x.sum(0)))

    lab.claim_ratio("sum", "loop/sum", at_least=5, answers=True)
    lab.race(loop=lambda: add_slices(x), sum=lambda: x.sum(0))
'''


@click.command(
    help=__doc__,
    params=[
        click.Argument(["name"]),
        click.Option(
            ["--dir", "folder"],
            default=".",
            metavar="DIR",
            help="Write the file into this folder (default: the current folder).",
            shell_complete=completion.folders,
        ),
        options.AS_JSON,
    ],
)
def command(name: str, folder: str, as_json: bool) -> None:
    path = write(name, Path(folder))
    if as_json:
        options.print_document("tuilab.new/1", path=str(path.absolute()))
        return
    runnable_path = path if path.is_absolute() else f"./{path}"
    click.echo(f"wrote {show(path)}; run it: tuilab run {show(runnable_path)}")
    click.echo(
        f"see it on the screens: tuilab --scenarios {show(folder)}; to see it always, "
        "add this folder to scenarios in the file that `tuilab config path` prints"
    )


def write(name: str, folder: Path) -> Path:
    """Write the template and return its path.

    Raises UsageError if the name is invalid or the file exists already, CannotRecord if it cannot
    be written.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f'"{show(name, 60)}" cannot be the name of a scenario; '
            "use up to 60 of a-z, 0-9 and -, with a letter first"
        )
    path = folder / f"{name}.py"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(TEMPLATE)
    except FileExistsError as problem:
        raise UsageError(f"{show(path)} already exists; choose another name") from problem
    except OSError as problem:
        raise CannotRecord(
            f"cannot write {show(path)}: {problem.strerror}; name another folder with --dir"
        ) from problem
    return path
