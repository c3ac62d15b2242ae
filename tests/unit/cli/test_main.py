"""One place turns every exception into an exit code and words."""

import json
from pathlib import Path

import click
import pytest

from turnout.cli.main import command, run
from turnout.errors import (
    ConfigError,
    DeliveryError,
    GatewayError,
    ModelUnavailableError,
    NotFoundError,
    StoreError,
    TurnoutError,
)


def raising(error: BaseException) -> click.Command:
    """Return a command that raises."""

    @click.command()
    @click.option("--json", is_flag=True)
    def command(json: bool) -> None:
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("wrong"), 2),
        (ModelUnavailableError("none"), 4),
        (NotFoundError("no such run"), 1),
        (StoreError("locked"), 4),
        (OSError(28, "No space left on device"), 4),
        (DeliveryError("overlap"), 1),
        (GatewayError("cap", status=429, code="session_request_cap"), 3),
        (GatewayError("tool", status=403, code="tool_not_allowed"), 3),
        (GatewayError("down", status=503, code="upstream"), 4),
        (GatewayError("bad", status=400, code="invalid"), 1),
        (TurnoutError("other"), 1),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_kind_of_error_has_its_exit_code(error: BaseException, code: int) -> None:
    """Scripts tell them apart by it."""
    assert run([], raising(error)) == code


def test_an_error_is_said_with_its_mend(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard error, without a traceback."""
    run([], raising(ModelUnavailableError("No answer.", mend="Check LLM_BASE_URL.")))
    captured = capsys.readouterr()
    assert captured.err == "Error: No answer.\nCheck LLM_BASE_URL.\n"
    assert captured.out == ""


def test_an_error_is_an_object_for_scripts(capsys: pytest.CaptureFixture[str]) -> None:
    """On standard output, and nothing else there."""
    run(["--json"], raising(ModelUnavailableError("No answer.", mend="Check it.")))
    assert json.loads(capsys.readouterr().out) == {
        "error": {
            "kind": "model_unavailable",
            "message": "No answer.",
            "mend": "Check it.",
            "exit_code": 4,
        }
    }


def test_wrong_usage_is_an_object_too(capsys: pytest.CaptureFixture[str]) -> None:
    """Also where the command itself was never reached."""
    assert run(["--json", "--nope"], raising(AssertionError())) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "usage_error"


def test_a_command_that_is_misspelled_is_told_with_the_one_that_is_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And one that is like none of them as before."""
    assert run(["runn", "x"]) == 2
    assert "'runn'. Did you mean `turnout run`?" in capsys.readouterr().err
    assert run(["zzz"]) == 2
    assert "Did you mean" not in capsys.readouterr().err


def test_a_defect_is_one_line_and_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The traceback is kept for a report, readable by its owner alone."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path))
    assert run([], raising(ZeroDivisionError("by nothing"))) == 1
    (kept,) = (tmp_path / "crashes").iterdir()
    said = capsys.readouterr().err
    assert said.startswith("Unexpected ZeroDivisionError: by nothing\n")
    assert str(kept) in said
    assert "Traceback" in kept.read_text()
    assert kept.stat().st_mode & 0o077 == 0


def test_the_exit_code_of_a_command_is_what_it_returns() -> None:
    """None stands for success."""
    assert run([], click.command()(lambda: 3)) == 3
    assert run([], click.command()(lambda: None)) == 0


def test_every_listed_command_is_there_and_says_what_the_list_says() -> None:
    """The list is shown without importing the commands, and so must be kept true."""
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        assert found.help
    assert command.get_command(context, "nope") is None


@pytest.mark.parametrize("argv", [["-h"], ["run", "-h"], ["runs", "show", "-h"]])
def test_the_short_help_option_is_taken_everywhere(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Whoever types it gets help."""
    assert run(argv) == 0
    assert "-h, --help" in capsys.readouterr().out


def test_what_the_system_refuses_is_said_in_its_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no defect; where it happened is kept all the same."""
    monkeypatch.setenv("TURNOUT_HOME", str(tmp_path))
    assert run([], raising(OSError(36, "File name too long", "a" * 5_000))) == 4
    said = capsys.readouterr().err
    assert said.startswith("Error: The system refused: File name too long: aaa")
    assert len(said) < 500
    assert "Traceback" in next((tmp_path / "crashes").iterdir()).read_text()


def test_an_error_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A model server's words are in some."""
    run([], raising(ModelUnavailableError("It said \x1b[2J.", mend="\u202eGo.")))
    assert capsys.readouterr().err == "Error: It said \\x1b[2J.\n\\u202eGo.\n"
