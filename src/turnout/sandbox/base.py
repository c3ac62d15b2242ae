"""What every sandbox driver does, whatever its walls are made of."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from turnout.core.ids import RunId
from turnout.core.runs import Connection, Patch, TestReport

__all__ = [
    "BASE_ENV",
    "NO_EGRESS",
    "NO_WALLS",
    "REPO",
    "VENV",
    "WORKSPACE",
    "BaseRef",
    "BaseSpec",
    "Blob",
    "BoundSecret",
    "Capabilities",
    "Command",
    "CommandResult",
    "Connection",
    "Egress",
    "Exit",
    "ExitReason",
    "HostRule",
    "LayerRef",
    "Limits",
    "Listing",
    "Mount",
    "Output",
    "PatchResult",
    "RunTests",
    "Sandbox",
    "SandboxDriver",
    "SandboxUsage",
    "SearchHit",
]

REPO = "/repo"
"""Where the workspace is, in every sandbox."""

NO_WALLS = "none"
"""What `Capabilities.isolation` is called where nothing is isolated."""

WORKSPACE = "/workspace"
"""Another name of `REPO` inside, the same folder."""

VENV = "/venv"
"""Where the environment of the tests is in every sandbox.

Beneath lies what `prepare` made, immutable; what a run changes there is the run's alone.
"""

PROJECT = "/project"
"""Where metadata and scripts of the project under test are; `/venv` knows of them."""

BASE_ENV: Mapping[str, str] = {
    "PATH": f"{VENV}/bin:{PROJECT}/bin:/usr/local/bin:/usr/bin:/bin",
    "HOME": "/tmp/home",
    "TMPDIR": "/tmp",
    "LANG": "C.UTF-8",
    "PYTHONPATH": f"{REPO}/src:{REPO}",
    "PYTHONDONTWRITEBYTECODE": "1",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "VIRTUAL_ENV": VENV,
}
"""The whole environment of a command, before the command's own additions."""

ExitReason = Literal[
    "exited", "timeout", "output_limit", "oom", "cancelled", "sandbox_died", "not_started"
]


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandbox may use."""

    memory_bytes: int = 2 << 30
    """Of each process; all of them and the files together may hold this and both disks."""
    pids: int = 512
    cpus: float = 2.0
    disk_bytes: int = 2 << 30
    """What a run writes: workspace, `/venv` and temporary files."""
    inodes: int = 400_000
    """Files and folders that a run makes."""
    file_bytes: int = 1 << 30
    """Largest single file."""
    open_files: int = 1024
    idle_seconds: float = 120.0
    """After so long without a call everything inside is frozen; the next call thaws it."""
    lifetime_seconds: float = 86_400.0
    """Then it is closed, whatever it does."""


@dataclass(frozen=True, slots=True)
class Command:
    """One command to run inside. Exactly one of `argv` and `shell` is given."""

    argv: tuple[str, ...] = ()
    shell: str | None = None
    """Run by `bash -c`."""
    cwd: str = REPO
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to `BASE_ENV`."""
    stdin: bytes | AsyncIterator[bytes] | None = None
    """None: the command reads end of file at once."""
    timeout: float = 120.0
    """Seconds; then TERM to the tree, a grace of one second, KILL."""
    head: int = 32_768
    """Bytes of each stream kept from its start."""
    tail: int = 32_768
    """Bytes of each stream kept from its end."""
    kill_after_bytes: int = 64 << 20
    """A command that prints more is ended with reason `output_limit`."""
    background: bool = False
    """Processes left behind may live on after the main process ended."""
    raw: bool = False
    """Every byte of standard output is passed on: no head and tail, no output limit."""


@dataclass(frozen=True, slots=True)
class Output:
    """Bytes that a command printed."""

    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True)
class Exit:
    """The end of a command: the last item of every `exec`."""

    reason: ExitReason
    code: int | None
    """Exit status; None where a signal or the sandbox's end ended it."""
    signal: int | None
    wall_seconds: float
    stdout_bytes: int
    """All that was printed, kept or not."""
    stderr_bytes: int
    stdout_omitted: int
    """Bytes between head and tail that were dropped."""
    stderr_omitted: int
    error: str = ""
    """Why it was not started."""
    cpu_seconds: float | None = None
    """Of the main process and of the children that it waited for; None where unknown."""
    peak_memory_bytes: int | None = None
    """Largest resident size of one of these; None where unknown."""


