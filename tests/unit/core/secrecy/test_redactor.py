"""Secrets that this process knows do not stay in what models, tools and people write."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.samples import any_event

from turnout.core.events import Event, Notice, PatchMade, RunStarted, ToolCallDone, encode_event
from turnout.core.ids import ToolCallId
from turnout.core.runs import Patch
from turnout.core.secrecy.redactor import Redactor
from turnout.core.tasks import Task
from turnout.core.tools import ToolResult
from turnout.gateway.keys.desk import new_key
from turnout.settings import load_settings

SECRET = 'sk-"quoted"\\-é-0123'
REDACTOR = Redactor({"LLM_API_KEY": SECRET, "LONGER": f"{SECRET}-and-more", "SHORT": "sesame"})


def test_a_secret_gives_way_to_the_name_of_its_variable() -> None:
    """The longer of two that begin alike; what is too short to be told from words stays."""
    text = f"open {SECRET}, {SECRET}-and-more, sesame"
    assert REDACTOR.text(text) == "open [LLM_API_KEY], [LONGER], sesame"


def test_a_key_of_ours_is_known_by_its_form() -> None:
    """Whosever it is: only its hash is kept."""
    assert Redactor().text(f"curl -H 'x-api-key: {new_key()}'") == (
        "curl -H 'x-api-key: [a key of Turnout]'"
    )
    assert Redactor().text("tk-short") == "tk-short"


def test_an_event_is_told_without_them() -> None:
    """Whichever of its texts holds one, and however JSON writes it."""
    done = ToolCallDone(1, ToolResult(ToolCallId("c"), f"KEY={SECRET}\n"), 0.1)
    told = REDACTOR.event(done)
    assert isinstance(told, ToolCallDone)
    assert told.result.content == "KEY=[LLM_API_KEY]\n"


def test_a_diff_stays_as_it_is() -> None:
    """Else git would not apply it."""
    made = PatchMade(Patch(SECRET.encode(), ()))
    assert REDACTOR.event(made) == made


@given(any_event())
def test_what_holds_none_is_the_same_event(event: Event) -> None:
    """Not even decoded and encoded."""
    assert REDACTOR.event(event) is event


@given(st.text(), st.text())
def test_none_is_left_wherever_it_stands(before: str, after: str) -> None:
    """Between any texts."""
    assert SECRET not in REDACTOR.text(f"{before}{SECRET}{after}")
    assert "0123" not in encode_event(REDACTOR.event(Notice(f"{SECRET}")))


def test_it_does_not_show_them_itself() -> None:
    """Names are no secret."""
    assert "0123" not in repr(REDACTOR)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("LLM_API_KEY", "sk-0123456789"),
        ("GITHUB_TOKEN", "ghp-0123456789"),
        ("ACME_WEBHOOK_SECRET", "whsec-0123456789"),
        ("NAMED_IN_THE_FILE", "0123456789ab"),
    ],
)
def test_the_settings_know_the_secrets_of_the_process(tmp_path, variable: str, value: str) -> None:
    """By how their variable is called, or because `turnout.toml` names it."""
    file = tmp_path / "turnout.toml"
    headers = f'headers_env = {{ a = "{variable}" }}'
    file.write_text(f'[connections.git]\nurl = "https://git.test"\n{headers}\n')
    env = {variable: value, "TURNOUT_HOME": "/srv/turnout", "LANG": "en_GB.UTF-8"}
    redactor = load_settings(config=file, environment=env).redactor
    rest = "/srv/turnout en_GB.UTF-8"
    assert redactor.text(f"{value} {rest}") == f"[{variable}] {rest}"


def test_so_is_the_password_of_the_database() -> None:
    """It stands in a URL."""
    env = {"TURNOUT_DATABASE": "postgresql://ann:long-password@db/turnout"}
    assert load_settings(environment=env).redactor.text("long-password") == "[TURNOUT_DATABASE]"


def test_a_task_is_on_record_without_them() -> None:
    """It is what the record begins with."""
    started = RunStarted(Task("Use 0123456789.", "/repo"), "c" * 40, "loop")
    told = Redactor({"K": "0123456789"}).event(started)
    assert isinstance(told, RunStarted)
    assert told.task.prompt == "Use [K]."
