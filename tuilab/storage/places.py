"""Where tuilab keeps things, as platformdirs has it (which takes longer to load than `tuilab list` may take)."""

import os

from tuilab.errors import CannotRecord


def runs_folder() -> str:
    """Return the folder of runs: TUILAB_ROOT, else one in the user's state folder."""
    return os.environ.get("TUILAB_ROOT") or f"{_base('XDG_STATE_HOME', '.local/state')}/tuilab/runs"


def calibration_file() -> str:
    """Return where the calibrations of boxes are kept, beside the folder of runs."""
    return f"{os.path.dirname(os.path.abspath(runs_folder()))}/calibration.json"


def score_file() -> str:
    """Return where it is noted which lessons were done: with the user, as a folder of runs may be shared."""
    return f"{_base('XDG_STATE_HOME', '.local/state')}/tuilab/learned.jsonl"


def settings_file() -> str:
    """Return where the screens keep what they remember: with the user, as a folder of runs may be shared."""
    return f"{_base('XDG_STATE_HOME', '.local/state')}/tuilab/screens.json"


def old_settings_file() -> str:
    """Return where the first versions kept that: beside the folder of runs."""
    return f"{os.path.dirname(os.path.abspath(runs_folder()))}/screens.json"


def config_file() -> str:
    """Return where the user's configuration is, or would be."""
    return f"{_base('XDG_CONFIG_HOME', '.config')}/tuilab/config.toml"


def cache_folder() -> str:
    """Return the folder for what can be made again."""
    return f"{_base('XDG_CACHE_HOME', '.cache')}/tuilab"


def _base(variable: str, default: str) -> str:
    given = os.environ.get(variable, "")
    if os.path.isabs(given):
        return given
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise CannotRecord(
            "no home folder to keep runs in; name a folder with --root DIR or TUILAB_ROOT"
        )
    return f"{home}/{default}"
