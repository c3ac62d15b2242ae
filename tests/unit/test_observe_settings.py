"""Where traces go, and who reads the metrics."""

from pathlib import Path

import pytest

from turnout.core.observe.options import ObserveOptions
from turnout.errors import ConfigError
from turnout.settings import load_settings

BASE = "OTEL_EXPORTER_OTLP_ENDPOINT"
OWN = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
URL = "http://collector.example.org:4318"


def observe(folder: Path, text: str = "", **environment: str) -> ObserveOptions:
    """Return what is set by a file and an environment."""
    (folder / "turnout.toml").write_text(text)
    return load_settings(environment=environment, directory=folder).observe


def test_nothing_is_sent_anywhere_unless_somebody_says_where(tmp_path: Path) -> None:
    """Nor are words, nor is a provider told of traces."""
    assert observe(tmp_path) == ObserveOptions(resource={"service.name": "turnout"})


def test_the_variables_of_opentelemetry_say_where_traces_go(tmp_path: Path) -> None:
    """One for all signals, to which the path is added, or one for traces, which is whole."""
    assert observe(tmp_path, **{BASE: f"{URL}/"}).traces_url == f"{URL}/v1/traces"
    both = {BASE: URL, OWN: "https://traces.example.org/in"}
    assert observe(tmp_path, **both).traces_url == "https://traces.example.org/in"
    told = observe(
        tmp_path,
        **{
            BASE: URL,
            "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=Bearer%20abc, x-team = blue,odd",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=ours,deployment.environment.name=prod",
        },
    )
    assert told.traces_headers == {"authorization": "Bearer abc", "x-team": "blue"}
    assert told.resource == {"service.name": "ours", "deployment.environment.name": "prod"}
    assert "abc" not in repr(told)
    named = observe(tmp_path, OTEL_SERVICE_NAME="mine", OTEL_RESOURCE_ATTRIBUTES="service.name=no")
    assert named.resource == {"service.name": "mine"}


@pytest.mark.parametrize(
    "off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {BASE: " "}]
)
def test_traces_are_off_where_opentelemetry_is(tmp_path: Path, off: dict[str, str]) -> None:
    """Without a word."""
    options = observe(tmp_path, **{BASE: URL, **off})
    assert (options.traces_url, options.traces_doubt) == (None, "")


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({BASE: URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "speaks http/protobuf"),
        ({BASE: "collector:4317"}, "is not an http or https URL"),
        ({OWN: "http://[bad"}, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not"),
    ],
)
def test_a_place_that_does_not_fit_is_said_and_stops_nothing(
    tmp_path: Path, environment: dict[str, str], said: str
) -> None:
    """It is often set for all programs of a machine."""
    options = observe(tmp_path, **environment)
    assert options.traces_url is None
    assert said in options.traces_doubt


def test_the_table_says_how_much_is_told(tmp_path: Path) -> None:
    """A key is named by its variable, which need not be set for other commands."""
    text = '[observe]\ncontent = true\npropagate = true\nmetrics_key_env = "SCRAPER"\n'
    options = observe(tmp_path, text)
    assert (options.content, options.propagate) == (True, True)
    assert options.metrics_variable == "SCRAPER"
    with pytest.raises(ConfigError, match="observe"):
        observe(tmp_path, '[observe]\nmetrics_key_env = "not a name"\n')
