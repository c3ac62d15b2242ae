"""What a page that is open is told, as it happens and after it was away."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import aiohttp
import pytest
from tests.unit.web.console.runs.told import END, step
from tests.unit.web.console.seen import Console, Person
from tests.unit.web.rooms import ASKED, CALLERS, now

from turnout.core.ids import RunId, ToolCallId
from turnout.core.service.orders import Answer
from turnout.gateway.server import serve
from turnout.web.console.doors import COOKIE
from turnout.web.runs.streams import Streams

PATIENCE = 20.0


@asynccontextmanager
async def following(
    console: Console, run_id: RunId, query: str = "", *, last: str = ""
) -> AsyncIterator[aiohttp.ClientResponse]:
    """Open the stream of a run's page, as a page that is signed in does."""
    person = console.person()
    headers = {"cookie": f"{COOKIE}={person.cookie}", "hx-request": "true"}
    if last:
        headers["last-event-id"] = last
    async with (
        serve(console.app, host="127.0.0.1", port=0) as bound,
        aiohttp.ClientSession(headers=headers) as session,
        session.get(f"{bound.base_url}/console/runs/{run_id}/live{query}") as answer,
    ):
        yield answer


async def told_next(answer: aiohttp.ClientResponse) -> tuple[str, str]:
    """Return the id and the markup of what a page is told next."""
    last, lines = "", []
    async with asyncio.timeout(PATIENCE):
        async for raw in answer.content:
            line = raw.decode().rstrip("\n")
            if line.startswith("id: "):
                last = line[4:]
            elif line.startswith("data: "):
                lines.append(line[6:])
            elif not line and lines:
                return last, "\n".join(lines)
    pytest.fail("the stream ended before it said anything")


async def news(answer: aiohttp.ClientResponse) -> tuple[int, str]:
    """Return the place and the markup of what a page is told next."""
    last, told = await told_next(answer)
    return int(last.partition(".")[0]), told


def seen(person: Person, run_id: RunId) -> str:
    """Return where the stream of a page that was just opened begins."""
    page = person.get(f"/runs/{run_id}").text
    at = page.index(f"/console/runs/{run_id}/live")
    return page[at : page.index('"', at)].partition("/live")[2].replace("&amp;", "&")


async def test_a_page_is_told_what_is_new_as_it_happens() -> None:
    """A row that it has is told again where it has changed; nothing is told twice."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, *step(1)[:2])
    query = seen(console.person(), run_id)
    async with following(console, run_id, query) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        for event in step(1)[2:4]:
            await console.service.records.append(run_id, run.epoch, event, now())
        console.service.following.wake(run_id)
        place, told = await news(answer)
        assert place == 5
        assert '<li id="e3" class="call " hx-swap-oob="outerMorph">' in told
        assert 'hx-swap-oob="beforeend:#rows"><li id="e5" class="tool ">' in told
        assert 'id="e2"' not in told
        await console.service.records.append(run_id, run.epoch, step(1)[4], now())
        console.service.following.wake(run_id)
        place, told = await news(answer)
        assert (place, 'id="e3"' in told, 'id="e5"' in told) == (6, False, True)


async def test_a_page_that_was_away_is_told_what_it_missed() -> None:
    """From where it says that it was."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *step(1), *step(2))
    async with following(console, run_id, "?seen=0", last="6") as answer:
        place, told = await news(answer)
        assert place == 11
        assert 'id="e6"' not in told
        assert 'id="e7"' in told


async def test_a_page_is_told_that_a_call_waits() -> None:
    """Though nothing is on record by then but the question."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, ASKED)
    query = seen(console.person(), run_id)
    async with following(console, run_id, query) as answer:
        await console.service.orders.wait(run_id, run.epoch, ASKED)
        console.service.following.wake(run_id)
        _, told = await news(answer)
        assert "Waits for approval" in told
        assert f'formaction="/console/runs/{run_id}/approve"' in told


async def test_a_page_of_a_key_that_was_revoked_is_told_nothing_more() -> None:
    """Of what happens next it hears that it is shut, and that within two seconds."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, *step(1)[:2])
    async with following(console, run_id, seen(console.person(), run_id)) as answer:
        await answer.content.readline()
        console.holders.shut.add("red-approver")
        for event in step(1)[2:4]:
            await console.service.records.append(run_id, run.epoch, event, now())
        console.service.following.wake(run_id)
        async with asyncio.timeout(5):
            rest = (await answer.content.read()).decode()
        assert "event: error" in rest
        assert "invalid_api_key" in rest
        assert 'id="e' not in rest


async def test_a_page_that_is_open_ends_soon_after_its_key_though_nothing_happens() -> None:
    """It waits for no event."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *step(1)[:2])
    async with following(console, run_id, seen(console.person(), run_id)) as answer:
        await answer.content.readline()
        console.holders.shut.add("red-approver")
        async with asyncio.timeout(5):
            assert b"invalid_api_key" in await answer.content.read()


async def test_a_page_offers_what_its_key_may_do_by_now() -> None:
    """One that may approve no more has no button for it in what it is told next."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, ASKED)
    async with following(console, run_id, seen(console.person(), run_id)) as answer:
        lowered = replace(CALLERS["red-approver"], role="viewer")
        console.holders.changed["red-approver"] = lowered
        await console.service.orders.wait(run_id, run.epoch, ASKED)
        console.service.following.wake(run_id)
        _, told = await news(answer)
        assert "Waits for approval" in told
        assert "/approve" not in told


