"""Recorded exchanges with cloud accounts, replayed to a gateway that unmodified clients call."""

import base64
import hmac
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import anthropic
import openai
import pytest
from aiohttp import web

from turnout.core.clock import SystemClock
from turnout.core.ids import ProviderName
from turnout.gateway.catalog import Account, Catalog, Provider
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.providers.accounts import azure, bedrock, vertex
from turnout.gateway.providers.accounts.tokens import Token, Tokens
from turnout.gateway.providers.authenticator import Authenticator
from turnout.testing.exchange import deployment
from turnout.testing.gateway import GatewaySetup, RunningGateway, running_gateway

RECORDED = Path(__file__).parent.parent / "golden" / "accounts"
ASK: Any = [{"role": "user", "content": "What is on my list?"}]
CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
BETAS = "context-1m-2025-08-07,fine-grained-tool-streaming-2025-05-14"
ACCESS, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"


@dataclass
class Cloud:
    """What came instead of the recorded request; and where it came to."""

    base_url: str = ""
    received: list[web.Request] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)


@asynccontextmanager
async def cloud(name: str) -> AsyncIterator[Cloud]:
    """Replay one exchange to whoever sends what was recorded; anything else is 599."""
    exchange = json.loads((RECORDED / f"{name}.json").read_text())
    wanted, answer, seen = exchange["request"], exchange["response"], Cloud()

    async def handle(request: web.Request) -> web.Response:
        raw = await request.read()
        seen.received.append(request)
        seen.bodies.append(raw)
        differs = _differs(request, json.loads(raw), wanted)
        if differs:
            return web.json_response({"error": {"message": differs}}, status=400)
        content = answer.get("text", json.dumps(answer.get("body"))).encode()
        if "base64" in answer:
            content = base64.b64decode(answer["base64"])
        headers = {"content-type": answer["type"], **answer.get("headers", {})}
        return web.Response(status=answer["status"], body=content, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    seen.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield seen
    await runner.cleanup()


def _differs(request: web.Request, body: Any, wanted: Mapping[str, Any]) -> str:
    if request.raw_path != wanted["path"]:
        return f"path {request.raw_path}"
    for name, value in wanted["headers"].items():
        if request.headers.get(name) != value:
            return f"header {name}: {request.headers.get(name)}"
    for name in wanted["absent"]:
        if name in request.headers:
            return f"header {name} is there"
    return "" if body == wanted["body"] else f"body {body}"


class OneToken:
    """Gives one token."""

    async def fetch(self) -> Token:
        """Return it."""
        return Token("token-1", 3_600)


def tokens() -> Tokens:
    """Return the tokens of a source that was put in."""
    return Tokens(OneToken(), SystemClock())


@asynccontextmanager
async def gateway_to(
    at: str,
    account: Account,
    adapter: Authenticator | Callable[[Provider], Authenticator],
    *,
    model: str,
    shape: Shape = "chat",
    key: str = "",
) -> AsyncIterator[RunningGateway]:
    """Serve one model of an account."""
    found = deployment(f"cloud/{model}")
    provider = Provider(ProviderName("cloud"), at, key, shape=shape, account=account)
    opened = adapter(provider) if callable(adapter) else adapter
    catalog = Catalog({provider.name: provider}, (found,))
    async with running_gateway(catalog, GatewaySetup(accounts={"cloud": opened})) as gateway:
        yield gateway


async def chat(gateway: RunningGateway, **more: Any) -> Any:
    """Ask for a chat completion; a stream is read to its end."""
    async with openai.AsyncOpenAI(base_url=gateway.base_url, api_key="k", max_retries=0) as client:
        asked: Any = {"model": "auto", "messages": ASK, "max_tokens": 100, **more}
        answer = await client.chat.completions.create(**asked)
        return [chunk async for chunk in answer] if more.get("stream") else answer


async def message(gateway: RunningGateway, *, stream: bool = False, **more: Any) -> Any:
    """Ask for a message."""
    asked: Any = {"model": "auto", "messages": ASK, "max_tokens": 100, **more}
    base = gateway.base_url.removesuffix("/v1")
    async with anthropic.AsyncAnthropic(base_url=base, api_key="k", max_retries=0) as client:
        if not stream:
            return await client.messages.create(**asked)
        async with client.messages.stream(**asked) as coming:
            return await coming.get_final_message()


@pytest.mark.parametrize(
    ("name", "options"),
    [("azure-chat-dated", {"api_version": "2024-10-21"}), ("azure-chat-v1", {})],
)
async def test_azure_is_asked_in_the_form_of_its_api_version(
    name: str, options: dict[str, str]
) -> None:
    """By deployment and date, or like OpenAI; the key in Azure's own header."""
    async with (
        cloud(name) as seen,
        gateway_to(
            seen.base_url,
            Account("azure", options),
            azure.AzureAccount(),
            model="gpt-4.1-eu",
            key="the-key",
        ) as gateway,
    ):
        completion = await chat(gateway)
    assert completion.choices[0].message.content == "Buy milk."
    assert completion.usage.total_tokens == 31


async def test_azure_streams_with_its_first_chunk_without_choices() -> None:
    """The filter results that Azure sends before the answer disturb no client."""
    account = Account("azure", {"api_version": "2024-10-21"})
    async with (
        cloud("azure-chat-stream") as seen,
        gateway_to(
            f"{seen.base_url}/openai/v1/",
            account,
            azure.AzureAccount(),
            model="gpt-4.1-eu",
            key="the-key",
        ) as gateway,
    ):
        chunks = await chat(gateway, stream=True)
    text = "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices)
    assert text == "Buy milk."


async def test_azure_takes_a_token_of_entra_in_place_of_a_key() -> None:
    """As a bearer token."""
    async with (
        cloud("azure-chat-entra") as seen,
        gateway_to(
            seen.base_url,
            Account("azure", {"api_version": "preview"}),
            azure.AzureAccount(tokens()),
            model="gpt-4.1-eu",
            key="the client secret",
        ) as gateway,
    ):
        assert (await chat(gateway)).choices[0].message.content == "Buy milk."


async def test_azures_rate_limit_reaches_the_client_with_its_wait() -> None:
    """429 with `retry-after`, as from OpenAI."""
    async with (
        cloud("azure-quota") as seen,
        gateway_to(
            seen.base_url,
            Account("azure"),
            azure.AzureAccount(),
            model="gpt-4.1-eu",
            key="the-key",
        ) as gateway,
    ):
        with pytest.raises(openai.RateLimitError) as failure:
            await chat(gateway)
    assert failure.value.response.headers["retry-after"] == "26"
    assert "the-key" not in str(failure.value)


def signing(provider: Provider) -> Authenticator:
    """Return the adapter that signs with fixed keys."""
    return bedrock.open_account(provider, SystemClock())


BEDROCK = Account("bedrock", {"region": "us-east-1", "access_key_id": ACCESS})


async def test_bedrock_invokes_a_claude_model_with_a_signed_request() -> None:
    """Version and betas in the body; the signature is right for what was received."""
    async with (
        cloud("bedrock-invoke") as seen,
        gateway_to(
            seen.base_url, BEDROCK, signing, model=CLAUDE, shape="messages", key=SECRET
        ) as gateway,
    ):
        answer = await message(gateway, extra_headers={"anthropic-beta": BETAS})
    assert answer.content[0].text == "Buy milk."
    request, raw = seen.received[0], seen.bodies[0]
    assert request.headers["authorization"] == _signature(request, raw)
    assert SECRET not in str(request.headers)


async def test_bedrocks_binary_stream_is_a_stream_of_messages() -> None:
    """Frames with checksums in, server-sent events out; the metrics stay behind."""
    async with (
        cloud("bedrock-stream") as seen,
        gateway_to(
            seen.base_url, BEDROCK, signing, model=CLAUDE, shape="messages", key=SECRET
        ) as gateway,
    ):
        answer = await message(gateway, stream=True)
        receipt = gateway.receipt()
    assert answer.content[0].text == "Buy milk."
    assert (receipt.usage.input_tokens, receipt.usage.output_tokens) == (25, 6)
    assert receipt.ttft_ms is not None


async def test_a_chat_client_is_served_by_claude_at_bedrock() -> None:
    """Through the same translation as at Anthropic."""
    async with (
        cloud("bedrock-stream") as seen,
        gateway_to(
            seen.base_url, BEDROCK, signing, model=CLAUDE, shape="messages", key=SECRET
        ) as gateway,
    ):
        chunks = await chat(gateway, stream=True)
    assert len(seen.received) == 1
    text = "".join(c.delta.content or "" for chunk in chunks for c in chunk.choices)
    assert text == "Buy milk."


async def test_an_exception_in_bedrocks_stream_is_an_error_in_band() -> None:
    """After the first text nobody else is asked, and the client hears why it ended."""
    async with (
        cloud("bedrock-throttled-midway") as seen,
        gateway_to(
            seen.base_url, BEDROCK, signing, model=CLAUDE, shape="messages", key=SECRET
        ) as gateway,
    ):
        with pytest.raises(anthropic.APIError, match="Too many tokens"):
            await message(gateway, stream=True)
        assert gateway.receipt().status == "truncated"
    assert len(seen.received) == 1


async def test_bedrocks_refusal_of_the_account_is_the_gateways_fault() -> None:
    """502: no client can mend it, and the words of AWS stay here."""
    async with (
        cloud("bedrock-denied") as seen,
        gateway_to(
            seen.base_url, BEDROCK, signing, model=CLAUDE, shape="messages", key=SECRET
        ) as gateway,
    ):
        with pytest.raises(anthropic.InternalServerError, match="refuses this gateway"):
            await message(gateway)
        assert gateway.receipt().error_code == "provider_refused"


async def test_bedrocks_other_models_are_asked_by_chat_with_an_api_key() -> None:
    """A Bedrock API key needs no signature."""
    async with (
        cloud("bedrock-chat") as seen,
        gateway_to(
            seen.base_url,
            Account("bedrock", {"region": "us-east-1"}),
            signing,
            model="openai.gpt-oss-120b-1:0",
            key="the-key",
        ) as gateway,
    ):
        assert (await chat(gateway)).choices[0].message.content == "Buy milk."


VERTEX = Account("vertex", {"project": "acme-ai", "region": "us-east5"})


@pytest.mark.parametrize(("name", "stream"), [("vertex-raw", False), ("vertex-stream", True)])
async def test_vertex_serves_claude_with_a_token(name: str, stream: bool) -> None:
    """The model in the address, the version in the body, betas in their header."""
    more: Any = {} if stream else {"extra_headers": {"anthropic-beta": "context-1m-2025-08-07"}}
    async with (
        cloud(name) as seen,
        gateway_to(
            f"{seen.base_url}/v1",
            VERTEX,
            vertex.VertexAccount(tokens()),
            model="claude-sonnet-4-5@20250929",
            shape="messages",
        ) as gateway,
    ):
        answer = await message(gateway, stream=stream, **more)
    assert answer.content[0].text == "Buy milk."


async def test_vertex_counts_tokens() -> None:
    """By its own address for that."""
    async with (
        cloud("vertex-count") as seen,
        gateway_to(
            f"{seen.base_url}/v1",
            VERTEX,
            vertex.VertexAccount(tokens()),
            model="claude-sonnet-4-5@20250929",
            shape="messages",
        ) as gateway,
        anthropic.AsyncAnthropic(
            base_url=gateway.base_url.removesuffix("/v1"), api_key="k", max_retries=0
        ) as client,
    ):
        counted = await client.messages.count_tokens(model="auto", messages=ASK)
    assert counted.input_tokens == 25


async def test_vertex_serves_gemini_by_chat() -> None:
    """By the OpenAI-compatible endpoint of the project."""
    account = Account("vertex", {"project": "acme-ai", "region": "us-central1"})
    async with (
        cloud("vertex-chat") as seen,
        gateway_to(
            f"{seen.base_url}/v1",
            account,
            vertex.VertexAccount(tokens()),
            model="google/gemini-2.5-flash",
        ) as gateway,
    ):
        assert (await chat(gateway)).choices[0].message.content == "Buy milk."


async def test_an_option_that_is_missing_is_named() -> None:
    """The provider cannot be reached without it."""
    async with (
        cloud("vertex-raw") as seen,
        gateway_to(
            f"{seen.base_url}/v1",
            Account("vertex", {"region": "us-east5"}),
            vertex.VertexAccount(tokens()),
            model="claude-sonnet-4-5@20250929",
            shape="messages",
        ) as gateway,
    ):
        with pytest.raises(anthropic.InternalServerError, match=r"account\.project"):
            await message(gateway)
    assert seen.received == []


def _signature(request: web.Request, raw: bytes) -> str:
    """Return the header that signs a received request, by the rules of AWS Signature Version 4."""
    given = request.headers["authorization"]
    names = given.partition("SignedHeaders=")[2].partition(",")[0].split(";")
    at = request.headers["x-amz-date"]
    return sigv4(
        request.method,
        f"http://{request.host}{request.raw_path}",
        {name: request.headers[name] for name in names},
        raw,
        at=at,
        scope=(at[:8], "us-east-1", "bedrock"),
    )


def sigv4(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    at: str,
    scope: tuple[str, str, str],
) -> str:
    """Return the value of `authorization` for the keys above."""
    parts = urlsplit(url)
    names = ";".join(sorted(headers))
    canonical = "\n".join(
        [
            method,
            quote(parts.path or "/", safe="/-_.~"),
            "&".join(sorted(parts.query.split("&"))),
            *(f"{name}:{headers[name]}" for name in sorted(headers)),
            "",
            names,
            sha256(body).hexdigest(),
        ]
    )
    full = "/".join((*scope, "aws4_request"))
    digest = sha256(canonical.encode()).hexdigest()
    text = f"AWS4-HMAC-SHA256\n{at}\n{full}\n{digest}"
    key = f"AWS4{SECRET}".encode()
    for part in (*scope, "aws4_request"):
        key = hmac.new(key, part.encode(), sha256).digest()
    signature = hmac.new(key, text.encode(), sha256).hexdigest()
    credential = f"Credential={ACCESS}/{full}"
    return f"AWS4-HMAC-SHA256 {credential}, SignedHeaders={names}, Signature={signature}"


def test_our_reading_of_the_signature_rules_agrees_with_the_published_example() -> None:
    """ListUsers of IAM, from the documents of AWS."""
    signed = sigv4(
        "GET",
        "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        {
            "content-type": "application/x-www-form-urlencoded; charset=utf-8",
            "host": "iam.amazonaws.com",
            "x-amz-date": "20150830T123600Z",
        },
        b"",
        at="20150830T123600Z",
        scope=("20150830", "us-east-1", "iam"),
    )
    assert signed.endswith("5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7")
