"""What a commit changes since it has left another, by host git on a mirror of ours."""

import re
from pathlib import Path

import pytest

from turnout.errors import RepositoryError
from turnout.sandbox.workspace.history import compare
from turnout.testing.repositories import TinyRepository


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Return a repository with a branch that was left behind."""
    made = TinyRepository(tmp_path / "shop", {"a.txt": "one\n", "old.txt": "same\n" * 20})
    start = made.git("branch", "--show-current")
    made.branch("change")
    made.commit("Change it.", {"a.txt": "two\n", "b.bin": b"\0\xff", "new.txt": "same\n" * 20})
    made.commit("Move it.", remove=("old.txt",))
    made.git("switch", "--quiet", start)
    made.commit("Go on.", {"c.txt": "three\n"})
    return made


async def test_only_what_the_branch_changes_is_in_the_diff(
    repository: TinyRepository, tmp_path: Path
) -> None:
    """It applies where the two have parted, and makes the branch's tree of it."""
    head = repository.git("rev-parse", "change")
    found = await compare(str(repository), repository.head, head, tmp_path / "state")
    assert found.base == repository.git("merge-base", "HEAD", "change")
    assert b"c.txt" not in found.diff
    repository.git("switch", "--quiet", "--detach", found.base)
    (tmp_path / "diff").write_bytes(found.diff)
    repository.git("apply", "--index", str(tmp_path / "diff"))
    assert repository.git("write-tree") == repository.git("rev-parse", "change^{tree}")


async def test_nothing_that_a_repository_configures_is_run(
    repository: TinyRepository, tmp_path: Path
) -> None:
    """Neither its diff programs nor its filters, nor those that a commit's attributes name."""
    marker = tmp_path / "ran"
    program = f"sh -c 'touch {marker}; cat'"
    for name in ("diff.external", "diff.x.command", "diff.x.textconv", "filter.x.clean"):
        repository.git("config", name, program)
    repository.git("switch", "--quiet", "change")
    repository.write({".gitattributes": "*.txt diff=x filter=x\n"})
    repository.git("add", ".gitattributes")
    repository.git("commit", "--quiet", "--message", "Attributes.")
    marker.unlink(missing_ok=True)
    base = repository.git("rev-parse", "HEAD~3")
    found = await compare(str(repository), base, repository.head, tmp_path / "state")
    assert b"+two" in found.diff
    assert not marker.exists()


async def test_commits_without_a_common_one_cannot_be_compared(
    repository: TinyRepository, tmp_path: Path
) -> None:
    """The error names both."""
    base = repository.head
    repository.git("switch", "--quiet", "--orphan", "other")
    other = repository.commit("Begin anew.", {"a.txt": "one\n"})
    with pytest.raises(RepositoryError, match=re.escape(other[:12])):
        await compare(str(repository), base, other, tmp_path / "state")
