"""What is written of a mined fix: a row that `turnout eval run` and SWE-bench's readers take."""

import re
from dataclasses import dataclass
from typing import Final

from turnout import __version__
from turnout.core.json import JsonObject, JsonValue
from turnout.evals.instances.clone import Clone
from turnout.evals.instances.mined import statement, whole_suite
from turnout.evals.instances.model import Instance
from turnout.evals.mine.candidates import Candidate
from turnout.evals.mine.prove import Glance, Proof

__all__ = ["About", "about_clone", "draft", "mined_row"]

_LICENCE_FILES: Final = ("LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "COPYING")
_LICENCES: Final = (
    ("Apache-2.0", r"apache license\s+version 2"),
    ("MPL-2.0", r"mozilla public license,? version 2"),
    ("AGPL-3.0", r"affero general public license\s+version 3"),
    ("LGPL", r"lesser general public license"),
    ("GPL-3.0", r"general public license\s+version 3"),
    ("GPL-2.0", r"general public license\s+version 2"),
    ("BSD-3-Clause", r"redistributions? of source.*neither the name|redistributions?.*endorse"),
    ("BSD-2-Clause", r"redistributions? of source code must retain"),
    ("ISC", r"permission to use, copy, modify, and(?:/or)? distribute"),
    ("MIT", r"permission is hereby granted, free of charge"),
)
_REMOTE: Final = re.compile(r"[/:]([\w.-]+)/([\w.-]+?)(?:\.git)?/?$")


@dataclass(frozen=True, slots=True)
class About:
    """What all fixes of one repository have in common."""

    repo: str
    """`owner/name` where its remote tells, else the name of its folder."""
    clone: str
    """Absolute path."""
    licence: str = ""
    requirements: tuple[str, ...] | None = None
    """None: those that each commit declares."""
    setup: str | None = None
    test_command: str | None = None
    """Runs the whole suite; None: pytest on the folders of the changed tests."""


async def about_clone(clone: Clone, start: str) -> tuple[str, str]:
    """Return how a repository is called and its licence, empty where it is not recognised."""
    remote = _REMOTE.search(await clone.origin())
    folder = clone.path.rstrip("/").rpartition("/")[2].removesuffix(".git")
    name = f"{remote[1]}/{remote[2]}" if remote else folder.replace("__", "/", 1)
    for path in _LICENCE_FILES:
        text = await clone.text(start, path)
        if text:
            return name, _licence(text)
    return name, ""


def draft(candidate: Candidate, about: About) -> Instance:
    """Return a candidate as an instance that nothing is known to grade yet."""
    owner_name = about.repo.replace("/", "__")
    short = candidate.commit.name[:10]
    return Instance(
        instance_id=f"{owner_name}-{short}",
        problem_statement=candidate.title,
        repository=about.clone,
        base_commit=candidate.base,
        files={},
        hidden_tests=candidate.tests.texts,
        test_patch=candidate.tests.patch,
        fail_to_pass=(),
        pass_to_pass=(),
        test_command=about.test_command or whole_suite(candidate.suite),
        requirements=about.requirements,
        digest="",
        patch=candidate.patch,
        setup=about.setup,
    )


def mined_row(candidate: Candidate, about: About, glance: Glance, proof: Proof) -> JsonObject:
    """Return the whole row of a fix that was proven."""
    instance = draft(candidate, about)
    texts: JsonObject = dict(candidate.tests.texts)
    row: dict[str, JsonValue] = {
        "instance_id": instance.instance_id,
        "repo": about.repo,
        "clone": about.clone,
        "base_commit": candidate.base,
        "fix_commit": candidate.commit.name,
        "kind": candidate.kind,
        "created_at": candidate.commit.at,
        "title": candidate.title,
        "problem_statement": statement(candidate.title, proof.fail_to_pass, glance.errors),
        "hints_text": candidate.hints,
        "difficulty": candidate.difficulty,
        "lines": candidate.lines,
        "spec": "needs-tests" if glance.asks_for_names else "self-contained",
        "licence": about.licence,
        "source": f"commit {candidate.commit.name} of {about.repo}",
        "src_files": list(candidate.sources),
        "test_files": list(candidate.tests.texts),
        "patch": candidate.patch,
        "test_patch": candidate.test_patch or candidate.tests.patch,
        "hidden_tests": texts,
        "FAIL_TO_PASS": list(proof.fail_to_pass),
        "PASS_TO_PASS": list(proof.pass_to_pass),
        "pass_to_pass_count": len(proof.pass_to_pass),
        "test_command": proof.command,
        "seconds": round(proof.seconds, 2),
        "verified_by": f"turnout {__version__}",
    }
    if about.requirements is not None:
        row["python_requirements"] = list(about.requirements)
    if about.setup is not None:
        row["setup"] = about.setup
    return row


def _licence(text: str) -> str:
    flat = " ".join(text.lower().split())
    return next((name for name, words in _LICENCES if re.search(words, flat)), "")
