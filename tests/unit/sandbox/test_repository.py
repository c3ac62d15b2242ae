import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from turnout.errors import RepositoryError
from turnout.sandbox.repository import resolve
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.source import locate
from turnout.testing.repositories import TinyRepository


class Quiet(SimpleHTTPRequestHandler):
    """Serves files."""

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


class Locked(BaseHTTPRequestHandler):
    """Lets nobody in."""

    def do_GET(self) -> None:
        """Ask for a password."""
        self.send_response(401)
        self.send_header("WWW-Authenticate", 'Basic realm="x"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@contextmanager
def serving(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve on a free port of this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def give_away(folder: Path) -> None:
    """Let a folder belong to somebody else."""
    subprocess.run(["chown", "-R", "12345:12345", folder], check=True)


def write_odd_name(folder: Path) -> None:
    """Write a file whose name is no UTF-8."""
    Path(os.fsdecode(os.fsencode(folder) + b"/\xff")).write_bytes(b"z")


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Two commits on main, a branch and a tag at the first."""
    made = TinyRepository(tmp_path / "source", {"a.txt": "1\n"})
    made.tag("v1", annotated=True)
    made.git("branch", "feature")
    made.commit("second", {"a.txt": "2\n"})
    return made


@pytest.mark.parametrize("base", ["HEAD~1", "v1", "feature", "refs/heads/feature", "main^"])
async def test_any_revision_names_a_base(repository, base):
    """Branches, tags and relative names lead to the commit, not to a tag object."""
    first = repository.git("rev-parse", "HEAD~1")
    assert (await resolve(str(repository), base)).commit == first


@pytest.mark.parametrize("length", [7, 12, 40])
async def test_short_and_full_names_are_found(repository, length):
    """An abbreviated name becomes the full one."""
    found = await resolve(str(repository), repository.head[:length])
    assert found.commit == repository.head
    assert (found.dirty, found.warnings) == ((), ())


async def test_a_folder_within_the_checkout_will_do(repository):
    """The repository around the folder is meant."""
    (repository.path / "deep" / "down").mkdir(parents=True)
    found = await resolve(str(repository.path / "deep" / "down"), "HEAD")
    assert found.commit == repository.head


@pytest.mark.cases
async def test_bare_repositories_linked_work_trees_and_file_urls_will_do(repository, tmp_path):
    """The common ways to keep a repository all work."""
    repository.git("worktree", "add", "--quiet", str(tmp_path / "linked"), "feature")
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    first = repository.git("rev-parse", "feature")
    assert (await resolve(str(tmp_path / "linked"), "HEAD")).commit == first
    assert (await resolve(str(tmp_path / "bare.git"), "HEAD")).commit == repository.head
    assert (await resolve(f"file://{tmp_path}/bare.git", "HEAD")).commit == repository.head


@pytest.mark.cases
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
async def test_a_repository_of_another_owner_will_do(repository):
    """Git's ownership check is answered for our own calls."""
    give_away(repository.path)
    assert (await resolve(str(repository), "main")).commit


@pytest.mark.cases
async def test_uncommitted_changes_are_told_and_untouched(repository):
    """Changed, staged and new files are named as they are, whatever their names hold."""
    repository.write({"a.txt": "3\n", "new file.txt": "x", "tab\there": "y"})
    write_odd_name(repository.path)
    repository.git("add", "new file.txt")
    found = await resolve(str(repository), "HEAD")
    assert sorted(found.dirty) == ["\\xff", "a.txt", "new file.txt", "tab\there"]
    assert (repository.path / "a.txt").read_text() == "3\n"


@pytest.mark.cases
async def test_a_detached_head_will_do(repository):
    """HEAD need not be a branch."""
    repository.git("checkout", "--quiet", "--detach", "HEAD~1")
    assert (await resolve(str(repository), "HEAD")).commit == repository.head


@pytest.mark.cases
async def test_a_head_that_leads_nowhere_is_told_with_what_there_is(repository):
    """Of a branch that was never born; another branch by its name will do."""
    repository.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    assert (await resolve(str(repository), "main")).commit == repository.git("rev-parse", "main")
    with pytest.raises(RepositoryError, match="no commit `HEAD`") as caught:
        await resolve(str(repository), "HEAD")
    assert "main" in caught.value.mend


async def test_a_shallow_repository_is_told(repository, tmp_path):
    """It works, with a warning that history is cut."""
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository}", str(tmp_path / "s"))
    found = await resolve(str(tmp_path / "s"), "HEAD")
    assert found.commit == repository.head
    assert "shallow" in found.warnings[0]


@pytest.mark.parametrize(
    ("base", "mend"),
    [
        ("mian", "main"),
        ("featur", "feature"),
        ("0123456789", "main"),
        ("HEAD~7", "It has:"),
        ("HEAD:a.txt", "It has:"),
    ],
)
async def test_an_unknown_base_is_answered_with_near_names(repository, base, mend):
    """The error lists what was probably meant, or what there is."""
    with pytest.raises(RepositoryError, match="no commit") as caught:
        await resolve(str(repository), base)
    assert mend in caught.value.mend


@pytest.mark.parametrize(
    ("base", "what"), [("blob", "a file"), ("folder", "a folder"), ("HEAD:a.txt", "a file")]
)
async def test_a_base_that_is_no_commit_is_told_what_it_is(repository, base, what):
    """A tag may lead to anything; its own name is no mend."""
    repository.git("tag", "blob", "HEAD:a.txt")
    repository.git("tag", "--annotate", "--message=x", "folder", "HEAD^{tree}")
    with pytest.raises(RepositoryError, match=f"is {what} and no commit") as caught:
        await resolve(str(repository), base)
    assert "It has: " in caught.value.mend
    assert f" {base}," not in caught.value.mend


@pytest.mark.parametrize("base", ["", "--all", "-n", "a\nb", "a\0b"])
async def test_a_base_that_is_no_name_is_refused(repository, base):
    """No option and no control character reaches git."""
    with pytest.raises(RepositoryError, match="names no commit"):
        await resolve(str(repository), base)


async def test_an_empty_repository_is_told_so(tmp_path):
    """The mend says to commit first."""
    with pytest.raises(RepositoryError, match="no commits yet") as caught:
        await resolve(str(TinyRepository(tmp_path)), "HEAD")
    assert "commit" in caught.value.mend


async def test_what_is_no_repository_is_told_so(tmp_path):
    """A missing path, a plain folder and a file each have their own sentence."""
    (tmp_path / "file").write_text("x")
    for path, match in (("none", "not exist"), (".", "not a git"), ("file", "not a folder")):
        with pytest.raises(RepositoryError, match=match) as caught:
            await resolve(str(tmp_path / path), "HEAD")
        assert caught.value.mend


@pytest.mark.parametrize(
    "repository",
    ["ext::sh -c 'touch {marker}'", "fd::7", "foo://x/y", "ext::git-upload-pack {marker}", " "],
)
async def test_exotic_transports_are_refused(repository, tmp_path):
    """A transport that would run a program is never used."""
    marker = tmp_path / "marker"
    with pytest.raises(RepositoryError):
        await resolve(repository.format(marker=marker), "HEAD")
    assert not marker.exists()


async def test_nothing_that_a_repository_configures_is_run(repository, tmp_path):
    """Monitors, hooks, transports and pagers of the source stay dead while it is looked at."""
    marker = tmp_path / "marker"
    run = f"touch {marker}"
    for name in ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "alias.status"):
        repository.git("config", name, run)
    repository.git("config", "uploadpack.packObjectsHook", run)
    repository.git("config", "diff.x.textconv", run)
    repository.git("config", "diff.external", run)
    repository.write({"a.txt": "changed", ".gitattributes": "* diff=x"})
    for hook in ("post-index-change", "reference-transaction", "post-checkout"):
        path = repository.path / ".git" / "hooks" / hook
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{run}\n")
        path.chmod(0o755)
    found = await resolve(str(repository), "HEAD")
    assert "a.txt" in found.dirty
    assert not marker.exists()


