"""Control groups, on folders that look like the kernel's."""

import os
from pathlib import Path

import pytest

from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import Limits
from turnout.sandbox.walls.cgroup import Cgroup, CgroupParents, find_parents

LIMITS = Limits(memory_bytes=1000, pids=7, cpus=1.5, disk_bytes=10)


class Machine:
    """Files of a machine's control groups."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.membership = folder / "membership"
        self.mountinfo = folder / "mountinfo"
        self.membership.touch()
        self.mountinfo.touch()

    def mount(self, kind: str, name: str, own: str, *controllers: str) -> Path:
        """Mount a hierarchy in which this process is in the group `own`."""
        group = self.folder / name / own.strip("/")
        group.mkdir(parents=True)
        (group / "cgroup.procs").write_text(f"{os.getpid()}\n")
        options = "rw" if kind == "cgroup2" else f"rw,{','.join(controllers)}"
        with self.mountinfo.open("a") as file:
            file.write(f"1 2 0:3 / {self.folder / name} rw,relatime - {kind} cgroup {options}\n")
        with self.membership.open("a") as file:
            names = "" if kind == "cgroup2" else ",".join(controllers)
            file.write(f"{0 if kind == 'cgroup2' else 5}:{names}:{own}\n")
        if kind == "cgroup2":
            (group / "cgroup.controllers").write_text(" ".join(controllers))
            (group / "cgroup.subtree_control").write_text("")
        return group

    def parents(self) -> CgroupParents:
        """Look for a place for groups."""
        return find_parents(self.membership, self.mountinfo)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """Return a machine without any hierarchy."""
    return Machine(tmp_path)


def test_version_1_needs_memory_and_pids(machine: Machine) -> None:
    """Both hierarchies must be writable; others are used where they are there."""
    machine.mount("cgroup", "memory", "/service", "memory")
    assert machine.parents().version == 0
    machine.mount("cgroup", "pids", "/", "pids")
    machine.mount("cgroup", "cpu", "/", "cpu", "cpuacct")
    found = machine.parents()
    assert found.version == 1
    assert dict(found.parents)["memory"] == machine.folder / "memory/service"
    assert dict(found.parents)["cpuacct"] == machine.folder / "cpu"
    assert found.advice == ""


def test_version_2_hands_controllers_on(machine: Machine) -> None:
    """The service alone in its delegated group moves into a leaf, then enables them."""
    group = machine.mount("cgroup2", "unified", "/service", "cpu", "memory", "pids")
    found = machine.parents()
    assert (found.version, found.parents) == (2, (("unified", group),))
    assert (group / "turnout-service/cgroup.procs").read_text() == str(os.getpid())
    assert (group / "cgroup.subtree_control").read_text() == "+cpu"


def test_version_2_without_controllers_falls_back(machine: Machine) -> None:
    """A unified hierarchy beside version 1 has none: it ends groups, version 1 limits them."""
    unified = machine.mount("cgroup2", "unified", "/", "hugetlb")
    machine.mount("cgroup", "memory", "/", "memory")
    machine.mount("cgroup", "pids", "/", "pids")
    parents = machine.parents()
    assert parents.version == 1
    assert parents.ending == unified
    group = Cgroup.make(parents, "turnout-x", LIMITS)
    (unified / "turnout-x/cgroup.kill").touch()
    (unified / "turnout-x/cgroup.procs").write_text("999999999")
    group.kill()
    assert (unified / "turnout-x/cgroup.kill").read_text() == "1"
    assert str(unified / "turnout-x/cgroup.procs") in group.entrances


def test_where_groups_will_be_is_known_before_they_are_made(machine: Machine) -> None:
    """So that it can be written down first, and a service that is killed in between leaves none."""
    unified = machine.mount("cgroup2", "unified", "/", "hugetlb")
    memory = machine.mount("cgroup", "memory", "/", "memory")
    pids = machine.mount("cgroup", "pids", "/", "pids")
    planned = machine.parents().folders("turnout-x")
    assert not any(folder.exists() for folder in planned.values())
    assert set(planned.values()) == {top / "turnout-x" for top in (unified, memory, pids)}
    Cgroup.make(machine.parents(), "turnout-x", LIMITS)
    assert all(folder.is_dir() for folder in planned.values())


def test_where_nothing_is_writable_it_says_so(machine: Machine) -> None:
    """The reason and the mend are for people."""
    found = machine.parents()
    assert found.version == 0
    assert found.name == "rlimits"
    assert "Delegate=yes" in found.advice


def test_limits_of_version_2(tmp_path: Path) -> None:
    """Memory counts processes and files, pids ours as well; swap is none."""
    group = Cgroup.make(CgroupParents(2, (("unified", tmp_path),)), "turnout-x", LIMITS)
    folder = tmp_path / "turnout-x"
    assert group.entrances == [str(folder / "cgroup.procs")]
    written = {path.name: path.read_text() for path in folder.iterdir()}
    assert written == {
        "memory.max": "1010",
        "memory.swap.max": "0",
        "pids.max": "9",
        "cpu.max": "150000 100000",
    }
    (folder / "memory.events").write_text("low 0\noom 2\noom_kill 3\n")
    (folder / "memory.peak").write_text("900\n")
    (folder / "cpu.stat").write_text("usage_usec 1500000\nuser_usec 1\n")
    assert group.oom_kills() == 3
    assert group.peak_memory_bytes() == 900
    assert group.cpu_seconds() == 1.5


def test_limits_of_version_1(tmp_path: Path) -> None:
    """Each hierarchy gets its own group; what is not mounted is not missed."""
    for name in ("memory", "pids", "cpuacct"):
        (tmp_path / name).mkdir()
    parents = tuple((name, tmp_path / name) for name in ("memory", "pids", "cpuacct"))
    group = Cgroup.make(CgroupParents(1, parents), "turnout-x", LIMITS)
    assert (tmp_path / "memory/turnout-x/memory.limit_in_bytes").read_text() == "1010"
    assert (tmp_path / "pids/turnout-x/pids.max").read_text() == "9"
    (tmp_path / "cpuacct/turnout-x/cpuacct.usage").write_text("2000000000")
    assert group.cpu_seconds() == 2.0
    assert group.oom_kills() == 0
    assert group.peak_memory_bytes() is None


def test_a_group_that_cannot_be_made_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    """What was made before the failure is removed again."""
    (tmp_path / "memory").mkdir()
    parents = (("memory", tmp_path / "memory"), ("pids", tmp_path / "missing"))
    with pytest.raises(SandboxUnavailableError, match="control group"):
        Cgroup.make(CgroupParents(1, parents), "turnout-x", LIMITS)
    assert not list((tmp_path / "memory").iterdir())


def test_without_groups_nothing_is_known(tmp_path: Path) -> None:
    """Making, killing and removing are harmless."""
    group = Cgroup.make(CgroupParents(0), "turnout-x", LIMITS)
    assert group.entrances == []
    group.kill()
    assert group.remove()
    assert (group.cpu_seconds(), group.peak_memory_bytes(), group.oom_kills()) == (None, None, 0)


def test_our_own_groups_are_not_taken_for_anothers() -> None:
    """What counts for a process of the same groups counts for us as well."""
    group = Cgroup.around(os.getpid())
    assert group.entrances == []
    assert (group.cpu_seconds(), group.peak_memory_bytes(), group.oom_kills()) == (None, None, 0)
    assert Cgroup.around(1 << 30).entrances == []
