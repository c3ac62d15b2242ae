"""The repositories of a service, as they are written, and what may be done with them."""

from pathlib import Path

import pytest

from turnout.core.service.options import NotifyOptions, ServiceOptions
from turnout.core.service.repositories import RepositoryAccess
from turnout.errors import ConfigError, UsageError
from turnout.settings import load_settings

SHOP = '[service.repositories.shop]\nurl = "https://git.example.org/team/shop"\n'


def service(folder: Path, text: str) -> ServiceOptions:
    """Return what a file of this text sets up."""
    (folder / "turnout.toml").write_text(text)
    return load_settings(directory=folder, environment={"TURNOUT_HOME": str(folder)}).service


def test_a_repository_is_a_place_or_a_table(tmp_path: Path) -> None:
    """A token is named by its variable; only those that say so are pushed to."""
    book = service(
        tmp_path,
        '[service.repositories]\ndocs = "https://git.example.org/docs"\n'
        f'api = {{ path = "{tmp_path}", push = true }}\n'
        f'{SHOP}credential_env = "SHOP_TOKEN"\npush = true\n',
    ).repositories
    assert book.named == {
        "docs": "https://git.example.org/docs",
        "api": str(tmp_path),
        "shop": "https://git.example.org/team/shop",
    }
    assert book.access_of("shop") == RepositoryAccess("SHOP_TOKEN", push=True)
    assert [name for name in book.named if book.may_push(name)] == ["api", "shop"]
    book.check_push("shop")
    for wanted in ("docs", "https://git.example.org/team/shop"):
        with pytest.raises(UsageError, match="pushes no branches"):
            book.check_push(wanted)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('path = "shop"', "Write an absolute path"),
        ('url = "/srv/git/shop"', "Write an absolute path"),
        ("push = true", "either a `url` or a `path`"),
        ('url = "https://a.example.org/a"\npath = "/a"', "either a `url` or a `path`"),
        ('path = "/a"\ncredential_env = "T"', "no https URL"),
        ('url = "http://a.example.org/a"\ncredential_env = "T"', "no https URL"),
        ('url = "ssh://a.example.org/a"\ncredential_env = "T"', "no https URL"),
        ('url = "https://me:pw@a.example.org/a"\ncredential_env = "T"', "`credential_env`"),
        ('url = "https://token@a.example.org/a"', "a user or a password"),
        ('url = "ssh://me:pw@a.example.org/a"', "a user or a password"),
        ('url = "https://a.example.org/a"\npush = true', "no `credential_env`"),
        ('url = "https://a.example.org/a"\ncredential_env = "a token"', "name of a variable"),
        ('url = "https://a.example.org/a"\npsh = true', "service.repositories.shop.psh"),
    ],
)
def test_a_repository_that_cannot_be_reached_so_is_refused(tmp_path, table, why) -> None:
    """Before anything is served; it is said why."""
    with pytest.raises(ConfigError) as refused:
        service(tmp_path, f"[service.repositories.shop]\n{table}\n")
    assert why in f"{refused.value}"
    assert "pw@" not in f"{refused.value}"


def test_a_user_of_ssh_is_no_secret_and_a_place_alone_may_hold_none(tmp_path: Path) -> None:
    """Everybody on the machine can read what git is told."""
    place = "ssh://git@git.example.org/shop"
    text = f'[service.repositories]\nshop = "{place}"\n'
    assert service(tmp_path, text).repositories.located("shop") == place
    with pytest.raises(ConfigError, match="a user or a password"):
        service(tmp_path, text.replace("ssh://git@", "https://me:pw@"))


def test_notifications_are_sent_where_their_secret_is_named(tmp_path: Path) -> None:
    """Never to private networks unless that is said."""
    assert service(tmp_path, "").notify == NotifyOptions("", allow_private=False)
    text = '[service.notify]\nsecret_env = "HOOKS"\nallow_private = true\n'
    assert service(tmp_path, text).notify == NotifyOptions("HOOKS", allow_private=True)
