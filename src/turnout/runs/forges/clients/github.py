"""The REST API of GitHub, as far as it is needed."""

from datetime import UTC, datetime
from typing import Final
from urllib.parse import quote

from turnout.core.json import JsonObject, as_object, as_objects, as_text
from turnout.core.service.forges import Standing, ThreadKind
from turnout.errors import ForgeError
from turnout.runs.forges.clients.http import PAGE, ForgeHttp, commit_id, web_address
from turnout.runs.forges.hooks.triggers import Person
from turnout.runs.forges.ports import Change, Proposal

__all__ = ["GITHUB_HEADERS", "GithubClient"]

GITHUB_HEADERS: Final = {
    "authorization": "Bearer {token}",
    "accept": "application/vnd.github+json",
    "user-agent": "turnout",
    "x-github-api-version": "2022-11-28",
}
_DIFF: Final = "application/vnd.github.diff"
_STANDINGS: Final[dict[str, Standing]] = {
    "admin": "admin",
    "maintain": "maintain",
    "write": "write",
}


class GithubClient:
    """A `ForgeClient` of GitHub."""

    def __init__(self, http: ForgeHttp) -> None:
        self._http = http

    async def standing(self, path: str, person: Person) -> Standing:
        """Return what somebody may do with a repository."""
        who = quote(person.name, safe="")
        if who != person.name:
            return "none"
        answer = await self._http.get(f"{_at(path)}/collaborators/{who}/permission")
        if answer.status == 404:
            return "none"
        if not answer.good:
            raise answer.refusal(f"Reading what {person.name} may do")
        said = as_object(answer.json())
        # Somebody else may have taken the name since it was signed.
        if as_object(said.get("user")).get("id") != person.number:
            return "none"
        # A role of the organisation's own counts as what it is made of.
        role, made_of = as_text(said.get("role_name")), as_text(said.get("permission"))
        return _STANDINGS.get(role) or _STANDINGS.get(made_of, "none")

    async def main_branch(self, path: str) -> str:
        """Return the default branch."""
        answer = await self._http.get(_at(path))
        branch = as_text(as_object(answer.json()).get("default_branch")) if answer.good else ""
        if not branch:
            raise answer.refusal("Reading the default branch")
        return branch

    async def request_of(self, path: str, branch: str) -> str | None:
        """Return the address of the newest pull request from a branch, open or not."""
        head = f"{path.partition('/')[0]}:{branch}"
        answer = await self._http.get(
            f"{_at(path)}/pulls", params={"head": head, "state": "all", "per_page": PAGE}
        )
        if not answer.good:
            raise answer.refusal("Listing pull requests")
        found = as_objects(answer.json())
        # Where a filter is not known, everything is listed.
        ours = [one for one in found if as_object(one.get("head")).get("ref") == branch]
        return web_address(ours[0].get("html_url")) if ours else None

    async def open_request(self, path: str, proposal: Proposal) -> str:
        """Open a draft of a pull request and return its address."""
        body: JsonObject = {
            "title": proposal.title,
            "head": proposal.branch,
            "base": proposal.base,
            "body": proposal.text,
            "draft": True,
            "maintainer_can_modify": False,
        }
        answer = await self._http.post(f"{_at(path)}/pulls", body)
        if not answer.good:
            raise answer.refusal("Opening a draft pull request")
        return web_address(as_object(answer.json()).get("html_url"))

    async def comments(
        self, path: str, thread: ThreadKind, number: int, since: datetime
    ) -> list[str]:
        """Return the comments since a moment, at most a thousand."""
        del thread
        asked = {"since": f"{since.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"}
        at = f"{_at(path)}/issues/{number}/comments"
        found = await self._http.listed(at, "Reading comments", asked)
        return [as_text(one.get("body")) for one in found]

    async def comment(self, path: str, thread: ThreadKind, number: int, text: str) -> None:
        """Comment on an issue or a pull request."""
        del thread
        answer = await self._http.post(f"{_at(path)}/issues/{number}/comments", {"body": text})
        if not answer.good:
            raise answer.refusal("Commenting")

    async def nod(self, path: str, thread: ThreadKind, number: int, comment: int | None) -> None:
        """Put a sign on a comment, or on the issue or request itself, that it was seen."""
        del thread
        at = f"comments/{comment}" if comment is not None else f"{number}"
        answer = await self._http.post(f"{_at(path)}/issues/{at}/reactions", {"content": "eyes"})
        if not answer.good:
            raise answer.refusal("Reacting")

    async def change(self, path: str, number: int) -> Change:
        """Return what a pull request would change, since it left its base."""
        answer = await self._http.get(f"{_at(path)}/pulls/{number}")
        if not answer.good:
            raise answer.refusal("Reading the pull request")
        pull = as_object(answer.json())
        ends = [commit_id(as_object(pull.get(end)).get("sha")) for end in ("base", "head")]
        between = f"{_at(path)}/compare/{'...'.join(ends)}"
        # The first page alone lists files, which are not needed.
        compared = await self._http.get(between, params={"per_page": 1, "page": 2})
        diff = await self._http.get(between, accept=_DIFF)
        for answer in (compared, diff):
            if not answer.good:
                raise answer.refusal("Reading the change")
        base = as_object(as_object(compared.json()).get("merge_base_commit")).get("sha")
        return Change(commit_id(base), diff.body)


def _at(path: str) -> str:
    owner, slash, name = path.partition("/")
    if not slash or "/" in name:
        raise ForgeError(f"{path!r} is no repository of this forge.")
    return f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"
