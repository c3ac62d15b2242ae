"""Policies: read, changed, compared, brought back, and taken from a dry run to enforcement."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from starlette.responses import Response

from turnout.core.clock import Clock
from turnout.errors import ConfigError, ConflictError, NotFoundError
from turnout.gateway.admin.callers import may_see
from turnout.gateway.config.policy_text import table_text
from turnout.gateway.notices.ports import ToolsReader
from turnout.gateway.policy.desk import PolicyDesk, Signature
from turnout.gateway.policy.report import report_on
from turnout.web.console.govern.drafts import (
    LONGEST_NOTE,
    CheckView,
    ConflictView,
    EditView,
    edited_of,
    number_of,
    read_draft,
    refused,
)
from turnout.web.console.govern.lines import line_of
from turnout.web.console.govern.views.charts import Chart
from turnout.web.console.govern.views.policies import (
    DiffView,
    PolicyLine,
    ReportView,
    RevisionLine,
    days_chart,
    diff_view,
    policy_line,
    report_view,
    revision_lines,
)
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Visit

__all__ = [
    "CompareView",
    "PoliciesView",
    "PolicyView",
    "ReportPage",
    "policies_section",
]

_HISTORY = 200
_REPORT_DAYS = 30


@dataclass(frozen=True, slots=True)
class PoliciesView:
    """All that the visitor may see."""

    lines: Sequence[PolicyLine]


@dataclass(frozen=True, slots=True)
class PolicyView:
    """One policy, at one revision."""

    line: PolicyLine
    text: str
    shown: int
    """Number of the revision whose text it is; 0: that of the configuration file."""
    history: Sequence[RevisionLine]
    report: ReportView | None


@dataclass(frozen=True, slots=True)
class CompareView:
    """What differs between two revisions."""

    name: str
    before: int
    after: int
    diff: DiffView
    numbers: Sequence[int]
    """Of the revisions that can be compared, newest first."""

    @property
    def choices_after(self) -> Sequence[tuple[int, str]]:
        """What may be compared with something older."""
        return [(number, f"revision {number}") for number in self.numbers]

    @property
    def choices_before(self) -> Sequence[tuple[int, str]]:
        """The same, and a policy that says nothing."""
        return [*self.choices_after, (0, "nothing")]


@dataclass(frozen=True, slots=True)
class ReportPage:
    """How the tool list of a policy fits what its keys declare."""

    line: PolicyLine
    report: ReportView
    chart: Chart


def policies_section(desk: PolicyDesk, tools: ToolsReader, clock: Clock) -> Section:
    """Return the pages: a key sees its own policies, an admin sees and changes all."""
    pages = _Pages(desk, tools, clock)
    return Section(
        "Policies",
        "/policies",
        pages=(
            Page("/policies", pages.all),
            Page("/policies/_new", pages.new, "admin"),
            Page("/policies/{name}", pages.one),
            Page("/policies/{name}/edit", pages.edit, "admin"),
            Page("/policies/{name}/diff", pages.diff),
            Page("/policies/{name}/report", pages.report),
        ),
        changes=(
            Change("/policies/_check", "check_policy", pages.check, "viewer"),
            Change("/policies/_new", "put_policy", pages.put_new, "admin"),
            Change("/policies/{name}/edit", "put_policy", pages.put, "admin"),
            Change("/policies/{name}/rollback", "roll_back_policy", pages.roll_back, "admin"),
            Change("/policies/{name}/enforce", "put_policy", pages.enforce, "admin"),
        ),
    )


class _Pages:
    def __init__(self, desk: PolicyDesk, tools: ToolsReader, clock: Clock) -> None:
        self._desk = desk
        self._tools = tools
        self._clock = clock

    async def all(self, visit: Visit) -> Response:
        """List the policies, those of the configuration file that were never applied last."""
        default = await self._desk.default()
        kept = await self._desk.newest()
        names = {revision.policy.name for revision in kept}
        filed = [policy for policy in self._desk.of_file() if policy.name not in names]
        lines = [policy_line(revision, default=default) for revision in kept]
        lines += [policy_line(policy, default=default) for policy in filed]
        seen = [line for line in lines if may_see(visit.caller, line.name, default)]
        return visit.page("govern/policies.html", PoliciesView(seen))

    async def one(self, visit: Visit) -> Response:
        """Show a policy at its newest revision, or at the one that is asked for."""
        name = await self._seen_name(visit)
        newest = await self._desk.newest_of(name)
        policy = await self._desk.in_force(name)
        shown = number_of(visit.query("revision"))
        if newest is not None and shown:
            policy = (await self._desk.get(name, shown)).policy
        history = [] if newest is None else await self._desk.history(name, limit=_HISTORY)
        line = policy_line(newest or policy, default=await self._desk.default())
        report = await self._report(name) if line.mode == "dry_run" else None
        number = policy.revision if newest is not None else 0
        view = PolicyView(line, table_text(policy), number, revision_lines(history), report)
        return visit.page("govern/policy.html", view)

    async def diff(self, visit: Visit) -> Response:
        """Compare two revisions: by default the newest with the one before it."""
        name = await self._seen_name(visit)
        history = await self._desk.history(name, limit=_HISTORY)
        before, after = visit.query("from"), visit.query("to")
        found = await self._desk.diff(
            name, number_of(before) if before else None, number_of(after) if after else None
        )
        numbers = [each.policy.revision for each in history]
        view = CompareView(name, found.before or 0, found.after or 0, diff_view(found), numbers)
        return visit.page("govern/policy_diff.html", view)

    async def report(self, visit: Visit) -> Response:
        """Show which tools a dry run would have refused, by key."""
        name = await self._seen_name(visit)
        newest = await self._desk.newest_of(name)
        line = policy_line(
            newest or await self._desk.in_force(name), default=await self._desk.default()
        )
        report = await self._report(name)
        return visit.page("govern/policy_report.html", ReportPage(line, report, days_chart(report)))

    async def new(self, visit: Visit) -> Response:
        """Show an empty editor."""
        view = EditView("", "", "", 0, is_new=True, check=CheckView(asked=False))
        return visit.page("govern/policy_edit.html", view)

    async def edit(self, visit: Visit) -> Response:
        """Show the editor with the policy that counts now, or with an older revision of it."""
        name = await self._seen_name(visit)
        newest = await self._desk.newest_of(name)
        policy = await self._desk.in_force(name)
        if newest is not None and (number := number_of(visit.query("revision"))):
            policy = (await self._desk.get(name, number)).policy
        expected = newest.policy.revision if newest else 0
        view = EditView(
            name, table_text(policy), "", expected, is_new=False, check=CheckView(asked=False)
        )
        return visit.page("govern/policy_edit.html", view)

    async def check(self, visit: Visit) -> Done:
        """Say what stands out in a draft and what it would change; nothing is applied."""
        edited = edited_of(visit.form, visit.form.text("name"))
        if not may_see(visit.caller, edited.name, await self._desk.default()):
            raise NotFoundError(f"There is no policy {edited.name!r} of this key.")
        checked = replace(edited, check=await self._checked(edited))
        template = "govern/policy_checked.html" if visit.partial else "govern/policy_edit.html"
        view = checked.check if visit.partial else checked
        return Done(visit.page(template, view), changed=False)

    async def put_new(self, visit: Visit) -> Done:
        """Make the first revision of a policy."""
        return await self._put(visit, edited_of(visit.form, visit.form.text("name").strip()))

    async def put(self, visit: Visit) -> Done:
        """Make a policy's new revision, unless it is as the newest."""
        return await self._put(visit, edited_of(visit.form, visit.path("name")))

    async def roll_back(self, visit: Visit) -> Done:
        """Make the content of an earlier revision a new revision."""
        name, number = visit.path("name"), number_of(visit.form.text("revision"))
        signed = _signed(visit, visit.form.text("note"))
        outcome = await self._desk.rollback(name, number, signed)
        detail = {"restores": str(number), "revision": str(outcome.revision.policy.revision)}
        return Done(visit.go(f"/policies/{name}"), name, detail, changed=outcome.changed)

    async def enforce(self, visit: Visit) -> Done:
        """Enforce the tool list that a dry run found to fit; `ConflictError` where it does not."""
        name = visit.path("name")
        report = await self._report(name)
        if not report.may_enforce:
            raise ConflictError(
                f"The list of {name!r} cannot be enforced from here.", mend=report.report.suggestion
            )
        policy = await self._desk.in_force(name)
        enforced = replace(policy, tools=replace(policy.tools, mode="enforce"))
        note = f"Enforced after {report.quiet_days} quiet days."
        (outcome,) = await self._desk.apply([enforced], _signed(visit, note))
        detail = {"mode": "enforce", "revision": str(outcome.revision.policy.revision)}
        return Done(visit.go(f"/policies/{name}"), name, detail, changed=outcome.changed)

    async def _put(self, visit: Visit, edited: EditView) -> Done:
        try:
            draft = await read_draft(edited.text, edited.name)
            (outcome,) = await self._desk.apply([draft], _signed(visit, edited.note))
        except (ConfigError, ConflictError) as error:
            failed, status = replace(edited, check=refused(error, edited.text)), 400
            if isinstance(error, ConflictError):
                failed, status = await self._conflicting(failed), 409
            return Done(visit.page("govern/policy_edit.html", failed, status=status), changed=False)
        detail = {"revision": str(outcome.revision.policy.revision)}
        answer = visit.go(f"/policies/{draft.name}")
        return Done(answer, draft.name, detail, changed=outcome.changed)

    async def _conflicting(self, edited: EditView) -> EditView:
        """Return the editor with what somebody else has saved meanwhile, and the way on."""
        draft = await read_draft(edited.text, edited.name)
        newest, theirs = await self._desk.newest_of(draft.name), None
        if newest is None:
            return edited
        with suppress(NotFoundError):
            theirs = diff_view(await self._desk.since(draft.name, edited.expected))
        mine = diff_view(await self._desk.compare(draft))
        # The check would say no more than that it was not saved.
        unasked = CheckView(asked=False)
        return replace(edited, check=unasked, conflict=ConflictView(newest, theirs, mine))

    async def _checked(self, edited: EditView) -> CheckView:
        try:
            draft = await read_draft(edited.text, edited.name)
            found = self._desk.check(draft)
        except ConfigError as error:
            return refused(error, edited.text)
        places = {each.field: line_of(edited.text, each.field) for each in found}
        return CheckView(found, diff_view(await self._desk.compare(draft)), places=places)

    async def _report(self, name: str) -> ReportView:
        return report_view(
            await report_on(self._desk, self._tools, name, days=_REPORT_DAYS, clock=self._clock)
        )

    async def _seen_name(self, visit: Visit) -> str:
        """Return the policy that is asked for; whether another's exists is not told."""
        name = visit.path("name")
        if not may_see(visit.caller, name, await self._desk.default()):
            raise NotFoundError(f"There is no policy {name!r} of this key.")
        return name


def _signed(visit: Visit, note: str) -> Signature:
    # A draft that goes on top of what somebody else has saved names that revision on its button.
    expected = visit.form.text("over") or visit.form.text("expected")
    return Signature(visit.caller.key, note.strip()[:LONGEST_NOTE], number_of(expected))
