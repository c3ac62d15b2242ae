import asyncio
import shlex
import stat

import pytest

from turnout.errors import RepositoryError
from turnout.sandbox.workspace.history import fetch_history
from turnout.sandbox.workspace.source import Source, locate
from turnout.testing.repositories import TinyRepository


@pytest.fixture
def repository(tmp_path):
    """Three commits; the base is the second, and there is more that it must not know."""
    made = TinyRepository(tmp_path / "source", {"a.txt": "1\n"})
    made.commit("second", {"a.txt": "2\n"})
    made.tag("later", annotated=True)
    made.commit("third", {"secret.txt": "s3cret\n"})
    made.branch("other")
    made.commit("side", {"b.txt": "b\n"})
    return made


async def test_a_history_knows_the_base_and_its_ancestors_alone(repository, tmp_path):
    """No later commit, other branch, tag, remote or log is in it."""
    base = repository.git("rev-parse", "main~1")
    history = await fetch_history(await locate(str(repository)), base, tmp_path / "state")
    kept = TinyRepository(history, bare=True)
    assert (
        kept.git("for-each-ref", "--format=%(refname) %(objectname)") == f"refs/heads/main {base}"
    )
    assert kept.git("rev-list", "--all", "--count") == "2"
    later = repository.git("rev-parse", "main", "other", "main:secret.txt").split()
    for name in later:
        with pytest.raises(RuntimeError):
            kept.git("cat-file", "-e", name)
    assert "remote" not in (history / "config").read_text()
    assert not (history / "logs").exists()
    assert not (history / "FETCH_HEAD").exists()


async def test_a_history_is_made_once(repository, tmp_path):
    """Concurrent callers get the same folder, and the source is not needed for it again."""
    source = await locate(str(repository))
    state = tmp_path / "state"
    made = await asyncio.gather(*(fetch_history(source, repository.head, state) for _ in range(4)))
    assert len(set(made)) == 1
    gone = Source(source.url, local=True)
    repository.path.rename(tmp_path / "moved")
    assert await fetch_history(gone, TinyRepository(tmp_path / "moved").head, state) == made[0]


async def test_the_mirror_is_for_the_service_alone(repository, tmp_path):
    """What was fetched beyond the base is not readable by any other uid."""
    await fetch_history(await locate(str(repository)), repository.head, tmp_path / "state")
    mode = (tmp_path / "state" / "mirrors").stat().st_mode
    assert stat.S_IMODE(mode) == 0o700


async def test_a_shallow_source_gives_a_shallow_history(repository, tmp_path):
    """History that the source does not have is cut, not an error."""
    repository.git("clone", "--quiet", "--depth=2", f"file://{repository}", str(tmp_path / "s"))
    source = await locate(str(tmp_path / "s"))
    history = await fetch_history(source, repository.head, tmp_path / "state")
    assert TinyRepository(history, bare=True).git("rev-list", "--all", "--count") == "2"


async def test_a_commit_that_the_source_does_not_have_is_an_error(repository, tmp_path):
    """The error names the commit and what to look at."""
    source = await locate(str(repository))
    with pytest.raises(RepositoryError, match="commit 012345678901:") as caught:
        await fetch_history(source, "0123456789" * 4, tmp_path / "state")
    assert "git log" in caught.value.mend


@pytest.mark.parametrize("more", [[], ["--no-checkout"], ["--bare"]])
async def test_a_partial_clone_is_told_as_such_until_it_is_whole(repository, tmp_path, more):
    """The rest is with another repository, which is not asked; the mend fetches it."""
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = tmp_path / "a part"
    repository.git("clone", "-q", "--filter=blob:none", *more, f"file://{repository}", str(clone))
    source = await locate(str(clone))
    with pytest.raises(RepositoryError, match="partial clone") as caught:
        await fetch_history(source, repository.head, tmp_path / "state")
    command = caught.value.mend.removeprefix("Fetch the rest: git ").partition(". Or")[0]
    repository.git(*shlex.split(command))
    history = await fetch_history(source, repository.head, tmp_path / "state")
    assert TinyRepository(history, bare=True).git("show", "main:a.txt") == "2"


async def test_nothing_that_the_source_configures_is_run_by_a_fetch(repository, tmp_path):
    """Hooks and programs of the source stay dead while it is fetched from."""
    marker = tmp_path / "marker"
    for name in ("uploadpack.packObjectsHook", "core.fsmonitor", "core.alternateRefsCommand"):
        repository.git("config", name, f"touch {marker}")
    repository.git("config", "extensions.partialClone", "origin")
    repository.git("config", "remote.origin.url", f"ext::touch {marker}")
    await fetch_history(await locate(str(repository)), repository.head, tmp_path / "state")
    assert not marker.exists()
