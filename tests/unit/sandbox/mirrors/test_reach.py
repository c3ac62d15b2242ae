import configparser

import pytest

from turnout.sandbox.base import HostRule
from turnout.sandbox.mirrors.pip_settings import PipSettings, read_settings
from turnout.sandbox.mirrors.reach import Reach, find_reach


def reach_for(**settings: str) -> Reach:
    """Return the reach for settings by their names in a configuration file."""
    return find_reach(read_settings({name.replace("_", "-"): v for name, v in settings.items()}))


def configured(reach: Reach) -> dict[str, str]:
    """Return what pip inside reads."""
    parser = configparser.RawConfigParser()
    parser.read_string(reach.configuration)
    return dict(parser.items("global"))


def test_hosts_that_the_user_names_are_reachable_and_no_others():
    """They may be private, at the ports that their URLs say."""
    reach = reach_for(
        index_url="https://index.example/simple",
        extra_index_url="http://extra.example:8080/simple",
        find_links="https://links.example/page.html",
        trusted_host="extra.example",
    )
    assert reach.obstacle == ""
    assert reach.egress.rules == (
        HostRule("index.example", (443,), private=True),
        HostRule("extra.example", (8080,), private=True),
        HostRule("links.example", (443,), private=True),
    )
    told = configured(reach)
    assert told["index-url"] == "https://index.example/simple"
    assert told["find-links"] == "https://links.example/page.html"
    assert told["trusted-host"] == "extra.example"


def test_credentials_stay_outside():
    """A variable stands for them, which the gate fills with what stands for the secret."""
    reach = reach_for(
        index_url="https://someone:hunter2hunter2@index.example/simple",
        extra_index_url="https://t0ken-t0ken@extra.example/simple",
    )
    assert "hunter2" not in reach.configuration
    assert "t0ken" not in reach.configuration
    assert [(one.variable, one.host, one.value) for one in reach.egress.secrets] == [
        ("TURNOUT_INDEX_1", "index.example", "hunter2hunter2"),
        ("TURNOUT_INDEX_2", "extra.example", "t0ken-t0ken"),
    ]
    told = configured(reach)
    assert told["index-url"] == "https://someone:${TURNOUT_INDEX_1}@index.example/simple"
    assert told["extra-index-url"] == "https://${TURNOUT_INDEX_2}@extra.example/simple"


def test_the_user_s_constraints_go_along(tmp_path):
    """Their text does; the file may lie beside what a sandbox must not see."""
    (tmp_path / "constraints.txt").write_text("attrs<25\n")
    reach = reach_for(index_url="https://a.example", constraint=f"{tmp_path}/constraints.txt")
    assert reach.files["constraints.txt"] == "attrs<25\n\n"
    assert configured(reach)["constraint"].endswith("/constraints.txt")


@pytest.mark.parametrize(
    "settings",
    [
        {"index_url": "https://10.0.0.1/simple"},
        {"index_url": "https://a.example", "proxy": "http://p.example"},
        {"index_url": "https://a.example", "client_cert": "/c.pem"},
        {"index_url": "http://user:password@a.example/simple"},
        {"index_url": "https://a.example", "constraint": "https://b.example/c.txt"},
        {"index_url": "https://a.example", "constraint": "/nonexistent"},
        {"find_links": "/repo/wheels"},
        {"find_links": "wheels"},
        {},
    ],
)
def test_what_a_sandbox_cannot_do_is_said(settings):
    """The host fetches wheels then."""
    assert reach_for(**settings).obstacle


def test_without_an_index_pip_inside_looks_at_links_alone(tmp_path):
    """It would ask its default index otherwise."""
    reach = find_reach(PipSettings(links=read_settings({"find-links": str(tmp_path)}).links))
    assert configured(reach)["no-index"] == "true"
    assert reach.egress.rules == ()
    assert [mount.source for mount in reach.folders] == [str(tmp_path)]
