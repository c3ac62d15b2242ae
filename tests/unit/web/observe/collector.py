"""A collector of OpenTelemetry, as far as spans go."""

from dataclasses import dataclass, field

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from turnout.core.observe.options import ObserveOptions
from turnout.testing.loopback import LoopbackServer


@dataclass
class Collector(LoopbackServer):
    """Takes spans in, or never answers."""

    silent: bool = False
    got: list[ExportTraceServiceRequest] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()

    def _routes(self) -> list[web.RouteDef]:
        return [web.post("/v1/traces", self._take)]

    async def _take(self, request: web.Request) -> web.Response:
        if self.silent:
            await self._stopping.wait()
        self.headers.append(dict(request.headers))
        self.got.append(ExportTraceServiceRequest.FromString(await request.read()))
        return web.Response(content_type="application/x-protobuf")

    @property
    def spans(self) -> list[Span]:
        """Return the spans that have come."""
        return [
            span
            for request in self.got
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]

    @property
    def options(self) -> ObserveOptions:
        """Options that send spans here."""
        return ObserveOptions(
            traces_url=f"{self.base_url}/traces",
            traces_headers={"x-team": "blue"},
            resource={"service.name": "turnout-test"},
        )


def attributes(pairs) -> dict[str, object]:
    """Return attributes as they were said."""
    found: dict[str, object] = {}
    for pair in pairs:
        kind = pair.value.WhichOneof("value")
        value = getattr(pair.value, kind)
        found[pair.key] = (
            tuple(v.string_value for v in value.values) if kind == "array_value" else value
        )
    return found
