"""Programs in a real sandbox reach what its gate admits, and nothing else."""

import asyncio
import base64
import io
import shutil
import subprocess
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.egress import Certifier, FixedResolver, Site, local, server
from tests.sandboxes import RUN, SMALL

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import BoundSecret, Command, Egress, HostRule
from turnout.sandbox.bubblewrap import BubblewrapDriver, BubblewrapSandbox
from turnout.sandbox.egress.authority import RunAuthority
from turnout.sandbox.egress.gate import EgressServices

WORLD = Certifier()
TLS = WORLD.server("site.test", "api.test")
VALUE = "the-value-itself"

pytestmark = pytest.mark.skipif(
    not (shutil.which("curl") and shutil.which("git")), reason="curl or git is not installed"
)


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a state folder whose driver resolves names to this machine."""
    folder = tmp_path_factory.mktemp("state")
    (folder / "ca.pem").write_bytes(WORLD.pem)
    return folder


@asynccontextmanager
async def started(
    state: Path, *rules: HostRule, secrets: tuple[BoundSecret, ...] = ()
) -> AsyncIterator[BubblewrapSandbox]:
    """Start a sandbox that may reach some hosts, which are this machine."""
    driver = BubblewrapDriver(state, egress=EgressServices(FixedResolver(), RunAuthority))
    egress = Egress(rules, secrets, ca_files=(str(state / "ca.pem"),))
    try:
        sandbox = await driver.start_bare(RUN, (), SMALL, egress=egress)
    except SandboxUnavailableError as error:
        pytest.skip(str(error))
    try:
        yield sandbox
    finally:
        await sandbox.close()


async def said(sandbox: BubblewrapSandbox, shell: str) -> str:
    """Return what a command printed on both streams."""
    result = await sandbox.run(Command(shell=f"exec 2>&1; {shell}", timeout=60))
    return result.stdout.decode(errors="replace")


def fetch(url: str) -> str:
    """Return a Python program that shows what is at a URL, or why nothing is."""
    return f"python3 -c 'import urllib.request as u; print(u.urlopen(\"{url}\").read())'"


def wheel() -> bytes:
    """Return a package."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("demo.py", "WORD = 'installed'")
        archive.writestr(
            "demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n"
        )
        archive.writestr("demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr("demo-1.0.dist-info/RECORD", "")
    return file.getvalue()


async def test_programs_inside_reach_an_admitted_host(state: Path) -> None:
    """With and without TLS; what they were served is on record."""
    async with (
        server(Site(), TLS) as secure,
        server(Site()) as plain,
        started(state, local(secure, plain)) as sandbox,
    ):
        urls = f"https://site.test:{secure}/", f"http://site.test:{plain}/"
        for url in urls:
            assert "b'ok'" in await said(sandbox, fetch(url))
            assert (await said(sandbox, f"curl -sS {url}")) == "ok"
        found = sandbox.connections()
        assert [each.port for each in found] == [secure, secure, plain, plain]
        assert all(each.allowed and each.received_bytes for each in found)


async def test_programs_inside_say_what_would_have_to_be_allowed(state: Path) -> None:
    """Each in its own words; nothing was connected to."""
    async with started(state, local(80)) as sandbox:
        mend = "other.test is not reachable from this sandbox: add it to `[policy.egress] allow`"
        for url in ("http://other.test/", "https://other.test/"):
            assert mend in await said(sandbox, f"curl -sv {url}")
            assert mend in await said(sandbox, fetch(url))
        assert {each.allowed for each in sandbox.connections()} == {False}


async def test_there_is_no_way_around_the_gate(state: Path) -> None:
    """No address is reached without it, and none through it."""
    async with server(Site()) as port, started(state, local(port)) as sandbox:
        direct = f"curl -sS --noproxy '*' http://127.0.0.1:{port}/ http://site.test:{port}/"
        found = await said(sandbox, direct)
        assert "Could not resolve host" in found
        assert "ok" not in found.split()
        assert "it is an address" in await said(
            sandbox, f"curl -s --noproxy '' http://127.1:{port}/"
        )
        assert "it is an address" in await said(sandbox, "curl -s -g http://[::ffff:7f00:1]/")


async def test_a_redirect_does_not_lead_inwards(state: Path) -> None:
    """The client asks the gate again."""
    site = Site(
        b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\nContent-Length: 0\r\n\r\n"
    )
    async with server(site) as port, started(state, local(port)) as sandbox:
        found = await said(sandbox, f"curl -sSL http://site.test:{port}/")
        assert "169.254.169.254 is not reachable from this sandbox" in found


async def test_a_package_comes_from_an_index_with_a_password(state: Path) -> None:
    """The pip inside has a placeholder; only the index sees the password."""
    name = "demo-1.0-py3-none-any.whl"
    pages = {
        "/simple/demo/": f'<a href="/files/{name}">{name}</a>'.encode(),
        f"/files/{name}": wheel(),
    }
    site = Site(pages=pages, credentials=f"me:{VALUE}".encode())
    secret = BoundSecret("INDEX_PASSWORD", "api.test", VALUE)
    async with (
        server(site, TLS) as port,
        started(state, local(port, host="api.test"), secrets=(secret,)) as sandbox,
    ):
        if not (await said(sandbox, "python3 -m pip --version")).startswith("pip "):
            pytest.skip("the system's Python has no pip")
        index = f"https://me:$INDEX_PASSWORD@api.test:{port}/simple"
        pip = "python3 -m pip install -q --no-cache-dir --target /repo/t --index-url"
        show = "PYTHONPATH=/repo/t python3 -c 'import demo; print(demo.WORD)'"
        found = await said(sandbox, f"{pip} {index} demo && {show}; env")
        assert "installed" in found
        assert VALUE not in found
        assert {each.secrets for each in sandbox.connections()} == {("INDEX_PASSWORD",)}


async def test_an_echo_shows_nothing_inside(state: Path) -> None:
    """Even a host that gives back all it was asked."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(asked), asked))
        await writer.drain()

    secret = BoundSecret("TOKEN", "api.test", VALUE)
    async with (
        server(echo, TLS) as port,
        started(state, local(port, host="api.test"), secrets=(secret,)) as sandbox,
    ):
        curl = (
            f'curl -sS -i -u "me:$TOKEN" -H "X-Key: $TOKEN" https://api.test:{port}/; echo $TOKEN'
        )
        found = await said(sandbox, curl)
        mark = found.splitlines()[-1]
        assert mark.startswith("turnout-secret-")
        assert f"X-Key: {mark}" in found
        assert base64.b64encode(f"me:{mark}".encode()).decode() in found
        assert VALUE not in found
        assert sandbox.connections()[0].secrets == ("TOKEN",)


async def test_git_clones_with_a_token(state: Path, tmp_path: Path) -> None:
    """Over HTTPS, as from any host of repositories."""
    pages = await asyncio.to_thread(repository, tmp_path)
    site = Site(pages=pages, credentials=f"x:{VALUE}".encode())
    secret = BoundSecret("TOKEN", "api.test", VALUE)
    async with (
        server(site, TLS) as port,
        started(state, local(port, host="api.test"), secrets=(secret,)) as sandbox,
    ):
        url = f"https://x:$TOKEN@api.test:{port}/r.git"
        found = await said(sandbox, f"cd /tmp && git clone -q {url} && cat r/word r/.git/config")
        assert found.startswith("cloned")
        assert VALUE not in found


def repository(folder: Path) -> dict[str, bytes]:
    """Return the files of a repository, by path, as a plain web server has them."""

    def git(*argv: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b")
        subprocess.run(["git", *identity, *argv], cwd=folder, check=True, timeout=30)

    git("init", "-q", "-b", "main")
    (folder / "word").write_text("cloned")
    git("add", "word")
    git("commit", "-q", "-m", "one")
    git("update-server-info")
    root = folder / ".git"
    files = {path.relative_to(root): path for path in root.rglob("*") if path.is_file()}
    pages = {f"/r.git/{name}": path.read_bytes() for name, path in files.items()}
    return pages | {"/r.git/info/refs?service=git-upload-pack": pages["/r.git/info/refs"]}
