"""The start and the end of the command line: the one place where errors are caught.

Everything else is imported late, so that `tuilab --help` loads only click.
"""

import contextlib
import errno
import io
import os
import sys
from typing import NoReturn

from tuilab.errors import ExitCode, TuilabError
from tuilab.storage import places
from tuilab.text import display as text

_OF_THE_DISK = {
    errno.EIO,
    errno.ESTALE,
    errno.EREMOTEIO,
    errno.ENODEV,
    errno.ENXIO,
    errno.ENOTCONN,
    errno.ETIMEDOUT,
}


def main() -> NoReturn:
    """Run the command line; every error that a sentence explains ends here."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        if not os.environ.get("HOME"):
            os.environ.pop(
                "HOME", None
            )  # as others have it: Python takes an empty one for the root of the disk
        _configure(sys.argv[1:])
        code = _run_subcommand()
        sys.stdout.flush()
    except TuilabError as problem:
        _say(f"tuilab: {problem}")
        code = problem.exit_code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        code = ExitCode.DONE
    except OSError as problem:
        if problem.errno in _OF_THE_DISK and problem.filename is not None:
            _say(
                f"tuilab: cannot use {os.fsdecode(problem.filename)}: {problem.strerror}; check that disk and try again"
            )
            code = ExitCode.USAGE
        elif problem.filename is not None or problem.errno is None:
            raise
        else:
            _say(f"tuilab: cannot write the result: {problem.strerror}")
            code = ExitCode.CANNOT_RECORD
    user_data = sys.modules.get("tuilab.storage.user_data")  # loaded by who reads such a file
    for complaint in user_data.complaints() if user_data else ():
        _say(f"tuilab: {complaint}")
    _leave(code)


def _run_subcommand() -> int:
    if "_TUILAB_COMPLETE" in os.environ:
        from tuilab.cli import completion

        completion.guard()
    from tuilab.cli import subcommands

    return subcommands.run()


def _configure(argv: list[str]) -> None:
    """Take over what the user's file sets; commands that help with a file that is wrong go on without it."""
    if argv[:1] == ["config"]:
        return  # which tells who sets what
    is_helping = (
        not {"-h", "--help", "--version"}.isdisjoint(argv)
        or argv[:1] == ["doctor"]
        or "_TUILAB_COMPLETE" in os.environ
    )
    try:
        where = places.config_file()
    except TuilabError:
        return  # there is no home
    if os.path.lexists(where):
        from tuilab import config

        (config.apply_or_pass if is_helping else config.apply)()


def _open_standard_streams() -> None:
    """Fill closed descriptors 0-2, so that no file of ours gets their number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        stream = {1: "stdout", 2: "stderr"}.get(fd)
        if stream and getattr(sys, stream) is None:
            setattr(sys, stream, os.fdopen(fd, "w", closefd=False))
    os.close(fd)


def _say(sentence: str) -> None:
    try:
        print(text.show(sentence, 2000), file=sys.stderr, flush=True)
    except OSError:
        return  # nobody listens


def _leave(code: int) -> NoReturn:
    """Exit at once: taking the interpreter down in order costs as much as `--help` itself, and nothing of ours needs it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a pipe that was closed early
            stream.flush()
    os._exit(code)
