"""The patch that a run leaves: exactly what changed, found out without running anything of it."""

from pathlib import Path

import pytest
from tests.integration.workspaces import opened, same_tree, shell

from turnout.core.runs import FileChange
from turnout.sandbox.base import BaseSpec
from turnout.sandbox.base_layer import find_layer
from turnout.sandbox.bubblewrap import BubblewrapDriver
from turnout.sandbox.collector import Collection
from turnout.testing.repositories import TinyRepository

TRICKS = {
    "fsmonitor": "git config core.fsmonitor 'MARK; true'",
    "external diff": "git config diff.external 'MARK; true'",
    "textconv": "echo '* diff=x' > .gitattributes; git config diff.x.textconv 'MARK; tr a-z A-Z <'",
    "diff driver": "echo '* diff=x' > .gitattributes; git config diff.x.command 'MARK; true'",
    "clean filter": "echo '* filter=x' > .git/info/attributes; echo '* filter=x' > .gitattributes; "
    "git config filter.x.clean 'MARK; tr a-z A-Z'; git config filter.x.required true",
    "process filter": "echo '* filter=x' > .gitattributes; git config filter.x.process 'MARK; cat'",
    "hooks": "mkdir -p .git/hooks; for hook in pre-commit post-index-change; do "
    "printf '#!/bin/sh\\nMARK\\n' > .git/hooks/$hook; chmod +x .git/hooks/$hook; done",
    "hooks path": "mkdir h; printf '#!/bin/sh\\nMARK\\n' > h/post-index-change; chmod +x h/*; "
    "git config core.hooksPath /repo/h",
    "include": "printf '[core]\\n\\tfsmonitor = MARK; true\\n' > inc; "
    "git config include.path ../inc",
    "git folder elsewhere": "git config core.fsmonitor 'MARK; true'; mv .git away; "
    "echo 'gitdir: away' > .git",
    "git folder as a link": "git config core.fsmonitor 'MARK; true'; mv .git away; ln -s away .git",
    "embedded repository": "git init -q emb; cd emb; echo s > s; git add s; "
    "git -c user.name=a -c user.email=a@b commit -qm s; git config core.fsmonitor 'MARK; true'",
    "work tree elsewhere": "git config core.worktree /etc",
    "alternates": "echo /etc > .git/objects/info/alternates",
    "pager and editor": "git config core.pager 'MARK'; git config core.editor 'MARK'; "
    "git config alias.diff '!MARK'; git config alias.add '!MARK'",
    "signature": "git config gpg.program /repo/sign; git config commit.gpgsign true; "
    "git config log.showSignature true; printf '#!/bin/sh\\nMARK\\n' > sign; chmod +x sign",
    "user configuration": "printf '[core]\\n\\tfsmonitor = MARK; true\\n' > /tmp/home/.gitconfig",
    "ignored by exclusion": "echo '*' > .git/info/exclude; echo '*' > /tmp/home/.gitignore; "
    "git config core.excludesFile /tmp/home/.gitignore",
    "index flags": "git update-index --assume-unchanged a.txt || true; "
    "git update-index --skip-worktree a.txt || true",
    "no index": "rm -rf .git",
    "garbage index": "echo garbage > .git/index; echo garbage > .git/HEAD",
    "forged times": "true",
}


@pytest.fixture(scope="module")
def driver(sandbox_state: Path) -> BubblewrapDriver:
    """One driver on the state folder of all tests."""
    return BubblewrapDriver(sandbox_state)


@pytest.fixture
def repository(tmp_path: Path) -> TinyRepository:
    """Make a tree with something of each kind."""
    made = TinyRepository(
        tmp_path / "source",
        {
            "a.txt": "one\n",
            "gone.txt": "gone\n",
            "moved.txt": "moved\n",
            "data.bin": bytes(range(256)),
            "tool": "#!/bin/sh\n",
            "sub/deep.txt": "deep\n",
            ".gitignore": "*.log\n",
            "kept.log": "kept\n",
        },
    )
    (made.path / "link").symlink_to("a.txt")
    made.commit("base")
    return made


@pytest.mark.cases
@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
async def test_nothing_of_the_tree_runs_while_it_is_compared(driver, repository, tmp_path, trick):
    """Whatever the run did to its git, the change is found, unaltered, and no program ran."""
    marker = tmp_path / "marker"
    mark = f"touch {marker} /repo/marker /tmp/marker"
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, "touch -r a.txt /tmp/time; echo two > a.txt; touch -r /tmp/time a.txt")
        await shell(sandbox, trick.replace("MARK", mark))
        patch = await sandbox.diff()
        assert await shell(sandbox, "ls /repo/marker /tmp/marker 2>/dev/null || true") == ""
    assert not marker.exists()
    assert b"-one\n+two\n" in patch.diff
    assert FileChange("a.txt", "modified", 1, 1) in patch.files
    assert "marker" not in {file.path for file in patch.files}


