"""What the sandboxes of a run took, and what that costs."""

from tests.unit.runs.parts import Driver, Room

from turnout.core.events import ResourcesUsed
from turnout.core.money import Micros
from turnout.core.spend.rates import MachineRates
from turnout.errors import SandboxDiedError


async def test_what_its_sandboxes_took_is_on_record() -> None:
    """That of the work and those of our tests, each measured before it is closed."""
    result = await Room().run()
    memory = 3 * 64 * 60.0
    assert result.resources == ResourcesUsed(4.5, 64 << 20, 3 * 4096, 180.0, 90.0, memory)


async def test_what_its_sandboxes_took_has_the_price_that_was_set() -> None:
    """By the hour of CPU time, of memory and of being there, rounded up once."""
    rates = MachineRates(Micros(36_000), Micros(10_000), Micros(3_600))
    result = await Room(rates=rates).run()
    # 4.5 s at 10 a second, 11,520 MiB s at 10,000 a GiB hour, 180 s at 1 a second.
    assert result.resources.cost == 45 + 32 + 180


async def test_a_sandbox_that_died_is_left_out() -> None:
    """The run ends as it would have; nothing is on record of what nobody could read."""

    class Dying(Driver):
        """Makes sandboxes that are dead by the time they are to be read."""

        async def create(self, *args, **kwargs):
            """Start one."""
            box = await super().create(*args, **kwargs)

            async def died():
                raise SandboxDiedError("It is gone.")

            box.usage = died
            return box

    result = await Room(driver=Dying()).run()
    assert (result.outcome, result.resources) == ("answered", None)
