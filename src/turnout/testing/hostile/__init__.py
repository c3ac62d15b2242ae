"""A model that no run should have, and things of this machine that it must not reach.

async with Canaries(folder) as canaries:
    drilled = await drill(Random(7), sandbox, hostile_arguments(canaries))
    assert drilled.end and not drilled.invalid_histories
    assert not canaries.touched(drilled.events)
"""

from turnout.testing.hostile.canaries import Canaries
from turnout.testing.hostile.drill import Drilled, drill
from turnout.testing.hostile.turns import ODD_ARGUMENTS, hostile_arguments, odd_turn

__all__ = ["ODD_ARGUMENTS", "Canaries", "Drilled", "drill", "hostile_arguments", "odd_turn"]
