"""Policies in the console: changed, compared, brought back, and enforced after a dry run."""

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.unit.web.console.govern.governed import HOSTILE, Governed
from tests.unit.web.console.seen import words

from turnout.core.govern.toolwatch import OutsideTool, PolicyDay
from turnout.core.policies import Policy, ToolRule
from turnout.gateway.policy.desk import Signature

DRY = 'objective = "cost"\n\n[tools]\nmode = "dry_run"\nallow = ["read_file"]\n'


@pytest.fixture
def governed():
    """Return a console whose configuration file has one policy."""
    return Governed(own=(Policy(name="team", tools=ToolRule("enforce", ("a",))),))


def save(person, name="team", text=DRY, expected=0, **more):
    """Save a policy from its editor."""
    return person.send(f"/policies/{name}/edit", text=text, expected=expected, **more)


def test_a_policy_is_edited_compared_and_brought_back(governed) -> None:
    """Each change is a revision with its author, and what differs is seen field by field."""
    boss = governed.person()
    assert save(boss, note="cheaper").headers["location"] == "/console/policies/team"
    assert save(boss, text=DRY.replace("cost", "latency"), expected=1).status_code == 303
    shown = words(boss.get("/policies/team"))
    assert "Revision 2, in force" in shown
    assert "by boss" in shown
    assert "cheaper" in shown
    diff = words(boss.get("/policies/team/diff"))
    assert "objective cost latency" in diff
    back = boss.send("/policies/team/rollback", revision=1, expected=2, note="too dear")
    assert back.status_code == 303
    assert "back to 1" in words(boss.get("/policies/team"))
    assert "objective = &#34;cost&#34;" in boss.get("/policies/team").text
    did = [action for _, action, _ in governed.changes]
    assert did == ["put_policy", "put_policy", "roll_back_policy"]
    assert {(who, what) for who, _, what in governed.changes} == {("boss", "team")}


def test_a_draft_that_is_wrong_says_so_and_changes_nothing(governed) -> None:
    """The key that is wrong is named, and what was written is still there."""
    boss = governed.person()
    for text, said in (
        ('pool = ["huge"]', "huge"),
        ("objective = ", "not valid TOML"),
        ('name = "other"', "name is not 'team'"),
        ("nothing = 1", "nothing"),
    ):
        answer = save(boss, text=text)
        assert answer.status_code == 400
        assert said in words(answer)
        assert text.splitlines()[0] in words(answer)
    assert governed.changes == []
    assert "of the file" in words(boss.get("/policies"))


def test_what_a_sentence_has_between_backticks_is_code_and_text(governed) -> None:
    """Names of ours stand out; what comes from elsewhere is text there too."""
    boss = governed.person()
    assert "<code>name</code> is not" in save(boss, text='name = "other"').text
    page = save(boss, text='"<b>`x" = 1').text
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_a_draft_is_checked_as_it_is_typed(governed) -> None:
    """What it changes and what stands out in it come as a part of the page."""
    boss = governed.person()
    checked = boss.client.post(
        "/console/policies/_check",
        data={"csrf": form_token(boss), "name": "team", "text": DRY, "expected": "0"},
        headers={"hx-request": "true"},
    )
    assert "<html" not in checked.text
    assert "sound" in words(checked)
    assert "a tool outside the list is recorded, not refused" in words(checked)
    whole = words(boss.send("/policies/_check", name="team", text="x = ", expected=0))
    assert "not valid TOML" in whole
    assert governed.changes == []


def form_token(person) -> str:
    """Return what the forms of a session carry, as a page has it."""
    return person.get("/policies/_new").text.split('name="csrf" value="')[1].split('"')[0]


def test_a_change_that_somebody_else_made_first_is_a_conflict(governed) -> None:
    """The editor keeps what was written and says what happened."""
    boss = governed.person()
    save(boss)
    late = save(boss, text='objective = "quality"', expected=0)
    assert late.status_code == 409
    assert "Somebody else saved revision 1 meanwhile" in words(late)
    assert boss.send("/policies/team/rollback", revision=1, expected=7).status_code == 409
    assert len(governed.changes) == 1


def test_a_conflict_shows_what_changed_and_the_way_on(governed) -> None:
    """The draft stays; what it takes back is seen; it is saved on top only where that is asked."""
    boss, member = governed.person(), "ann's"
    save(boss)
    save(boss, text=DRY.replace("read_file", "grep"), expected=1, note=f"{member} wish {HOSTILE}")
    mine = 'objective = "quality"\n# mine'
    late = save(boss, text=mine, expected=1, note="better")
    assert late.status_code == 409
    said = words(late)
    assert "boss saved revision 2 just now : ann's wish" in said
    assert "You began from revision 1. Your draft is below as you left it" in said
    changed = "tools.allow − read_file + grep"
    assert f"What changed since Field revision 1 revision 2 {changed}" in said
    draft = "What your draft would change in revision 2 Field revision 2 the draft"
    assert f"{draft} objective cost quality" in said
    assert "What is left out is as usual" in said
    assert "# mine" in late.text
    assert 'name="note" type="text" value="better"' in late.text
    assert 'href="/console/policies/team?revision=2"' in late.text
    assert "<script>" not in late.text
    assert 'name="over" value="2"' in late.text
    # A third person was quicker still: again nothing is written over unseen.
    save(boss, text="", expected=2)
    again = save(boss, text=mine, expected=1, over=2)
    assert (again.status_code, 'name="over" value="3"' in again.text) == (409, True)
    assert save(boss, text=mine, expected=1, over=3).status_code == 303
    assert "Revision 4, in force" in words(boss.get("/policies/team"))
    assert len(governed.changes) == 4


