"""Pages of templates; whatever a template is given is shown, never obeyed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape
from starlette.responses import Response

from turnout.core.clock import Clock
from turnout.core.money import Micros, format_usd
from turnout.web.console.assets import Assets
from turnout.web.console.durations import seconds_text
from turnout.web.console.hostile import excerpt, visible
from turnout.web.console.sections import Access, Section, may, role_of
from turnout.web.console.visits import BASE, Visit, in_project

__all__ = ["Site", "Templates"]

_CODE: Final = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True, slots=True)
class Site:
    """What every page has beside its own view; nothing of it but assets before a sign-in."""

    assets: Assets
    sections: Sequence[Section] = ()
    """Those that the visitor's menu has."""
    here: str = "/"
    visit: Visit | None = None

    @property
    def key(self) -> str:
        """Name of the visitor's key; empty where nobody is signed in."""
        return self.visit.caller.key if self.visit else ""

    @property
    def role(self) -> str:
        """What the visitor is called."""
        return role_of(self.visit.caller) if self.visit else ""

    @property
    def project(self) -> str:
        """Whose runs are looked at."""
        return self.visit.project if self.visit else ""

    @property
    def csrf(self) -> str:
        """What the forms of the session carry."""
        return self.visit.csrf if self.visit else ""

    def may(self, access: Access) -> bool:
        """Whether the visitor may do what takes `access`."""
        return self.visit is not None and may(self.visit.caller, access)

    @property
    def elsewhere(self) -> bool:
        """Whether that is another project than the key's own."""
        return self.visit is not None and self.visit.project != self.visit.caller.project

    def is_here(self, section: Section) -> bool:
        """Whether the page that is shown is one of a section."""
        below = self.here.startswith(f"{section.path}/")
        return self.here == section.path or below

    def asset(self, name: str) -> str:
        """Return the address of a shipped file."""
        return BASE + self.assets.address(name)

    def link(self, path: str) -> str:
        """Return a path of the console as a page says it, for the project that is looked at."""
        own = self.visit.caller.project if self.visit else ""
        return BASE + in_project(path, self.project, own)

    def link_of(self, path: str, project: str) -> str:
        """Return a path of the console for whatever project it is about."""
        own = self.visit.caller.project if self.visit else ""
        return BASE + in_project(path, project, own)


class Templates:
    """Makes pages; it is the `Painter` of every visit."""

    def __init__(self, assets: Assets, sections: Sequence[Section], clock: Clock) -> None:
        self._sections = sections
        self._site = Site(assets)
        self._environment = _environment(clock)

    def page(self, visit: Visit, template: str, view: object, status: int) -> Response:
        """Return the page for a visit."""
        shown = [s for s in self._sections if s.listed and may(visit.caller, s.access)]
        site = replace(self._site, sections=shown, here=visit.here, visit=visit)
        return self._answer(template, view, site, status)

    def open_page(self, template: str, view: object, status: int) -> Response:
        """Return a page for somebody who is not signed in."""
        return self._answer(template, view, self._site, status)

    def text(self, template: str, view: object, site: Site) -> str:
        """Return what a template makes of a view."""
        return self._environment.get_template(template).render(view=view, site=site)

    def warm(self) -> None:
        """Read every template, which takes some tenths of a second, so that no visitor waits."""
        for name in self._environment.list_templates():
            self._environment.get_template(name)

    def _answer(self, template: str, view: object, site: Site, status: int) -> Response:
        body = self.text(template, view, site)
        return Response(body, status, media_type="text/html; charset=utf-8")


def _environment(clock: Clock) -> Environment:
    environment = Environment(
        loader=PackageLoader("turnout.web.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "clock": _clock,
        "ago": lambda at: _ago(at, clock.now()),
        "excerpt": excerpt,
        "moment": _moment,
        "number": _number,
        "pair": _pair,
        "said": _said,
        "seconds": seconds_text,
        "usd": _usd,
        "visible": visible,
        "web": _web,
    }
    return environment


def _shown(value: Any) -> Any:
    """Return a value as it may stand on a page; markup was looked at when it was made."""
    if value is None:
        return ""
    if isinstance(value, str) and not isinstance(value, Markup):
        return visible(value)
    return value


def _pair(value: str) -> tuple[str, str]:
    """Return a name and its words, for a choice."""
    return value, value.replace("_", " ")


def _usd(amount: Micros | None) -> str:
    return "unpriced" if amount is None else format_usd(amount)


def _number(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _said(sentence: str) -> Markup:
    """Return a sentence escaped, with what it has between backticks as code."""
    code = Markup("<code>{}</code>")
    parts = _CODE.split(visible(sentence))
    return Markup().join(code.format(x) if n % 2 else escape(x) for n, x in enumerate(parts))


def _moment(at: datetime | None) -> Markup | str:
    if at is None:
        return "–"
    return Markup('<time datetime="{}">{}</time>').format(
        at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC"
    )


def _clock(at: datetime) -> Markup:
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC", f"{at:%H:%M:%S}"
    )


def _web(address: str) -> str:
    """Return an address that a browser may go to; `#` for any other."""
    return address if address.startswith(("https://", "http://")) else "#"


def _ago(at: datetime | None, now: datetime) -> Markup | str:
    if at is None:
        return "–"
    past = max(0.0, (now - at).total_seconds())
    said = "just now" if past < 1 else f"{seconds_text(float(round(past)))} ago"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        at.isoformat(), f"{at:%Y-%m-%d %H:%M:%S} UTC", said
    )
