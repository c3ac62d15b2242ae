"""Where the user wants a finished diff: checked before the run, served after it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from turnout.cli.report import exit_code, result_json
from turnout.core.events import Entry, encode_event
from turnout.core.json import JsonObject
from turnout.errors import DeliveryError, UsageError
from turnout.runs.delivery import HostGit, OutputFolder, UserRepository
from turnout.runs.publish.words import commit_message
from turnout.runs.summary import RunResult

__all__ = ["Delivered", "Destination", "destination"]

_ACCEPTED = frozenset({"resolved", "no_regression", "no_tests"})
_FILES = ("patch.diff", "explanation.md", "record.jsonl", "summary.json")


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of the diff."""

    done: bool
    text: str
    """One sentence for people; empty where nothing was asked for."""

    def to_json(self, kind: str) -> JsonObject:
        """Return it as the field `delivery` of `turnout run --json`."""
        return {"kind": kind, "done": self.done, "detail": self.text}


@dataclass(frozen=True, slots=True)
class Destination:
    """What was asked for with --apply, --branch or --output."""

    kind: Literal["none", "apply", "branch", "output"]
    repository: UserRepository | None = None
    branch: str = ""
    folder: OutputFolder | None = None

    async def check(self) -> None:
        """Find out before the work if the result can be delivered; `UsageError` if not."""
        try:
            if self.kind == "branch" and self.repository is not None:
                await self.repository.check_branch(self.branch)
            if self.folder is not None:
                self.folder.check(_FILES)
        except DeliveryError as error:
            raise UsageError(error.message, mend=error.mend) from error

    async def deliver(self, result: RunResult, entries: Sequence[Entry]) -> Delivered:
        """Put the result where it was asked for; a refusal comes back as text.

        A working tree gets only what no test speaks against; a branch is a place to read the rest.
        """
        try:
            return Delivered(True, await self._deliver(result, entries))
        except _NotAcceptedError as error:
            return Delivered(False, str(error))
        except DeliveryError as error:
            kept = f"The diff is on record: turnout runs diff {result.run_id}"
            return Delivered(False, f"{error} {kept}")

    async def _deliver(self, result: RunResult, entries: Sequence[Entry]) -> str:
        if self.folder is not None:
            self.folder.write(_files(result, entries))
            return f"Written to {self.folder.path}."
        if self.repository is None:
            return ""
        if result.blocked:
            raise DeliveryError("The review blocks the change, so it is not put there.")
        if not result.patch:
            return "There is no diff to deliver."
        if self.kind == "apply":
            _check_accepted(result)
            await self.repository.apply(result.patch)
            return "Applied to the working tree."
        commit = await self.repository.make_branch(
            self.branch, result.base_commit, result.patch, commit_message(result)
        )
        return f"Committed to branch {self.branch} as {commit[:12]}."


class _NotAcceptedError(DeliveryError):
    """The tests do not accept the diff."""


def _check_accepted(result: RunResult) -> None:
    name = result.verdict.name if result.verdict else None
    if name not in _ACCEPTED:
        why = f"The verdict is {name}" if name else "There is no verdict"
        raise _NotAcceptedError(
            f"{why}, so the diff is not applied.",
            mend=f"To take it all the same: turnout runs diff {result.run_id} | git apply",
        )


def destination(
    repository: str,
    environment: Mapping[str, str],
    *,
    apply: bool,
    branch: str | None,
    output: Path | None,
) -> Destination:
    """Return what the options ask for; `UsageError` where they ask for two things."""
    if (apply, branch is not None, output is not None).count(True) > 1:
        raise UsageError("Give only one of --apply, --branch and --output.")
    if output is not None:
        return Destination("output", folder=OutputFolder(output))
    if not apply and branch is None:
        return Destination("none")
    if not Path(repository).is_dir():
        raise UsageError(
            "--apply and --branch need a repository on this machine.",
            mend="Use --output for a repository that is given as a URL.",
        )
    user_repository = UserRepository(HostGit(Path(repository), environment))
    return Destination("apply" if apply else "branch", user_repository, branch or "")


def _files(result: RunResult, entries: Sequence[Entry]) -> Mapping[str, bytes]:
    summary = json.dumps(result_json(result, exit_code(result), None), indent=2)
    contents = (
        result.patch.diff,
        f"{result.explanation.strip()}\n".encode(),
        "".join(map(_line, entries)).encode(),
        f"{summary}\n".encode(),
    )
    return dict(zip(_FILES, contents, strict=True))


def _line(entry: Entry) -> str:
    event = encode_event(entry.event)
    return f'{{"seq":{entry.seq},"at":"{entry.at.isoformat()}","event":{event}}}\n'
