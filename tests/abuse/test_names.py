"""Names that another system takes for `.git`, pointers to files elsewhere, and other repositories.

A patch may be applied where upper and lower case are the same, or where some letters do not count.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.abuse.patching import adding
from tests.integration.workspaces import opened, shell

from turnout.core.ids import new_run_id
from turnout.errors import RepositoryError, ToolError
from turnout.sandbox.base import BaseSpec, Limits, Sandbox
from turnout.sandbox.repository import resolve
from turnout.testing.repositories import TinyRepository

pytestmark = pytest.mark.abuse

LIKE_GIT = (
    ".git",
    ".GIT",
    ".gIt",
    "sub/.Git",
    ".g\u200cit",
    ".\u200dgit",
    ".git\ufeff",
    "sub/.gi\u206et",
    "git~1",
    "GIT~1",
    ".git ",
    ".git.",
    ".git . .",
    ".git::$INDEX_ALLOCATION",
)
"""What git refuses to check out on any system: case, HFS+ and NTFS."""

POINTER = "version https://lfs.example.org/spec/v1\noid sha256:{0}\nsize 9\n"
CANARY = "ext::sh -c 'touch {0}'"


@pytest.mark.parametrize("name", LIKE_GIT)
async def test_no_patch_makes_what_is_git_elsewhere(workspace: Sandbox, name: str) -> None:
    """Neither as a folder with a configuration nor as a file."""
    for path in (f"{name}/config", name):
        assert not (await workspace.apply_patch(adding(path))).applied
    assert await shell(workspace, "git status --porcelain") == ""


@pytest.mark.parametrize("name", LIKE_GIT)
async def test_no_tool_writes_what_is_git_elsewhere(workspace: Sandbox, name: str) -> None:
    """A tool that writes a file is refused as a patch is."""
    with pytest.raises(ToolError):
        await workspace.write(f"{name}/config", b"[core]\n\tfsmonitor = evil\n")


async def test_names_that_lead_on_and_on_end_nothing(workspace: Sandbox) -> None:
    """Thousands of links in a row, or folders in a row, are refused, and the sandbox goes on."""
    links = "import os\nfor n in range(3000): os.symlink(str(n + 1), str(n))"
    await shell(workspace, f"python3 -c '{links}'")
    with pytest.raises(ToolError, match="too many"):
        await workspace.read("0")
    with pytest.raises(ToolError, match="too many"):
        await workspace.write("d/" * 2000 + "f", b"x")
    assert await shell(workspace, "echo still there") == "still there"


@pytest.mark.parametrize("name", LIKE_GIT)
async def test_no_diff_carries_what_is_git_elsewhere(workspace: Sandbox, name: str) -> None:
    """What a command wrote there is left out and named; the rest is kept."""
    await shell(workspace, f"mkdir -p '{name}'; echo evil >'{name}/planted'; echo x >>a.txt")
    patch = await workspace.diff()
    assert b"planted" not in patch.diff
    assert [file.path for file in patch.files] == ["a.txt"]
    assert patch.excluded == (() if name == ".git" else (f"{name}/planted",))


async def test_names_that_differ_in_case_alone_are_all_kept(workspace: Sandbox) -> None:
    """Here they are different files, and the patch says so."""
    await shell(workspace, "echo upper >A.txt; echo lower >>a.txt")
    patch = await workspace.diff()
    assert [(file.path, file.status) for file in patch.files] == [
        ("A.txt", "added"),
        ("a.txt", "modified"),
    ]


async def test_a_commit_that_holds_what_is_git_is_refused_by_that_name(driver, tmp_path) -> None:
    """In the words of git, not in those of our own programs."""
    repository = TinyRepository(tmp_path / "source", {"a.txt": "1\n"})
    raw = tmp_path / "tree"
    raw.write_bytes(b"40000 .git\0" + bytes.fromhex(repository.git("rev-parse", "HEAD^{tree}")))
    tree = repository.git("hash-object", "-w", "-t", "tree", "--literally", str(raw))
    commit = repository.git("commit-tree", "-m", "evil", tree)
    with pytest.raises(RepositoryError) as caught:
        await driver.prepare(BaseSpec(str(repository), commit, requirements=()))
    assert "checked out: invalid path '.git/a.txt'." in str(caught.value)


@pytest.fixture
async def pointing(driver, tmp_path: Path) -> AsyncIterator[tuple[Sandbox, Path]]:
    """Start on a repository that points elsewhere, by programs; yield what none may touch, too."""
    canary = tmp_path / "canary"
    url = CANARY.format(canary)
    repository = TinyRepository(
        tmp_path / "source",
        {
            "x.bin": POINTER.format("1" * 64),
            ".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n",
            ".lfsconfig": f'[lfs]\n\turl = "{url}"\n\taccess = basic\n',
            ".gitmodules": f'[submodule "m"]\n\tpath = m\n\turl = "{url}"\n'
            f"\tupdate = !touch {canary}\n",
        },
    )
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.head},m")
    repository.git("commit", "--quiet", "--message", "submodule")
    found = await resolve(str(repository), "HEAD")
    base = await driver.prepare(BaseSpec(str(repository), found.commit, requirements=()))
    sandbox = await driver.create(new_run_id(), base, Limits())
    yield sandbox, canary
    await sandbox.close()


async def test_pointers_stay_pointers(pointing: tuple[Sandbox, Path]) -> None:
    """Files kept elsewhere are not fetched, by whatever address, and changes of pointers show."""
    sandbox, canary = pointing
    assert (await sandbox.read("x.bin")).data.startswith(b"version https://lfs")
    await sandbox.write("x.bin", POINTER.format("2" * 64).encode())
    patch = await sandbox.diff()
    assert b"+oid sha256:222" in patch.diff
    assert not canary.exists()


async def test_submodules_are_never_fetched_by_a_program(pointing: tuple[Sandbox, Path]) -> None:
    """An address that is a command, of the base or of the run, is run by nobody on the host."""
    sandbox, canary = pointing
    script = f"""
        git submodule update --init 2>&1 || true
        git config submodule.m.update '!touch {canary}'; git config protocol.ext.allow always
        git config -f .gitmodules submodule.n.path n
        git config -f .gitmodules submodule.n.url 'ext::touch% {canary}'
    """
    await shell(sandbox, script)
    patch = await sandbox.diff()
    assert [file.path for file in patch.files] == [".gitmodules"]
    assert not canary.exists()


async def test_a_source_named_by_a_command_is_refused(driver, repository, tmp_path: Path) -> None:
    """Neither is it looked at nor is a base made of it."""
    canary = tmp_path / "canary"
    spec = BaseSpec(CANARY.format(canary), repository.head, requirements=())
    with pytest.raises(RepositoryError, match="transport"):
        await driver.prepare(spec)
    assert not canary.exists()
    async with opened(driver, repository) as sandbox:
        assert not await sandbox.diff()
