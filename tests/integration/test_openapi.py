"""The OpenAPI document is true, and nothing that fits it, or nearly, makes the service fail."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
import schemathesis
from hypothesis import HealthCheck, given, settings
from requests import Request
from schemathesis import GenerationMode
from starlette.routing import Route
from tests.integration.governed import authenticate
from tests.integration.real_service import RealService, real_service
from tests.unit.web.rooms import END, now
from yarl import URL

from turnout.core.ids import RunId
from turnout.core.service.orders import Order
from turnout.core.tasks import Task
from turnout.gateway.routes.counting import counting_routes
from turnout.gateway.routes.models import model_routes
from turnout.gateway.routes.receipts import receipt_routes
from turnout.gateway.routes.responses import response_routes
from turnout.gateway.wire.shapes import CHAT, MESSAGES, RESPONSES
from turnout.store.orders import OrdersStore

pytestmark = pytest.mark.asyncio(loop_scope="module")

ENDED_RUN = RunId("run-0123456789ab")
MEMBER, ADMIN = "red-approver", "boss"
EXAMPLES = 4
AT_ONCE = 8


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RealService]:
    """Serve, with a run that has ended, so that nobody who follows it waits."""
    async with real_service(tmp_path_factory.mktemp("openapi")) as service:
        order = Order(Task("Fix it.", "shop"), "red", "red-member")
        await OrdersStore(service.database).submit(ENDED_RUN, order, now())
        await service.begun(ENDED_RUN, *END)
        yield service


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Open a client that waits for no answer for ever."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(30)) as http:
        yield http


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def document(service: RealService, http: aiohttp.ClientSession) -> Any:
    """Read it from the service itself."""
    async with http.get(f"{service.url}/openapi.json") as answer:
        return schemathesis.openapi.from_dict(await answer.json())


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


def requests_of(operation, base_url: str) -> list[tuple[Any, str]]:
    """Return requests that fit an operation, and some that do not, and who sends each."""
    found = []

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        derandomize=True,
    )
    @given(
        case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
        | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)
    )
    def made(case) -> None:
        strange = Request(**case.as_transport_kwargs(base_url=base_url)).prepare()
        meet(case)
        likely = Request(**case.as_transport_kwargs(base_url=base_url)).prepare()
        found.extend([(strange, MEMBER), (likely, MEMBER), (likely, ADMIN)])

    made()
    return found


async def test_nothing_makes_the_service_fail(
    document, service: RealService, http: aiohttp.ClientSession
) -> None:
    """No 5xx, whatever is sent, by an admin or by others, however much of it at once."""
    operations = [found.ok() for found in document.get_all_operations()]
    known = {"POST /chat/completions", "PUT /policies/{name}", "GET /runs/{run_id}/events"}
    assert known <= {o.label for o in operations}
    room = asyncio.Semaphore(AT_ONCE)

    async def answered(made, caller: str) -> None:
        headers = {**made.headers, "authorization": f"Bearer {service.keys[caller]}"}
        headers.pop("Content-Length", None)
        url = URL(made.url, encoded=True)
        async with room, http.request(made.method, url, data=made.body, headers=headers) as answer:
            text = await answer.text(errors="replace")
            assert answer.status < 500, (caller, made.method, made.url, made.body, text)

    for operation in operations:
        sent = requests_of(operation, service.url)
        await asyncio.gather(*(answered(one, caller) for one, caller in sent))


async def test_no_route_reads_a_body_that_is_too_large(document, service: RealService) -> None:
    """It is refused by what it says of itself, before any of it has come."""

    async def refused(method: str, path: str) -> None:
        url = URL(f"{service.url}{path.format(name='team', run_id=ENDED_RUN)}")
        reader, writer = await asyncio.open_connection(url.host, url.port)
        head = (
            f"{method} {url.raw_path} HTTP/1.1\r\nhost: {url.authority}\r\n"
            f"authorization: Bearer {service.keys[ADMIN]}\r\n"
            "content-type: application/json\r\ncontent-length: 100000000\r\n\r\n"
        )
        writer.write(head.encode())
        async with asyncio.timeout(10):
            status = (await reader.readline()).split()[1]
        writer.close()
        assert status == b"413", (method, path, status)

    operations = [found.ok() for found in document.get_all_operations()]
    taking = [o for o in operations if "requestBody" in o.definition.raw]
    assert len(taking) > 10
    await asyncio.gather(*(refused(o.method.upper(), o.path) for o in taking))


async def test_every_model_route_is_documented(document) -> None:
    """They are written by hand, so somebody has to look."""
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
