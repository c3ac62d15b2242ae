"""`/usage`, `/tools`, `/events` and `/webhooks`."""

from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient
from tests.samples import NOON, STRANGE, receipt
from tests.unit.gateway.admin.admin_app import CATALOG, Admin, Explained, authenticate

from turnout.core.govern.happenings import deployment_unhealthy, tool_first_seen
from turnout.core.govern.toolwatch import SeenTool
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.admin.noticed import noticed_router
from turnout.gateway.admin.usage import usage_router
from turnout.gateway.admin.webhooks import webhooks_router
from turnout.gateway.notices.desk import MOST_WEBHOOKS, WebhookDesk
from turnout.gateway.policy.desk import PolicyDesk
from turnout.testing.clock import FrozenClock
from turnout.testing.memory.noticed import MemoryNotices, MemoryUsage, MemoryWebhooks
from turnout.testing.stores import MemoryPoliciesStore

HOOK = {"url": "https://example.org/in", "secret_variable": "HOOK_SECRET"}


def app_with(*routers) -> FastAPI:
    """Return an admin application with these routers."""
    clock = FrozenClock()
    return build_admin(
        AdminParts(
            authenticate=authenticate,
            policies=PolicyDesk(MemoryPoliciesStore(), CATALOG, clock),
            explain=Explained(),
            shapes={},
            routers=routers,
        )
    )


@dataclass
class Site(Admin):
    """An admin application, and what it reads."""

    notices: MemoryNotices


@pytest.fixture
def site() -> Site:
    """Return one at the noon after which everything happened."""
    clock = FrozenClock(NOON + timedelta(days=1))
    notices = MemoryNotices()
    made = [
        replace(receipt("req-1", session="run-1", key="dev"), cost_micros=500),
        replace(receipt("req-2", session="run-1", key="dev"), cost_micros=700),
        replace(receipt("req-3", session=STRANGE, key="plain"), cost_micros=9_000),
        replace(receipt("req-4", session="old", key="plain"), at=NOON - timedelta(days=30)),
    ]
    usage = MemoryUsage({one.request_id: one for one in made})
    app = app_with(
        usage_router(usage, clock),
        noticed_router(notices, notices, clock),
        webhooks_router(WebhookDesk(MemoryWebhooks(), clock)),
    )
    return Site(TestClient(app, raise_server_exceptions=False), Explained(), notices)


def test_an_admin_reads_everybodys_usage(site):
    """By session where nothing else is asked, the most expensive first, and the total."""
    answer = site.call("GET", "/usage?since=7d").json()
    assert answer["by"] == ["session", "key"]
    assert [row["group"] for row in answer["rows"]] == [
        {"session": STRANGE, "key": "plain"},
        {"session": "run-1", "key": "dev"},
    ]
    first, second = answer["rows"]
    assert (second["requests"], second["cost_micros"], second["cached_tokens"]) == (2, 1_200, 1_600)
    assert (first["latency_p50_ms"], first["ttft_p95_ms"]) == (102, 40)
    assert (answer["total"]["requests"], answer["groups"]) == (3, 2)
    assert answer["since"] == "2025-12-26T12:00:00Z"


def test_a_key_that_reads_its_own_needs_no_word_for_itself(site):
    """Its sessions are all its own."""
    answer = site.call("GET", "/usage", key="dev").json()
    assert [row["group"] for row in answer["rows"]] == [{"session": "run-1"}]


def test_usage_is_grouped_by_several_things_at_once(site):
    """Each of them named in the row."""
    answer = site.call("GET", "/usage?by=key&by=objective&by=key&project=default").json()
    assert [row["group"] for row in answer["rows"]] == [
        {"key": "plain", "objective": "cost"},
        {"key": "dev", "objective": "cost"},
    ]


@pytest.mark.parametrize("query", ["", "&key=dev"])
def test_a_key_reads_its_own_usage(site, query):
    """Whether it says so or not."""
    answer = site.call("GET", f"/usage?by=key{query}", key="dev").json()
    assert [row["group"]["key"] for row in answer["rows"]] == ["dev"]


@pytest.mark.parametrize("path", ["/usage", "/tools", "/events"])
def test_a_key_does_not_read_anothers(site, path):
    """It is told what would let it."""
    answer = site.call("GET", f"{path}?key=plain", key="dev")
    assert (answer.status_code, answer.json()["error"]["param"]) == (403, "key")


