from turnout.sandbox.base import HostRule
from turnout.sandbox.mirrors.npm_settings import NpmSettings
from turnout.sandbox.mirrors.packages import egress_for
from turnout.sandbox.mirrors.pip_settings import PackagePlace, PipSettings, read_settings

FILES = HostRule("files.example", (443,), private=True)
PIP = read_settings(
    {
        "index-url": "https://someone:hunter2@index.example/simple",
        "extra-index-url": "http://10.0.0.1/simple http://extra.example:8080/simple",
        "find-links": "/srv/wheels https://links.example/",
        "trusted-host": "extra.example:8080",
        "cert": "/etc/own.pem",
    }
)
NPM = NpmSettings(
    PackagePlace("https://token:x@npm.example/"),
    scoped=(("@mine", PackagePlace("https://mine.example/")),),
    certificates="/etc/npm.pem",
)


def test_a_run_reaches_the_mirrors_of_the_user_without_his_credentials():
    """Their names, their ports, and what pip and npm have to be told."""
    egress = egress_for(PIP, NPM, [FILES])
    assert [(rule.host, rule.ports) for rule in egress.rules] == [
        ("index.example", (443,)),
        ("extra.example", (8080,)),
        ("links.example", (443,)),
        ("files.example", (443,)),
        ("npm.example", (443,)),
        ("mine.example", (443,)),
    ]
    variables = dict(egress.variables)
    assert variables["PIP_INDEX_URL"] == "https://index.example/simple"
    assert variables["PIP_EXTRA_INDEX_URL"] == "http://extra.example:8080/simple"
    assert variables["PIP_FIND_LINKS"] == "https://links.example/"
    assert variables["PIP_TRUSTED_HOST"] == "extra.example:8080"
    assert variables["NPM_CONFIG_REGISTRY"] == "https://npm.example/"
    assert egress.secrets == ()
    assert egress.ca_files == ("/etc/own.pem", "/etc/npm.pem")
    assert "packages" in egress.setting


def test_without_npm_there_is_pip_alone():
    """And an index that has no name, or is a folder, is left out."""
    local = PipSettings((PackagePlace("file:///srv/simple"), PackagePlace("https://127.0.0.1/")))
    egress = egress_for(local, None, [])
    assert egress.rules == ()
    assert not {"PIP_INDEX_URL", "NPM_CONFIG_REGISTRY"} & dict(egress.variables).keys()
