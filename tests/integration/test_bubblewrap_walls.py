"""Attempts to see the host from a bubblewrap sandbox, or to reach it."""

import asyncio
import os
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.sandboxes import alive, owners_of, python, said, started

from turnout.errors import ToolError
from turnout.sandbox.base import Command, Mount
from turnout.sandbox.bubblewrap import BubblewrapDriver, BubblewrapSandbox

pytestmark = pytest.mark.abuse

SECRET = "of-the-host-alone"
SYSCALL = """
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
def call(*arguments):
    ctypes.set_errno(0)
    if libc.syscall(*arguments) >= 0:
        return "DONE"
    return errno.errorcode.get(ctypes.get_errno())
"""
FILL = "for n in 1 2 3; do head -c 31M /dev/zero >f$n || exit; done; echo FILLED"
X86 = os.uname().machine == "x86_64"


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> BubblewrapDriver:
    """Return one driver, so that the walls are tried once."""
    return BubblewrapDriver(tmp_path_factory.mktemp("state"))


@pytest.fixture
async def sandbox(driver: BubblewrapDriver) -> AsyncIterator[BubblewrapSandbox]:
    """Start a small sandbox."""
    async with started(driver) as each:
        yield each


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """Write a file of the host outside every sandbox, readable by all."""
    path = tmp_path / "secret.txt"
    path.write_text(SECRET)
    return path


@pytest.mark.parametrize(
    ("shell", "forbidden"),
    [
        ("cat /etc/shadow", "root:"),
        ("cat /proc/1/environ /proc/*/environ | tr '\\0' '\\n'", "PYTEST_CURRENT_TEST"),
        ("find / -xdev -type s; ls /run/docker.sock /var/run/docker.sock", r"^/.*sock$"),
        ("cat /proc/net/unix | grep @; true", "@"),
        ("ls /dev", r"\b(vda|sda|nvme\w+|kvm|fuse|mem|kmsg)\b"),
        ("head -c1 /proc/kcore | wc -c; dmesg | head -1", r"^1|\[ *\d+\.\d+\]"),
        ("su -c id; cp /bin/bash s; chmod 4755 s; ./s -p -c id", "uid=0"),
        ("unshare -Urm sh -c 'mount -t tmpfs t /tmp && echo MOUNTED'", "MOUNTED"),
        ("unshare -n true && echo UNSHARED", "UNSHARED"),
        ("mount -t tmpfs t /repo && echo MOUNTED", "MOUNTED"),
        ("mount -o remount,rw /usr && echo MOUNTED", "MOUNTED"),
        ("mknod d b 254 0 && echo MADE; mknod e c 1 1 && echo MADE", "MADE"),
        ("ln /usr/bin/env h && echo LINKED; ln /run/turnout/find.py h && echo LINKED", "LINKED"),
        ("hostname evil && hostname; date -s 2001-01-01 && echo SET", "evil|SET"),
        ("echo h >/proc/sysrq-trigger && echo SET", "SET"),
        ("echo 1 >/proc/sys/vm/drop_caches && echo SET", "SET"),
        ("echo x >/proc/sys/kernel/core_pattern && echo SET", "SET"),
        ("for f in /usr /etc / /dev /run/turnout /lib; do touch $f/x && echo MADE; done", "MADE"),
        ("find / -name release_agent -writable 2>/dev/null; ls /sys", "release_agent|kernel"),
        ("truncate -s 1T sparse && echo MADE", "MADE"),
        ("dd if=/dev/zero of=fill bs=1M count=200", "209715200 bytes"),
        (f"cd /repo; {FILL}", "FILLED"),
        (f"cd /tmp; {FILL}", "FILLED"),
        (f"cd /dev/shm; {FILL}", "FILLED"),
    ],
)
async def test_what_a_shell_tries_is_refused(
    sandbox: BubblewrapSandbox, shell: str, forbidden: str
) -> None:
    """Neither the host's secrets nor a privilege is to be had, and the sandbox goes on."""
    assert not re.search(forbidden, await said(sandbox, shell), re.MULTILINE)
    assert await alive(sandbox)


