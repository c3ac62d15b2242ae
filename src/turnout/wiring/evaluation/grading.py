"""Opens what patches are graded with, without any model."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from turnout.evals.grading.grade import Grader
from turnout.evals.grading.kept import BeforesFolder
from turnout.evals.instances.model import Instance
from turnout.evals.trials.model import Mode
from turnout.evals.trials.places import Places
from turnout.runs.service import check_walls
from turnout.sandbox.base import BaseSpec, SandboxDriver
from turnout.sandbox.repository import resolve
from turnout.settings import Settings
from turnout.wiring.sandboxes import open_sandboxes
from turnout.wiring.state import state_folder_of

__all__ = ["OpenGrading", "grader_of", "open_grading"]


@dataclass(frozen=True, slots=True)
class OpenGrading:
    """Grades patches, and knows what their runs started from."""

    grader: Grader
    places: Places
    setup: str | None
    """For instances that are in a repository of their own and name none."""

    async def base_of(self, instance: Instance, mode: Mode) -> BaseSpec:
        """Return the base of an instance's runs; `RepositoryError` where it cannot be had."""
        place = await self.places.of(instance, mode)
        found = await resolve(place.repository, place.base)
        shared = self.setup if instance.repository else None
        setup = instance.setup or shared
        return BaseSpec(place.repository, found.commit, instance.requirements, setup=setup)


@asynccontextmanager
async def open_grading(settings: Settings) -> AsyncIterator[OpenGrading]:
    """Open the sandboxes of this machine for grading; `UnfitError` where there are none."""
    async with open_sandboxes(settings) as driver:
        await check_walls(driver)
        places = Places(state_folder_of(settings))
        yield OpenGrading(grader_of(settings, driver), places, settings.setup)


def grader_of(settings: Settings, driver: SandboxDriver) -> Grader:
    """Return what grades patches in sandboxes of a driver, and keeps what it finds out once."""
    timeout = settings.agent.own_test_timeout
    under = repr((settings.driver, settings.limits, timeout, settings.test_paths))
    return Grader(
        driver,
        settings.limits,
        test_timeout=timeout,
        test_paths=settings.test_paths,
        keeper=BeforesFolder(state_folder_of(settings), under=under),
    )
