"""What callers may ask for by keyword, and what is made of it."""

import math
import os
import posixpath
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypedDict

from turnout.errors import UsageError
from turnout.sandbox.base import WORKSPACE, Command, SandboxDriver
from turnout.settings import DriverName, Settings

__all__ = [
    "CreateOptions",
    "Creation",
    "ExecOptions",
    "Execution",
    "OnOutput",
    "creation",
    "execution",
    "seconds_of",
]

OnOutput = Callable[[str], object]
"""Is given text as it arrives. What is left out of a long output is not passed on."""


class CreateOptions(TypedDict, total=False):
    """Keywords of `create`; none is needed."""

    timeout: float
    """Seconds until the sandbox is ended; by default as long as the settings allow, 24 hours."""
    timeout_seconds: float
    """Another name of `timeout`."""
    labels: Mapping[str, str]
    """Kept with the object, for the caller's own use."""
    env: Mapping[str, str]
    """Environment variables of every command."""
    repository: str | os.PathLike[str]
    """Path or URL of a git repository to check out into `/workspace`; without it that is empty."""
    base: str
    """Revision of the repository to start from; `HEAD` by default."""
    setup: str
    """Shell command that sets the workspace of a repository up, run once, with the package mirrors
    in reach alone; by default that of the settings."""
    config: str | os.PathLike[str] | Settings
    """A `turnout.toml`; by default that of the current folder, as for the command line."""
    allow: Sequence[str]
    """Hosts that the sandbox may reach, beside those that the settings grant: a name or `*.name`,
    with `:port` where it is neither 443 nor 80."""
    driver: DriverName | SandboxDriver
    """What makes the sandbox, in place of what the settings name: `none` is no isolation at all.
    Tests give a `ScriptedDriver`."""


class ExecOptions(TypedDict, total=False):
    """Keywords of `exec` and of `commands.run`; none is needed."""

    check: bool
    """Whether to raise `CommandFailedError` where the exit code is not 0. `exec`: no by default,
    `commands.run`: yes."""
    cwd: str
    """Folder to run in; `/workspace` by default, which relative ones start from."""
    timeout: float
    """Seconds, 120 by default; a command that takes longer is ended. Of a background command there
    is no limit by default."""
    timeout_ms: float
    """The same in milliseconds."""
    env: Mapping[str, str]
    """Environment variables, over those of the sandbox."""
    stdin: str | bytes
    """Standard input; nothing by default."""
    on_stdout: OnOutput
    """Called with pieces of standard output as they arrive, in the caller's thread or event
    loop."""
    on_stderr: OnOutput
    """Likewise with standard error."""


_LONGEST_COMMAND: Final = 1 << 20
_DEFAULT_TIMEOUT: Final = 120.0


@dataclass(frozen=True, slots=True)
class Creation:
    """A sandbox that is asked for."""

    timeout: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    repository: str | None = None
    base: str = "HEAD"
    setup: str | None = None
    config: Path | Settings | None = None
    allow: tuple[str, ...] = ()
    driver: DriverName | SandboxDriver | None = None


@dataclass(frozen=True, slots=True)
class Execution:
    """A command that is asked for."""

    command: Command
    check: bool
    on_stdout: OnOutput | None
    on_stderr: OnOutput | None
    unfit: str
    """Why no sandbox can be asked to run it; empty where one can."""


def creation(options: CreateOptions) -> Creation:
    """Check the keywords of `create`; `TypeError` for an unknown one, `UsageError` for a value."""
    _known(options, CreateOptions.__optional_keys__, "create")
    config = options.get("config")
    repository = options.get("repository")
    if repository is None and "base" in options:
        raise UsageError("`base` is a revision of a repository.", mend="Name it by `repository`.")
    if repository is None and "setup" in options:
        raise UsageError("`setup` is for a repository.", mend="Name it by `repository`.")
    if not _sendable(options.get("setup", "")):
        raise UsageError("`setup` holds a character that no program can be given.")
    return Creation(
        timeout=_either(options.get("timeout"), options.get("timeout_seconds"), "timeout_seconds"),
        labels=_texts(options.get("labels", {}), "labels"),
        env=_variables(options.get("env", {})),
        repository=None if repository is None else _place(os.fspath(repository)),
        base=options.get("base", "HEAD"),
        setup=options.get("setup"),
        config=config if config is None or isinstance(config, Settings) else Path(config),
        allow=_hosts(options.get("allow", ())),
        driver=options.get("driver"),
    )


