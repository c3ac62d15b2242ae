"""What engines are told about a container."""

from dataclasses import replace

import pytest
from tests.engines import DOCKER, PODMAN, ROOTLESS

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits, Mount
from turnout.sandbox.container.engines.arguments import Container, Tmpfs, run_words
from turnout.sandbox.container.engines.user import User

MIB = 1 << 20
LIMITS = Limits(
    memory_bytes=100 * MIB, disk_bytes=28 * MIB, pids=64, cpus=0.5, file_bytes=MIB, inodes=500
)
CONTAINER = Container(
    name="turnout-1",
    label="turnout.state=abc",
    image="sha256:1234",
    argv=("/usr/bin/python3", "-ISE", "agent"),
    limits=LIMITS,
    user=User(2_000_000_001, 2_000_000_000),
    profile="/state/profile.json",
    mounts=(Mount("/state/tree", "/base"), Mount("/state/made", "/made", writable=True)),
)
ENGINES = pytest.mark.parametrize("engine", [PODMAN, ROOTLESS, DOCKER], ids=["root", "user", "d"])


@ENGINES
def test_every_wall_is_asked_for(engine) -> None:
    """By each engine, in words of its own for a single argument."""
    words = run_words(engine, CONTAINER, "piped")
    assert {
        "--network=none",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--security-opt=seccomp=/state/profile.json",
        "--read-only",
        "--user=2000000001:2000000000",
        "--ipc=private",
        "--cgroupns=private",
        "--pull=never",
        "--no-healthcheck",
        "--init=false",
        "--log-driver=none",
        "--rm",
    } <= set(words)
    assert not {word for word in words if "privileged" in word or "cap-add" in word}


@ENGINES
def test_the_image_runs_nothing_of_its_own(engine) -> None:
    """Its entry point is replaced, and the program's arguments come after its id."""
    words = run_words(engine, CONTAINER, "piped")
    assert words[-4:] == ["--entrypoint=/usr/bin/python3", "sha256:1234", "-ISE", "agent"]


@pytest.mark.parametrize("engine", [PODMAN, DOCKER])
def test_files_count_as_memory(engine) -> None:
    """The limit is what processes and files may use together, and nothing is swapped."""
    words = run_words(engine, CONTAINER, "piped")
    assert {f"--memory={128 * MIB}b", f"--memory-swap={128 * MIB}b"} <= set(words)
    assert {"--cpus=0.5", "--ulimit=nproc=64:64", "--ulimit=core=0:0"} <= set(words)
    assert any(word.startswith("--pids-limit=") for word in words)


def test_no_more_processors_are_asked_for_than_there_are() -> None:
    """Docker would refuse."""
    many = replace(CONTAINER, limits=replace(LIMITS, cpus=100_000))
    (cpus,) = [word for word in run_words(DOCKER, many, "piped") if word.startswith("--cpus=")]
    assert float(cpus.partition("=")[2]) < 100_000


def test_an_engine_that_cannot_limit_is_not_asked_to() -> None:
    """It would refuse; the host's control groups do not show either."""
    words = run_words(ROOTLESS, CONTAINER, "piped")
    assert not [word for word in words if word.startswith(("--memory", "--cpus", "--pids"))]
    assert "--security-opt=mask=/sys/fs/cgroup" in words


def test_the_user_of_an_engine_without_root_is_mapped() -> None:
    """Files that it makes belong to the user of the service."""
    words = run_words(ROOTLESS, CONTAINER, "direct")
    assert "--userns=keep-id:uid=2000000001,gid=2000000000" in words
    assert "--userns=host" in run_words(PODMAN, CONTAINER, "direct")


def test_a_direct_channel_is_the_standard_input() -> None:
    """The engine's client does not stay, and nothing is logged."""
    words = run_words(PODMAN, CONTAINER, "direct")
    assert {"--detach", "--log-driver=passthrough"} <= set(words)
    assert "--interactive" not in words


def test_mounts_are_read_only_unless_said() -> None:
    """By bind, never by the engine's own copy."""
    words = run_words(DOCKER, CONTAINER, "piped")
    assert "--mount=type=bind,source=/state/tree,destination=/base,readonly" in words
    assert "--mount=type=bind,source=/state/made,destination=/made" in words


def test_folders_in_memory_are_sized() -> None:
    """Podman would fill them from the image; Docker can count their files."""
    made = replace(CONTAINER, tmpfs=(Tmpfs("/tmp", MIB, 0o1777),), volume=("/repo", "/workspace"))
    common = f"--tmpfs=/tmp:rw,exec,nosuid,nodev,size={MIB},mode=1777"
    assert f"{common},notmpcopyup" in run_words(ROOTLESS, made, "piped")
    words = run_words(DOCKER, made, "piped")
    assert f"{common},nr_inodes=500" in words
    for target in ("/repo", "/workspace"):
        mount = f"--mount=type=volume,source=turnout-1,destination={target},volume-nocopy"
        assert mount in words


def test_the_proxies_of_the_host_do_not_come_along() -> None:
    """Their addresses may hold a password."""
    assert "--http-proxy=false" in run_words(PODMAN, CONTAINER, "piped")
    words = run_words(DOCKER, CONTAINER, "piped")
    assert {"--env=http_proxy=", "--env=HTTPS_PROXY=", "--env=NO_PROXY="} <= set(words)


def test_more_limits_of_processes_come_last() -> None:
    """So that they override ours."""
    words = run_words(PODMAN, replace(CONTAINER, ulimits=("nproc=9:9",)), "piped")
    given = [word for word in words if word.startswith("--ulimit=nproc")]
    assert given == ["--ulimit=nproc=64:64", "--ulimit=nproc=9:9"]


def test_a_path_that_an_engine_would_misread_is_refused() -> None:
    """A comma would begin another option of the mount."""
    odd = replace(CONTAINER, mounts=(Mount("/a,readonly=false", "/b"),))
    with pytest.raises(SandboxUnavailableError, match="comma"):
        run_words(PODMAN, odd, "piped")


@ENGINES
def test_the_runtime_is_named_where_it_was_chosen(engine) -> None:
    """Podman wants it before the command, Docker after it."""
    chosen = engine.command("/opt/runsc", ["--rm"])
    assert chosen[0] == engine.program
    assert chosen[1:-1] == (
        ["--runtime=/opt/runsc", "run"] if engine.is_podman else ["run", "--runtime=/opt/runsc"]
    )
    assert engine.command("", ["--rm"]) == [engine.program, "run", "--rm"]


def test_processes_of_a_shared_uid_are_not_counted_by_it() -> None:
    """Others of the same user would count as well; only an engine's own excess is prevented."""
    assert User(1, 1).most_processes(64) == 64
    assert User(1, 1, alone=False).most_processes(64) != 64
