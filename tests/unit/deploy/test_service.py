"""What `deploy/` ships of the service agrees with the code: commands, ports, probes, variables."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from starlette.testclient import TestClient
from tests.house.sources import ROOT

from turnout.cli.gateway.service import command as serve
from turnout.gateway.app import health_app
from turnout.runs.durable.engine import Pace
from turnout.settings import load_settings

SERVICE: Final = ROOT / "deploy" / "service"
RECIPE = (SERVICE / "Containerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
COMPOSE = yaml.safe_load((SERVICE / "compose.yaml").read_text())
MANIFESTS = [
    one for one in yaml.safe_load_all((ROOT / "deploy/kubernetes/service.yaml").read_text()) if one
]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
SOURCES = (ROOT / "src/turnout/settings/environment.py").read_text()
PORT: Final = 8700


def unit(path: Path) -> dict[str, list[str]]:
    """Return what a unit file sets, a list by each key; sections do not matter here."""
    found: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(key, []).append(value)
    return found


def deployments() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the containers of the Deployments, by name, and the pod of each."""
    for one in MANIFESTS:
        if one["kind"] == "Deployment":
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def served(words: list[str]) -> dict[str, Any]:
    """Return the options of `turnout serve` that a command line gives; it must be one."""
    assert words[0] == "serve"
    with serve.make_context("serve", list(words[1:])) as context:
        return dict(context.params)


def commands() -> dict[str, list[str]]:
    """Return every command line that is shipped, by where it is."""
    found = {name: one["command"] for name, one in COMPOSE["services"].items() if "command" in one}
    found |= {name: pod["containers"][0]["args"] for name, pod in deployments()}
    for path in UNITS:
        words = unit(path)["ExecStart"][0].split()
        assert words[0] == "/opt/turnout/bin/turnout"
        found[path.name] = words[1:]
    (default,) = re.findall(r"^CMD \[(.+)\]$", RECIPE, re.MULTILINE)
    return found | {"Containerfile": re.findall(r'"([^"]+)"', default)}


@pytest.mark.parametrize("where", sorted(commands()))
def test_every_command_that_is_shipped_is_one(where: str) -> None:
    """Its options exist, and others reach what listens for them."""
    options = served(commands()[where])
    assert options["port"] == PORT
    assert options["roles"]
    contained = not where.endswith(".service")
    assert options["host"] == ("0.0.0.0" if contained else "127.0.0.1")


def test_every_role_is_played() -> None:
    """By compose and by the manifests alike, each by somebody."""
    for lines in (
        [one["command"] for one in COMPOSE["services"].values() if "command" in one],
        [pod["containers"][0]["args"] for _, pod in deployments()],
    ):
        roles = [served(line)["roles"] for line in lines]
        assert frozenset().union(*roles) == {"api", "gateway", "worker"}
        assert sum(map(len, roles)) == 3


def test_what_is_asked_whether_it_lives_is_served() -> None:
    """The paths of every probe, on the port that is open."""
    asked = set(re.findall(r"http://127\.0\.0\.1:8700(/\w+)", RECIPE))
    for _, pod in deployments():
        (container,) = pod["containers"]
        probes = [container[f"{name}Probe"] for name in ("liveness", "readiness", "startup")]
        assert {probe["httpGet"]["port"] for probe in probes} == {"http"}
        asked |= {probe["httpGet"]["path"] for probe in probes}
    assert asked == {"/healthz", "/readyz"}
    client = TestClient(health_app(lambda: False))
    assert client.get("/healthz").status_code == 200
    assert client.get("/readyz").status_code == 503


def test_ports_agree() -> None:
    """Of the image, of compose, of containers, of the Service and of the policy."""
    assert re.findall(r"^EXPOSE (\d+)$", RECIPE, re.MULTILINE) == [str(PORT)]
    assert COMPOSE["services"]["front"]["ports"] == [f"127.0.0.1:{PORT}:{PORT}"]
    for _, pod in deployments():
        assert pod["containers"][0]["ports"] == [{"name": "http", "containerPort": PORT}]
    (service,) = (one for one in MANIFESTS if one["kind"] == "Service")
    assert service["spec"]["ports"] == [{"name": "http", "port": PORT, "targetPort": "http"}]
    (policy,) = (one for one in MANIFESTS if one["kind"] == "NetworkPolicy")
    assert policy["spec"]["ingress"] == [{"ports": [{"protocol": "TCP", "port": PORT}]}]
    front = dict(deployments())["turnout-front"]
    assert front is not None
    for chosen in (service["spec"]["selector"], policy["spec"]["podSelector"]["matchLabels"]):
        assert chosen["app.kubernetes.io/component"] == "front"


def test_a_worker_finds_its_front() -> None:
    """By the name that compose and the cluster give it."""
    worker = COMPOSE["services"]["worker"]["environment"]
    assert worker["TURNOUT_GATEWAY"] == f"http://front:{PORT}"
    pod = dict(deployments())["turnout-worker"]
    variables = {one["name"]: one.get("value") for one in pod["containers"][0]["env"]}
    (service,) = (one["metadata"] for one in MANIFESTS if one["kind"] == "Service")
    named = f"http://{service['name']}.{service['namespace']}.svc:{PORT}"
    assert variables["TURNOUT_GATEWAY"] == named


