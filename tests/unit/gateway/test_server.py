"""The server runs inside the process, on a private socket or a free port."""

import asyncio
import stat
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from turnout.errors import ConfigError, UnfitError
from turnout.gateway.server import serve


async def _hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


APP = Starlette(routes=[Route("/", _hello)])


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_a_unix_socket_is_for_its_owner_alone(tmp_path: Path) -> None:
    """So is the folder made for it; nothing is left behind."""
    path = tmp_path / "private" / "gateway.sock"
    async with serve(APP, uds=path) as bound:
        assert (_mode(path), _mode(path.parent)) == (0o600, 0o700)
        connector = aiohttp.UnixConnector(str(path))
        async with (
            aiohttp.ClientSession(connector=connector) as http,
            http.get(f"{bound.base_url}/") as answer,
        ):
            assert await answer.text() == "hello"
    assert not path.exists()


async def test_a_stale_socket_is_replaced(tmp_path: Path) -> None:
    """A process that was killed leaves one."""
    path = tmp_path / "gateway.sock"
    path.touch()
    async with serve(APP, uds=path):
        assert stat.S_ISSOCK(path.stat().st_mode)


async def test_a_free_port_is_found_and_named() -> None:
    """Port 0 or none."""
    async with (
        serve(APP, host="127.0.0.1") as bound,
        aiohttp.ClientSession() as http,
        http.get(f"{bound.base_url}/") as answer,
    ):
        assert answer.status == 200
        assert bound.base_url.endswith(f":{bound.port}")


async def test_an_address_in_use_is_a_clear_error() -> None:
    """Not a traceback, and not an exit of the process."""
    async with serve(APP, host="127.0.0.1") as bound:
        with pytest.raises(UnfitError, match="another port with --port"):
            async with serve(APP, host="127.0.0.1", port=bound.port):
                pass


async def test_an_address_that_cannot_be_is_a_clear_error(tmp_path: Path) -> None:
    """Too long for a socket, no such host, neither or both given."""
    with pytest.raises(ConfigError, match="shorter path"):
        async with serve(APP, uds=tmp_path / ("x" * 120)):
            pass
    with pytest.raises(ConfigError, match=r"192\.0\.2\.1"):
        async with serve(APP, host="192.0.2.1"):
            pass
    with pytest.raises(ConfigError, match="either"):
        async with serve(APP):
            pass


async def test_requests_under_way_end_before_the_server_does() -> None:
    """Stopping is graceful."""
    arrived = asyncio.Event()

    async def slow(_: Request) -> PlainTextResponse:
        arrived.set()
        await asyncio.sleep(0.2)
        return PlainTextResponse("done")

    async with aiohttp.ClientSession() as http:
        async with serve(Starlette(routes=[Route("/", slow)]), host="127.0.0.1") as bound:
            asking = asyncio.create_task(http.get(f"{bound.base_url}/"))
            await arrived.wait()
        assert await (await asking).text() == "done"


async def test_a_small_answer_on_a_kept_connection_is_sent_at_once() -> None:
    """The system would hold back the second part of each for some 40 ms."""
    seconds: list[float] = []
    async with serve(APP, host="127.0.0.1") as bound:
        reader, writer = await asyncio.open_connection("127.0.0.1", bound.port)
        for _ in range(20):
            began = time.monotonic()
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await reader.readuntil(b"hello")
            seconds.append(time.monotonic() - began)
        writer.close()
    assert min(seconds[1:]) < 0.03


def test_a_process_may_hold_as_many_connections_as_the_machine_lets_it() -> None:
    """The usual limit is reached by five hundred streams."""
    program = (
        "import resource as r; _, hard = r.getrlimit(r.RLIMIT_NOFILE);"
        "r.setrlimit(r.RLIMIT_NOFILE, (64, hard));"
        "from turnout.gateway.server import hold_many_connections as more; more();"
        "assert r.getrlimit(r.RLIMIT_NOFILE) == (hard, hard)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
