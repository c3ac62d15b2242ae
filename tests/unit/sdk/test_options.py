"""Keywords of the SDK."""

import pytest

from turnout.errors import UsageError
from turnout.sandbox.base import WORKSPACE
from turnout.sdk.options import CreateOptions, ExecOptions, creation, execution


def asked(command: str = "true", **options: object):
    """Return the command that keywords ask for."""
    return execution(command, options, check=False)


def test_both_spellings_of_a_timeout_mean_the_same() -> None:
    """Programs that were written for other sandboxes say it either way."""
    assert creation({"timeout": 60}).timeout == creation({"timeout_seconds": 60}).timeout == 60
    assert asked(timeout_ms=1500).command.timeout == asked(timeout=1.5).command.timeout == 1.5


def test_two_timeouts_at_once_are_refused() -> None:
    """Neither is silently the stronger one."""
    with pytest.raises(UsageError, match="say the same"):
        creation({"timeout": 1, "timeout_seconds": 2})
    with pytest.raises(UsageError, match="say the same"):
        asked(timeout=1, timeout_ms=1000)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_a_timeout_is_a_time(seconds: float) -> None:
    """Nothing waits for ever by mistake."""
    with pytest.raises(UsageError, match="Give a time above 0"):
        asked(timeout=seconds)


def test_an_unknown_keyword_is_an_error_that_names_it() -> None:
    """As with any Python function."""
    with pytest.raises(TypeError, match=r"exec\(\) got an unexpected keyword argument 'user'"):
        asked(user="root")
    with pytest.raises(TypeError, match="'template'"):
        creation({"template": "base"})


@pytest.mark.parametrize(
    ("cwd", "folder"),
    [("", WORKSPACE), ("repo", f"{WORKSPACE}/repo"), ("/tmp", "/tmp")],
)
def test_a_relative_folder_starts_from_the_workspace(cwd: str, folder: str) -> None:
    """Wherever the agent's root may be."""
    assert asked(cwd=cwd).command.cwd == folder


@pytest.mark.parametrize("command", ["", "a\0b", "\ud83d", "x" * (2 << 20)])
def test_what_no_program_can_be_given_is_no_error_of_the_caller(command: str) -> None:
    """A model may ask for it, and should read why it cannot be."""
    assert asked(command).unfit


@pytest.mark.parametrize("env", [{"A": 1}, {"A=B": ""}, {"": ""}, {"A": "\0"}])
def test_a_variable_that_cannot_be_is_refused(env: dict[str, object]) -> None:
    """Before anything is started."""
    with pytest.raises(UsageError, match="env"):
        asked(env=env)


def test_one_host_is_not_read_as_many() -> None:
    """A text is a sequence of its letters."""
    with pytest.raises(UsageError, match=r"allow=\['example.org'\]"):
        creation({"allow": "example.org"})


def test_a_base_needs_a_repository() -> None:
    """There is no revision of nothing."""
    with pytest.raises(UsageError, match="repository"):
        creation({"base": "main"})


def test_a_background_command_has_no_listeners() -> None:
    """No caller's thread would be there to call them in."""
    with pytest.raises(UsageError, match="on_stdout"):
        execution("x", {"on_stdout": print}, check=False, background=True)


def test_no_keyword_is_needed() -> None:
    """All of them are optional, so that signatures say so."""
    assert not CreateOptions.__required_keys__ | ExecOptions.__required_keys__
