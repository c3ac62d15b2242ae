"""Models, the playground and connections in the console."""

import asyncio
import re
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


def health(governed, wanted="p/big") -> tuple[str, str]:
    """Return what the list and the page of a deployment say of its health."""
    boss = governed.person()
    said = words(boss.get("/models"))
    shown = words(boss.get(f"/models/of?id={wanted}"))
    line = said[said.index(wanted) + len(wanted) :].split(" confirmed ")[0].strip()
    return line, shown.split("Health ")[1].split(" Model ")[0]


def test_a_deployment_that_nobody_asked_is_not_called_well(governed) -> None:
    """Nor is one whose newest request failed: list and page say the same."""
    assert health(governed) == (
        "not asked yet",
        "not asked yet takes requests; nothing has asked it yet",
    )
    circuits = governed.evidence.circuits
    circuits.failed("p/big", UpstreamError("is gone", status=503))
    line, shown = health(governed)
    assert line == shown == "failing its newest request failed 0 s ago: status 503"
    circuits.failed("p/big", UpstreamError("is wrong", status=400))
    assert health(governed)[0] == line
    circuits.succeeded("p/big")
    assert health(governed) == ("well", "well answered 0 s ago")


async def test_a_probe_that_failed_is_told_on_every_page(governed) -> None:
    """In the list, in its health, and as the newest probe."""
    governed.upstream.away = True
    boss = governed.person()
    governed.probes.start("p/big", by="boss")
    for _ in range(500):
        if governed.probes.standings()["p/big"].state != "running":
            break
        await asyncio.sleep(0.01)
    line, shown = await asyncio.to_thread(health, governed)
    assert line == shown
    assert re.match(r"failing its probe failed \d+ s ago: p at ", shown)
    page = words(boss.get("/models/of?id=p/big"))
    assert re.search(r"Newest probe failed (just now|\d+ s ago) ?: p at ", page)
    assert "never probed" not in page
    governed.evidence.circuits.succeeded("p/big")
    assert (await asyncio.to_thread(health, governed))[0] == "well"


async def test_a_probe_runs_behind_the_page_and_is_kept(governed) -> None:
    """It is on record who asked for it, and its result is evidence at once."""
    boss = governed.person()
    answer = await asyncio.to_thread(boss.send, "/models/probe", id="p/big")
    assert (answer.status_code, answer.headers["location"]) == (303, "/console/models")
    assert governed.changes == [("boss", "probe_model", "p/big")]
    stayed = await asyncio.to_thread(boss.send, "/models/probe", id="p/big", back="deployment")
    assert stayed.headers["location"] == "/console/models/of?id=p%2Fbig"
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


def test_nothing_is_sent_under_a_draft(governed) -> None:
    """It would be answered under the old policy, with the draft still in the form."""
    page = ask(governed.person(), draft='objective = "cost"')
    assert (page.status_code, "Nothing is sent under a draft" in words(page)) == (400, True)
    assert not governed.books.receipts.receipts
    explained = ask(governed.person(), "/playground/explain", draft='objective = "cost"')
    assert "not saved Objective cost" in words(explained)


def test_a_policy_of_the_file_has_one_name_on_every_page(governed) -> None:
    """Its revision is no number 0."""
    boss = governed.person()
    said = words(ask(boss))
    assert "Policy default, as the configuration file has it Objective balanced" in said
    assert "Ended by itself" in said


def test_who_was_left_out_stands_below_all_places(governed) -> None:
    """However the catalog orders them."""
    draft = '[pool]\nexclude = ["p/big"]'
    page = words(ask(governed.person(), "/playground/explain", draft=draft))
    rows = page[page.index("Why, and what it rests on") :]
    assert rows.index("1 p/small") < rows.index("left out p/big")


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
