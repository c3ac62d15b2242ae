"""The list of runs, and the form by which one is ordered."""

import re

import pytest
from tests.unit.web.console.runs.told import END as JUDGED
from tests.unit.web.console.runs.told import HOSTILE, SEEN
from tests.unit.web.console.seen import Console, words
from tests.unit.web.rooms import END

from turnout.core.ids import ModelId
from turnout.core.money import Micros
from turnout.core.service.figures import ModelShare, RunFigures
from turnout.web.console.runs.ordering import LABELS


async def test_runs_are_listed_with_what_they_took() -> None:
    """Newest first, of the project of the key alone."""
    console = Console()
    first = await console.service.order(task="The first.", labels=["ci"])
    second = await console.service.order(task="The second.")
    await console.service.order("blue-approver", task="Of others.")
    await console.service.begun(first, *END)
    shares = (ModelShare(ModelId("qwen"), 4), ModelShare(ModelId("mist"), 1))
    console.figures[first] = RunFigures(5, shares, 9_000, 300, Micros(12_500), 1)
    page = console.person("red-viewer").get("/runs")
    said = words(page)
    assert said.index(second) < said.index(first)
    assert "Of others." not in said
    assert "ci answered shop HEAD 5 qwen ×4, mist ×1 $0.01 + ?" in said


async def test_a_list_that_has_not_changed_is_not_sent_again() -> None:
    """204 until something has; then the rows alone, which ask from there on."""
    console = Console()
    person = console.person()
    run_id = await console.service.order()

    def poll(page: str) -> str:
        found = re.search(r'hx-get="/console([^"]*)"', page)
        assert found is not None
        return found[1].replace("&amp;", "&")

    address = poll(person.get("/runs?state=queued").text)
    assert person.part(address).status_code == 204
    await console.service.desk.cancel("red", run_id)
    rows = person.part(address)
    assert rows.status_code == 200
    assert rows.text.strip().startswith("<tbody")
    assert "No run fits." in words(rows)
    assert person.part(poll(rows.text)).status_code == 204


async def test_runs_are_found_by_what_they_have_in_common() -> None:
    """Words of the task whatever their case, state, outcome, repository and label."""
    console = Console()
    one = await console.service.order(task="Fix the Parser", labels=["ci"])
    other = await console.service.order(task="Write docs", repo="docs")
    await console.service.begun(other, *JUDGED)
    person = console.person()
    for query, found in (
        ("words=parser", one),
        (f"words={other[:9]}", other),
        ("state=queued", one),
        ("outcome=answered", other),
        ("verdict=resolved", other),
        ("repo=docs", other),
        ("label=ci", one),
        ("words=fix&state=queued&repo=shop", one),
    ):
        page = person.get(f"/runs?{query}").text
        assert {found} == {each for each in (one, other) if f"/runs/{each}" in page}, query
    assert "No run fits." in words(person.get("/runs?words=nothing"))


async def test_a_long_list_goes_on_on_another_page() -> None:
    """With the filters that it has."""
    console = Console()
    made = [await console.service.order(labels=["x"]) for _ in range(51)]
    person = console.person()
    page = person.get("/runs?label=x").text
    assert made[0] not in page
    older = re.search(r'href="/console(/runs\?label=x&amp;cursor=\d+)"', page)
    assert older is not None
    assert made[0] in person.get(older[1].replace("&amp;", "&")).text


@pytest.mark.parametrize(
    "query",
    [
        "state=odd",
        "outcome=odd",
        "verdict=odd",
        "cursor=x",
        "cursor=0",
        "cursor=²",
        "words=" + "x" * 2_001,
    ],
)
def test_a_filter_that_cannot_be_is_refused(query: str) -> None:
    """In words, on a page."""
    assert Console().person().get(f"/runs?{query}").status_code == 400


async def test_what_people_and_models_write_is_only_shown() -> None:
    """No tag, and no character that hides or turns others, comes through."""
    console = Console()
    await console.service.order(task=HOSTILE)
    page = console.person().get("/runs")
    assert SEEN in words(page)
    assert "<script>alert" not in page.text
    assert not {"\u202e", "\x1b", "\u200b"} & set(page.text)


async def test_an_admin_looks_at_another_project() -> None:
    """And stays with it from page to page; nobody else does."""
    console = Console()
    run_id = await console.service.order()
    boss = console.person("boss")
    assert run_id not in boss.get("/runs").text
    page = boss.get("/runs?project=red").text
    assert f'href="/console/runs/{run_id}?project=red"' in page
    assert boss.get(f"/runs/{run_id}?project=red").status_code == 200
    blue = console.person("blue-approver")
    assert run_id not in blue.get("/runs?project=red").text
    assert blue.get(f"/runs/{run_id}?project=red").status_code == 404


