"""The named sets of tools, as data."""

from collections.abc import Mapping
from dataclasses import dataclass

from turnout.agent.tools.apply_patch import ApplyPatch
from turnout.agent.tools.base import AgentTool
from turnout.agent.tools.edit_file import EditFile
from turnout.agent.tools.finish import Finish
from turnout.agent.tools.list_files import ListFiles
from turnout.agent.tools.read_file import ReadFile
from turnout.agent.tools.run import Run
from turnout.agent.tools.run_tests import RunTests
from turnout.core.tasks import SurfaceName
from turnout.core.tools import Tool

__all__ = ["SURFACES", "Surface"]


@dataclass(frozen=True, slots=True)
class Surface:
    """What a run declares, and how its loop ends."""

    tools: tuple[AgentTool, ...]
    prompt: str
    """Name of the file with the standing instructions."""
    text_ends: bool
    """Whether a text without calls is the answer; else only a tool ends the run."""

    @property
    def specs(self) -> tuple[Tool, ...]:
        """The declarations that models see."""
        return tuple(tool.spec for tool in self.tools)

    def find(self, name: str) -> AgentTool | None:
        """Return the tool of that name; None where the surface has none."""
        return next((tool for tool in self.tools if tool.spec.name == name), None)


SURFACES: Mapping[SurfaceName, Surface] = {
    "guide": Surface((ListFiles(), ReadFile(), RunTests(), ApplyPatch()), "guide", text_ends=True),
    "shell": Surface((Run(), ReadFile(), EditFile(), Finish()), "shell", text_ends=False),
}
