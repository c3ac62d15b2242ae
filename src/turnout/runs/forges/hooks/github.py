"""What webhooks of GitHub ask for."""

from collections.abc import Mapping
from dataclasses import replace

from turnout.core.json import JsonObject
from turnout.core.service.forges import Forge, ThreadKind
from turnout.runs.forges.hooks.reading import Part
from turnout.runs.forges.hooks.triggers import Ignored, Person, Trigger, Work, command_in

__all__ = ["read_github"]


def read_github(forge: Forge, headers: Mapping[str, str], body: JsonObject) -> Trigger | Ignored:
    """Return what a delivery asks for; `UsageError` where it is not of the documented form."""
    said, event = Part(body), headers.get("x-github-event", "")
    match event, said.text("action"):
        case "issues", "labeled":
            return _labelled(said, "fix", "issue", forge.fix_label)
        case "pull_request", "labeled":
            return _labelled(said, "review", "pull", forge.review_label)
        case "issue_comment", "created":
            return _commented(said)
        case _:
            return Ignored(f"Nothing is done on {event or 'a delivery without an event'}.")


def _labelled(said: Part, work: Work, thread: ThreadKind, wanted: str) -> Trigger | Ignored:
    if said.part("label").text("name") != wanted:
        return Ignored("It is another label.")
    about = said.part("issue" if thread == "issue" else "pull_request")
    # A label that is set again later asks again; the same delivery sent again does not.
    occasion = f"label {thread} {about.number('number')} {about.needed('updated_at')}"
    return _trigger(said, about, work, thread, occasion=occasion)


def _commented(said: Part) -> Trigger | Ignored:
    about, comment = said.part("issue"), said.part("comment")
    thread: ThreadKind = "pull" if about.value("pull_request") else "issue"
    command = command_in(comment.text("body"), thread)
    if isinstance(command, Ignored):
        return command
    number = comment.number("id")
    asked = _trigger(said, about, command.work, thread, occasion=f"comment {number}")
    if isinstance(asked, Ignored):
        return asked
    return replace(asked, words=command.words, comment=number)


def _trigger(
    said: Part, about: Part, work: Work, thread: ThreadKind, *, occasion: str
) -> Trigger | Ignored:
    sender = said.part("sender")
    if sender.text("type") != "User":
        return Ignored("It does not come from a person.")
    if about.text("state") != "open":
        return Ignored("It is closed.")
    return Trigger(
        work=work,
        path=said.part("repository").needed("full_name"),
        thread=thread,
        number=about.number("number"),
        person=Person(sender.needed("login"), sender.number("id")),
        title=about.text("title"),
        body=about.text("body"),
        occasion=occasion,
    )
