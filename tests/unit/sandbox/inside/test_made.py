"""What a set-up command has made, told apart from what the commit holds."""

import json
import os
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

from turnout.sandbox.inside.setup.made import rule
from turnout.testing.repositories import TinyRepository


def program(*arguments: object, replaced: tuple[str, str] = ("", "")) -> bytes:
    """Run the program of a set-up sandbox, with one of its limits lowered."""
    source = files("turnout.sandbox.inside").joinpath("setup/made.py").read_text("utf-8")
    assert replaced[0] in source
    argv = [sys.executable, "-ISE", "-c", source.replace(*replaced), *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, check=True).stdout


class Workspace:
    """A checkout that a command is run in."""

    def __init__(self, folder: Path) -> None:
        content = {"a.txt": "1\n", "src/a.py": "", "gone": "x", "lib/deep/b.py": "b\n"}
        self.repository = TinyRepository(folder / "repo", content)
        self.root = self.repository.path
        self.commit = self.repository.head
        self._memory = folder / "scratch" / "memory"
        self._listing = folder / "scratch" / "listing"

    def remember(self) -> None:
        """Look at it before the command."""
        program("remember", self.root, self._memory)

    def tell(self, replaced: tuple[str, str] = ("", "")) -> tuple[dict[str, object], set[bytes]]:
        """Return the facts, and the paths that are listed."""
        git_dir = self.root / ".git"
        arguments = (self.root, git_dir, self.commit, self._memory, self._listing)
        facts = json.loads(program("tell", *arguments, replaced=replaced))
        return facts, set(self._listing.read_bytes().split(b"\0")) - {b""}


def test_what_a_command_makes_is_listed_and_ignored(tmp_path):
    """New files, links and folders in any place; not what was there, and nothing of git's."""
    workspace = Workspace(tmp_path)
    (workspace.root / "node_modules").mkdir()
    (workspace.root / "node_modules" / "old.js").write_text("old")
    (workspace.root / "node_modules" / "other.js").write_text("old")
    workspace.remember()
    (workspace.root / "node_modules" / "other.js").write_text("newer")
    (workspace.root / "gen" / "empty").mkdir(parents=True)
    (workspace.root / "gen" / "link").symlink_to("/etc")
    (workspace.root / "src" / "made.py").write_text("x")
    (workspace.root / "src" / "__pycache__").mkdir()
    (workspace.root / "a b#").write_text("y")
    os.mkfifo(workspace.root / "pipe")
    (workspace.root / ".git" / "more").write_text("z")
    facts, listed = workspace.tell()
    assert listed == {
        *(b"./node_modules/other.js", b"./gen", b"./gen/empty", b"./gen/link"),
        *(b"./src/made.py", b"./a b#"),
    }
    assert facts["paths"] == len(listed)
    rules = set(str(facts["rules"]).splitlines())
    assert rules == {"/node_modules/", "/gen/", "/src/made.py", "/a\\ b\\#"}
    assert (facts["changed"], facts["all"]) == ([], True)


def test_changes_to_files_of_the_commit_are_named_and_not_listed(tmp_path):
    """Whether they were written, removed or made another kind of thing."""
    workspace = Workspace(tmp_path)
    workspace.remember()
    (workspace.root / "a.txt").write_text("22\n")
    (workspace.root / "gone").unlink()
    (workspace.root / "src" / "a.py").chmod(0o755)
    facts, listed = workspace.tell()
    assert (facts["changed"], listed) == (["a.txt", "gone", "src/a.py"], set())


def test_the_rules_are_those_of_git(tmp_path):
    """What is ignored is what was made, whatever it is called; what the commit holds is not."""
    workspace = Workspace(tmp_path)
    workspace.remember()
    names = ["[x]", "*", "!n", "#c", "back\\slash", "end ", "café", "src/?"]
    for name in names:
        (workspace.root / name).write_text("made")
    facts, _ = workspace.tell()
    (workspace.root / ".git" / "info").mkdir(exist_ok=True)
    (workspace.root / ".git" / "info" / "exclude").write_text(str(facts["rules"]))
    (workspace.root / "other").write_text("the run's own")
    assert workspace.repository.git("status", "--porcelain") == "?? other"


def test_a_name_that_no_line_can_hold_has_no_rule():
    """The rule would be of another file."""
    assert rule(b"a\n*") == ""


def test_too_much_is_told_and_nothing_is_listed(tmp_path):
    """Half of an installation is worse than none."""
    workspace = Workspace(tmp_path)
    workspace.remember()
    for number in range(4):
        (workspace.root / "src" / f"made{number}").write_text("x")
    facts, listed = workspace.tell(("MOST_PATHS = 300_000", "MOST_PATHS = 3"))
    assert (facts["all"], facts["paths"], listed) == (False, 0, set())
