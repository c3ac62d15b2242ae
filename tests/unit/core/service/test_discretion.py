"""Where things are on this machine is taken out of what others read."""

from turnout.core.service.discretion import discreet


def test_places_are_called_by_their_names() -> None:
    """The longest that fits; what only begins so, and the root of all files, is no such place."""
    hide = discreet({"/srv/shop": "shop", "/srv": "the store", "/": "root", "/srv/shop-2": "two"})
    said = "/srv/shop/.git and /srv/shop. '/srv/shop-2', /srv/shopping; x.org/srv file:///srv"
    told = "shop/.git and shop. 'two', the store/shopping; x.org/srv file://the store"
    assert hide(said) == told


def test_without_places_a_text_stays() -> None:
    """As that of a home at the root of all files."""
    assert discreet({"/": "~"})("/etc/x is gone") == "/etc/x is gone"
