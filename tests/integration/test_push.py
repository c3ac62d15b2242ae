"""A run's patch pushed as a new branch: over HTTP with a token, and to folders of this machine."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from aiohttp import web

from turnout.core.ids import RunId
from turnout.errors import DeliveryError, RepositoryError
from turnout.runs.publish.push import Change, push_branch
from turnout.sandbox.repository import resolve
from turnout.sandbox.workspace.git import Access
from turnout.sandbox.workspace.source import Source, locate
from turnout.testing.git import GitServer
from turnout.testing.loopback import LoopbackServer
from turnout.testing.repositories import TinyRepository

TOKEN = "a-token-of-the-forge"
RUN = RunId("run-0123456789ab")
REF = f"refs/heads/turnout/{RUN}"
DIFF = b"""\
diff --git a/a.py b/a.py
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@
 one
-two
+2
diff --git a/link b/link
new file mode 120000
--- /dev/null
+++ b/link
@@ -0,0 +1 @@
+/etc/passwd
\\ No newline at end of file
"""
AT = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def tiny(tmp_path: Path) -> TinyRepository:
    """Make a repository whose attributes ask for a filter."""
    files = {"a.py": "one\ntwo\n", ".gitattributes": "* filter=evil diff=evil merge=evil\n"}
    return TinyRepository(tmp_path / "work", files)


@pytest.fixture
async def server(tiny: TinyRepository, tmp_path: Path) -> AsyncIterator[GitServer]:
    """Serve a bare clone of it to whoever has the token."""
    root = tmp_path / "served"
    tiny.git("clone", "--quiet", "--bare", str(tiny), str(root / "shop.git"))
    async with GitServer(root, TOKEN) as one:
        yield one


def change(tiny: TinyRepository, diff: bytes = DIFF) -> Change:
    """Return a change on the newest commit."""
    return Change(tiny.head, diff, "Mend it\n\nTurnout-Run: run-0123456789ab\n", AT)


def source(server: GitServer, token: str = TOKEN) -> Source:
    """Return the served repository, reached with a token."""
    url = server.url("shop.git")
    return Source(url, access=Access(url, token))


def refs(server: GitServer) -> dict[str, str]:
    """Return all that the served repository names."""
    lines = server.git("shop.git", "for-each-ref", "--format=%(refname) %(objectname)")
    return dict(line.split(" ") for line in lines.splitlines())


def trap(repository: Path, marker: Path) -> None:
    """Have every program that a repository can name leave a mark."""
    program = repository / "program"
    program.write_text(f"#!/bin/sh\ntouch {marker}\nexit 1\n")
    program.chmod(0o755)
    hooks = repository / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in (
        *("pre-receive", "update", "post-receive", "post-update", "reference-transaction"),
        *("proc-receive", "push-to-checkout", "pre-push", "pre-auto-gc", "post-index-change"),
    ):
        (hooks / name).write_bytes(program.read_bytes())
        (hooks / name).chmod(0o755)
    with (repository / "config").open("a") as config:
        config.write(
            f"[core]\n\tfsmonitor = {program}\n\talternateRefsCommand = {program}\n"
            f"\thooksPath = {hooks}\n\tsshCommand = {program}\n\tpager = {program}\n"
            f'[filter "evil"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n'
            f'[diff "evil"]\n\ttextconv = {program}\n\tcommand = {program}\n'
            f'[merge "evil"]\n\tdriver = {program}\n[credential]\n\thelper = {program}\n'
            "[receive]\n\tautogc = true\n[gc]\n\tauto = 1\n"
        )


async def test_a_patch_becomes_one_commit_on_a_new_branch(
    tiny: TinyRepository, server: GitServer, tmp_path: Path
) -> None:
    """The tree is the base with the patch; nothing else is there that was not."""
    before = refs(server)
    commit = await push_branch(source(server), RUN, change(tiny), tmp_path / "state")
    assert refs(server) == {**before, REF: commit}
    shown = server.git("shop.git", "show", "--no-patch", "--format=%P|%an|%ct|%B", commit)
    assert shown == f"{tiny.head}|Turnout|{int(AT.timestamp())}|{change(tiny).message}".strip()
    assert server.git("shop.git", "show", f"{commit}:a.py") == "one\n2"
    listed = server.git("shop.git", "ls-tree", "--name-only", commit).splitlines()
    assert listed == [".gitattributes", "a.py", "link"]


async def test_every_kind_of_change_arrives_as_it_was_made(
    tiny: TinyRepository, tmp_path: Path
) -> None:
    """Binary files, modes, links, odd names, line ends, files that are gone or empty."""
    base = tiny.commit("more", {"gone.py": "x\n", "tool": "#!/bin/sh\n", "data": b"\0\1", "b": "b"})
    (tiny.path / "tool").chmod(0o755)
    (tiny.path / "link").symlink_to("a.py")
    (tiny.path / "b").unlink()
    (tiny.path / "b").symlink_to("data")
    files = {
        "data": b"\0\2\xff",
        "empty": b"",
        "é ü\tq": "1\n",
        "crlf": "1\r\n2\n",
        "sub/n": "no end",
    }
    wanted = tiny.commit("all of it", files, remove=["gone.py"])
    tiny.git("diff", "--binary", "--full-index", "--output=../change.diff", base, wanted)
    diff = (tmp_path / "change.diff").read_bytes()
    mine = Change(base, diff, "Mend it", AT)
    commit = await push_branch(await locate(str(tiny)), RUN, mine, tmp_path / "state")
    trees = [tiny.git("rev-parse", f"{one}^{{tree}}") for one in (commit, wanted)]
    assert trees[0] == trees[1]


async def test_a_push_that_is_done_again_is_the_same(
    tiny: TinyRepository, server: GitServer, tmp_path: Path
) -> None:
    """By whoever comes after a process that died between the push and its record."""
    first = await push_branch(source(server), RUN, change(tiny), tmp_path / "one")
    again = await push_branch(source(server), RUN, change(tiny), tmp_path / "two")
    assert (first, refs(server)[REF]) == (again, first)


@pytest.mark.parametrize("where", ["elsewhere", "behind"])
async def test_a_branch_of_somebody_else_is_never_moved(
    tiny: TinyRepository, server: GitServer, tmp_path: Path, where: str
) -> None:
    """Not even forward."""
    base, other = tiny.head, tiny.commit("other", {"b.py": "b\n"})
    theirs = other if where == "elsewhere" else base
    url = str(server.root / "shop.git")
    tiny.git("push", "--quiet", url, f"{theirs}:{REF}")
    mine = replace(change(tiny), base_commit=base)
    with pytest.raises(DeliveryError, match="already, with another commit") as refused:
        await push_branch(source(server), RUN, mine, tmp_path / "state")
    assert not refused.value.passing
    assert refs(server)[REF] == theirs


async def test_a_wrong_token_opens_nothing_and_is_named_nowhere(
    tiny: TinyRepository, server: GitServer, tmp_path: Path
) -> None:
    """It may be put right, so the push is tried again later."""
    reached = source(server, "another-token")
    with pytest.raises(DeliveryError) as refused:
        await push_branch(reached, RUN, change(tiny), tmp_path / "state")
    assert refused.value.passing
    assert "another-token" not in f"{refused.value} {reached!r}"
    assert REF not in refs(server)


async def test_a_private_repository_is_read_with_its_token(
    tiny: TinyRepository, server: GitServer
) -> None:
    """Without it the service is told what is missing."""
    url = server.url("shop.git")
    assert (await resolve(url, "main", Access(url, TOKEN))).commit == tiny.head
    with pytest.raises(RepositoryError, match="without credentials"):
        await resolve(url, "main", Access(url, "no-token"))


async def test_a_token_follows_no_redirect(
    tiny: TinyRepository, server: GitServer, tmp_path: Path
) -> None:
    """To another server it would be given away."""

    class Elsewhere(LoopbackServer):
        def _routes(self) -> list[web.RouteDef]:
            return [web.route("*", "/{path:.*}", self._lead)]

        async def _lead(self, request: web.Request) -> web.Response:
            place = f"{server.url('')}{request.path_qs[1:]}"
            return web.Response(status=302, headers={"location": place})

    async with Elsewhere() as other:
        url = f"{other.base_url.removesuffix('/v1')}/shop.git"
        reached = Source(url, access=Access(url, TOKEN))
        with pytest.raises(DeliveryError):
            await push_branch(reached, RUN, change(tiny), tmp_path / "state")
    assert server.asked == []


async def test_a_server_that_declines_says_why(
    tiny: TinyRepository, server: GitServer, tmp_path: Path
) -> None:
    """Its rules do not change by themselves: nothing is tried again."""
    hook = server.root / "shop.git" / "hooks" / "pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\necho 'branches are made by people here' >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(DeliveryError, match="branches are made by people here") as refused:
        await push_branch(source(server), RUN, change(tiny), tmp_path / "state")
    assert not refused.value.passing


async def test_nothing_that_a_repository_names_is_run(tiny: TinyRepository, tmp_path: Path) -> None:
    """Hooks, filters, monitors and helpers of a folder of this machine, read and pushed to."""
    marker = tmp_path / "ran"
    trap(tiny.path / ".git", marker)
    place = await locate(str(tiny))
    commit = await push_branch(place, RUN, change(tiny), tmp_path / "state")
    assert not marker.exists()
    named = (tiny.path / ".git" / REF).read_text().strip()
    assert named == commit
    assert (tiny.path / "a.py").read_text() == "one\ntwo\n"


PATHS = {
    "a hook": b"a/.git/hooks/pre-push",
    "a hook by another name": b"a/GIT~1/config",
    "a file above": b"a/../../outside",
}


@pytest.mark.parametrize("name", PATHS)
async def test_a_patch_that_reaches_out_is_refused(
    tiny: TinyRepository, tmp_path: Path, name: str
) -> None:
    """Nothing is pushed of it."""
    path = PATHS[name].removeprefix(b"a/")
    diff = b"--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n" % path
    diff = b"diff --git a/%s b/%s\nnew file mode 100755\n%s" % (path, path, diff)
    with pytest.raises(DeliveryError, match="refused"):
        await push_branch(await locate(str(tiny)), RUN, change(tiny, diff), tmp_path / "state")
    assert not (tiny.path / ".git" / REF).exists()


async def test_a_patch_that_does_not_fit_is_refused(tiny: TinyRepository, tmp_path: Path) -> None:
    """That will never work."""
    diff = DIFF.replace(b"two", b"three")
    with pytest.raises(DeliveryError, match="cannot be made") as refused:
        await push_branch(await locate(str(tiny)), RUN, change(tiny, diff), tmp_path / "state")
    assert not refused.value.passing


async def test_pushes_at_once_make_one_branch(
    tiny: TinyRepository, server: GitServer, tmp_path: Path
) -> None:
    """Two workers that both hold a lapsed claim do no harm."""
    pushes = (push_branch(source(server), RUN, change(tiny), tmp_path / n) for n in "ab")
    found = await asyncio.gather(*pushes, return_exceptions=True)
    commits = {one for one in found if isinstance(one, str)}
    assert commits == {refs(server)[REF]}
