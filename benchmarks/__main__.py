"""What tuilab costs beside its peers, measured here in one run: pair by pair, as ratios with the least and the most.

    python -m benchmarks [NAME [SIZE=NUMBER ...] ...] [--list] [--tiny] [--json FILE]

No name: all of them. A size belongs to the name before it: `opening points=1e7`. A peer that is not installed is n/a, with the
reason. The exit code is 0 when all that can be measured here was, 1 when a benchmark failed, 2 for what cannot be asked, 130
after Ctrl-C; the file has what was measured until then.
"""

import argparse
import json
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from benchmarks import pairs
from benchmarks.pairs import Missing, Row
from benchmarks.processes import keep_children

NAMES = (
    "command_line", "screens", "live", "opening", "scalars", "headless", "library", "watching", "reports", "verdict_rates",
    "simulated_verdicts", "instructions",
)  # fmt: skip
Sizes = dict[str, float]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="NAME", help=argparse.SUPPRESS)
    parser.add_argument(
        "--list", action="store_true", help="the names, what each measures, and its sizes"
    )
    parser.add_argument(
        "--tiny", action="store_true", help="sizes so small that the figures mean nothing"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all that was measured")
    given = parser.parse_intermixed_args(words)
    if given.list:
        print("\n".join(told(name) for name in NAMES))
        return 0
    asked = parse(given.words, is_tiny=given.tiny)
    if given.json:
        check_writable(given.json)
    keep_children()
    return measure_all(asked, lambda document: write(given.json, document), is_tiny=given.tiny)


def told(name: str) -> str:
    sizes = " ".join(
        f"{size}={value:g}" for size, value in import_module(f"benchmarks.{name}").FULL.items()
    )
    return f"{name:14} {first_line(name)}\n{'':14} {sizes}"


def first_line(name: str) -> str:
    return (import_module(f"benchmarks.{name}").__doc__ or "").partition("\n")[0]


def parse(words: list[str], *, is_tiny: bool) -> dict[str, Sizes]:
    """Return the benchmarks that were asked for, each with its sizes."""
    asked: dict[str, Sizes] = {}
    name = ""
    for word in words:
        size, is_size, value = word.partition("=")
        if is_size:
            if not name:
                refuse(f"{word} stands before any benchmark: write the name of one, then its sizes")
            asked[name][size] = parse_size(name, size, value)
        elif word in NAMES:
            name = word
            asked[name] = usual_sizes(name, is_tiny=is_tiny)
        else:
            refuse(f"there is no benchmark {word!r}; there are {', '.join(NAMES)}")
    return asked or {name: usual_sizes(name, is_tiny=is_tiny) for name in NAMES}


def usual_sizes(name: str, *, is_tiny: bool) -> Sizes:
    module = import_module(f"benchmarks.{name}")
    return dict(module.TINY if is_tiny else module.FULL)


def parse_size(name: str, size: str, value: str) -> float:
    usual = usual_sizes(name, is_tiny=False)
    if size not in usual:
        refuse(f"{name} has no size {size!r}; it has {', '.join(usual)}")
    try:
        number = float(value)
        if isinstance(usual[size], int):
            number = int(number) if number.is_integer() else -1
    except ValueError:
        number = -1
    if not 0 < number < float("inf") and not (number == 0 == usual[size]):
        refuse(
            f"{size}={value} is no size: it is a {'whole ' if isinstance(usual[size], int) else ''}number above 0"
        )
    return number


def check_writable(path: Path) -> None:
    try:
        path.open("a").close()
    except OSError as problem:
        refuse(f"cannot write {path}: {problem.strerror}")


def refuse(sentence: str) -> NoReturn:
    print(f"{sentence}.", file=sys.stderr)
    raise SystemExit(2)


def measure_all(
    asked: dict[str, Sizes], keep: Callable[[dict[str, object]], None], *, is_tiny: bool
) -> int:
    """Measure, print each row as it comes, and keep what there is after each benchmark; return the exit code."""
    began, code = pairs.moment(), 0
    found: dict[str, list[Row]] = {}
    for name, sizes in asked.items():
        print(
            f"\n{name}: {first_line(name)}  ({', '.join(f'{size} {value:g}' for size, value in sizes.items())})",
            flush=True,
        )
        found[name] = []
        try:
            for row in measure(name, sizes):
                print(pairs.line(row), flush=True)
                found[name].append(row)
        except Exception:  # the others are measured all the same
            traceback.print_exc()
            print(f"{name} failed", flush=True)
            code = 1
        keep(pairs.document(found, asked, began, is_tiny=is_tiny))
    print(
        f"\nload {began['load']} at the beginning, {pairs.moment()['load']} at the end; in brackets the least and the most"
    )
    return code


def measure(name: str, sizes: Sizes) -> Iterator[Row]:
    with tempfile.TemporaryDirectory(prefix="tuilab-bench-", ignore_cleanup_errors=True) as place:
        try:
            yield from import_module(f"benchmarks.{name}").rows(Path(place), **sizes)
        except Missing as why:
            yield Row(name, missing=str(why))


def write(path: Path | None, document: dict[str, object]) -> None:
    if path:
        path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
