"""Providers and deployments become a catalog, or an error that names the key and the mend."""

import tomllib
from datetime import date

import pytest

from turnout.core.money import Price, PriceTier
from turnout.errors import ConfigError
from turnout.gateway.catalog import Account, Catalog, Deployment, Provider, StatedQuality
from turnout.gateway.config.catalog_file import parse_catalog

PROVIDER = '[providers.acme]\nbase_url = "https://acme.test/v1/"\n'
WHOLE = (
    PROVIDER
    + """
api_key_env = "ACME_KEY"
connect_timeout = 2
idle_timeout = 30.5
shape = "responses"
key_header = "api-key"
headers = {X-Team = "agents"}
account = {kind = "azure", api_version = "2026-01-01"}
region = "westeurope"
labels = ["eu", "hipaa"]
exact_path = true
[[deployments]]
model = "strong"
provider = "acme"
name = "vendor/strong-1"
price.input_usd = "0.27"
price.output_usd = "1.10"
price.cache_read_usd = "0.07"
price.cache_write_usd = 1
price.tiers = [
    {above = 200000, input_usd = "0.54", output_usd = "1.65"},
    {above = 500000, input_usd = 1, output_usd = 3, cache_read_usd = "0.1"},
]
context_window = 128000
max_output = 8000
tools = "confirmed"
enforces_tool_choice = false
calls_in_text = true
json_schema = false
thinking = {on = {effort = "high"}, off = {template = {think = false}}}
profile = "repair"
quality = {coding = {value = 0.62, source = "x", sample_size = 50, date = 2026-10-01}}
modalities = ["image", "file"]
caching = "automatic"
reasoning_field = "reasoning"
reasoning_back = true
max_tokens_field = "max_completion_tokens"
leaves_out = ["temperature"]
region = "eu-2"
labels = ["trial"]
ttft_ms = 300
tokens_per_second = 80
"""
)


def parse(toml: str, price: Price | None = None, **variables: str) -> Catalog:
    """Parse a file with the given variables set."""
    return parse_catalog(tomllib.loads(toml), variables.get, lambda *_: price)


def test_every_key_of_the_tables_is_read() -> None:
    """The example holds each key once."""
    catalog = parse(WHOLE, ACME_KEY=" sk-1\n")
    assert catalog.providers == {
        "acme": Provider(
            "acme",
            "https://acme.test/v1",
            "sk-1",
            2.0,
            30.5,
            shape="responses",
            key_header="api-key",
            headers={"X-Team": "agents"},
            account=Account("azure", {"api_version": "2026-01-01"}),
            region="westeurope",
            labels=frozenset({"eu", "hipaa"}),
            exact_path=True,
        )
    }
    assert catalog.deployments == (
        Deployment(
            id="acme/strong",
            model="strong",
            provider="acme",
            upstream_name="vendor/strong-1",
            price=Price(
                270_000,
                1_100_000,
                70_000,
                1_000_000,
                (
                    PriceTier(200_000, Price(540_000, 1_650_000)),
                    PriceTier(500_000, Price(1_000_000, 3_000_000, 100_000)),
                ),
            ),
            context_window=128_000,
            max_output=8_000,
            tools="confirmed",
            enforces_tool_choice=False,
            calls_in_text=True,
            json_schema=False,
            thinking_on={"effort": "high"},
            thinking_off={"template": {"think": False}},
            profile="repair",
            quality={"coding": StatedQuality(0.62, "x", 50, date(2026, 10, 1))},
            modalities=frozenset({"image", "file"}),
            caching="automatic",
            reasoning_field="reasoning",
            reasoning_back=True,
            max_tokens_field="max_completion_tokens",
            leaves_out=frozenset({"temperature"}),
            region="eu-2",
            labels=frozenset({"trial"}),
            stated_ttft_ms=300.0,
            stated_tokens_per_second=80.0,
        ),
    )


