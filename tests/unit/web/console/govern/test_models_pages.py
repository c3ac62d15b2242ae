"""Models, the playground and connections in the console."""

import asyncio
from dataclasses import replace

import pytest
from tests.unit.web.console.govern.governed import HOSTILE, Governed, quality
from tests.unit.web.console.seen import words

from turnout.core.govern.connections import Connection, ToolOutcome
from turnout.core.policies import Policy, ToolRule
from turnout.gateway.exchange import UpstreamError
from turnout.testing.connections import FakeConnections


@pytest.fixture
def governed():
    """Return a console with two deployments, of which one was evaluated."""
    made = Governed(own=(Policy(), Policy("team", tools=ToolRule("enforce", ("a",)))))
    made.evidence.know_qualities([quality("big", 12, 20, days_old=100)])
    made.evidence.observe("p/small", ttft_ms=120.0, calls=10, malformed=1)
    return made


def test_the_catalog_shows_what_its_figures_rest_on(governed) -> None:
    """Each figure with sample size, interval and age; old ones are marked, and markup is text."""
    page = governed.person("red-viewer").get("/models")
    said = words(page)
    assert "coding 60 % (39 % to 78 %) old n = 20 tasks, 100 d old" in said
    assert "tool success 90 %" in said
    assert "n = 10 calls" in said
    assert "$3.00 in, $15.00 out per million tokens" in said
    assert "<script>alert" not in page.text
    part = governed.person().part("/models")
    assert "<html" not in part.text
    assert "p/small" in words(part)


def test_a_deployment_that_fails_is_shown_as_ailing(governed) -> None:
    """With why, and for how long it is not asked."""
    for _ in range(20):
        governed.evidence.circuits.failed("p/big", UpstreamError("is gone", status=503))
    said = words(governed.person().get("/models/of?id=p/big"))
    assert "ailing not asked for" in said
    assert "requests failed in a row" in said
    assert governed.person().get("/models/of?id=nowhere").status_code == 404


async def test_a_probe_runs_behind_the_page_and_is_kept(governed) -> None:
    """It is on record who asked for it, and its result is evidence at once."""
    boss = governed.person()
    answer = await asyncio.to_thread(boss.send, "/models/probe", id="p/big")
    assert answer.status_code == 303
    assert governed.changes == [("boss", "probe_model", "p/big")]
    standing = governed.probes.standings()["p/big"]
    assert (standing.by, standing.state) in {("boss", "running"), ("boss", "done")}
    member = governed.person("red-member")
    assert member.send("/models/probe", id="p/big").status_code == 403
    assert boss.send("/models/probe", id="nowhere").status_code == 404


def ask(person, path="/playground", **fields):
    """Send the form of the playground."""
    return person.send(path, **{"prompt": "Why?", "model": "auto", "max_tokens": "64", **fields})


def test_a_request_is_sent_and_its_decision_shown(governed) -> None:
    """The answer with model, cost and tokens; hostile text of the model is text."""
    page = ask(governed.person(), optimize="cost")
    said = words(page)
    assert page.status_code == 200
    assert f"It is {HOSTILE}".replace("\u202e", "\\u202e") in said
    assert "<script>alert" not in page.text
    assert "p/small: the lowest expected cost of 2 eligible." in said
    assert "10 in, 5 out" in said
    (receipt,) = governed.books.receipts.receipts.values()
    assert (receipt.key, receipt.status) == ("boss", "ok")
    assert governed.changes == []


def test_a_request_is_looked_up_by_its_id(governed) -> None:
    """Its receipt and decision, for its own key and for admins; others learn nothing."""
    boss, viewer = governed.person(), governed.person("red-viewer")
    ask(boss, tools="rm")
    (receipt,) = governed.books.receipts.receipts.values()
    page = boss.get(f"/playground/request?id={receipt.request_id}")
    said = words(page)
    assert "Receipt ok" in said
    assert "Tools declared rm" in said
    assert "Candidates" in page.text
    for id_ in (receipt.request_id, "req-0000000000000000", HOSTILE):
        assert viewer.get("/playground/request", params={"id": id_}).status_code == 404
    assert "<script>alert" not in viewer.get("/playground/request", params={"id": HOSTILE}).text
    assert viewer.get("/playground/request").status_code == 200


