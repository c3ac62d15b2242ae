"""Real paths for the paths that every sandbox has."""

from pathlib import Path

import pytest

from turnout.sandbox.base import BASE_ENV, Command
from turnout.sandbox.unconfined.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """Return places that show a base and a folder below the temporary one."""
    return Places(
        tmp_path / "s", {"/base": "/state/tree", "/base.git": "/state/git", "/tmp/a/b": "/host/b"}
    )


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("/repo", "{0}/repo"),
        ("/workspace/x", "{0}/repo/x"),
        ("/repository", "/repository"),
        ("/venv/bin/python", "{0}/venv/bin/python"),
        ("/tmp/home", "{0}/tmp/home"),
        ("/base/.", "/state/tree/."),
        ("/base.git", "/state/git"),
        ("/base.gitx", "/base.gitx"),
        ("/tmp/a/b/c", "/host/b/c"),
        ("/tmp/a/bc", "{0}/tmp/a/bc"),
        ("repo/x", "repo/x"),
        ("", ""),
    ],
)
def test_whole_paths_are_replaced(places: Places, tmp_path: Path, path: str, real: str) -> None:
    """The longest name counts, and only where it ends."""
    assert places.real(path) == real.format(tmp_path / "s")


def test_a_command_gets_real_paths(places: Places, tmp_path: Path) -> None:
    """Folder, arguments and the parts of its variables; a line for the shell stays."""
    shown = places.command(Command(("ls", "/repo", "a/repo"), env={"P": "/venv/bin:/usr/bin:"}))
    own = tmp_path / "s"
    assert shown.cwd == f"{own}/repo"
    assert shown.argv == ("ls", f"{own}/repo", "a/repo")
    assert shown.env == {"P": f"{own}/venv/bin:/usr/bin:"}
    assert places.command(Command(shell="ls /repo", cwd="x")) == Command(shell="ls /repo", cwd="x")
    assert places.variables(BASE_ENV)["LANG"] == "C.UTF-8"


def test_what_is_shown_below_its_folders_is_linked(places: Places, tmp_path: Path) -> None:
    """A program that lists the folder above finds it; the rest has a name alone."""
    places.make()
    own = tmp_path / "s"
    assert (own / "tmp" / "a" / "b").readlink() == Path("/host/b")
    assert sorted(path.name for path in own.iterdir()) == ["repo", "tmp", "venv"]
    assert (own / "tmp" / "home").is_dir()
