"""Every unit once, whatever interrupts it, within time and money."""

import random
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.evals.trials.parts import AUTO, INSTANCE, MODEL, trial_of

from turnout.core.ids import RunId
from turnout.core.money import Micros
from turnout.errors import StoreError
from turnout.evals.trials.board import Board
from turnout.evals.trials.evaluation import Bounds, Evaluation, spent_on
from turnout.evals.trials.schedule import units_of
from turnout.evals.trials.store import Results
from turnout.testing.clock import FrozenClock

INSTANCES = [replace(INSTANCE, instance_id=f"i{n}", digest=f"d{n}") for n in range(4)]
PLANNED = tuple(units_of(INSTANCES, [AUTO, MODEL], mode="hidden", strict=False, repeats=1))


@dataclass
class Service:
    """Runs that outlive the process: a key that was begun is never begun again."""

    clock: FrozenClock = field(default_factory=FrozenClock)
    runs: dict[str, RunId] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    bad: dict[str, int] = field(default_factory=dict)
    """By instance, how many of its runs come to nothing."""
    cost: int = 10
    dies_at: int | None = None
    """After so many more points at which a process can die it dies."""

    def _point(self):
        if self.dies_at is not None:
            if not self.dies_at:
                self.dies_at = None
                raise StoreError("killed")
            self.dies_at -= 1

    async def run(self, given, show):
        """Begin, end and grade a run, dying in between where that is asked for."""
        self._point()
        run_id = self.runs.setdefault(given.key, RunId(f"run-{len(self.runs)}"))
        self._point()
        self.ended.add(given.key)
        self.clock.advance(60.0)
        self._point()
        trial = trial_of(given.unit, run_id=run_id, cost_micros=Micros(self.cost))
        if self.bad.get(given.unit.instance_id, 0) > 0:
            self.bad[given.unit.instance_id] -= 1
            return replace(trial, grade="infrastructure", outcome="failed")
        return replace(trial, grade="resolved")


async def evaluate(path, service, *, bounds=None, slots=2, again=True):
    """Do what one process does; return how far it came."""
    results = Results(path)
    board = Board(service.clock, slots)
    with results.writing():
        evaluation = Evaluation(results, service, board, service.clock, bounds=bounds)
        await evaluation.go(PLANNED, slots=slots, again=again)
    return results, board, evaluation


async def test_every_unit_has_one_result(tmp_path):
    """And the same again runs nothing."""
    service = Service()
    results, board, _ = await evaluate(tmp_path / "r.jsonl", service)
    assert len(service.runs) == len(results.rows) == board.done == board.total == 8
    assert board.arms["auto"].resolved == 4
    before = (tmp_path / "r.jsonl").read_bytes()
    _, board, _ = await evaluate(tmp_path / "r.jsonl", service)
    assert (len(service.runs), board.done) == (8, 8)
    assert (tmp_path / "r.jsonl").read_bytes() == before


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 20), max_size=12), st.integers(1, 4), st.randoms())
async def test_a_process_that_dies_at_any_points_loses_no_trial_and_runs_none_twice(
    tmp_path_factory, points, slots, chance
):
    """Not even where a line of the results is written to half."""
    assert isinstance(chance, random.Random)
    path = tmp_path_factory.mktemp("eval") / "r.jsonl"
    service = Service()
    for point in points:
        service.dies_at = point
        try:
            await evaluate(path, service, slots=slots)
        except StoreError:
            data = path.read_bytes()
            torn = data.rpartition(b"\n")[0].rpartition(b"\n")[2]
            if chance.random() < 0.5:
                path.write_bytes(data + torn[: chance.randrange(len(torn) + 1)])
    service.dies_at = None
    results, board, _ = await evaluate(path, service, slots=slots)
    assert len(service.runs) == 8
    assert board.done == 8
    units = [trial.unit for trial in results.rows]
    assert len(units) == len(set(units)) == 8


async def test_a_run_that_came_to_nothing_is_followed_by_two_more(tmp_path):
    """Each is on file, and each cost what it cost; what was graded is never run again."""
    service = Service(bad={"i0": 2, "i1": 9})
    results, board, _ = await evaluate(tmp_path / "r.jsonl", service, slots=1)
    grades = [trial.grade for trial in results.rows if trial.instance_id == "i0"]
    assert sorted(grades) == ["infrastructure", "infrastructure", "resolved", "resolved"]
    assert board.done == 8
    assert sum(arm.graded for arm in board.arms.values()) == 6
    assert spent_on(results.rows) == 10 * len(service.runs)
    assert service.clock.slept == [2.0, 4.0] * 3


async def test_what_could_not_be_graded_is_run_again_unless_that_is_not_wanted(tmp_path):
    """By the same command, later."""
    service = Service(bad={"i1": 6})
    path = tmp_path / "r.jsonl"
    await evaluate(path, service)
    runs = len(service.runs)
    await evaluate(path, service, again=False)
    assert len(service.runs) == runs
    results, _, _ = await evaluate(path, service)
    assert len(service.runs) == runs + 2
    assert all(trial.graded for trial in results.trials)


async def test_a_run_that_ended_well_is_only_graded_again(tmp_path):
    """It is not paid for twice."""
    service = Service()
    path = tmp_path / "r.jsonl"
    results = Results(path)
    unit = PLANNED[0][0]
    with results.writing():
        results.add(trial_of(unit, grade="infrastructure", run_id=RunId("run-0")))
    await evaluate(path, service)
    assert len(service.runs) == 8


@pytest.mark.parametrize(
    ("bounds", "says"),
    [(Bounds(budget=Micros(35)), "budget"), (Bounds(seconds=200.0), "hours is used up")],
)
async def test_a_bound_begins_no_more_units(tmp_path, bounds, says):
    """What is there is kept, and more money or time goes on with it."""
    service = Service()
    path = tmp_path / "r.jsonl"
    results, board, evaluation = await evaluate(path, service, bounds=bounds, slots=1)
    assert len(results.trials) == board.done == 4
    assert says in evaluation.stopped_by
    _, board, _ = await evaluate(path, service)
    assert board.done == 8
    assert len(service.runs) == 8


async def test_the_cost_of_earlier_trials_counts_for_the_budget(tmp_path):
    """Once, however often the command is given."""
    service = Service()
    path = tmp_path / "r.jsonl"
    for _ in range(3):
        results, _, _ = await evaluate(path, service, bounds=Bounds(budget=Micros(30)), slots=1)
    assert spent_on(results.rows) == 30


async def test_a_budget_is_told_as_it_was_given(tmp_path):
    """Not rounded to cents, of which somebody would take it for another."""
    for micros, told in ((12_000, "$0.012 is"), (0, "$0.00 is"), (2_500_000, "$2.50 is")):
        results = Results(tmp_path / f"{micros}.jsonl")
        clock = FrozenClock()
        bounds = Bounds(budget=Micros(micros))
        evaluation = Evaluation(results, Service(clock), Board(clock, 1), clock, bounds=bounds)
        if micros:
            with results.writing():
                results.add(trial_of(PLANNED[0][0], cost_micros=Micros(micros)))
        assert f"The budget of {told} used up." == evaluation.stopped_by