@pytest.mark.parametrize("seen", [0, 999_999_999])
def test_a_conflict_with_what_nobody_has_seen_has_a_way_on_too(governed, seen: int) -> None:
    """The first revision came meanwhile, or the form names one that never was."""
    boss = governed.person()
    save(boss)
    late = save(boss, text='objective = "quality"', expected=seen)
    assert (late.status_code, 'name="over" value="1"' in late.text) == (409, True)
    assert ("What changed since" in words(late)) == (seen == 0)


def test_a_new_policy_is_made_once(governed) -> None:
    """A name that is taken is not written over."""
    boss = governed.person()
    made = boss.send("/policies/_new", name="fresh", text=DRY, expected=0, is_new="1")
    assert made.headers["location"] == "/console/policies/fresh"
    again = boss.send("/policies/_new", name="fresh", text="", expected=0, is_new="1")
    assert again.status_code == 409
    odd = boss.send("/policies/_new", name="../x", text="", expected=0, is_new="1")
    assert odd.status_code == 400


def test_only_admins_change_policies_and_others_see_their_own(governed) -> None:
    """Whether another policy exists is not told."""
    member = governed.person("red-member")
    save(governed.person(), name="team")
    assert "team" in words(member.get("/policies"))
    assert member.get("/policies/team").status_code == 200
    assert member.get("/policies/other").status_code == 404
    assert member.get("/policies/team/edit").status_code == 403
    for path in ("edit", "rollback", "enforce"):
        assert member.send(f"/policies/team/{path}", revision=1).status_code == 403
    assert "/policies/team/edit" not in member.get("/policies/team").text
    assert len(governed.changes) == 1


def quiet(governed, days: int, *, loud: bool = False) -> None:
    """Note requests with tools on each of the days before today."""
    today = datetime.now(UTC).date()
    before = [today - timedelta(days=number) for number in range(1, days + 1)]
    governed.notices.days = [PolicyDay(day, 5, 0) for day in sorted(before)]
    if loud:
        yesterday = before[0]
        governed.notices.days[-1] = PolicyDay(yesterday, 5, 2)
        now = datetime.now(UTC)
        tool = OutsideTool("team", yesterday.isoformat(), "ci", f"rm{HOSTILE}", 2, 0, now)
        governed.notices.outside.append(tool)


async def test_a_quiet_dry_run_is_enforced_with_one_click(governed) -> None:
    """After seven quiet days the report offers it, and it becomes a revision."""
    await governed.policies.apply([Policy("team", tools=ToolRule("dry_run", ("a",)))], by_boss())
    boss = governed.person()
    quiet(governed, 8)
    report = words(boss.get("/policies/team/report"))
    assert "8 quiet days with 40 requests" in report
    assert boss.send("/policies/team/enforce", expected=1).status_code == 303
    assert (await governed.policies.in_force("team")).tools == ToolRule("enforce", ("a",))
    assert governed.changes == [("boss", "put_policy", "team")]
    history = await governed.policies.history("team")
    assert history[0].note == "Enforced after 8 quiet days."


async def test_a_loud_dry_run_cannot_be_enforced_by_a_click(governed) -> None:
    """The report names tool and key, and the server refuses whatever the page was."""
    await governed.policies.apply([Policy("team", tools=ToolRule("dry_run", ("a",)))], by_boss())
    boss = governed.person()
    quiet(governed, 8, loud=True)
    page = boss.get("/policies/team/report")
    assert "ci 2 0" in words(page)
    assert "<script>alert" not in page.text
    assert "\u202e" not in page.text
    assert "Enforce" not in words(page)
    assert boss.send("/policies/team/enforce", expected=1).status_code == 409
    assert governed.changes == []


async def test_an_enforcement_of_something_else_is_a_conflict(governed) -> None:
    """Who clicks has seen the revision that is enforced."""
    dry = Policy("team", tools=ToolRule("dry_run", ("a",)))
    await governed.policies.apply([dry], by_boss())
    await governed.policies.apply([replace(dry, objective="cost")], by_boss())
    quiet(governed, 8)
    assert governed.person().send("/policies/team/enforce", expected=1).status_code == 409


def by_boss() -> Signature:
    """Return who changes a policy."""
    return Signature("boss")


@pytest.mark.parametrize(
    "text",
    [
        "a." * 30_000 + "b = 1",
        "[" + "a." * 30_000 + "b]",
        "x = " + "[" * 20_000,
        "x = " + "9" * 20_000,
        "x = 0x" + "f" * 60_000,
        "".join(f"[policies.p{number}]\n" for number in range(4_000)),
        "x" * 70_000,
    ],
    ids=range(7),
)
def test_a_draft_that_would_take_long_to_read_is_refused_at_once(text: str) -> None:
    """Wherever one is read: in the editor, while it is typed, and in the playground."""
    governed = Governed()
    boss, viewer = governed.person(), governed.person("red-viewer")
    fields = {"name": "default", "text": text, "expected": "0", "is_new": "1"}
    began = time.process_time()
    for answer in (
        boss.send("/policies/_check", **fields),
        viewer.send("/policies/_check", **fields),
        boss.send("/policies/_new", **fields),
        viewer.send("/playground/explain", prompt="x", draft=text),
    ):
        assert answer.status_code < 500
    assert boss.send("/policies/_new", **fields).status_code == 400
    assert time.process_time() - began < 5