@pytest.mark.parametrize("kind", ["clean", "process"])
async def test_filters_are_not_run_but_told(repository, tmp_path, kind):
    """Where telling changes would run a filter, nothing is looked at and the user is told."""
    marker = tmp_path / "marker"
    repository.git("config", f"filter.x.{kind}", f"touch {marker}; cat")
    repository.write({"a.txt": "9\n", ".gitattributes": "* filter=x\n"})
    found = await resolve(str(repository), "HEAD")
    assert not marker.exists()
    assert found.dirty == ()
    assert "filters" in found.warnings[0]


@pytest.mark.cases
async def test_a_filter_of_an_odd_name_is_a_filter(repository, tmp_path):
    """Git's own search by an expression passes over names that are no text."""
    marker = tmp_path / "marker"
    with (repository.path / ".git" / "config").open("ab") as config:
        config.write(b'[filter "\xff"]\n\tclean = "touch %s; cat"\n' % str(marker).encode())
    (repository.path / ".git" / "info").mkdir(exist_ok=True)
    (repository.path / ".git" / "info" / "attributes").write_bytes(b"* filter=\xff\n")
    (repository.path / "a.txt").touch()
    found = await resolve(str(repository), "HEAD")
    assert not marker.exists()
    assert "filters" in found.warnings[0]


