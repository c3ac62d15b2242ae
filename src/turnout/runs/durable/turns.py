"""Whose turn it is: fair among projects, within what projects and repositories may have at once."""

from collections import Counter
from dataclasses import dataclass

from turnout.core.ids import RunId
from turnout.core.service.turns import EVALUATIONS, Claimable, Standing

__all__ = ["Turns"]


@dataclass(frozen=True, slots=True)
class Turns:
    """Gives turns; None: no limit."""

    per_project: int | None = None
    per_repository: int | None = None

    def pick(self, standing: Standing) -> RunId | None:
        """Return the run whose turn it is; None where nothing may begin.

        Of the projects that may, the one with the fewest runs under way has it, of equal ones the
        one that was served longest ago. Within it the highest priority goes first, then the
        oldest; a run whose repository is busy lets the next one pass. Those of evaluations are left
        to them.
        """
        projects = Counter(each.project for each in standing.running)
        repositories = Counter(_repository(each) for each in standing.running)
        served = {project: at for at, project in enumerate(standing.served, start=1)}
        first: dict[str, Claimable] = {}
        for each in sorted(standing.queued, key=lambda each: (-each.priority, each.number)):
            if each.project.startswith(EVALUATIONS):
                continue
            if _is_below(projects[each.project], self.per_project) and _is_below(
                repositories[_repository(each)], self.per_repository
            ):
                first.setdefault(each.project, each)
        if not first:
            return None
        turn = min(
            first.values(), key=lambda e: (projects[e.project], served.get(e.project, 0), e.number)
        )
        return turn.run_id


def _repository(run: Claimable) -> tuple[str, str]:
    return run.project, run.repository


def _is_below(count: int, most: int | None) -> bool:
    return most is None or count < most
