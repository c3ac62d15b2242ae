from pathlib import Path

import pytest

from turnout.sandbox.mirrors.local import can_be_shown, local_mounts
from turnout.sandbox.mirrors.pip_settings import PackagePlace


def test_an_index_is_shown_with_the_files_that_it_links_to(tmp_path):
    """Files often lie beside the pages; nothing else of the folder above is shown."""
    page = tmp_path / "simple" / "attrs"
    page.mkdir(parents=True)
    (tmp_path / "files").mkdir()
    (tmp_path / "private").mkdir()
    (page / "index.html").write_text('<a href="../../files/attrs-1.whl#sha256=0">attrs</a>')
    mounts = local_mounts([PackagePlace(f"file://{tmp_path}/simple")], [])
    assert [mount.source for mount in mounts] == [f"{tmp_path}/simple", f"{tmp_path}/files"]
    assert all(mount.source == mount.target and not mount.writable for mount in mounts)


@pytest.mark.parametrize("link", ["../../../home/key", "../../.ssh/key", "../../key", "/etc/key"])
def test_a_page_shows_nothing_that_is_not_of_its_index(tmp_path, link):
    """What it links to may have been named by anybody who has uploaded a package."""
    page = tmp_path / "mirror" / "simple" / "attrs"
    for folder in (page, tmp_path / "mirror" / ".ssh", tmp_path / "home"):
        folder.mkdir(parents=True)
    (page / "index.html").write_text(f'<a href="{link}">attrs-1.whl</a>')
    (mount,) = local_mounts([PackagePlace(f"file://{tmp_path}/mirror/simple")], [])
    assert mount.source == f"{tmp_path}/mirror/simple"


def test_folders_are_shown_once(tmp_path):
    """What lies within another one, or is shown anyway, needs no mount."""
    (tmp_path / "wheels" / "more").mkdir(parents=True)
    places = [f"{tmp_path}/wheels", f"{tmp_path}/wheels/more", "/usr/share", f"{tmp_path}/absent"]
    mounts = local_mounts([], map(PackagePlace, places))
    assert [mount.source for mount in mounts] == [f"{tmp_path}/wheels"]


@pytest.mark.parametrize("path", ["/", "relative", "/repo/x", "/venv", "/proc/1", "/etc/pip"])
def test_some_paths_are_taken_inside(path):
    """A sandbox has its own there."""
    assert not can_be_shown(Path(path))
