"""What a repository says to agents."""

import pytest

from turnout.agent.guidance import read_guidance
from turnout.testing.sandbox import ScriptedSandbox


@pytest.mark.cases
async def test_each_folder_has_its_own_once() -> None:
    """The root's comes first; where both files are there one counts; the words are named."""
    sandbox = ScriptedSandbox(
        {
            "pkg/deep/CLAUDE.md": "Deep.",
            "AGENTS.md": "Use tabs.",
            "CLAUDE.md": "Use tabs.",
            "pkg/AGENTS.md": "Use spaces.",
            "pkg/a.py": "",
            "empty/AGENTS.md": "  \n",
        }
    )
    said = await read_guidance(sandbox)
    assert said.count("Use tabs.") == 1
    places = [said.index(words) for words in ("Use tabs.", "Use spaces.", "Deep.")]
    assert places == sorted(places)
    assert "pkg/AGENTS.md, counts in pkg/:" in said
    assert "empty" not in said


@pytest.mark.cases
async def test_long_guidance_is_cut_and_says_so() -> None:
    """One file, and all of them together."""
    sandbox = ScriptedSandbox(
        {"AGENTS.md": "x" * 100_000, **{f"d{n}/AGENTS.md": f"{n}" * 3_000 for n in range(9)}}
    )
    said = await read_guidance(sandbox)
    assert "[cut; AGENTS.md has 100000 bytes]" in said
    assert len(said) < 14_000


@pytest.mark.cases
async def test_a_link_to_the_file_of_another_folder_is_told_once() -> None:
    """The same words count where they are first said."""
    same = {"AGENTS.md": "Use tabs.", "pkg/CLAUDE.md": "Use tabs.\n"}
    assert (await read_guidance(ScriptedSandbox(same))).count("Use tabs.") == 1


async def test_the_words_of_the_root_are_told_however_many_there_are() -> None:
    """Folders whose names sort first do not hide them."""
    files = {f"0{n}/AGENTS.md": f"Folder {n}." for n in range(40)}
    said = await read_guidance(ScriptedSandbox({**files, "AGENTS.md": "Use tabs."}))
    assert said.index("Use tabs.") < said.index("Folder 0.")


async def test_a_repository_may_say_nothing() -> None:
    """Bytes that are no text, and folders of that name, are survived."""
    assert await read_guidance(ScriptedSandbox({"a.py": ""})) == ""
    assert "\0" not in await read_guidance(ScriptedSandbox({"AGENTS.md": b"a\0\xff"}))