async def test_one_key_holds_so_many_pages_open_and_others_still_open_theirs() -> None:
    """The one too many is told why, with 429; one that is closed makes room."""
    console = Console()
    console.service.streams = Streams(most_of_one=2)
    console.__post_init__()
    run_id = await console.service.order()
    await console.service.begun(run_id, *step(1))
    path = f"/console/runs/{run_id}/live?seen=0"
    cookies = [f"{COOKIE}={console.person(key).cookie}" for key in ("red-viewer", "red-member")]
    async with (
        serve(console.app, host="127.0.0.1", port=0) as bound,
        aiohttp.ClientSession(bound.base_url) as session,
    ):
        many, other = ({"cookie": cookie} for cookie in cookies)
        async with session.get(path, headers=many) as first:
            await first.content.readline()
            async with session.get(path, headers=many) as second:
                await second.content.readline()
                async with session.get(path, headers=many) as third:
                    assert third.status == 429
                    assert "as many as one may have" in await third.text()
                async with session.get(path, headers=other) as another:
                    assert another.status == 200
        for _ in range(500):
            async with session.get(path, headers=many) as again:
                if again.status == 200:
                    return
            await asyncio.sleep(0.01)
        pytest.fail("the streams that ended made no room")


async def test_a_page_that_comes_back_is_told_that_a_call_waits_no_more() -> None:
    """Though the run stands again as it did when the page was opened."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, ASKED)
    query = seen(console.person(), run_id)
    async with following(console, run_id, query) as answer:
        await console.service.orders.wait(run_id, run.epoch, ASKED)
        console.service.following.wake(run_id)
        last, told = await told_next(answer)
        assert "Waits for approval" in told
    await console.service.desk.decide("red", run_id, Answer(allowed=True, by="red-approver"))
    assert await console.service.orders.claim("w", lambda _: run_id, now())
    async with following(console, run_id, query, last=last) as answer:
        _, told = await news(answer)
        assert "It waits no more" in told
        assert "Waits for approval" not in told


async def test_a_comment_stays_whatever_becomes_of_the_call_it_is_about() -> None:
    """Only what stands around it is told anew; what waits next is a part of its own below it."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, ASKED)
    await console.service.orders.wait(run_id, run.epoch, ASKED)
    query = seen(console.person(), run_id)
    (ask,) = re.findall(r'id="(ask-[0-9a-f]+)-note"', console.person().get(f"/runs/{run_id}").text)
    await console.service.desk.decide("red", run_id, Answer(allowed=True, by="red-approver"))
    assert await console.service.orders.claim("w", lambda _: run_id, now())
    later = replace(ASKED, step=9, call=replace(ASKED.call, id=ToolCallId("later")))
    run = await console.service.desk.get("red", run_id)
    await console.service.orders.wait(run_id, run.epoch, later)
    async with following(console, run_id, query) as answer:
        _, told = await told_next(answer)
        assert f'id="{ask}-act" class="settled" hx-swap-oob="true"' in told
        assert f'id="{ask}-note"' not in told
        assert '<div hx-swap-oob="beforeend:#wait">' in told
        assert "step 9," in told


async def test_a_page_that_comes_back_is_not_told_again_how_the_run_stands() -> None:
    """A comment that somebody writes there meanwhile stays."""
    console = Console()
    run_id = await console.service.order()
    run = await console.service.begun(run_id, ASKED)
    query = seen(console.person(), run_id)
    async with following(console, run_id, query) as answer:
        await console.service.orders.wait(run_id, run.epoch, ASKED)
        console.service.following.wake(run_id)
        last, _ = await told_next(answer)
    await console.service.records.append(run_id, run.epoch, step(1)[0], now())
    async with following(console, run_id, query, last=last) as answer:
        _, told = await told_next(answer)
        assert 'id="e3"' in told
        assert "ask-" not in told


async def test_a_page_is_told_the_end_and_asks_no_more() -> None:
    """The verdict is on top, the diff is there, and the stream is over."""
    console = Console()
    run_id = await console.service.order()
    await console.service.begun(run_id, *END)
    async with following(console, run_id, "?seen=0") as answer:
        _, told = await news(answer)
        assert '<p id="live" hidden hx-swap-oob="true">' in told
        assert "Passes after" in told
        assert f'hx-get="/console/runs/{run_id}/diff"' in told
        async with asyncio.timeout(PATIENCE):
            assert not await answer.content.read()


async def test_a_session_that_ends_is_told_no_more() -> None:
    """Whatever happens in the run."""
    console = Console()
    run_id = await console.service.order()
    console.service.streams._keep_alive = 0.05
    await console.service.begun(run_id, *step(1))
    async with following(console, run_id, "?seen=0") as answer:
        await news(answer)
        console.holders.shut.add("red-approver")
        async with asyncio.timeout(PATIENCE):
            rest = await answer.content.read()
        assert b"event: error" in rest


@pytest.mark.parametrize("last", ["x", "-1", "9" * 40])
async def test_a_place_that_cannot_be_is_refused(last: str) -> None:
    """Nothing is streamed then."""
    console = Console()
    run_id = await console.service.order()
    headers = {"last-event-id": last}
    assert console.person().get(f"/runs/{run_id}/live", headers=headers).status_code == 400
