"""The OpenAPI document is true, and nothing that fits it, or nearly, makes the gateway fail."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from starlette.routing import Route
from tests.integration.governed import Governed, Rooms, authenticate, governed
from tests.unit.web.rooms import BOOK, END, Service, now

from turnout.core.clock import SystemClock
from turnout.core.ids import RunId
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.gateway.admin.keys import keys_router
from turnout.gateway.admin.noticed import noticed_router
from turnout.gateway.admin.usage import usage_router
from turnout.gateway.admin.webhooks import webhooks_router
from turnout.gateway.keys.desk import KeyDesk
from turnout.gateway.notices.desk import WebhookDesk
from turnout.gateway.routes.counting import counting_routes
from turnout.gateway.routes.models import model_routes
from turnout.gateway.routes.receipts import receipt_routes
from turnout.gateway.routes.responses import response_routes
from turnout.gateway.wire.shapes import CHAT, MESSAGES, RESPONSES
from turnout.store.database import open_database
from turnout.store.happenings import HappeningsStore
from turnout.store.keys import KeysStore
from turnout.store.orders import OrdersStore
from turnout.store.record import RecordStore
from turnout.store.tools import ToolsStore
from turnout.store.usage import UsageStore
from turnout.store.webhooks import WebhooksStore
from turnout.testing.exchange import deployment
from turnout.testing.gateway import catalog_at
from turnout.testing.model_server import ScriptedModelServer, Turn
from turnout.web.runs.routes import RunParts, runs_router

ENDED_RUN = RunId("run-0123456789ab")
TURNS = {"m": [Turn(text="Done.")] * 2_000}


@asynccontextmanager
async def whole_gateway(folder: Path) -> AsyncIterator[Governed]:
    """Serve every route, on stores in a file and a scripted model."""
    clock = SystemClock()
    async with AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(folder / "turnout.db"))
        server = await stack.enter_async_context(ScriptedModelServer(TURNS))
        tools = ToolsStore(database)
        runs = Service(OrdersStore(database), RecordStore(database))
        await ended_run(runs)
        await stack.enter_async_context(runs.following)
        routers = [
            runs_router(RunParts(runs.desk, BOOK)),
            keys_router(KeyDesk(KeysStore(database), clock)),
            usage_router(UsageStore(database), clock),
            noticed_router(tools, HappeningsStore(database), clock),
            webhooks_router(WebhookDesk(WebhooksStore(database), clock)),
        ]
        catalog = catalog_at(server.base_url, deployment("p/m"))
        it = await stack.enter_async_context(governed(catalog, rooms=Rooms(routers, reports=tools)))
        await it.apply("team", tools={"mode": "dry_run", "allow": ["read_file"]})
        yield it


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve in a thread of its own, as the client here blocks."""
    started, ending = threading.Event(), asyncio.Event()
    found: list[str] = []
    loops: list[asyncio.AbstractEventLoop] = []

    async def serving() -> None:
        loops.append(asyncio.get_running_loop())
        async with whole_gateway(tmp_path_factory.mktemp("openapi")) as it:
            found.append(it.gateway.base_url)
            started.set()
            await ending.wait()

    thread = threading.Thread(target=asyncio.run, args=(serving(),), daemon=True)
    thread.start()
    assert started.wait(30)
    yield found[0]
    loops[0].call_soon_threadsafe(ending.set)
    thread.join(30)


async def ended_run(runs: Service) -> None:
    """Keep a run that has ended, so that nobody who follows it waits."""
    order = Order(Task("Fix it.", "shop"), "default", "boss")
    await runs.orders.submit(ENDED_RUN, order, now())
    await runs.begun(ENDED_RUN, *END)


def meet(case) -> None:
    """Have a request name what is there, so that it gets further than to a 404."""
    if "name" in case.path_parameters:
        case.path_parameters["name"] = "team"
    if "run_id" in case.path_parameters:
        case.path_parameters["run_id"] = ENDED_RUN
    if isinstance(case.body, dict) and "repo" in case.body:
        case.body["repo"] = "shop"
    for body in (case.body, case.body.get("request") if isinstance(case.body, dict) else None):
        if isinstance(body, dict) and "model" in body:
            body["model"] = "auto"
            body.pop("routing", None)


def check(operation, base_url: str) -> None:
    """Send requests that fit an operation, and some that do not, of an admin and of others."""

    @settings(
        max_examples=10,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(
        case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def fits(case) -> None:
        for key in ("dev", "boss"):
            answer = case.call(base_url=base_url, headers={"authorization": f"Bearer {key}"})
            case.validate_response(answer, checks=[not_a_server_error])
            meet(case)

    fits()


def test_nothing_makes_the_gateway_fail(base_url: str) -> None:
    """No 5xx, whatever is sent."""
    document = schemathesis.openapi.from_url(f"{base_url}/openapi.json")
    operations = [found.ok() for found in document.get_all_operations()]
    known = {"POST /chat/completions", "PUT /policies/{name}", "GET /runs/{run_id}/events"}
    assert known <= {o.label for o in operations}
    for operation in operations:
        check(operation, base_url)


def test_every_route_but_the_document_takes_a_key(base_url: str) -> None:
    """Of every operation that is documented."""
    document = schemathesis.openapi.from_url(f"{base_url}/openapi.json")
    for operation in (found.ok() for found in document.get_all_operations()):
        path = dict.fromkeys(operation.path_parameters.schema["properties"], "team")
        case = operation.Case(path_parameters=path)
        answer = case.call(base_url=base_url, headers={"authorization": "Bearer wrong"})
        assert answer.status_code == 401, operation.label


def test_every_model_route_is_documented(base_url: str) -> None:
    """They are written by hand, so somebody has to look."""
    document = schemathesis.openapi.from_url(f"{base_url}/openapi.json")
    documented = document.raw_schema["paths"]
    for route in other_routes():
        path = route.path.replace(":path", "")
        assert {m.lower() for m in route.methods or ()} - {"head"} <= set(documented[path]), path
    assert {"/chat/completions", "/messages", "/responses"} <= set(documented)


def other_routes() -> list[Route]:
    """Return the routes of models that are not the model calls; none of them is called."""
    engine: Any = None
    stored: Any = None
    return [
        *model_routes(engine, authenticate, CHAT, MESSAGES),
        *receipt_routes(engine, authenticate, CHAT),
        *response_routes(stored, authenticate, RESPONSES),
        *counting_routes(engine, authenticate, MESSAGES),
    ]
