"""Where the folders of an unconfined sandbox are: it has no view of its own, only these names."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from turnout.sandbox.bare import BASE_MORE, BASE_VENV
from turnout.sandbox.base import BASE_ENV, PROJECT, REPO, VENV, WORKSPACE, Command
from turnout.sandbox.egress.trust import BUNDLE_INSIDE

__all__ = ["COPIED", "Places"]

COPIED = {VENV: BASE_VENV, PROJECT: "/base.project"}
"""What a run has a copy of, and the name of what it is a copy of."""


class Places:
    """Real paths for the paths that every sandbox has.

    They are put in for a whole word: the folder of a command, its arguments, the parts of its
    variables between colons. What a script for the shell names is left alone.
    """

    def __init__(self, folder: Path, shown: Mapping[str, str]) -> None:
        """Take the sandbox's own folder, and what else is shown: real paths by their targets."""
        self.repo = folder / "repo"
        self.venv = folder / "venv"
        self.temporary = folder / "tmp"
        self.bundle = folder / "ca.pem"
        own = {REPO: self.repo, WORKSPACE: self.repo, VENV: self.venv}
        own |= {PROJECT: folder / "project"} if COPIED[PROJECT] in shown else {}
        own |= {BASE_ENV["TMPDIR"]: self.temporary, BUNDLE_INSIDE: self.bundle}
        own |= {BASE_MORE: folder / "more"}
        self._shown = dict(shown)
        real = {target: str(path) for target, path in own.items()} | self._shown
        self._real = sorted(real.items(), key=lambda item: len(item[0]), reverse=True)

    def make(self) -> None:
        """Make the sandbox's own folders, with links to what is shown below them."""
        for path in (self.repo, self.venv, self.temporary / "home"):
            path.mkdir(parents=True)
        for target, source in self._shown.items():
            folder, _, name = target.rpartition("/")
            parent = Path(self.real(folder or "/"))
            if parent.is_relative_to(self.repo.parent):
                parent.mkdir(parents=True, exist_ok=True)
                (parent / name).symlink_to(source)

    def real(self, path: str) -> str:
        """Return where a path leads; one that is of no sandbox stays as it is."""
        for target, source in self._real:
            if path == target or path.startswith(f"{target}/"):
                return source + path[len(target) :]
        return path

    def variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return an environment with real paths."""
        return {name: ":".join(map(self.real, value.split(":"))) for name, value in env.items()}

    def command(self, command: Command) -> Command:
        """Return a command with real paths."""
        return replace(
            command,
            argv=tuple(map(self.real, command.argv)),
            cwd=self.real(command.cwd),
            env=self.variables(command.env),
        )