def test_every_variable_that_is_set_is_read() -> None:
    """A misspelt one would be passed over in silence."""
    named = set(re.findall(r"\b(TURNOUT_[A-Z_]+)\b", RECIPE))
    for service in COMPOSE["services"].values():
        named |= {name for name in service.get("environment", {}) if name.startswith("TURNOUT_")}
    for _, pod in deployments():
        named |= {one["name"] for one in pod["containers"][0]["env"]}
    for path in UNITS:
        named |= {value.partition("=")[0] for value in unit(path)["Environment"]}
    assert named == {
        "TURNOUT_DATABASE",
        "TURNOUT_GATEWAY",
        "TURNOUT_GATEWAY_KEY",
        "TURNOUT_HOME",
    }
    assert all(f'"{name}"' in SOURCES for name in named)


def test_whoever_stops_a_process_waits_for_its_calls() -> None:
    """Longer than the calls under way have."""
    patience = [pod["terminationGracePeriodSeconds"] for _, pod in deployments()]
    patience += [
        int(one["stop_grace_period"].removesuffix("s"))
        for one in COMPOSE["services"].values()
        if "stop_grace_period" in one
    ]
    patience += [int(unit(path)["TimeoutStopSec"][0]) for path in UNITS]
    assert len(patience) == 6
    assert min(patience) >= Pace().grace + 10
    assert {unit(path)["KillMode"][0] for path in UNITS} == {"mixed"}
    assert re.search(r"^STOPSIGNAL SIGTERM$", RECIPE, re.MULTILINE)


def test_the_settings_that_are_shipped_are_settings(tmp_path: Path) -> None:
    """Those of compose and those of the ConfigMap."""
    (config,) = (one for one in MANIFESTS if one["kind"] == "ConfigMap")
    for text in ((SERVICE / "turnout.toml").read_text(), config["data"]["turnout.toml"]):
        (tmp_path / "turnout.toml").write_text(text)
        settings = load_settings(environment={}, directory=tmp_path)
        assert settings.service.repositories.servers == ("git.example.org/team",)
    assert settings.driver == "kubernetes"


def test_the_recipe_agrees_with_the_project() -> None:
    """Its extras exist, what is copied is all that a build needs, and it runs without rights."""
    (named,) = re.findall(r"'/src\[([a-z,]+)\]'", RECIPE)
    assert set(named.split(",")) <= set(PROJECT["optional-dependencies"])
    copied = {
        name
        for line in re.findall(r"^COPY (?!--)(.+) \S+$", RECIPE, re.MULTILINE)
        for name in line.split()
    }
    assert copied == {"pyproject.toml", PROJECT["readme"], *PROJECT["license-files"], "src"}
    ignored = (SERVICE / "Containerfile.dockerignore").read_text()
    assert {line[1:] for line in ignored.splitlines() if line.startswith("!")} == copied
    assert re.search(r"^USER 10001$", RECIPE, re.MULTILINE)
    images = {COMPOSE["services"][name]["image"] for name in ("front", "worker")}
    images |= {pod["containers"][0]["image"] for _, pod in deployments()}
    assert images == {"turnout"}


def test_no_secret_is_written_into_a_file() -> None:
    """Each comes from a variable, a file that is not shipped, or the cluster's secrets."""
    for _, pod in deployments():
        for one in pod["containers"][0]["env"]:
            assert ("valueFrom" in one) == (one["name"] != "TURNOUT_GATEWAY")
    password = COMPOSE["services"]["database"]["environment"]["POSTGRES_PASSWORD"]
    assert password.startswith("${TURNOUT_DB_PASSWORD:?")


def test_the_recipes_make_the_keys_between_the_front_and_the_workers() -> None:
    """The front is shut until then; a worker without its key ends."""
    composed = (SERVICE / "README.md").read_text()
    manifests = (ROOT / "deploy/kubernetes/README.md").read_text()
    for page, steps in (
        (composed, ("up --detach database front", "keys create workers", "up --detach\n")),
        (manifests, ("rollout status deploy/turnout-front", "keys create workers", "restart")),
    ):
        places = [page.index(step) for step in steps]
        assert places == sorted(places)
        assert "turnout keys create workers --role worker" in page
        assert "turnout keys create me --role approver" in page


def test_one_container_is_given_what_the_workers_of_compose_are() -> None:
    """The same leave for its sandboxes, the same port, a longer patience than its calls have."""
    page = (SERVICE / "README.md").read_text()
    (line,) = re.findall(r"^podman run (.+?[^\\])\n", page, re.MULTILINE | re.DOTALL)
    leave = COMPOSE["services"]["worker"]["security_opt"]
    assert re.findall(r"--security-opt (\S+)", line) == leave
    assert re.findall(r"-p (\S+)", line) == COMPOSE["services"]["front"]["ports"]
    (patience,) = re.findall(r"--stop-timeout (\d+)", line)
    assert int(patience) >= Pace().grace + 10


def test_the_pages_lead_to_every_unit() -> None:
    """Each says what must be there before it starts."""
    page = (ROOT / "docs/howto/deploy.md").read_text()
    for path in UNITS:
        assert f"(../../deploy/systemd/{path.name})" in page
        assert "/etc/turnout/turnout.toml must be there" in path.read_text()
    set_there = unit(ROOT / "deploy/systemd/turnout.service")
    for said in (
        f"-E {set_there['Environment'][0]} ",
        f"-p EnvironmentFile={set_there['EnvironmentFile'][0]} ",
        f"-p User={set_there['User'][0]} ",
    ):
        assert said in page
