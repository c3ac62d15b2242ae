"""Fetch a page from a host that the policy lets commands reach."""

from typing import Final
from urllib.parse import urlsplit

from turnout.agent.tools.base import Arguments, Parameter, ToolContext, ToolOutput, tool
from turnout.agent.tools.output import printed
from turnout.errors import ToolError
from turnout.sandbox.base import Command

__all__ = ["FetchUrl"]

_FETCH: Final = """
import http.client, sys, urllib.error, urllib.request
try:
    with urllib.request.urlopen(sys.argv[1], timeout=float(sys.argv[2])) as answer:
        kind = answer.headers.get_content_type()
        print(answer.status, kind, answer.url, flush=True)
        page = answer.read((1 << 20) + 1)
        sys.stdout.buffer.write(page[: 1 << 20])
        if len(page) > 1 << 20:
            print("\\n[the page goes on after 1 MiB, which is not shown]")
except urllib.error.HTTPError as error:
    sys.exit("%d %s" % (error.code, error.reason))
except (OSError, ValueError, http.client.HTTPException) as error:
    sys.exit(str(getattr(error, "reason", error)))
"""
_SECONDS: Final = 30.0


class FetchUrl:
    """One GET from inside the sandbox, through the policy's list of hosts like any command's."""

    spec: Final = tool(
        "fetch_url",
        "Fetch a text from a URL. Only hosts that are named with the task answer.",
        Parameter("url", "http or https address."),
    )
    writes: Final = False

    async def call(self, arguments: Arguments, context: ToolContext) -> ToolOutput:
        """Fetch it; what went wrong is said with the reason of the network's policy."""
        url = arguments.text("url").strip()
        try:
            parts = urlsplit(url)
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in {"http", "https"} or not parts.hostname or not url.isascii():
            raise ToolError(f"`{url[:200]}` is no http or https address.")
        asked = len(context.sandbox.connections())
        argv = ("python3", "-c", _FETCH, url, str(_SECONDS))
        result = await context.sandbox.run(Command(argv, timeout=_SECONDS + 5))
        if result.ok:
            dropped = result.exit.stdout_omitted
            note = (
                f"\n[{dropped} bytes from the middle of the page were not kept]" if dropped else ""
            )
            return ToolOutput(printed(result.stdout) + note, log=True)
        said = printed(result.stderr).strip() or f"it did not answer within {_SECONDS:g} s"
        refused = [c.reason for c in context.sandbox.connections()[asked:] if c.reason]
        raise ToolError(f"{url} could not be fetched: {'; '.join([said, *refused[:1]])}")
