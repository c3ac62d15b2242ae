"""Git on the host, and trees that would have it run their programs: it never does.

What the collector makes of such trees is tested where the diff is; here everything else that the
host does to a run, and to a repository of a user, meets each trick.
"""

import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.abuse.git_tricks import TRICKS, written
from tests.abuse.patching import adding
from tests.abuse.table import SECRET
from tests.integration.workspaces import opened, shell

from turnout.core.ids import new_run_id
from turnout.sandbox.base import BaseSpec, Limits, Sandbox
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.repository import resolve
from turnout.testing.repositories import TinyRepository

pytestmark = pytest.mark.abuse


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Make a repository with a changed file, of a user or for a run."""
    made = TinyRepository(tmp_path / "source", {"a.txt": "one\n", "sub/b.txt": "two\n"})
    (made.path / ".git" / "hooks").mkdir(exist_ok=True)
    return made


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """Make a folder of the host, with a secret in a file and another among a repository's objects.

    Programs of the tree have a canary there to touch.
    """
    folder = tmp_path / "outside"
    other = TinyRepository(folder / "other", {"hidden.txt": SECRET})
    (other.path / ".git").rename(folder / "other.git")
    (folder / "secret.txt").write_text(SECRET)
    return folder


def laid(repository: TinyRepository, name: str, outside: Path) -> None:
    """Lay a trick in a repository on the host, as a user who unpacked an archive would have it."""
    script = written(TRICKS[name], str(outside / "canary"), str(outside))
    subprocess.run(["sh", "-ec", script], cwd=repository.path, check=True, timeout=10)
    (repository.path / "a.txt").write_text("changed\n")


@asynccontextmanager
async def forked(sandbox: Sandbox) -> AsyncIterator[Sandbox]:
    """Fork a sandbox and end the fork."""
    fork = await sandbox.fork(new_run_id())
    try:
        yield fork
    finally:
        await fork.close()


@pytest.mark.parametrize("name", TRICKS)
def test_the_trick_works_on_a_git_that_trusts_the_tree(name, repository, outside):
    """Otherwise nothing of what follows would say anything."""
    trick = TRICKS[name]
    laid(repository, name, outside)
    if trick.naive is None:
        hidden = "HEAD:hidden.txt"
        other = ["git", "--git-dir", str(outside / "other.git"), "rev-parse", hidden]
        blob = subprocess.run(other, capture_output=True, text=True, check=True).stdout.strip()
        assert repository.git("cat-file", "-p", blob) == SECRET
        return
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_PAGER": "cat"}
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", *identity, *trick.naive.split()],
        cwd=repository.path,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
    )
    assert (outside / "canary").exists() or "secret.txt" in done.stdout, done.stderr


@pytest.mark.parametrize("name", TRICKS)
async def test_nothing_of_a_run_reaches_the_hosts_git(driver, repository, outside, name):
    """Patches, searches, diffs, layers and forks of a poisoned tree: no program, no host file."""
    script = written(TRICKS[name], str(outside / "canary"), str(outside))
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, f"mkdir -p .git/hooks\n{script}\necho changed >a.txt")
        await sandbox.list()
        await sandbox.search("one")
        await sandbox.apply_patch(adding("new.txt", text="line"))
        patch = await sandbox.diff()
        async with forked(sandbox) as fork:
            assert (await fork.diff()).diff == patch.diff
    assert not (outside / "canary").exists()
    assert SECRET.encode() not in patch.diff
    assert "secret.txt" not in {Path(file.path).name for file in patch.files}
    assert b"-one\n+changed\n" in patch.diff


@pytest.mark.parametrize("name", TRICKS)
async def test_nothing_of_a_users_repository_is_run(driver, repository, outside, name):
    """Its last commit is found, its changes are told, and a run starts on it."""
    commit = repository.head
    laid(repository, name, outside)
    found = await resolve(str(repository.path), "HEAD")
    base = await driver.prepare(BaseSpec(str(repository), found.commit, requirements=()))
    sandbox = await driver.create(new_run_id(), base, Limits())
    try:
        seen = await shell(sandbox, "cat a.txt; grep -rs of-the-host . || true")
    finally:
        await sandbox.close()
    assert found.commit == commit
    assert seen == "one"
    assert not (outside / "canary").exists()
