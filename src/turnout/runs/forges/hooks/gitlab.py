"""What webhooks of GitLab ask for."""

from dataclasses import replace

from turnout.core.json import JsonObject, as_objects
from turnout.core.service.forges import Forge, ThreadKind
from turnout.runs.forges.hooks.reading import Part
from turnout.runs.forges.hooks.triggers import Ignored, Person, Trigger, Work, command_in

__all__ = ["read_gitlab"]


def read_gitlab(forge: Forge, body: JsonObject) -> Trigger | Ignored:
    """Return what a delivery asks for; `UsageError` where it is not of the documented form."""
    said = Part(body)
    match said.text("object_kind"):
        case "issue":
            return _labelled(said, "fix", "issue", forge.fix_label)
        case "merge_request":
            return _labelled(said, "review", "pull", forge.review_label)
        case "note":
            return _commented(said)
        case other:
            return Ignored(f"Nothing is done on {other or 'a delivery without a kind'}.")


def _labelled(said: Part, work: Work, thread: ThreadKind, wanted: str) -> Trigger | Ignored:
    about = said.part("object_attributes")
    changed = said.part("changes").part("labels")
    match about.text("action"):
        case "open":
            before, after = set[str](), _titles(said, "labels")
        case "update":
            before, after = _titles(changed, "previous"), _titles(changed, "current")
        case _:
            before, after = set[str](), set[str]()
    if wanted not in after - before:
        return Ignored("The label was not set.")
    occasion = f"label {thread} {about.number('iid')} {about.needed('updated_at')}"
    return _trigger(said, about, work, thread, occasion=occasion)


def _commented(said: Part) -> Trigger | Ignored:
    note = said.part("object_attributes")
    kinds: dict[str, ThreadKind] = {"Issue": "issue", "MergeRequest": "pull"}
    thread = kinds.get(note.text("noteable_type"))
    # Earlier versions name no action; they do not tell of edits either.
    if thread is None or note.text("action") not in {"", "create"}:
        return Ignored("It is no new comment on an issue or a merge request.")
    if note.value("system") or note.value("internal") or note.value("confidential"):
        return Ignored("It is not a comment that everybody sees.")
    command = command_in(note.text("note"), thread)
    if isinstance(command, Ignored):
        return command
    about = said.part("issue" if thread == "issue" else "merge_request")
    number = note.number("id")
    asked = _trigger(said, about, command.work, thread, occasion=f"comment {number}")
    if isinstance(asked, Ignored):
        return asked
    return replace(asked, words=command.words, comment=number)


def _trigger(
    said: Part, about: Part, work: Work, thread: ThreadKind, *, occasion: str
) -> Trigger | Ignored:
    # A comment's delivery says of its issue only by its own type that it is confidential.
    if about.value("confidential") or said.text("event_type").startswith("confidential"):
        return Ignored("It is confidential: a branch and a merge request would tell of it.")
    if about.text("state") != "opened":
        return Ignored("It is closed.")
    user = said.part("user")
    return Trigger(
        work=work,
        path=said.part("project").needed("path_with_namespace"),
        thread=thread,
        number=about.number("iid"),
        person=Person(user.needed("username"), user.number("id")),
        title=about.text("title"),
        body=about.text("description"),
        occasion=occasion,
    )


def _titles(part: Part, name: str) -> set[str]:
    return {Part(label).text("title") for label in as_objects(part.value(name))}