async def test_a_run_is_ordered_by_the_form() -> None:
    """All of it as the API takes it, once, however often it is sent; and it is on record."""
    console = Console()
    person = console.person("red-member")
    fields = {
        "task": "Fix it.\r\nNow.",
        "repo": "shop",
        "base": "main",
        "surface": "files",
        "policy": "team",
        "test_command": "make test",
        "requirements": "a\n\n b ",
        "labels": "ci, issue:7",
        "priority": "5",
        "max_steps": "3",
        "max_minutes": "1.5",
        "max_spend": "$0.25",
        "notify": "https://told.example.org",
        "publish": "draft",
        "once": "one",
    }
    sent = person.send("/runs/new", **fields)
    assert sent.status_code == 303, words(sent)
    again = person.send("/runs/new", **fields)
    assert again.headers["location"] == sent.headers["location"]
    (run,) = (await console.service.desk.page("red")).runs
    order, limits = run.order, run.order.limits
    assert sent.headers["location"] == f"/console/runs/{run.run_id}"
    assert (order.task.prompt, order.task.base, order.key) == (
        "Fix it.\nNow.",
        "main",
        "red-member",
    )
    assert (order.task.requirements, order.labels) == (("a", "b"), ("ci", "issue:7"))
    assert (order.priority, order.publish, order.policy) == (5, "draft", "team")
    assert (limits.max_steps, limits.max_seconds, limits.max_spend) == (3, 90.0, 250_000)
    (change,) = console.audit.kept
    assert (change.action, change.subject) == ("order_run", run.run_id)


@pytest.mark.parametrize(
    ("wrong", "field", "status"),
    [
        ({"task": ""}, "task", 400),
        ({"repo": "/etc"}, "repo", 400),
        ({"base": "-x"}, "base", 400),
        ({"base": "nowhere"}, "base", 400),
        ({"priority": "101"}, "priority", 400),
        ({"priority": "high"}, "priority", 400),
        ({"max_steps": "0"}, "max_steps", 400),
        ({"max_minutes": "nan"}, "max_minutes", 400),
        ({"max_minutes": "-1"}, "max_minutes", 400),
        ({"max_spend": "much"}, "max_spend", 400),
        ({"max_spend": "1e999"}, "max_spend", 400),
        ({"labels": "<b>"}, "labels", 400),
        ({"notify": "http://plain.example.org"}, "notify", 400),
        ({"head": "main"}, "head", 400),
        ({"kind": "review"}, "diff", 400),
    ],
)
async def test_what_is_wrong_is_said_beside_the_field(
    wrong: dict[str, str], field: str, status: int
) -> None:
    """With what was typed still there, and nothing is ordered."""
    console = Console()
    sent = {"task": "Fix it.", "repo": "shop", "base": "HEAD", "once": "one", **wrong}
    answer = console.person().send("/runs/new", **sent)
    assert answer.status_code == status
    assert f'id="e-{field}"' in answer.text
    assert f'aria-describedby="e-{field} ' in answer.text
    assert 'value="HEAD"' in answer.text or "base" in wrong
    assert not (await console.service.desk.page("red")).runs
    assert not console.audit.kept


@pytest.mark.parametrize(
    "amount",
    ["-1", "0", "0.0000001", "much", "2e9", "1e999993", "-1e99999999", "1e99999999", "9" * 100_000],
    ids=lambda amount: amount[:20],
)
def test_money_is_refused_in_dollars(amount: str) -> None:
    """The API counts millionths, of which nobody who fills in a form knows."""
    sent = {"task": "Fix it.", "repo": "shop", "base": "HEAD", "once": "one"}
    said = words(Console().person().send("/runs/new", **sent, max_spend=amount))
    assert "This must be an amount in US dollars: more than 0, at most 1,000,000,000." in said
    assert "micro" not in said
    late = words(Console().person().send("/runs/new", **sent, max_minutes="99999"))
    assert "This must be a number of minutes: more than 0, at most 10,080." in late


def test_what_is_wrong_is_listed_above_the_form_in_the_page_s_words() -> None:
    """With ways to the fields, of which the first has the focus; no name of the API."""
    person = Console().person()
    sent = {"task": "", "repo": "shop", "base": "HEAD", "max_steps": "x", "once": "one"}
    page = person.send("/runs/new", **sent, max_spend="0")
    for name, label in (("max_steps", "Steps at most"), ("max_spend", "US dollars at most")):
        assert f'<a href="#f-{name}">{label}</a>: This must be' in page.text
    assert "Nothing was ordered yet: Steps at most" in words(page)
    first = page.text.partition(" autofocus")[0]
    assert first.rpartition("<input")[2].startswith(' id="f-max_steps"')
    review = words(person.send("/runs/new", repo="shop", base="HEAD", kind="review", once="two"))
    assert "A review takes either a “Diff” or a “Head”." in review


def test_a_form_offers_what_there_is() -> None:
    """Repositories that are pushed to, policies of the key, an address where any is told."""
    person = Console().person("red-member")
    said = words(person.get("/runs/new"))
    assert "Branches are pushed to: docs, shop." in said
    assert "Your key may choose team. Empty: the first of them." in said
    assert "Address to tell" in said


def test_every_field_has_the_name_that_errors_call_it_by() -> None:
    """The list above the form and the form itself never differ."""
    page = Console().person().get("/runs/new").text
    found = dict(re.findall(r'<label for="f-([a-z_]+)">([^<]+)</label>', page))
    assert found == LABELS


def test_a_refusal_of_no_field_is_said_above_the_form() -> None:
    """Such as a cap that no model may serve under."""
    answer = (
        Console()
        .person()
        .send(
            "/runs/new", task="Fix it.", repo="shop", base="HEAD", max_spend="0.000013", once="one"
        )
    )
    assert (answer.status_code, "No price." in words(answer)) == (403, True)


def test_a_form_begins_with_what_its_address_says() -> None:
    """So that a link can offer it."""
    page = Console().person().get("/runs/new?repo=docs&task=%3Cb%3E").text
    assert 'value="docs"' in page
    assert "&lt;b&gt;</textarea>" in page
