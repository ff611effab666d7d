"""Switch off trackers and uploads: a tuning runs the script many times, and none of them counts."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from .reports import Reports

TREATMENT = "uploads"
# The variables that tuilab sets for each process that ends early: the value, and what it does.
VARIABLES = {
    "WANDB_MODE": ("disabled", "Weights & Biases logs nothing"),
    "COMET_AUTO_LOG_DISABLE": ("true", "Comet logs nothing"),
    "COMET_MODE": ("DISABLED", "the Trainer of transformers does not start Comet"),
    "DISABLE_MLFLOW_INTEGRATION": ("TRUE", "the Trainer of transformers does not start MLflow"),
    "CLEARML_OFFLINE_MODE": ("1", "ClearML sends nothing"),
    "SWANLAB_MODE": ("disabled", "SwanLab logs nothing"),
}
_FOLDER = "TUILAB_WATCH"  # the folder for marks, which tuilab removes
_NO_REPOSITORY = "nobody/nothing"
# What HfApi sends to the Hub. Each of these functions is replaced.
_REPOSITORIES = ("create_repo", "duplicate_space", "duplicate_repo")
_COMMITS = (
    "create_commit",
    "upload_file",
    "upload_folder",
    "delete_file",
    "delete_files",
    "delete_folder",
)
_OTHERS = (
    "upload_large_folder",
    "delete_repo",
    "move_repo",
    "update_repo_settings",
    "update_repo_visibility",
    "create_branch",
    "delete_branch",
    "create_tag",
    "delete_tag",
    "super_squash_history",
    "preupload_lfs_files",
)


def switch_off(reports: Reports) -> None:
    """Switch off each tracker as soon as the script loads it."""
    folder = os.environ.get(_FOLDER, "")
    if folder:
        os.environ["TRACKIO_DIR"] = os.path.join(folder, "trackio")
        os.environ["MLFLOW_TRACKING_URI"] = Path(folder, "mlflow").absolute().as_uri()
        os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # newer versions ask for it
    for variable in ("TRACKIO_SPACE_ID", "TRACKIO_SERVER_URL"):
        os.environ.pop(variable, None)
    hooks: dict[str, Callable[[Any], str]] = {
        "huggingface_hub.hf_api": _keep_from_hub,
        "wandb": _disable_wandb,
        "trackio": _keep_trackio_here,
        "mlflow": _keep_mlflow_here,
        "neptune": lambda module: _set_neptune_mode("debug"),
        "neptune_scale": lambda module: _set_neptune_mode("disabled"),
    }
    for name, hook in list(hooks.items()):
        if name in sys.modules:
            _run_hook(hook, sys.modules[name], reports)
            del hooks[name]
    sys.meta_path.insert(0, _HookingFinder(hooks, reports))


def _run_hook(hook: Callable[[Any], str], module: Any, reports: Reports) -> None:
    """Run the hook of a library that was just loaded; report what it did."""
    try:
        reports.did(TREATMENT, hook(module))
    except Exception as problem:
        name = getattr(module, "__name__", "a library")
        reports.skipped(TREATMENT, f"{name} was not switched off: {problem!r}")


class _HookingFinder:
    """Runs a hook after some modules have been loaded. Other finders find all modules."""

    def __init__(self, hooks: dict[str, Callable[[Any], str]], reports: Reports) -> None:
        self._hooks = hooks
        self._reports = reports

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a module that has a hook, with a loader that runs the hook."""
        hook = self._hooks.pop(name, None)
        if hook is None:
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self._hook_loader(spec, hook)
                return spec
        return None

    def _hook_loader(self, spec: Any, hook: Callable[[Any], str]) -> None:
        execute = getattr(spec.loader, "exec_module", None)
        if execute is None:
            return

        def exec_module(module: Any) -> None:
            execute(module)
            _run_hook(hook, module, self._reports)

        spec.loader.exec_module = exec_module


def _disable_wandb(module: Any) -> str:
    """Have each `wandb.init` be disabled, although the script asks for another mode."""
    begin = module.init

    @functools.wraps(begin)
    def disabled_init(*args: Any, **kwargs: Any) -> Any:
        kwargs["mode"] = "disabled"
        return begin(*args, **kwargs)

    module.init = disabled_init
    return "Weights & Biases logs nothing"


def _keep_trackio_here(module: Any) -> str:
    """Have trackio log into a folder that tuilab removes, and into no Space."""
    begin = module.init

    @functools.wraps(begin)
    def local_init(*args: Any, **kwargs: Any) -> Any:
        for name in ("space_id", "dataset_id", "bucket_id", "server_url"):
            kwargs.pop(name, None)
        return begin(*args, **kwargs)

    module.init = local_init
    return "Trackio logs into a folder that tuilab removes"


def _keep_mlflow_here(module: Any) -> str:
    """Have MLflow log into a folder that tuilab removes, although the script names a server."""
    own_uri = os.environ.get("MLFLOW_TRACKING_URI", "")
    set_uri = module.set_tracking_uri

    @functools.wraps(set_uri)
    def set_own_uri(uri: Any) -> None:
        set_uri(own_uri or uri)

    module.set_tracking_uri = set_own_uri
    if own_uri:
        set_uri(own_uri)  # the script may have set another one before it loaded torch
    return "MLflow logs into a folder that tuilab removes"


def _set_neptune_mode(mode: str) -> str:
    os.environ["NEPTUNE_MODE"] = mode
    return f"Neptune logs nothing, unless the script gives it a mode (NEPTUNE_MODE={mode})"


def _keep_from_hub(module: Any) -> str:
    """Have huggingface_hub change nothing on the Hub. Downloads work as before."""
    api_class = module.HfApi
    for name in (*_REPOSITORIES, *_COMMITS, *_OTHERS):
        method = vars(api_class).get(name)
        if method is None:
            continue
        replacement = _local_method(module, name, method)
        setattr(api_class, name, replacement)
        if hasattr(module, name):  # the same function without an instance of HfApi
            setattr(module, name, functools.partial(replacement, module.api))
    return "nothing is uploaded to the Hugging Face Hub"


def _local_method(module: Any, name: str, method: Any) -> Any:
    """Return a method that sends nothing, and returns what a success would return."""

    @functools.wraps(method)
    def send_nothing(this: Any, *args: Any, **kwargs: Any) -> Any:
        result = _result_of(module, name, args, kwargs)
        if kwargs.get("run_as_future"):
            done: Future[Any] = Future()
            done.set_result(result)
            return done
        return result

    return send_nothing


def _result_of(module: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what a function of the Hub would return: the address of a repository or commit."""
    repo_id = kwargs.get("repo_id")
    if repo_id is None and name in (*_REPOSITORIES, "create_commit") and args:
        repo_id = args[0]
    repo_id = repo_id or _NO_REPOSITORY
    endpoint = "https://huggingface.co"
    if name in _REPOSITORIES:
        return module.RepoUrl(f"{endpoint}/{repo_id}")
    if name in _COMMITS:
        oid = "0" * 40
        message = str(kwargs.get("commit_message") or "")
        return module.CommitInfo(
            commit_url=f"{endpoint}/{repo_id}/commit/{oid}",
            commit_message=message,
            commit_description="",
            oid=oid,
        )
    return None
