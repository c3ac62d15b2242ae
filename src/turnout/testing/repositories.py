"""Small git repositories with known content, for tests."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["PAGINATION_FIXED", "PAGINATION_TEST", "TinyRepository", "buggy_pagination"]

_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.org",
    "GIT_AUTHOR_DATE": "2024-01-01T00:00:00+0000",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org",
    "GIT_COMMITTER_DATE": "2024-01-01T00:00:00+0000",
}

_PAGES = """\
\"\"\"Cut a list into pages.\"\"\"


def page(items, number, size):
    \"\"\"Return page `number`, counted from 1, of at most `size` items.\"\"\"
    if size < 1:
        raise ValueError("size must be at least 1")
    start = number * size
    return items[start : start + size]


def page_count(items, size):
    \"\"\"Return how many pages of `size` hold all items.\"\"\"
    return -(-len(items) // size)
"""

PAGINATION_FIXED = _PAGES.replace("start = number * size", "start = (number - 1) * size")
"""`pages.py` of `buggy_pagination`, mended."""

PAGINATION_TEST = "tests/test_pages.py::test_the_first_page_starts_at_the_first_item"
"""Node id of the one test that fails in `buggy_pagination`."""

_PAGES_TESTS = """\
import pytest

from pages import page, page_count


def test_the_first_page_starts_at_the_first_item():
    assert page([1, 2, 3, 4, 5], 1, 2) == [1, 2]


def test_the_last_page_may_be_short():
    assert page_count([1, 2, 3, 4, 5], 2) == 3


def test_a_size_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1"):
        page([1], 1, 0)
"""


class TinyRepository:
    """A git repository of a few files, the same commit ids each time it is made.

    Needs `git`; reads no configuration of the user.
    """

    def __init__(
        self,
        path: Path,
        files: Mapping[str, str | bytes] | None = None,
        *,
        branch: str = "main",
        bare: bool = False,
    ) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", f"--initial-branch={branch}", *(["--bare"] if bare else []))
        if files:
            self.commit("first", files)

    def __str__(self) -> str:
        return str(self.path)

    def git(self, *arguments: str) -> str:
        """Run git in the repository and return what it printed, without the last newline."""
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.path,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=60,
        )
        if done.returncode:
            raise RuntimeError(f"git {' '.join(arguments)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode(errors="surrogateescape").removesuffix("\n")

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files without committing them."""
        for name, content in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(
        self,
        message: str,
        files: Mapping[str, str | bytes] | None = None,
        *,
        remove: Sequence[str] = (),
    ) -> str:
        """Write and remove files, commit everything, and return the commit's full id."""
        self.write(files or {})
        for name in remove:
            (self.path / name).unlink()
        self.git("add", "--all", "--force")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.head

    def tag(self, name: str, *, annotated: bool = False) -> None:
        """Name the current commit."""
        self.git("tag", *(["--annotate", "--message", name] if annotated else []), name)

    def branch(self, name: str) -> None:
        """Start a branch at the current commit and switch to it."""
        self.git("switch", "--quiet", "--create", name)

    @property
    def head(self) -> str:
        """Full id of the current commit."""
        return self.git("rev-parse", "HEAD")


def buggy_pagination(path: Path) -> TinyRepository:
    """Make a repository whose `page` skips the first page: one test fails, two pass.

    Writing `PAGINATION_FIXED` to `pages.py` makes all three pass; no requirement but pytest.
    """
    return TinyRepository(
        path,
        {
            "pages.py": _PAGES,
            "tests/test_pages.py": _PAGES_TESTS,
            "README.md": "# Pages\n\nCut a list into pages.\n",
        },
    )
