"""What a tree can ask of git in the hope that the host's git reads it.

Each trick is a script that writes files alone, so that it can be laid in a run's workspace as well
as in a repository of a user without git being run by it. `RUN` in it stands for the command that
must never run on the host, `OUTSIDE` for a folder of the host whose contents must never show.
"""

from dataclasses import dataclass

__all__ = ["TRICKS", "Trick", "written"]


@dataclass(frozen=True, slots=True)
class Trick:
    """One row of the table."""

    script: str
    """Run at the root of the work tree by `sh`."""
    naive: str | None
    """A git command that falls for it; None where only what reads further does."""


def _config(text: str, file: str = ".git/config") -> str:
    return f"cat >>{file} <<'END'\n{text}\nEND\n"


def _attributes(name: str) -> str:
    return f"echo '* {name}=x' >>.gitattributes\n"


def _program(path: str) -> str:
    return f"cat >{path} <<'END'\n#!/bin/sh\nRUN\nEND\nchmod +x {path}\n"


_MONITOR = '[core]\n\tfsmonitor = "RUN; true"'
_EMBEDDED = (
    "mkdir -p emb/.git/objects emb/.git/refs/heads\n"
    "echo 'ref: refs/heads/main' >emb/.git/HEAD\necho x >emb/file\n"
) + _config(f"[core]\n\trepositoryformatversion = 0\n{_MONITOR}", "emb/.git/config")

TRICKS = {
    "a file system monitor": Trick(_config(_MONITOR), "status"),
    "an external diff": Trick(_config('[diff]\n\texternal = "RUN; true"'), "diff"),
    "a text conversion": Trick(
        _attributes("diff") + _config('[diff "x"]\n\ttextconv = "RUN; cat"'), "diff"
    ),
    "a diff driver": Trick(
        _attributes("diff") + _config('[diff "x"]\n\tcommand = "RUN; true"'), "diff"
    ),
    "a clean filter": Trick(
        _attributes("filter") + _config('[filter "x"]\n\tclean = "RUN; cat"\n\trequired = true'),
        "add -A",
    ),
    "a process filter": Trick(
        _attributes("filter") + _config('[filter "x"]\n\tprocess = "RUN; cat"'), "add -A"
    ),
    "a hook of the index": Trick(_program(".git/hooks/post-index-change"), "add -A"),
    "a hook of commits": Trick(_program(".git/hooks/pre-commit"), "commit -qam x"),
    "an included file of the tree": Trick(
        _config("[include]\n\tpath = ../inc") + _config(_MONITOR, "inc"), "status"
    ),
    "a git folder elsewhere in the tree": Trick(
        _config(_MONITOR) + "mv .git away\necho 'gitdir: away' >.git\n", "status"
    ),
    "an embedded repository": Trick(_EMBEDDED, "-C emb status"),
    "a work tree elsewhere": Trick(
        _config("[core]\n\tworktree = OUTSIDE"), "status --porcelain -uall"
    ),
    "objects elsewhere": Trick(
        "mkdir -p .git/objects/info\n"
        "echo OUTSIDE/other.git/objects >.git/objects/info/alternates\n",
        None,
    ),
    "a pager, an editor and other names of commands": Trick(
        _config(
            '[core]\n\tpager = "RUN; cat"\n\teditor = RUN\n\tsshCommand = RUN\n\taskPass = RUN\n'
            '[alias]\n\tdiff = "!RUN"\n\tapply = "!RUN"\n\tx = "!RUN"'
        ),
        "x",
    ),
    "a program that checks signatures": Trick(
        _program("sign")
        + _config(
            "[gpg]\n\tprogram = ./sign\n[commit]\n\tgpgSign = true\n[log]\n\tshowSignature = 1"
        ),
        "commit -qam x",
    ),
}
"""All fifteen, by what they are."""


def written(trick: Trick, canary: str, outside: str) -> str:
    """Return the script of a trick with its command and its folder filled in."""
    return trick.script.replace("RUN", f"touch {canary}").replace("OUTSIDE", outside)
