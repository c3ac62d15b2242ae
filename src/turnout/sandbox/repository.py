"""Which commit a task starts from.

Host git reads the user's repository here, as a source: no hook, filter, file-system monitor or
transport helper that the repository configures is ever run.
"""

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from turnout.errors import RepositoryError
from turnout.sandbox.workspace.git import Access, bytes_to_text, git_here, git_remote, last_line
from turnout.sandbox.workspace.process import Finished
from turnout.sandbox.workspace.source import Source, locate

__all__ = ["Resolved", "check_base", "is_tracked", "resolve"]

_LOCAL_TIMEOUT = 20.0
_REMOTE_TIMEOUT = 30.0
_HISTORY_TIMEOUT = 300.0
_FULL_NAME = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SHORT_NAME = re.compile(r"[0-9a-f]{4,39}")
_PUBLIC = re.compile(r"(?P<name>(?:[^~^:@\s]|@(?!\{))+)(?P<steps>(?:[~^][0-9]*)*)")
"""A branch, a tag or a commit, and how many commits before it."""
_PUBLIC_REFS: Final = ("refs/tags/", "refs/heads/")
_FILTER = re.compile(rb"filter\..*\.(?:clean|smudge|process)", re.DOTALL)
_REDIRECT = re.compile(r"error: 30[1-8]\b")
_REFUSALS = (
    "authentication failed",
    "could not read username",
    "could not read password",
    "permission denied",
    "terminal prompts disabled",
    "error: 401",
    "error: 403",
)
_MOST_REFS = 2_000
_OTHERS: Final = (("blob", "a file"), ("tree", "a folder"))
_MOST_DIRTY = 1_000
_MOST_CONFIGURATION = 1 << 20


@dataclass(frozen=True, slots=True)
class Resolved:
    """A base that was found."""

    commit: str
    """Full object name."""
    dirty: tuple[str, ...] = ()
    """Paths of a local checkout that differ from its last commit; a run does not see them."""
    warnings: tuple[str, ...] = ()
    """What the user should know, one sentence each."""


async def resolve(
    repository: str, base: str, access: Access | None = None, *, public: bool = False
) -> Resolved:
    """Find the commit that `base` names in a repository.

    `repository` is a path (also within a checkout) or a URL; `base` any revision: a branch, a
    tag, a full or short object name. `public`, for whoever may not read this machine's files, takes
    commits of HEAD, of branches and of tags alone (no stash, no reflog, nothing dropped), and does
    not look at the files of a checkout. `RepositoryError` names the mend. Never asks for a
    password.
    """
    source = await locate(repository, access)
    if not base or not base.isprintable() or base.startswith("-"):
        raise RepositoryError(f"`{base!r}` names no commit.", mend="Name a branch, tag or commit.")
    if source.local:
        return await _resolve_local(source, base, public=public)
    return Resolved(await _resolve_remote(source, base, public=public))


async def check_base(source: Source, base: str, *, shown: str) -> None:
    """Refuse (`RepositoryError`) a base that names no public commit of a local repository.

    Other repositories are not looked at. People read of the repository as `shown`.
    """
    if source.local and await _public_commit(source.url, base) is None:
        raise await _unknown_public(source.url, shown, base)


async def is_tracked(file: Path) -> bool:
    """Say whether a file is part of what a git repository on this machine keeps.

    Where there is no repository git is not asked, and need not be installed.
    """
    folder = file.parent.resolve()
    if not any((above / ".git").exists() for above in (folder, *folder.parents)):
        return False
    asked = ["-C", str(file.parent), "ls-files", "--error-unmatch", "--", file.name]
    return (await git_here(asked, timeout=_LOCAL_TIMEOUT)).ok


async def _resolve_local(source: Source, base: str, *, public: bool) -> Resolved:
    find, unknown = (_public_commit, _unknown_public) if public else (_commit, _unknown)
    commit = await find(source.url, base)
    if commit is None:
        raise await unknown(source.url, source.shown, base)
    warnings = []
    asked = ["--git-dir", source.url, "rev-parse", "--is-shallow-repository"]
    shallow = await git_here(asked, timeout=_LOCAL_TIMEOUT)
    if shallow.stdout.strip() == b"true":
        warnings.append("The repository is shallow: the workspace knows only part of its history.")
    dirty: tuple[str, ...] = ()
    if source.work_tree is not None and not public:
        if await _has_filters(source):
            warnings.append(
                "The repository configures content filters, which are not run: "
                "whether its files have uncommitted changes was not looked at."
            )
        else:
            found = await _dirty(source.work_tree)
            dirty = found or ()
            if found is None:
                warnings.append("Whether the checkout has uncommitted changes could not be told.")
    return Resolved(commit, dirty, tuple(warnings))


