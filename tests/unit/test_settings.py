"""What users may set: from turnout.toml and the environment, checked, with errors that help."""

from datetime import date
from pathlib import Path

import pytest

from turnout.errors import ConfigError
from turnout.sandbox.testrun import TestPaths
from turnout.settings import (
    ConfigFile,
    Settings,
    endpoint_present,
    find_config,
    gateway_address,
    keys_present,
    load_settings,
    secret_named,
    service_address,
    service_here,
    state_folder,
)

UNKNOWN_MODEL = """
[policy]
pool = ["n"]
[providers.p]
base_url = "http://h/v1"
[[deployments]]
model = "m"
provider = "p"
"""


def load(folder: Path, text: str = "", **environment: str) -> Settings:
    """Return the settings of a folder whose turnout.toml holds this text."""
    if text:
        (folder / "turnout.toml").write_text(text)
    return load_settings(environment=environment, directory=folder)


def test_nothing_set_is_a_good_start(tmp_path: Path) -> None:
    """Every setting has a default."""
    settings = load(tmp_path)
    assert settings.config_file is None
    assert settings.catalog.deployments == ()
    assert settings.endpoint is None
    assert settings.surface == "guide"
    assert settings.colour


def test_every_table_reaches_its_room(tmp_path: Path) -> None:
    """Policy, catalog, agent, sandbox and tests each get their part."""
    settings = load(
        tmp_path,
        """
        [policy]
        objective = "cost"
        pool = ["m"]
        [policy.session]
        max_requests = 3
        [providers.p]
        base_url = "http://127.0.0.1:1/v1"
        api_key_env = "P_KEY"
        [[deployments]]
        model = "m"
        provider = "p"
        tools = "confirmed"
        [agent]
        surface = "shell"
        max_steps = 7
        command_timeout = 9
        [agent.steps.act]
        objective = "cost"
        max_tokens = 10
        [sandbox]
        driver = "container"
        inodes = 5000
        lifetime_hours = 0.5
        memory_mb = 512
        cpus = 1.5
        [tests]
        command = "make test"
        requirements = ["numpy>=2"]
        setup = "make ready"
        patterns = ["qa/"]
        """,
        P_KEY="sesame",
    )
    assert settings.setup == "make ready"
    assert settings.test_paths == TestPaths(("qa/",))
    assert settings.policy.session.max_requests == 3
    assert settings.catalog.deployments[0].id == "p/m"
    assert settings.catalog.providers["p"].api_key == "sesame"
    assert (settings.surface, settings.agent.max_steps) == ("shell", 7)
    assert settings.agent.command_timeout == 9
    assert settings.agent.steps["act"].objective == "cost"
    assert settings.agent.steps["act"].thinking is False
    assert settings.agent.steps["plan"].objective == "quality"
    assert (settings.limits.memory_bytes, settings.limits.cpus) == (512 << 20, 1.5)
    assert settings.limits.pids == 512
    assert (settings.limits.inodes, settings.limits.lifetime_seconds) == (5000, 1800)
    assert (settings.driver, settings.with_driver("none").driver) == ("container", "none")
    assert (settings.test_command, settings.requirements) == ("make test", ("numpy>=2",))


def test_a_server_in_the_sandbox_is_given_what_is_written_and_nothing_of_ours(
    tmp_path: Path,
) -> None:
    """Its environment is for all to read, so no variable of this machine gets there."""
    text = """
        [agent]
        connections = ["tracker/search"]
        [connections.tracker]
        url = "https://tracker.example.org/mcp"
        [[agent.mcp]]
        name = "db"
        command = ["python", "-m", "db_server"]
        env = { MODE = "read" }
        allow = ["query"]
        timeout = 5
        """
    (server,) = load(tmp_path, text, DB_TOKEN="s3cret", HOME="/home/ada").agent.mcp
    assert (server.name, server.command) == ("db", ("python", "-m", "db_server"))
    assert (server.environment, server.allow, server.timeout) == ({"MODE": "read"}, ("query",), 5)
    with pytest.raises(ConfigError, match="a name of its own"):
        load(tmp_path, text.replace('name = "db"', 'name = "tracker"'))


