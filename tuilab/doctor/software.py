"""Checks of Python and its packages."""

import os
import platform
import re
import sys
from importlib import metadata, util
from pathlib import Path

from tuilab.doctor import Box, DoctorFinding, failed, passed, unknown, warn
from tuilab.probes import NotKnown
from tuilab.text.display import plural


def python(box: Box) -> DoctorFinding:
    """Warn if tuilab uses the system's Python, where other packages can interfere."""
    message = f"{platform.python_version()}, {sys.executable}"
    if sys.prefix == sys.base_prefix and "CONDA_PREFIX" not in box.environ:
        return warn(
            f"{message}: the system's Python, where other packages can interfere",
            "install tuilab into its own venv: python3 -m venv ~/tuilab-venv",
        )
    return passed(message)


def packages(box: Box) -> DoctorFinding:
    """Check whether all required packages are installed; `pip check` compares versions."""
    required = []
    for requirement in metadata.requires("tuilab") or []:
        if "extra ==" not in requirement:
            name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
            required.append(name)
    missing = [name for name in required if not _is_installed(name)]
    if missing:
        return failed(f"not installed: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return passed(f"all {plural(len(required), 'required package')} installed")


def nvml_module(box: Box) -> DoctorFinding:
    """Check that the deprecated package pynvml does not hide nvidia-ml-py."""
    if _is_installed("pynvml"):
        return warn(
            "the deprecated package pynvml hides nvidia-ml-py",
            "pip uninstall -y pynvml; pip install --force-reinstall nvidia-ml-py",
        )
    return passed(f"nvidia-ml-py {metadata.version('nvidia-ml-py')}")


def compiled(box: Box) -> DoctorFinding:
    """Check for compiled files: without them, the screens take four times as long to load."""
    cached = util.cache_from_source(__file__)
    if box.environ.get("PYTHONDONTWRITEBYTECODE") and not Path(cached).exists():
        return warn(
            "no compiled files, as PYTHONDONTWRITEBYTECODE is set: every start is slow",
            f"{sys.executable} -m compileall -q {_site_packages()}",
        )
    return passed("Python can use compiled files (.pyc)")


def paths(box: Box) -> DoctorFinding:
    """Warn about PYTHONPATH: modules there hide installed packages."""
    if value := box.environ.get("PYTHONPATH"):
        return warn(
            f"PYTHONPATH={value}: modules found there hide installed packages in every run",
            "unset PYTHONPATH, unless you need it",
        )
    return passed("PYTHONPATH is not set")


def environment(box: Box) -> DoctorFinding:
    """Check whether the active environment is the one whose torch is measured.

    Warns only if the active one has a torch of its own.
    """
    own = f"runs measure the torch of {sys.prefix}"
    # A venv is activated within conda's environment, seldom the other way round.
    name = "VIRTUAL_ENV"
    if not box.environ.get("VIRTUAL_ENV"):
        name = "CONDA_PREFIX"
    path = box.environ.get(name)
    if not path:
        return passed(f"{own}; no environment is active")
    if os.path.realpath(path) == os.path.realpath(sys.prefix):
        return passed(f"{own}, which is active")
    version = _find_torch_version(Path(path))
    if not version:
        return passed(f"{own}; {name}={path} has no torch")
    return warn(
        f"{own}, not torch {version} of the active {path}",
        f"to measure torch {version}: {path}/bin/python -m pip install tuilab",
    )


def _site_packages() -> Path:
    """Return the folder that contains the package tuilab."""
    return Path(__file__).parents[2]


def _find_torch_version(environment: Path) -> str:
    """Return the version of torch in an environment by its files, or an empty string."""
    folders = sorted(environment.glob("lib/python3*/site-packages/torch-*.dist-info"))
    if not folders:
        return ""
    return folders[-1].name.removeprefix("torch-").removesuffix(".dist-info")


def torch_build(box: Box) -> DoctorFinding:
    """Report the version and build of torch from its files, without importing it."""
    from tuilab.doctor.facts import torch_build as read_build

    try:
        version = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return failed("torch is not installed", "pip install torch")
    try:
        return passed(f"{version}, built for {read_build()}")
    except NotKnown as problem:
        return unknown(f"{version}; {problem}")


def _is_installed(name: str) -> bool:
    """Return whether a package is installed, by its metadata."""
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True


CHECKS = {
    "python.version": python,
    "python.packages": packages,
    "python.nvml_module": nvml_module,
    "python.compiled": compiled,
    "python.path": paths,
    "python.environment": environment,
    "torch.build": torch_build,
}
