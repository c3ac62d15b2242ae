"""Parents of fixes without a history."""

from pathlib import Path

from tests.unit.evals.mine.suites import history

from turnout.evals.instances.clone import Clone, Commit
from turnout.evals.mine.parents import Parents
from turnout.sandbox.workspace.git import git_here
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.source import locate


async def test_a_parent_has_its_tree_and_no_history(tmp_path: Path) -> None:
    """It can be fetched as any base is; the clone holds nothing new."""
    repository = history(tmp_path / "calc")
    before = repository.git("count-objects", "-v")
    clone = await Clone.open(str(repository))
    parents = Parents(tmp_path / "mined" / "calc.git", clone)
    await parents.begin()
    await parents.begin()
    alone = await parents.alone(repository.head)
    assert await parents.alone(repository.head) == alone
    at = await fetch_history(await locate(parents.repository), alone, tmp_path / "state")
    told = await git_here(["--git-dir", str(at), "log", "--format=%T", "main"], timeout=9)
    assert told.stdout.decode().split() == [repository.git("rev-parse", "HEAD^{tree}")]
    assert repository.git("count-objects", "-v") == before


async def test_messages_of_any_length_are_read(tmp_path: Path) -> None:
    """What is over the bound of one reading is read in smaller parts, or cut."""
    repository = history(tmp_path / "calc")
    for number in range(2):
        long = tmp_path / "long"
        long.write_text(f"Fix {number}\n\n" + "word " * 500_000)
        repository.git("commit", "--quiet", "--allow-empty", "--file", str(long))
    clone = await Clone.open(str(repository))
    read: list[Commit] = []
    while page := await clone.line("HEAD", skip=len(read), count=500):
        read += page
    assert [each.subject for each in read][:2] == ["Fix 1", "Fix 0"]
    assert len(read) == 4
