"""What webhooks of forges ask for, and whose they are."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnout.core.service.forges import Forge, ForgeKind
from turnout.errors import UsageError
from turnout.runs.forges.hooks.github import read_github
from turnout.runs.forges.hooks.gitlab import read_gitlab
from turnout.runs.forges.hooks.signatures import genuine
from turnout.runs.forges.hooks.triggers import Command, Ignored, Person, Trigger, command_in
from turnout.testing.forges import Delivery, comment, labelled, signed

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "whsec-of-ours"
KINDS: tuple[ForgeKind, ...] = ("github", "gitlab")
both = pytest.mark.parametrize("kind", KINDS)


def read(delivery: Delivery) -> Trigger | Ignored:
    """Return what a delivery asks of a forge with the usual labels."""
    forge = Forge("hub", delivery.kind, "https://forge.example.org", "S", "T", "ci")
    if delivery.kind == "github":
        return read_github(forge, {"x-github-event": delivery.event}, delivery.body)
    return read_gitlab(forge, delivery.body)


@both
@pytest.mark.parametrize("standard", [True, False])
def test_what_the_forge_has_signed_is_genuine(kind: ForgeKind, standard: bool) -> None:
    """With its secret, and with no other one, nor with none."""
    headers, body = signed(comment(kind, "hello"), SECRET, NOW, standard=standard)
    assert genuine(kind, headers, body, SECRET, NOW)
    assert not genuine(kind, headers, body, "another", NOW)
    assert not genuine(kind, headers, body, "", NOW)
    assert not genuine(kind, {}, body, SECRET, NOW)


@both
def test_a_body_that_was_changed_on_the_way_is_not_genuine(kind: ForgeKind) -> None:
    """Not even by one byte, nor with the signature of another body."""
    headers, body = signed(comment(kind, "/turnout fix"), SECRET, NOW)
    assert not genuine(kind, headers, body + b" ", SECRET, NOW)
    other, _ = signed(comment(kind, "hello"), SECRET, NOW)
    assert not genuine(kind, other, body, SECRET, NOW)


def test_the_example_of_the_standard_is_genuine() -> None:
    """A secret `whsec_…` is the key in Base64, as a GitLab makes it."""
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v2,x v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    body, at = b'{"test": 2432232314}', datetime.fromtimestamp(1614265330, UTC)
    assert genuine("gitlab", headers, body, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", at)
    assert not genuine("gitlab", headers, body, "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", at)


def test_the_example_of_github_is_genuine() -> None:
    """The one with which its documentation lets anybody try their code."""
    digest = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    headers = {"x-hub-signature-256": f"sha256={digest}"}
    assert genuine("github", headers, b"Hello, World!", "It's a Secret to Everybody", NOW)


def test_a_secret_alone_does_not_do_where_a_signature_is_sent() -> None:
    """Whoever adds the one does not get around the other."""
    headers, body = signed(comment("gitlab", "hello"), SECRET, NOW)
    headers["webhook-signature"] = "v1,AAAA"
    headers["x-gitlab-token"] = SECRET
    assert not genuine("gitlab", headers, body, SECRET, NOW)


@pytest.mark.parametrize("late", [301, -301, 86_400])
def test_a_signature_of_long_ago_counts_no_more(late: int) -> None:
    """Nor one of the future: what was overheard cannot be sent again at will."""
    headers, body = signed(comment("gitlab", "hello"), SECRET, NOW)
    assert not genuine("gitlab", headers, body, SECRET, NOW + timedelta(seconds=late))
    assert genuine("gitlab", headers, body, SECRET, NOW + timedelta(seconds=300))


@pytest.mark.parametrize("stamp", ["", "x", "-5", "1e9", "٣٣", "9" * 400])
def test_a_moment_that_is_none_is_not_genuine(stamp: str) -> None:
    """False, and no error."""
    headers, body = signed(comment("gitlab", "hello"), SECRET, NOW)
    headers["webhook-timestamp"] = stamp
    assert not genuine("gitlab", headers, body, SECRET, NOW)


@both
@pytest.mark.parametrize("header", ["x-hub-signature-256", "webhook-signature", "x-gitlab-token"])
def test_a_signature_of_any_characters_is_an_answer(kind: ForgeKind, header: str) -> None:
    """Headers come from anybody."""
    assert not genuine(kind, {header: "é\x80", "webhook-timestamp": "1"}, b"", SECRET, NOW)


@pytest.mark.parametrize(
    ("text", "thread", "found"),
    [
        ("/turnout fix", "issue", Command("fix", "")),
        (
            "  /turnout\tfix  the rounding\r\nas well\n",
            "issue",
            Command("fix", "the rounding\r\nas well"),
        ),
        ("/turnout", "issue", Command("fix", "")),
        ("/turnout", "pull", Command("review", "")),
        ("/turnout review only the lock", "pull", Command("review", "only the lock")),
    ],
)
def test_a_comment_that_begins_with_our_name_is_a_command(text, thread, found) -> None:
    """With what else it says."""
    assert command_in(text, thread) == found


@pytest.mark.parametrize(
    ("text", "thread"),
    [
        ("", "issue"),
        ("please /turnout fix", "issue"),
        ("> /turnout fix", "issue"),
        ("/turnoutfix", "issue"),
        ("/turnout deploy", "issue"),
        ("/turnout review", "issue"),
        ("/turnout fix", "pull"),
        ("<!-- turnout run-0123456789ab -->\n\n/turnout fix", "issue"),
    ],
)
def test_any_other_comment_is_none(text, thread) -> None:
    """A quote, a sentence about it, and what we have written ourselves ask for nothing."""
    assert isinstance(command_in(text, thread), Ignored)


@both
def test_a_label_on_an_issue_asks_for_a_fix(kind: ForgeKind) -> None:
    """Of whoever has set it, about what the issue says."""
    asked = read(labelled(kind, "turnout"))
    assert isinstance(asked, Trigger)
    assert (asked.work, asked.path, asked.thread, asked.number) == ("fix", "acme/shop", "issue", 12)
    assert asked.person == Person("ann", 7)
    assert (asked.title, asked.words) == ("Totals are wrong", "")


@both
def test_a_label_on_a_request_asks_for_a_review(kind: ForgeKind) -> None:
    """The other label asks for nothing there."""
    asked = read(labelled(kind, "turnout-review", thread="pull", number=3))
    assert isinstance(asked, Trigger)
    assert (asked.work, asked.thread, asked.number) == ("review", "pull", 3)
    assert isinstance(read(labelled(kind, "turnout", thread="pull")), Ignored)


@both
def test_a_comment_asks_with_its_words(kind: ForgeKind) -> None:
    """A fix on an issue, a review on a request."""
    asked = read(comment(kind, "/turnout fix only the basket"))
    assert isinstance(asked, Trigger)
    assert (asked.work, asked.words, asked.occasion) == ("fix", "only the basket", "comment 501")
    review = read(comment(kind, "/turnout review", thread="pull"))
    assert isinstance(review, Trigger)
    assert review.work == "review"


@both
def test_the_same_wish_has_one_occasion_and_another_one_its_own(kind: ForgeKind) -> None:
    """A label that is set once more later is a new wish."""
    part = "issue" if kind == "github" else "object_attributes"
    first, again = labelled(kind, "turnout"), labelled(kind, "turnout")
    later = first.with_(part, updated_at="2026-01-02T12:00:00Z")
    occasions = [getattr(read(one), "occasion", None) for one in (first, again, later)]
    assert occasions[0] == occasions[1] != occasions[2]


@pytest.mark.parametrize(
    "delivery",
    [
        Delivery("github", "ping", {"zen": "…"}),
        Delivery("github", "push", {}),
        labelled("github", "bug"),
        labelled("github", "turnout").with_("issue", state="closed"),
        labelled("github", "turnout").with_("sender", type="Bot"),
        replace(comment("github", "/turnout fix"), event="issues"),
        replace(comment("github", "/turnout fix"), event="pull_request_review_comment"),
        Delivery("gitlab", "Push Hook", {"object_kind": "push"}),
        labelled("gitlab", "bug"),
        labelled("gitlab", "turnout").with_("object_attributes", state="closed"),
        labelled("gitlab", "turnout").with_("object_attributes", action="close"),
        labelled("gitlab", "turnout").with_("object_attributes", confidential=True),
        labelled("gitlab", "turnout").with_("changes", labels={}),
        comment("gitlab", "/turnout fix").with_("object_attributes", action="update"),
        comment("gitlab", "/turnout fix").with_("object_attributes", system=True),
        comment("gitlab", "/turnout fix").with_("object_attributes", internal=True),
        comment("gitlab", "/turnout fix").with_("object_attributes", noteable_type="Snippet"),
        comment("gitlab", "/turnout fix").with_("issue", confidential=True),
    ],
)
def test_whatever_else_happens_asks_for_nothing(delivery: Delivery) -> None:
    """Other events, other labels, edits, robots, what is closed and what is confidential."""
    assert isinstance(read(delivery), Ignored)


@pytest.mark.parametrize("event_type", ["confidential_note", "confidential_issue"])
def test_a_confidential_issue_may_show_by_the_type_of_the_event_alone(event_type: str) -> None:
    """As it does where it is commented on."""
    wish = comment("gitlab", "/turnout fix")
    found = read(replace(wish, body={**wish.body, "event_type": event_type}))
    assert isinstance(found, Ignored)
    assert "confidential" in found.why


def test_an_edited_comment_asks_for_nothing() -> None:
    """Its first words may be somebody else's by now."""
    delivery = comment("github", "/turnout fix")
    assert isinstance(read(replace(delivery, body={**delivery.body, "action": "edited"})), Ignored)


