"""The REST API of GitLab, as far as it is needed."""

from datetime import datetime
from typing import Final
from urllib.parse import quote

from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.core.service.forges import Standing, ThreadKind
from turnout.runs.forges.clients.http import PAGE, ForgeHttp, commit_id, web_address
from turnout.runs.forges.hooks.triggers import Person
from turnout.runs.forges.ports import Change, Proposal

__all__ = ["GITLAB_HEADERS", "GitlabClient"]

GITLAB_HEADERS: Final = {
    "private-token": "{token}",
    "accept": "application/json",
    "user-agent": "turnout",
}
_LEVELS: Final[tuple[tuple[int, Standing], ...]] = ((50, "admin"), (40, "maintain"), (30, "write"))
_THREADS: Final[dict[ThreadKind, str]] = {"issue": "issues", "pull": "merge_requests"}


class GitlabClient:
    """A `ForgeClient` of GitLab."""

    def __init__(self, http: ForgeHttp) -> None:
        self._http = http

    async def standing(self, path: str, person: Person) -> Standing:
        """Return what somebody may do with a project."""
        answer = await self._http.get(f"{_at(path)}/members/all/{person.number}")
        if answer.status == 404:
            return "none"
        if not answer.good:
            raise answer.refusal(f"Reading what {person.name} may do")
        said = as_object(answer.json())
        level, state = said.get("access_level"), said.get("state", "active")
        if not isinstance(level, int) or state != "active":
            return "none"
        return next((standing for least, standing in _LEVELS if level >= least), "none")

    async def main_branch(self, path: str) -> str:
        """Return the default branch."""
        answer = await self._http.get(_at(path))
        branch = as_text(as_object(answer.json()).get("default_branch")) if answer.good else ""
        if not branch:
            raise answer.refusal("Reading the default branch")
        return branch

    async def request_of(self, path: str, branch: str) -> str | None:
        """Return the address of the newest merge request from a branch, open or not."""
        asked: dict[str, str | int] = {"source_branch": branch, "state": "all", "per_page": PAGE}
        answer = await self._http.get(f"{_at(path)}/merge_requests", params=asked)
        if not answer.good:
            raise answer.refusal("Listing merge requests")
        ours = [one for one in as_objects(answer.json()) if one.get("source_branch") == branch]
        return web_address(ours[0].get("web_url")) if ours else None

    async def open_request(self, path: str, proposal: Proposal) -> str:
        """Open a draft of a merge request and return its address."""
        body: JsonObject = {
            "title": f"Draft: {proposal.title}",
            "source_branch": proposal.branch,
            "target_branch": proposal.base,
            "description": proposal.text,
        }
        answer = await self._http.post(f"{_at(path)}/merge_requests", body)
        if not answer.good:
            raise answer.refusal("Opening a draft merge request")
        return web_address(as_object(answer.json()).get("web_url"))

    async def comments(
        self, path: str, thread: ThreadKind, number: int, since: datetime
    ) -> list[str]:
        """Return the newest comments, at most a thousand; the API knows no moment to begin at."""
        del since
        asked = {"order_by": "created_at", "sort": "desc"}
        at = _notes(path, thread, number)
        found = await self._http.listed(at, "Reading comments", asked)
        return [as_text(one.get("body")) for one in found]

    async def comment(self, path: str, thread: ThreadKind, number: int, text: str) -> None:
        """Comment on an issue or a merge request."""
        answer = await self._http.post(_notes(path, thread, number), {"body": text})
        if not answer.good:
            raise answer.refusal("Commenting")

    async def nod(self, path: str, thread: ThreadKind, number: int, comment: int | None) -> None:
        """Put a sign on a comment, or on the issue or request itself, that it was seen."""
        at = f"{_at(path)}/{_THREADS[thread]}/{number}"
        if comment is not None:
            at = f"{_notes(path, thread, number)}/{comment}"
        answer = await self._http.post(f"{at}/award_emoji", {"name": "eyes"})
        if not answer.good:
            raise answer.refusal("Reacting")

    async def change(self, path: str, number: int) -> Change:
        """Return what a merge request would change, since it left its base."""
        at = f"{_at(path)}/merge_requests/{number}"
        found, diff = await self._http.get(at), await self._http.get(f"{at}/raw_diffs")
        for answer in (found, diff):
            if not answer.good:
                raise answer.refusal("Reading the change")
        refs = as_object(as_object(found.json()).get("diff_refs"))
        return Change(commit_id(refs.get("base_sha")), diff.body)


def _at(path: str) -> str:
    return f"/projects/{quote(path, safe='')}"


def _notes(path: str, thread: ThreadKind, number: int) -> str:
    return f"{_at(path)}/{_THREADS[thread]}/{number}/notes"