@pytest.mark.parametrize(
    "query",
    [
        "by=colour",
        "by=key&by=day&by=task&by=model",
        "since=yesterday",
        "until=0001-01-01T00:00:00%2B14:00",
        "since=99999w",
        "limit=0",
        "limit=1001",
        "limit=x",
        "group=key",
        f"session={'x' * 513}",
    ],
)
def test_a_question_that_makes_no_sense_is_refused(site, query):
    """With the field that is wrong."""
    answer = site.call("GET", f"/usage?{query}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "invalid_request")


async def test_the_inventory_is_read_by_project_and_key(site):
    """With when each tool was seen first and last."""
    shell = SeenTool("p", "dev", "shell", NOON, NOON, requests=3, calls=1)
    await site.notices.write([shell, replace(shell, key="plain", project="q")], [], [])
    assert len(site.call("GET", "/tools").json()["tools"]) == 2
    assert [t["key"] for t in site.call("GET", "/tools?project=q").json()["tools"]] == ["plain"]
    assert site.call("GET", "/tools", key="dev").json()["tools"] == [
        {
            "project": "p",
            "key": "dev",
            "tool": "shell",
            "first_at": "2026-01-01T12:00:00Z",
            "last_at": "2026-01-01T12:00:00Z",
            "requests": 3,
            "calls": 1,
        }
    ]


async def test_events_are_read_newest_first(site):
    """Of the kinds that are asked for; a key reads those about itself."""
    seen = tool_first_seen(receipt(key="dev"), "shell")
    ill = deployment_unhealthy(NOON, "x/m", "5 failures in a row")
    await site.notices.write([], [], [seen, ill])
    kinds = [one["kind"] for one in site.call("GET", "/events?since=2d").json()["events"]]
    assert kinds == ["deployment.unhealthy", "tool.first_seen"]
    (own,) = site.call("GET", "/events", key="dev").json()["events"]
    assert (own["subject"], own["request_id"]) == ("shell", "req-1")
    asked = "/events?kind=deployment.unhealthy&kind=policy.changed"
    assert len(site.call("GET", asked).json()["events"]) == 1
    assert site.call("GET", "/events?since=1h").json()["events"] == []


def test_a_webhook_is_added_listed_and_removed(site):
    """By an admin key; its secret is named, never sent."""
    body = {**HOOK, "kinds": ["tool.first_seen"], "project": "p"}
    added = site.call("POST", "/webhooks", json=body)
    assert added.status_code == 201
    (listed,) = site.call("GET", "/webhooks").json()["webhooks"]
    assert listed["created_by"] == "boss"
    assert {name: listed[name] for name in body} == body
    assert site.call("POST", f"/webhooks/{listed['id']}/retry").status_code == 204
    assert site.call("POST", "/webhooks/hook-9/retry").status_code == 404
    assert site.call("DELETE", f"/webhooks/{listed['id']}").status_code == 204
    assert site.call("GET", "/webhooks").json() == {"webhooks": []}
    assert site.call("DELETE", f"/webhooks/{listed['id']}").status_code == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/webhooks"),
        ("POST", "/webhooks"),
        ("DELETE", "/webhooks/x"),
        ("POST", "/webhooks/x/retry"),
    ],
)
def test_webhooks_take_an_admin_key(site, method, path):
    """They see what everybody does."""
    assert site.call(method, path, key="dev", json=HOOK).status_code == 403


@pytest.mark.parametrize(
    "change",
    [
        {"url": "http://example.org/in"},
        {"url": "https://10.0.0.1/in"},
        {"url": "http://169.254.169.254/", "allow_private": True},
        {"secret_variable": "my secret"},
        {"kinds": ["tool.seen"]},
        {"secret": "word"},
        {"url": 7},
    ],
)
def test_a_webhook_that_cannot_be_one_is_refused(site, change):
    """Before it is kept."""
    assert site.call("POST", "/webhooks", json={**HOOK, **change}).status_code == 400
    assert site.call("GET", "/webhooks").json() == {"webhooks": []}


def test_there_are_only_so_many_webhooks(site):
    """Each happening is handed to each of them."""
    for _ in range(MOST_WEBHOOKS):
        assert site.call("POST", "/webhooks", json=HOOK).status_code == 201
    assert site.call("POST", "/webhooks", json=HOOK).status_code == 400