def test_an_issue_that_is_opened_with_the_label_asks_for_a_fix() -> None:
    """There is no change of labels then."""
    opened = labelled("gitlab", "turnout").with_("object_attributes", action="open")
    assert isinstance(read(replace(opened, body={**opened.body, "changes": {}})), Trigger)


@both
@pytest.mark.parametrize("lacks", ["number", "person", "path"])
def test_a_delivery_of_another_form_is_refused(kind: ForgeKind, lacks: str) -> None:
    """In a sentence that names what is not there."""
    delivery = comment(kind, "/turnout fix")
    github = {
        "number": ("issue", {"number": "12"}),
        "person": ("sender", {"login": None}),
        "path": ("repository", {"full_name": 5}),
    }
    gitlab = {
        "number": ("issue", {"iid": True}),
        "person": ("user", {"id": -1}),
        "path": ("project", {"path_with_namespace": None}),
    }
    part, wrong = (github if kind == "github" else gitlab)[lacks]
    with pytest.raises(UsageError, match="lacks"):
        read(delivery.with_(part, **wrong))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=6,
)


@both
@settings(max_examples=60)
@given(data=st.data())
def test_any_json_is_a_wish_or_none_or_a_refusal(kind: ForgeKind, data: st.DataObject) -> None:
    """Whatever stands in the place of a part of it: no delivery is an error of ours."""
    wish = data.draw(
        st.sampled_from(
            [
                comment(kind, "/turnout fix"),
                comment(kind, "/turnout", thread="pull"),
                labelled(kind, "turnout"),
                labelled(kind, "turnout-review", thread="pull"),
            ]
        )
    )
    part = data.draw(st.sampled_from(sorted(wish.body)))
    body = {**wish.body, part: data.draw(JSON)}
    if isinstance(wish.body[part], dict) and data.draw(st.booleans()):
        field = data.draw(st.sampled_from(sorted(wish.body[part])))
        body = {**wish.body, part: {**wish.body[part], field: data.draw(JSON)}}
    try:
        found = read(replace(wish, body=body))
    except UsageError:
        return
    assert isinstance(found, Trigger | Ignored)
