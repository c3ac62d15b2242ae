"""Who comes into the console, for how long, and what a browser is forbidden there."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.web.console.seen import SECRET, Console, words
from tests.unit.web.rooms import CALLERS

from turnout.web.console.doors import COOKIE, LASTS, Signer


def test_whoever_is_not_signed_in_is_sent_to_sign_in_and_back() -> None:
    """With the page that was wanted, query and all."""
    guest = Console().guest()
    answer = guest.get("/console/runs?state=ended&words=a+b")
    assert answer.status_code == 303
    sign_in = guest.get(answer.headers["location"])
    assert 'value="/runs?state=ended&amp;words=a+b"' in sign_in.text
    sent = guest.post(
        "/console/sign-in", data={"key": "red-viewer", "next": "/runs?state=ended&words=a+b"}
    )
    assert sent.headers["location"] == "/console/runs?state=ended&words=a+b"
    assert guest.get(sent.headers["location"]).status_code == 200


@pytest.mark.parametrize(
    "away",
    [
        "https://evil.example.org/",
        "//evil.example.org/",
        "/\\evil.example.org/",
        "\\\\evil.example.org",
        "javascript:alert(1)",
        "/\tx",
        "/sign-out",
        "/a" * 2_000,
        "",
    ],
)
def test_a_sign_in_leads_nowhere_else(away: str) -> None:
    """Whatever the address says, people arrive at the console's first page."""
    guest = Console().guest()
    sent = guest.post("/console/sign-in", data={"key": "red-viewer", "next": away})
    assert sent.headers["location"] == "/console/"


@pytest.mark.parametrize("key", ["", "wrong", "red-models", "é\0", "x" * 10_000])
def test_a_key_that_opens_nothing_is_told_so(key: str) -> None:
    """On the page itself, and no cookie is set."""
    answer = Console().guest().post("/console/sign-in", data={"key": key})
    assert answer.status_code in {401, 403}
    assert COOKIE not in answer.cookies
    assert 'role="alert"' in answer.text


def test_a_session_is_kept_from_scripts_and_other_sites() -> None:
    """Its cookie is HTTP-only, same-site, of the console alone, and encrypted where the site is."""
    guest = Console().guest()
    plain = guest.post("/console/sign-in", data={"key": "boss"}).headers["set-cookie"]
    assert {"HttpOnly", "Path=/console", "SameSite=lax"} <= set(plain.split("; "))
    assert "Secure" not in plain
    behind = {"x-forwarded-proto": "https"}
    sent = guest.post("/console/sign-in", data={"key": "boss"}, headers=behind)
    assert "Secure" in sent.headers["set-cookie"].split("; ")


def test_the_key_itself_is_in_no_cookie() -> None:
    """A session names what the key is known by, signed."""
    token = Signer(SECRET).token("digest", datetime(2030, 1, 1, tzinfo=UTC))
    assert Signer(SECRET).read(token) is not None
    assert Signer(b"t" * 32).read(token) is None


@pytest.mark.parametrize("place", [0, 5, -1, -40])
def test_a_session_that_was_touched_is_none(place: int) -> None:
    """Not one character of it may change."""
    token = Signer(SECRET).token("digest", datetime(2030, 1, 1, tzinfo=UTC))
    place %= len(token)
    other = "0" if token[place] != "0" else "1"
    assert Signer(SECRET).read(token[:place] + other + token[place + 1 :]) is None


@pytest.mark.parametrize("token", ["", ".", "a.b", "é", "." * 5_000, "bnVsbA.x"])
def test_what_was_never_a_session_is_none(token: str) -> None:
    """It is not even looked into."""
    assert Signer(SECRET).read(token) is None


def test_a_short_secret_signs_nothing() -> None:
    """Whoever guesses it could come in as anybody."""
    with pytest.raises(ValueError, match="guessed"):
        Signer(b"short")


def test_a_session_ends_with_its_time() -> None:
    """Whatever was done in it."""
    console = Console()
    person = console.person()
    console.clock.at = datetime.now(UTC) + LASTS - timedelta(minutes=1)
    assert person.get("/runs").status_code == 200
    console.clock.at += timedelta(minutes=2)
    assert person.get("/runs").status_code == 303
    assert person.part("/runs").headers["hx-redirect"] == "/console/sign-in"


def test_a_session_ends_with_its_key() -> None:
    """At the next request, and the browser forgets it."""
    console = Console()
    person = console.person()
    console.holders.shut.add("red-approver")
    answer = person.get("/runs")
    assert answer.status_code == 303
    assert COOKIE not in person.client.cookies


def test_a_session_does_what_its_key_may_do_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not what it might when somebody signed in."""
    console = Console()
    person = console.person("red-member")
    assert person.get("/runs/new").status_code == 200
    monkeypatch.setitem(CALLERS, "red-member", CALLERS["red-viewer"])
    answer = person.get("/runs/new")
    assert answer.status_code == 403
    assert "This takes a key of the role `member`." in words(answer)


def test_signing_out_ends_it_in_the_browser() -> None:
    """The cookie is gone."""
    person = Console().person()
    assert person.send("/sign-out").headers["location"] == "/console/sign-in"
    assert person.get("/runs").status_code == 303


@pytest.mark.parametrize(
    ("key", "role", "orders"),
    [
        ("red-viewer", "viewer", False),
        ("red-member", "operator", True),
        ("red-approver", "operator", True),
        ("boss", "admin", True),
    ],
)
def test_people_are_called_by_what_their_key_may_do(key: str, role: str, *, orders: bool) -> None:
    """And see only what they may use."""
    page = Console().person(key).get("/runs")
    assert f"{key} {role} Sign out" in words(page)
    assert ("New run" in words(page)) is orders


def test_without_any_key_this_machine_comes_in() -> None:
    """The page offers it only then."""
    console = Console(keyless=True)
    assert "Go on without a key" in words(console.guest().get("/console/sign-in"))
    assert "Go on without a key" not in words(Console().guest().get("/console/sign-in"))


@pytest.mark.parametrize(
    "path", ["/console/sign-in", "/console/nothing", "/console/static/nothing", "/console/runs"]
)
def test_every_answer_keeps_the_page_to_itself(path: str) -> None:
    """No script or style but ours, no frame, no cache, no guessing of types."""
    headers = Console().guest().get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"


def test_shipped_files_are_kept_for_good_by_their_mark() -> None:
    """An address with another mark is asked for again."""
    console = Console()
    page = console.guest().get("/console/sign-in").text
    at = page.index("/console/static/console.css?")
    address = page[at : page.index('"', at)]
    styles = console.guest().get(address)
    assert styles.headers["content-type"] == "text/css; charset=utf-8"
    assert "immutable" in styles.headers["cache-control"]
    assert console.guest().get("/console/static/console.css").headers["cache-control"] == "no-cache"
    assert console.guest().get("/console/static/../app.py").status_code == 404
