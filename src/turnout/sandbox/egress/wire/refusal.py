"""Why a request is not served, and the answer that says so."""

__all__ = ["RefusedError", "answer"]

_PHRASE_LENGTH = 400


class RefusedError(Exception):
    """A request is not served; its text is what the client inside reads."""

    def __init__(self, status: int, text: str, *, allowed: bool = False) -> None:
        super().__init__(text)
        self.status = status
        """Of the HTTP answer."""
        self.text = text
        """One line of ASCII, without anything that only the host knows."""
        self.allowed = allowed
        """The rules let it pass; something else failed."""


def answer(refused: RefusedError) -> bytes:
    """Return the HTTP answer, after which the connection is closed.

    The text is also the reason phrase: of a CONNECT that failed, most clients show nothing else.
    """
    text = refused.text.encode("ascii", "replace")
    lines = [
        b"HTTP/1.1 %d %s" % (refused.status, text[:_PHRASE_LENGTH]),
        b"Content-Type: text/plain; charset=utf-8",
        b"Content-Length: %d" % (len(text) + 1),
        b"Connection: close",
    ]
    if refused.status == 407:
        lines.append(b'Proxy-Authenticate: Basic realm="turnout"')
    return b"\r\n".join([*lines, b"", text + b"\n"])
