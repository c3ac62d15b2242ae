"""What sandboxes cost by the hour."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from turnout.core.money import Micros
from turnout.core.spend.rates import MachineRates

SECONDS = st.floats(0, 1e7)


def test_an_hour_of_each_costs_its_rate() -> None:
    """CPU time, a gibibyte of memory, and being there."""
    rates = MachineRates(Micros(30_000), Micros(4_000), Micros(1_000))
    assert rates.cost(3_600, 1_024 * 3_600, 3_600) == 35_000


def test_without_rates_nothing_has_a_price() -> None:
    """That is something else than costing nothing."""
    assert MachineRates().cost(1.0, 1.0, 1.0) is None


def test_what_is_not_known_and_has_a_rate_has_no_price() -> None:
    """What has no rate need not be known."""
    rates = MachineRates(cpu_hour=Micros(30_000))
    assert rates.cost(None, 1.0, 1.0) is None
    assert rates.cost(3_600, None, 1.0) == 30_000


@given(SECONDS, SECONDS, SECONDS, st.tuples(*[st.integers(0, 10**9)] * 3))
def test_a_price_is_rounded_up_once(
    cpu: float, memory: float, wall: float, rates: tuple[int, int, int]
) -> None:
    """At most a micro-dollar more than the exact amount, never less than it."""
    cost = MachineRates(*map(Micros, rates)).cost(cpu, memory, wall)
    exact = (
        rates[0] * Decimal(cpu) + rates[1] * Decimal(memory) / 1_024 + rates[2] * Decimal(wall)
    ) / 3_600
    if any(rates):
        assert cost is not None
        assert -Decimal("1e-6") <= cost - exact <= 1
