"""Git on the host: it reads a user's repository as a source and keeps ours, nothing else.

It never runs on a tree that a model or a test could write.
"""

import base64
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

from turnout.errors import UnfitError
from turnout.sandbox.workspace.process import Finished, run_program

__all__ = ["Access", "bytes_to_text", "git_here", "git_remote", "last_line", "without_secrets"]

# These win over the configuration of any repository.
_SAFE = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.attributesFile": "/dev/null",
    "core.untrackedCache": "false",
    "credential.interactive": "false",
    # Nobody but the user says which servers are asked.
    "http.followRedirects": "false",
    "transfer.bundleURI": "false",
    "protocol.ext.allow": "never",
    "fetch.unpackLimit": "1",
    "fetch.recurseSubmodules": "false",
    "submodule.recurse": "false",
}

_FIXED = {
    "LC_ALL": "C.UTF-8",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_ATTR_NOSYSTEM": "1",
}
_LOCAL_ONLY = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": str(Path(__file__).with_name("host.gitconfig")),
}
_UNSET = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_CEILING_DIRECTORIES",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_TRACE",
)
_ACCOUNT: Final = "x-access-token"
"""Forges take a token as the password of any account; one of them asks for this name."""
_USER_IN_URL = re.compile(r"(?<=://)[^/@\s]+@")


@dataclass(frozen=True, slots=True)
class Access:
    """A token for the repository at one http(s) URL, which git is told in no argument."""

    url: str
    """Without a user or a password."""
    token: str = field(repr=False)
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Which proxies and certificates lead there."""
    account: str = _ACCOUNT
    of_user: bool = False
    """Whether what the user has configured counts beside it."""

    def variables(self) -> Mapping[str, str]:
        """Return what git is told: the token goes to the server of the URL, and nowhere on."""
        settings = {
            f"http.{self._server}.extraHeader": f"Authorization: {self._basic}",
            "http.sslVerify": "true",
        }
        numbered = list(enumerate(settings.items()))
        return {
            **self.environment,
            "GIT_ALLOW_PROTOCOL": urlsplit(self.url).scheme,
            "GIT_CONFIG_COUNT": str(len(numbered)),
            **{f"GIT_CONFIG_KEY_{number}": name for number, (name, _) in numbered},
            **{f"GIT_CONFIG_VALUE_{number}": value for number, (_, value) in numbered},
        }

    def configuration(self) -> str:
        """Return the same as a file of git's, for where its environment is the user's."""
        server = self._server.replace("\\", "\\\\").replace('"', '\\"')
        return f'[http "{server}"]\n\textraHeader = "Authorization: {self._basic}"\n'

    def hidden(self, text: str) -> str:
        """Return what git or a server has said, without the token."""
        return text.replace(self._basic, "***").replace(self.token, "***")

    @property
    def _server(self) -> str:
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}/"

    @property
    def _basic(self) -> str:
        return f"Basic {base64.b64encode(f'{self.account}:{self.token}'.encode()).decode()}"


async def git_here(arguments: Sequence[str], *, timeout: float, fetches: bool = False) -> Finished:
    """Run git on a local repository, knowing nothing of the user's configuration.

    Unless it `fetches` from a folder, it talks to no other repository: one that claims to be a
    part of another would name the program that gets the rest.
    """
    protocols = {"GIT_ALLOW_PROTOCOL": "file" if fetches else "none"}
    return await _git([], arguments, {**_FIXED, **_LOCAL_ONLY, **protocols}, timeout)


async def git_remote(
    arguments: Sequence[str], *, url: str, timeout: float, access: Access | None = None
) -> Finished:
    """Run git against a URL, with the user's configuration and credential helpers.

    With `access` nothing of the user's counts unless it is theirs, and its token does. It follows
    no redirect, speaks no other protocol than that of the `url` (or ssh, where the user's own
    `insteadOf` leads there), and cannot ask anybody anything: a source that needs an answer fails
    at once.
    """
    if access is None:
        return await _as_user(arguments, url, timeout)
    if access.of_user:
        with TemporaryDirectory(prefix="turnout-git-") as folder:
            told = Path(folder) / "config"
            told.write_text(access.configuration())
            done = await _as_user(["-c", f"include.path={told}", *arguments], url, timeout)
    else:
        environment = {**_FIXED, **_LOCAL_ONLY, **access.variables()}
        done = await _git([], arguments, environment, timeout)
    return replace(done, stderr=access.hidden(done.stderr))


async def _as_user(arguments: Sequence[str], url: str, timeout: float) -> Finished:
    scheme = urlsplit(url).scheme if "://" in url else "ssh"
    settings = {**_FIXED, "GIT_ALLOW_PROTOCOL": f"{scheme}:ssh"}
    env = [_program("env"), *(f"--unset={name}" for name in _UNSET)]
    env += [f"{name}={value}" for name, value in settings.items()]
    return await _git(env, arguments, None, timeout)


async def _git(
    prefix: Sequence[str],
    arguments: Sequence[str],
    environment: Mapping[str, str] | None,
    timeout: float,
) -> Finished:
    options = [part for name, value in _SAFE.items() for part in ("-c", f"{name}={value}")]
    argv = [*prefix, _program("git"), *options, *arguments]
    done = await run_program(argv, timeout=timeout, environment=environment)
    return Finished(done.code, done.stdout, without_secrets(done.stderr))


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise UnfitError(f"`{name}` is not installed.", mend=f"Install it: apt install {name}.")
    return found


def last_line(text: str) -> str:
    """Return the line of git's messages that says why, for people."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fatal = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "remote:"))]
    said = (fatal or lines or ["git said nothing"])[-1].removeprefix("fatal: ")
    return "".join(letter if letter.isprintable() else " " for letter in said)[:300]


def without_secrets(url: str) -> str:
    """Return a URL, or a text with URLs, without user names and passwords."""
    return _USER_IN_URL.sub("", url)


def bytes_to_text(name: bytes) -> str:
    """Return a path for people; bytes that are no UTF-8 appear as backslash escapes."""
    return name.decode(errors="backslashreplace")
