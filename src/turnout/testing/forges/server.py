"""The part of a forge's REST API that is asked for here, kept in memory.

async with running_forge(ScriptedForge("github", token)) as forge:
    ...  # a `Forge` with api=forge.api and that token
assert forge.comments["issue", 12] == ["…"]
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from turnout.core.service.forges import ForgeKind, Standing, ThreadKind
from turnout.gateway.server import serve

__all__ = ["Account", "ScriptedForge", "running_forge"]

_LEVELS: dict[Standing, int] = {"none": 10, "write": 30, "maintain": 40, "admin": 50}


@dataclass(frozen=True, slots=True)
class Account:
    """Somebody at the forge."""

    number: int
    standing: Standing


@dataclass(slots=True)
class ScriptedForge:
    """What the forge holds, saw and does."""

    kind: ForgeKind
    token: str
    """Of the only account that may use the API."""
    path: str = "acme/shop"
    """Of its only repository."""
    people: dict[str, Account] = field(
        default_factory=lambda: {"ann": Account(7, "write"), "eve": Account(9, "none")}
    )
    requests: list[dict[str, Any]] = field(default_factory=list)
    """Pull or merge requests, as the API shows them, and as they were asked for in `asked`."""
    comments: dict[tuple[ThreadKind, int], list[str]] = field(
        default_factory=lambda: defaultdict(list)
    )
    told: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once there is a comment."""
    diff: bytes = b"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-a\n+b\n"
    base: str = "b" * 40
    nods: list[str] = field(default_factory=list)
    """Paths of what was given a sign, below the repository."""
    failing: list[int] = field(default_factory=list)
    """Statuses that the next requests are answered with; each counts once."""
    seen: list[tuple[str, str]] = field(default_factory=list)
    """Method and path of each request, as they were sent."""
    api: str = ""


@asynccontextmanager
async def running_forge(forge: ScriptedForge) -> AsyncIterator[ScriptedForge]:
    """Serve on the loopback interface until the block ends."""
    routes = _github(forge) if forge.kind == "github" else _gitlab(forge)
    app = _Guarded(forge, Starlette(routes=routes))
    async with serve(app, host="127.0.0.1", port=0) as bound:
        forge.api = bound.base_url
        yield forge


@dataclass(frozen=True, slots=True)
class _Guarded:
    forge: ScriptedForge
    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        forge, request = self.forge, Request(scope)
        # Parts of a path are told apart as they were quoted.
        raw = scope["raw_path"].decode().partition("?")[0]
        forge.seen.append((request.method, raw))
        sent = request.headers.get("authorization" if forge.kind == "github" else "private-token")
        wanted = f"Bearer {forge.token}" if forge.kind == "github" else forge.token
        if forge.failing:
            answer: ASGIApp = JSONResponse({"message": "not now"}, forge.failing.pop(0))
        elif sent != wanted:
            answer = JSONResponse({"message": "Bad credentials"}, 401)
        else:
            answer = self.app
        await answer({**scope, "path": raw}, receive, send)


