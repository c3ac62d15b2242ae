"""Finds out which hosts hand out the files of package indexes, in a set-up sandbox or on the host.

    python3 -ISE -c SOURCE                        < pages.json
    python3 -ISE -c SOURCE PAGES [CERTIFICATES]

The input is a list of `{"url": …, "trusted": …}`; `${NAME}` in a URL stands for a variable. Prints
one object for each: HTTP status, 0 where there was no answer, and hosts with ports of its links.
"""

from __future__ import annotations

import base64
import json
import os
import re
import ssl
import sys
from urllib.error import HTTPError
from urllib.parse import unquote, urljoin, urlsplit, urlunsplit
from urllib.request import HTTPSHandler, build_opener

__all__ = ["look", "main", "places", "split"]

SECONDS = 20
MOST_BYTES = 8 << 20
MOST_PLACES = 20
ACCEPT = "application/vnd.pypi.simple.v1+json, text/html;q=0.5, */*;q=0.1"
LINK = re.compile(r"""(?:href|"url")\s*[=:]\s*["']([^"'#\s]+)""", re.IGNORECASE)
PORTS = {"https": 443, "http": 80}


def split(url: str) -> tuple[str, list[tuple[str, str]]]:
    """Return a URL without credentials, and the header fields that bear them instead."""
    parts = urlsplit(os.path.expandvars(url))
    credentials, _, host = parts.netloc.rpartition("@")
    fields = [("Accept", ACCEPT), ("User-Agent", "turnout")]
    if credentials:
        user, _, password = credentials.partition(":")
        told = (unquote(user) + ":" + unquote(password)).encode()
        fields.append(("Authorization", "Basic " + base64.b64encode(told).decode()))
    return urlunsplit(parts._replace(netloc=host)), fields


def places(base: str, text: str) -> list[list[object]]:
    """Return host and port of each link, in order, without repetition."""
    found: dict[tuple[str, int], None] = {}
    for link in LINK.findall(text):
        try:
            parts = urlsplit(urljoin(base, link))
            host, port = parts.hostname, parts.port or PORTS.get(parts.scheme, 0)
        except ValueError:
            continue
        if host and port:
            found[host, port] = None
    return [list(place) for place in list(found)[:MOST_PLACES]]


def look(url: str, trusted: bool, certificates: str | None) -> dict[str, object]:
    """Read a page and return what it tells."""
    context = ssl.create_default_context(cafile=certificates)
    if trusted:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    opener = build_opener(HTTPSHandler(context=context))
    address, opener.addheaders = split(url)
    try:
        with opener.open(address, timeout=SECONDS) as answer:
            text = answer.read(MOST_BYTES).decode(errors="replace")
            return {"status": answer.status, "places": places(answer.url, text)}
    except HTTPError as error:
        return {"status": error.code, "places": []}
    except (OSError, ValueError) as error:
        return {"status": 0, "places": [], "error": str(error)[:300]}


def main(given: str = "", certificates: str | None = None) -> None:
    """Look at each page."""
    pages = json.loads(given or sys.stdin.read())
    told = [look(page["url"], page["trusted"], certificates) for page in pages]
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
