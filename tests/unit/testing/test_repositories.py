import subprocess
import sys

import pytest

from turnout.testing.repositories import (
    PAGINATION_FIXED,
    PAGINATION_TEST,
    TinyRepository,
    buggy_pagination,
)


def _pytest(repository: TinyRepository) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "pythonpath=."],
        cwd=repository.path,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_same_files_give_the_same_commit(tmp_path):
    """Commit ids depend on content alone, so tests may rely on them."""
    one = TinyRepository(tmp_path / "one", {"a.txt": "a\n"})
    two = TinyRepository(tmp_path / "two", {"a.txt": "a\n"})
    assert one.head == two.head


def test_written_files_stay_uncommitted_until_a_commit(tmp_path):
    """`write` makes a dirty tree; `commit` takes everything, ignored files too."""
    repository = TinyRepository(tmp_path, {"a.txt": "a\n", ".gitignore": "*.log\n"})
    repository.write({"a.txt": "b\n", "x.log": "x\n"})
    assert repository.git("status", "--porcelain") == " M a.txt"
    repository.commit("second")
    assert repository.git("ls-files") == ".gitignore\na.txt\nx.log"


def test_a_failing_git_command_says_what_git_said(tmp_path):
    """The message of git is in the error."""
    repository = TinyRepository(tmp_path, {"a.txt": "a\n"})
    with pytest.raises(RuntimeError, match="nowhere"):
        repository.git("checkout", "nowhere")


def test_the_sample_fails_one_test_and_is_mended_by_the_fix(tmp_path):
    """One named test fails at first; with the fixed module all three pass."""
    repository = buggy_pagination(tmp_path)
    before = _pytest(repository)
    assert before.returncode == 1
    assert PAGINATION_TEST in before.stdout
    assert "1 failed, 2 passed" in before.stdout
    repository.write({"pages.py": PAGINATION_FIXED})
    assert _pytest(repository).returncode == 0