async def test_no_file_of_the_host_is_there(sandbox: BubblewrapSandbox, secret: Path) -> None:
    """Neither by its path nor by the roots of processes, and not through the file interface."""
    paths = (f"{secret}", f"/proc/1/root{secret}", f"/proc/self/root/../..{secret}")
    assert SECRET not in await said(sandbox, f"cat {' '.join(paths)}")
    assert SECRET not in await said(
        sandbox, "cat /root/.ssh/* /home/*/.netrc; grep -rs of-the-host /home /root /srv /mnt"
    )
    for path in (*paths, f"../..{secret}"):
        with pytest.raises(ToolError):
            await sandbox.read(path)


async def test_the_environment_is_ours_alone(sandbox: BubblewrapSandbox) -> None:
    """No variable of the service reaches a command."""
    names = {line.partition("=")[0] for line in (await said(sandbox, "env")).splitlines()}
    assert names <= {
        "PATH",
        "HOME",
        "TMPDIR",
        "LANG",
        "PYTHONPATH",
        "PYTHONDONTWRITEBYTECODE",
        "GIT_EDITOR",
        "GIT_TERMINAL_PROMPT",
        "PAGER",
        "VIRTUAL_ENV",
        "TURNOUT_COMMAND",
        "PWD",
        "SHLVL",
        "_",
    }


async def test_the_workspace_has_two_names(sandbox: BubblewrapSandbox) -> None:
    """Both are the same folder, and temporary files are everybody's."""
    assert await said(sandbox, "echo x >/workspace/x; cat /repo/x; realpath /workspace") == (
        "x\n/repo\n"
    )
    assert await said(sandbox, "stat -c %a /tmp /dev/shm /tmp/home /repo | xargs") == (
        "1777 1777 700 755\n"
    )


async def test_mounts_do_not_tell_where_the_host_keeps_what(
    driver: BubblewrapDriver, sandbox: BubblewrapSandbox
) -> None:
    """Options of mounts name folders of the stage, which nobody else sees."""
    assert str(driver.state_dir) not in await said(sandbox, "cat /proc/self/mounts")


async def test_no_capability_and_no_new_privilege(sandbox: BubblewrapSandbox) -> None:
    """All capability sets are empty, a filter runs, and exec raises nothing."""
    status = await said(sandbox, "cat /proc/self/status")
    sets = re.findall(r"^Cap\w+:\t(\w+)$", status, re.MULTILINE)
    assert len(sets) == 5
    assert set(sets) == {"0" * 16}
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status


async def test_root_never_owns_a_sandbox(sandbox: BubblewrapSandbox) -> None:
    """The uid on the host is not root's, so that no file of root's belongs to the sandbox."""
    marker = f"98{os.getpid()}"
    await sandbox.run(Command(shell=f"exec sleep {marker} &", background=True))
    owners = owners_of(f"sleep\0{marker}\0")
    assert len(owners) == 1
    assert 0 not in owners


async def test_only_its_own_processes_show(sandbox: BubblewrapSandbox) -> None:
    """The agent, the shell and what it started: nothing of the host."""
    assert int(await said(sandbox, "ls -d /proc/[0-9]* | wc -l")) < 6


async def test_a_command_inherits_three_descriptors(sandbox: BubblewrapSandbox) -> None:
    """Neither the channel nor any file of ours reaches a command."""
    assert (await python(sandbox, "import os; print(os.listdir('/proc/self/fd'))")).count("'") <= 8
    assert "socket" not in await said(sandbox, "ls -l /proc/self/fd /proc/1/fd")


async def test_the_agent_cannot_be_touched(sandbox: BubblewrapSandbox) -> None:
    """Its memory is closed, and no signal from within reaches it."""
    code = SYSCALL + (
        "try:\n    open('/proc/1/mem', 'rb'); print('OPENED')\nexcept OSError: print('closed')\n"
    )
    assert await python(sandbox, code) == "closed"
    await said(sandbox, "kill -9 1; kill -STOP 1; kill -TERM 1; kill -9 -1")
    assert await alive(sandbox)


