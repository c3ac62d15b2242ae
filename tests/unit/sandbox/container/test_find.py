"""Finding an engine, with a program that answers as the real ones do."""

from pathlib import Path

import pytest
from tests.engines import FakeEngine, docker_info, podman_info

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.container.engines.find import find_engine
from turnout.sandbox.container.options import ContainerOptions, EngineName

PODMAN_INFO, DOCKER_INFO = "info --format=json", "info"
SOCKET = "Cannot connect to the Docker daemon at unix:///var/run/docker.sock."


@pytest.fixture
def engine(tmp_path: Path) -> FakeEngine:
    """Return one that answers nothing yet."""
    return FakeEngine(tmp_path / "bin")


def options(engine: FakeEngine, name: EngineName | str = "podman", runtime: str = ""):
    """Return options that name it."""
    return ContainerOptions(engine=name, program=str(engine.program), runtime=runtime)


async def why_not(engine: FakeEngine, name: str = "podman") -> str:
    """Return why an engine cannot be used."""
    with pytest.raises(SandboxUnavailableError) as raised:
        await find_engine(options(engine, name))
    assert raised.value.mend
    return str(raised.value)


async def test_podman_is_what_it_says(engine: FakeEngine) -> None:
    """Version, runtime and control groups are its own words."""
    engine.answer(PODMAN_INFO, podman_info())
    found = await find_engine(options(engine))
    assert (found.name, found.version, found.runtime) == ("podman", "4.3.1", "crun")
    assert (found.rootless, found.limits, found.cgroups) == (False, True, "v2")
    assert found.program == str(engine.program)


async def test_docker_is_what_it_says(engine: FakeEngine) -> None:
    """The daemon's version counts, not that of its client."""
    engine.answer(DOCKER_INFO, docker_info())
    found = await find_engine(options(engine, "docker", runtime="runsc"))
    assert (found.name, found.version, found.runtime) == ("docker", "28.2.2", "runsc")
    assert (found.rootless, found.limits, found.cgroups) == (False, True, "v2")


async def test_podman_is_taken_where_both_are_there(engine: FakeEngine) -> None:
    """It needs no daemon that is root."""
    engine.answer(PODMAN_INFO, podman_info()).answer(DOCKER_INFO, docker_info())
    assert (await find_engine(options(engine, "auto"))).name == "podman"


async def test_docker_is_taken_where_podman_cannot_be_used(engine: FakeEngine) -> None:
    """Being installed is not enough."""
    engine.answer(PODMAN_INFO, stderr="no storage", code=125).answer(DOCKER_INFO, docker_info())
    assert (await find_engine(options(engine, "auto"))).name == "docker"


async def test_without_delegation_an_engine_without_root_cannot_limit(engine: FakeEngine) -> None:
    """It says which controllers it was given."""
    told = podman_info(rootless=True)
    engine.answer(PODMAN_INFO, told)
    found = await find_engine(options(engine))
    assert found.rootless
    assert not found.limits


async def test_with_delegation_it_can(engine: FakeEngine) -> None:
    """All three that our limits take."""
    told = podman_info(rootless=True)
    told["host"]["cgroupControllers"] = ["cpu", "memory", "pids"]
    engine.answer(PODMAN_INFO, told)
    assert (await find_engine(options(engine))).limits


async def test_a_daemon_that_does_not_answer_is_named(engine: FakeEngine) -> None:
    """In its own words, with what would help."""
    engine.answer(DOCKER_INFO, docker_info(ServerVersion="", ServerErrors=[SOCKET]), code=1)
    found = await why_not(engine, "docker")
    assert "Cannot connect to the Docker daemon" in found
    assert "`docker info`" in found


@pytest.mark.parametrize(
    ("security", "expected"),
    [({"seccompEnabled": False}, "cannot filter system calls")],
)
async def test_podman_without_a_filter_is_refused(
    engine: FakeEngine, security: dict[str, object], expected: str
) -> None:
    """The walls would be too low."""
    engine.answer(PODMAN_INFO, podman_info(**security))
    assert expected in await why_not(engine)


@pytest.mark.parametrize(
    ("options_of_daemon", "expected"),
    [
        (["name=apparmor"], "cannot filter system calls"),
        (["name=seccomp,profile=builtin", "name=rootless"], "Use Podman without root"),
    ],
)
async def test_a_daemon_that_does_not_fit_is_refused(
    engine: FakeEngine, options_of_daemon: list[str], expected: str
) -> None:
    """For want of a filter, or for files of which nobody here would be the owner."""
    engine.answer(DOCKER_INFO, docker_info(SecurityOptions=options_of_daemon))
    assert expected in await why_not(engine, "docker")


async def test_an_old_podman_is_refused(engine: FakeEngine) -> None:
    """It lacks options that we need."""
    told = podman_info()
    told["version"] = {"Version": "3.4.4"}
    engine.answer(PODMAN_INFO, told)
    assert "3.4.4 is too old" in await why_not(engine)


async def test_podman_on_another_machine_is_refused(engine: FakeEngine) -> None:
    """Folders of this one would not be there."""
    told = podman_info()
    told["host"]["serviceIsRemote"] = True
    engine.answer(PODMAN_INFO, told)
    assert "another machine" in await why_not(engine)


async def test_an_answer_that_makes_no_sense_is_refused(engine: FakeEngine) -> None:
    """Rather than believed in part."""
    engine.answer(PODMAN_INFO, "[]")
    assert "cannot be used" in await why_not(engine)


async def test_a_missing_engine_is_named_with_how_to_get_it(tmp_path: Path) -> None:
    """Both names where either would do."""
    nowhere = str(tmp_path / "nowhere")
    with pytest.raises(
        SandboxUnavailableError, match="Podman or Docker is not installed"
    ) as raised:
        await find_engine(ContainerOptions(program=nowhere))
    assert "apt-get install podman" in raised.value.mend