async def _commit(git_dir: str, base: str) -> str | None:
    asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{base}^{{commit}}"]
    done = await git_here(["--git-dir", git_dir, *asked], timeout=_LOCAL_TIMEOUT)
    name = done.stdout.decode().strip()
    return name if done.ok and _FULL_NAME.fullmatch(name) else None


async def _public_commit(git_dir: str, base: str) -> str | None:
    """Return the commit of a base that HEAD, a branch or a tag leads to.

    Git's own search would also look into reflogs, remotes and whatever was left behind.
    """
    parts = _PUBLIC.fullmatch(base)
    if parts is None:
        return None
    name, steps = parts["name"], parts["steps"]
    found = None if _FULL_NAME.fullmatch(name) else await _public_ref(git_dir, name)
    if found is None and (_FULL_NAME.fullmatch(name) or _SHORT_NAME.fullmatch(name)):
        found = await _commit(git_dir, name)
        if found is not None and not await _is_public(git_dir, found):
            return None
    return None if found is None else await _commit(git_dir, f"{found}{steps}")


async def _public_ref(git_dir: str, name: str) -> str | None:
    for full in _public_names(name):
        asked = ["--git-dir", git_dir, "show-ref", "--verify", "--hash", "--", full]
        found = (await git_here(asked, timeout=_LOCAL_TIMEOUT)).stdout.decode().strip()
        if _FULL_NAME.fullmatch(found):
            return found
    return None


def _public_names(name: str) -> list[str]:
    if name == "HEAD" or name.startswith(_PUBLIC_REFS):
        return [name]
    return [f"{start}{name}" for start in _PUBLIC_REFS]


async def _is_public(git_dir: str, commit: str) -> bool:
    head = await _public_ref(git_dir, "HEAD")
    tips = [*([head] if head else []), "--branches", "--tags"]
    asked = ["--git-dir", git_dir, "rev-list", "--max-count=1", commit, "--not", *tips]
    done = await git_here(asked, timeout=_LOCAL_TIMEOUT)
    return done.ok and not done.stdout.strip()


async def _has_filters(source: Source) -> bool:
    """Say whether a filter may be configured; git's own search passes over names of odd bytes."""
    asked = ["config", "--list", "--name-only", "-z"]
    done = await git_here(["-C", str(source.work_tree), *asked], timeout=_LOCAL_TIMEOUT)
    if not done.ok or len(done.stdout) > _MOST_CONFIGURATION:
        return True
    return any(_FILTER.fullmatch(name) for name in done.stdout.split(b"\0"))


async def _dirty(work_tree: Path) -> tuple[str, ...] | None:
    asked = ["status", "--porcelain=v1", "-z", "--no-renames", "--ignore-submodules=all"]
    done = await git_here(["-C", str(work_tree), *asked], timeout=_LOCAL_TIMEOUT)
    if not done.ok:
        return None
    entries = [entry[3:] for entry in done.stdout.split(b"\0") if entry]
    return tuple(bytes_to_text(path) for path in entries[:_MOST_DIRTY])


async def _unknown_public(git_dir: str, shown: str, base: str) -> RepositoryError:
    names = await _names(git_dir, *_PUBLIC_REFS)
    if not names and await _public_ref(git_dir, "HEAD") is None:
        return _empty(shown)
    return _not_there(shown, base, names)


async def _names(git_dir: str, *under: str) -> list[str]:
    asked = ["for-each-ref", f"--count={_MOST_REFS}", "--format=%(refname:short)", *under]
    done = await git_here(["--git-dir", git_dir, *asked], timeout=_LOCAL_TIMEOUT)
    return done.stdout.decode(errors="backslashreplace").split()


async def _unknown(git_dir: str, shown: str, base: str) -> RepositoryError:
    names = await _names(git_dir)
    if not names and await _commit(git_dir, "HEAD") is None:
        return _empty(shown)
    if what := await _other(git_dir, base):
        mend = f"Name a commit. {_some(name for name in names if name != base)}".rstrip()
        return RepositoryError(f"`{base}` of {shown} is {what} and no commit.", mend=mend)
    return _not_there(shown, base, names)


