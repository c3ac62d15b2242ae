import asyncio
import json
import subprocess
import sys
from importlib.resources import files

from turnout.sandbox.inside.indexes import places, split

PAGE = """
<a href="https://files.example/a/attrs-1.whl#sha256=0">1</a>
<a href='../../here/attrs-2.whl'>2</a> <a href="//other.example:8080/x">3</a>
<a href="mailto:x@example">4</a> <a href="https://[bad/x">5</a> <a href="https://x:port/">6</a>
"""
JSON = json.dumps({"files": [{"url": "https://files.example/x.whl"}, {"url": "y.whl"}]})


def test_hosts_of_links_are_found_in_pages_of_both_kinds():
    """Relative links are on the host of the page; what is no link to a host is passed over."""
    base = "https://index.example/simple/attrs/"
    assert places(base, PAGE) == [
        ["files.example", 443],
        ["index.example", 443],
        ["other.example", 8080],
    ]
    assert places(base, JSON) == [["files.example", 443], ["index.example", 443]]


def test_credentials_become_a_header_field():
    """`urllib` would take them for part of the host."""
    address, fields = split("https://us%40er:pass@index.example:8443/simple/")
    assert address == "https://index.example:8443/simple/"
    assert ("Authorization", "Basic dXNAZXI6cGFzcw==") in fields


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Serve one page; others are not there."""
    head = await reader.readuntil(b"\r\n\r\n")
    found = head.startswith(b"GET /simple/pip/ ")
    body = PAGE.encode() if found else b""
    status = b"200 OK" if found else b"404 Not Found"
    writer.write(b"HTTP/1.0 %s\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body))
    writer.close()


async def test_each_page_is_answered_for():
    """With its status, or with why there was none."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        paths = (f"{port}/simple/pip/", f"{port}/simple/none/", "1/")
        pages = [{"url": f"http://127.0.0.1:{path}", "trusted": False} for path in paths]
        source = files("turnout.sandbox.inside").joinpath("indexes.py").read_text("utf-8")
        argv = [sys.executable, "-ISE", "-c", source]
        done = await asyncio.to_thread(
            subprocess.run,
            argv,
            input=json.dumps(pages).encode(),
            capture_output=True,
            check=True,
            env={},
        )
    told = json.loads(done.stdout)
    assert [one["status"] for one in told] == [200, 404, 0]
    assert ["127.0.0.1", port] in told[0]["places"]
    assert told[2]["error"]
