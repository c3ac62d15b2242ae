import pytest

from turnout.sandbox.mirrors.pip_settings import (
    PackagePlace,
    ask_pip,
    merged,
    read_settings,
)

LISTING = """\
:env:.default-timeout='60'
:env:.extra-index-url='https://extra.example/simple'
global.cert='/etc/ssl/own.pem'
global.extra-index-url='file:///srv/simple\\nhttps://other.example/simple'
global.index-url='https://global.example/simple'
global.trusted-host='a.example b.example:8443'
install.index-url='https://user:pa%40ss@index.example:8443/simple/'
install.no-binary='numpy'
download.index-url='https://download.example/simple'
freeze.timeout='10'
no setting at all
global.broken=oops(
"""


def test_settings_of_installing_count_in_pip_s_own_order():
    """Global ones, those of `install`, those of the environment; what is of other commands not."""
    settings = read_settings(merged(LISTING))
    assert [place.bare for place in settings.indexes] == [
        "https://index.example:8443/simple/",
        "https://extra.example/simple",
    ]
    assert settings.trusted == ("a.example", "b.example:8443")
    assert settings.certificates == "/etc/ssl/own.pem"
    assert settings.others == (("default-timeout", "60"), ("no-binary", "numpy"))
    assert not settings.proxy


def test_an_index_is_known_by_its_parts():
    """Host, port, credentials and the URL without them."""
    place = PackagePlace("https://user:pa%40ss@Index.Example:8443/simple/")
    assert (place.host, place.port, place.encrypted) == ("index.example", 8443, True)
    assert place.credentials == ("user", "pa@ss")
    assert place.bare == "https://Index.Example:8443/simple/"
    assert "pa%40ss" not in repr(place)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        ("file:///srv/my%20wheels", "/srv/my wheels"),
        ("/srv/wheels", "/srv/wheels"),
        ("https://index.example/simple", ""),
        ("https://[::bad/simple", ""),
        ("https://index.example:port/simple", ""),
    ],
)
def test_a_local_place_has_a_folder_and_no_host(url, folder):
    """URLs that make no sense are neither."""
    place = PackagePlace(url)
    assert place.folder == folder
    assert not (place.folder and place.host)


@pytest.mark.parametrize("value", ["1", "true", "Yes"])
def test_indexes_may_be_switched_off(value):
    """Then links are all there is."""
    told = {
        "no-index": value,
        "index-url": "https://a.example",
        "find-links": "/a https://b.example",
    }
    settings = read_settings(told)
    assert settings.indexes == ()
    assert [place.url for place in settings.links] == ["/a", "https://b.example"]


async def test_the_pip_of_this_python_says_where_packages_come_from():
    """There is an index or a folder, whatever this machine is told."""
    settings = await ask_pip()
    assert settings.places
    assert all(place.host or place.folder for place in settings.places)
