"""What a worker on another machine asks its gateway beside model calls, over real HTTP."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack

import pytest
from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from tests.unit.gateway.admin.admin_app import CATALOG, Explained

from turnout.core.clock import SystemClock
from turnout.core.inference import ModelRequest, RoutingAsk
from turnout.core.money import Micros
from turnout.core.service.options import ServiceAddress
from turnout.core.service.orders import Order, OrderLimits
from turnout.core.tasks import Task
from turnout.errors import GatewayError, ModelUnavailableError
from turnout.gateway.access import sent_key
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.exchange import Caller
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.server import serve
from turnout.runs.ports import ModelAccess
from turnout.testing.clock import FrozenClock
from turnout.testing.model_client import ScriptedModelClient
from turnout.testing.stores import MemoryPoliciesStore
from turnout.web.workers.client import AWAY, AccessClient
from turnout.web.workers.routes import Access, workers_router
from turnout.wiring.serving.models import RemoteModels, open_remote_models

ORDER = Order(Task("Fix it.", "shop"), "web", "ci", limits=OrderLimits(max_spend=Micros(5)))
MODEL_REQUEST = ModelRequest((), "act", RoutingAsk(), "key-1")
KEYS = {
    "worker": Caller("machines", role="worker"),
    "member": Caller("ci", "web", role="member"),
    "admin": Caller("boss", admin=True),
}


def authenticate(headers: Mapping[str, str]) -> Caller:
    """Admit the callers above by their key."""
    caller = KEYS.get(sent_key(headers))
    if caller is None:
        raise GatewayError("The API key is wrong.", status=401, code="invalid_api_key")
    return caller


def ways(behalf: str, max_spend: Micros | None) -> ModelAccess:
    """Say what was asked, or that no model may work on it."""
    if behalf == "poor/web/":
        raise ModelUnavailableError("No model may.", mend="Raise the cap.")
    client = ScriptedModelClient()
    return ModelAccess(client, "loop", (f"{behalf} {max_spend}",), "repair")


def served() -> FastAPI:
    """Return the application that a gateway answers workers with."""
    store, clock = MemoryPoliciesStore(), FrozenClock()
    desk = PolicyDesk(store, CATALOG, clock)
    parts = AdminParts(authenticate, desk, Explained(), {}, [workers_router(ways)], clock=clock)
    app = FastAPI()
    app.mount("/v1", build_admin(parts))
    return app


@pytest.fixture
async def gateway() -> AsyncIterator[str]:
    """Serve it, and hand out its address."""
    async with serve(served(), host="127.0.0.1") as bound:
        yield bound.base_url


async def asked(url: str, key: str, behalf: str = "", max_spend: Micros | None = None) -> Access:
    """Ask once."""
    async with AccessClient(ServiceAddress(url, key)) as client:
        return await client.access(behalf, max_spend)


async def test_a_worker_learns_how_models_are_worked_with(gateway: str) -> None:
    """For whom it names, under the cap of the order; without a name its key alone is looked at."""
    found = await asked(gateway, "worker", "ci/web/team", Micros(7))
    assert found == Access(strategy="loop", escalated="repair", warnings=("ci/web/team 7",))
    assert await asked(gateway, "worker") == Access(strategy="loop")
    with pytest.raises(ModelUnavailableError, match="No model may"):
        await asked(gateway, "worker", "poor/web/")


@pytest.mark.parametrize(("key", "status"), [("wrong", 401), ("member", 403), ("admin", 403)])
async def test_other_keys_learn_nothing(gateway: str, key: str, status: int) -> None:
    """The error names what mends it."""
    with pytest.raises(GatewayError, match="--role worker") as refused:
        await asked(gateway, key, "ci/web/")
    assert refused.value.status == status


@pytest.mark.parametrize("key", ["wrong", "member"])
async def test_no_worker_begins_with_a_key_that_its_gateway_refuses(gateway: str, key: str) -> None:
    """Whatever is wrong with the key, the environment is not fit."""
    async with AsyncExitStack() as stack:
        with pytest.raises(ModelUnavailableError, match="--role worker"):
            await open_remote_models(ServiceAddress(gateway, key), SystemClock(), print, stack)


async def test_a_gateway_that_is_away_or_another_program_is_told_of() -> None:
    """Both may pass: the address may be that of the gateway in a moment."""
    async with serve(served(), host="127.0.0.1") as bound:
        gone = bound.base_url

    async def other(request: Request) -> Response:
        return PlainTextResponse("hello", 200 if "worker" in str(request.url) else 404)

    app = FastAPI()
    app.add_route("/{path:path}", other)
    async with serve(app, host="127.0.0.1") as bound:
        for url in (gone, bound.base_url):
            with pytest.raises(GatewayError) as away:
                await asked(url, "worker")
            assert (away.value.code, away.value.status) == (AWAY, 503)


class _Asking(AccessClient):
    """A gateway that is away for a while."""

    def __init__(self, away: int) -> None:
        super().__init__(ServiceAddress("http://gateway.example.org", "worker"))
        self.away = away
        self.asked: list[tuple[str, Micros | None]] = []

    async def access(self, behalf: str = "", max_spend: Micros | None = None) -> Access:
        self.asked.append((behalf, max_spend))
        if len(self.asked) <= self.away:
            raise GatewayError("It is away.", status=503, code=AWAY)
        return Access(strategy="repair", warnings=("told",))


async def test_a_run_waits_for_a_gateway_that_is_away() -> None:
    """For a quarter of an hour; then it ends with the reason, as its model calls would."""
    address = ServiceAddress("http://gateway.example.org", "worker")
    asking = _Asking(3)
    async with RemoteModels(address, asking, FrozenClock()).of(ORDER) as access:
        assert (access.strategy, access.warnings) == ("repair", ("told",))
    assert asking.asked == [("ci/web/", Micros(5))] * 4
    clock = FrozenClock()
    began = clock.monotonic()
    with pytest.raises(ModelUnavailableError, match="It is away"):
        async with RemoteModels(address, _Asking(10_000), clock).of(ORDER):
            pass
    assert 900 <= clock.monotonic() - began < 920


async def test_the_way_to_models_is_charged_to_whoever_ordered() -> None:
    """The worker's own key opens the gateway, the header says for whom it asks."""
    seen: dict[str, str] = {}

    async def refuse(request: Request) -> Response:
        seen.update(request.headers)
        return Response(b"{}", 401)

    app = FastAPI()
    app.add_route("/v1/chat/completions", refuse, methods=["POST"])
    async with serve(app, host="127.0.0.1") as bound:
        address = ServiceAddress(bound.base_url, "worker")
        async with RemoteModels(address, _Asking(0), SystemClock()).of(ORDER) as access:
            with pytest.raises(GatewayError):
                await access.client.call(MODEL_REQUEST)
    assert seen["authorization"] == "Bearer worker"
    assert seen["x-turnout-on-behalf"] == "ci/web/"
