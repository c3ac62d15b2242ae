"""Servers that a sandbox is granted: repositories over HTTP, and a package index."""

import asyncio
import base64
import hashlib
import io
import socket
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

_ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "GIT_HTTP_EXPORT_ALL": "1"}
_GIT_SECONDS = 60


def named_host() -> tuple[str, str]:
    """Return a name of this machine that is not `localhost`, and the address that it stands for.

    A sandbox takes `localhost` for itself.
    """
    name = socket.gethostname()
    try:
        return name, socket.gethostbyname(name)
    except OSError:
        pytest.skip(f"the name of this machine, {name}, resolves to no address")


@dataclass(frozen=True)
class Neighbours:
    """What is served, and where."""

    repositories: Path
    """Every repository beneath it is served under its name."""
    packages: dict[str, bytes] = field(default_factory=dict)
    """Wheels by file name."""
    files_at: str = ""
    """Base URL of where the index says that they are; empty: here."""
    asked: list[str] = field(default_factory=list)
    """Paths that were asked for."""

    @asynccontextmanager
    async def served(self) -> AsyncIterator[str]:
        """Serve until the block ends; yields `HOST:PORT`."""
        host, address = named_host()
        app = web.Application(client_max_size=64 << 20)
        app.router.add_route("*", "/git/{path:.*}", self._git)
        app.router.add_get("/simple/{name}/", self._index)
        app.router.add_get("/files/{name}", self._file)
        runner = web.AppRunner(app)
        await runner.setup()
        try:
            await web.TCPSite(runner, address, 0).start()
            yield f"{host}:{runner.addresses[0][1]}"
        finally:
            await runner.cleanup()

    async def _git(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        environment = {
            **_ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self.repositories),
            "PATH_INFO": f"/{request.match_info['path']}",
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": request.headers.get("Git-Protocol", ""),
        }
        git = await asyncio.create_subprocess_exec(
            "git",
            *("-c", "safe.directory=*", "http-backend"),
            env=environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(_GIT_SECONDS):
            said, _ = await git.communicate(await request.read())
        head, _, body = said.partition(b"\r\n\r\n")
        fields = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n"))
        status = int(fields.pop("Status", "200").split()[0])
        return web.Response(status=status, headers=fields, body=body)

    async def _index(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        links = [
            f'<a href="{self.files_at}/files/{name}">{name}</a>'
            for name in self.packages
            if name.startswith(f"{request.match_info['name']}-")
        ]
        if not links:
            raise web.HTTPNotFound
        return web.Response(text="".join(links), content_type="text/html")

    async def _file(self, request: web.Request) -> web.Response:
        self.asked.append(request.path)
        return web.Response(body=self.packages[request.match_info["name"]])


def wheel(name: str, version: str, module: str) -> tuple[str, bytes]:
    """Return file name and content of a wheel of one module."""
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": module,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},{_digest(text)},{len(text)}\n" for path, text in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n"
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
    return f"{name}-{version}-py3-none-any.whl", data.getvalue()


def _digest(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256={base64.urlsafe_b64encode(digest).decode().rstrip('=')}"