def execution(
    command: str | Sequence[str], options: ExecOptions, *, check: bool, background: bool = False
) -> Execution:
    """Check the keywords of `exec`; `check` is its default."""
    _known(options, ExecOptions.__optional_keys__, "exec")
    heard = [options.get("on_stdout"), options.get("on_stderr")]
    if background and any(heard):
        raise UsageError(
            "Nobody waits for a background command that its output could be given to.",
            mend="Leave `on_stdout` and `on_stderr` out, and read `stdout` of what is returned.",
        )
    milliseconds = options.get("timeout_ms")
    timeout = _either(
        options.get("timeout"),
        None if milliseconds is None else milliseconds / 1000,
        "timeout_ms",
    )
    argv = () if isinstance(command, str) else tuple(command)
    stdin = options.get("stdin")
    default = math.inf if background else _DEFAULT_TIMEOUT
    return Execution(
        command=Command(
            argv=argv,
            shell=command if isinstance(command, str) else None,
            cwd=posixpath.normpath(posixpath.join(WORKSPACE, options.get("cwd", ""))),
            env=_variables(options.get("env", {})),
            stdin=stdin.encode(errors="surrogatepass") if isinstance(stdin, str) else stdin,
            timeout=default if timeout is None else timeout,
            background=True,
        ),
        check=options.get("check", check),
        on_stdout=heard[0],
        on_stderr=heard[1],
        unfit=_unfit([command] if isinstance(command, str) else argv, options.get("cwd", "")),
    )


def seconds_of(value: float, name: str) -> float:
    """Return a time; `UsageError` where it is none."""
    if not math.isfinite(value) or value <= 0:
        raise UsageError(f"`{name}` is {value!r}.", mend="Give a time above 0.")
    return float(value)


def _either(seconds: float | None, other: float | None, name: str) -> float | None:
    if seconds is not None and other is not None:
        raise UsageError(f"`timeout` and `{name}` say the same.", mend="Give one of them.")
    if seconds is not None:
        return seconds_of(seconds, "timeout")
    return None if other is None else seconds_of(other, name)


def _known(options: Mapping[str, object], names: frozenset[str], method: str) -> None:
    for name in options.keys() - names:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def _place(repository: str) -> str:
    """Return a path as an absolute one, and anything else as it is."""
    path = Path(repository)
    return str(path.absolute()) if path.exists() else repository


def _texts(values: Mapping[str, object], name: str) -> dict[str, str]:
    texts = {key: value for key, value in values.items() if isinstance(value, str)}
    for key in values.keys() - texts.keys():
        raise UsageError(f"`{name}` holds {key!r}: {values[key]!r}.", mend="Give text.")
    return texts


def _variables(values: Mapping[str, str]) -> Mapping[str, str]:
    variables = _texts(values, "env")
    for name, value in variables.items():
        if not name or "=" in name or not _sendable(name + value):
            raise UsageError(f"`env` cannot hold the variable {name!r}.", mend="Leave it out.")
    return variables


def _hosts(allow: Sequence[str]) -> tuple[str, ...]:
    if isinstance(allow, str):
        raise UsageError("`allow` is one text.", mend=f"Give a list: `allow=[{allow!r}]`.")
    return tuple(allow)


def _unfit(words: Sequence[str], cwd: str) -> str:
    """Say why words cannot be passed to a program; empty where they can.

    A model may ask for such a command, so that is a result for it and no error of the caller.
    """
    if not words or not words[0]:
        return "it is empty"
    if not all(map(_sendable, (*words, cwd))):
        return "it holds a character that no program can be given"
    return "it is too long" if sum(map(len, words)) > _LONGEST_COMMAND else ""


def _sendable(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False