def test_what_is_left_out_is_unknown() -> None:
    """No figure is made up; the list price fills in where there is one."""
    toml = f'{PROVIDER}[[deployments]]\nmodel = "m"\nprovider = "acme"'
    (bare,) = parse(toml).deployments
    assert bare == Deployment("acme/m", "m", "acme", "m")
    assert parse(toml, Price(1, 2)).deployments[0].price == Price(1, 2)


@pytest.mark.parametrize(
    "key",
    ["sk-1234567890", "gsk_abcdefghijklmnop", "AKIAABCDEFGHIJKLMNOP", f"{'ab12' * 10}", "a b"],
)
def test_a_key_in_place_of_its_variable_is_refused_and_never_printed(key: str) -> None:
    """What was pasted at the wrong place must not end up in a log too."""
    with pytest.raises(ConfigError, match="must name the variable that holds the key") as refusal:
        parse(f'{PROVIDER}api_key_env = "{key}"')
    assert key not in str(refusal.value)


@pytest.mark.parametrize(
    "name", ["ACME_KEY", "acme_key_2", "_K", "SK_OF_TEAM_2_FOR_EVERYTHING_ELSE"]
)
def test_what_names_a_variable_is_taken(name: str) -> None:
    """However it is written."""
    assert parse(f'{PROVIDER}api_key_env = "{name}"').providers["acme"].unset_key == name


def test_other_tables_are_not_this_rooms_business() -> None:
    """The whole file may be handed in."""
    assert parse("[policy]\n[agent]\n") == Catalog()


@pytest.mark.parametrize("variables", [{}, {"ACME_KEY": ""}, {"ACME_KEY": "  "}])
def test_a_key_that_is_not_set_is_noted(variables: dict[str, str]) -> None:
    """It is no error before somebody would use the provider."""
    catalog = parse(f'{PROVIDER}api_key_env = "ACME_KEY"', **variables)
    assert catalog.providers["acme"].unset_key == "ACME_KEY"


@pytest.mark.parametrize(
    ("more", "header"),
    [
        ("", "bearer"),
        ('shape = "responses"', "bearer"),
        ('shape = "messages"', "x-api-key"),
        ('shape = "messages"\nkey_header = "bearer"', "bearer"),
    ],
)
def test_a_key_goes_where_its_shape_has_it(more: str, header: str) -> None:
    """Unless the file says otherwise."""
    assert parse(PROVIDER + more).providers["acme"].key_header == header


@pytest.mark.parametrize(
    ("account", "options"),
    [
        ('{kind = "bedrock", region = "eu-west-1"}', {"region": "eu-west-1"}),
        ('{kind = "vertex", project = "p", region = "l"}', {"project": "p", "region": "l"}),
    ],
)
def test_each_kind_of_account_has_its_options(account: str, options: dict[str, str]) -> None:
    """They are handed to its adapter as they are."""
    found = parse(f"{PROVIDER}account = {account}").providers["acme"].account
    assert found is not None
    assert found.options == options


def test_a_provider_with_its_key_or_without_any_lacks_none() -> None:
    """Only what was named and is not set is missing."""
    keyed = parse(f'{PROVIDER}api_key_env = "ACME_KEY"', ACME_KEY="sesame")
    assert keyed.providers["acme"].unset_key == ""
    assert parse(PROVIDER).providers["acme"].unset_key == ""


TIER = "{above = 1, input_usd = 1, output_usd = 1}"
ROW = f'{PROVIDER}[[deployments]]\nmodel = "m"\nprovider = "acme"\n'


