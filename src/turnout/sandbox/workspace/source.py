"""Where a repository's commits can be fetched from."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import unquote, urlsplit, urlunsplit

from turnout.errors import RepositoryError
from turnout.sandbox.workspace.git import Access, git_here, last_line, without_secrets

__all__ = ["Source", "locate"]

_SCHEMES = ("https", "http", "ssh", "git")
_HELPER = re.compile(r"[A-Za-z0-9][\w+.-]*::")
_SCP = re.compile(r"(?:\w[\w.-]*@)?\w[\w.-]*:(?!//).")
_TIMEOUT = 20.0


@dataclass(frozen=True, slots=True)
class Source:
    """A place that `git fetch` can read."""

    url: str
    """A URL, or the git directory of a local repository."""
    work_tree: Path | None = None
    """Folder within the user's checkout; None for a URL and for a bare repository."""
    local: bool = False
    access: Access | None = None
    """How its URL is read; None: as the user's git reads it."""

    @property
    def shown(self) -> str:
        """The place as people may see it, without credentials."""
        return str(self.work_tree or without_secrets(self.url))


async def locate(repository: str, access: Access | None = None) -> Source:
    """Find the repository that a path or URL names; `RepositoryError` where there is none."""
    if not repository.strip():
        raise RepositoryError(
            "No repository is named.", mend="Give the path or the URL of a git repository."
        )
    if not repository.isprintable():
        raise _odd_path(repository)
    scheme = urlsplit(repository).scheme if "://" in repository else ""
    if scheme in _SCHEMES:
        return _remote(repository, access)
    path = _absolute(unquote(urlsplit(repository).path) if scheme == "file" else repository)
    if scheme not in ("", "file") or _HELPER.match(repository):
        raise RepositoryError(
            f"`{without_secrets(repository)}` would use a transport that is not allowed.",
            mend="Use a local path, https://, ssh:// or user@host:path.",
        )
    found = _kind(path)
    if found == "missing" and _SCP.match(repository):
        return Source(repository)
    if found != "folder":
        what = "does not exist" if found == "missing" else "is not a folder"
        raise RepositoryError(f"{path} {what}.", mend="Check the path of the repository.")
    return await _locate_local(path)


def _remote(url: str, access: Access | None) -> Source:
    """Return a URL's source; a password goes out of the URL, which git is told as an argument."""
    parts = urlsplit(url)
    login, _, server = parts.netloc.rpartition("@")
    account, colon, password = login.partition(":")
    if not colon:
        return Source(url, access=access)
    if parts.scheme not in ("https", "http"):
        raise RepositoryError(
            f"`{without_secrets(url)}` takes no password in its URL.",
            mend="Leave it out, and set up an SSH key.",
        )
    plain = urlunsplit(parts._replace(netloc=server))
    theirs = Access(plain, unquote(password), account=unquote(account), of_user=True)
    return Source(plain, access=access or theirs)


def _absolute(path: str) -> Path:
    return Path(path).absolute()


def _kind(path: Path) -> Literal["folder", "other", "missing"]:
    if path.is_dir():
        return "folder"
    return "other" if path.exists() else "missing"


async def _locate_local(path: Path) -> Source:
    asked = ["rev-parse", "--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir"]
    done = await git_here(["-C", str(path), *asked], timeout=_TIMEOUT)
    if not done.ok:
        raise _not_a_repository(path, done.stderr)
    _, inside, git_dir = done.stdout.decode(errors="surrogateescape").split("\n", 2)
    work_tree = path if inside == "true" else None
    if not git_dir.removesuffix("\n").isprintable():
        raise _odd_path(git_dir.removesuffix("\n"))
    return Source(git_dir.removesuffix("\n"), work_tree, local=True)


def _odd_path(path: str) -> RepositoryError:
    """Return the error for a path that cannot be told to a program and be shown to people."""
    shown = path.encode(errors="surrogateescape").decode(errors="backslashreplace")
    shown = "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in shown)
    return RepositoryError(
        f"The path of the repository is no printable UTF-8: {without_secrets(shown)}",
        mend="Move the repository, or clone it into a folder with another name.",
    )


def _not_a_repository(path: Path, said: str) -> RepositoryError:
    if "not a git repository" in said:
        return RepositoryError(
            f"{path} is not a git repository.",
            mend=f"Name another folder, or run: git -C {path} init, and commit its files.",
        )
    return RepositoryError(
        f"{path} cannot be read as a git repository: {last_line(said)}",
        mend=f"Look at it with: git -C {path} status.",
    )