@pytest.mark.parametrize("written", ["2026-10-01", '"2026-10-01"'])
def test_the_date_of_a_quality_may_be_text(tmp_path: Path, written: str) -> None:
    """As a date of TOML and as words."""
    quality = f'quality = {{coding = {{value = 0.6, source = "x", date = {written}}}}}'
    settings = load(tmp_path, UNKNOWN_MODEL.replace('["n"]', "[]") + quality)
    (stated,) = settings.catalog.deployments[0].quality.values()
    assert stated.on == date(2026, 10, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[agnet]\n", "`agnet` is no key. Did you mean `agent`?"),
        ("[agent]\nmax_step = 3\n", "`agent.max_step` is no key. Did you mean `max_steps`?"),
        ("[agent]\nmax_steps = 0\n", "`agent.max_steps` must be"),
        ('[agent]\nsurface = "big"\n', "`agent.surface` is 'big'."),
        ("[agent.steps.act]\nmax_token = 3\n", "`agent.steps.act.max_token` is no key."),
        ("[agent.tool_steps.aply_patch]\n", "Did you mean `apply_patch`?"),
        ('[agent]\nconnections = ["a/b"]\n', "'a', which is no connection. Write a table"),
        ('[[agent.mcp]]\nname = "a__b"\ncommand = ["x"]\n', "`agent.mcp[0].name` must be letters"),
        ('[[agent.mcp]]\nname = ""\ncommand = ["x"]\n', "`agent.mcp[0].name` must be letters"),
        (
            '[[agent.mcp]]\nname = "a"\ncommand = "python"\n',
            '`agent.mcp[0].command` must be a list, such as ["python"].',
        ),
        ('[[agent.mcp]]\nname = "a"\ncommand = []\n', "`agent.mcp[0].command` must not be empty."),
        ('[connections.a]\ncommand = ["x"]\nenv = {"a b" = "x"}\n', "the name of a variable"),
        ('[tests]\ncommand = ""\n', "`tests.command` must not be empty."),
        ("[tests]\ncommand = 1\n", "`tests.command` must be text."),
        ('[[deployments]]\nmodel = "m"\nprovider = "p"\n', "Add `[providers.p]` with its"),
        ('[[agent.mcp]]\nname = "a"\n', "`agent.mcp[0].command`"),
        ('[[agent.mcp]]\nname = "a"\ncommand = ["x"]\ntimeout = 121\n', "`agent.mcp[0].timeout`"),
        (2 * '[[agent.mcp]]\nname = "a"\ncommand = ["x"]\n', "'a' of `agent.mcp` is not the only"),
        ('[sandbox]\nmemory_mb = "1"\n', "`sandbox.memory_mb` must be"),
        ("[policy]\nobjectiv = 1\n", "`policy.objectiv` is no key."),
        ('[sandbox]\ndriver = "docker"\n', "`sandbox.driver` is 'docker'."),
        ('[sandbox]\ndriver = "none"\n', "`turnout run --sandbox none`"),
        ('[policy.egress]\nallow = ["10.0.0.1"]\n', "cannot be allowed: it is an address"),
        (UNKNOWN_MODEL, "no deployment has"),
        (
            f'{UNKNOWN_MODEL}quality.coding = {{ value = 1.0, source = "x", date = "May" }}',
            "must be a date, such as 2026-10-01",
        ),
        ("[agent\n", "not valid TOML"),
    ],
)
def test_a_wrong_key_is_named_with_its_table_and_file(tmp_path: Path, text: str, said: str) -> None:
    """A user can find the line."""
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, text)
    assert said in str(caught.value)
    assert str(tmp_path / "turnout.toml") in str(caught.value)


def test_a_named_file_wins_over_that_of_the_folder(tmp_path: Path) -> None:
    """First --config, then TURNOUT_CONFIG, then the current directory."""
    for name, steps in (("turnout.toml", 1), ("a.toml", 2), ("b.toml", 3)):
        (tmp_path / name).write_text(f"[agent]\nmax_steps = {steps}\n")
    assert load(tmp_path).agent.max_steps == 1
    assert load(tmp_path, TURNOUT_CONFIG="a.toml").agent.max_steps == 2
    both = load_settings(
        config=Path("b.toml"), environment={"TURNOUT_CONFIG": "a.toml"}, directory=tmp_path
    )
    assert both.agent.max_steps == 3