async def _other(git_dir: str, base: str) -> str:
    """Say what else than a commit a revision leads to, through tags; nothing where to nothing."""
    asked = ["--git-dir", git_dir, "rev-parse", "--verify", "--quiet", "--end-of-options"]
    name = (await git_here([*asked, base], timeout=_LOCAL_TIMEOUT)).stdout.decode().strip()
    for kind, what in _OTHERS if _FULL_NAME.fullmatch(name) else ():
        if (await git_here([*asked, f"{name}^{{{kind}}}"], timeout=_LOCAL_TIMEOUT)).ok:
            return what
    return ""


def _empty(shown: str) -> RepositoryError:
    return RepositoryError(
        f"{shown} has no commits yet.", mend="Commit its files first: git add -A && git commit."
    )


def _not_there(shown: str, base: str, names: Sequence[str]) -> RepositoryError:
    near = difflib.get_close_matches(base, names, n=3, cutoff=0.5)
    near += [name for name in names if name.endswith(f"/{base}") and name not in near]
    if near:
        mend = f"Did you mean {' or '.join(near[:3])}?"
    else:
        mend = _some(names) or "Name an existing commit."
    several = ", or several that begin so" if _SHORT_NAME.fullmatch(base) else ""
    return RepositoryError(f"{shown} has no commit `{base}`{several}.", mend=mend)


def _some(names: Iterable[str]) -> str:
    """Return a sentence on what names there are; nothing where there is none."""
    listed = ", ".join(islice(names, 5))
    return f"It has: {listed}." if listed else ""


async def _resolve_remote(source: Source, base: str, *, public: bool) -> str:
    whole = _FULL_NAME.fullmatch(base) is not None
    named = [f"refs/tags/{base}^{{}}", f"refs/tags/{base}", f"refs/heads/{base}", base]
    patterns = ["refs/heads/*", "refs/tags/*"] if whole else named
    asked = ["ls-remote", "--", source.url, "HEAD", *patterns]
    done = await git_remote(asked, url=source.url, timeout=_REMOTE_TIMEOUT, access=source.access)
    if not done.ok:
        raise _unreachable(source, done)
    refs = {}
    for line in done.stdout.decode(errors="backslashreplace").splitlines():
        commit, _, name = line.partition("\t")
        if not public or name == "HEAD" or name.startswith(_PUBLIC_REFS):
            refs[name] = commit
    if whole and (not public or base in refs.values()):
        return base
    for name in () if whole else named:
        if _FULL_NAME.fullmatch(refs.get(name, "")):
            return refs[name]
    return await _search_remote(source, base)


async def _search_remote(source: Source, base: str) -> str:
    """Look a revision up in the branches and tags of a server, such as a short object name."""
    with TemporaryDirectory(prefix="turnout-refs-") as folder:
        await git_here(["init", "--quiet", "--bare", "--template=", folder], timeout=20)
        fetch = ["fetch", "--quiet", "--no-tags", "--filter=tree:0", "--", source.url]
        wanted = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"]
        asked = ["--git-dir", folder, *fetch, *wanted]
        done = await git_remote(
            asked, url=source.url, timeout=_HISTORY_TIMEOUT, access=source.access
        )
        if not done.ok:
            raise _unreachable(source, done)
        commit = await _commit(folder, base)
        if commit is None:
            raise await _unknown(folder, source.shown, base)
        return commit


def _unreachable(source: Source, done: Finished) -> RepositoryError:
    if done.code is None:
        return RepositoryError(
            f"{source.shown} did not answer in time.", mend="Check the URL and the network."
        )
    said = done.stderr.lower()
    if _REDIRECT.search(said):
        return RepositoryError(
            f"{source.shown} leads to another URL, which is not followed.",
            mend="Name the URL that it leads to.",
        )
    if any(word in said for word in _REFUSALS):
        return RepositoryError(
            f"{source.shown} cannot be read without credentials.",
            mend="Set up a git credential helper or an SSH key for it, "
            "so that `git ls-remote` works without a question.",
        )
    return RepositoryError(
        f"{source.shown} cannot be read: {last_line(done.stderr)}",
        mend="Check the URL and the network.",
    )