@dataclass(frozen=True, slots=True)
class CommandResult:
    """A whole command, with head and tail of both streams joined."""

    exit: Exit
    stdout: bytes
    stderr: bytes

    @property
    def ok(self) -> bool:
        """True where it exited with status 0."""
        return self.exit.reason == "exited" and self.exit.code == 0


@dataclass(frozen=True, slots=True)
class Blob:
    """A slice of a regular file."""

    data: bytes
    size: int
    """Bytes of the whole file."""
    mode: int
    """Permission bits."""
    sha256: str
    """Of the whole file, hexadecimal."""


@dataclass(frozen=True, slots=True)
class Listing:
    """Files that matched a glob."""

    paths: tuple[str, ...]
    """Relative to the workspace, sorted, cut at the limit."""
    total: int
    """How many matched."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """One line that a search found."""

    path: str
    line: int
    """Counts from 1."""
    text: str
    """The line, at most 400 characters."""


@dataclass(frozen=True, slots=True)
class PatchResult:
    """What became of a patch: all of it was applied, or nothing."""

    applied: bool
    files: tuple[str, ...]
    """Paths that changed, relative to the workspace."""
    message: str
    """For the model: what was changed, or why it was refused and what would help."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What a driver can hold on this machine."""

    driver: str
    usable: bool
    isolation: str
    """Short name of the walls, such as `namespaces+seccomp+cgroup-v1`."""
    facts: tuple[tuple[str, bool, str], ...]
    """Each wall: its name, whether it holds, and the reason or the mend where it does not."""


@dataclass(frozen=True, slots=True)
class BaseSpec:
    """What a base layer is made of."""

    repository: str | None
    """Absolute path or URL of a git repository; None: an empty workspace without history."""
    commit: str = ""
    """Full object name; it and its ancestors are all that the workspace knows of history."""
    requirements: tuple[str, ...] | None = None
    """Requirement specifiers for `/venv` beside pytest; None: those the repository declares."""
    manifests: tuple[tuple[str, str], ...] = ()
    """Path and text of files that declare dependencies, in place of those of the commit.

    The environment is then that of a tree in which they were changed; the tree stays the commit's.
    """
    setup: str | None = None
    """Shell command that sets the workspace up, run once, with the package mirrors in reach alone.

    What it makes in the workspace and in `/venv` is there from the start and no change of a run's.
    """


@dataclass(frozen=True, slots=True)
class BaseRef:
    """A prepared base layer: tree and environment, immutable, shared by runs."""

    key: str
    """Hash of all that went in."""
    commit: str
    requirements: tuple[str, ...]
    """What `/venv` holds beside pytest."""
    warnings: tuple[str, ...] = ()
    """What could not be had, for people."""


@dataclass(frozen=True, slots=True)
class LayerRef:
    """What a sandbox had changed when it was asked, immutable; sandboxes start on it as often."""

    key: str
    base_key: str
    """Key of the `BaseRef` it lies on."""
    stack: tuple[str, ...]
    """Keys of the layers beneath and of this one, lowest first."""
    size_bytes: int
    """Of this layer alone."""


@dataclass(frozen=True, slots=True)
class HostRule:
    """Hosts that a sandbox may reach."""

    host: str
    """A name, or `*.` and a name for everything below it. Never an address."""
    ports: tuple[int, ...] = (443, 80)
    private: bool = False
    """It may resolve to an address that is not public, because the operator says so."""


