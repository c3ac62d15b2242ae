"""The named sets of tools, as data."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from turnout.agent.tools.apply_patch import ApplyPatch
from turnout.agent.tools.arguments import did_you_mean
from turnout.agent.tools.base import AgentTool
from turnout.agent.tools.edit_file import EditFile
from turnout.agent.tools.fetch_url import FetchUrl
from turnout.agent.tools.finish import Finish
from turnout.agent.tools.list_directory import ListDirectory
from turnout.agent.tools.list_files import ListFiles
from turnout.agent.tools.mcp_tool import GoneTool
from turnout.agent.tools.read_file import ReadFile
from turnout.agent.tools.run import Run
from turnout.agent.tools.run_command import RunCommand
from turnout.agent.tools.run_tests import RunTests
from turnout.agent.tools.search_files import SearchFiles
from turnout.agent.tools.write_file import WriteFile
from turnout.core.tasks import SurfaceName
from turnout.core.tools import MCP, Tool, function_name
from turnout.errors import ConfigError

__all__ = ["EXTRA_TOOLS", "SURFACES", "Surface", "check_tools", "surface_of", "tool_names"]


@dataclass(frozen=True, slots=True)
class Surface:
    """What a run declares, and how its loop ends."""

    tools: tuple[AgentTool, ...]
    name: SurfaceName
    """Its standing instructions and its bounds go by it too."""
    text_ends: bool
    """Whether a text without calls is the answer; else only a tool ends the run."""

    @property
    def specs(self) -> tuple[Tool, ...]:
        """The declarations that models see."""
        return tuple(tool.spec for tool in self.tools)

    def find(self, name: str) -> AgentTool | None:
        """Return the tool of that name, or that models know by it; None where there is none.

        A server's tool is found also where the server, in a later process, does not list it.
        """
        for tool in self.tools:
            if name in {tool.spec.name, function_name(tool.spec.name)}:
                return tool
        return GoneTool(name) if name.startswith(MCP) else None


SURFACES: Mapping[SurfaceName, Surface] = {
    "guide": Surface((ListFiles(), ReadFile(), RunTests(), ApplyPatch()), "guide", text_ends=True),
    "shell": Surface((Run(), ReadFile(), EditFile(), Finish()), "shell", text_ends=False),
    "files": Surface(
        (ReadFile(), WriteFile(), RunCommand(), ListDirectory()), "files", text_ends=True
    ),
    "review": Surface((ListFiles(), ReadFile(), SearchFiles()), "review", text_ends=True),
}

EXTRA_TOOLS: Mapping[str, AgentTool] = {
    tool.spec.name: tool for tool in (SearchFiles(), FetchUrl())
}
"""Tools that a surface may be given beside its own."""


def surface_of(name: SurfaceName, extra: Sequence[str] = ()) -> Surface:
    """Return a surface with tools beside its own; `ConfigError` for one that does not exist."""
    surface = SURFACES[name]
    unknown = [one for one in extra if one not in EXTRA_TOOLS]
    if unknown:
        raise ConfigError(
            f"There is no further tool called {', '.join(unknown)}.",
            mend=f"Those that exist are {', '.join(EXTRA_TOOLS)}.",
        )
    added = tuple(EXTRA_TOOLS[one] for one in dict.fromkeys(extra) if surface.find(one) is None)
    return replace(surface, tools=(*surface.tools, *added))


def tool_names() -> Sequence[str]:
    """Return the names of all tools; those of MCP servers are not known here."""
    own = (tool.spec.name for surface in SURFACES.values() for tool in surface.tools)
    return tuple(dict.fromkeys((*own, *EXTRA_TOOLS)))


def check_tools(names: Iterable[str]) -> None:
    """Raise `ConfigError` for a name that no tool has; those of MCP servers are not known here."""
    known = tool_names()
    for name in names:
        if name not in known and not name.startswith(MCP):
            raise ConfigError(
                f"There is no tool called {name!r}.{did_you_mean(name, known)}",
                mend=f"Those that exist are {', '.join(known)}.",
            )
