"""Measure what tuilab costs on this machine, next to comparable programs (peers).

    python -m benchmarks [NAME [SIZE=NUMBER ...] ...] [--list] [--tiny] [--json FILE]

Without a name, all benchmarks run. A size belongs to the name before it: `opening points=1e7`. A
line shows the median, the least and the greatest value, and the ratio to a reference of the same
round. If a peer is not installed, its line is n/a with the reason.

The exit code is 0 if everything that this machine can measure was measured, 1 if a benchmark
failed, 2 if an argument is wrong, and 130 after Ctrl-C. The file then has the benchmarks that were
done.
"""

import argparse
import json
import math
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from benchmarks import pairs
from benchmarks.pairs import Missing, Row
from benchmarks.processes import keep_children

NAMES = (
    "command_line",
    "screens",
    "live",
    "opening",
    "scalars",
    "headless",
    "library",
    "watching",
    "long_run",
    "reports",
    "verdict_rates",
    "simulated_verdicts",
    "tuning",
    "instructions",
)
Sizes = dict[str, float]


def main(words: list[str] | None = None) -> int:
    """Run the benchmarks that the command line names; return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument(
        "--list", action="store_true", help="list the names, what each measures, and its sizes"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="only test that they run; the numbers mean nothing"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all values to a file")
    arguments = parser.parse_intermixed_args(words)
    if arguments.list:
        for name in NAMES:
            print(describe(name))
        return 0
    benchmarks = parse(arguments.words, is_tiny=arguments.tiny)
    if arguments.json:
        check_writable(arguments.json)
    keep_children()
    return measure_all(benchmarks, partial(write, arguments.json), is_tiny=arguments.tiny)


def describe(name: str) -> str:
    """Return two lines: a name with what it measures, and its sizes."""
    full_sizes = import_module(f"benchmarks.{name}").FULL
    sizes = " ".join(f"{size}={value:g}" for size, value in full_sizes.items())
    return f"{name:14} {first_line(name)}\n{'':14} {sizes}"


def first_line(name: str) -> str:
    """Return the first line of the docstring of a benchmark."""
    docstring = import_module(f"benchmarks.{name}").__doc__ or ""
    return docstring.partition("\n")[0]


def parse(words: list[str], *, is_tiny: bool) -> dict[str, Sizes]:
    """Return the benchmarks that a command line names, each with its sizes.

    If it names none, return all of them.
    """
    benchmarks: dict[str, Sizes] = {}
    name = ""
    for word in words:
        size, equals_sign, value = word.partition("=")
        if equals_sign:
            if not name:
                refuse(f"{word} stands before any benchmark: write the name of one, then its sizes")
            benchmarks[name][size] = parse_size(name, size, value)
        elif word in NAMES:
            name = word
            benchmarks[name] = default_sizes(name, is_tiny=is_tiny)
        else:
            refuse(f"there is no benchmark {word!r}; there are {', '.join(NAMES)}")
    if benchmarks:
        return benchmarks
    return {name: default_sizes(name, is_tiny=is_tiny) for name in NAMES}


def default_sizes(name: str, *, is_tiny: bool) -> Sizes:
    """Return the sizes of a benchmark if the command line gives none."""
    module = import_module(f"benchmarks.{name}")
    if is_tiny:
        return dict(module.TINY)
    return dict(module.FULL)


def parse_size(name: str, size: str, value: str) -> float:
    """Return a size as a number: a whole one if the default is whole, and 0 only if that is 0."""
    defaults = default_sizes(name, is_tiny=False)
    if size not in defaults:
        refuse(f"{name} has no size {size!r}; it has {', '.join(defaults)}")
    is_whole = isinstance(defaults[size], int)
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if is_whole and number.is_integer():
        number = int(number)
    elif is_whole:
        number = math.nan
    is_allowed_zero = number == 0 and defaults[size] == 0
    if not 0 < number < math.inf and not is_allowed_zero:
        kind = "whole number" if is_whole else "number"
        refuse(f"{size}={value} is no size: it is a {kind} above 0")
    return number


def check_writable(path: Path) -> None:
    """Refuse a file that cannot be written, before anything is measured."""
    try:
        path.open("a").close()
    except OSError as problem:
        refuse(f"cannot write {path}: {problem.strerror}")


def refuse(sentence: str) -> NoReturn:
    """Print what is wrong with the command line, and exit with 2."""
    print(f"{sentence}.", file=sys.stderr)
    raise SystemExit(2)


def measure_all(
    benchmarks: dict[str, Sizes], keep: Callable[[dict[str, object]], None], *, is_tiny: bool
) -> int:
    """Run benchmarks and print each row at once; return the exit code.

    After each benchmark, `keep` gets all results so far.
    """
    began = pairs.moment()
    exit_code = 0
    results: dict[str, list[Row]] = {}
    for name, sizes in benchmarks.items():
        described_sizes = ", ".join(f"{size} {value:g}" for size, value in sizes.items())
        print(f"\n{name}: {first_line(name)}  ({described_sizes})", flush=True)
        results[name] = []
        try:
            for row in measure(name, sizes):
                print(pairs.line(row), flush=True)
                results[name].append(row)
        except Exception:  # the other benchmarks run nevertheless
            traceback.print_exc()
            print(f"{name} failed", flush=True)
            exit_code = 1
        keep(pairs.document(results, benchmarks, began, is_tiny=is_tiny))
    ended = pairs.moment()
    loads = f"load {began['load']} at the beginning, {ended['load']} at the end"
    print(f"\n{loads}; in brackets the least and the most")
    return exit_code


def measure(name: str, sizes: Sizes) -> Iterator[Row]:
    """Yield the rows of a benchmark, which has a temporary folder for its files."""
    with tempfile.TemporaryDirectory(prefix="tuilab-bench-", ignore_cleanup_errors=True) as folder:
        try:
            yield from import_module(f"benchmarks.{name}").rows(Path(folder), **sizes)
        except Missing as reason:
            yield Row(name, missing=str(reason))


def write(path: Path | None, document: dict[str, object]) -> None:
    """Write the results to the file, if the command line names one."""
    if path:
        path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
