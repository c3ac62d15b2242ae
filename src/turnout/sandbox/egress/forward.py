"""One HTTP request to the host that it names, and the answer to it."""

import asyncio
from contextlib import AbstractAsyncContextManager

import h11

from turnout.sandbox.egress.rules import canonical_host, split_target
from turnout.sandbox.egress.secret import HostSecrets
from turnout.sandbox.egress.wire.http import Headers, HttpPeer, check_framing, end_to_end, values
from turnout.sandbox.egress.wire.refusal import RefusedError
from turnout.sandbox.egress.wire.streams import Stream

__all__ = ["check_host", "forward", "outgoing"]

_BODILESS = frozenset({204, 304})


def check_host(request: h11.Request, host: str, port: int, *, default_port: int) -> bytes:
    """Return the `Host` field for a destination; `RefusedError` where the request's says another.

    What the rules were asked about has to be what the host will be asked for.
    """
    for value in values(request, b"host"):
        if not _names(value.decode("latin-1"), host, port, default_port):
            raise RefusedError(400, f"The Host field does not name {host}, where the request goes.")
    return host.encode() if port == default_port else f"{host}:{port}".encode()


def _names(field: str, host: str, port: int, default_port: int) -> bool:
    try:
        named, its_port = split_target(field, default_port=default_port)
        return (canonical_host(named), its_port) == (host, port)
    except ValueError:
        return False


def outgoing(
    request: h11.Request, target: bytes, host: bytes, secrets: HostSecrets | None = None
) -> tuple[h11.Request, tuple[str, ...]]:
    """Return a client's request as the host is asked it, and the secrets that were put in.

    `target` is the path, `host` the `Host` field. Each connection to a host is for one request, so
    that no answer can be taken for that to another. Where values are taken out of the answer, it
    has to come in full and uncompressed.
    """
    dropped = {b"host"}
    if secrets is not None:
        dropped.add(b"accept-encoding")
    headers = [(b"Host", host)]
    headers += [field for field in end_to_end(request) if field[0].lower() not in dropped]
    if values(request, b"transfer-encoding"):
        headers.append((b"Transfer-Encoding", b"chunked"))
    headers.append((b"Connection", b"close"))
    used: tuple[str, ...] = ()
    if secrets is not None:
        headers, used = secrets.put_in([*headers, (b"Accept-Encoding", b"identity")])
    if used:
        headers = [field for field in headers if field[0].lower() not in (b"range", b"if-range")]
    try:
        return h11.Request(method=request.method, target=target, headers=headers), used
    except h11.LocalProtocolError:
        raise RefusedError(400, "The request cannot be passed on.", allowed=True) from None


async def forward(
    client: HttpPeer,
    connection: AbstractAsyncContextManager[Stream],
    request: h11.Request,
    secrets: HostSecrets | None = None,
) -> bool:
    """Connect, pass a request on and its answer back; return whether another request may follow.

    `RefusedError` where the host gave no answer that can be passed on, another `OSError` where an
    answer had begun and can only be broken off, or the client did that.
    """
    exchange: _Exchange | None = None
    try:
        async with connection as upstream:
            exchange = _Exchange(client, upstream, request, secrets)
            return await exchange.run()
    except TimeoutError:
        if exchange is not None and exchange.answering:
            raise
        raise RefusedError(504, "There was no answer in time.", allowed=True) from None


class _Exchange:
    """Passes the body of a request on to a host and its answer back, both at once."""

    def __init__(
        self,
        client: HttpPeer,
        upstream: Stream,
        request: h11.Request,
        secrets: HostSecrets | None,
    ) -> None:
        self.answering = False
        self._client = client
        self._upstream = HttpPeer(upstream, h11.CLIENT)
        self._request = request
        self._secrets = secrets
        self._scrubber = None if secrets is None else secrets.scrubber()
        self._client_left = False

    async def run(self) -> bool:
        body = asyncio.create_task(self._pass_body())
        try:
            await self._pass_answer()
        except (h11.ProtocolError, OSError):
            if not self._client_left and not self.answering:
                raise RefusedError(502, "The host gave no valid answer.", allowed=True) from None
            raise ConnectionAbortedError("it broke off") from None
        finally:
            body.cancel()
            await asyncio.wait([body])
        if self._client_left:
            raise ConnectionAbortedError("the client left")
        return self._client.finish()

    async def _pass_body(self) -> None:
        """Send the request, and break the connection to the host once the client has left."""
        taken = await self._send(self._request)
        ended = False
        while not ended:
            try:
                event = await self._client.receive()
            except (h11.RemoteProtocolError, OSError):
                self._leave()
                return
            ended = not isinstance(event, h11.Data)
            # A host may answer before it has read all, and take no more.
            taken = taken and await self._send(h11.EndOfMessage() if ended else event)
        try:
            more = await self._client.stream.read()
        except OSError:
            more = b""
        if more:
            self._client.stream.unread(more)
        else:
            self._leave()

    async def _send(self, event: h11.Event) -> bool:
        try:
            await self._upstream.send(event)
        except (h11.LocalProtocolError, OSError):
            return False
        return True

    def _leave(self) -> None:
        self._client_left = True
        self._upstream.stream.abort()

    async def _pass_answer(self) -> None:
        while True:
            event = await self._upstream.receive()
            if isinstance(event, h11.InformationalResponse):
                await self._pass_information(event)
            elif isinstance(event, h11.Response):
                head = self._answer_head(event)
                self.answering = True
                await self._client.send(head)
            elif isinstance(event, h11.Data):
                await self._pass_data(event.data)
            elif isinstance(event, h11.EndOfMessage):
                await self._pass_data(None)
                await self._client.send(h11.EndOfMessage())
                return
            else:
                raise h11.RemoteProtocolError("no answer")

    async def _pass_information(self, event: h11.InformationalResponse) -> None:
        if (self._client.h11.their_http_version or b"") >= b"1.1":
            headers = self._scrubbed(end_to_end(event))
            head = h11.InformationalResponse(status_code=event.status_code, headers=headers)
            await self._client.send(head)

    def _answer_head(self, answer: h11.Response) -> h11.Response:
        if why := check_framing(answer):
            raise h11.RemoteProtocolError(why)
        headers = self._scrubbed(end_to_end(answer))
        bodiless = self._request.method == b"HEAD" or answer.status_code in _BODILESS
        if self._secrets is not None and not bodiless:
            if {code.lower() for code in values(answer, b"content-encoding")} - {b"identity"}:
                raise RefusedError(
                    502,
                    "The host's answer is compressed and cannot be searched for the secret.",
                    allowed=True,
                )
            headers = [field for field in headers if field[0].lower() != b"content-length"]
        ((_, reason),) = self._scrubbed([(b"", answer.reason)])
        return h11.Response(status_code=answer.status_code, headers=headers, reason=reason)

    def _scrubbed(self, headers: Headers) -> Headers:
        return headers if self._secrets is None else self._secrets.scrub(headers)

    async def _pass_data(self, data: bytes | None) -> None:
        """Pass a part of the answer on; None at its end."""
        if self._scrubber is not None:
            data = self._scrubber.finish() if data is None else self._scrubber.feed(data)
        if data:
            await self._client.send(h11.Data(data=data))
