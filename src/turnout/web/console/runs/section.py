"""The section of runs."""

from functools import partial
from typing import Final

from turnout.web.console.runs.deciding import (
    approve,
    ask_cancel,
    cancel,
    publish_diff,
    reject,
    retry,
    take_patch,
    take_trajectory,
)
from turnout.web.console.runs.diff.keeping import Diffs
from turnout.web.console.runs.diff.showing import show_diff
from turnout.web.console.runs.listing import show_list
from turnout.web.console.runs.ordering import order, show_form
from turnout.web.console.runs.page import (
    follow,
    show_entry,
    show_more,
    show_raw,
    show_run,
)
from turnout.web.console.runs.parts import RunPages
from turnout.web.console.sections import Change, Page, Section

__all__ = ["runs_section"]

_RUN: Final = "/runs/{run_id}"


def runs_section(pages: RunPages, diffs: Diffs | None = None) -> Section:
    """Return the pages of runs, and what is done from them; `diffs` keeps those that were read."""
    return Section(
        "Runs",
        "/runs",
        pages=(
            Page("/runs", partial(show_list, pages)),
            Page("/runs/new", partial(show_form, pages), "member"),
            Page(_RUN, partial(show_run, pages)),
            Page(f"{_RUN}/cancel", partial(ask_cancel, pages), "member"),
            Page(f"{_RUN}/timeline", partial(show_more, pages)),
            Page(f"{_RUN}/live", partial(follow, pages)),
            Page(f"{_RUN}/entries/{{seq}}", partial(show_entry, pages)),
            Page(f"{_RUN}/entries/{{seq}}/raw/{{part}}", partial(show_raw, pages)),
            Page(f"{_RUN}/diff", partial(show_diff, pages, diffs or Diffs())),
            Page(f"{_RUN}/patch", partial(take_patch, pages)),
            Page(f"{_RUN}/trajectory", partial(take_trajectory, pages)),
        ),
        changes=(
            Change("/runs/new", "order_run", partial(order, pages), "member"),
            Change(f"{_RUN}/cancel", "cancel_run", partial(cancel, pages), "member"),
            Change(f"{_RUN}/retry", "retry_run", partial(retry, pages), "member"),
            Change(f"{_RUN}/publish", "publish_run", partial(publish_diff, pages), "member"),
            Change(f"{_RUN}/approve", "approve_call", partial(approve, pages), "approver"),
            Change(f"{_RUN}/reject", "reject_call", partial(reject, pages), "approver"),
        ),
    )