def test_a_file_is_found_without_being_looked_into(tmp_path: Path) -> None:
    """Whether it may be trusted is asked before anything in it can fail."""
    assert find_config(environment={}, directory=tmp_path) is None
    (tmp_path / "turnout.toml").write_text("not [TOML")
    lying = find_config(environment={}, directory=tmp_path)
    assert lying == ConfigFile(tmp_path / "turnout.toml", named=False)
    named = find_config(environment={"TURNOUT_CONFIG": "turnout.toml"}, directory=tmp_path)
    assert named == ConfigFile(tmp_path / "turnout.toml", named=True)


def test_what_a_sandbox_may_reach_is_the_policys(tmp_path: Path) -> None:
    """Rules become those of the proxy; the value of a secret comes from the environment."""
    text = """
        [policy.egress]
        allow = ["Example.org", "*.example.net:8443"]
        private = ["mirror.corp.example"]
        packages = true
        [policy.egress.secrets.TOKEN]
        host = "example.org"
        env = "MY_TOKEN"
        """
    settings = load(tmp_path, text, MY_TOKEN="sesame")
    assert settings.policy.egress.packages
    assert [(rule.host, rule.private) for rule in settings.egress.rules] == [
        ("example.org", False),
        ("*.example.net", False),
        ("mirror.corp.example", True),
    ]
    (secret,) = settings.egress.secrets
    assert (secret.variable, secret.host, secret.value) == ("TOKEN", "example.org", "sesame")
    assert "sesame" not in repr(settings)


def test_an_unset_key_is_no_error_yet(tmp_path: Path) -> None:
    """Commands that ask no model work without it."""
    text = UNKNOWN_MODEL.replace('["n"]', "[]").replace('/v1"', '/v1"\napi_key_env = "P_KEY"')
    assert load(tmp_path, text).catalog.providers["p"].unset_key == "P_KEY"


def test_no_folder_above_is_searched(tmp_path: Path) -> None:
    """A repository cannot configure the host by lying around it."""
    (tmp_path / "turnout.toml").write_text("[agent]\nmax_steps = 1\n")
    (tmp_path / "inner").mkdir()
    assert load(tmp_path / "inner").agent.max_steps is None


def test_a_named_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It is not passed over in silence."""
    with pytest.raises(ConfigError, match=r"no configuration file .*missing\.toml"):
        load_settings(config=Path("missing.toml"), environment={}, directory=tmp_path)


def test_an_endpoint_by_environment_alone(tmp_path: Path) -> None:
    """Two variables are enough; the key is never shown."""
    settings = load(tmp_path, LLM_BASE_URL=" http://h:1/v1/ ", LLM_API_KEY="sesame")
    assert settings.endpoint.base_url == "http://h:1/v1"
    assert settings.endpoint.model is None
    assert "sesame" not in repr(settings)


@pytest.mark.parametrize("url", ["localhost:8000", "ftp://h/v1", "http://"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    """The error shows a right one."""
    with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:8000/v1"):
        endpoint_present({"LLM_BASE_URL": url})


@pytest.mark.parametrize(
    ("url", "local"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.0.0.9:1/v1", True),
        ("http://[::1]:1/v1", True),
        ("https://localhost.example/v1", False),
        ("http://10.0.0.1/v1", False),
    ],
)
def test_only_this_machine_counts_as_free(url: str, local: bool) -> None:
    """Elsewhere, trying every model might cost money."""
    assert endpoint_present({"LLM_BASE_URL": url}).local is local


def test_the_state_folder_follows_the_environment() -> None:
    """TURNOUT_HOME wins over every default."""
    assert state_folder({"TURNOUT_HOME": "/srv/t", "XDG_STATE_HOME": "/x"}) == Path("/srv/t")


def test_provider_keys_are_told_by_name() -> None:
    """An empty variable is none."""
    found = keys_present({"DEEPSEEK_API_KEY": "sesame", "OPENAI_API_KEY": ""})
    assert [key.provider for key in found] == ["deepseek"]
    assert "sesame" not in repr(found)


def test_a_named_secret_must_be_set() -> None:
    """A gateway is never opened with an empty key."""
    assert secret_named("TEAM_KEY", {"TEAM_KEY": "sesame"}) == "sesame"
    with pytest.raises(ConfigError, match=r"is not set.*Set TEAM_KEY to the key that callers send"):
        secret_named("TEAM_KEY", {"TEAM_KEY": ""}, what="the key that callers send")


def test_a_pinned_model_reaches_every_step_and_the_endpoint(tmp_path: Path) -> None:
    """One option pins the whole run."""
    settings = load(tmp_path, LLM_BASE_URL="http://h/v1").with_model("m")
    assert {step.model for step in settings.agent.steps.values()} == {"m"}
    assert settings.endpoint.model == "m"


def test_host_programs_learn_only_what_they_need(tmp_path: Path) -> None:
    """A model key is never handed to git."""
    settings = load(tmp_path, PATH="/bin", HOME="/h", LLM_API_KEY="sesame", GIT_DIR="/x")
    assert settings.host_environment == {"PATH": "/bin", "HOME": "/h"}


def test_a_service_works_on_what_is_listed(tmp_path: Path) -> None:
    """By name, wherever it is; relative places would depend on where the service is started."""
    (tmp_path / "there").symlink_to(tmp_path)
    text = f"""
