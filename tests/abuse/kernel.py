"""Rows 52 to 66: system calls that open more of the kernel than a program of a test needs."""

from tests.abuse.table import Attempt, Row, python, shell

__all__ = ["ROWS"]

_CALLS = """
import ctypes, errno, os, sys
NUMBERS = {
    "unshare": (272, 97), "clone": (56, 220), "clone3": (435, 435), "keyctl": (250, 219),
    "add_key": (248, 217), "request_key": (249, 218), "bpf": (321, 280),
    "io_uring_setup": (425, 425), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "init_module": (175, 105), "finit_module": (313, 273), "delete_module": (176, 106),
    "kexec_load": (246, 104), "reboot": (169, 142), "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264), "setns": (308, 268), "personality": (135, 92),
    "mount": (165, 40), "fsopen": (430, 430), "open_tree": (428, 428), "pivot_root": (155, 41),
    "chroot": (161, 51), "swapon": (167, 224), "acct": (163, 89), "syslog": (103, 116),
    "clock_settime": (227, 112), "kcmp": (312, 272), "fanotify_init": (300, 262),
}
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    number = NUMBERS[name][os.uname().machine == "aarch64"] if isinstance(name, str) else name
    done = libc.syscall(number, *arguments)
    if name == "clone" and done == 0:
        os._exit(0)
    print(name, "DONE" if done >= 0 else errno.errorcode.get(ctypes.get_errno()), flush=True)
zeros = ctypes.create_string_buffer(256)
"""
_OTHER_WAYS = """
import mmap
def apart(name, action):
    sys.stdout.flush()
    if os.fork() == 0:
        action()
        os._exit(0)
    killed = os.wait()[1] & 127
    print(name, "ended by", killed)
def by_interrupt():
    memory = mmap.mmap(-1, 4096, prot=7)
    memory.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    print("CALLED", ctypes.CFUNCTYPE(ctypes.c_int)(address)(), flush=True)
apart("interrupt", by_interrupt)
apart("x32", lambda: call(0x40000000 + 39))
apart("personality", lambda: call("personality", 0x0400000))
"""
_TERMINAL = """
import errno, fcntl, os, pty
try:
    os.open("/dev/tty", os.O_RDWR)
    print("TERMINAL")
except OSError as error:
    print("tty", errno.errorcode[error.errno])
_, end = pty.openpty()
for name, request in (("TIOCSTI", 0x5412), ("TIOCLINUX", 0x541C)):
    try:
        fcntl.ioctl(end, request, b"x")
        print(name, "TYPED")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""


def _calling(*calls: str) -> Attempt:
    return python("\n".join([_CALLS, *(f"call({call})" for call in calls)]))


def _refused(number: int, name: str, *calls: str) -> Row:
    """Return a row of system calls that answer as if they were forbidden or unknown."""
    names = [call.split(",")[0].strip("'") for call in calls]
    return Row(
        number,
        name,
        _calling(*calls),
        must=tuple(f"^{each} E(PERM|NOSYS)$" for each in names),
        never=("DONE", r" E(?!PERM|NOSYS)[A-Z]+$"),
        without="\n".join(f"{each} DONE" for each in names),
    )


ROWS = (
    _refused(52, "a new user namespace", "'unshare', 0x10000000", "'unshare', 0x7E020000"),
    Row(
        53,
        "a nested user namespace and a mount in it",
        shell(
            'unshare -Urm sh -c "mount -t tmpfs t /mnt && echo MOUNTED"; '
            "unshare -n true && echo UNSHARED; bwrap --unshare-user --ro-bind / / id; echo tried"
        ),
        must=("unshare: .*(not permitted|denied|No space|not implemented)", "^tried$"),
        never=("MOUNTED", "UNSHARED", "uid="),
        without="unshare: not permitted\nMOUNTED\ntried",
    ),
    _refused(
        54,
        "a new namespace by clone",
        "'clone3', 0, 0",
        "'clone', 0x10000000 | 17, 0, 0, 0, 0",
        "'clone', 0x40000000 | 17, 0, 0, 0, 0",
    ),
    _refused(
        55,
        "key rings",
        "'keyctl', 0, -3, 1",
        "'add_key', b'user', b'x', b'y', 1, -3",
        "'request_key', b'user', b'x', 0, -3",
    ),
    _refused(56, "programs in the kernel", "'bpf', 0, zeros, 128"),
    _refused(57, "io_uring", "'io_uring_setup', 4, zeros"),
    _refused(
        58,
        "performance counters",
        "'perf_event_open', b'\\1\\0\\0\\0\\x80' + bytes(123), 0, -1, -1, 0",
    ),
    _refused(59, "page faults as events", "'userfaultfd', 0", "'userfaultfd', 1"),
    _refused(
        60,
        "modules, kernels and the end of the machine",
        "'init_module', 0, 0, 0",
        "'finit_module', 0, 0, 0",
        "'delete_module', b'x', 0",
        "'kexec_load', 0, 0, 0, 0",
        # Without the second magic number it does nothing where it is allowed.
        "'reboot', 0xFEE1DEAD, 0, 0, 0",
    ),
    _refused(
        61,
        "files by their handles",
        "'open_by_handle_at', -100, b'\\x08\\0\\0\\0\\1\\0\\0\\0' + bytes(16), 0",
        "'name_to_handle_at', -100, b'/', zeros, zeros, 0",
    ),
    _refused(62, "entering namespaces", "'setns', 0, 0x10000000", "'setns', os.pidfd_open(1), 0"),
    Row(
        63,
        "typing into a terminal",
        python(_TERMINAL),
        must=("^tty E(NXIO|PERM|NOENT|IO)$", "^TIOCSTI EPERM$", "^TIOCLINUX EPERM$"),
        never=("TERMINAL", "TYPED"),
        without="tty ENXIO\nTIOCSTI TYPED",
    ),
    Row(
        64,
        "control groups",
        shell(
            "mkdir -p /tmp/cg; mount -t cgroup -o memory c /tmp/cg && echo MOUNTED; "
            "mount -t cgroup2 c /tmp/cg && echo MOUNTED; "
            "find / -name release_agent -printf 'AGENT %p\\n' 2>/dev/null; "
            "find /sys/fs/cgroup -type d -writable -printf 'WRITABLE %p\\n' 2>/dev/null; echo tried"
        ),
        must=("^mount: .*(permission denied|not permitted|superuser)", "^tried$"),
        never=("MOUNTED", "AGENT", "WRITABLE"),
        without="mount: permission denied\nAGENT /sys/fs/cgroup/release_agent\ntried",
    ),
    Row(
        65,
        "the host's name and time",
        shell('hostname evil; date -s "$(date)"; cat /proc/sys/kernel/hostname'),
        must=(
            "hostname: .*(must be root|not permitted|denied)",
            "cannot set date: .*not permitted",
        ),
        never=("^evil$",),
        without="date: cannot set date: Operation not permitted\nevil",
    ),
    Row(
        66,
        "other ways into the kernel",
        python(f"{_CALLS}{_OTHER_WAYS}"),
        must=(
            "^interrupt ended by (31|11)$",
            "^x32 ended by 31$|^1073741863 E(NOSYS|PERM)$",
            "^personality EPERM$",
        ),
        never=("CALLED", "DONE"),
        without="CALLED 7\ninterrupt ended by 0\n1073741863 ENOSYS\npersonality EPERM",
        machines=("x86_64",),
    ),
)
