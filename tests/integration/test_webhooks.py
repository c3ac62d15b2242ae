"""Webhooks from what happened to whoever receives it, over a database and a socket."""

import asyncio
import base64
import hashlib
import hmac
import json
import socket
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest
from aiohttp import web
from tests.samples import receipt

from turnout.core.govern.happenings import policy_changed, tool_first_seen
from turnout.core.govern.webhooks import Webhook
from turnout.gateway.notices.notices import Notices
from turnout.gateway.notices.posting import HttpPoster
from turnout.gateway.notices.sender import WebhookSender
from turnout.store.database import open_database
from turnout.store.happenings import HappeningsStore
from turnout.store.notices import NoticesStore
from turnout.store.webhooks import WebhooksStore
from turnout.testing.clock import FrozenClock

SECRET = "correct horse"


@dataclass
class Receiver:
    """A server that is told, and answers as it is set to."""

    status: int = 200
    url: str = ""
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    called: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, request):
        """Keep a message and answer it."""
        self.got.append((dict(request.headers), await request.read()))
        self.called.set()
        return web.Response(status=self.status)

    def subjects(self):
        """Return what the messages were about, in order."""
        return [json.loads(body)["data"]["subject"] for _, body in self.got]


@pytest.fixture
async def receiver():
    """Serve one on loopback."""
    one = Receiver()
    app = web.Application()
    app.router.add_post("/in", one.take)
    runner = web.AppRunner(app)
    await runner.setup()
    listening = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listening).start()
    one.url = f"http://127.0.0.1:{listening.getsockname()[1]}/in"
    yield one
    await runner.cleanup()


@asynccontextmanager
async def site(path, clock, secrets=None):
    """Open the stores and a sender on a database file, as a process does."""
    known = {"HOOK_SECRET": SECRET} if secrets is None else secrets
    async with open_database(path) as database, HttpPoster() as poster:
        hooks = WebhooksStore(database)
        yield database, hooks, WebhookSender(hooks, poster, secrets_of(known), clock)


def secrets_of(known):
    """Return what finds the secret of a webhook."""
    return lambda webhook: known.get(webhook.secret_variable)


def hook(receiver, name="hook-1", **more):
    """Return a webhook that leads to a receiver."""
    return Webhook(name, receiver.url, "HOOK_SECRET", allow_private=True, **more)


async def test_a_receiver_can_prove_who_sent_a_message_and_when(tmp_path, receiver):
    """By the secret that both know."""
    clock = FrozenClock()
    async with site(tmp_path / "db", clock) as (database, hooks, sender):
        await hooks.add(hook(receiver), clock.now())
        seen = tool_first_seen(replace(receipt(), at=clock.now()), "shell")
        await HappeningsStore(database).record([seen])
        assert await sender.send_due() == 1
        assert await sender.send_due() == 0
    ((headers, body),) = receiver.got
    stamp, name = headers["webhook-timestamp"], headers["webhook-id"]
    signed = f"{name}.{stamp}.".encode() + body
    digest = hmac.new(SECRET.encode(), signed, hashlib.sha256).digest()
    assert headers["webhook-signature"] == f"v1,{base64.b64encode(digest).decode()}"
    assert (name, int(stamp)) == (seen.id, int(clock.now().timestamp()))
    assert json.loads(body)["type"] == "tool.first_seen"


async def test_what_was_not_taken_is_sent_again_later_and_after_a_restart(tmp_path, receiver):
    """With the same id each time, ever later, until it is taken."""
    clock = FrozenClock()
    receiver.status = 503
    async with site(tmp_path / "db", clock) as (database, hooks, sender):
        await hooks.add(hook(receiver), clock.now())
        changed = policy_changed(clock.now(), "default", 2, author="me", note="")
        await HappeningsStore(database).record([changed])
        await sender.send_due()
        assert await sender.send_due() == 0
        clock.advance(5)
        await sender.send_due()
        clock.advance(19)
        assert await sender.send_due() == 0
        (state,) = await hooks.all()
        assert (state.failure, state.waiting) == ("it answered 503", 1)
    receiver.status = 200
    clock.advance(1)
    async with site(tmp_path / "db", clock) as (_, hooks, sender):
        assert await sender.send_due() == 1
        (state,) = await hooks.all()
        assert (state.waiting, state.paused_until) == (0, None)
    assert [headers["webhook-id"] for headers, _ in receiver.got] == [changed.id] * 3


