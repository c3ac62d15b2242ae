"""Tool calls that wait for a person: which ones do, and what comes of it.

A rule names a tool, or a tool and a pattern: `run`, `edit_file:deploy/*`, `*:*.toml`,
`mcp:tracker/*`. In both parts `*` stands for any characters.
"""

import posixpath
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, Protocol

from turnout.agent.tools.arguments import did_you_mean, read_arguments
from turnout.agent.tools.base import AgentTool, Arguments, ToolOutput
from turnout.agent.tools.files import workspace_path
from turnout.agent.tools.patch_text import parse_patch
from turnout.agent.tools.surfaces import Surface, tool_names
from turnout.core.clock import Clock
from turnout.core.events import ApprovalAsked, ApprovalGiven
from turnout.core.json import as_object
from turnout.core.tools import ToolCall
from turnout.errors import ConfigError, ToolError
from turnout.sandbox.base import REPO, Command, Sandbox

__all__ = ["Approver", "Gate", "Rule", "Unattended", "check_rules", "parse_rule", "refused"]

_MCP: Final = "mcp:"
_MOST_RULES: Final = 100
_LONGEST_RULE: Final = 300
_LONGEST_NOTE: Final = 2_000
_RESOLVE_SECONDS: Final = 10.0


class Approver(Protocol):
    """Whoever decides on tool calls."""

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Return the decision, however long it takes; may be cancelled meanwhile."""
        ...


class Unattended:
    """Refuses every call that would have to wait: nobody is there."""

    async def decide(self, asked: ApprovalAsked) -> ApprovalGiven:
        """Refuse, and say who can allow it."""
        how = (
            f"nobody could be asked; whoever starts the run may allow it: --approve '{asked.rule}'"
        )
        return ApprovalGiven(asked.step, asked.call.id, False, "nobody", how)


@dataclass(frozen=True, slots=True)
class Rule:
    """Which calls wait."""

    text: str
    """As it is written in the settings."""
    tool: str
    """Pattern for the tool's name."""
    subject: str = ""
    """Pattern for what the call is about; empty: whatever it is about."""

    def names(self, tool: str) -> bool:
        """Whether it is about the tool of this name."""
        whole_server = self.tool.startswith(_MCP) and "/" not in self.tool
        return fnmatchcase(tool, f"{self.tool}/*" if whole_server else self.tool)

    def covers(self, subjects: Sequence[str]) -> bool:
        """Whether one of these is what it is about."""
        pattern = f"{self.subject}*" if self.subject.endswith("/") else self.subject
        # `**/x` is meant to hold for an `x` that lies in no folder, too.
        patterns = {pattern, pattern.removeprefix("**/")}
        return any(fnmatchcase(subject, each) for subject in subjects for each in patterns)


def parse_rule(text: str) -> Rule:
    """Read a rule; `ConfigError` where it is none."""
    prefix = _MCP if text.startswith(_MCP) else ""
    tool, colon, subject = text.removeprefix(prefix).partition(":")
    if not tool.strip() or (colon and not subject.strip()) or len(text) > _LONGEST_RULE:
        raise ConfigError(
            f"{text[:_LONGEST_RULE]!r} is no rule for approvals.",
            mend="Write `TOOL` or `TOOL:PATTERN`, such as `run` or `edit_file:deploy/*`.",
        )
    return Rule(text, f"{prefix}{tool.strip()}", subject.strip())


def check_rules(
    rules: Sequence[str], connections: Sequence[str], servers: Sequence[str] = ()
) -> None:
    """Raise `ConfigError` for a rule that is none, guards nothing, or that nobody could keep.

    Tools of a connection are run by the gateway, which asks nobody. `servers` are the MCP servers
    in the sandbox.
    """
    if len(rules) > _MOST_RULES:
        raise ConfigError(f"There are more than {_MOST_RULES} rules for approvals.")
    for rule in map(parse_rule, rules):
        for connection in connections:
            if _is_about(rule, f"{_MCP}{connection}"):
                raise ConfigError(
                    f"The approval rule {rule.text!r} is about the connection {connection!r}, "
                    "whose tools the gateway runs without asking.",
                    mend="Leave these tools out of `connections`, or narrow the rule.",
                )
        _check_guards(rule, servers)


