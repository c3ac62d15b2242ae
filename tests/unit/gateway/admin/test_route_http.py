"""`POST /route`: the decision for a request, without calling a model."""

import pytest
from tests.unit.gateway.admin.admin_app import CALLERS, admin_app

from turnout.core.policies import Policy, PoolRule
from turnout.gateway.policy.shapes import shape_of

CHAT = {"model": "auto", "messages": [{"role": "user", "content": "Hi"}]}


def test_the_decision_for_a_request_is_explained() -> None:
    """A body as it would be sent, with the routing extension."""
    admin = admin_app()
    body = {**CHAT, "routing": {"optimize": "cost", "task": "coding"}}
    answer = admin.call("POST", "/route", key="dev", json=body).json()
    assert (answer["deployment"], answer["order"]) == ("p/big", ["p/big"])
    assert answer["candidates"][0]["deployment"] == "p/big"
    assert answer["reason"] == "It is the first."
    ((caller, request, draft),) = admin.explained.asked
    assert (caller, request.ask.optimize, draft) == (CALLERS["dev"], "cost", None)


def test_a_draft_is_decided_under_before_it_is_applied() -> None:
    """The request and the draft stand beside one another."""
    admin = admin_app()
    body = {"request": CHAT, "policy": {"pool": ["big"]}}
    assert admin.call("POST", "/route", json=body).status_code == 200
    ((_, request, draft),) = admin.explained.asked
    assert request.model == "auto"
    assert draft == Policy(pool=PoolRule(("big",)))


@pytest.mark.parametrize(
    ("body", "headers", "shape"),
    [
        (b'{"messages": []}', {}, "chat"),
        (b'{"messages": []}', {"anthropic-version": "2023-06-01"}, "messages"),
        (b'{"messages": [], "system": "x"}', {}, "messages"),
        (b'{"messages": [], "tools": [{"name": "a", "input_schema": {}}]}', {}, "messages"),
        (b'{"messages": [], "tools": [{"type": "web_search_1", "name": "a"}]}', {}, "messages"),
        (b'{"messages": [], "tools": [{"type": "function"}]}', {}, "chat"),
        (b'{"input": "x"}', {}, "responses"),
    ],
)
def test_the_shape_of_a_body_is_found_out(body: bytes, headers, shape: str) -> None:
    """Where the query does not say it."""
    assert shape_of(body, headers) == shape


@pytest.mark.parametrize(
    "options",
    [
        {"content": b"{"},
        {"content": b"[]"},
        {"content": b""},
        {"json": {"model": "auto"}},
        {"json": {"request": CHAT, "policy": {"objektive": "cost"}}},
        {"json": {"request": CHAT, "policy": []}},
        {"json": {"request": CHAT, "polcy": {}}},
        {"json": {"request": 7}},
        {"content": b'{"request": ' + b"[" * 900 + b"]" * 900 + b"}"},
        {"json": {"input": "x", "model": "auto"}},
        {"json": CHAT, "params": {"shape": "soap"}},
    ],
)
def test_what_is_no_request_is_refused_in_words(options) -> None:
    """400, and the engine is not asked."""
    admin = admin_app()
    refused = admin.call("POST", "/route", **options)
    assert refused.status_code == 400
    assert refused.json()["error"]["message"]
    assert admin.explained.asked == []
