"""Who is told of what happens over HTTP, and how that fares."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, get_args

from starlette.responses import Response

from turnout.core.govern.happenings import HappeningKind
from turnout.core.govern.webhooks import WebhookState
from turnout.errors import UsageError
from turnout.gateway.notices.desk import WebhookDesk, WebhookOrder
from turnout.web.console.sections import Change, Done, Page
from turnout.web.console.visits import Form, Visit

__all__ = ["WebhookChanges", "WebhookForm", "WebhooksView", "webhook_changes", "webhook_pages"]

_PATH: Final = "/events/webhooks"
_LONGEST: Final = 2_048
_LONGEST_ID: Final = 100


@dataclass(frozen=True, slots=True)
class WebhookForm:
    """A new one, as it was typed."""

    url: str = ""
    secret_variable: str = ""
    project: str = ""
    kinds: Sequence[HappeningKind] = ()
    allow_private: bool = False
    error: str = ""
    mend: str = ""


@dataclass(frozen=True, slots=True)
class WebhooksView:
    """All of them, oldest first, and the form of a new one."""

    webhooks: Sequence[WebhookState]
    form: WebhookForm = field(default_factory=WebhookForm)
    choices: tuple[HappeningKind, ...] = get_args(HappeningKind)


def webhook_pages(desk: WebhookDesk) -> Sequence[Page]:
    """Return the page; addresses may hold secrets: for admins."""
    return (Page(_PATH, WebhookChanges(desk).all, "admin"),)


def webhook_changes(desk: WebhookDesk) -> Sequence[Change]:
    """Return what is done from it."""
    made = WebhookChanges(desk)
    return (
        Change(_PATH, "add_webhook", made.add, "admin"),
        Change(f"{_PATH}/retry", "retry_webhook", made.retry, "admin"),
        Change(f"{_PATH}/remove", "remove_webhook", made.remove, "admin"),
    )


class WebhookChanges:
    """What the routes of `/webhooks` do, as a page."""

    def __init__(self, desk: WebhookDesk) -> None:
        self._desk = desk

    async def all(self, visit: Visit) -> Response:
        """List them; a page that looks again asks for the list alone."""
        template = "govern/webhooks_list.html" if visit.partial else "govern/webhooks.html"
        return visit.page(template, WebhooksView(await self._desk.all()))

    async def add(self, visit: Visit) -> Done:
        """Tell an address of what happens from now on; what is wrong is said above the form."""
        asked = _asked(visit.form)
        order = WebhookOrder(
            asked.url, asked.secret_variable, tuple(asked.kinds), asked.project, asked.allow_private
        )
        try:
            added = await self._desk.add(order, author=visit.caller.key)
        except UsageError as error:
            wrong = WebhookForm(
                asked.url,
                asked.secret_variable,
                asked.project,
                asked.kinds,
                asked.allow_private,
                error.message,
                error.mend,
            )
            view = WebhooksView(await self._desk.all(), wrong)
            answer = visit.page("govern/webhooks.html", view, status=HTTPStatus.BAD_REQUEST)
            return Done(answer, changed=False)
        return Done(visit.go(_PATH), added.id, {"project": added.project})

    async def retry(self, visit: Visit) -> Done:
        """Send what waits now, though it has failed."""
        wanted = _id(visit.form)
        return Done(visit.go(_PATH), wanted, changed=await self._desk.retry(wanted))

    async def remove(self, visit: Visit) -> Done:
        """Forget one, and what waits for it."""
        wanted = _id(visit.form)
        await self._desk.remove(wanted)
        return Done(visit.go(_PATH), wanted)


def _asked(form: Form) -> WebhookForm:
    known: tuple[HappeningKind, ...] = get_args(HappeningKind)
    asked = form.texts("kind")
    return WebhookForm(
        url=form.text("url").strip()[:_LONGEST],
        secret_variable=form.text("secret_variable").strip(),
        project=form.text("project").strip(),
        kinds=[kind for kind in known if kind in asked],
        allow_private=form.flag("allow_private"),
    )


def _id(form: Form) -> str:
    return form.text("id")[:_LONGEST_ID]
