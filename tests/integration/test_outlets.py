"""What leaves the service once a run has ended: told, pushed, drafted, on real servers."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from turnout.core.clock import SystemClock
from turnout.core.events import Event, Explained, PatchMade, RunEnded, RunStarted
from turnout.core.govern.happenings import Happening
from turnout.core.ids import RunId
from turnout.core.runs import FileChange, Patch
from turnout.core.service.forges import Origin
from turnout.core.service.orders import Order
from turnout.core.service.publications import Publication
from turnout.core.tasks import Task
from turnout.errors import DeliveryError, UsageError
from turnout.gateway.notices.signing import project_secret, signed_headers
from turnout.runs.publish.push import Change
from turnout.settings import Settings, load_settings
from turnout.store.database import Database, open_database
from turnout.store.orders import OrdersStore
from turnout.store.publications import PublicationsStore
from turnout.store.record import RecordStore
from turnout.testing.forges import ScriptedForge, running_forge
from turnout.testing.git import GitServer
from turnout.testing.loopback import LoopbackServer
from turnout.testing.repositories import TinyRepository
from turnout.wiring.serving.outlets import Outlets, check_draft, check_notify, open_outlets
from turnout.wiring.serving.reach import Reach

RUN = RunId("run-0123456789ab")
SECRETS = {"HOOKS": "hook-secret", "SHOP_TOKEN": "git-token", "HUB_TOKEN": "hub-token"}
DIFF = b"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n"
PATCH = Patch(b"diff --git a/a.py b/a.py\n" + DIFF, (FileChange("a.py", "modified", 1, 1),))


class Receiver(LoopbackServer):
    """Takes notifications, but not the first."""

    def __init__(self) -> None:
        super().__init__()
        self.got: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()

    def _routes(self) -> Sequence[web.RouteDef]:
        return [web.post("/v1/in", self._take)]

    async def _take(self, request: web.Request) -> web.Response:
        body = await request.read()
        self.got.put_nowait(({k.lower(): v for k, v in request.headers.items()}, body))
        return web.Response(status=204)

    async def next(self) -> tuple[dict[str, str], bytes]:
        """Return the next message; a test that waits too long fails."""
        async with asyncio.timeout(20):
            return await self.got.get()


@dataclass
class House:
    """A database with one run, and the servers around it."""

    settings: Settings
    database: Database
    tiny: TinyRepository
    git: GitServer
    hub: ScriptedForge
    receiver: Receiver
    clock: SystemClock = field(default_factory=SystemClock)
    seen: list[Happening] = field(default_factory=list)

    async def ended(self, order: Order) -> None:
        """Have a run of this order begun and ended."""
        orders, records = OrdersStore(self.database), RecordStore(self.database)
        await orders.submit(RUN, order, self.clock.now())
        run = await orders.claim("w", lambda _: RUN, self.clock.now())
        assert run is not None
        events: tuple[Event, ...] = (
            RunStarted(order.task, self.tiny.head, "loop"),
            PatchMade(PATCH),
            Explained("One was wrong."),
            RunEnded("answered", "Done."),
        )
        for event in events:
            await records.append(RUN, run.epoch, event, self.clock.now())

    def outlets(self, *, publishes: bool) -> AbstractAsyncContextManager[Outlets]:
        """Open what sends and publishes."""
        return open_outlets(
            self.settings, self.database, self.clock, publishes=publishes, told=self.seen.append
        )

    async def publication(self) -> Publication:
        """Return how far it is."""
        return (await PublicationsStore(self.database).of([RUN]))[RUN]


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    """Open everything; the settings name it all as a user would."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    tiny = TinyRepository(tmp_path / "work", {"a.py": "1\n"})
    tiny.git("clone", "--quiet", "--bare", str(tiny), str(tmp_path / "served" / "shop.git"))
    async with AsyncExitStack() as stack:
        git = await stack.enter_async_context(GitServer(tmp_path / "served", SECRETS["SHOP_TOKEN"]))
        scripted = ScriptedForge("github", SECRETS["HUB_TOKEN"])
        hub = await stack.enter_async_context(running_forge(scripted))
        receiver = await stack.enter_async_context(Receiver())
        config = tmp_path / "turnout.toml"
        config.write_text(_configuration(git.url("shop.git"), hub.api, tiny.path))
        settings = load_settings(
            config=config, environment={"TURNOUT_HOME": str(tmp_path / "home")}, directory=tmp_path
        )
        database = await stack.enter_async_context(open_database(tmp_path / "turnout.db"))
        yield House(settings, database, tiny, git, hub, receiver)