@dataclass(frozen=True, slots=True)
class BoundSecret:
    """A value that the proxy puts in for its placeholder, in requests to one host over TLS."""

    variable: str
    """Environment variable that holds the placeholder inside."""
    host: str
    """Exact name; it must be reachable by a rule as well."""
    value: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Egress:
    """What a sandbox may reach, all of it through the host's proxy; nothing by default."""

    rules: tuple[HostRule, ...] = ()
    secrets: tuple[BoundSecret, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    """Added to the environment of every command, such as `PIP_INDEX_URL`."""
    ca_files: tuple[str, ...] = ()
    """Host files with more certificate authorities to trust, beside the system's."""
    setting: str = "`[policy.egress] allow`"
    """Names in refusals what would have to be changed."""


NO_EGRESS = Egress()
"""No network but the sandbox's own loopback."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A host folder that our own code made, shown inside."""

    source: str
    target: str
    writable: bool = False


@dataclass(frozen=True, slots=True)
class SandboxUsage:
    """What a sandbox has used so far."""

    cpu_seconds: float | None
    """None where no cgroup could be written."""
    peak_memory_bytes: int | None
    wall_seconds: float
    disk_bytes: int | None = None
    """What the run has written and not removed; None where it is not known."""
    frozen_seconds: float = 0.0
    """How long of the wall time it was frozen."""


class Sandbox(Protocol):
    """One set of walls with one workspace; every call may raise `SandboxDiedError`."""

    @property
    def run_id(self) -> RunId:
        """The run that the sandbox belongs to."""
        ...

    @property
    def isolation(self) -> str:
        """The walls that hold, as in `Capabilities.isolation`."""
        ...

    def exec(self, command: Command) -> AsyncIterator[Output | Exit]:
        """Run a command and pass on what it prints; the last item is its `Exit`."""
        ...

    async def run(self, command: Command) -> CommandResult:
        """Run a command to its end."""
        ...

    async def kill_all(self) -> None:
        """End every process inside; the sandbox stays usable."""
        ...

    async def read(self, path: str, *, offset: int = 0, limit: int = 1 << 20) -> Blob:
        """Read a regular file beneath the workspace; `ToolError` where it is none."""
        ...

    async def write(
        self, path: str, data: bytes, *, mode: int | None = None, expect_sha256: str | None = None
    ) -> None:
        """Write a whole file beneath the workspace, making its folders, atomically.

        An existing file keeps its mode unless `mode` is given. `ToolError` where the path leaves
        the workspace or the file is not the expected one.
        """
        ...

    async def list(self, pattern: str = "**/*", *, limit: int = 200) -> Listing:
        """Return the files that match a glob; ignored and internal ones are left out."""
        ...

    async def search(
        self, pattern: str, *, glob: str = "**/*", limit: int = 100
    ) -> tuple[SearchHit, ...]:
        """Return lines that match a regular expression; `ToolError` where it is none."""
        ...

    async def apply_patch(self, patch: bytes) -> PatchResult:
        """Apply a unified diff to the workspace, all of it or nothing."""
        ...

    async def diff(self) -> Patch:
        """Compare the workspace with its base commit, by a sandbox that the run never touched."""
        ...

    async def snapshot(self) -> LayerRef:
        """Keep what was changed so far as a layer; everything is frozen meanwhile.

        `SandboxError` where the driver cannot.
        """
        ...

    async def fork(self, run_id: RunId) -> "Sandbox":
        """Start another sandbox with the same workspace, as `snapshot` and `create` would.

        Files are the same; processes, and what lies in `/tmp`, are not taken along.
        """
        ...

    async def pause(self) -> None:
        """Freeze everything inside; any other call thaws it first."""
        ...

    async def resume(self) -> None:
        """Thaw it; may be called when it is not frozen."""
        ...

    async def usage(self) -> SandboxUsage:
        """Return what was used so far."""
        ...

    def connections(self) -> tuple[Connection, ...]:
        """Return what was asked of the proxy so far, oldest first; 10,000 at most."""
        ...

    async def close(self) -> None:
        """End everything inside and leave nothing behind; may be called twice."""
        ...


class RunTests(Protocol):
    """Runs the tests of a workspace once; `turnout.sandbox.testrun.run_tests` does."""

    async def __call__(
        self, sandbox: Sandbox, command: str, *, selector: str = "", timeout: float
    ) -> TestReport:
        """Run `command` on the tests that `selector` names, or on all of them."""
        ...


class SandboxDriver(Protocol):
    """Makes sandboxes of one kind."""

    @property
    def name(self) -> str:
        """`bubblewrap`, `container`, `kubernetes`, that of a host of sandboxes, or `none`."""
        ...

    async def probe(self) -> Capabilities:
        """Find out what holds on this machine; never raises for a wall that does not."""
        ...

    async def prepare(self, spec: BaseSpec) -> BaseRef:
        """Make the base layer, or find it made; `RepositoryError` where it cannot be."""
        ...

    async def create(
        self,
        run_id: RunId,
        base: BaseRef,
        limits: Limits,
        *,
        egress: Egress = NO_EGRESS,
        layer: LayerRef | None = None,
    ) -> Sandbox:
        """Start a sandbox with a fresh workspace on `base`, and on `layer` where one is given.

        `SandboxUnavailableError` where none can be started, `SandboxError` where the layer is not
        one of this base.
        """
        ...

    async def reap(self, known: frozenset[RunId]) -> tuple[RunId, ...]:
        """End every sandbox of a run that is not known, after a crash of the service."""
        ...

    async def close(self) -> None:
        """Give back what is kept ready for later sandboxes; those of runs are closed before."""
        ...
