"""Serves bare repositories over HTTP by git's own CGI program, to whoever has the token."""

import asyncio
import base64
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aiohttp import web

from turnout.testing.loopback import LoopbackServer

__all__ = ["GitServer"]

_ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": "/nonexistent",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_HTTP_EXPORT_ALL": "1",
}
_SECONDS: Final = 30.0


class GitServer(LoopbackServer):
    """The bare repositories below a folder, read and pushed to with one token."""

    def __init__(self, root: Path, token: str) -> None:
        super().__init__()
        self.root = root
        self.asked: list[str] = []
        """Method and path of each request, in order."""
        self._basic = f"Basic {base64.b64encode(f'x-access-token:{token}'.encode()).decode()}"

    def url(self, name: str) -> str:
        """Return the URL of a repository."""
        return f"{self.base_url.removesuffix('/v1')}/{name}"

    def git(self, name: str, *arguments: str) -> str:
        """Run git in a repository and return what it printed."""
        argv = ["git", "--git-dir", str(self.root / name), *arguments]
        done = subprocess.run(
            argv, env=_ENVIRONMENT, capture_output=True, check=True, timeout=_SECONDS
        )
        return done.stdout.decode().strip()

    def _routes(self) -> Sequence[web.RouteDef]:
        return [web.route("*", "/{path:.*}", self._serve)]

    async def _serve(self, request: web.Request) -> web.Response:
        self.asked.append(f"{request.method} {request.path}")
        if request.headers.get("authorization") != self._basic:
            return web.Response(status=401, headers={"www-authenticate": 'Basic realm="git"'})
        told = {
            **_ENVIRONMENT,
            "GIT_PROJECT_ROOT": str(self.root),
            "PATH_INFO": request.path,
            "QUERY_STRING": request.query_string,
            "REQUEST_METHOD": request.method,
            "CONTENT_TYPE": request.headers.get("content-type", ""),
            "HTTP_CONTENT_ENCODING": request.headers.get("content-encoding", ""),
            "HTTP_GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "GIT_PROTOCOL": request.headers.get("git-protocol", ""),
            "REMOTE_USER": "someone",
        }
        return _answer(await _cgi(told, await request.read()))


async def _cgi(environment: dict[str, str], body: bytes) -> bytes:
    process = await asyncio.create_subprocess_exec(
        "git",
        "http-backend",
        env={**environment, "CONTENT_LENGTH": str(len(body))},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    async with asyncio.timeout(_SECONDS):
        out, _ = await process.communicate(body)
    return out


def _answer(said: bytes) -> web.Response:
    head, _, body = said.partition(b"\r\n\r\n")
    headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
    status = int(headers.pop("Status", "200").split()[0])
    return web.Response(status=status, headers=headers, body=body)