def _configuration(git: str, hub: str, folder: Path) -> str:
    return f"""
[service.notify]
secret_env = "HOOKS"
allow_private = true

[service.repositories]
plain = "{folder}"

[service.repositories.shop]
url = "{git}"
credential_env = "SHOP_TOKEN"
push = true

[service.forges.hub]
kind = "github"
api = "{hub}"
secret_env = "HUB_SECRET"
token_env = "HUB_TOKEN"
key = "hub"
repositories = {{ "acme/shop" = "shop" }}
"""


def ordered(house: House) -> Order:
    """Return an order with all that can be asked for."""
    return Order(
        Task("Mend it", "shop"),
        "red",
        "key",
        notify=f"{house.receiver.base_url}/in",
        publish="draft",
        origin=Origin("hub", "acme/shop", "issue", 12, "ann"),
    )


async def test_a_run_is_told_pushed_drafted_and_commented_on(house: House) -> None:
    """Also where the processes that had it are gone: all is in the database."""
    await house.ended(ordered(house))
    async with house.outlets(publishes=True):
        messages = [await house.receiver.next() for _ in range(3)]
    kinds = [json.loads(body)["type"] for _, body in messages]
    assert kinds == ["run.started", "run.ended", "run.published"]
    branch = house.git.git("shop.git", "rev-parse", f"refs/heads/turnout/{RUN}")
    done = await house.publication()
    assert (done.state, done.commit) == ("done", branch)
    assert [one.kind for one in house.seen] == ["run.published"]
    assert house.git.git("shop.git", "show", f"{branch}:a.py") == "2"
    (request,) = house.hub.requests
    assert request["html_url"] == done.link
    assert (request["asked"]["draft"], request["asked"]["base"]) == (True, "main")
    (said,) = house.hub.comments["issue", 12]
    assert done.link in said


async def test_a_message_proves_of_which_project_it_is(house: House) -> None:
    """Its secret follows from that of the service, and says nothing of others."""
    await house.ended(ordered(house))
    async with house.outlets(publishes=False):
        headers, body = await house.receiver.next()
    clock = (
        house.clock.now()
        .replace(microsecond=0)
        .fromtimestamp(int(headers["webhook-timestamp"]), tz=house.clock.now().tzinfo)
    )
    mine, other = (project_secret(SECRETS["HOOKS"], name) for name in ("red", "blue"))
    sent = headers["webhook-signature"]
    name = headers["webhook-id"]
    assert signed_headers(mine, name, clock, body)["webhook-signature"] == sent
    assert signed_headers(other, name, clock, body)["webhook-signature"] != sent


async def test_a_private_repository_is_at_hand_before_a_sandbox_asks_for_it(
    house: House, tmp_path: Path
) -> None:
    """What makes bases has no token; nothing of it lies in the state folder."""
    reach, url = Reach(house.settings), house.git.url("shop.git")
    assert (await reach.resolve(url, "main")).commit == house.tiny.head
    await reach.fetch(url, house.tiny.head)
    asked = len(house.git.asked)
    compared = await reach.compare(url, house.tiny.head, house.tiny.head)
    assert (compared.diff, len(house.git.asked)) == (b"", asked)
    files = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert files
    assert not any(SECRETS["SHOP_TOKEN"].encode() in path.read_bytes() for path in files)


async def test_what_a_service_does_not_do_is_refused_with_a_mend(house: House) -> None:
    """Before an order is taken, and where the settings have changed since."""
    with pytest.raises(UsageError, match="no address"):
        check_notify(house.settings, "ftp://hooks.example.org")
    with pytest.raises(UsageError, match="No forge"):
        check_draft(house.settings, "plain")
    check_draft(house.settings, "shop")
    change = Change(house.tiny.head, PATCH.diff, "Mend it", house.clock.now())
    with pytest.raises(DeliveryError, match="any more"):
        await Reach(house.settings).push("plain", RUN, change)
