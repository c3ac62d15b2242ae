"""How much and how slowly a sandbox may ask of its gate."""

import asyncio
import gc
import os
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.egress import OK, QUICK, Certifier, Handler, Proxy, Site, local, proxy, server

from turnout.sandbox.base import BoundSecret

WORLD = Certifier()
MIB = 1 << 20
CUT = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"


def descriptors() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def source(size: int) -> Handler:
    """Return a host that sends so many bytes to everybody."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
        piece = os.urandom(1 << 16)
        for _ in range(size >> 16):
            writer.write(piece)
            await writer.drain()

    return handle


async def settled(value: Callable[[], int]) -> int:
    """Return a value once it no longer grows."""
    before = value()
    await asyncio.sleep(0.1)
    return before if value() == before else await settled(value)


async def drain(reader: asyncio.StreamReader) -> int:
    """Read to the end; return how much there was."""
    total = 0
    while data := await reader.read(1 << 16):
        total += len(data)
    return total


@pytest.mark.parametrize("sent", [b"", b"GET", b"GET http://site.test/ HTTP/1.1\r\nHost: si"])
async def test_a_request_that_does_not_arrive_is_given_up(sent: bytes) -> None:
    """Whoever sends nothing is let go, whoever sends slowly is told."""
    bounds = replace(QUICK, wait_seconds=0.1, head_seconds=0.1)
    async with proxy(local(80), bounds=bounds) as inside:
        answer = await inside.ask(sent) if sent else await inside.ask()
        assert answer.startswith(b"HTTP/1.1 408 ") if sent else answer == b""


async def test_a_request_that_drips_is_given_up() -> None:
    """Each byte does not give it more time."""

    async def drip(writer: asyncio.StreamWriter) -> None:
        for _ in range(1_000):
            writer.write(b"G")
            await asyncio.sleep(0.02)

    async with proxy(local(80), bounds=replace(QUICK, head_seconds=0.2)) as inside:
        reader, writer = await inside.open()
        dripping = asyncio.create_task(drip(writer))
        async with asyncio.timeout(10):
            assert (await reader.readuntil(b"\r\n")).startswith(b"HTTP/1.1 408 ")
        assert not dripping.done()
        dripping.cancel()
        writer.transport.abort()


async def test_a_greeting_that_does_not_arrive_is_given_up() -> None:
    """A tunnel carries TLS from the start."""
    async with (
        server(Site()) as port,
        proxy(local(port), bounds=replace(QUICK, head_seconds=0.1)) as inside,
    ):
        _, reader, writer = await inside.connect(f"site.test:{port}")
        writer.write(b"\x16\x03\x01")
        assert (await reader.read())[:1] == b"\x15"
        writer.transport.abort()
        assert inside.only.reason.endswith("its TLS greeting did not arrive in time")


@pytest.mark.parametrize("answer", [b"", CUT])
async def test_a_host_that_falls_silent_is_given_up(answer: bytes) -> None:
    """Before its answer with an answer of our own, else by breaking off."""

    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await asyncio.sleep(60)

    async with (
        server(stall) as port,
        proxy(local(port), bounds=replace(QUICK, idle_seconds=0.1)) as inside,
    ):
        found = await inside.get(f"http://site.test:{port}/")
        assert found.startswith(b"HTTP/1.1 200 " if answer else b"HTTP/1.1 504 ")
        assert inside.only.reason


async def test_what_goes_on_is_not_given_up() -> None:
    """However long it takes, as long as something passes."""

    async def slow(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n")
        for _ in range(12):
            await asyncio.sleep(0.1)
            writer.write(b"x")

    async with (
        server(slow) as port,
        proxy(local(port), bounds=replace(QUICK, idle_seconds=1)) as inside,
    ):
        assert (await inside.get(f"http://site.test:{port}/")).endswith(b"\r\n\r\n" + b"x" * 12)


@pytest.mark.parametrize("size", [1 << 16, 1 << 20])
async def test_a_head_without_end_is_refused(size: int) -> None:
    """It is not kept in memory first."""
    async with proxy(local(80)) as inside:
        fields = b"X: " + b"a" * size
        answer = await inside.ask(b"GET http://site.test/ HTTP/1.1\r\n" + fields)
        assert answer.startswith(b"HTTP/1.1 431 ") or answer == b"reset"


async def test_more_connections_wait_for_their_turn() -> None:
    """No more are open at once than there are slots, and all are served."""
    open_now, most = 0, 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal open_now, most
        open_now += 1
        most = max(most, open_now)
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(0.01)
        writer.write(OK)
        await writer.drain()
        open_now -= 1

    async with (
        server(count) as port,
        proxy(local(port), bounds=replace(QUICK, connections=8)) as inside,
    ):
        url = f"http://site.test:{port}/"
        answers = await asyncio.gather(*(inside.get(url) for _ in range(200)))
        assert all(answer.endswith(b"ok") for answer in answers)
        assert 1 < most <= 8
        assert len(inside.gate.connections()) == 200


async def test_a_download_is_read_no_faster_than_it_is_taken() -> None:
    """Most of it stays with the host while the client waits, and memory stays small."""
    size = 64 * MIB
    async with server(source(size)) as port, proxy(local(port)) as inside:
        url = f"http://site.test:{port}/"
        tracemalloc.start()
        reader, writer = await inside.open()
        writer.write(f"GET {url} HTTP/1.0\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        assert await settled(lambda: inside.only.received_bytes) < size // 2
        async with asyncio.timeout(60):
            assert await drain(reader) == size
        writer.transport.abort()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 8 * MIB
        assert inside.only.received_bytes > size


async def test_an_upload_is_read_no_faster_than_it_is_taken() -> None:
    """Where a secret is put in too; nothing of it is lost."""
    size = 32 * MIB
    awake = asyncio.Event()

    async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await awake.wait()
        for _ in range(size >> 16):
            await reader.readexactly(1 << 16)
        writer.write(OK)
        await writer.drain()

    secret = BoundSecret("TOKEN", "site.test", "the-value-itself")
    async with (
        server(late, WORLD.server("site.test")) as port,
        proxy(local(port), secrets=(secret,), trust=WORLD.pem) as inside,
        asyncio.timeout(60),
    ):
        reader, writer = await inside.tls(f"site.test:{port}", inside.gate.bundle)
        writer.write(f"PUT / HTTP/1.1\r\nHost: site.test:{port}\r\n".encode())
        writer.write(b"Content-Length: %d\r\n\r\n" % size)
        sending = asyncio.create_task(send(writer, size))
        assert await settled(lambda: inside.only.sent_bytes) < size // 2
        awake.set()
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        await sending
        writer.transport.abort()


async def send(writer: asyncio.StreamWriter, size: int) -> None:
    """Send so many bytes, as fast as they are taken."""
    piece = bytes(1 << 16)
    for _ in range(size >> 16):
        writer.write(piece)
        await writer.drain()


@pytest.mark.parametrize("phase", ["head", "body", "answer", "stream"])
async def test_a_client_that_leaves_leaves_nothing(phase: str) -> None:
    """The connection to the host is gone too, at once."""
    answers = {"answer": CUT, "stream": b"HTTP/1.1 200 OK\r\n\r\nok"}
    reached, gone = asyncio.Event(), asyncio.Event()

    async def host(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            if phase in answers:
                writer.write(answers[phase])
            reached.set()
            await drain(reader)
        finally:
            gone.set()

    async with server(host) as port, proxy(local(port)) as inside, asyncio.timeout(10):
        reader, writer = await inside.open()
        length = 5 if phase == "body" else 0
        writer.write(
            f"PUT http://site.test:{port}/ HTTP/1.1\r\nHost: site.test:{port}\r\n".encode()
        )
        writer.write(b"Content-Length: %d\r\n\r\n" % length)
        await reached.wait()
        if phase in answers:
            await reader.readuntil(b"ok")
        writer.transport.abort()
        await gone.wait()
        for _ in iter(lambda: bool(inside.only.reason), True):
            await asyncio.sleep(0.01)
        assert inside.only.reason == "it broke off"


async def open_tunnels(inside: Proxy, target: str, count: int) -> list[asyncio.StreamWriter]:
    """Open tunnels and leave them open."""
    opened = await asyncio.gather(*(inside.connect(target) for _ in range(count)))
    assert all(head.startswith(b"HTTP/1.1 200") for head, _, _ in opened)
    return [writer for _, _, writer in opened]


async def test_a_closed_gate_leaves_nothing() -> None:
    """No task, no descriptor, whatever was under way."""
    async with server(source(64 * MIB)) as port:
        gc.collect()
        before = descriptors(), len(asyncio.all_tasks())
        async with proxy(local(port)) as inside:
            writers = await open_tunnels(inside, f"site.test:{port}", 10)
            reader, downloading = await inside.open()
            downloading.write(f"GET http://site.test:{port}/ HTTP/1.0\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
            _, waiting = await inside.open()
        for writer in (*writers, downloading, waiting):
            writer.transport.abort()
        async with asyncio.timeout(10):
            for _ in iter(lambda: (descriptors(), len(asyncio.all_tasks())) == before, True):
                gc.collect()
                await asyncio.sleep(0.01)
