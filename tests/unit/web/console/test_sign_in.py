"""Who comes into the console, for how long, and what a browser is forbidden there."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request
from starlette.testclient import TestClient
from tests.unit.web.console.seen import SECRET, Console, Holders, Shifted, words
from tests.unit.web.rooms import CALLERS

from turnout.core.clock import SystemClock
from turnout.errors import GatewayError
from turnout.web.console.doors import COOKIE, LASTS, Doorman, Signer
from turnout.web.console.sessions.ended import EndedSessions
from turnout.web.console.sessions.tries import Tries, address_of


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


def test_a_page_whose_session_has_ended_stays() -> None:
    """What is written there is not thrown away: it is sent once its key is signed in again."""
    console = Console()
    person = console.person()
    csrf = Signer(SECRET).csrf(person.cookie)
    console.clock.at = datetime.now(UTC) + LASTS + timedelta(minutes=1)
    part = person.part("/runs")
    assert part.status_code == 401
    assert "Your session has ended. Sign in in another window" in words(part)
    assert "<html" not in part.text
    stream = person.part("/runs/run-1/live")
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert all(line.startswith("data: ") for line in stream.text.strip().splitlines())
    again = console.person()
    assert again.cookie != person.cookie
    assert Signer(SECRET).csrf(again.cookie) == csrf
    assert Signer(SECRET).csrf(console.person("boss").cookie) != csrf


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


def test_signing_out_ends_it_in_the_browser_and_on_the_server() -> None:
    """The cookie is gone; a copy of it opens nothing, and another session goes on."""
    console = Console()
    person, thief, other = console.person(), console.guest(), console.person()
    thief.cookies.set(COOKIE, person.cookie, path="/console")
    assert thief.get("/console/runs").status_code == 200
    assert person.send("/sign-out").headers["location"] == "/console/sign-in"
    assert person.get("/runs").status_code == 303
    again = thief.get("/console/runs", headers={"hx-request": "true"})
    assert (again.status_code, "You have signed out." in words(again)) == (401, True)
    assert other.get("/runs").status_code == 200


def test_signing_out_everywhere_ends_every_session_of_the_key() -> None:
    """None of another key, and whoever has the key signs in anew at once."""
    console = Console()
    person, elsewhere, other = console.person(), console.person(), console.person("boss")
    assert person.send("/sign-out", everywhere="1").status_code == 303
    assert elsewhere.get("/runs").status_code == 303
    assert other.get("/runs").status_code == 200
    time.sleep(0.002)
    assert console.person().get("/runs").status_code == 200


def test_only_a_page_of_the_session_signs_out_everywhere() -> None:
    """A form without its token, or of nobody, ends nothing."""
    console = Console()
    person = console.person()
    for client in (person.client, console.guest()):
        sent = client.post("/console/sign-out", data={"everywhere": "1", "csrf": "x"})
        assert sent.status_code in {303, 403}
    assert person.get("/runs").status_code == 200


def test_who_has_signed_out_is_known_to_every_process_of_a_state_folder(tmp_path: Path) -> None:
    """Also to one that begins later, until the session would have ended by itself."""
    clock = Shifted()
    file = tmp_path / "console.ended"
    doormen = [Doorman(Holders(), Signer(SECRET), clock, EndedSessions(clock, file)) for _ in "12"]
    tokens = [doormen[0].sign_in("boss", "").token for _ in range(3)]
    doormen[0].sign_out(tokens[0])
    doormen[1].sign_out(tokens[1])
    doormen.append(Doorman(Holders(), Signer(SECRET), clock, EndedSessions(clock, file)))
    for doorman in doormen:
        for token in tokens[:2]:
            with pytest.raises(GatewayError, match="signed out"):
                doorman.recognise(token, "")
        assert doorman.recognise(tokens[2], "").admin
    assert file.stat().st_mode & 0o077 == 0
    assert not any(token.encode() in file.read_bytes() for token in tokens)


def test_the_file_of_ended_sessions_does_not_grow_for_ever(tmp_path: Path) -> None:
    """What would have ended by itself is forgotten; a line that is not whole does no harm."""
    clock, file = Shifted(), tmp_path / "console.ended"
    ended = EndedSessions(clock, file)
    for number in range(600):
        ended.add("digest", f"mark{number}", clock.now().timestamp() + 10)
    file.write_bytes(file.read_bytes() + b'["dig\n[]\n')
    clock.at = datetime.now(UTC) + LASTS
    ended.add("digest", "new", clock.now().timestamp() + 10)
    assert file.read_bytes().count(b"\n") == 1
    assert ended.has("digest", "new", clock.now().timestamp() + 10)


def test_one_key_signs_out_of_so_many_sessions_one_by_one() -> None:
    """Then of all that it has had: nobody fills the folder."""
    clock = Shifted()
    ended = EndedSessions(clock)
    until = clock.now().timestamp() + 10
    for number in range(1_001):
        ended.add("digest", f"mark{number}", until)
    assert ended.has("digest", "another", until)
    assert not ended.has("digest", "another", until + 1)
    assert not ended.has("other", "another", until)


def test_a_folder_that_cannot_be_written_says_so_to_whoever_signs_out(tmp_path: Path) -> None:
    """The session goes on: nobody believes to be signed out who is not."""
    console = Console()
    console.doorman = Doorman(
        console.holders,
        Signer(SECRET),
        console.clock,
        EndedSessions(console.clock, tmp_path / "gone" / "console.ended"),
    )
    console.build()
    person = console.person()
    answer = person.send("/sign-out")
    assert (answer.status_code, "cannot be kept" in words(answer)) == (503, True)
    assert person.get("/runs").status_code == 200


def wrong(console: Console, address: str = "10.0.0.1", key: str = "no") -> Any:
    """Try a key from an address."""
    client = TestClient(console.app, client=(address, 1), follow_redirects=False)
    return client.post("/console/sign-in", data={"key": key})


def test_wrong_keys_from_one_address_are_slowed_down() -> None:
    """After ten of them no key of it is looked at for some seconds; others are not held up."""
    console = Console()
    answers = [wrong(console) for _ in range(12)]
    assert [answer.status_code for answer in answers] == [401] * 10 + [429] * 2
    assert "Too many wrong keys came from your address" in words(answers[-1])
    assert wrong(console, key="boss").status_code == 429
    assert wrong(console, "10.0.0.2", "boss").status_code == 303
    console.clock.ahead = 7.0
    assert wrong(console, key="boss").status_code == 303


def test_failed_sign_ins_are_on_record_and_do_not_flood_it() -> None:
    """The first, the tenth and so on of each address, without the key that was tried."""
    console = Console()
    for _ in range(25):
        wrong(console, key="a-secret")
    kept = [(x.actor, x.action, dict(x.detail)) for x in console.audit.kept]
    assert kept == [
        ("nobody", "sign_in_failed", {"address": "10.0.0.1", "times": times})
        for times in ("1", "10")
    ]
    for number in range(200):
        wrong(console, f"10.1.0.{number}")
    assert len(console.audit.kept) == 60


def test_addresses_that_one_holder_has_count_as_one() -> None:
    """Of IPv6 the 64 bits that everybody is given; and there are not too many of them kept."""
    tries = Tries(SystemClock(), most_addresses=3)
    for number in range(11):
        tries.wrong(f"2001:db8::{number:x}%eth0")
    with pytest.raises(GatewayError, match="Too many wrong keys"):
        tries.check("2001:db8::ffff")
    tries.check("2001:db8:0:1::1")
    for number in range(3):
        tries.wrong(f"::ffff:10.0.0.{number}")
    tries.check("2001:db8::1")


@pytest.mark.parametrize(
    ("peer", "said", "counts"),
    [
        ("127.0.0.1", "1.2.3.4, 5.6.7.8", "5.6.7.8"),
        ("::1", "", "::1"),
        ("10.0.0.1", "x", "10.0.0.1"),
    ],
)
def test_only_a_proxy_of_this_machine_is_believed(peer: str, said: str, counts: str) -> None:
    """In what it has added last."""
    scope = {"type": "http", "client": (peer, 1), "headers": [(b"x-forwarded-for", said.encode())]}
    assert address_of(Request(scope)) == counts


@pytest.mark.parametrize("name", ["origin", "referer", "host"])
@pytest.mark.parametrize(
    "value", ["http://[", "http://[::1", "[", "http://x:y", "//[v1.]", "\xff", "", "null", "a b"]
)
def test_a_header_that_is_no_address_breaks_nothing(name: str, value: str) -> None:
    """Whoever sends it, with whatever else: it is refused, or does not count."""
    console = Console()
    person = console.person()
    headers = {name: value.encode("latin-1")}
    fields = {"csrf": Signer(SECRET).csrf(person.cookie), "key": "boss", "next": "/runs"}
    for client in (person.client, console.guest()):
        for path in ("/sign-in", "/runs/run-1/cancel", "/sign-out", "/nothing"):
            assert client.post(f"/console{path}", data=fields, headers=headers).status_code < 500
        for path in (
            "/",
            "/runs",
            "/runs/",
            "/static/console.css",
            "/nothing/",
            "/sign-in?next=/x",
        ):
            answer = client.get(f"/console{path}", headers=headers)
            assert answer.status_code < 500
            assert answer.headers.get("location", "/console/").startswith("/console/")


def test_no_address_is_made_of_the_host_that_a_request_names() -> None:
    """Not even where one `/` is too many."""
    answer = Console().person().get("/runs/", headers={"host": "evil.example.org"})
    assert (answer.status_code, "location" in answer.headers) == (404, False)


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
