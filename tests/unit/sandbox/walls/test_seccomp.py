"""The system call filter, run by a small interpreter of its own."""

import errno
import re
import struct
from pathlib import Path

import pytest

from turnout.sandbox.walls.seccomp import JUDGED, MISSING, machines, numbers, program

ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, KILL, ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
MACHINES = pytest.mark.parametrize("machine", machines())


def verdict(machine: str, number: int, *arguments: int, architecture: int | None = None) -> int:
    """Interpret the filter for one system call."""
    words = [*arguments, *[0] * (6 - len(arguments))]
    arch = ARCHITECTURES[machine] if architecture is None else architecture
    data = struct.pack("<IIQ6Q", number, arch, 0, *words)
    code = list(struct.iter_unpack("=HBBI", program(machine)))
    accumulator = at = 0
    while True:
        operation, if_true, if_false, value = code[at]
        at += 1
        if operation == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif operation == 0x06:
            return value
        else:
            tests = {
                0x15: accumulator == value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }
            at += if_true if tests[operation] else if_false


@MACHINES
def test_denied_calls_answer_eperm(machine: str) -> None:
    """Every name on the list that the machine has is refused."""
    denied = numbers(machine).keys() - {*MISSING, *JUDGED}
    assert {"mount", "ptrace", "bpf", "keyctl", "setns", "unshare", "userfaultfd"} <= denied
    for name in denied:
        assert verdict(machine, numbers(machine)[name]) == ERRNO | errno.EPERM, name


@MACHINES
def test_missing_calls_answer_enosys(machine: str) -> None:
    """Libraries then fall back to what can be judged."""
    for name in MISSING:
        assert verdict(machine, numbers(machine)[name]) == ERRNO | errno.ENOSYS, name


@MACHINES
def test_other_calls_are_allowed(machine: str) -> None:
    """What no rule names passes, whatever its number."""
    named = set(numbers(machine).values())
    for number in set(range(470)) - named:
        assert verdict(machine, number) == ALLOW


@MACHINES
def test_another_architecture_is_killed(machine: str) -> None:
    """Calls by another table, such as int 0x80, would mean other numbers."""
    assert verdict(machine, 0, architecture=0x40000003) == KILL


@MACHINES
def test_x32_calls_are_unknown(machine: str) -> None:
    """The other numbering of x86_64 does not go around the table."""
    assert verdict(machine, 0x40000000 | 101) == ERRNO | errno.ENOSYS


@MACHINES
@pytest.mark.parametrize("flag", [1 << bit for bit in (7, 17, 25, 26, 27, 28, 29, 30)])
def test_clone_makes_no_namespace(machine: str, flag: int) -> None:
    """Each flag of a new namespace is refused; threads and processes are not."""
    clone = numbers(machine)["clone"]
    assert verdict(machine, clone, flag | 17) == ERRNO | errno.EPERM
    assert verdict(machine, clone, 0x3D0F00) == ALLOW
    assert verdict(machine, clone, 17) == ALLOW


@MACHINES
def test_only_four_socket_families_open(machine: str) -> None:
    """Unix, both internet families and netlink; AF_VSOCK and all others do not exist."""
    for name in ("socket", "socketpair"):
        allowed = {
            family
            for family in range(64)
            if verdict(machine, numbers(machine)[name], family) == ALLOW
        }
        assert allowed == {1, 2, 10, 16}
        unsupported = ERRNO | errno.EAFNOSUPPORT
        assert verdict(machine, numbers(machine)[name], 40) == unsupported
        assert verdict(machine, numbers(machine)[name], (1 << 32) | 40) == unsupported


@MACHINES
def test_terminals_are_not_typed_into(machine: str) -> None:
    """TIOCSTI and TIOCLINUX are refused, also with bits set that the kernel ignores."""
    ioctl = numbers(machine)["ioctl"]
    for request in (0x5412, 0x541C, (1 << 32) | 0x5412):
        assert verdict(machine, ioctl, 0, request) == ERRNO | errno.EPERM
    assert verdict(machine, ioctl, 0, 0x5413) == ALLOW


@MACHINES
def test_no_odd_personality(machine: str) -> None:
    """Asking for the current one is allowed, switching the table of calls is not."""
    personality = numbers(machine)["personality"]
    assert verdict(machine, personality, 0xFFFFFFFF) == ALLOW
    assert verdict(machine, personality, 0x0400000) == ERRNO | errno.EPERM


def test_both_machines_deny_the_same_dangers() -> None:
    """A name may be absent on a machine only where the kernel has no such call there."""
    only_x86 = {"iopl", "ioperm", "modify_ldt", "uselib", "ustat", "sysfs", "_sysctl"}
    assert set(numbers("x86_64")) - set(numbers("aarch64")) == only_x86
    assert set(numbers("aarch64")) <= set(numbers("x86_64"))


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}
DEFINED = re.compile(r"^#define __NR(?:3264)?_(\w+)\s+(\d+)", re.MULTILINE)


@MACHINES
def test_numbers_are_the_kernels(machine: str) -> None:
    """Where the kernel's own headers are installed, every number is theirs."""
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip(f"{header} is not installed")
    theirs = {name: int(number) for name, number in DEFINED.findall(header.read_text())}
    ours = numbers(machine)
    known = ours.keys() & theirs.keys()
    assert len(known) > len(ours) - 5
    assert {name: ours[name] for name in known} == {name: theirs[name] for name in known}