def test_a_receipt_of_any_size_makes_a_short_page(governed) -> None:
    """Clients choose what tools and models are called, and how many there are."""
    boss = governed.person()
    ask(boss, tools=" ".join(f"t{n}" for n in range(500)))
    (receipt,) = governed.books.receipts.receipts.values()
    long = replace(receipt, asked_model="m" * 10**6, tools_called=("<b>" * 10**6,))
    governed.books.receipts.receipts[receipt.request_id] = long
    page = boss.get(f"/playground/request?id={receipt.request_id}")
    assert "and 440 more" in words(page)
    assert len(page.text) < 20_000
    assert "<b>" not in page.text


def test_a_request_is_explained_without_asking_a_model(governed) -> None:
    """Under the policy in force or a draft, and with what each figure rests on."""
    boss = governed.person()
    said = words(ask(boss, "/playground/explain", optimize="quality", task="coding"))
    assert "p/big: the highest known quality for coding" in said
    assert "quality 60 %, n = 20 tasks, 100 d old" in said
    draft = words(ask(boss, "/playground/explain", draft='pool = ["small"]'))
    assert "left out p/big" in draft
    assert "draft of default" in draft
    assert not governed.books.receipts.receipts
    viewer = governed.person("red-viewer")
    assert ask(viewer, "/playground/explain").status_code == 200
    assert ask(viewer).status_code == 403


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"prompt": " "}, "The prompt is empty."),
        ({"max_tokens": "-1"}, "The longest answer is a number of tokens."),
        ({"model": "huge"}, "huge"),
        ({"raw": "{"}, "JSON"),
        ({"draft": "pool ="}, "not valid TOML"),
        ({"policy": "team", "tools": "rm, a"}, "rm"),
    ],
)
def test_what_would_be_refused_is_explained_as_such(governed, fields, said) -> None:
    """The form stays filled in, with what is wrong on top."""
    answer = ask(governed.person(), "/playground/explain", **fields)
    assert answer.status_code == 400
    assert said in words(answer)


def test_a_model_that_is_away_leaves_its_decision(governed) -> None:
    """What was tried is seen, and the receipt is written."""
    governed.upstream.away = True
    answer = ask(governed.person())
    assert answer.status_code == 400
    assert "Candidates" in answer.text
    (receipt,) = governed.books.receipts.receipts.values()
    assert receipt.status == "failed"


def test_whole_requests_of_every_api_are_explained(governed) -> None:
    """They are recognised by their form."""
    raw = '{"model": "auto", "max_tokens": 5, "system": "x", "messages": [], "stream": true}'
    asked = '{"model": "auto", "input": "hello"}'
    for body in (raw.replace("[]", '[{"role": "user", "content": "hi"}]'), asked):
        answer = ask(governed.person(), "/playground/explain", raw=body)
        assert "Decision" in words(answer), words(answer)


def test_a_policy_without_models_says_why_nobody_may_serve(governed) -> None:
    """Each deployment is listed with its reason."""
    answer = ask(governed.person(), "/playground/explain", draft='pool = {providers = ["q"]}')
    assert "nobody may serve it" in words(answer)
    assert "its provider is p" in words(answer)


def test_without_models_of_its_own_a_process_has_no_playground() -> None:
    """No page leads there."""
    boss = Governed(own=(Policy("team"),), serves=False).person()
    for path in ("/models", "/models/of?id=p/big", "/policies/team"):
        page = boss.get(path)
        assert page.status_code == 200
        assert "playground" not in page.text
    assert boss.get("/playground").status_code == 404


def test_connections_show_no_secret_and_are_checked_on_demand() -> None:
    """Neither headers nor arguments nor credentials of an address are on the page."""
    tools = {"search": lambda _: ToolOutcome("found")}
    governed = Governed(
        connections=FakeConnections({"docs": tools}),
        known={
            "docs": Connection(
                "docs",
                url="https://me:hunter2@docs.example.org/mcp?token=hunter3",
                headers={"authorization": "hunter4"},
            ),
            "files": Connection("files", command=("/usr/bin/server", "--key=hunter5")),
        },
    )
    page = governed.person("red-viewer").get("/connections")
    assert "hunter" not in page.text
    assert "https://docs.example.org/mcp" in page.text
    assert "program server" in page.text
    member = governed.person("red-member")
    checked = words(member.send("/connections", name="docs"))
    assert "answers 1 tool" in checked
    assert "The tool search." in checked
    assert "cannot be reached" in words(member.send("/connections", name="files"))
    assert member.send("/connections", name="other").status_code == 404
    assert governed.person("red-viewer").send("/connections", name="docs").status_code == 403
    assert governed.changes == []
