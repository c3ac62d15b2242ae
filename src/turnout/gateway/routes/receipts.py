"""`GET /requests/{id}`: what became of a request."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnout.core.ids import RequestId
from turnout.core.receipts import encode_receipt
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.delivery import error_response
from turnout.gateway.engine import Engine
from turnout.gateway.wire.base import ClientShape

__all__ = ["receipt_routes"]


def receipt_routes(engine: Engine, authenticate: Authenticate, chat: ClientShape) -> list[Route]:
    """Return the route; a key sees its own requests, an admin's all."""

    async def receipt(request: Request) -> Response:
        request_id = RequestId(request.path_params["request_id"])
        try:
            caller = authenticate(request.headers)
            found = await engine.receipt(caller, request_id)
            if found is None:
                said = f"There is no request `{request_id}`."
                raise GatewayError(said, status=404, code="request_not_found")
        except TurnoutError as error:
            return error_response(chat.error(error))
        return Response(encode_receipt(found), media_type="application/json")

    return [Route("/requests/{request_id}", receipt, methods=["GET"])]
