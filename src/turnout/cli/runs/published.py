"""What has become of a run's diff outside of its service, as a line."""

from turnout.cli.terminal import safe
from turnout.core.json import JsonObject, as_object, as_text

__all__ = ["published_line"]


def published_line(run: JsonObject) -> str:
    """Return what is said of a run's publication; nothing where there is nothing to say."""
    publication = as_object(run.get("publication"))
    branch, link, detail, again = (
        as_text(publication.get(name)) for name in ("branch", "link", "detail", "next_try")
    )
    match as_text(publication.get("state")):
        case "done" if branch:
            return safe(f"Published: branch {branch}{f', {link}' if link else ''}")
        case "due":
            when = f"It is tried again at {again[11:16]} UTC." if again else ""
            return safe(" ".join(filter(None, ("Published: not yet.", detail, when))))
        case "":
            return ""
        case _:
            return safe(f"Not published: {detail}")
