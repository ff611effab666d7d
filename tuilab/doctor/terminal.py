"""Checks of the terminal: size, colours, symbols, and where copied text goes."""

import os
import shutil
import subprocess
import sys

from tuilab.doctor import Box, DoctorFinding, passed, unknown, warn
from tuilab.probes import NotKnown, textual_version
from tuilab.text.display import is_monochrome, why_ascii

_TMUX_PATIENCE_S = 1.0
_NONE = "no terminal: stdout is a file or a pipe"


def size(box: Box) -> DoctorFinding:
    """Warn if the terminal is too small to show all panes of the screens."""
    if not sys.stdout.isatty():
        return unknown(_NONE)
    columns, rows = os.get_terminal_size(1)  # on the screens, sys.stdout has no descriptor
    if columns < 60 or rows < 20:
        return warn(
            f"{columns}x{rows}: the screens show only numbers", "make the window 80x24 or larger"
        )
    if columns < 80 or rows < 24:
        return warn(
            f"{columns}x{rows}: the screens leave out some panes", "make the window 80x24 or larger"
        )
    return passed(f"{columns}x{rows}")


def kind(box: Box) -> DoctorFinding:
    """Warn if TERM is missing or `dumb`: the screens need to position text."""
    if not sys.stdout.isatty():
        return unknown(_NONE)
    term = box.environ.get("TERM", "")
    if term in ("", "dumb"):
        return warn(
            f"TERM={term or '(not set)'} cannot position text: the screens cannot open",
            "export TERM=xterm-256color, or use --headless",
        )
    return passed(f"TERM={term}")


def colours(box: Box) -> DoctorFinding:
    """Report how many colours the terminal has, as far as its variables say so."""
    if not sys.stdout.isatty():
        return unknown(_NONE)
    if box.environ.get("NO_COLOR"):
        return passed("none, as NO_COLOR is set")
    term = box.environ.get("TERM", "")
    if box.environ.get("COLORTERM", "") in ("truecolor", "24bit") or "direct" in term:
        return passed("truecolour")
    if "256" in term:
        return passed("256; if the terminal has more, export COLORTERM=truecolor")
    if term in ("", "dumb"):
        return unknown("the terminal does not report its colours")
    colour_count = "none" if is_monochrome(term) else "16 at most"
    return warn(
        f"{colour_count} (from TERM={term})",
        "if the terminal has 256 colours: export TERM=xterm-256color",
    )


def symbols(box: Box) -> DoctorFinding:
    """Check whether charts can be drawn in UTF-8; if not, they are drawn in ASCII."""
    reason = why_ascii()
    if not reason:
        return passed("UTF-8: braille and blocks")
    step = "if the terminal can show UTF-8: export TERM=xterm-256color"
    if "locale" in reason:
        step = "export LANG=C.UTF-8"
    return warn(f"{reason}: charts are drawn in ASCII", step)


def tmux(box: Box) -> DoctorFinding:
    """Warn if tmux gives its programs a TERM that does not describe tmux."""
    if not box.environ.get("TMUX"):
        return unknown("not inside tmux")
    value = _read_tmux_option("default-terminal")
    if not value.startswith(("tmux", "screen")):
        return warn(
            f"tmux sets TERM to {value}, which describes another terminal: keys and colours may be"
            " wrong",
            "tmux set -g default-terminal tmux-256color, then open a new window of tmux",
        )
    return passed(f"tmux sets TERM to {value}, which describes tmux")


def clipboard(box: Box) -> DoctorFinding:
    """Report where text goes that is copied on the screens."""
    if box.environ.get("TMUX"):
        value = _read_tmux_option("set-clipboard")
        if value == "off":
            return warn("tmux keeps copied text in its own buffer", "tmux set -s set-clipboard on")
        return passed(f"tmux passes copied text to the terminal (set-clipboard {value})")
    if box.environ.get("STY"):
        return warn(
            "screen does not pass copied text to the terminal",
            "use tmux, or select with the mouse while you hold shift",
        )
    return passed("copied text is sent to the terminal (OSC 52), which may ignore it")


def driver(box: Box) -> DoctorFinding:
    """Check whether the screens use the driver of tuilab, which needs a tested Textual."""
    version = textual_version.installed_textual()
    if textual_version.is_tested(version):
        return passed(f"Textual {version}: the screens send only the cells that changed")
    name = f"Textual {version}" if version else "this Textual"
    return warn(
        f"{name} was not tested: the screens use Textual's own driver, and send far more data",
        f"for a slow link: pip install textual=={textual_version.TESTED[-1]}",
    )


def _read_tmux_option(option: str) -> str:
    """Return the value of an option of tmux.

    Raises NotKnown if it cannot be read, subprocess.TimeoutExpired if tmux hangs.
    """
    if shutil.which("tmux") is None:
        raise NotKnown(f"the option {option} of tmux cannot be read: tmux is not on the PATH")
    flags = "-svg" if option == "default-terminal" else "-sv"
    command = ["tmux", "show", flags, option]
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_TMUX_PATIENCE_S,
        check=False,
    )
    value = done.stdout.decode(errors="replace").strip()
    if not value:
        raise NotKnown(f"tmux does not report its option {option}")
    return value


CHECKS = {
    "terminal.size": size,
    "terminal.kind": kind,
    "terminal.colours": colours,
    "terminal.symbols": symbols,
    "terminal.tmux": tmux,
    "terminal.clipboard": clipboard,
    "terminal.driver": driver,
}