def _github(forge: ScriptedForge) -> list[Route]:
    root = f"/repos/{forge.path}"

    async def repository(_: Request) -> Response:
        return JSONResponse({"full_name": forge.path, "default_branch": "main"})

    async def permission(request: Request) -> Response:
        account = forge.people.get(request.path_params["who"])
        if account is None:
            return JSONResponse({"message": "Not Found"}, 404)
        role = "read" if account.standing == "none" else account.standing
        coarse = "write" if role == "maintain" else role
        said = {"permission": coarse, "role_name": role, "user": {"id": account.number}}
        return JSONResponse(said)

    async def pulls(request: Request) -> Response:
        if request.method == "GET":
            branch = request.query_params["head"].partition(":")[2]
            return JSONResponse([one for one in forge.requests if one["head"]["ref"] == branch])
        asked = await request.json()
        if any(one["head"]["ref"] == asked["head"] for one in forge.requests):
            return JSONResponse({"message": "A pull request already exists"}, 422)
        number = 100 + len(forge.requests)
        url = f"https://forge.example.org/{forge.path}/pull/{number}"
        made = {"number": number, "html_url": url, "head": {"ref": asked["head"]}, "asked": asked}
        forge.requests.append(made)
        return JSONResponse(made, 201)

    async def pull(_: Request) -> Response:
        return JSONResponse({"base": {"sha": "a" * 40}, "head": {"sha": "c" * 40}})

    async def compare(request: Request) -> Response:
        if request.headers["accept"].endswith(".diff"):
            return PlainTextResponse(forge.diff)
        return JSONResponse({"merge_base_commit": {"sha": forge.base}})

    return [
        Route(f"{root}/issues/{{what:path}}/reactions", _nods(forge), methods=["POST"]),
        Route(root, repository),
        Route(f"{root}/collaborators/{{who}}/permission", permission),
        Route(f"{root}/pulls", pulls, methods=["GET", "POST"]),
        Route(f"{root}/pulls/{{number:int}}", pull),
        Route(f"{root}/compare/{'a' * 40}...{'c' * 40}", compare),
        Route(
            f"{root}/issues/{{number:int}}/comments",
            _thread(forge, "issue", 201),
            methods=["GET", "POST"],
        ),
    ]


def _gitlab(forge: ScriptedForge) -> list[Route]:
    root = f"/projects/{forge.path.replace('/', '%2F')}"

    async def project(_: Request) -> Response:
        return JSONResponse({"path_with_namespace": forge.path, "default_branch": "main"})

    async def member(request: Request) -> Response:
        number = request.path_params["who"]
        found = [one for one in forge.people.values() if one.number == number]
        if not found:
            return JSONResponse({"message": "404 Not found"}, 404)
        return JSONResponse({"access_level": _LEVELS[found[0].standing], "state": "active"})

    async def requests(request: Request) -> Response:
        if request.method == "GET":
            branch = request.query_params["source_branch"]
            return JSONResponse([one for one in forge.requests if one["source_branch"] == branch])
        asked = await request.json()
        if any(one["source_branch"] == asked["source_branch"] for one in forge.requests):
            return JSONResponse({"message": ["Another open merge request already exists"]}, 409)
        number = 100 + len(forge.requests)
        url = f"https://forge.example.org/{forge.path}/-/merge_requests/{number}"
        made = {"web_url": url, "source_branch": asked["source_branch"], "asked": asked}
        forge.requests.append(made)
        return JSONResponse(made, 201)

    async def request_(_: Request) -> Response:
        return JSONResponse({"diff_refs": {"base_sha": forge.base}})

    async def diffs(_: Request) -> Response:
        return PlainTextResponse(forge.diff)

    both = ["GET", "POST"]
    return [
        Route(f"{root}/{{what:path}}/award_emoji", _nods(forge), methods=["POST"]),
        Route(root, project),
        Route(f"{root}/members/all/{{who:int}}", member),
        Route(f"{root}/merge_requests", requests, methods=both),
        Route(f"{root}/merge_requests/{{number:int}}", request_),
        Route(f"{root}/merge_requests/{{number:int}}/raw_diffs", diffs),
        Route(
            f"{root}/merge_requests/{{number:int}}/notes",
            _thread(forge, "pull", 201),
            methods=both,
        ),
        Route(f"{root}/issues/{{number:int}}/notes", _thread(forge, "issue", 201), methods=both),
    ]


def _nods(forge: ScriptedForge) -> Any:
    async def nod(request: Request) -> Response:
        forge.nods.append(request.path_params["what"])
        return JSONResponse(await request.json(), 201)

    return nod


def _thread(forge: ScriptedForge, thread: ThreadKind, made: int) -> Any:
    async def comments(request: Request) -> Response:
        said = forge.comments[thread, request.path_params["number"]]
        if request.method == "POST":
            said.append((await request.json())["body"])
            forge.told.set()
            return JSONResponse({"body": said[-1]}, made)
        size, page = int(request.query_params["per_page"]), int(request.query_params["page"])
        newest = said if forge.kind == "github" else said[::-1]
        shown = newest[(page - 1) * size : page * size]
        return JSONResponse([{"body": text} for text in shown])

    return comments
