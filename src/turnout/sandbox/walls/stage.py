"""Lays out on the host what a sandbox will see, in a mount namespace that ends with the sandbox.

    python3 -ISE stage.py serve FD      fork for every plan that arrives over a socket, and end
                                        what was started once the socket does
    python3 -ISE stage.py lend FD       the same, but what was started is left to end by itself
    python3 -ISE stage.py run PLAN      do one plan, in JSON, and become its program

It runs beside the service, not in it, with the standard library alone: making namespaces wants a
process of one thread, and a fork of a small process costs a tenth of an interpreter's start.

A stage is one tmpfs, which bounds bytes and files of all that a run writes:

    changes/NAME    what a run changes of a tree, the writable part of an overlay
    below/NAME      what lies beneath it, read-only: the layers it starts from, as one tree
    NAME            both as one: what the run works on
    FOLDER          plain folders, and what the host has by other names

As root every tree beneath shows the run's own uid as its owner (an idmapped mount), and the uid is
taken on before the program starts. An ordinary user keeps his own in a user namespace.
"""

from __future__ import annotations

import array
import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import struct
import sys
import time
from typing import NamedTuple

__all__ = ["BELOW", "CHANGES", "FIRST_FD", "Bind", "Overlay", "Plan", "main", "receive"]

REPLY_FD, COMPLAINTS_FD = 100, 101
FIRST_FD = 102
"""Number that the first of a program's descriptors has; it finds no other that was handed over."""
MOST_FDS = 32
MOST_PLAN = 1 << 17

_END_SECONDS = 5.0

CHANGES, BELOW, WORK, LAYERS = "changes", "below", ".work", ".layers"

CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REC, MS_SLAVE = 1, 2, 4, 1 << 14, 1 << 19
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442
OPEN_TREE_CLONE, OPEN_TREE_CLOEXEC, AT_RECURSIVE = 1, 0o2000000, 0x8000
MOVE_MOUNT_F_EMPTY_PATH, AT_EMPTY_PATH = 4, 0x1000
MOUNT_ATTR_RDONLY, MOUNT_ATTR_NOSUID, MOUNT_ATTR_NODEV, MOUNT_ATTR_IDMAP = 1, 2, 4, 0x00100000
PR_SET_CHILD_SUBREAPER = 36
OVERLAY_OPTIONS = "redirect_dir=nofollow,metacopy=off,index=off,xino=off"


class Overlay(NamedTuple):
    """A tree that a run may change."""

    name: str
    lowers: list[str]
    """Host folders, uppermost first; none: the tree starts empty."""


class Bind(NamedTuple):
    """A host folder or file shown as it is."""

    name: str
    source: str


class Plan(NamedTuple):
    """What is laid out and what runs afterwards."""

    stage: str
    """An existing folder that the stage is mounted on; what it held is hidden. Empty: no stage."""
    size: int
    inodes: int
    identity: tuple[int, int] | None
    """Uid and gid to take on; None: keep one's own in a user namespace."""
    groups: list[str]
    """`cgroup.procs` files of the control groups to enter first."""
    folders: list[tuple[str, int]]
    """Names and modes, parents first."""
    overlays: list[Overlay]
    binds: list[Bind]
    argv: list[str]
    """None: try the first overlay, which must hold `file` and `folder/file`, instead."""
    stdio: tuple[int, ...] = ()
    """Descriptors handed over that become its standard input and output, and nothing else."""
    drops: bool = True
    """False: it takes the identity on by itself, as container engines do."""

    def encode(self) -> bytes:
        """Return it as JSON."""
        return json.dumps(self).encode()

    @classmethod
    def decode(cls, data: bytes | str) -> Plan:
        """Read what `encode` made."""
        plan = cls(*json.loads(data))
        return plan._replace(
            overlays=[Overlay(*each) for each in plan.overlays],
            binds=[Bind(*each) for each in plan.binds],
        )


_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


