"""TLS ended at the proxy and begun anew to the host, so that secrets can be put in between."""

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import h11

from turnout.sandbox.egress.forward import check_host, forward, outgoing
from turnout.sandbox.egress.ledger import noting
from turnout.sandbox.egress.secret import HostSecrets
from turnout.sandbox.egress.service import Destination, Interception, Service
from turnout.sandbox.egress.wire.conversation import converse
from turnout.sandbox.egress.wire.http import HttpPeer
from turnout.sandbox.egress.wire.refusal import RefusedError
from turnout.sandbox.egress.wire.streams import Stream, TlsStream

__all__ = ["intercept"]

_HTTPS_PORT = 443


async def intercept(
    service: Service, interception: Interception, stream: Stream, destination: Destination
) -> None:
    """Answer for a host to a client inside, request by request; `OSError` where that broke off."""
    bounds = service.bounds
    tls = TlsStream(stream, interception.authority.context(destination.host))
    try:
        async with asyncio.timeout(bounds.head_seconds):
            await tls.handshake()
    except OSError:
        destination.entry.reason = "the client inside did not accept the sandbox's own authority"
        return
    served = _Intercepted(service, interception, destination)
    await converse(
        tls, served.serve, wait_seconds=bounds.wait_seconds, head_seconds=bounds.head_seconds
    )
    with contextlib.suppress(OSError):
        await tls.end()


class _Intercepted:
    """Passes on the requests of one connection."""

    def __init__(
        self, service: Service, interception: Interception, destination: Destination
    ) -> None:
        self._service = service
        self._interception = interception
        self._destination = destination

    async def serve(self, client: HttpPeer, request: h11.Request) -> bool:
        """Serve one request; return whether another may follow."""
        host, port = self._destination.host, self._destination.port
        with noting(self._destination.entry):
            if not request.target.startswith(b"/") and request.target != b"*":
                raise RefusedError(400, "The request does not ask for a path.", allowed=True)
            field = check_host(request, host, port, default_port=_HTTPS_PORT)
            secrets = HostSecrets(self._interception.placed)
            asked, used = outgoing(request, request.target, field, secrets)
            return await forward(client, self._upstream(used), asked, secrets)

    @asynccontextmanager
    async def _upstream(self, used: tuple[str, ...]) -> AsyncIterator[Stream]:
        """Connect to the host, whose certificate is checked first, to show it some secrets."""
        host = self._destination.host
        async with self._service.connection(self._destination) as stream:
            tls = TlsStream(stream, self._interception.upstream, server_hostname=host)
            try:
                async with asyncio.timeout(self._service.bounds.connect_seconds):
                    await tls.handshake()
            except ssl.SSLCertVerificationError:
                why = "its certificate is not one that is trusted here"
            except OSError:
                why = "TLS with it failed"
            else:
                self._destination.entry.note_secrets(used)
                yield tls
                return
            raise RefusedError(502, f"{host} could not be reached: {why}", allowed=True)
