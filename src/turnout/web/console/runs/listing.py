"""The list of runs, which stays as it is until something has changed."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final, get_args
from urllib.parse import parse_qsl, urlencode

from starlette.responses import Response

from turnout.core.ids import RunId
from turnout.core.runs import Outcome, RunState, VerdictName
from turnout.core.service.figures import RunFigures
from turnout.core.service.orders import OrderedRun, RunFilter
from turnout.errors import UsageError
from turnout.web.console.runs.parts import RunPages
from turnout.web.console.visits import Visit

__all__ = ["RunLine", "RunList", "Wanted", "list_again", "show_list"]

_STATES: Final[tuple[RunState, ...]] = get_args(RunState)
_OUTCOMES: Final[tuple[Outcome, ...]] = get_args(Outcome)
_VERDICTS: Final[tuple[VerdictName, ...]] = get_args(VerdictName)

_NAMES: Final = frozenset({"state", "outcome", "verdict", "repo", "label", "words", "cursor"})
"""What a list is asked for by."""
_LIMIT: Final = 50
_LONGEST: Final = 2_000
_MOST: Final = 2**53
_COARSE: Final = 5.0
"""Seconds by which the duration of a run under way is told anew."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which runs are listed, as the form says it; empty: all of them."""

    state: str = ""
    outcome: str = ""
    verdict: str = ""
    repo: str = ""
    label: str = ""
    words: str = ""
    cursor: int | None = None

    @property
    def any(self) -> bool:
        """Whether something is left out."""
        said = (self.state, self.outcome, self.verdict, self.repo, self.label, self.words)
        return any(said)

    def query(self, *, cursor: int | None) -> str:
        """Return the address of the list from before a run, without what is empty."""
        said = {
            "state": self.state,
            "outcome": self.outcome,
            "verdict": self.verdict,
            "repo": self.repo,
            "label": self.label,
            "words": self.words,
            "cursor": "" if cursor is None else str(cursor),
        }
        asked = urlencode({name: value for name, value in said.items() if value})
        return f"/runs?{asked}" if asked else "/runs"

    def filter(self) -> RunFilter:
        """Return it as the service takes it; `UsageError` for a state or end of none."""
        states = tuple(state for state in _STATES if state == self.state)
        outcomes = [outcome for outcome in _OUTCOMES if outcome == self.outcome]
        verdicts = [verdict for verdict in _VERDICTS if verdict == self.verdict]
        asked = (self.state, states), (self.outcome, outcomes), (self.verdict, verdicts)
        if any(bool(said) != bool(found) for said, found in asked):
            raise UsageError("No run is ever in that state.", mend="Choose one from the list.")
        return RunFilter(
            states,
            outcomes[0] if outcomes else None,
            verdicts[0] if verdicts else None,
            self.label or None,
            self.repo or None,
            self.words,
        )


@dataclass(frozen=True, slots=True)
class RunLine:
    """One run of the list."""

    run: OrderedRun
    figures: RunFigures
    seconds: float | None
    """How long it has been worked on, or has waited for its next step; None before its start."""

    @property
    def models(self) -> str:
        """Who answered its calls, and how often where that is more than one."""
        shares = self.figures.models
        if len(shares) == 1:
            return shares[0].model
        return ", ".join(f"{share.model} ×{share.calls}" for share in shares[:4])


@dataclass(frozen=True, slots=True)
class RunList:
    """What the page shows."""

    wanted: Wanted
    lines: Sequence[RunLine]
    older: str
    """Where those that follow are; empty where none do."""
    mark: str
    """Of what is shown: while it is the same, nothing is sent again."""
    states: Sequence[str] = _STATES
    outcomes: Sequence[str] = _OUTCOMES
    verdicts: Sequence[str] = _VERDICTS

    @property
    def cancel(self) -> str:
        """What is added to the way to a run's cancellation, so that it leads back here."""
        return urlencode({"back": self.wanted.query(cursor=self.wanted.cursor)})

    @property
    def poll(self) -> str:
        """Where the list is asked for again."""
        address = self.wanted.query(cursor=self.wanted.cursor)
        return f"{address}{'&' if '?' in address else '?'}{urlencode({'seen': self.mark})}"


def list_again(address: str) -> str:
    """Return the address of a list that a page has sent along; empty where it is none of ours."""
    path, _, asked = address.partition("?")
    if path != "/runs":
        return ""
    kept = [(name, said) for name, said in parse_qsl(asked[:_LONGEST]) if name in _NAMES]
    return f"/runs?{urlencode(kept)}" if kept else "/runs"


async def show_list(pages: RunPages, visit: Visit) -> Response:
    """Show the runs of the project that are wanted; where none has changed, nothing (204)."""
    wanted = _wanted(visit)
    page = await pages.runs.desk.page(
        visit.project, wanted.filter(), before=wanted.cursor, limit=_LIMIT
    )
    figures = await pages.figures(page.runs)
    lines = _lines(page.runs, figures, pages.clock.now())
    older = "" if page.before is None else wanted.query(cursor=page.before)
    view = RunList(wanted, lines, older, _mark(lines))
    if not visit.partial:
        return visit.page("runs/list.html", view)
    if visit.query("seen") == view.mark:
        return Response(status_code=204)
    return visit.page("runs/rows.html", view)


def _wanted(visit: Visit) -> Wanted:
    names = ("state", "outcome", "verdict", "repo", "label", "words")
    said = {name: visit.query(name).strip() for name in names}
    cursor = visit.query("cursor")
    if any(len(value) > _LONGEST for value in said.values()):
        raise UsageError(f"What is searched for is longer than {_LONGEST} characters.")
    state, outcome, verdict, repo, label, words = said.values()
    wanted = Wanted(state, outcome, verdict, repo, label, words)
    if not cursor:
        return wanted
    if not cursor.isdecimal() or not cursor.isascii() or not 0 < int(cursor[:20]) <= _MOST:
        raise UsageError("`cursor` is none that this list has given.")
    return replace(wanted, cursor=int(cursor))


def _lines(
    runs: Sequence[OrderedRun], figures: Mapping[RunId, RunFigures], now: datetime
) -> Sequence[RunLine]:
    return [RunLine(run, figures.get(run.run_id, RunFigures()), _lasted(run, now)) for run in runs]


def _lasted(run: OrderedRun, now: datetime) -> float | None:
    if run.started_at is None:
        return None
    if run.ended_at is not None:
        return (run.ended_at - run.started_at).total_seconds()
    past = (now - run.started_at).total_seconds()
    return max(0.0, past - past % _COARSE)


def _mark(lines: Sequence[RunLine]) -> str:
    return hashlib.sha256(repr(lines).encode(errors="replace")).hexdigest()[:16]