@pytest.mark.cases
@pytest.mark.parametrize("missing", ["HEAD~1", "HEAD:a.txt"])
async def test_a_repository_that_claims_to_be_a_part_fetches_nothing(repository, tmp_path, missing):
    """It would name the program that gets the rest."""
    marker = tmp_path / "marker"
    for name, value in (
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "o"),
        ("remote.o.promisor", "true"),
        ("remote.o.url", str(tmp_path / "none")),
        ("remote.o.uploadpack", f"sh -c 'touch {marker}'"),
    ):
        repository.git("config", name, value)
    name = repository.git("rev-parse", missing)
    (repository.path / ".git/objects" / name[:2] / name[2:]).unlink()
    with suppress(RepositoryError):
        await resolve(str(repository), "HEAD~1")
    with suppress(RepositoryError):
        await fetch_history(await locate(str(repository)), repository.head, tmp_path / "state")
    assert not marker.exists()


async def test_a_url_is_resolved_by_name_and_by_short_name(repository, tmp_path):
    """Branches, tags and commits of a server are found; an unknown name is told."""
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    repository.git("-C", str(tmp_path / "bare.git"), "update-server-info")
    first = repository.git("rev-parse", "HEAD~1")
    with serving(partial(Quiet, directory=tmp_path)) as address:
        url = f"{address}/bare.git"
        assert (await resolve(url, "main")).commit == repository.head
        assert (await resolve(url, "HEAD")).commit == repository.head
        assert (await resolve(url, "v1")).commit == first
        assert (await resolve(url, first[:9])).commit == first
        with pytest.raises(RepositoryError, match="no commit") as caught:
            await resolve(url, "mian")
        assert "main" in caught.value.mend


@pytest.mark.cases
async def test_a_url_that_asks_for_a_password_fails_at_once():
    """Nobody is asked, no secret of the URL is shown, and the mend says what to set up."""
    with serving(Locked) as address:
        url = address.replace("http://", "http://someone:s3cret@")
        with pytest.raises(RepositoryError, match="credentials") as caught:
            await resolve(f"{url}/x.git", "main")
    assert "s3cret" not in str(caught.value)
    assert "credential" in caught.value.mend


async def test_a_url_that_nobody_serves_is_told_so():
    """An unreachable server is an error with a mend, not a hang."""
    with pytest.raises(RepositoryError, match="cannot be read") as caught:
        await resolve("http://127.0.0.1:1/x.git", "main")
    assert caught.value.mend


async def test_a_missing_work_tree_is_no_error(repository):
    """A `.git` folder by itself is a source like any other."""
    shutil.rmtree(repository.path / ".git" / "hooks", ignore_errors=True)
    assert (await resolve(str(repository.path / ".git"), "main")).commit == repository.head


@pytest.mark.parametrize("name", [b"re\xffpo", b"re\npo"])
async def test_a_path_that_cannot_be_shown_is_told_as_such(tmp_path, name):
    """The error shows where it is, and what can be done."""
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name))
    TinyRepository(tmp_path / "plain").path.rename(folder)
    (tmp_path / "link").symlink_to(folder)
    for path in (folder, tmp_path / "link"):
        with pytest.raises(RepositoryError, match="no printable UTF-8") as caught:
            await resolve(str(path), "HEAD")
        assert str(tmp_path) in str(caught.value)
        assert caught.value.mend
