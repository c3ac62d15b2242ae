"""The order of units, and how many are worked on at once."""

import asyncio
from collections import Counter
from dataclasses import replace

import pytest
from tests.unit.evals.trials.parts import AUTO, INSTANCE, MODEL

from turnout.errors import ModelUnavailableError
from turnout.evals.trials.schedule import units_of, work_through

INSTANCES = [replace(INSTANCE, instance_id=name, digest=name) for name in "abc"]


def planned(repeats=1, arms=(AUTO, MODEL)):
    """Plan three instances."""
    return tuple(units_of(INSTANCES, arms, mode="hidden", strict=False, repeats=repeats))


def test_arms_take_turns_on_each_instance():
    """So that what changes meanwhile does so for all of them alike."""
    order = [(unit.instance_id, unit.arm) for unit, _, _ in planned()]
    assert order[:4] == [("a", "auto"), ("a", "model:m"), ("b", "model:m"), ("b", "auto")]


def test_every_unit_is_planned_once():
    """Every instance with every arm, as often as was asked."""
    units = [unit for unit, _, _ in planned(repeats=3)]
    assert len(set(units)) == len(units) == 18
    assert len({unit.key for unit in units}) == 18
    assert Counter(unit.attempt for unit in units) == {1: 6, 2: 6, 3: 6}


class Work:
    """Counts what is under way."""

    def __init__(self):
        self.done = []
        self.under_way = 0
        self.most = 0

    async def __call__(self, each):
        """Work for a moment."""
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        self.done.append(each)


@pytest.mark.parametrize("slots", [1, 2, 50])
async def test_all_of_it_is_worked_on_within_the_slots(slots):
    """In order."""
    work = Work()
    await work_through(planned(), work, slots=slots, stopped=lambda: False)
    assert work.done == list(planned())
    assert work.most == min(slots, 6)


async def test_what_is_under_way_when_it_is_stopped_comes_to_its_end():
    """Nothing else is begun."""
    work = Work()
    await work_through(planned(), work, slots=2, stopped=lambda: len(work.done) >= 2)
    assert 2 <= len(work.done) <= 3
    assert work.under_way == 0


async def test_the_first_error_ends_all_of_it():
    """As itself, not as a group of errors."""
    ended = []

    async def work(each):
        if each == planned()[0]:
            raise ModelUnavailableError("no model")
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(each)

    with pytest.raises(ModelUnavailableError):
        await work_through(planned(), work, slots=2, stopped=lambda: False)
    assert len(ended) <= 1
