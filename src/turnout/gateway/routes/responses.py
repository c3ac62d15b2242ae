"""`/responses/{id}`: stored responses, read back and forgotten."""

from collections.abc import Awaitable, Callable

import orjson
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from turnout.core.govern.closing import StoredResponse
from turnout.core.ids import RequestId
from turnout.core.json import JsonObject, JsonValue, as_objects, as_text
from turnout.errors import GatewayError, TurnoutError
from turnout.gateway.access import Authenticate
from turnout.gateway.delivery import error_response
from turnout.gateway.exchange import Caller
from turnout.gateway.ports import ResponseStore
from turnout.gateway.stages.stored import missing
from turnout.gateway.wire.base import ClientShape

__all__ = ["response_routes"]

_MOST_ITEMS = 100
_FEWEST_ITEMS = 20

Work = Callable[[Caller, Request], Awaitable[JsonObject]]


def response_routes(
    store: ResponseStore, authenticate: Authenticate, shape: ClientShape
) -> list[Route]:
    """Return the routes; a key sees what was stored for it, and nothing else."""
    desk = _Desk(store)

    def route(path: str, method: str, work: Work) -> Route:
        async def endpoint(request: Request) -> Response:
            try:
                answer = await work(authenticate(request.headers), request)
            except TurnoutError as error:
                return error_response(shape.error(error))
            return Response(orjson.dumps(answer), media_type="application/json")

        return Route(path, endpoint, methods=[method])

    return [
        route("/responses/{response_id}", "GET", desk.show),
        route("/responses/{response_id}", "DELETE", desk.forget),
        route("/responses/{response_id}/input_items", "GET", desk.list_items),
        route("/responses/{response_id}/cancel", "POST", desk.cancel),
    ]


class _Desk:
    def __init__(self, store: ResponseStore) -> None:
        self._store = store

    async def show(self, caller: Caller, request: Request) -> JsonObject:
        if request.query_params.get("stream") in {"true", "1"}:
            raise GatewayError(
                "A stored response is read whole.",
                status=400,
                code="invalid_request",
                param="stream",
            )
        stored = await self._find(caller, request)
        output = _items(stored)[len(_items(stored)) - stored.made :]
        return {**orjson.loads(stored.envelope), "output": output}

    async def forget(self, caller: Caller, request: Request) -> JsonObject:
        wanted = _wanted(request)
        if not await self._store.delete(caller.key, wanted):
            raise missing(wanted, None)
        return {"id": wanted, "object": "response", "deleted": True}

    async def list_items(self, caller: Caller, request: Request) -> JsonObject:
        stored = await self._find(caller, request)
        items = _items(stored)
        given = [_named(item, at, stored) for at, item in enumerate(items)]
        given = given[: len(items) - stored.made]
        return _page(given, request)

    async def cancel(self, caller: Caller, request: Request) -> JsonObject:
        await self._find(caller, request)
        raise GatewayError(
            "Only a response in the background can be cancelled.",
            status=400,
            code="invalid_request",
            mend="Close the connection to stop a response under way.",
        )

    async def _find(self, caller: Caller, request: Request) -> StoredResponse:
        wanted = _wanted(request)
        stored = await self._store.get(caller.key, wanted)
        if stored is None:
            raise missing(wanted, None)
        return stored


def _wanted(request: Request) -> RequestId:
    return RequestId(request.path_params["response_id"])


def _items(stored: StoredResponse) -> list[JsonObject]:
    return as_objects(orjson.loads(stored.items))


def _named(item: JsonObject, at: int, stored: StoredResponse) -> JsonObject:
    """Return an item with the id by which pages are asked for."""
    typed: JsonObject = {"type": "message", **item} if "role" in item else item
    content = typed.get("content")
    if typed.get("role") != "assistant" and isinstance(content, str):
        typed = {**typed, "content": [{"type": "input_text", "text": content}]}
    given = f"in_{stored.id.removeprefix('req-')}{at:04x}"
    return {**typed, "id": as_text(item.get("id")) or given}


def _page(items: list[JsonObject], request: Request) -> JsonObject:
    query = request.query_params
    ordered = items if query.get("order") == "asc" else items[::-1]
    after = query.get("after")
    if after is not None:
        places = [at for at, item in enumerate(ordered) if item["id"] == after]
        if not places:
            raise _wrong("after", "must be the id of an item of the list")
        ordered = ordered[places[0] + 1 :]
    asked = query.get("limit", str(_FEWEST_ITEMS))
    if not (asked.isascii() and asked.isdecimal() and 1 <= int(asked[:4]) <= _MOST_ITEMS):
        raise _wrong("limit", f"must be a whole number from 1 to {_MOST_ITEMS}")
    page: list[JsonValue] = list(ordered[: int(asked)])
    shown = ordered[: int(asked)]
    return {
        "object": "list",
        "data": page,
        "first_id": shown[0]["id"] if shown else None,
        "last_id": shown[-1]["id"] if shown else None,
        "has_more": len(ordered) > len(page),
    }


def _wrong(name: str, what: str) -> GatewayError:
    return GatewayError(f"`{name}` {what}.", status=400, code="invalid_request", param=name)