[service]
servers = ["git.example.org/team"]
workers = 3
per_project = 1
[service.repositories]
shop = "{tmp_path}/there"
api = "ssh://git.example.org/api"
"""
    service = load(tmp_path, text).service
    named = {"shop": str(tmp_path), "api": "ssh://git.example.org/api"}
    assert (service.repositories.named, service.workers, service.per_project) == (named, 3, 1)
    assert service.repositories.servers == ("git.example.org/team",)
    assert load(tmp_path, "[agent]").service.repositories.named == {}


@pytest.mark.parametrize(
    "wrong",
    [
        '[service.repositories]\nshop = "../shop"',
        '[service.repositories]\n"a/b" = "/srv/b"',
        '[service]\nservers = ["https://git.example.org"]',
        "[service]\nworkers = 0",
    ],
)
def test_a_repository_that_nobody_could_name_is_told_at_once(tmp_path: Path, wrong: str) -> None:
    """Before anything is served."""
    with pytest.raises(ConfigError, match="service"):
        load(tmp_path, wrong)


FORGE = """
[service.forges.hub]
kind = "github"
api = "https://git.example.org/api/v3/"
secret_env = "HUB_SECRET"
token_env = "HUB_TOKEN"
key = "hub"
repositories = { "acme/shop" = "shop" }
"""


def test_a_forge_starts_runs_on_the_repositories_that_are_listed(tmp_path: Path) -> None:
    """Its secrets are known by the names of their variables alone."""
    forge = load(tmp_path, FORGE).service.forges["hub"]
    assert (forge.api, forge.starters) == ("https://git.example.org/api/v3", "write")
    assert (forge.secret_variable, forge.token_variable) == ("HUB_SECRET", "HUB_TOKEN")
    assert (forge.path_of("shop"), forge.path_of("other")) == ("acme/shop", None)
    assert load(tmp_path, "[agent]").service.forges == {}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('kind = "github"', 'kind = "svn"'),
        ("https://git.example.org/api/v3/", "git.example.org"),
        ("https://git.example.org/api/v3/", "https://me:pw@git.example.org/api/v3"),
        ('"HUB_TOKEN"', '"ghp_0123456789abcdefghijklmnopqrstuvwxyz"'),
        ('"HUB_SECRET"', '"not a name"'),
        ('"acme/shop"', '"shop"'),
        ('"acme/shop"', '"acme/../admin"'),
        ('"acme/shop"', '"acme/group/shop"'),
        ('{ "acme/shop" = "shop" }', "{}"),
        ('{ "acme/shop" = "shop" }', '{ "acme/shop" = "shop", "acme/other" = "shop" }'),
        ("forges.hub", 'forges."a b"'),
        ('key = "hub"', 'key = "hub"\nlabel = "x"\nreview_label = "x"'),
        ('key = "hub"', 'key = "hub"\nstarters = "none"'),
        ('key = "hub"', ""),
    ],
)
def test_a_forge_that_cannot_be_is_refused(tmp_path: Path, right: str, wrong: str) -> None:
    """By a sentence that names the key and repeats no secret."""
    text = FORGE.replace(right, wrong)
    assert text != FORGE
    with pytest.raises(ConfigError, match=r"service\.forges") as caught:
        load(tmp_path, text)
    assert "ghp_" not in str(caught.value)
    assert "pw" not in str(caught.value)


def test_the_service_that_is_asked_is_named_by_option_or_environment() -> None:
    """The option counts more; the key comes from the environment alone."""
    environment = {"TURNOUT_SERVER": "http://a.example.org/v1", "TURNOUT_API_KEY": "k"}
    found = service_address(None, environment)
    assert found is not None
    assert (found.base_url, found.key) == ("http://a.example.org", "k")
    assert "k'" not in repr(found)
    other = service_address("http://b.example.org", environment)
    assert other is not None
    assert other.base_url == "http://b.example.org"
    assert service_address(None, {}) is None
    with pytest.raises(ConfigError, match="TURNOUT_SERVER must be"):
        service_address(None, {"TURNOUT_SERVER": "ftp://x"})
    here = service_here(environment)
    assert (here.base_url, here.key) == ("http://127.0.0.1:8700", "k")


def test_the_gateway_of_workers_is_named_by_the_environment_alone() -> None:
    """With its key; where none is named there is none."""
    key = "TURNOUT_GATEWAY_KEY"
    found = gateway_address({"TURNOUT_GATEWAY": "https://t.example.org/v1", key: "k"})
    assert found is not None
    assert (found.base_url, found.key) == ("https://t.example.org", "k")
    assert gateway_address({key: "k"}) is None
    with pytest.raises(ConfigError, match="TURNOUT_GATEWAY must be"):
        gateway_address({"TURNOUT_GATEWAY": "t.example.org"})


def test_checkpoints_are_shared_where_machines_may_be_several(tmp_path: Path) -> None:
    """By default with PostgreSQL; in a folder, or not at all, where that is set."""
    remote = {"TURNOUT_DATABASE": "postgresql://db.example.org/turnout"}
    assert not load(tmp_path, "[agent]").shares_checkpoints
    assert load(tmp_path, **remote).shares_checkpoints
    assert not load(tmp_path, '[service]\ncheckpoints = "local"', **remote).shares_checkpoints
    assert load(tmp_path, '[service]\ncheckpoints = "database"').shares_checkpoints
    there = load(tmp_path, '[service]\ncheckpoints = "/mnt/turnout"\ncheckpoint_mb = 2')
    options = there.service.checkpoints
    assert (there.shares_checkpoints, options.folder, options.most_bytes) == (
        *(True, Path("/mnt/turnout")),
        2 << 20,
    )
    with pytest.raises(ConfigError, match="checkpoints"):
        load(tmp_path, '[service]\ncheckpoints = "mnt/turnout"')


@pytest.mark.parametrize(
    ("given", "mend"),
    [
        ("127.0.0.1:8700", "Write it as http://127.0.0.1:8700."),
        ("runs.example.org", "Write it as http://runs.example.org."),
        ("ftp://x", "Write it as http://127.0.0.1:8700."),
        ("http://u:secret@x", "Write it as http://127.0.0.1:8700."),
        ("u:secret@x", "Write it as http://127.0.0.1:8700."),
    ],
)
def test_the_address_of_a_service_that_is_none_is_told_with_one(given: str, mend: str) -> None:
    """One example, of a service; what may be a secret is not repeated."""
    with pytest.raises(ConfigError) as error:
        service_address(given, {})
    assert error.value.mend == mend
    assert "example" not in error.value.message
    assert "secret" not in str(error.value)
