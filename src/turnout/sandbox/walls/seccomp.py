"""The system calls that a sandbox may not make, as a BPF program for `bwrap --seccomp`.

The filter closes what namespaces leave open: socket families that reach beyond the network
namespace (AF_VSOCK reaches the hypervisor), new user namespaces with the kernel surface behind
them, key rings, which belong to a uid and not to a namespace, and typing into a terminal.
"""

import errno
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

__all__ = ["JUDGED", "MISSING", "Judgement", "machines", "numbers", "program"]

_TABLES = {
    "x86_64": """
        ioctl=16  socket=41  socketpair=53  clone=56  ptrace=101  syslog=103  uselib=134
        personality=135  ustat=136  sysfs=139  vhangup=153  modify_ldt=154  pivot_root=155
        _sysctl=156  chroot=161  acct=163  settimeofday=164  mount=165  umount2=166  swapon=167
        swapoff=168  reboot=169  sethostname=170  setdomainname=171  iopl=172  ioperm=173
        init_module=175  delete_module=176  quotactl=179  nfsservctl=180  lookup_dcookie=212
        clock_settime=227  kexec_load=246  add_key=248  request_key=249  keyctl=250
        migrate_pages=256  unshare=272  move_pages=279  perf_event_open=298  fanotify_init=300
        name_to_handle_at=303  open_by_handle_at=304  setns=308  process_vm_readv=310
        process_vm_writev=311  kcmp=312  finit_module=313  kexec_file_load=320  bpf=321
        userfaultfd=323  io_uring_setup=425  io_uring_enter=426  io_uring_register=427
        open_tree=428  move_mount=429  fsopen=430  fsconfig=431  fsmount=432  fspick=433
        clone3=435  pidfd_getfd=438  process_madvise=440  mount_setattr=442  quotactl_fd=443
        open_tree_attr=467
    """,
    "aarch64": """
        lookup_dcookie=18  ioctl=29  umount2=39  mount=40  pivot_root=41  nfsservctl=42  chroot=51
        vhangup=58  quotactl=60  acct=89  personality=92  unshare=97  kexec_load=104
        init_module=105  delete_module=106  clock_settime=112  syslog=116  ptrace=117  reboot=142
        sethostname=161  setdomainname=162  settimeofday=170  socket=198  socketpair=199
        add_key=217  request_key=218  keyctl=219  clone=220  swapon=224  swapoff=225
        migrate_pages=238  move_pages=239  perf_event_open=241  fanotify_init=262
        name_to_handle_at=264  open_by_handle_at=265  setns=268  process_vm_readv=270
        process_vm_writev=271  kcmp=272  finit_module=273  bpf=280  userfaultfd=282
        kexec_file_load=294  io_uring_setup=425  io_uring_enter=426  io_uring_register=427
        open_tree=428  move_mount=429  fsopen=430  fsconfig=431  fsmount=432  fspick=433
        clone3=435  pidfd_getfd=438  process_madvise=440  mount_setattr=442  quotactl_fd=443
        open_tree_attr=467
    """,
}
"""Numbers of the system calls that a rule names, by machine as `platform.machine()` names it."""

MISSING = ("clone3", "io_uring_enter", "io_uring_register", "io_uring_setup")
"""Answered ENOSYS, so that libraries fall back: what these do lies in memory, out of sight."""

_NEW_NAMESPACES = 0x7E020080
_TERMINAL_INPUT = (0x5412, 0x541C)
_FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK."""
_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0x40000, 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Judgement:
    """How a system call is judged by the low half of one argument; the kernel reads no more."""

    argument: int
    kind: Literal["no_bit_of", "none_of", "one_of"]
    values: tuple[int, ...]
    """For `no_bit_of` a single one, whose bits must all be clear."""
    error: int
    """What a refused one answers."""


JUDGED: Mapping[str, Judgement] = {
    "clone": Judgement(0, "no_bit_of", (_NEW_NAMESPACES,), errno.EPERM),
    "ioctl": Judgement(1, "none_of", _TERMINAL_INPUT, errno.EPERM),
    "personality": Judgement(0, "one_of", _PERSONALITIES, errno.EPERM),
    "socket": Judgement(0, "one_of", _FAMILIES, errno.EAFNOSUPPORT),
    "socketpair": Judgement(0, "one_of", _FAMILIES, errno.EAFNOSUPPORT),
}
"""Refused or not by their arguments. All others of the table answer EPERM."""

_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_NUMBER, _ARCHITECTURE, _ARGUMENTS, _ARGUMENT_SIZE = 0, 4, 16, 8


@dataclass(frozen=True, slots=True)
class _Instruction:
    code: int
    if_true: int
    if_false: int
    value: int

    def packed(self) -> bytes:
        return struct.pack("=HBBI", self.code, self.if_true, self.if_false, self.value)


def _load(offset: int) -> _Instruction:
    return _Instruction(_LOAD, 0, 0, offset)


def _give(verdict: int) -> _Instruction:
    return _Instruction(_RETURN, 0, 0, verdict)


def _refuse(number: int, error: int) -> list[_Instruction]:
    return [_Instruction(_EQUAL, 0, 1, number), _give(_ERRNO | error)]


def _when(number: int, body: list[_Instruction]) -> list[_Instruction]:
    """Run `body`, which must return, for one system call."""
    return [_Instruction(_EQUAL, 0, len(body), number), *body]


def _judge(how: Judgement) -> list[_Instruction]:
    """Return a verdict on the argument that is judged."""
    refused, allowed = _give(_ERRNO | how.error), _give(_ALLOW)
    met, unmet = (allowed, refused) if how.kind == "one_of" else (refused, allowed)
    code = _ANY_BIT if how.kind == "no_bit_of" else _EQUAL
    tests = [
        _Instruction(code, len(how.values) - index, 0, value)
        for index, value in enumerate(how.values)
    ]
    return [_load(_ARGUMENTS + how.argument * _ARGUMENT_SIZE), *tests, unmet, met]


def machines() -> tuple[str, ...]:
    """Return the machines that there is a filter for."""
    return tuple(_TABLES)


def numbers(machine: str) -> dict[str, int]:
    """Return the number of each system call that a rule names."""
    pairs = (word.partition("=") for word in _TABLES[machine].split())
    return {name: int(number) for name, _, number in pairs}


def program(machine: str) -> bytes:
    """Return the filter for one of `machines` as an array of `struct sock_filter`."""
    table = numbers(machine)
    code = [
        _load(_ARCHITECTURE),
        _Instruction(_EQUAL, 1, 0, _ARCHITECTURES[machine]),
        _give(_KILL_PROCESS),
        _load(_NUMBER),
        _Instruction(_AT_LEAST, 0, 1, _X32_BIT),
        _give(_ERRNO | errno.ENOSYS),
    ]
    for name in sorted(table.keys() - {*MISSING, *JUDGED}):
        code += _refuse(table[name], errno.EPERM)
    for name in MISSING:
        code += _refuse(table[name], errno.ENOSYS)
    for name, how in JUDGED.items():
        code += _when(table[name], _judge(how))
    code.append(_give(_ALLOW))
    return b"".join(instruction.packed() for instruction in code)
