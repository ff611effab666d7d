"""A tmux server of its own for a test, with one window in it."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest


class Tmux:
    """Run a command in a window of tmux."""

    def __init__(
        self, folder: Path, env: dict[str, str], *command: str, columns: int = 120, rows: int = 40
    ) -> None:
        if shutil.which("tmux") is None:
            pytest.skip("tmux is not installed")
        self.env = dict(os.environ)
        for name in ("TMUX", "NO_COLOR", "COLORTERM"):
            self.env.pop(name, None)
        self.env |= {"LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
        self.command = ["tmux", "-S", str(folder / "tmux"), "-f", "/dev/null"]
        window = ["env"]
        for name, value in env.items():
            if os.environ.get(name) != value:
                window.append(f"{name}={value}")
        window += command
        size = ("-x", str(columns), "-y", str(rows))
        self.ask("new-session", "-d", *size, shlex.join(window))
        self.ask("set", "-g", "remain-on-exit", "on")

    def ask(self, *words: str, check: bool = True) -> str:
        """Give tmux a command and return what it prints."""
        done = subprocess.run(
            [*self.command, *words],
            env=self.env,
            capture_output=True,
            text=True,
            timeout=30,
            check=check,
        )
        return done.stdout

    def keys(self, *keys: str) -> None:
        """Type keys, each by tmux's name of it."""
        self.ask("send-keys", *keys)

    def picture(self, *options: str) -> str:
        """Return what the window shows."""
        return self.ask("capture-pane", "-p", *options)

    def shows(self, *words: str) -> bool:
        """Whether the window shows all these words."""
        text = self.picture()
        return all(word in text for word in words)

    def close(self) -> None:
        self.ask("kill-server", check=False)
