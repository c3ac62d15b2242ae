"""What a workspace holds when a run begins."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.integration.workspaces import opened, shell

from turnout.core.ids import new_run_id
from turnout.errors import ConfigError, RepositoryError
from turnout.sandbox.base import BaseSpec, Limits
from turnout.sandbox.base_layer import find_layer
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.repository import resolve
from turnout.testing.repositories import TinyRepository

POINTER = "version https://lfs.example.org/spec/v1\noid sha256:00\nsize 9\n"


def readable_by_others(path: Path) -> bool:
    """Say whether another user of the machine can read a file."""
    argv = ["setpriv", "--reuid", "12345", "--regid", "12345", "--clear-groups", "cat", path]
    return subprocess.run(argv, capture_output=True, check=False).returncode == 0


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Three commits, of which tests take the second as their base."""
    made = TinyRepository(tmp_path / "source", {"a.txt": "1\n"})
    made.commit("second", {"a.txt": "2\n", "bin/run": "#!/bin/sh\necho ran\n", "crlf": "a\r\nb\n"})
    (made.path / "bin" / "run").chmod(0o755)
    (made.path / "link").symlink_to("a.txt")
    made.commit(
        "base", {".gitattributes": "* text=auto eol=crlf ident filter=lfs\n", "id": "$Id$\n"}
    )
    made.tag("v1", annotated=True)
    made.commit("later", {"secret.txt": "s3cret\n"})
    return made


async def test_a_workspace_is_the_base_byte_for_byte(driver, repository):
    """Attributes convert nothing; modes and links are those of the commit."""
    async with opened(driver, repository, base=repository.git("rev-parse", "HEAD~1")) as sandbox:
        assert (await sandbox.read("crlf")).data == b"a\r\nb\n"
        assert (await sandbox.read("id")).data == b"$Id$\n"
        assert await shell(sandbox, "./bin/run; readlink link; pwd") == "ran\na.txt\n/repo"
        assert await shell(sandbox, "git status --porcelain") == ""
        assert not await sandbox.diff()


@pytest.mark.cases
async def test_a_workspace_knows_nothing_but_its_past(driver, repository):
    """One branch, no tag, no remote, no log, no later object."""
    later = repository.head
    async with opened(driver, repository, base=repository.git("rev-parse", "v1~0")) as sandbox:
        assert await shell(sandbox, "git for-each-ref --format='%(refname)'") == "refs/heads/main"
        assert await shell(sandbox, "git remote; git reflog; git stash list") == ""
        assert await shell(sandbox, "git rev-list --all --count") == "3"
        assert await shell(sandbox, f"git cat-file -e {later} 2>&1 || echo absent") != ""
        assert (
            await shell(sandbox, "git log --all -S s3cret --oneline; grep -r s3cret . || true")
            == ""
        )


async def test_git_works_as_a_model_expects(driver, repository):
    """Committing, branching, resetting and cleaning need no further set-up."""
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, "echo x > new; git add -A; git commit -qm one; git checkout -qb two")
        assert await shell(sandbox, "git log -1 --format=%an") == "Turnout"
        await shell(sandbox, "git reset -q --hard main~1; echo y > z; git clean -fdxq; git gc -q")
        assert not await sandbox.diff()


@pytest.mark.cases
async def test_uncommitted_work_of_the_user_is_neither_seen_nor_lost(driver, repository):
    """The run starts from the stated base, and the user's folder stays as it was."""
    repository.write({"a.txt": "dirty\n", "untracked.txt": "mine\n"})
    before = repository.git("status", "--porcelain")
    base = (await resolve(str(repository), "HEAD~2")).commit
    async with opened(driver, repository, base=base) as sandbox:
        assert (await sandbox.read("a.txt")).data == b"2\n"
        await shell(sandbox, "echo run > a.txt; git add -A; git commit -qm x; git clean -fdxq")
        patch = await sandbox.diff()
    assert [file.path for file in patch.files] == ["a.txt"]
    assert repository.git("status", "--porcelain") == before
    assert (repository.path / "untracked.txt").read_text() == "mine\n"


@pytest.mark.cases
async def test_large_files_stay_pointers_and_submodules_empty(driver, tmp_path):
    """Both are told, and neither is a change."""
    repository = TinyRepository(
        tmp_path / "source", {".gitattributes": "*.bin filter=lfs\n", "x.bin": POINTER}
    )
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.head},sub/mod")
    repository.git("commit", "--quiet", "--message", "submodule")
    base = await driver.prepare(BaseSpec(str(repository), repository.head, requirements=()))
    assert any("sub/mod" in warning for warning in base.warnings)
    assert any("LFS" in warning for warning in base.warnings)
    async with opened(driver, repository) as sandbox:
        assert (await sandbox.read("x.bin")).data == POINTER.encode()
        assert await shell(sandbox, "ls sub/mod; git status --porcelain") == ""
        assert not await sandbox.diff()


@pytest.mark.cases
async def test_shallow_bare_and_foreign_repositories_will_do(driver, repository, tmp_path):
    """Whatever `resolve` takes can be worked on."""
    repository.git("clone", "--quiet", "--depth=2", f"file://{repository}", str(tmp_path / "s"))
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "b.git"))
    for path, count in ((tmp_path / "s", "2"), (tmp_path / "b.git", "4")):
        source = TinyRepository(path, bare=path.suffix == ".git")
        async with opened(driver, source, base=repository.head) as sandbox:
            assert await shell(sandbox, "git rev-list --count HEAD") == count
            await shell(sandbox, "echo 3 > a.txt; git commit -qam x; git fsck --no-dangling")
            assert len((await sandbox.diff()).files) == 1