def _check_guards(rule: Rule, servers: Sequence[str]) -> None:
    """Raise `ConfigError` for a rule about tools that no surface and no server has."""
    if not rule.tool.startswith(_MCP):
        beginnings = [f"{_MCP}{server}/" for server in servers]
        name, known, kind = rule.tool, tool_names(), "tool"
        guards = any(map(rule.names, (*known, *beginnings)))
    else:
        name, known, kind = rule.tool.removeprefix(_MCP).partition("/")[0], servers, "MCP server"
        guards = "*" in name or any(fnmatchcase(server, name) for server in servers)
    if not guards:
        raise ConfigError(
            f"The approval rule {rule.text!r} guards nothing: there is no {kind} called {name!r}."
            f"{did_you_mean(name, known)}",
            mend=f"Those that exist are {', '.join(known)}." if known else "",
        )


def _is_about(rule: Rule, connection: str) -> bool:
    tool = connection if "/" in connection else f"{connection}/"
    return rule.names(tool) or rule.tool.startswith(tool)


def refused(given: ApprovalGiven) -> ToolOutput:
    """Return what the model reads in place of a result."""
    why = f": {given.note}" if given.note else "."
    return ToolOutput(
        f"Not run: {given.by} refused it{why}\nGo on without it, or finish.", is_error=True
    )


class Gate:
    """Has the calls that rules are about decided on, each before it is carried out."""

    def __init__(
        self, rules: Sequence[str], approver: Approver, sandbox: Sandbox, clock: Clock
    ) -> None:
        self._rules = tuple(map(parse_rule, rules))
        self._approver = approver
        self._sandbox = sandbox
        self._clock = clock
        self.waited = 0.0
        """Seconds that people took so far."""

    async def ask(
        self, step: int, call: ToolCall, surface: Surface, on_record: ApprovalAsked | None = None
    ) -> AsyncIterator[ApprovalAsked | ApprovalGiven]:
        """Have a call decided on; nothing is yielded where no rule is about it.

        `on_record`: a question that was put before a crash and not answered.
        Everything in the sandbox is frozen meanwhile, so that what was looked at is what is done.
        """
        asked = on_record
        if asked is None or (asked.step, asked.call) != (step, call):
            rule = await self._rule_for(call, surface)
            if rule is None:
                return
            asked = ApprovalAsked(step, call, rule.text)
            yield asked
        await self._sandbox.pause()
        started = self._clock.monotonic()
        try:
            given = await self._approver.decide(asked)
        finally:
            self.waited += self._clock.monotonic() - started
        yield ApprovalGiven(step, call.id, given.allowed, given.by, given.note[:_LONGEST_NOTE])

    async def _rule_for(self, call: ToolCall, surface: Surface) -> Rule | None:
        """Return the first rule that is about a call; None also for one that cannot be made."""
        tool = surface.find(call.name)
        rules = [rule for rule in self._rules if tool and rule.names(tool.spec.name)]
        if tool is None or not rules:
            return None
        try:
            arguments = read_arguments(tool.spec, call.arguments)
        except ToolError:
            return None
        if rules[0].subject:
            subjects = await self._subjects(tool, arguments)
            rules = [r for r in rules if not r.subject or subjects is None or r.covers(subjects)]
        return rules[0] if rules else None

    async def _subjects(self, tool: AgentTool, arguments: Arguments) -> Sequence[str] | None:
        """Return what a call names; None where that cannot be known before it is made."""
        names = as_object(tool.spec.parameters.get("properties"))
        if tool.spec.name.startswith(_MCP):
            return None
        for name in ("command", "url"):
            if name in names:
                return (" ".join(arguments.text(name).split()),)
        try:
            if "diff" in names:
                patches = parse_patch(arguments.text("diff"))
                named = [path for patch in patches for path in (patch.old, patch.new) if path]
            elif "path" in names:
                named = [arguments.text("path") or "."]
            else:
                return ()
            paths = [workspace_path(path) for path in dict.fromkeys(named)]
        except ToolError:
            return None
        behind = await self._behind_links(paths)
        return None if behind is None else (*paths, *behind)

    async def _behind_links(self, paths: Sequence[str]) -> Sequence[str] | None:
        """Return where paths lead to; None where the sandbox does not say."""
        argv = ("/usr/bin/realpath", "-mz", "--", *paths)
        result = await self._sandbox.run(Command(argv=argv, timeout=_RESOLVE_SECONDS))
        found = result.stdout.decode(errors="surrogateescape").split("\0")[:-1]
        if not result.ok or len(found) != len(paths):
            return None
        return [posixpath.relpath(path, REPO) for path in found]
