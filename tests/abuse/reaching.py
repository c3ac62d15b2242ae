"""Rows 49 to 51: the network, of which there is none."""

from tests.abuse.table import Row, python

__all__ = ["ROWS"]

_EGRESS = """
import socket
def tcp(address, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_STREAM) as each:
        each.settimeout(2)
        each.connect(address)
tries = {
    "tcp": lambda: tcp(("192.0.2.1", 443)),
    "metadata": lambda: tcp(("169.254.169.254", 80)),
    "v6": lambda: tcp(("2001:db8::1", 443), socket.AF_INET6),
    "udp": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("192.0.2.1", 53)),
    "dns": lambda: socket.getaddrinfo("example.invalid.", 80),
    "broadcast": lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(
        b"x", ("10.255.255.255", 9)
    ),
}
for name, action in tries.items():
    try:
        action()
        print(name, "REACHED")
    except OSError as error:
        print(name, "no", type(error).__name__)
print("interfaces", [name for _, name in socket.if_nameindex()])
with socket.create_server(("127.0.0.1", 0)) as own:
    tcp(own.getsockname())
    print("own loopback")
"""
_LOOPBACK = """
import os, socket
for host in ("127.0.0.1", "localhost", "0.0.0.0", "::1"):
    try:
        socket.create_connection((host, int(os.environ["PORT"])), 2)
        print(host, "REACHED")
    except OSError as error:
        print(host, "no", type(error).__name__)
"""
_FAMILIES = """
import errno, socket
tries = {
    "vsock": (40, 1, 0), "packet": (17, 3, 0), "icmp": (2, 3, 1), "alg": (38, 5, 0),
    "bluetooth": (31, 3, 0), "can": (29, 3, 1), "rds": (21, 5, 0), "tipc": (30, 5, 0),
    "xdp": (44, 3, 0), "smc": (43, 1, 0), "kcm": (41, 5, 0), "key": (15, 3, 2), "ping": (2, 2, 1),
}
for name, arguments in tries.items():
    try:
        socket.socket(*arguments)
        print(name, "OPENED")
    except OSError as error:
        print(name, "no", errno.errorcode.get(error.errno))
"""

ROWS = (
    Row(
        49,
        "leaving by the network",
        python(_EGRESS),
        must=(
            *("^tcp no", "^metadata no", "^v6 no", "^udp no", "^dns no", "^broadcast no"),
            *(r"^interfaces \['lo'\]$", "^own loopback$"),
        ),
        never=("REACHED",),
        without="tcp no\nmetadata REACHED\nown loopback",
    ),
    Row(
        50,
        "a port on the host's loopback",
        python(_LOOPBACK),
        must=("^127.0.0.1 no", "^localhost no", "^0.0.0.0 no", "^::1 no"),
        never=("REACHED",),
        without="127.0.0.1 REACHED",
        harmless=True,
    ),
    Row(
        51,
        "sockets of other families",
        python(_FAMILIES),
        must=("^vsock no", "^packet no", "^icmp no", "^alg no", "^xdp no", "^key no"),
        never=("(vsock|packet|icmp|alg|bluetooth|can|rds|tipc|xdp|smc|kcm|key) OPENED",),
        without="vsock OPENED\npacket no EPERM",
    ),
)