@pytest.mark.cases
async def test_every_kind_of_change_makes_the_same_tree(driver, repository):
    """New, changed, moved, deleted, staged, committed, binary, mode, link, type, odd names."""
    async with opened(driver, repository) as sandbox:
        await shell(
            sandbox,
            r"""
            echo more >> a.txt; git mv moved.txt sub/moved.txt; rm gone.txt; chmod +x sub/deep.txt
            git add -A; git commit -qm "by the model"; git checkout -q -b side
            printf '\0\1\2' > data.bin; ln -sf nowhere link; rm tool; ln -s a.txt tool
            touch empty; mkdir -p new/deep; printf 'no newline' > new/deep/file; echo x >> kept.log
            printf 'a\r\nb\r\n' > crlf; printf 'x' > $'new\nline'; printf 'y' > $'\xff\xfe'
            printf 'z' > '"quoted" $HOME'; printf 'w' > -n; git add new; chmod 600 crlf
            """,
        )
        mine = await shell(
            sandbox, "git add -A -f; git -c core.fileMode=true write-tree; git reset -q"
        )
        patch = await sandbox.diff()
    assert same_tree(repository, repository.head, patch) == mine
    kinds = {file.path: file.status for file in patch.files}
    assert kinds["gone.txt"] == kinds["moved.txt"] == "deleted"
    assert kinds["sub/moved.txt"] == kinds["new\nline"] == kinds["\\xff\\xfe"] == "added"
    assert kinds["sub/deep.txt"] == kinds["kept.log"] == "modified"
    assert kinds["tool"] == "type_changed"
    assert FileChange("data.bin", "modified", None, None) in patch.files


@pytest.mark.cases
async def test_caches_and_environments_are_left_out_and_named(driver, repository):
    """Junk, ignored files, environments of any name and links in place of folders."""
    async with opened(driver, repository) as sandbox:
        await shell(
            sandbox,
            """
            mkdir -p __pycache__ sub/__pycache__ .pytest_cache x.egg-info env/bin .venv/lib
            touch __pycache__/a.pyc sub/__pycache__/b.pyc .pytest_cache/v x.egg-info/PKG-INFO
            touch env/pyvenv.cfg env/bin/python .venv/lib/x debug.log; ln -s /usr node_modules
            ln -s /venv venv; echo new > new.txt; echo 'A file.' > sub/venv
            """,
        )
        patch = await sandbox.diff()
    assert [file.path for file in patch.files] == ["new.txt", "sub/venv"]
    folders = "__pycache__/ sub/__pycache__/ .pytest_cache/ x.egg-info/ env/ .venv/"
    assert set(patch.excluded) == {*folders.split(), "debug.log", "node_modules", "venv"}


@pytest.mark.cases
async def test_packages_installed_into_the_tree_are_left_out(driver, repository):
    """By the record that pip leaves of them; a description without one was written by hand."""
    async with opened(driver, repository) as sandbox:
        await shell(
            sandbox,
            """
            mkdir -p sub/dep sub/dep-1.dist-info sub/bin own-1.dist-info
            touch sub/dep/__init__.py sub/dep/data sub/bin/dep sub/bin/mine sub/own.py
            touch own-1.dist-info/entry_points.txt
            printf '%s,sha256=0,1\n' dep/__init__.py '"dep-1.dist-info/RECORD"' ../../bin/dep \\
                ../../../etc/passwd /etc/passwd deep.txt > sub/dep-1.dist-info/RECORD
            """,
        )
        patch = await sandbox.diff()
    assert [file.path for file in patch.files] == [
        *("own-1.dist-info/entry_points.txt", "sub/bin/mine", "sub/own.py")
    ]
    assert patch.excluded == ("sub/bin/dep", "sub/dep-1.dist-info/", "sub/dep/")


@pytest.mark.cases
@pytest.mark.parametrize("name", ["my file.py", "café.py", "a\nb"])
async def test_real_names_are_told(driver, repository, name):
    """Of new files and of changed ones."""
    repository.commit("more", {name: "1\n"})
    async with opened(driver, repository) as sandbox:
        await sandbox.write(name, b"2\n")
        await sandbox.write(f"sub/{name}", b"3\n")
        patch = await sandbox.diff()
    assert [file.path for file in patch.files] == [name, f"sub/{name}"]
    assert same_tree(repository, repository.head, patch)


@pytest.mark.cases
async def test_what_is_tracked_is_contained_whatever_it_is_called(driver, tmp_path):
    """A tracked file in a folder of junk is a file like any other."""
    repository = TinyRepository(
        tmp_path / "source",
        {"node_modules/x.js": "1\n", "env/pyvenv.cfg": "1\n", "__pycache__/a.pyc": b"\0"},
    )
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, "for f in node_modules/x.js env/pyvenv.cfg; do echo 2 > $f; done")
        await shell(sandbox, "printf x > __pycache__/a.pyc; mkdir env/.git; echo n > env/new")
        patch = await sandbox.diff()
    assert len(patch.files) == 4
    assert patch.excluded == ("env/.git",)


@pytest.mark.cases
async def test_work_that_was_thrown_away_is_no_change(driver, repository):
    """After a hard reset the patch is honestly empty."""
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, "echo x > a.txt; git reset -q --hard; git clean -fdxq")
        patch = await sandbox.diff()
    assert not patch
    assert patch.files == ()


