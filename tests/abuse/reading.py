"""Rows 1 to 16: seeing what is the host's or another run's."""

from tests.abuse.table import OTHER_SECRET, SECRET, Row, python, shell

__all__ = ["ROWS"]

_TOUCH_THE_AGENT = """
import ctypes, errno, os
calls = {"x86_64": (101, 310, 438), "aarch64": (117, 270, 438)}[os.uname().machine]
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *arguments):
    done = libc.syscall(*arguments)
    print(name, "DONE" if done >= 0 else errno.errorcode[ctypes.get_errno()])
call("ptrace", calls[0], 16, 1, 0, 0)
call("process_vm_readv", calls[1], 1, 0, 0, 0, 0, 0)
call("pidfd_getfd", calls[2], os.pidfd_open(1), 0, 0)
for name in ("mem", "environ", "maps", "fd/0"):
    try:
        open("/proc/1/" + name, "rb").read(1)
        print(name, "READ")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
"""
_ABSTRACT = """
import os, socket
try:
    socket.socket(socket.AF_UNIX).connect("\\0" + os.environ["ABSTRACT"])
    print("CONNECTED")
except OSError as error:
    print(type(error).__name__)
print("listed", open("/proc/net/unix").read().count("@"))
"""

ROWS = (
    Row(
        1,
        "a host file by its path",
        shell("cat $OUTSIDE/secret.txt; ls $OUTSIDE"),
        must=("secret.txt: No such file",),
        never=(SECRET,),
        without=f"secret.txt: No such file\n{SECRET}",
        harmless=True,
    ),
    Row(
        2,
        "the host's passwords",
        shell("cat /etc/shadow /etc/gshadow /etc/shadow-"),
        must=(r"/etc/shadow: (No such file|Permission denied)",),
        never=(r"^\w+:[^:]*:\d+:",),
        without="root:*:20000:0:99999:7:::",
    ),
    Row(
        3,
        "homes and keys of the host",
        shell("ls -A /root /home; cat $HOST_HOME/.netrc /root/.ssh/* /root/.gitconfig"),
        must=(r"/root'?: (No such file|Permission denied)", r"/\.netrc: No such file"),
        never=(SECRET, r"^\.(ssh|netrc|bash_history|pyenv)$"),
        without=f"/root: Permission denied\n/home/.netrc: No such file\n{SECRET}",
    ),
    Row(
        4,
        "the environment of the service",
        shell("env; cat /proc/*/environ 2>&1 | tr '\\0' '\\n' | grep -ae ^HOST_SEC -e denied"),
        must=("^PATH=", "/proc/1/environ: Permission denied"),
        never=(SECRET, "^HOST_SECRET="),
        without=f"PATH=/usr/bin\n/proc/1/environ: Permission denied\nHOST_SECRET={SECRET}",
        harmless=True,
    ),
    Row(
        5,
        "processes of the host",
        shell(
            "ls -d /proc/[0-9]* | wc -l; "
            "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -ao tests[.]abuse | head -3"
        ),
        must=(r"^\d$",),
        never=("tests.abuse",),
        without="154\n/sbin/init",
        harmless=True,
    ),
    Row(
        6,
        "files of another run",
        shell(
            "ls $RUNS; cat $RUNS/private.txt; find / -name private.txt 2>/dev/null; "
            f"grep -rs {OTHER_SECRET} /repo /workspace /tmp /run /mnt /srv /media; echo looked"
        ),
        must=("/private.txt: No such file", "^looked$"),
        never=(f"^/.*private.txt$|:{OTHER_SECRET}",),
        without="/state/private.txt: No such file\n/srv/2/private.txt\nlooked",
    ),
    Row(
        7,
        "the roots and folders of processes",
        shell(
            "cat /proc/1/root$OUTSIDE/secret.txt; cat /proc/self/root/../..$OUTSIDE/secret.txt; "
            "cat /proc/1/cwd/../../..$OUTSIDE/secret.txt; ls /proc/1/root/ /proc/1/fd/"
        ),
        must=("/proc/1/root.*: Permission denied", "/proc/self/root.*: No such file"),
        never=(SECRET,),
        without=f"/proc/1/root/: Permission denied\n{SECRET}",
        harmless=True,
    ),
    Row(
        8,
        "the memory of the agent",
        python(_TOUCH_THE_AGENT),
        must=(
            *("^ptrace E(PERM|NOSYS)", "^process_vm_readv E(PERM|NOSYS)"),
            *("^pidfd_getfd E(PERM|NOSYS)", "^mem EACCES", "^environ EACCES", "^maps EACCES"),
            "^fd/0 EACCES",
        ),
        never=("DONE", "READ"),
        without="ptrace DONE\nmem READ",
    ),
    Row(
        9,
        "killing the agent and everything else",
        shell("kill -9 1; kill -STOP 1; kill -TERM 1; kill -INT 1; kill -9 -1; echo survived"),
        must=("^survived$",),
        never=(),
        without="SandboxDiedError: The sandbox is gone",
    ),
    Row(
        10,
        "sockets of container engines and of the service",
        shell(
            "python3 -c 'import socket; socket.socket(1).bind(\"/tmp/own\")'; "
            "ls /run/docker.sock /var/run/docker.sock /run/podman/podman.sock /run/containerd; "
            "find / -type s -printf 'socket %p\\n' 2>/dev/null"
        ),
        must=(
            "/run/docker.sock.*: No such file",
            "/run/containerd.*: No such",
            "^socket /tmp/own$",
        ),
        never=("^socket (?!/tmp/own$)", "^/"),
        without="/run/docker.sock\nsocket /tmp/own\nsocket /run/containerd/containerd.sock",
    ),
    Row(
        11,
        "sockets without a path",
        python(_ABSTRACT),
        must=("^ConnectionRefusedError$", "^listed 0$"),
        never=("CONNECTED",),
        without="CONNECTED\nlisted 7",
        harmless=True,
    ),
    Row(
        12,
        "descriptors that were inherited",
        shell("ls -l /proc/$$/fd; true"),
        must=(" 0 -> /dev/null$", " 1 -> pipe:", " 2 -> pipe:"),
        never=(r" ([3-9]|\d\d+) -> ", "socket:"),
        without=" 0 -> /dev/null\n 1 -> pipe:[1]\n 2 -> pipe:[1]\n 7 -> socket:[9]",
    ),
    Row(
        13,
        "devices",
        shell("ls /dev; cd /dev; head -qc1 kmsg mem kvm vda sda nvme0n1 fuse net/tun loop0 port"),
        must=("^null$", "'mem'.*No such file", "'kmsg'.*No such file", "'kvm'.*No such file"),
        never=(r"^(vd\w|sd\w|nvme\w+|kvm|fuse|mem|kmsg|loop\S*|net|port|mapper)$",),
        without="null\nkvm\nhead: cannot open 'mem' for reading: No such file or directory",
    ),
    Row(
        14,
        "the kernel's knobs in /sys",
        shell(
            "touch /sys/x && echo SET; echo 1 >/sys/kernel/mm/ksm/run && echo SET; "
            "echo 1 >/sys/power/pm_async && echo SET; echo tried"
        ),
        must=("/sys/x.*(denied|Read-only|No such)", "ksm/run: .*(denied|Read-only|No such)"),
        never=("SET",),
        without="SET\nSET\ntried",
    ),
    Row(
        15,
        "the kernel's knobs in /proc",
        shell(
            'try() { (echo "$2" >$1) && echo SET || echo refused $1; }; '
            "try /proc/sysrq-trigger h; try /proc/sys/kernel/core_pattern '|/repo/x'; "
            "try /proc/sys/vm/drop_caches 1; try /proc/sys/kernel/hostname evil"
        ),
        must=("^refused /proc/sysrq", "^refused .*core_pattern", "^refused .*drop_caches"),
        never=("SET",),
        without="SET\nrefused /proc/sys/kernel/core_pattern\nrefused /proc/sys/vm/drop_caches",
    ),
    Row(
        16,
        "memory and log of the kernel",
        shell(
            "echo kcore $(head -c1 /proc/kcore | wc -c); "
            "echo kmsg $(timeout 1 head -c1 /proc/kmsg | wc -c); dmesg | head -3"
        ),
        must=("^kcore 0$", "^kmsg 0$", "dmesg: "),
        never=(r"\[ *\d+\.\d+\]",),
        without="kcore 1\nkmsg 0\n[    0.000000] Linux version",
    ),
)