@pytest.mark.parametrize(
    ("toml", "message", "mend"),
    [
        (f'{PROVIDER}api_key = "sk"', "`providers.acme.api_key`", "Did you mean `api_key_env`?"),
        ("[providers.acme]", "`providers.acme.base_url` is missing", "Add it."),
        ('[providers.a]\nbase_url = "acme"', "`providers.a.base_url` must be an http", ""),
        ('[providers.a]\nbase_url = "https://k@a.test"', "must hold no key", ""),
        (f"{PROVIDER}idle_timeout = 0", "`providers.acme.idle_timeout` must be greater", ""),
        (f"{PROVIDER}idle_timeout = inf", "`providers.acme.idle_timeout`", ""),
        (ROW.replace('"acme"', '"acne"'), "`deployments[0].provider` names `acne`", "`acme`?"),
        (f"{ROW}contextwindow = 1", "`deployments[0].contextwindow`", "`context_window`?"),
        (f'{ROW}tools = "yes"', "`deployments[0].tools` is 'yes'.", "'confirmed', 'absent'"),
        (f'{ROW}price = {{input_usd = "1"}}', "`deployments[0].price.output_usd` is missing", ""),
        (f"{ROW}price = {{input_usd = 0.1, output_usd = 1}}", 'write "0.1"', ""),
        (f"{ROW}quality = {{coding = {{value = 2, source = 'x'}}}}", "coding.value` must be", ""),
        (f"{ROW}quality = {{coding = {{value = 1}}}}", "coding.source` is missing", ""),
        (f"{ROW}context_window = -1", "`deployments[0].context_window` must be greater", ""),
        (
            f'{ROW}[[deployments]]\nmodel = "m"\nprovider = "acme"',
            "`deployments[1]` is a second acme/m.",
            "another model id",
        ),
        (f'{PROVIDER}shape = "grpc"', "`providers.acme.shape` is 'grpc'.", "'messages'"),
        (f'{PROVIDER}headers = {{"a b" = "c"}}', "headers` must hold names of headers", ""),
        (f'{PROVIDER}headers = {{Authorization = "c"}}', "must leave Authorization to the", ""),
        (f'{PROVIDER}headers = {{a = "b\\nc"}}', "a value of printable ASCII for a", ""),
        (f'{PROVIDER}account = {{kind = "ibm"}}', "account.kind` is no kind", '"bedrock"'),
        (f'{PROVIDER}account = {{kind = "azure", api = "1"}}', "account.api` is no", "api_version"),
        (f'{PROVIDER}account = {{kind = "vertex", project = 1}}', "project` must be text.", ""),
        (f'{PROVIDER}account = {{kind = "vertex", project = "p"}}', "region` is missing.", "Add"),
        (f'{ROW}modalities = ["smell"]', "`deployments[0].modalities[0]` is 'smell'.", "'image'"),
        (f'{ROW}caching = "yes"', "`deployments[0].caching` is 'yes'.", "'automatic'"),
        (
            f"{ROW}price = {{input_usd = 1, output_usd = 1, tiers = [{TIER}, {TIER}]}}",
            "`deployments[0].price.tiers` must go up",
            "",
        ),
        ("providers = 3", "`providers` must be a table.", ""),
    ],
)
def test_a_wrong_key_is_named_with_its_mend(toml: str, message: str, mend: str) -> None:
    """Nothing wrong passes, and nobody has to guess."""
    with pytest.raises(ConfigError) as caught:
        parse(toml)
    assert message in caught.value.message
    assert mend in caught.value.mend


@pytest.mark.parametrize("shape", ["messages", "responses"])
def test_branching_takes_an_api_that_tells_log_probabilities(shape: str) -> None:
    """Else every call of a run would be refused; with `chat` it is fine."""
    row = '[[deployments]]\nmodel = "m"\nprovider = "acme"\nprofile = "branch"\n'
    text = f'{PROVIDER}shape = "{shape}"\n{row}'
    with pytest.raises(ConfigError, match=r"profile` is `branch`.*`chat`") as wrong:
        parse_catalog(tomllib.loads(text), lambda _: None)
    assert "`repair`" in wrong.value.mend
    fine = parse_catalog(tomllib.loads(PROVIDER + row), lambda _: None)
    assert fine.deployments[0].profile == "branch"