async def test_files_that_cannot_be_read_or_are_no_files_are_survived(driver, repository):
    """Modes of zero hide nothing; pipes, sockets and endless folders are not followed."""
    async with opened(driver, repository) as sandbox:
        await shell(
            sandbox,
            """
            echo hidden > a.txt; chmod 000 a.txt; mkdir shut; echo in > shut/in; chmod 000 shut
            rm tool; mkfifo tool fifo; mkdir -m 555 fixed
            python - <<'END'
import os, socket
socket.socket(socket.AF_UNIX).bind("/repo/socket")
for _ in range(3000):
    os.mkdir("d"); os.chdir("d")
END
            """,
        )
        patch = await sandbox.diff()
    assert {(file.path, file.status) for file in patch.files} == {
        ("a.txt", "modified"),
        ("shut/in", "added"),
        ("tool", "deleted"),
    }


async def test_new_files_of_many_megabytes_are_left_out_and_named(driver, repository):
    """A patch stays a patch, however large a file is made to look."""
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, "truncate -s 900M sparse; head -c 40M /dev/zero > big; echo x > a.txt")
        patch = await sandbox.diff()
    assert patch.excluded == ("big", "sparse")
    assert [file.path for file in patch.files] == ["a.txt"]


@pytest.mark.cases
async def test_repositories_within_the_tree_are_named_and_not_followed(driver, tmp_path):
    """A nested repository and edits inside a submodule are reported as not contained."""
    repository = TinyRepository(tmp_path / "source", {"a": "1\n"})
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{repository.head},mod")
    repository.git("commit", "--quiet", "--message", "submodule")
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, "echo edited > mod/file; git init -q emb; echo s > emb/s; echo 2 > a")
        patch = await sandbox.diff()
    assert [file.path for file in patch.files] == ["a"]
    assert patch.excluded == ("emb/", "mod/")


async def test_processes_of_the_run_are_ended_first(driver, repository):
    """Nothing goes on writing while the tree is read."""
    script = "while :; do echo x >> grows; done"
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, f"setsid env -i /bin/bash -c '{script}' >/dev/null 2>&1 & sleep 0.1")
        first = await sandbox.diff()
        assert first.diff == (await sandbox.diff()).diff


async def test_empty_space_in_files_costs_nothing(driver, repository):
    """Thirty files that claim a gigabyte each are neither sent nor written as such."""
    script = "for n in $(seq 30); do truncate -s 1000M s$n; printf x >> s$n; done"
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, script)
        assert len((await sandbox.diff()).excluded) == 30


async def test_the_file_system_of_the_user_never_changes(driver, repository):
    """The source repository is as it was, whatever the run did."""
    before = repository.git("status", "--porcelain"), repository.git("rev-parse", "--all")
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, "rm -rf /repo/* /base/* /base.git/* 2>/dev/null || true")
        assert len((await sandbox.diff()).files) == 8
    assert (repository.git("status", "--porcelain"), repository.git("rev-parse", "--all")) == before


EDITS = """
    printf 'two\\n' > a.txt; touch -d @1 a.txt
    rm -r sub; mkdir sub; echo new > sub/other
    rm moved.txt; mkdir moved.txt; echo in > moved.txt/in
    mv data.bin renamed.bin; chmod +x gone.txt; ln -sf kept.log link
    rm kept.log; mkfifo kept.log; mkfifo pipe; echo x > seen.log
    rm tool; git init -q tool; echo y > tool/y; mkdir -p env; touch env/pyvenv.cfg env/x
    echo '*.tmp' > .gitignore; echo z > z.tmp; mkdir shut; echo s > shut/s; chmod 0 shut/s shut
    mkdir .pytest_cache git~1 own; touch .pytest_cache/x git~1/x own/x; echo '*' > own/.gitignore
    echo f > forced.tmp; git add -f a.txt forced.tmp .pytest_cache; git commit -qm work; git gc -q
"""


async def test_changes_alone_tell_the_same_as_the_whole_tree(driver, repository):
    """Whatever the run has put in the place of what, found quickly or by a look at every file."""
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, EDITS)
        spec = BaseSpec(str(repository), repository.head, requirements=())
        layer = find_layer(driver.state_dir, await driver.prepare(spec))
        collection = Collection(driver, sandbox, layer.history, layer.commit)
        found = await collection.of_changes(layer.tree)
        assert found == await collection.of_tree()
        assert found == await sandbox.diff()
    assert len(found.files) == 15
    assert "forced.tmp" in {file.path for file in found.files}
    assert set(found.excluded) == {*("tool/", "env/", "z.tmp", "git~1/x", "own/", ".pytest_cache/")}


async def test_paths_that_are_too_long_for_one_call_are_passed_over(driver, repository):
    """What lies deeper than a path can say is no part of a patch, and the rest of it is."""
    script = 'python3 -c \'import os\nfor n in range(900): os.mkdir("deep!"); os.chdir("deep!")\''
    async with opened(driver, repository) as sandbox:
        await shell(sandbox, f"{script}; echo two > a.txt")
        patch = await sandbox.diff()
    assert [file.path for file in patch.files] == ["a.txt"]
