"""The pages of governance, in the order of the menu."""

from collections.abc import Sequence

from turnout.web.console.govern.connections import connections_section
from turnout.web.console.govern.evaluations import evaluations_section
from turnout.web.console.govern.events import events_section
from turnout.web.console.govern.keys import keys_section
from turnout.web.console.govern.models import models_section
from turnout.web.console.govern.parts import GovernParts
from turnout.web.console.govern.policies import policies_section
from turnout.web.console.govern.trying.playground import playground_section
from turnout.web.console.govern.usage import usage_section
from turnout.web.console.govern.views.evaluations import ResultsFolder
from turnout.web.console.sections import Section

__all__ = ["govern_sections"]


def govern_sections(parts: GovernParts) -> Sequence[Section]:
    """Return the sections; where models are served elsewhere there is no playground."""
    noticed, clock = parts.noticed, parts.clock
    sections = [
        policies_section(parts.policies, noticed.tools, clock),
        models_section(parts.models),
        connections_section(parts.connections),
        keys_section(parts.keys, noticed.usage, parts.doubt),
        usage_section(noticed.usage, noticed.happenings, clock),
        events_section(noticed, clock),
        evaluations_section(parts.evaluations, ResultsFolder(parts.results), clock),
    ]
    if parts.engine is not None:
        sections.insert(2, playground_section(parts.engine, parts.policies, parts.streams))
    return sections
