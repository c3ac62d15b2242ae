"""Usage, tools and events of requests as a gateway served them, read back from the store."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from turnout.core.clock import SystemClock
from turnout.core.govern.usage import UsageGroup, UsageQuery, UsageReport
from turnout.core.money import Price
from turnout.core.policies import Policy, SessionCaps, ToolRule
from turnout.core.usage import Usage
from turnout.gateway.notices.notices import Notices
from turnout.store.books import BooksStore
from turnout.store.database import Database, open_database
from turnout.store.happenings import HappeningsStore
from turnout.store.notices import NoticesStore
from turnout.store.tools import ToolsStore
from turnout.store.usage import UsageStore
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, catalog_at, running_gateway
from turnout.testing.memory.noticed import MemoryUsage
from turnout.testing.model_server import Call, Refusal, ScriptedModelServer, Turn

PRICED = replace(
    deployment("p/m"), price=Price(input=1_000_000, output=2_000_000, cache_read=100_000)
)
USED = Usage(input_tokens=100, output_tokens=20, cache_read_input_tokens=60)
COST = 40 + 6 + 40
HELLO = {"role": "user", "content": "Hello"}
BODIES: dict[str, dict[str, Any]] = {
    "chat/completions": {"messages": [HELLO]},
    "messages": {"messages": [HELLO], "max_tokens": 50},
    "responses": {"input": "Hello"},
}
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("read_file", "rm")]


@dataclass
class Site:
    """A gateway on a store of its own."""

    base_url: str
    database: Database
    notices: Notices
    http: aiohttp.ClientSession

    async def post(self, path: str, **fields: Any) -> int:
        """Send a request, read its answer to the end, and return its status."""
        headers = fields.pop("headers", {})
        body = {"model": "auto", **BODIES[path], **fields}
        async with self.http.post(f"{self.base_url}/{path}", json=body, headers=headers) as answer:
            await answer.read()
            return answer.status

    async def usage(self, *by: UsageGroup) -> UsageReport:
        """Return the usage of everything."""
        return await UsageStore(self.database).usage(UsageQuery(by=by or ("session",)))


@asynccontextmanager
async def site(path: Path, turns: list[Turn | Refusal], policy: Policy) -> AsyncIterator[Site]:
    """Serve turns under a policy, the books kept in a database."""
    async with (
        open_database(path / "turnout.db") as database,
        ScriptedModelServer(turns) as server,
        aiohttp.ClientSession() as http,
    ):
        notices = Notices(NoticesStore(database), SystemClock())
        setup = GatewaySetup(policy=policy, books=BooksStore(database), on_receipt=notices.saw)
        async with running_gateway(catalog_at(server.base_url, PRICED), setup) as gateway:
            yield Site(gateway.base_url, database, notices, http)


@pytest.mark.cases
async def test_every_shape_is_metered_alike_streamed_or_not(tmp_path: Path) -> None:
    """Tokens, cached tokens and cost; streams alone have a time to first token."""
    async with site(tmp_path, [Turn("Hi.", usage=USED)] * 6, Policy()) as gateway:
        for path in BODIES:
            for stream in (False, True):
                assert await gateway.post(path, stream=stream) == 200
        report = await gateway.usage("shape")
    assert {row.group for row in report.rows} == {("chat",), ("messages",), ("responses",)}
    for row in report.rows:
        figures = row.figures
        assert (figures.requests, figures.errors, figures.cost) == (2, 0, 2 * COST)
        assert (figures.input_tokens, figures.output_tokens) == (200, 40)
        assert (figures.cached_tokens, figures.unpriced) == (120, 0)
        assert figures.latency_p50_ms is not None
        assert figures.ttft_p50_ms is not None


async def test_requests_are_grouped_by_what_our_agent_says_of_them(tmp_path: Path) -> None:
    """The kind of its step, and what it is routed for."""
    kinds = {"plan": "quality", "act": "latency"}
    async with site(tmp_path, [Turn("Hi.")] * 2, Policy()) as gateway:
        for kind, objective in kinds.items():
            await gateway.post(
                "chat/completions",
                headers={"x-turnout-call-kind": kind},
                routing={"session": "run-1", "optimize": objective, "task": "coding"},
            )
        report = await gateway.usage("call_kind", "objective", "session")
    assert {row.group for row in report.rows} == {
        ("plan", "quality", "run-1"),
        ("act", "latency", "run-1"),
    }


async def test_a_request_that_failed_or_cannot_be_read_counts_as_well(tmp_path: Path) -> None:
    """As an error that cost nothing."""
    async with site(tmp_path, [Refusal(400)], Policy()) as gateway:
        assert await gateway.post("chat/completions", messages="Hello") == 400
        assert await gateway.post("messages", model="none") == 404
        assert await gateway.post("chat/completions") == 400
        total = (await gateway.usage()).total
    assert (total.requests, total.errors, total.cost) == (3, 3, 0)
    assert (total.latency_p50_ms, total.input_tokens) == (None, 0)


async def test_a_replayed_answer_is_counted_and_not_charged_again() -> None:
    """Whoever sends the same key twice pays once."""
    async with (
        ScriptedModelServer([Turn("Hi.", usage=USED)]) as server,
        running_gateway(catalog_at(server.base_url, PRICED)) as gateway,
        aiohttp.ClientSession() as http,
    ):
        body = {"model": "auto", **BODIES["chat/completions"]}
        for _ in range(3):
            url, headers = f"{gateway.base_url}/chat/completions", {"idempotency-key": "k"}
            async with http.post(url, json=body, headers=headers) as answer:
                assert answer.status == 200
        total = (await MemoryUsage(gateway.receipts.receipts).usage(UsageQuery())).total
    assert (total.requests, total.cost, total.input_tokens) == (3, COST, 100)
    assert total.unpriced == 0


async def test_tools_are_in_the_inventory_and_those_outside_a_list_in_the_report(
    tmp_path: Path,
) -> None:
    """While the list is a dry run they are served, and somebody is told."""
    rule = ToolRule(mode="dry_run", allow=("read_file",))
    turns = [Turn("", (Call("rm", {}),)), Turn("Hi.")]
    async with site(tmp_path, list(turns), Policy(tools=rule)) as gateway:
        for _ in turns:
            assert await gateway.post("chat/completions", tools=TOOLS) == 200
        await gateway.notices.write()
        tools, today = ToolsStore(gateway.database), datetime.now(UTC).date()
        seen = {one.tool: (one.requests, one.calls) for one in await tools.inventory(limit=9)}
        report = await tools.report("default", since=today - timedelta(days=1), today=today)
        told = await HappeningsStore(gateway.database).newest(limit=9)
    assert seen == {"read_file": (2, 0), "rm": (2, 1)}
    assert [(hit.key, hit.tool, hit.served, hit.refused) for hit in report.hits] == [
        ("local", "rm", 2, 0)
    ]
    assert sum(day.outside for day in report.days) == 2
    assert sorted((one.kind, one.subject) for one in told) == [
        ("tool.first_seen", "read_file"),
        ("tool.first_seen", "rm"),
        ("tool.outside_list", "rm"),
    ]


async def test_refused_tools_and_capped_sessions_are_told(tmp_path: Path) -> None:
    """Once, however often they are sent."""
    policy = Policy(
        tools=ToolRule(mode="enforce", allow=("read_file",)), session=SessionCaps(max_requests=1)
    )
    async with site(tmp_path, [Turn("Hi.")], policy) as gateway:
        routing = {"session": "run-1"}
        statuses = [
            await gateway.post("chat/completions", routing=routing, tools=tools)
            for tools in ([], [], [], TOOLS, TOOLS)
        ]
        await gateway.notices.write()
        told = await HappeningsStore(gateway.database).newest(
            limit=9, kinds=["tool.refused", "session.capped"]
        )
    assert statuses == [200, 429, 429, 403, 403]
    assert sorted((one.kind, one.subject, one.key) for one in told) == [
        ("session.capped", "run-1", "local"),
        ("tool.refused", "rm", "local"),
    ]