def _system(number: int, what: str, *arguments: int | bytes | ctypes.Array[ctypes.c_char]) -> int:
    wide = [ctypes.c_long(each) if isinstance(each, int) else each for each in arguments]
    return _checked(int(_libc.syscall(ctypes.c_long(number), *wide)), what)


def _mount(kind: str, target: str, flags: int, options: str) -> None:
    result = _libc.mount(
        kind.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _checked(result, f"mount {kind} on {target}")


def _private_namespace(own_user_namespace: bool) -> None:
    """Leave the host's mount namespace, whose mounts go on coming and going in ours."""
    uid, gid = os.geteuid(), os.getegid()
    flags = CLONE_NEWNS | (CLONE_NEWUSER if own_user_namespace else 0)
    _checked(_libc.unshare(flags), "unshare")
    if own_user_namespace:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{uid} {uid} 1")
        _write("/proc/self/gid_map", f"{gid} {gid} 1")
    _checked(_libc.mount(b"none", b"/", None, ctypes.c_ulong(MS_REC | MS_SLAVE), None), "/")


def _write(path: str, text: str) -> None:
    """Write to a file of the kernel's; the error names it."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from None
    finally:
        os.close(fd)


class _Mapping:
    """A user namespace in which the owner of files appears as another; a process of ours makes it.

    Several are begun before the first is waited for: on a busy machine that is most of a start.
    """

    def __init__(self, found: tuple[int, int], shown: tuple[int, int]) -> None:
        self._ids = tuple(zip(("uid", "gid"), found, shown, strict=True))
        self._ready, tell_ready = os.pipe()
        over, self._tell_over = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._tell_over)
            os.write(tell_ready, b"%d" % max(0, -_libc.unshare(CLONE_NEWUSER)))
            os.read(over, 1)
            os._exit(0)
        for fd in (tell_ready, over):
            os.close(fd)

    def open(self) -> int:
        """Return a descriptor of the namespace."""
        if os.read(self._ready, 1) != b"0":
            raise PermissionError("a user namespace for the owners of files is refused")
        for kind, inner, outer in self._ids:
            _write(f"/proc/{self._pid}/{kind}_map", f"{inner} {outer} 1")
        return os.open(f"/proc/{self._pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let the process end, without waiting for it."""
        os.close(self._ready)
        os.close(self._tell_over)

    def wait(self) -> None:
        """Wait for its end; all others are closed as well."""
        os.waitpid(self._pid, 0)


class _Trees:
    """Copies of host folders' mounts, taken before the stage hides anything, owners as wanted."""

    def __init__(self, plan: Plan) -> None:
        self._identity = plan.identity
        self._owned: dict[tuple[int, int], list[int]] = {}
        self._layers = [
            [self._layer(lower) for lower in overlay.lowers] for overlay in plan.overlays
        ]
        self._binds = [self._clone(bind.source, AT_RECURSIVE) for bind in plan.binds]

    def _clone(self, source: str, flags: int = 0) -> int:
        flags |= OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC
        return _system(OPEN_TREE, source, -100, os.fsencode(source), flags)

    def _layer(self, source: str) -> int:
        tree = self._clone(source)
        facts = os.fstat(tree)
        self._owned.setdefault((facts.st_uid, facts.st_gid), []).append(tree)
        return tree

    def own(self) -> list[_Mapping]:
        """Make every layer read-only, and let it seem to belong to the run.

        Returns what is still to be waited for.
        """
        shown = self._identity
        mappings = {
            owner: _Mapping(owner, shown)
            for owner in self._owned
            if shown is not None and owner != shown
        }
        for owner, trees in self._owned.items():
            mapping = mappings.get(owner)
            namespace = 0 if mapping is None else mapping.open()
            for tree in trees:
                _set_attributes(tree, 0 if mapping is None else MOUNT_ATTR_IDMAP, namespace)
            if mapping is not None:
                os.close(namespace)
        for mapping in mappings.values():
            mapping.close()
        return list(mappings.values())

    def place(self, plan: Plan) -> None:
        """Attach them on the stage, which is the current folder."""
        for overlay, trees in zip(plan.overlays, self._layers, strict=True):
            for target, tree in zip(_layer_names(overlay), trees, strict=True):
                os.makedirs(target, exist_ok=True)
                _attach(tree, target)
        for bind, tree in zip(plan.binds, self._binds, strict=True):
            if stat.S_ISDIR(os.fstat(tree).st_mode):
                os.mkdir(bind.name)
            else:
                os.close(os.open(bind.name, os.O_CREAT | os.O_CLOEXEC, 0o600))
            _attach(tree, bind.name)


def _set_attributes(tree: int, attributes: int, namespace: int) -> None:
    attributes |= MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV
    packed = struct.pack("=QQQQ", attributes, 0, 0, namespace)
    _system(MOUNT_SETATTR, "mount_setattr", tree, b"", AT_EMPTY_PATH, packed, len(packed))


def _attach(tree: int, target: str) -> None:
    _system(MOVE_MOUNT, target, tree, b"", -100, os.fsencode(target), MOVE_MOUNT_F_EMPTY_PATH)
    os.close(tree)


def _layer_names(overlay: Overlay) -> list[str]:
    """Return where the layers go: a single one is what lies beneath, several are joined to it."""
    if len(overlay.lowers) == 1:
        return [f"{BELOW}/{overlay.name}"]
    return [f"{LAYERS}/{overlay.name}/{number}" for number in range(len(overlay.lowers))]


def _lay_out(plan: Plan) -> None:
    """Make the stage and everything on it; the current folder is the stage afterwards."""
    _private_namespace(plan.identity is None)
    trees = _Trees(plan)
    mappings = trees.own()
    uid, gid = plan.identity or (os.geteuid(), os.getegid())
    options = f"size={plan.size},nr_inodes={plan.inodes},mode=0711,uid={uid},gid={gid}"
    _mount("tmpfs", plan.stage, MS_NOSUID | MS_NODEV, options)
    os.chdir(plan.stage)
    for name in (CHANGES, BELOW, WORK, LAYERS):
        os.mkdir(name, 0o711)
        os.chown(name, uid, gid)
    for name, mode in plan.folders:
        _folder(name, mode, uid, gid)
    trees.place(plan)
    for overlay in plan.overlays:
        _join(overlay, uid, gid, user=plan.identity is None)
    for mapping in mappings:
        mapping.wait()


def _folder(name: str, mode: int, uid: int, gid: int) -> None:
    os.mkdir(name)
    os.chmod(name, mode)
    os.chown(name, uid, gid)


def _join(overlay: Overlay, uid: int, gid: int, *, user: bool) -> None:
    """Mount the writable tree, and where several layers lie beneath it, these as one as well."""
    below = f"{BELOW}/{overlay.name}"
    if len(overlay.lowers) != 1:
        _folder(below, 0o755, uid, gid)
    layers = ":".join(_layer_names(overlay)) or below
    if len(overlay.lowers) > 1:
        options = f"lowerdir={layers},{OVERLAY_OPTIONS}" + (",userxattr" if user else "")
        _mount("overlay", below, MS_RDONLY | MS_NOSUID | MS_NODEV, options)
    changes, work = f"{CHANGES}/{overlay.name}", f"{WORK}/{overlay.name}"
    facts = os.stat(below)
    for name in (changes, work, overlay.name):
        _folder(name, stat.S_IMODE(facts.st_mode), uid, gid)
    os.utime(changes, ns=(facts.st_mtime_ns, facts.st_mtime_ns))
    options = f"lowerdir={layers},upperdir={changes},workdir={work},{OVERLAY_OPTIONS}"
    # Only the extended attributes of users are to be had in a user namespace.
    _mount("overlay", overlay.name, MS_NOSUID | MS_NODEV, options + (",userxattr" if user else ""))


def _become(identity: tuple[int, int] | None) -> None:
    if identity is None:
        return
    uid, gid = identity
    os.setgroups([])
    os.setresgid(gid, gid, gid)
    os.setresuid(uid, uid, uid)


def _try(name: str) -> None:
    """Do to an overlay what some kernels and file systems refuse."""
    with open(f"{name}/file", "a") as file:
        file.write("more")
    shutil.rmtree(f"{name}/folder")
    os.mkdir(f"{name}/folder")
    if os.listdir(f"{name}/folder"):
        raise OSError("a folder that was removed comes back")


def _perform(plan: Plan, reply: socket.socket | None) -> None:
    """Lay out, tell of it, and become the program."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for path in plan.groups:
        _write(path, "0")
    os.umask(0o022)
    held = [os.pidfd_open(os.getpid())]
    if plan.stage:
        _lay_out(plan)
        held.append(os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    _become(plan.identity if plan.drops else None)
    if not plan.argv:
        _try(plan.overlays[0].name)
    if reply is not None:
        socket.send_fds(reply, [b"staged"], held)
    if plan.argv:
        os.chdir("/")
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        for place, fd in enumerate(plan.stdio):
            os.dup2(fd, place)
        for fd in set(plan.stdio):
            os.close(fd)
        os.execv(plan.argv[0], plan.argv)


def _begin(data: bytes, fds: list[int]) -> None:
    """Be the process of one plan, whose first descriptors are the reply and the complaints.

    It leads a group, so that a program ends whole also before it has bound its parts together.
    """
    os.setsid()
    for number, fd in enumerate(fds, REPLY_FD):
        os.dup2(fd, number, inheritable=number >= FIRST_FD)
        os.close(fd)
    os.dup2(COMPLAINTS_FD, 2)
    reply = socket.socket(fileno=REPLY_FD)
    try:
        _perform(Plan.decode(data), reply)
    except OSError as error:
        about = "" if error.filename is None else f": {error.filename}"
        os.write(2, os.fsencode(f"{error.strerror or error}{about}\n"))
    os._exit(0)


def receive(sock: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """Return a message and the descriptors that came with it, which no program inherits."""
    fds = array.array("i")
    room = socket.CMSG_LEN(MOST_FDS * fds.itemsize)
    data, control, _, _ = sock.recvmsg(most, room, socket.MSG_CMSG_CLOEXEC)
    for _, _, numbers in control:
        fds.frombytes(numbers[: len(numbers) // fds.itemsize * fds.itemsize])
    return data, fds.tolist()


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(pid) for pid in file.read().split()]


def _end_all() -> None:
    """End every process that was started, orphans of it too: they have become ours."""
    deadline = time.monotonic() + _END_SECONDS
    while (left := _children()) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.001)


def _serve(control: socket.socket) -> None:
    """Fork for every plan until the service is gone."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, fds = receive(control, MOST_PLAN)
        if not data:
            return
        try:
            child = os.fork()
        except OSError as error:
            # What was started before goes on; the plan's own complaints come second.
            os.write(fds[1], os.fsencode(error.strerror or str(error)))
            child = -1
        if child == 0:
            control.close()
            _begin(data, fds)
        for fd in fds:
            os.close(fd)


def main(arguments: list[str]) -> None:
    """Do what the first argument says."""
    what, argument = arguments
    if what == "run":
        try:
            _perform(Plan.decode(argument), None)
        except OSError as error:
            sys.exit(f"The file systems of a sandbox cannot be laid out: {error}.")
    elif os.fork() == 0:
        # An orphan is nobody's to wait for: the service holds no process, just the socket.
        os.setsid()
        if what == "serve":
            _checked(_libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), "prctl")
        _serve(socket.socket(fileno=int(argument)))
        if what == "serve":
            _end_all()


if __name__ == "__main__":
    main(sys.argv[1:])
