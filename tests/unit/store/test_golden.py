"""Payloads as the first schema wrote them must load for ever; add files, never change one."""

from pathlib import Path
from typing import get_args

from tests.samples import STRANGE, receipt

from turnout.core.events import Event, Notice, PatchMade, decode_event
from turnout.core.govern.revisions import decode_policy
from turnout.core.policies import Alias, Policy
from turnout.core.receipts import ConnectionCall, decode_receipt

GOLDEN = Path(__file__).parents[2] / "golden"


def lines(name: str) -> list[str]:
    """Return the payloads of one file."""
    return (GOLDEN / name).read_text(encoding="ascii").splitlines()


def test_every_schemas_events_load():
    """One of each kind."""
    names = sorted(path.name for path in GOLDEN.glob("events-*.jsonl"))
    events = [decode_event(line) for name in names for line in lines(name)]
    assert {type(event) for event in events} == set(get_args(Event))


def test_what_is_hard_to_keep_is_unchanged():
    """Bytes that are no UTF-8, a NUL, a lone surrogate."""
    events = [decode_event(line) for line in lines("events-0001.jsonl")]
    assert Notice(STRANGE, "warning") in events
    patches = [event.patch.diff for event in events if isinstance(event, PatchMade)]
    assert patches == [bytes(range(256))]


def test_the_first_schemas_receipts_load():
    """A served request and a refused one."""
    served, refused = (decode_receipt(line) for line in lines("receipts-0001.jsonl"))
    assert served == receipt("req-1")
    assert (refused.error_code, refused.decision) == ("tool_not_allowed", None)


def test_every_schemas_policies_load():
    """One that says everything, and one that says nothing."""
    whole, empty = (decode_policy(line) for line in lines("policies-0002.jsonl"))
    assert (whole.name, whole.revision, whole.session.max_spend) == ("team", 3, 2_005_000)
    assert whole.aliases == (
        Alias("gpt-5", "big"),
        Alias("gpt-*", "auto", optimize="quality", task="coding"),
    )
    assert whole.tools.by_kind == (("review", ("read_file",)),)
    assert empty == Policy()


def test_the_second_schemas_receipts_load():
    """With project, policy and shape; one that ran tools, one replayed, one that counted tokens."""
    served, replayed, counted = (decode_receipt(line) for line in lines("receipts-0002.jsonl"))
    assert (served.project, served.policy, served.policy_revision) == ("web", "team", 3)
    assert served.connection_calls == (
        ConnectionCall("git", "log", None, 12),
        ConnectionCall("git", "push", "It timed out.", 5_000),
    )
    assert (replayed.shape, replayed.replay_of) == ("responses", "req-1")
    assert (counted.operation, counted.shape) == ("count_tokens", "messages")