@pytest.mark.parametrize(
    ("name", "number", "arguments"),
    [
        ("ptrace", 101, "16, 1, 0, 0"),
        ("unshare user", 272, "0x10000000"),
        ("clone user", 56, "0x10000011, 0, 0, 0, 0"),
        ("clone3", 435, "0, 0"),
        ("setns", 308, "0, 0x10000000"),
        ("keyctl", 250, "0, -3, 1"),
        ("bpf", 321, "0, 0, 0"),
        ("io_uring_setup", 425, "4, 0"),
        ("perf_event_open", 298, "0, 0, -1, -1, 0"),
        ("userfaultfd", 323, "1"),
        ("init_module", 175, "0, 0, 0"),
        ("open_by_handle_at", 304, "-100, 0, 0"),
        ("pidfd_getfd", 438, "0, 0, 0"),
        ("mount", 165, "0, 0, 0, 0, 0"),
        ("an x32 getpid", 0x40000027, ""),
    ],
)
@pytest.mark.skipif(not X86, reason="the numbers are those of x86_64")
async def test_a_system_call_is_refused(
    sandbox: BubblewrapSandbox, name: str, number: int, arguments: str
) -> None:
    """Each answers as if it were forbidden or unknown."""
    code = f"{SYSCALL}\nprint(call({number}, {arguments}))"
    assert await python(sandbox, code) in {"EPERM", "ENOSYS"}, name


async def test_sockets_that_leave_the_namespace_cannot_be_opened(
    sandbox: BubblewrapSandbox,
) -> None:
    """AF_VSOCK above all, which a network namespace does not cover."""
    code = """
import socket
for family, kind in ((40, 1), (17, 3), (38, 5), (2, 3), (31, 3), (29, 3), (16, 3)):
    try:
        socket.socket(family, kind, 15 if family == 16 else 0)
        print("OPENED", family)
    except OSError:
        pass
"""
    assert "OPENED" not in (await python(sandbox, code)).replace("OPENED 16", "")


async def test_there_is_no_network(sandbox: BubblewrapSandbox) -> None:
    """Neither an address outside, nor a name, nor a port on the host's own loopback."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = f"""
import socket
port = {server.getsockname()[1]}
for address in (("192.0.2.1", 443), ("169.254.169.254", 80), ("127.0.0.1", port)):
    try:
        socket.create_connection(address, 2)
        print("REACHED", address)
    except OSError:
        pass
try:
    socket.getaddrinfo("localhost.invalid", 80)
    print("REACHED a name server")
except OSError:
    pass
with socket.create_server(("127.0.0.1", 0)) as own:
    socket.create_connection(own.getsockname(), 2)
    print("own loopback")
"""
        assert await python(sandbox, code) == "own loopback"


@pytest.mark.skipif(not X86, reason="the number is that of x86_64")
async def test_nothing_is_typed_into_a_terminal(sandbox: BubblewrapSandbox) -> None:
    """There is no controlling terminal, and TIOCSTI is refused on any other."""
    code = """
import fcntl, os, pty
try:
    os.open("/dev/tty", os.O_RDWR); print("TERMINAL")
except OSError:
    pass
_, end = pty.openpty()
try:
    fcntl.ioctl(end, 0x5412, b"x"); print("TYPED")
except OSError as error:
    print(error.errno)
"""
    assert await python(sandbox, code) == "1"


async def test_special_files_are_refused_at_once(sandbox: BubblewrapSandbox) -> None:
    """A fifo, a socket, a folder and a device are errors, never a wait."""
    await said(sandbox, "mkfifo ff; mkdir dd; ln -s /dev/zero zz")
    await python(sandbox, "import socket; socket.socket(1).bind('/repo/sk')")
    for path in ("ff", "dd", "zz", "sk"):
        async with asyncio.timeout(5):
            with pytest.raises(ToolError):
                await sandbox.read(path)
    async with asyncio.timeout(5):
        with pytest.raises(ToolError):
            await sandbox.write("ff", b"x")
        assert await sandbox.search("x") == ()


async def test_links_do_not_lead_out(sandbox: BubblewrapSandbox) -> None:
    """Reading and writing follow a link within the workspace, and none that leaves it."""
    await said(sandbox, "ln -s /etc/passwd l; ln -s / r; ln -s ../../etc u; ln -s a.txt ok")
    await sandbox.write("a.txt", b"inside")
    assert (await sandbox.read("ok")).data == b"inside"
    for path in ("l", "r/etc/passwd", "u/passwd", "r/tmp/new"):
        with pytest.raises(ToolError, match="leaves the workspace"):
            await sandbox.read(path)
        with pytest.raises(ToolError, match="leaves the workspace"):
            await sandbox.write(path, b"x")


async def test_a_link_that_is_swapped_meanwhile_shows_nothing_of_the_host(
    sandbox: BubblewrapSandbox, secret: Path
) -> None:
    """The check of a path can be raced; the namespace behind it cannot."""
    swap = f"echo inside >f; ln -s {secret} l; while :; do ln -sfn l x; mv -T x y; "
    swap += "ln -sfn f x; mv -T x y; done"
    await sandbox.run(Command(shell=f"({swap}) 2>/dev/null &", background=True))
    seen = set()
    for _ in range(500):
        try:
            seen.add((await sandbox.read("y")).data)
        except ToolError:
            continue
    assert seen <= {b"inside\n"}


async def test_the_patch_program_stays_inside_too(
    sandbox: BubblewrapSandbox, tmp_path: Path
) -> None:
    """Through a link to everything it reaches no file of the host."""
    target = tmp_path / "pwn"
    patch = f"--- /dev/null\n+++ b/out{target}\n@@ -0,0 +1 @@\n+x\n"
    await sandbox.write("p", patch.encode())
    await said(sandbox, "ln -s / out; patch -p1 <p; patch -p1 --follow-symlinks <p")
    assert not target.exists()


@pytest.mark.skipif(not X86, reason="the instructions are those of x86_64")
async def test_the_other_way_into_the_kernel_is_closed(sandbox: BubblewrapSandbox) -> None:
    """A 32-bit call, whose numbers the filter does not know, ends the process."""
    code = """
