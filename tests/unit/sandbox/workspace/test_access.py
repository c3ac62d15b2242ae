"""A token that git is told: in no argument, in no text, and for one server alone."""

import base64
from pathlib import Path

import pytest

from turnout.sandbox.workspace.git import Access, git_remote

TOKEN = "a-token-that-nobody-sees"
BASIC = base64.b64encode(f"x-access-token:{TOKEN}".encode()).decode()
URL = "https://git.example.org:8443/team/shop"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand a program in for git that writes down what it is told, and complains of it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\nenv > {tmp_path}/environment\n'
        'echo "fatal: $GIT_CONFIG_VALUE_0" >&2\nexit 1\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/home/somebody/.gitconfig")
    monkeypatch.setenv("SOMETHING_ELSE", "of the service")
    return tmp_path


async def test_a_token_is_in_no_argument_and_in_no_message(told: Path) -> None:
    """Not even where git repeats what it was told."""
    access = Access(URL, TOKEN, {"https_proxy": "http://proxy.example.org:3128"})
    done = await git_remote(["ls-remote", "--", URL], url=URL, timeout=10, access=access)
    seen = f"{(told / 'arguments').read_text()} {done.stderr} {access!r}"
    assert "fatal: Authorization: ***" in seen
    assert TOKEN not in seen
    assert BASIC not in seen


async def test_a_token_is_for_its_server_and_nothing_of_the_users_counts(told: Path) -> None:
    """The environment of the service is not git's, proxies and certificates apart."""
    access = Access(URL, TOKEN, {"https_proxy": "http://proxy.example.org:3128"})
    await git_remote(["ls-remote", "--", URL], url=URL, timeout=10, access=access)
    lines = (told / "environment").read_text().splitlines()
    environment = dict(line.split("=", 1) for line in lines if "=" in line)
    assert environment["GIT_CONFIG_KEY_0"] == "http.https://git.example.org:8443/.extraHeader"
    assert environment["GIT_CONFIG_VALUE_0"] == f"Authorization: Basic {BASIC}"
    assert environment["GIT_ALLOW_PROTOCOL"] == "https"
    assert environment["https_proxy"] == "http://proxy.example.org:3128"
    assert environment["GIT_CONFIG_GLOBAL"] != "/home/somebody/.gitconfig"
    assert "SOMETHING_ELSE" not in environment
    assert sum(TOKEN in value or BASIC in value for value in environment.values()) == 1


@pytest.mark.parametrize(
    ("url", "protocols"),
    [
        (URL, "https:ssh"),
        ("http://a.example.org/a", "http:ssh"),
        ("git@a.example.org:a", "ssh:ssh"),
    ],
)
async def test_git_speaks_the_protocol_of_the_url_and_follows_nobody(told, url, protocols) -> None:
    """With what the user has configured, too; their own `insteadOf` may lead to ssh."""
    await git_remote(["ls-remote", "--", url], url=url, timeout=10)
    assert f"GIT_ALLOW_PROTOCOL={protocols}\n" in (told / "environment").read_text()
    assert "http.followRedirects=false\n" in (told / "arguments").read_text()
