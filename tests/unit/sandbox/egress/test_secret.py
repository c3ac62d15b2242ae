"""A value is put in for its placeholder in header fields, and taken out of answers."""

import base64
import json
from urllib.parse import quote

import pytest

from turnout.errors import ConfigError
from turnout.sandbox.base import BoundSecret
from turnout.sandbox.egress.secret import HostSecrets, Scrubber, place

VALUE = 's3cr3t/"v\u00e4lue"+&='


def placed(value: str = VALUE) -> tuple[HostSecrets, bytes]:
    """Return the secrets of a host that has one, and its placeholder."""
    secret = place(BoundSecret("TOKEN", "api.test", value))
    return HostSecrets([secret]), secret.placeholder


def basic(text: bytes) -> bytes:
    """Return an authorization by name and password."""
    return b"Basic " + base64.b64encode(text)


def scrubbed(secrets: HostSecrets, data: bytes) -> bytes:
    """Return what is passed on of an answer."""
    scrubber = secrets.scrubber()
    return scrubber.feed(data) + scrubber.finish()


def test_each_placeholder_is_another() -> None:
    """Nobody can know it beforehand, and it does not say the value."""
    secrets = [place(BoundSecret("TOKEN", "api.test", VALUE)) for _ in range(2)]
    assert secrets[0].placeholder != secrets[1].placeholder
    assert len(secrets[0].placeholder) >= 32
    assert VALUE not in repr(secrets)


def test_a_value_is_put_in_wherever_a_field_has_its_placeholder() -> None:
    """Also twice, and beside other text."""
    secrets, holder = placed()
    headers = [(b"Authorization", b"Bearer " + holder), (b"X-Two", holder + b":" + holder)]
    found, used = secrets.put_in(headers)
    value = VALUE.encode()
    assert found == [(b"Authorization", b"Bearer " + value), (b"X-Two", value + b":" + value)]
    assert used == ("TOKEN",)


def test_a_value_is_put_into_a_password() -> None:
    """What programs make of a user and a password is Base64."""
    secrets, holder = placed()
    found, used = secrets.put_in([(b"Authorization", basic(b"me:" + holder))])
    assert found == [(b"Authorization", basic(b"me:" + VALUE.encode()))]
    assert used == ("TOKEN",)


@pytest.mark.parametrize(
    "field",
    [
        (b"Authorization", b"Bearer other"),
        (b"Authorization", b"Basic !!!"),
        (b"Authorization", basic(b"me:other")),
        (b"Authorization", b"Basic abc"),
    ],
)
def test_other_fields_stay_as_they_are(field: tuple[bytes, bytes]) -> None:
    """Also those that are malformed."""
    secrets, _ = placed()
    assert secrets.put_in([field]) == ([field], ())


@pytest.mark.parametrize("name", [b"Host", b"content-length", b"Expect"])
def test_fields_that_steer_the_request_are_left_alone(name: bytes) -> None:
    """A placeholder in them is a fault of the client."""
    secrets, holder = placed()
    assert secrets.put_in([(name, holder)]) == ([(name, holder)], ())


@pytest.mark.parametrize(
    "echo",
    [
        VALUE.encode(),
        quote(VALUE, safe="").encode(),
        json.dumps(VALUE).encode()[1:-1],
        json.dumps(VALUE, ensure_ascii=False).encode()[1:-1],
    ],
)
def test_an_echo_becomes_the_placeholder(echo: bytes) -> None:
    """As the value is, and in the escapes of URLs and of JSON."""
    secrets, holder = placed()
    assert scrubbed(secrets, b"<" + echo + b">") == b"<" + holder + b">"


@pytest.mark.parametrize("before", [b"", b"a", b"ab", b"abc", b"user:"])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_an_echo_in_base64_shows_nothing_of_the_middle(before: bytes, encode: type) -> None:
    """Whatever stood before the value when it was encoded."""
    secrets, holder = placed()
    echo = encode(before + VALUE.encode() + b" more")
    found = scrubbed(secrets, echo)
    assert holder in found
    kept = found.replace(holder, b"")
    assert len(kept) <= len(echo) - 8 * len(VALUE.encode()) // 6 + 2


def test_credentials_that_were_sent_come_back_as_they_were_asked_for() -> None:
    """An echo of the whole field is replaced exactly."""
    secrets, holder = placed()
    asked = basic(b"me:" + holder)
    ((_, sent),), _ = secrets.put_in([(b"Authorization", asked)])
    assert scrubbed(secrets, b'{"Authorization": "' + sent + b'"}').count(asked) == 1


def test_fields_of_an_answer_are_scrubbed_each_on_its_own() -> None:
    """A value does not end in another field."""
    secrets, holder = placed()
    value = VALUE.encode()
    headers = [(b"Set-Cookie", b"a=" + value), (b"A", value[:5]), (b"B", value[5:])]
    assert secrets.scrub(headers) == [(b"Set-Cookie", b"a=" + holder), *headers[1:]]


def test_only_what_may_be_an_echo_is_held_back() -> None:
    """A stream of events is not delayed by what it does not contain."""
    scrubber = Scrubber({b"secret-value": b"x"})
    assert scrubber.feed(b"data: 1\n\n") == b"data: 1\n\n"
    assert scrubber.feed(b"data: sec") == b"data: "
    assert scrubber.feed(b"ond\n\n") == b"second\n\n"
    assert scrubber.feed(b"secret-val") == b""
    assert scrubber.finish() == b"secret-val"


def test_of_two_matches_the_earlier_counts_and_then_the_longer() -> None:
    """So nothing of a longer one is left beside a shorter one."""
    scrubber = Scrubber({b"abcd": b"1", b"abcdef": b"2", b"xabc": b"3"})
    assert scrubber.feed(b"abcde") == b""
    assert scrubber.feed(b"f xabcd abcdx") == b"2 3d 1"
    assert scrubber.finish() == b"x"


@pytest.mark.parametrize(
    ("secret", "complaint"),
    [
        (BoundSecret("A", "10.0.0.1", VALUE), "cannot be bound to '10.0.0.1'"),
        (BoundSecret("A", "*.api.test", VALUE), "cannot be bound to"),
        (BoundSecret("A B", "api.test", VALUE), "'A B' cannot name a secret"),
        (BoundSecret("", "api.test", VALUE), "cannot name a secret"),
        (BoundSecret("A", "api.test", "short"), "cannot be kept secret"),
        (BoundSecret("A", "api.test", "x" * 4_097), "cannot be kept secret"),
        (BoundSecret("A", "api.test", "with\r\nline"), "cannot be kept secret"),
        (BoundSecret("A", "api.test", " with-space "), "cannot be kept secret"),
    ],
)
def test_a_secret_that_cannot_be_kept_is_refused(secret: BoundSecret, complaint: str) -> None:
    """The error does not show the value."""
    with pytest.raises(ConfigError, match=complaint.replace("*", r"\*")) as caught:
        place(secret)
    assert secret.value not in str(caught.value)
