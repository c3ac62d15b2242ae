"""`POST /messages/count_tokens`: how long a conversation is."""

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from turnout.core.ids import new_request_id
from turnout.errors import TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.delivery import AppLimits, ClientGoneError, error_response, read_body
from turnout.gateway.engine import Engine
from turnout.gateway.exchange import UpstreamError
from turnout.gateway.wire.messages import MessagesShape

__all__ = ["counting_routes"]


def counting_routes(
    engine: Engine,
    authenticate: Authenticate,
    messages: MessagesShape,
    limits: AppLimits | None = None,
) -> list[Route]:
    """Return the route; nothing is generated, and no cap counts it."""

    async def count(request: Request) -> Response:
        request_id = new_request_id()
        headers = {"request-id": request_id, "x-request-id": request_id}
        try:
            caller = authenticate(request.headers)
            raw = await read_body(request.receive, request.headers, limits or AppLimits())
            asked = messages.parse_count(raw, request.headers)
            counted = await engine.count_tokens(caller, asked, request_id)
        except (TurnoutError, UpstreamError) as error:
            return error_response(messages.error(error), headers)
        except (ClientDisconnect, ClientGoneError):
            return Response(status_code=499)
        body = orjson.dumps({"input_tokens": counted})
        return Response(body, headers=headers, media_type="application/json")

    return [Route("/messages/count_tokens", count, methods=["POST"])]
