"""Choose the paths of tuilab's own files and folders.

They are those of platformdirs, which takes longer to load than `tuilab list` may take.
"""

import os

from tuilab.errors import CannotRecord


def runs_folder() -> str:
    """Return the folder of runs: TUILAB_ROOT, else one in the user's state folder."""
    return os.environ.get("TUILAB_ROOT") or f"{_state_folder()}/runs"


def calibration_file() -> str:
    """Return the file of calibrations, next to the folder of runs."""
    return _path_next_to_runs("calibration.json")


def score_file() -> str:
    """Return the file that lists the finished lessons.

    Each user has one, because users may share a folder of runs.
    """
    return f"{_state_folder()}/learned.jsonl"


def settings_file() -> str:
    """Return the file of the screens' settings; each user has one, as for lessons."""
    return f"{_state_folder()}/screens.json"


def old_settings_file() -> str:
    """Return the file of the screens' settings in the first versions, next to the runs."""
    return _path_next_to_runs("screens.json")


def config_file() -> str:
    """Return the path of the user's configuration, which need not exist."""
    return f"{_base_folder('XDG_CONFIG_HOME', '.config')}/tuilab/config.toml"


def cache_folder() -> str:
    """Return the folder for data that can be computed again."""
    return f"{_base_folder('XDG_CACHE_HOME', '.cache')}/tuilab"


def _path_next_to_runs(name: str) -> str:
    return f"{os.path.dirname(os.path.abspath(runs_folder()))}/{name}"


def _state_folder() -> str:
    return f"{_base_folder('XDG_STATE_HOME', '.local/state')}/tuilab"


def _base_folder(variable: str, default: str) -> str:
    """Return the folder that a variable of XDG names, or the default in the home folder.

    A relative path in the variable is ignored. Raises CannotRecord if there is no home folder.
    """
    folder = os.environ.get(variable, "")
    if os.path.isabs(folder):
        return folder
    home = os.path.expanduser("~")
    if not os.path.isabs(home):
        raise CannotRecord(
            "no home folder to keep runs in; name a folder with --root DIR or TUILAB_ROOT"
        )
    return f"{home}/{default}"
