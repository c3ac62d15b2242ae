"""What a command left, as text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnout.sandbox.base import Command, Exit, ExitReason, Output
from turnout.sdk.result import Collecting, ExecResult, failure

COMMAND = Command(shell="make", head=8, tail=8)


def ended(
    reason: ExitReason = "exited",
    code: int | None = 0,
    signal: int | None = None,
    omitted: int = 0,
    error: str = "",
) -> Exit:
    """Return the end of a command."""
    return Exit(reason, code, signal, 1.5, 0, 0, omitted, 0, error)


def test_streams_are_kept_apart_as_text() -> None:
    """Standard error is not mixed into standard output."""
    kept = Collecting(COMMAND)
    kept.take(Output("stdout", b"out\n"))
    kept.take(Output("stderr", b"err\n"))
    assert kept.result(ended()) == ExecResult("out\n", "err\n", 0, duration=1.5)


def test_bytes_that_are_no_text_are_shown_as_escapes() -> None:
    """No output, however odd, can make a result fail."""
    kept = Collecting(COMMAND)
    kept.take(Output("stdout", b"caf\xe9 \xc3\xa9"))
    assert kept.result(ended()).stdout == "caf\\xe9 é"


def test_a_character_that_two_pieces_share_arrives_whole() -> None:
    """Pieces are cut between bytes, and text is not."""
    kept = Collecting(COMMAND)
    pieces = [kept.take(Output("stdout", byte.to_bytes())) for byte in "é".encode()]
    assert pieces == ["", "é"]


@given(st.text(), st.integers(1, 5))
def test_text_in_pieces_is_the_text(text: str, size: int) -> None:
    """Wherever UTF-8 is cut, callers and the result read the same."""
    kept = Collecting(COMMAND)
    data = text.encode()
    said = [kept.take(Output("stdout", data[at : at + size])) for at in range(0, len(data), size)]
    assert "".join(said) == kept.result(ended()).stdout == text


def test_what_is_left_out_is_counted_where_it_was() -> None:
    """A reader cannot take head and tail for one text."""
    kept = Collecting(COMMAND)
    kept.take(Output("stdout", b"the headthe tail"))
    result = kept.result(ended(omitted=900))
    assert result.stdout == "the head\n[... 900 bytes left out ...]\nthe tail"
    assert result.truncated


@pytest.mark.parametrize(
    ("end", "code"),
    [
        (ended(code=3), 3),
        (ended(code=None, signal=11), 139),
        (ended("oom", code=None, signal=9), 137),
        (ended("timeout", code=0), 124),
        (ended("timeout", code=None, signal=15), 124),
        (ended("output_limit", code=0), 137),
        (ended("not_started", code=None, error="No such file"), 127),
    ],
)
def test_exit_codes_are_those_of_a_shell(end: Exit, code: int) -> None:
    """A command that was ended never looks as if it had succeeded."""
    assert Collecting(COMMAND).result(end).exit_code == code


def test_a_timeout_is_said_apart() -> None:
    """An exit code alone could be the program's own."""
    result = Collecting(COMMAND).result(ended("timeout", code=None, signal=15))
    assert result.timed_out
    assert str(result) == "exit code 124 (timed out)"


def test_a_result_reads_well_for_a_model() -> None:
    """It is given to one by `str`."""
    result = ExecResult("1 failed\n", "warning: slow\n", 1)
    assert str(result) == "exit code 1\nstdout:\n1 failed\nstderr:\nwarning: slow"
    assert str(ExecResult("", "", 0)) == "exit code 0"


def test_notes_start_a_line_of_their_own() -> None:
    """What Turnout adds cannot be taken for what the program wrote."""
    kept = Collecting(COMMAND)
    kept.take(Output("stderr", b"fatal: no"))
    assert kept.result(ended(code=1), ["why"]).stderr == "fatal: no\nturnout: why\n"


def test_memory_that_ran_out_names_its_setting() -> None:
    """A killed program cannot say why."""
    result = Collecting(COMMAND).result(ended("oom", code=None, signal=9))
    assert "`memory_mb` under `[sandbox]`" in result.stderr


def test_a_failure_ends_with_what_was_printed_last() -> None:
    """Whoever reads only the error knows what went wrong."""
    error = failure(COMMAND, ExecResult("x" * 9_000 + "1 failed\n", "no\n", 1))
    lines = str(error).splitlines()
    assert lines[0] == "The command `make` ended with exit code 1."
    assert lines[1].endswith("1 failed")
    assert lines[2] == "no"
    assert len(error.stdout) == 8_000
