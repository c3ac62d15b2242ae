"""`GET /models`: what a request may name, in the form that the client's API has."""

from collections.abc import Mapping, Sequence

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.delivery import error_response
from turnout.gateway.engine import Engine
from turnout.gateway.wire.base import ClientShape
from turnout.gateway.wire.messages.models import write_model, write_models

__all__ = ["model_routes"]

_OWNER = "turnout"
_LONGEST_NUMBER = 9


def model_routes(
    engine: Engine, authenticate: Authenticate, chat: ClientShape, messages: ClientShape
) -> list[Route]:
    """Return the routes; a client that names a version of Anthropic's API gets that form."""
    listing = _Listing(engine, authenticate, chat, messages)
    return [
        Route("/models", listing.all, methods=["GET"]),
        Route("/models/{model:path}", listing.one, methods=["GET"]),
    ]


class _Listing:
    def __init__(
        self, engine: Engine, authenticate: Authenticate, chat: ClientShape, messages: ClientShape
    ) -> None:
        self._engine = engine
        self._authenticate = authenticate
        self._chat = chat
        self._messages = messages

    async def all(self, request: Request) -> Response:
        try:
            names = self._engine.model_names(self._authenticate(request.headers))
            write = write_models if _is_anthropic(request) else _write_all
            return _json(write(names, request.query_params))
        except TurnoutError as error:
            return self._refuse(request, error)

    async def one(self, request: Request) -> Response:
        name = request.path_params["model"]
        try:
            if name not in self._engine.model_names(self._authenticate(request.headers)):
                said = f"The model `{name}` does not exist here."
                raise GatewayError(said, status=404, code="model_not_found")
        except TurnoutError as error:
            return self._refuse(request, error)
        return _json(write_model(name) if _is_anthropic(request) else orjson.dumps(_entry(name)))

    def _refuse(self, request: Request, error: TurnoutError) -> Response:
        client = self._messages if _is_anthropic(request) else self._chat
        return error_response(client.error(error))


def _is_anthropic(request: Request) -> bool:
    return "anthropic-version" in request.headers


def _write_all(names: Sequence[str], query: Mapping[str, str]) -> bytes:
    data = [_entry(name) for name in names[: _limit(query.get("limit"))]]
    return orjson.dumps({"object": "list", "data": data, "has_more": False})


def _limit(asked: str | None) -> int | None:
    if asked is None:
        return None
    if not (asked.isascii() and asked.isdecimal() and len(asked) <= _LONGEST_NUMBER):
        raise GatewayError(
            "`limit` must be a whole number.", status=400, code="invalid_request", param="limit"
        )
    return int(asked)


def _entry(name: str) -> dict[str, str | int]:
    return {"id": name, "object": "model", "created": 0, "owned_by": _OWNER}


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")