async def test_a_base_layer_is_made_once(sandbox_state, repository):
    """Concurrent callers of several drivers get the same layer; so does a later one."""
    spec = BaseSpec(str(repository), repository.head, requirements=())
    drivers = [BubblewrapDriver(sandbox_state) for _ in range(3)]
    made = await asyncio.gather(*(driver.prepare(spec) for driver in drivers))
    assert len({base.key for base in made}) == 1
    layer = find_layer(sandbox_state, made[0])
    before = layer.tree.stat().st_ino
    again = await drivers[0].prepare(spec)
    assert find_layer(sandbox_state, again).tree.stat().st_ino == before
    building = sandbox_state.glob(f"trees/.{layer.tree.parent.name}*")
    assert list(building) == []


async def test_runs_cannot_change_what_they_share(driver, repository):
    """What the workspace and `/venv` lie over is read-only, and the next run sees the base."""
    async with opened(driver, repository) as sandbox:
        script = (
            "for path in /base /base.git /base.venv /run/turnout/changes/repo; do "
            "touch $path/x 2>/dev/null && echo $path; done"
        )
        assert await shell(sandbox, f"{script}; true") == ""
        await shell(sandbox, "echo poison > a.txt; rm -rf .git; rm /venv/pyvenv.cfg")
    async with opened(driver, repository) as sandbox:
        assert (await sandbox.read("a.txt")).data == b"2\n"
        await shell(sandbox, "test -e /venv/pyvenv.cfg")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can try as another user")
async def test_other_users_cannot_read_a_layer(driver, sandbox_state, repository):
    """The trees of private repositories are for sandboxes alone."""
    base = await driver.prepare(BaseSpec(str(repository), repository.head, requirements=()))
    layer = find_layer(sandbox_state, base)
    for path in (layer.tree / "a.txt", layer.history / "HEAD", layer.environment / "pyvenv.cfg"):
        assert path.exists()
        assert not readable_by_others(path)


async def test_declared_requirements_are_installed_and_the_rest_is_told(driver, tmp_path):
    """Plain requirements can be imported; what cannot be had is left out with a warning."""
    pyproject = (
        "[project]\nname = 'app'\ndependencies = ['iniconfig', 'packaging==0.0.0']\n"
        "[dependency-groups]\ntest = ['x @ https://example.org/x.whl']\n"
    )
    repository = TinyRepository(tmp_path / "source", {"pyproject.toml": pyproject})
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    assert base.requirements == ("iniconfig",)
    assert any("packaging==0.0.0" in warning for warning in base.warnings)
    assert any("https://example.org" in warning for warning in base.warnings)
    sandbox = await driver.create(new_run_id(), base, Limits())
    try:
        assert await shell(sandbox, "python -c 'import iniconfig, pytest; print(1)'") == "1"
        assert (
            await shell(sandbox, "command -v python pytest") == "/venv/bin/python\n/venv/bin/pytest"
        )
    finally:
        await sandbox.close()


async def test_explicit_requirements_replace_what_is_declared(driver, tmp_path):
    """Nothing of the repository's own list is used; a wrong one is the user's error."""
    repository = TinyRepository(tmp_path / "source", {"requirements.txt": "packaging==0.0.0\n"})
    base = await driver.prepare(BaseSpec(str(repository), repository.head, ("iniconfig",)))
    assert (base.requirements, base.warnings) == (("iniconfig",), ())
    with pytest.raises(ConfigError, match="test requirement"):
        await driver.prepare(BaseSpec(str(repository), repository.head, ("-e .",)))


async def test_nothing_that_the_source_configures_runs_on_the_host(driver, repository, tmp_path):
    """Filters, hooks, monitors and drivers of the user's repository stay dead."""
    marker = tmp_path / "marker"
    for name in ("filter.lfs.smudge", "filter.lfs.clean", "filter.lfs.process", "core.fsmonitor"):
        repository.git("config", name, f"touch {marker}; cat")
    hooks = repository.path / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        (hooks / hook).write_text(f"#!/bin/sh\ntouch {marker}\n")
        (hooks / hook).chmod(0o755)
    commit = repository.git("-c", "core.fsmonitor=false", "rev-parse", "HEAD")
    await resolve(str(repository), "HEAD")
    async with opened(driver, repository, base=commit) as sandbox:
        assert (await sandbox.read("a.txt")).data == b"2\n"
    assert not marker.exists()


async def test_a_tree_of_hostile_names_does_no_harm(driver, tmp_path):
    """Links that leave the tree and names that look like options are laid out inside only."""
    repository = TinyRepository(
        tmp_path / "source", {"-rf": "x", "a\nb": "y", "requirements.txt": ""}
    )
    (repository.path / "requirements.txt").unlink()
    (repository.path / "requirements.txt").symlink_to("/etc/passwd")
    (repository.path / "pyproject.toml").symlink_to(tmp_path / "secret")
    (tmp_path / "secret").write_text("[project]\ndependencies = ['iniconfig']\n")
    repository.commit("links")
    base = await driver.prepare(BaseSpec(str(repository), repository.head))
    assert base.requirements == ()
    async with opened(driver, repository) as sandbox:
        script = "ls -A | tr '\\n' ' '; cat pyproject.toml 2>/dev/null || true"
        assert await shell(sandbox, script) == "-rf .git a b pyproject.toml requirements.txt "


async def test_a_commit_that_is_not_there_is_told(driver, repository):
    """The error is about the repository and says what to look at."""
    with pytest.raises(RepositoryError, match="does not give commit"):
        await driver.prepare(BaseSpec(str(repository), "0" * 39 + "1", requirements=()))
