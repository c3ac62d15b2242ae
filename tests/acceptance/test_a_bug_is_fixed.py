"""From a task and a repository to a tested diff: real command, real sandbox, scripted model."""

import json
from pathlib import Path

from tests.acceptance.command import ANSWER, EXPLAIN, FIX, KEY, PATCH, PLAN, READ, TASK, Command

from turnout.testing.model_server import ScriptedModelServer
from turnout.testing.repositories import PAGINATION_FIXED, PAGINATION_TEST, TinyRepository


async def test_two_settings_are_enough(turnout: Command, pages: TinyRepository) -> None:
    """An address and a key, and the run ends resolved with progress, diff and explanation."""
    async with ScriptedModelServer(FIX, models=["m"], api_key=KEY) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages))
        assert server.history_faults == []
    assert done.code == 0, done.err
    assert "Verdict: resolved" in done.out
    assert "+    start = (number - 1) * size" in done.out
    assert "as if pages counted from 0" in done.out
    assert "tests before: 1 failed, 2 passed" in done.err
    assert "tests after: 0 failed, 3 passed" in done.err
    assert "unpriced" in done.out
    assert "\x1b[" not in done.out + done.err
    assert pages.git("status", "--porcelain") == ""


async def test_json_is_one_object_and_nothing_else(turnout: Command, pages: TinyRepository) -> None:
    """A script finds every documented field."""
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        done = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages), "--json")
    result = done.object
    assert (done.code, result["exit_code"]) == (0, 0)
    assert (result["outcome"], result["verdict"]["name"]) == ("answered", "resolved")
    assert result["verdict"]["failed_before"]
    assert result["verdict"]["passes_after"]
    assert [f["path"] for f in result["files"]] == ["pages.py"]
    assert result["tests_before"]["failed"] == [PAGINATION_TEST]
    assert [call["kind"] for call in result["model_calls"]] == ["plan", *["act"] * 4, "answer"]
    assert all(call["request_id"].startswith("req-") for call in result["model_calls"])
    assert all(call["reason"] for call in result["model_calls"])
    assert result["model_calls"][1]["objective"] == "latency"
    assert (result["priced"], result["steps"]) == (False, 6)
    assert result["usage"]["output_tokens"] == 6 * 20


async def test_the_diff_applies_to_a_clean_checkout(
    turnout: Command, pages: TinyRepository, tmp_path: Path
) -> None:
    """What `runs diff` prints is what `git apply` takes; list and show know the run."""
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        run = (await command("run", TASK, "--repo", str(pages), "--json")).object
    shown = await turnout("runs", "show", run["run_id"])
    listed = (await turnout("runs", "list", "--json")).object["runs"]
    diff = await turnout("runs", "diff", run["run_id"][:12])
    (tmp_path / "p.diff").write_text(diff.out)
    pages.git("apply", str(tmp_path / "p.diff"))
    assert (pages.path / "pages.py").read_text() == PAGINATION_FIXED
    assert "Verdict: resolved" in shown.out
    assert "  apply_patch pages.py ✓\n" in shown.out
    assert "  run_tests ✓ 3 passed\n" in shown.out
    (row,) = [row for row in listed if row["run_id"] == run["run_id"]]
    assert (row["outcome"], row["verdict"]) == ("answered", "resolved")
    missing = await turnout("runs", "show", "run-ffffffffffffff")
    assert missing.code == 1
    assert "run-ffffffffffffff" in missing.err


async def test_the_whole_record_can_be_read_afterwards(
    turnout: Command, pages: TinyRepository, tmp_path: Path
) -> None:
    """The line after a run names how; files and object are those that the run could have given."""
    out = tmp_path / "out"
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        run = await turnout.using(server.base_url)("run", TASK, "--repo", str(pages))
    hint = run.err.splitlines()[-1].partition("turnout ")[2].split()
    full = await turnout(*hint)
    run_id = hint[2]
    written = await turnout("runs", "show", run_id, "--output", str(out))
    calls = (await turnout("runs", "show", run_id, "--json")).object["tool_calls"]
    for part in (PLAN.text, "+    start = (number - 1) * size", "def page(", EXPLAIN.text):
        assert part in full.out
    assert "run_ended" in full.out
    assert (written.code, written.out) == (0, f"Written to {out}.\n")
    assert (out / "patch.diff").read_text() == (await turnout("runs", "diff", run_id)).out
    assert [call["name"] for call in calls] == ["read_file", "apply_patch", "run_tests"]
    assert "3 passed" in calls[-1]["result"]


