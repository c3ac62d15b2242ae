"""One connection from inside a sandbox to its proxy."""

import asyncio
import base64
import binascii
import contextlib
import hmac
import re

import h11

from turnout.sandbox.egress.forward import check_host, forward, outgoing
from turnout.sandbox.egress.intercept import intercept
from turnout.sandbox.egress.ledger import noting, shown
from turnout.sandbox.egress.service import Destination, Service
from turnout.sandbox.egress.wire.conversation import converse
from turnout.sandbox.egress.wire.hello import UNRECOGNIZED_NAME, HelloError, read_hello
from turnout.sandbox.egress.wire.http import HttpPeer, values
from turnout.sandbox.egress.wire.refusal import RefusedError
from turnout.sandbox.egress.wire.streams import TcpStream, join

__all__ = ["Visit"]

_HTTP_PORT = 80
_URL = re.compile(rb"http://([^/?#@]*)((?:[/?][^#]*)?)", re.IGNORECASE)
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Visit:
    """Serves one connection: a tunnel, or plain HTTP requests one after the other."""

    def __init__(self, service: Service, stream: TcpStream) -> None:
        self._service = service
        self._stream = stream

    async def serve(self) -> None:
        """Serve it to its end; nothing of it is left then."""
        bounds = self._service.bounds
        try:
            # Where it broke or an answer could not be finished, breaking it off says so.
            with contextlib.suppress(OSError):
                await converse(
                    self._stream,
                    self._serve,
                    wait_seconds=bounds.wait_seconds,
                    head_seconds=bounds.head_seconds,
                )
                await self._stream.linger()
        finally:
            self._stream.abort()
            await self._stream.closed()

    async def _serve(self, client: HttpPeer, request: h11.Request) -> bool:
        if self._service.token and not _shows(request, self._service.token):
            raise RefusedError(407, "This proxy serves one sandbox: its password is not the one.")
        if request.method == b"CONNECT":
            await self._connect(request)
            return False
        return await self._forward(client, request)

    async def _forward(self, client: HttpPeer, request: h11.Request) -> bool:
        url = _URL.fullmatch(request.target)
        if url is None:
            raise RefusedError(
                400, "This is an HTTP proxy: ask it for a whole http:// URL, or by CONNECT for TLS."
            )
        destination = self._service.admit(url[1].decode("ascii"), default_port=_HTTP_PORT)
        host, port = destination.host, destination.port
        with noting(destination.entry):
            if self._service.interception_for(host):
                raise RefusedError(
                    403, f"{host} is reachable by https:// alone: a secret is bound to it."
                )
            field = check_host(request, host, port, default_port=_HTTP_PORT)
            path = url[2] if url[2].startswith(b"/") else b"/" + url[2]
            asked, _ = outgoing(request, path, field)
            return await forward(client, self._service.connection(destination), asked)

    async def _connect(self, request: h11.Request) -> None:
        destination = self._service.admit(request.target.decode("ascii"))
        with noting(destination.entry):
            if interception := self._service.interception_for(destination.host):
                await self._stream.write(_ESTABLISHED)
                if await self._greeted(destination):
                    await intercept(self._service, interception, self._stream, destination)
                return
            async with self._service.connection(destination) as upstream:
                await self._stream.write(_ESTABLISHED)
                if await self._greeted(destination):
                    await join(self._stream, upstream)

    async def _greeted(self, destination: Destination) -> bool:
        """Whether TLS to the host begins, whose certificate will then have to be the host's."""
        try:
            async with asyncio.timeout(self._service.bounds.head_seconds):
                name = await read_hello(self._stream)
        except HelloError as error:
            why = str(error)
        except TimeoutError:
            why = "its TLS greeting did not arrive in time"
        else:
            if name.lower() == destination.host:
                return True
            why = f"its TLS greeting names {shown(name)}"
        destination.entry.refuse(f"the tunnel was closed: {why}")
        await self._stream.write(UNRECOGNIZED_NAME)
        return False


def _shows(request: h11.Request, token: str) -> bool:
    """Whether a request has the token as the password of its proxy authorization."""
    fields = values(request, b"proxy-authorization")
    scheme, _, encoded = (fields[0] if len(fields) == 1 else b"").partition(b" ")
    try:
        _, _, password = base64.b64decode(encoded.strip(), validate=True).partition(b":")
    except binascii.Error:
        return False
    return scheme.lower() == b"basic" and hmac.compare_digest(password, token.encode())
