"""A request of somebody who is signed in, as the pages see it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol
from urllib.parse import parse_qs, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from turnout.errors import GatewayError
from turnout.gateway.exchange import Caller

__all__ = ["BASE", "Form", "Painter", "Visit", "in_project", "read_form"]

BASE: Final = "/console"
"""Where the console is served."""

_MOST_FIELDS: Final = 200
_TICKED: Final = frozenset({"1", "on", "true", "yes"})
_FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a form that was sent; what was left empty is there as an empty text."""

    fields: Mapping[str, list[str]] = field(default_factory=dict)

    def text(self, name: str) -> str:
        """Return a field, each line break a single character; empty where it was not sent."""
        return (self.texts(name) or [""])[0]

    def texts(self, name: str) -> list[str]:
        """Return every value of a field."""
        return [value.replace("\r\n", "\n") for value in self.fields.get(name, [])]

    def flag(self, name: str) -> bool:
        """Whether a box was ticked; a field that is empty, or says no, is no tick."""
        return self.text(name).lower() in _TICKED


class Painter(Protocol):
    """Makes pages of templates."""

    def page(self, visit: "Visit", template: str, view: object, status: int) -> Response:
        """Return the page for a visit; the template sees `view` and what every page has."""
        ...


@dataclass(frozen=True, slots=True)
class Visit:
    """One request, and whose it is."""

    request: Request
    caller: Caller
    csrf: str
    """What forms of this session carry."""
    painter: Painter
    again: Callable[[], Caller]
    """Tells who asks once more; `GatewayError` (401, 403) where the session has ended since."""
    form: Form = field(default_factory=Form)
    """Empty where nothing is changed."""

    @property
    def project(self) -> str:
        """Whose runs are looked at: the key's own, or those that an admin names by `project`."""
        asked = self.query("project")
        return asked if asked and self.caller.admin else self.caller.project

    @property
    def partial(self) -> bool:
        """Whether a page asks for a part of itself."""
        return self.request.headers.get("hx-request") == "true"

    @property
    def here(self) -> str:
        """The path that was asked for, below `/console`."""
        path: str = self.request.scope["path"]
        return path.removeprefix(BASE) or "/"

    def path(self, name: str) -> str:
        """Return a part of the path that the route names."""
        return str(self.request.path_params[name])

    def query(self, name: str, default: str = "") -> str:
        """Return a parameter of the query; of several the last."""
        return self.request.query_params.get(name, default)

    def page(self, template: str, view: object, *, status: int = 200) -> Response:
        """Return the page that a template makes of `view`."""
        return self.painter.page(self, template, view, status)

    def go(self, path: str) -> Response:
        """Return the way to another page of the console, for what has changed something."""
        return RedirectResponse(BASE + path, 303)


def in_project(path: str, project: str, own: str) -> str:
    """Return a path for a project, which is named where it is another than the key's `own`."""
    if project in {"", own}:
        return path
    plain, mark, place = path.partition("#")
    return f"{plain}{'&' if '?' in plain else '?'}{urlencode({'project': project})}{mark}{place}"


def read_form(body: bytes, content_type: str) -> Form:
    """Return the fields of a body; `GatewayError` (400) for one that is no form of ours."""
    if content_type.partition(";")[0].strip().lower() != _FORM:
        raise _no_form("Forms are sent as application/x-www-form-urlencoded.")
    try:
        fields = parse_qs(
            body.decode("ascii"),
            keep_blank_values=True,
            encoding="utf-8",
            errors="strict",
            max_num_fields=_MOST_FIELDS,
        )
    except ValueError as error:
        raise _no_form("The form cannot be read.") from error
    return Form(fields)


def _no_form(said: str) -> GatewayError:
    return GatewayError(said, status=400, code="invalid_request", mend="Send the page's own form.")
