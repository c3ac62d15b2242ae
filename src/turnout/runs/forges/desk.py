"""Where forges are asked and told; what was done before is found again, not done twice."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from turnout.core.service.forges import Forge
from turnout.core.service.orders import OrderedRun
from turnout.errors import ForgeError
from turnout.runs.forges.clients.github import GITHUB_HEADERS, GithubClient
from turnout.runs.forges.clients.gitlab import GITLAB_HEADERS, GitlabClient
from turnout.runs.forges.clients.http import ForgeHttp
from turnout.runs.forges.ports import Draft, ForgeClient, Proposal, Secrets, Told
from turnout.runs.forges.texts import inert_title, marker, outcome_text, pull_text

__all__ = ["Forges", "OpenForge", "open_forges"]


@dataclass(frozen=True, slots=True)
class OpenForge:
    """A forge, and the way to it."""

    forge: Forge
    client: ForgeClient


@dataclass(frozen=True, slots=True)
class Forges:
    """A `ForgeDesk` over the forges that are set up."""

    by_name: Mapping[str, OpenForge] = field(default_factory=dict)

    def draws(self, repository: str) -> bool:
        """Return whether a repository of the service is one of a forge."""
        return self._of(repository) is not None

    async def open_draft(self, draft: Draft) -> str:
        """Return the address of the request of a branch, which is opened where there is none."""
        found = self._of(draft.repository)
        if found is None:
            raise ForgeError(
                f"No forge has the repository {draft.repository!r}.",
                mend="List it under `repositories` of one of `[service.forges]`.",
            )
        path, client = found
        there = await client.request_of(path, draft.branch)
        if there is not None:
            return there
        proposal = Proposal(
            branch=draft.branch,
            base=draft.base or await client.main_branch(path),
            title=inert_title(draft.title),
            text=pull_text(draft.run_id, draft.text, draft.issue),
        )
        return await client.open_request(path, proposal)

    async def tell(self, run: OrderedRun, told: Told) -> None:
        """Comment where a run was asked for on what it came to; nothing for any other run."""
        origin = run.order.origin
        if origin is None:
            return
        open_ = self.by_name.get(origin.forge)
        if open_ is None or origin.path not in open_.forge.repositories:
            raise ForgeError(f"{origin.path!r} is no longer a repository of {origin.forge!r}.")
        client, line = open_.client, marker(run.run_id)
        said = await client.comments(origin.path, origin.thread, origin.number, run.ordered_at)
        if any(text.startswith(line) for text in said):
            return
        text = outcome_text(run, told.text, told.link)
        await client.comment(origin.path, origin.thread, origin.number, text)

    def _of(self, repository: str) -> tuple[str, ForgeClient] | None:
        for one in self.by_name.values():
            path = one.forge.path_of(repository)
            if path is not None:
                return path, one.client
        return None


@asynccontextmanager
async def open_forges(forges: Mapping[str, Forge], secrets: Secrets) -> AsyncIterator[Forges]:
    """Open the ways to forges; nothing is asked of them before somebody does."""
    async with AsyncExitStack() as stack:
        opened = {}
        for name, forge in forges.items():
            headers = GITHUB_HEADERS if forge.kind == "github" else GITLAB_HEADERS
            http = await stack.enter_async_context(ForgeHttp(forge, secrets, headers))
            client = GithubClient(http) if forge.kind == "github" else GitlabClient(http)
            opened[name] = OpenForge(forge, client)
        yield Forges(opened)
