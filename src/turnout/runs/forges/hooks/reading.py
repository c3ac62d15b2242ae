"""Reading of what forges deliver."""

from dataclasses import dataclass

from turnout.core.json import JsonObject, JsonValue, as_object, as_text
from turnout.errors import UsageError

__all__ = ["Part"]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a delivery; what it lacks is a `UsageError` where it cannot be done without."""

    said: JsonObject

    def part(self, name: str) -> "Part":
        """Return the part of that name, which is empty where it is not there."""
        return Part(as_object(self.said.get(name)))

    def text(self, name: str) -> str:
        """Return a text; empty where it is null or not there."""
        return as_text(self.said.get(name))

    def needed(self, name: str) -> str:
        """Return a text that must be there."""
        found = self.text(name)
        if not found:
            raise UsageError(f"The delivery lacks `{name}`.")
        return found

    def number(self, name: str) -> int:
        """Return a number above 0 that must be there."""
        found = self.said.get(name)
        if isinstance(found, bool) or not isinstance(found, int) or not 0 < found < 2**63:
            raise UsageError(f"The delivery lacks the number `{name}`.")
        return found

    def value(self, name: str) -> JsonValue:
        """Return whatever stands there."""
        return self.said.get(name)
