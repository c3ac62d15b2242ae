"""What sandboxes cost: whoever runs the machines says how much, by the hour."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal

from turnout.core.money import Micros

__all__ = ["MachineRates"]

_HOUR = Decimal(3_600)
_GIB = Decimal(1_024)
"""In MiB."""
_FREE = Micros(0)


@dataclass(frozen=True, slots=True)
class MachineRates:
    """Micro-USD by the hour; without any, what sandboxes take has no price."""

    cpu_hour: Micros = _FREE
    """Of CPU time."""
    memory_gib_hour: Micros = _FREE
    """Of memory, as `ResourcesUsed.memory_mib_seconds` counts it."""
    sandbox_hour: Micros = _FREE
    """Of a sandbox that is there, whatever it does."""

    def __bool__(self) -> bool:
        return bool(self.cpu_hour or self.memory_gib_hour or self.sandbox_hour)

    def cost(
        self, cpu_seconds: float | None, memory_mib_seconds: float | None, wall_seconds: float
    ) -> Micros | None:
        """Return the price of what was used, rounded up to a whole micro-USD once.

        None without rates, and where a figure that has a rate is not known.
        """
        charged = (
            (self.cpu_hour, cpu_seconds, Decimal(1)),
            (self.memory_gib_hour, memory_mib_seconds, _GIB),
            (self.sandbox_hour, wall_seconds, Decimal(1)),
        )
        total = Decimal(0)
        for rate, amount, unit in charged:
            if rate and amount is None:
                return None
            total += rate * Decimal(amount or 0.0) / unit / _HOUR
        return Micros(int(total.to_integral_value(ROUND_CEILING))) if self else None
