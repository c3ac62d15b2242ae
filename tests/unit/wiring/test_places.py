"""What is known of a service's repositories before anything is worked on."""

from pathlib import Path
from shutil import rmtree

import pytest

from turnout.core.service.repositories import RepositoryBook
from turnout.errors import GatewayError, RepositoryError
from turnout.testing.repositories import TinyRepository
from turnout.wiring.serving.places import Places


async def test_a_service_begins_only_with_repositories_that_are_there(tmp_path: Path) -> None:
    """The operator reads which one is not, and where it was looked for; URLs are not asked."""
    nope = tmp_path / "nope"
    places = Places(RepositoryBook({"a": "https://git.example.org/a", "nope": str(nope)}))
    with pytest.raises(RepositoryError, match=f"'nope' cannot be served: {nope} does not exist"):
        await places.check()
    nope.mkdir()
    with pytest.raises(RepositoryError, match="is not a git repository"):
        await places.check()
    TinyRepository(nope / "made", {"a.txt": "1\n"})
    await Places(RepositoryBook({"shop": str(nope / "made")})).check()


async def test_a_base_that_is_none_is_refused_before_anything_is_kept(tmp_path: Path) -> None:
    """Callers read the name of the repository, never where it is, also behind a link."""
    made = TinyRepository(tmp_path / "secret" / "source", {"a.txt": "1\n"})
    made.git("clone", "--quiet", "--bare", ".", str(tmp_path / "secret" / "bare"))
    (tmp_path / "link").symlink_to(tmp_path / "secret" / "bare")
    named = {"shop": str(made.path), "bare": str(tmp_path / "link")}
    places = Places(RepositoryBook(named, ("git.example.org",)))
    for name in named:
        await places.check_base(name, "main")
        with pytest.raises(RepositoryError, match=f"{name} has no commit `mian`") as error:
            await places.check_base(name, "mian")
        assert error.value.mend == "Did you mean main?"
        assert str(tmp_path) not in str(error.value)
    await places.check_base("https://git.example.org/a", "nowhere")


async def test_what_was_put_away_is_no_base(tmp_path: Path) -> None:
    """Callers get what is committed to branches and tags."""
    made = TinyRepository(tmp_path, {"a.txt": "1\n"})
    made.write({"a.txt": "2\n"})
    made.git("stash")
    places = Places(RepositoryBook({"shop": str(made.path)}))
    for base in ("stash", made.git("rev-parse", "stash")):
        with pytest.raises(RepositoryError, match="shop has no commit"):
            await places.check_base("shop", base)


async def test_a_repository_that_has_gone_is_the_services_own_fault(tmp_path: Path) -> None:
    """503: nothing is wrong with the order."""
    made = TinyRepository(tmp_path / "source", {"a.txt": "1\n"})
    places = Places(RepositoryBook({"shop": str(made.path)}))
    rmtree(made.path)
    with pytest.raises(GatewayError, match="'shop'") as error:
        await places.check_base("shop", "main")
    assert (error.value.status, error.value.code) == (503, "repository_unavailable")
    assert str(tmp_path) not in str(error.value)
