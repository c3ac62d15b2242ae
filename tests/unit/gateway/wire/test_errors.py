"""What clients read of an error, in every shape."""

import pytest

from turnout.errors import (
    NotFoundError,
    SandboxError,
    StaleEpochError,
    StoreError,
    TurnoutError,
    UnfitError,
    UsageError,
)
from turnout.gateway.admin.errors import refusal
from turnout.gateway.wire.chat.errors import write_error
from turnout.gateway.wire.errors import error_text
from turnout.gateway.wire.messages.errors import write_error as write_messages_error


@pytest.mark.parametrize("kind", [StoreError, StaleEpochError, SandboxError, UnfitError])
def test_what_the_operator_has_to_mend_stands_in_the_log_alone(
    kind: type[TurnoutError], caplog: pytest.LogCaptureFixture
) -> None:
    """Clients read no file, no server and no account of the service."""
    error = kind("postgresql://turnout@db.example.org failed.", mend="Look at /srv/state.")
    bodies = [write_error(error).body, write_messages_error(error).body, refusal(error).body]
    for body in bodies:
        assert b"Its log says why" in body or b"its log says why" in body
        assert b"db.example.org" not in body
        assert b"/srv" not in body
    assert str(error) in caplog.text


@pytest.mark.parametrize("kind", [NotFoundError, UsageError])
def test_what_the_caller_has_to_mend_is_told(kind: type[TurnoutError]) -> None:
    """With how that is done."""
    assert error_text(kind("There is no `x`.", mend="Name one.")) == "There is no `x`. Name one."
