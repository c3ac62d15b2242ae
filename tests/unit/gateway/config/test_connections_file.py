"""The tables `[connections.NAME]`."""

import pytest

from turnout.errors import ConfigError
from turnout.gateway.config.connections_file import parse_connections

VALUES = {"NOTES_TOKEN": " s3cret-token\n", "PATH": "/bin", "OPENAI_API_KEY": "sk-of-ours"}
URL = "https://notes.example.org/mcp"


def test_a_server_at_an_address_gets_its_token_in_a_header() -> None:
    """The value comes from a variable, and is known as a secret."""
    table = {"notes": {"url": URL, "token_env": "NOTES_TOKEN", "headers": {"X-Team": "a"}}}
    (held,) = parse_connections(table, VALUES.get).values()
    assert held.headers == {"x-team": "a", "authorization": "Bearer s3cret-token"}
    assert held.secrets == ("s3cret-token",)
    assert "s3cret" not in repr(held)
    assert (held.unset, held.timeout, held.read_only, held.allow) == ("", 30.0, False, ())


def test_a_program_gets_what_it_is_given_and_none_of_our_keys() -> None:
    """Some variables that every program needs, those of the table, those that are named."""
    table = {
        "notes": {
            "command": ["notes-server", "--stdio"],
            "env": {"MODE": "quiet"},
            "secret_env": ["NOTES_TOKEN"],
        }
    }
    (held,) = parse_connections(table, VALUES.get).values()
    assert held.command == ("notes-server", "--stdio")
    assert held.environment == {"PATH": "/bin", "MODE": "quiet", "NOTES_TOKEN": "s3cret-token"}
    assert held.secrets == ("s3cret-token",)


def test_a_variable_that_is_not_set_is_marked() -> None:
    """Only those who use the connection are concerned."""
    table = {"notes": {"url": URL, "headers_env": {"x-key": "GONE"}}}
    assert parse_connections(table, VALUES.get)["notes"].unset == "GONE"


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({}, "either `url` or `command`"),
        ({"url": URL, "command": ["x"]}, "either `url` or `command`"),
        ({"url": "ftp://x"}, r"notes\.url"),
        ({"url": "https://me:pw@notes.example.org"}, "no key"),
        ({"url": URL, "env": {"A": "b"}}, "does not go with `url`"),
        ({"command": ["x"], "token_env": "NOTES_TOKEN"}, "does not go with `command`"),
        ({"command": []}, r"notes\.command"),
        ({"url": URL, "token_env": "NOTES_TOKEN", "headers": {"Authorization": "x"}}, "twice"),
        ({"url": URL, "headers": {"bad header": "x"}}, r"notes\.headers"),
        ({"url": URL, "timeout": 0}, r"notes\.timeout"),
        ({"url": URL, "timeout": 6_000.0}, r"notes\.timeout"),
        ({"url": URL, "tokenenv": "X"}, "token_env"),
    ],
)
def test_what_is_wrong_is_named(row: dict[str, object], said: str) -> None:
    """By its key."""
    with pytest.raises(ConfigError, match=said):
        parse_connections({"notes": row}, VALUES.get)


@pytest.mark.parametrize("name", ["a/b", "a b", "x" * 65, "ä"])
def test_a_name_is_fit_for_policies_and_tools(name: str) -> None:
    """It stands in `mcp:NAME/tool` and in the names of functions."""
    with pytest.raises(ConfigError, match="no name of a connection"):
        parse_connections({name: {"url": URL}}, VALUES.get)


def test_a_credential_that_no_header_can_hold_is_refused_without_showing_it() -> None:
    """A newline in it would be a second header."""
    values = {"NOTES_TOKEN": "s3cret\ntwo"}
    with pytest.raises(ConfigError, match="NOTES_TOKEN") as failure:
        parse_connections({"notes": {"url": URL, "token_env": "NOTES_TOKEN"}}, values.get)
    assert "s3cret" not in str(failure.value)
