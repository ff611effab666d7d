"""Start and end the command line; this is the one place where errors are caught.

All other modules are imported late, so that `tuilab --help` loads only click.
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

_DISK_ERRORS = {
    errno.EIO,
    errno.ESTALE,
    errno.EREMOTEIO,
    errno.ENODEV,
    errno.ENXIO,
    errno.ENOTCONN,
    errno.ETIMEDOUT,
}


def main() -> NoReturn:
    """Run the command line; print an error that a sentence explains, and end with its code."""
    _open_standard_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        if not os.environ.get("HOME"):
            # Python takes an empty HOME for the root of the disk. Other programs ignore it.
            os.environ.pop("HOME", None)
        _configure(sys.argv[1:])
        code = _run_subcommand()
        sys.stdout.flush()
    except TuilabError as problem:
        _print_error(f"tuilab: {problem}")
        code = problem.exit_code
    except KeyboardInterrupt:
        code = ExitCode.INTERRUPTED
    except BrokenPipeError:
        code = ExitCode.DONE
    except OSError as problem:
        if problem.errno in _DISK_ERRORS and problem.filename is not None:
            path = os.fsdecode(problem.filename)
            reason = problem.strerror
            _print_error(f"tuilab: cannot use {path}: {reason}; check that disk and try again")
            code = ExitCode.USAGE
        elif problem.filename is None and problem.errno is not None:
            _print_error(f"tuilab: cannot write the result: {problem.strerror}")
            code = ExitCode.CANNOT_RECORD
        else:  # a mistake in tuilab
            raise
    _print_complaints()
    _leave(code)


def _run_subcommand() -> int:
    """Run the subcommand, or answer a shell that asks for completions; return the exit code."""
    if _is_completing():
        from tuilab.cli import completion

        completion.guard_shells()
    from tuilab.cli import subcommands

    return subcommands.run()


def _is_completing() -> bool:
    """Return whether a shell asks for completions."""
    return "_TUILAB_COMPLETE" in os.environ


def _configure(argv: list[str]) -> None:
    """Apply the config file; raise TuilabError if it is wrong.

    Subcommands that help with a wrong file continue without it.
    """
    if argv[:1] == ["config"]:
        return  # it reads the file itself, and shows where each value comes from
    try:
        path = places.config_file()
    except TuilabError:
        return  # there is no home folder
    if not os.path.lexists(path):
        return
    from tuilab import config

    has_help_option = not {"-h", "--help", "--version"}.isdisjoint(argv)
    if has_help_option or argv[:1] == ["doctor"] or _is_completing():
        config.apply_or_pass()
    else:
        config.apply()


def _open_standard_streams() -> None:
    """Fill closed descriptors 0-2, so that no file of ours gets their number."""
    while True:
        fd = os.open(os.devnull, os.O_RDWR)  # the lowest free number
        if fd > 2:
            os.close(fd)
            return
        if fd == 1 and sys.stdout is None:
            sys.stdout = os.fdopen(fd, "w", closefd=False)
        elif fd == 2 and sys.stderr is None:
            sys.stderr = os.fdopen(fd, "w", closefd=False)


# ---- errors and the end


def _print_complaints() -> None:
    """Print what was wrong with files of the user, if the module that reads them is loaded."""
    user_data = sys.modules.get("tuilab.storage.user_data")
    if user_data:
        for complaint in user_data.complaints():
            _print_error(f"tuilab: {complaint}")


def _print_error(sentence: str) -> None:
    # If stderr is closed, the exit code has to be enough.
    with contextlib.suppress(OSError):
        print(text.show(sentence, 2000), file=sys.stderr, flush=True)


def _leave(code: int) -> NoReturn:
    """Exit at once.

    A regular end of the interpreter takes as long as `--help`, and nothing of ours needs it.
    """
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # the reader of a pipe has gone
            stream.flush()
    os._exit(code)