async def test_a_branch_gets_the_commit(turnout: Command, pages: TinyRepository) -> None:
    """The working tree and the current branch are left alone."""
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        done = await command("run", TASK, "--repo", str(pages), "--branch", "fix-pages")
    assert done.code == 0, done.err
    assert "Committed to branch fix-pages" in done.out
    assert pages.git("show", "fix-pages:pages.py") + "\n" == PAGINATION_FIXED
    assert "Turnout-Run: run-" in pages.git("log", "-1", "--format=%B", "fix-pages")
    assert pages.git("status", "--porcelain") == ""
    again = await turnout("run", TASK, "--repo", str(pages), "--branch", "fix-pages")
    assert again.code == 2
    assert "already" in again.err


async def test_an_output_folder_gets_four_files(
    turnout: Command, pages: TinyRepository, tmp_path: Path
) -> None:
    """Patch, explanation, record and summary, each readable by itself."""
    out = tmp_path / "out"
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        done = await command("run", TASK, "--repo", str(pages), "--output", str(out))
    assert done.code == 0, done.err
    names = sorted(path.name for path in out.iterdir())
    assert names == ["explanation.md", "patch.diff", "record.jsonl", "summary.json"]
    assert "(number - 1)" in (out / "patch.diff").read_text()
    assert json.loads((out / "summary.json").read_text())["verdict"]["name"] == "resolved"
    record = [json.loads(line) for line in (out / "record.jsonl").read_text().splitlines()]
    assert [entry["seq"] for entry in record] == list(range(1, len(record) + 1))
    assert record[0]["event"]["type"] == "run_started"
    assert record[-1]["event"]["type"] == "run_ended"


async def test_a_dirty_tree_is_warned_of_and_kept(turnout: Command, pages: TinyRepository) -> None:
    """The run starts from the commit; --apply refuses only where files overlap."""
    pages.write({"README.md": "mine\n"})
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        done = await command("run", TASK, "--repo", str(pages), "--apply")
    assert done.code == 0, done.err
    assert "README.md" in done.err
    assert (pages.path / "pages.py").read_text() == PAGINATION_FIXED
    assert (pages.path / "README.md").read_text() == "mine\n"


async def test_apply_never_overwrites_what_the_user_is_working_on(
    turnout: Command, pages: TinyRepository
) -> None:
    """An overlap refuses, keeps the diff on record and says how to get it."""
    pages.write({"pages.py": "mine\n"})
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        done = await command("run", TASK, "--repo", str(pages), "--apply", "--json")
    result = done.object
    assert done.code == result["exit_code"] == 1
    assert result["verdict"]["name"] == "resolved"
    assert result["delivery"]["done"] is False
    assert "pages.py" in result["delivery"]["detail"]
    assert result["run_id"] in result["delivery"]["detail"]
    assert (pages.path / "pages.py").read_text() == "mine\n"


async def test_without_tests_the_diff_is_made_and_nobody_vouches_for_it(
    turnout: Command, tmp_path: Path
) -> None:
    """A warning, the verdict `no_tests`, and exit code 0."""
    bare = TinyRepository(
        tmp_path / "bare",
        {"pages.py": PAGINATION_FIXED.replace("(number - 1) * size", "number * size")},
    )
    turns = (PLAN, READ, PATCH, ANSWER, EXPLAIN)
    async with ScriptedModelServer(turns, models=["m"]) as server:
        command = turnout.using(server.base_url)
        done = await command("run", "pages count from 1", "--repo", str(bare), "--json")
    result = done.object
    assert (done.code, result["verdict"]["name"]) == (0, "no_tests"), done.err
    assert any("No tests were found" in warning for warning in result["warnings"])
    assert "(number - 1)" in result["diff"]


async def test_the_base_may_be_any_revision(turnout: Command, pages: TinyRepository) -> None:
    """The run works on what the user names, not on what is checked out."""
    base = pages.head
    pages.commit("fixed", {"pages.py": PAGINATION_FIXED})
    async with ScriptedModelServer(FIX, models=["m"]) as server:
        command = turnout.using(server.base_url)
        run = ("run", TASK, "--repo", str(pages), "--base", base[:10], "--json")
        result = (await command(*run)).object
    assert (result["base_commit"], result["verdict"]["name"]) == (base, "resolved")
