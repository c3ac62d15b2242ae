"""What is known of where a fault may be."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from turnout.agent.repair.grafting.excerpt import Region
from turnout.agent.repair.grafting.matching import Target
from turnout.agent.repair.grafting.source import Module

__all__ = ["Suspects"]


@dataclass(frozen=True, slots=True)
class Suspects:
    """Where the fault may be."""

    modules: tuple[Module, ...]
    """All that was read, most suspected first."""
    targets: tuple[Target, ...]
    """Definitions with any suspicion, most suspected first; classes only by their members."""
    longest: int
    """Bytes of the longest of `targets` that is to be written anew."""
    regions: Mapping[Target, tuple[Region, ...]] = field(default_factory=dict)
    """Lines in question of `targets`: where an error was raised, and of `long` ones."""
    long: frozenset[Target] = frozenset()
    """Those of `targets` that are too long to be written anew."""
    constants: frozenset[Target] = frozenset()
    """Those of `targets` that are no function."""
    broken: frozenset[Target] = frozenset()
    """Those of `targets` in which a statement failed that is no `raise`: their first region."""
    lines: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    """The lines in question of each file, most suspected first."""

    def of(self, module: Module) -> tuple[str, ...]:
        """Return the suspected names of one file, most suspected first."""
        return tuple(each.name for each in self.targets if each.path == module.path)

    def is_suspected(self, module: Module) -> bool:
        """Whether anything of a file is suspected."""
        return any(each.path == module.path for each in self.targets)
