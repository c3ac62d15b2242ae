"""What a caller who may not read this machine's files can start from."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from turnout.errors import RepositoryError
from turnout.sandbox.repository import check_base, resolve
from turnout.sandbox.workspace.source import locate
from turnout.testing.repositories import TinyRepository

SECRET = "a stash that was dropped"


class Files(SimpleHTTPRequestHandler):
    """Serves files, and remembers who has asked."""

    logins: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        """Serve one."""
        self.logins.append(self.headers.get("Authorization"))
        super().do_GET()

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


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Return a checkout with work that was put away or dropped, and a ref of another kind."""
    made = TinyRepository(tmp_path / "source", {"a.txt": "1\n"})
    made.tag("v1", annotated=True)
    made.git("tag", "folder", "HEAD^{tree}")
    made.git("branch", "user@feature")
    made.commit("second", {"a.txt": "2\n"})
    for text in (SECRET, "a stash that is kept"):
        made.write({"a.txt": text})
        made.git("stash")
    made.git("stash", "drop", "stash@{1}")
    lost = made.commit("undone", {"a.txt": "3\n"})
    made.git("reset", "--quiet", "--hard", "HEAD~1")
    made.git("update-ref", "refs/others/lost", lost)
    made.git("update-ref", "refs/remotes/refs/heads/away", lost)
    made.write({"a.txt": "uncommitted\n"})
    return made


def hidden(repository: TinyRepository) -> list[str]:
    """Return the commits that no branch and no tag leads to."""
    listed = repository.git("cat-file", "--batch-all-objects", "--batch-check").splitlines()
    known = repository.git("rev-list", "HEAD", "--branches", "--tags").split()
    commits = [line.split()[0] for line in listed if " commit " in line]
    return [commit for commit in commits if commit not in known]


async def refused(repository: TinyRepository, base: str) -> str:
    """Return what is said of a base that is not given, at the order and at the work."""
    with pytest.raises(RepositoryError) as first:
        await resolve(str(repository), base, public=True)
    with pytest.raises(RepositoryError) as second:
        await check_base(await locate(str(repository)), base, shown="shop")
    assert "no commit" in str(second.value)
    return f"{first.value} {second.value}"


async def test_what_was_put_away_or_dropped_is_not_given(repository: TinyRepository) -> None:
    """By whichever name git would find it."""
    dropped = hidden(repository)
    assert len(dropped) >= 4
    named = ["stash", "stash^", "refs/stash", "stash@{0}", "HEAD@{0}", "HEAD@{1}", "@{0}", "@{-1}"]
    named += ["refs/others/lost", "others/lost", "refs/heads/away", "away", "ORIG_HEAD"]
    named += ["refs/remotes/refs/heads/away", f"refs/heads/x-1-g{dropped[0]}", "^HEAD", ":/undone"]
    named += ["HEAD^{/undone}", "main..stash", "HEAD:a.txt", "folder", "main@{1}", "main-1-g"]
    for base in [*named, *dropped, dropped[0][:12]]:
        assert "stash" not in (await refused(repository, base)).replace(base, "")


async def test_branches_tags_and_their_commits_are_given(repository: TinyRepository) -> None:
    """As they are named everywhere; the files of the checkout are nobody's business."""
    first = repository.git("rev-parse", "HEAD~1")
    for base in ("v1", "refs/tags/v1", "user@feature", "main~1", "HEAD^", first, first[:10]):
        found = await resolve(str(repository), base, public=True)
        assert (found.commit, found.dirty, found.warnings) == (first, (), ())
        await check_base(await locate(str(repository)), base, shown="shop")
    repository.git("checkout", "--quiet", "--force", "--detach")
    alone = repository.commit("alone", {"a.txt": "4\n"})
    assert (await resolve(str(repository), alone, public=True)).commit == alone
    assert (await resolve(str(repository), "HEAD", public=True)).commit == alone
    assert (await resolve(str(repository), "stash")).commit in hidden(repository)


async def test_a_server_gives_the_same(repository: TinyRepository, tmp_path: Path) -> None:
    """Also where it would hand out more than its branches and tags."""
    bare = tmp_path / "bare.git"
    repository.git("clone", "--quiet", "--mirror", ".", str(bare))
    repository.git("-C", str(bare), "update-server-info")
    first, lost = repository.git("rev-parse", "HEAD~1", "refs/others/lost").split()
    with serving(partial(Files, directory=tmp_path)) as address:
        url = f"{address}/bare.git"
        for base in ("v1", first, first[:9], "refs/tags/v1^{}"):
            assert (await resolve(url, base, public=True)).commit == first
        assert (await resolve(url, repository.head, public=True)).commit == repository.head
        assert (await resolve(url, "refs/others/lost")).commit == lost
        for base in ("refs/others/lost", "refs/stash", "stash", lost, lost[:9]):
            with pytest.raises(RepositoryError, match="no commit"):
                await resolve(url, base, public=True)


async def test_a_server_leads_git_nowhere_else(repository: TinyRepository, tmp_path: Path) -> None:
    """A redirect is told, and not followed."""
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    repository.git("-C", str(tmp_path / "bare.git"), "update-server-info")
    asked: list[str] = []

    class Leads(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302)
            self.send_header("Location", f"{inner}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            asked.append(self.path)

    Files.logins.clear()
    with serving(partial(Files, directory=tmp_path)) as inner, serving(Leads) as outer:
        with pytest.raises(RepositoryError, match="leads to another URL"):
            await resolve(f"{outer}/bare.git", "main")
        assert asked
        assert Files.logins == []


async def test_a_password_of_a_url_is_sent_and_is_no_argument(
    repository: TinyRepository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everybody on the machine can read the arguments of a program."""
    repository.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare.git"))
    repository.git("-C", str(tmp_path / "bare.git"), "update-server-info")
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "git"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/arguments\nexec /usr/bin/git "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    Files.logins.clear()
    with serving(partial(Files, directory=tmp_path)) as address:
        url = address.replace("http://", "http://me:p%40ss@")
        assert (await resolve(f"{url}/bare.git", "main")).commit == repository.head
    # As `me:p@ss` is written in a header.
    assert set(Files.logins) == {"Basic bWU6cEBzcw=="}
    told = (tmp_path / "arguments").read_text()
    assert "ls-remote" in told
    assert not [secret for secret in ("p%40ss", "p@ss", "bWU6cEBzcw==") if secret in told]
    with pytest.raises(RepositoryError, match="takes no password") as caught:
        await locate("ssh://me:secret@git.example.org/shop")
    assert "secret@" not in str(caught.value)