import ctypes, mmap
memory = mmap.mmap(-1, 4096, prot=7)
memory.write(bytes([0xB8, 20, 0, 0, 0, 0xCD, 0x80, 0xC3]))
address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
print("CALLED", ctypes.CFUNCTYPE(ctypes.c_int)(address)())
"""
    assert "CALLED" not in await python(sandbox, code)
    assert "SET" not in await said(sandbox, "setarch -X true && echo SET")


async def test_git_is_not_written_through_a_link(sandbox: BubblewrapSandbox) -> None:
    """Another name for `.git` does not open it."""
    await said(sandbox, "git init -q; ln -s .git other")
    with pytest.raises(ToolError, match=r"\.git"):
        await sandbox.write("other/hooks/pre-commit", b"x")


async def test_patches_do_not_go_through_links(sandbox: BubblewrapSandbox) -> None:
    """Neither through one that is there nor through one that the patch makes itself."""
    await said(sandbox, "git init -q; ln -s / out; ln -s .git side")
    link = (
        b"diff --git a/k b/k\nnew file mode 120000\n--- /dev/null\n+++ b/k\n"
        b"@@ -0,0 +1 @@\n+/tmp\n\\ No newline at end of file\n"
    )
    for name in (b"out/tmp/pwn", b"side/hooks/x", b"k/pwn"):
        added = b"--- /dev/null\n+++ b/%s\n@@ -0,0 +1 @@\n+x\n" % name
        patch = (link if name.startswith(b"k/") else b"") + added
        assert not (await sandbox.apply_patch(patch)).applied
    assert await said(sandbox, "ls -d /tmp/pwn .git/hooks/x k 2>/dev/null") == ""


async def test_deep_and_odd_trees_harm_nobody(driver: BubblewrapDriver) -> None:
    """Thousands of nested folders and names that are no text: listed where they can be."""
    code = """
import os
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
os.chdir("/repo")
for name in (b"new\\nline", b"\\xff\\xfe", b"-rf", b"n" * 255):
    open(name, "w").close()
"""
    async with started(driver) as sandbox:
        await sandbox.run(Command((sandbox.python, "-c", code)))
        names = set((await sandbox.list()).paths)
        assert {"new\nline", "\udcff\udcfe", "-rf", "n" * 255} <= names
        assert (await sandbox.read("\udcff\udcfe")).data == b""


async def test_read_only_mounts_are_shown_and_not_written(
    driver: BubblewrapDriver, tmp_path: Path
) -> None:
    """A folder below one that only root may enter is shown too, and a writable one is written."""
    shown, written = tmp_path / "shown", tmp_path / "written"
    shown.mkdir()
    written.mkdir()
    (shown / "a").write_text("text")
    mounts = (Mount(str(shown), "/base"), Mount(str(written), "/venv", writable=True))
    async with started(driver, *mounts) as sandbox:
        assert "refused" in await said(sandbox, "cat /base/a; echo x >/base/b || echo refused")
        assert await said(sandbox, "echo x >/venv/b; cat /venv/b") == "x\n"
    assert (written / "b").read_text() == "x\n"
    assert not (shown / "b").exists()
