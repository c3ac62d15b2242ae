"""Whatever changes something: by whom it may be asked for, and what is put on record."""

from dataclasses import dataclass

import pytest
from starlette.responses import PlainTextResponse, Response
from tests.unit.web.console.seen import SECRET, Console, words

from turnout.errors import ConflictError, GatewayError, StoreError, UsageError
from turnout.web.console.doors import Signer
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Visit


@dataclass
class Lever:
    """A section with one page and one change, for approvers."""

    pulled: int = 0
    error: Exception | None = None

    def section(self) -> Section:
        """Return it."""
        return Section(
            "Levers",
            "/levers",
            (Page("/levers", self.show), Page("/broken", self.show)),
            (Change("/levers/{name}", "pull_lever", self.pull, "approver"),),
        )

    async def show(self, visit: Visit) -> Response:
        """Say who looks, or fail."""
        if self.error is not None:
            raise self.error
        return PlainTextResponse(visit.caller.key)

    async def pull(self, visit: Visit) -> Done:
        """Pull it."""
        if self.error is not None:
            raise self.error
        self.pulled += 1
        how = visit.form.text("how")
        return Done(visit.go("/levers"), visit.path("name"), {"how": how}, how != "again")


def test_a_change_is_on_record_with_its_author() -> None:
    """Action, subject and detail, as it was made."""
    console = Console(more=(Lever().section(),))
    assert console.person().send("/levers/red", how="slowly").status_code == 303
    (change,) = console.audit.kept
    assert (change.actor, change.project, change.action) == ("red-approver", "red", "pull_lever")
    assert (change.subject, change.detail) == ("red", {"how": "slowly"})


def test_what_changes_nothing_is_not_on_record() -> None:
    """Nor is what was refused."""
    lever = Lever()
    console = Console(more=(lever.section(),))
    console.person().send("/levers/red", how="again")
    lever.error = ConflictError("Somebody else did.")
    assert console.person().send("/levers/red").status_code == 409
    assert not console.audit.kept


def test_a_change_that_cannot_be_put_on_record_is_told() -> None:
    """503, though it was made: whoever asked must know."""
    console = Console(more=(Lever().section(),))
    console.audit.away = True
    answer = console.person().send("/levers/red")
    assert answer.status_code == 503
    assert "The database is away." in words(answer)


@pytest.mark.parametrize("key", ["red-viewer", "red-member"])
def test_a_key_with_less_rights_changes_nothing(key: str) -> None:
    """Even where the form is sent without its page."""
    lever = Lever()
    console = Console(more=(lever.section(),))
    assert console.person(key).send("/levers/red").status_code == 403
    assert lever.pulled == 0


def test_a_form_of_another_session_changes_nothing() -> None:
    """Neither without what its page carries, nor with that of somebody else."""
    lever = Lever()
    console = Console(more=(lever.section(),))
    person, other = console.person(), console.person("boss")
    foreign = Signer(SECRET).csrf(other.cookie)
    for csrf in ("", "x", "é", foreign):
        answer = person.client.post("/console/levers/red", data={"csrf": csrf})
        assert (answer.status_code, "not of your session" in answer.text) == (403, True)
    header = {"x-csrf-token": Signer(SECRET).csrf(person.cookie)}
    assert person.client.post("/console/levers/red", data={}, headers=header).status_code == 400
    assert lever.pulled == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example.org"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
def test_a_form_from_another_site_changes_nothing(headers: dict[str, str]) -> None:
    """Whatever it carries: nobody is signed in or out by it either."""
    lever = Lever()
    console = Console(more=(lever.section(),))
    person = console.person()
    fields = {"csrf": Signer(SECRET).csrf(person.cookie), "key": "boss"}
    for path in ("/levers/red", "/sign-in", "/sign-out"):
        answer = person.client.post(f"/console{path}", data=fields, headers=headers)
        assert (answer.status_code, lever.pulled) == (403, 0)


def test_a_form_from_the_console_itself_is_taken() -> None:
    """As a browser sends it."""
    console = Console(more=(Lever().section(),))
    person = console.person()
    fields = {"csrf": Signer(SECRET).csrf(person.cookie)}
    headers = {"origin": "http://testserver", "sec-fetch-site": "same-origin"}
    sent = person.client.post("/console/levers/red", data=fields, headers=headers)
    assert sent.status_code == 303


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'{"csrf":"x"}', "application/json"),
        (b"csrf=x", "text/plain"),
        (b"csrf=%ff", "application/x-www-form-urlencoded"),
        (b"\xff", "application/x-www-form-urlencoded"),
        (b"&".join(b"a=1" for _ in range(300)), "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_that_is_no_form_is_refused(body: bytes, kind: str) -> None:
    """Before anything is done with it."""
    console = Console(more=(Lever().section(),))
    answer = console.person().client.post(
        "/console/levers/red", content=body, headers={"content-type": kind}
    )
    assert answer.status_code == 400


def test_a_form_has_a_size() -> None:
    """Nobody fills the memory of the service."""
    console = Console(more=(Lever().section(),))
    answer = console.person().send("/levers/red", how="x" * (4 * 2**20))
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (UsageError("That cannot be.", mend="Do this."), 400, "That cannot be. Do this."),
        (GatewayError("Too many.", status=429, code="x"), 429, "Too many."),
        (StoreError("Away."), 503, "Away."),
        (RuntimeError("a secret"), 500, "Something went wrong here."),
    ],
)
def test_an_error_is_a_page_with_what_to_do(error: Exception, status: int, said: str) -> None:
    """A page for whoever opened one, a notice for a page that asks; nothing of what broke."""
    console = Console(more=(Lever(error=error).section(),))
    person = console.person("red-viewer")
    page = person.get("/levers")
    assert (page.status_code, said in words(page)) == (status, True)
    assert "secret" not in page.text
    assert "<html" in page.text
    part = person.part("/levers")
    assert (part.status_code, said in words(part)) == (status, True)
    assert 'id="notice" hx-swap-oob="outerMorph"' in part.text
    assert "<html" not in part.text


def test_other_methods_and_paths_are_pages_too() -> None:
    """404 and 405, in the console's own words."""
    person = Console(more=(Lever().section(),)).person()
    assert person.get("/nothing").status_code == 404
    answer = person.client.delete("/console/levers")
    assert (answer.status_code, set(answer.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
