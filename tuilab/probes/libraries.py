"""Find the shared libraries of this machine that a program can preload."""

from pathlib import Path

_FOLDERS = ("usr/lib", "usr/lib64", "usr/lib/*-linux-gnu", "usr/local/lib", "opt/conda/lib")


def find_libraries(root: Path, pattern: str) -> list[str]:
    """Return the paths that match a pattern in the library folders, the shortest first."""
    paths = set()
    for folder in _FOLDERS:
        paths |= {str(path) for path in root.glob(f"{folder}/{pattern}")}
    return sorted(paths, key=len)
