"""Helpers for tests of the proxy: names that resolve to local servers, and their certificates."""

import asyncio
import base64
import datetime as dt
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from turnout.core.network.addresses import Address
from turnout.sandbox.base import BoundSecret, Connection, Egress, HostRule
from turnout.sandbox.egress.authority import RunAuthority
from turnout.sandbox.egress.gate import Gate
from turnout.sandbox.egress.resolver import Resolver
from turnout.sandbox.egress.service import Bounds

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

QUICK = Bounds(wait_seconds=10, head_seconds=10, connect_seconds=10, idle_seconds=10)
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_DEADLINE = 20.0
_EMPTY = b"HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n"


class FixedResolver:
    """Answers from a table; what is not in it is this machine."""

    def __init__(self, answers: Mapping[str, str | list[str]] | None = None) -> None:
        self._answers = dict(answers or {})
        self.asked: list[str] = []

    async def resolve(self, host: str, port: int) -> tuple[Address, ...]:
        """Return the addresses of a host; a list has one answer for each time that it is asked."""
        self.asked.append(host)
        answer = self._answers.get(host, "127.0.0.1")
        if isinstance(answer, list):
            answer = answer.pop(0)
        if not answer:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return tuple(map(ip_address, answer.split()))


@asynccontextmanager
async def server(handle: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve connections on a free port until the block ends."""
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            await handle(reader, writer)
            writer.close()
            await writer.wait_closed()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield listening.sockets[0].getsockname()[1]
    finally:
        listening.close()
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


@dataclass
class Site:
    """A web site that keeps what it was asked."""

    answer: bytes = OK
    """To everything, as long as there are no pages."""
    pages: Mapping[str, bytes] = field(default_factory=dict)
    """Bodies by path."""
    credentials: bytes = b""
    """`USER:PASSWORD` that pages are shown for."""
    requests: list[bytes] = field(default_factory=list)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one request, whose body has a length or comes in chunks."""
        request = await reader.readuntil(b"\r\n\r\n")
        fields = request.lower()
        if b"transfer-encoding: chunked" in fields:
            while not request.endswith(b"\r\n0\r\n\r\n"):
                request += await reader.readuntil(b"\r\n")
        elif b"content-length: " in fields:
            length = fields.partition(b"content-length: ")[2].partition(b"\r\n")[0]
            request += await reader.readexactly(int(length))
        self.requests.append(request)
        writer.write(self._page(request) if self.pages else self.answer)
        await writer.drain()

    def _page(self, request: bytes) -> bytes:
        if base64.b64encode(self.credentials) not in request:
            return _EMPTY % b"401 Unauthorized\r\nWWW-Authenticate: Basic"
        body = self.pages.get(request.split(b" ")[1].decode())
        if body is None:
            return _EMPTY % b"404 Not Found"
        head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: "
        return f"{head}{len(body)}\r\n\r\n".encode() + body


@dataclass
class Proxy:
    """A gate, seen from inside the sandbox."""

    gate: Gate
    port: int

    @property
    def only(self) -> Connection:
        """The one connection on record."""
        (connection,) = self.gate.connections()
        return connection

    async def open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to it."""
        return await asyncio.open_connection("127.0.0.1", self.port)

    async def ask(self, *pieces: bytes) -> bytes:
        """Return all that it answers to what is sent, each piece on its own."""
        async with asyncio.timeout(_DEADLINE):
            reader, writer = await self.open()
            try:
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                return await reader.read()
            except ConnectionResetError:
                return b"reset"
            finally:
                writer.transport.abort()

    async def get(self, url: str, *fields: str, method: str = "GET") -> bytes:
        """Return the answer to a request for a URL."""
        host = url.split("/")[2]
        lines = [f"{method} {url} HTTP/1.1", f"Host: {host}", *fields, "Connection: close"]
        return await self.ask("\r\n".join([*lines, "", ""]).encode("latin-1"))

    async def connect(
        self, target: str, *fields: str
    ) -> tuple[bytes, asyncio.StreamReader, asyncio.StreamWriter]:
        """Ask for a tunnel; return the head of the answer, and the connection."""
        async with asyncio.timeout(_DEADLINE):
            reader, writer = await self.open()
            lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}", *fields, "", ""]
            writer.write("\r\n".join(lines).encode())
            return await reader.readuntil(b"\r\n\r\n"), reader, writer

    async def tls(
        self, target: str, trust: bytes, *, name: str | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return a TLS connection through a tunnel; `name` is the one that is asked for in it."""
        head, reader, writer = await self.connect(target)
        assert head.startswith(b"HTTP/1.1 200 "), head
        async with asyncio.timeout(_DEADLINE):
            host = target.rpartition(":")[0] if name is None else name
            try:
                await writer.start_tls(trusting(trust), server_hostname=host)
            except BaseException:
                writer.transport.abort()
                raise
        return reader, writer

    async def get_tls(self, target: str, trust: bytes, *fields: str, path: str = "/") -> bytes:
        """Return the answer to a request through a tunnel."""
        reader, writer = await self.tls(target, trust)
        lines = [f"GET {path} HTTP/1.1", f"Host: {target}", *fields, "Connection: close", "", ""]
        writer.write("\r\n".join(lines).encode("latin-1"))
        try:
            async with asyncio.timeout(_DEADLINE):
                return await reader.read()
        finally:
            writer.transport.abort()


@asynccontextmanager
async def proxy(
    *rules: HostRule,
    secrets: tuple[BoundSecret, ...] = (),
    resolver: Resolver | None = None,
    trust: bytes = b"",
    bounds: Bounds = QUICK,
    token: str = "",
    upstream: str = "",
) -> AsyncIterator[Proxy]:
    """Open a gate for some rules until the block ends."""
    gate = Gate(
        Egress(rules, secrets),
        resolver=resolver or FixedResolver(),
        authority=RunAuthority([secret.host for secret in secrets]) if secrets else None,
        trust=trust,
        bounds=bounds,
        token=token,
        upstream_proxy=upstream,
    )
    listener = socket.create_server(("127.0.0.1", 0))
    try:
        await gate.serve(listener)
        yield Proxy(gate, listener.getsockname()[1])
    finally:
        await gate.close()


def local(*ports: int, host: str = "site.test") -> HostRule:
    """Return a rule for a host that is this machine."""
    return HostRule(host, ports, private=True)


def trusting(pem: bytes) -> ssl.SSLContext:
    """Return a client's context that trusts some authorities and no others."""
    return ssl.create_default_context(cadata=pem.decode())


class Certifier:
    """An authority as there are in the world."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Public authority")])
        self._certificate = self._signed(
            self._name, self._key, x509.BasicConstraints(ca=True, path_length=None)
        )

    @property
    def pem(self) -> bytes:
        """Its certificate."""
        return self._certificate.public_bytes(Encoding.PEM)

    def server(self, *hosts: str) -> ssl.SSLContext:
        """Return the context of a server that has a certificate for some hosts."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([x509.DNSName(host) for host in hosts])
        certificate = self._signed(x509.Name([]), key, names)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile() as file:
            file.write(
                key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
                + certificate.public_bytes(Encoding.PEM)
            )
            file.flush()
            context.load_cert_chain(file.name)
        return context

    def _signed(
        self, name: x509.Name, key: ec.EllipticCurvePrivateKey, extension: x509.ExtensionType
    ) -> x509.Certificate:
        now = dt.datetime.now(dt.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(extension, critical=True)
            .sign(self._key, hashes.SHA256())
        )