async def test_a_broken_receiver_keeps_no_other_waiting(tmp_path, receiver):
    """And is asked once, not for each message."""
    clock = FrozenClock()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}/in"
    async with site(tmp_path / "db", clock) as (database, hooks, sender):
        await hooks.add(replace(hook(receiver), id="a-broken", url=nobody), clock.now())
        await hooks.add(hook(receiver), clock.now())
        told = [policy_changed(clock.now(), f"p{n}", 1, author="me", note="") for n in range(3)]
        await HappeningsStore(database).record(told)
        assert await sender.send_due() == 6
        broken, works = await hooks.all()
    assert receiver.subjects() == ["p0", "p1", "p2"]
    assert (broken.waiting, broken.failure) == (3, "it refused the connection")
    assert (works.waiting, works.failure) == (0, "")


async def test_without_its_secret_nothing_is_sent(tmp_path, receiver):
    """An unsigned message is none."""
    clock = FrozenClock()
    async with site(tmp_path / "db", clock, secrets={}) as (database, hooks, sender):
        await hooks.add(hook(receiver), clock.now())
        changed = policy_changed(clock.now(), "default", 2, author="me", note="")
        await HappeningsStore(database).record([changed])
        await sender.send_due()
        (state,) = await hooks.all()
    assert (receiver.got, state.failure) == ([], "HOOK_SECRET is not set")


async def test_after_three_days_a_message_is_given_up(tmp_path, receiver):
    """What is that old is no news; what is newer still waits."""
    clock = FrozenClock()
    receiver.status = 500
    async with site(tmp_path / "db", clock) as (database, hooks, sender):
        await hooks.add(hook(receiver), clock.now())
        store = HappeningsStore(database)
        await store.record([policy_changed(clock.now(), "old", 1, author="me", note="")])
        clock.advance(timedelta(days=3, seconds=1).total_seconds())
        await store.record([policy_changed(clock.now(), "new", 1, author="me", note="")])
        await sender.send_due()
        (state,) = await hooks.all()
    assert (state.waiting, state.dropped) == (1, 1)


async def test_what_a_request_shows_reaches_the_receiver(tmp_path, receiver):
    """From the mark that it leaves, by tasks of their own."""
    clock = FrozenClock()
    async with site(tmp_path / "db", clock) as (database, hooks, sender):
        await hooks.add(hook(receiver, kinds=("tool.outside_list",)), clock.now())
        notices = Notices(NoticesStore(database), clock, on_new=sender.wake)
        sender.start()
        notices.start()
        notices.saw(replace(receipt(), policy="default", at=clock.now()))
        async with asyncio.timeout(10):
            await receiver.called.wait()
        await notices.close()
        await sender.close()
    assert receiver.subjects() == ["run_command"]


async def test_closing_waits_for_what_is_being_sent(tmp_path, receiver):
    """It need not be sent again after the next start."""
    clock = FrozenClock()
    asked, answer = asyncio.Event(), asyncio.Event()

    class SlowPoster:
        """Answers when it is told to."""

        async def post(self, url, headers, body, *, allow_private):
            """Send nothing."""
            asked.set()
            await answer.wait()

    async with open_database(tmp_path / "db") as database:
        hooks = WebhooksStore(database)
        sender = WebhookSender(hooks, SlowPoster(), secrets_of({"HOOK_SECRET": SECRET}), clock)
        await hooks.add(hook(receiver), clock.now())
        changed = policy_changed(clock.now(), "default", 2, author="me", note="")
        await HappeningsStore(database).record([changed])
        sender.start()
        await asyncio.wait_for(asked.wait(), 5)
        closing = asyncio.create_task(sender.close())
        await asyncio.sleep(0)
        answer.set()
        await closing
        (state,) = await hooks.all()
    assert (state.waiting, state.failure) == (0, "")
