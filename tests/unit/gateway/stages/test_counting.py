"""Counts of tokens: asked where they can be, estimated elsewhere, never a matter of health."""

from collections.abc import AsyncGenerator, Mapping

import orjson
import pytest

from turnout.core.ids import ProviderName
from turnout.core.json import JsonObject
from turnout.gateway.catalog import Catalog, Provider
from turnout.gateway.dialog.conversation import Shape
from turnout.gateway.exchange import ServerEvent, UpstreamError, UpstreamReply
from turnout.gateway.stages.counting import Counting
from turnout.gateway.wire.messages import MessagesShape
from turnout.testing.exchange import deployment

MODEL = deployment("p/claude")
RAW = orjson.dumps({"model": "auto", "messages": [{"role": "user", "content": "Hi"}]})
REQUEST = MessagesShape().parse_count(RAW, {"anthropic-version": "2023-06-01"})


class _Upstream:
    """Answers every request alike and keeps the last."""

    def __init__(self, answer: JsonObject | UpstreamError) -> None:
        self.answer = answer
        self.provider: Provider | None = None
        self.path = ""
        self.body: JsonObject = {}
        self.headers: Mapping[str, str] = {}

    async def complete(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> UpstreamReply:
        self.provider, self.path, self.body, self.headers = provider, path, body, headers
        if isinstance(self.answer, UpstreamError):
            raise self.answer
        return UpstreamReply(self.answer, 1)

    def stream(
        self, provider: Provider, path: str, body: JsonObject, headers: Mapping[str, str]
    ) -> AsyncGenerator[ServerEvent, None]:
        raise NotImplementedError

    async def models(self, provider: Provider) -> tuple[str, ...]:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError


def _counting(upstream: _Upstream, shape: Shape = "messages") -> Counting:
    provider = Provider(ProviderName("p"), "http://p/v1", api_key="sk-ours", shape=shape)
    return Counting(upstream, Catalog({provider.name: provider}, (MODEL,)), MessagesShape())


async def test_an_upstream_of_the_shape_is_asked() -> None:
    """Under its name for the model, with the client's version of the API."""
    upstream = _Upstream({"input_tokens": 1_234})
    assert await _counting(upstream).count(REQUEST, [MODEL.id]) == 1_234
    assert upstream.path == "/messages/count_tokens"
    assert upstream.body["model"] == "claude"
    assert upstream.headers == {"anthropic-version": "2023-06-01"}


async def test_a_policys_own_key_is_used() -> None:
    """As for any request."""
    upstream = _Upstream({"input_tokens": 1})
    await _counting(upstream).count(REQUEST, [MODEL.id], {ProviderName("p"): "sk-policy"})
    assert upstream.provider is not None
    assert upstream.provider.api_key == "sk-policy"


async def test_other_shapes_and_nobody_are_estimates() -> None:
    """Nothing is asked."""
    upstream = _Upstream({"input_tokens": 1_234})
    estimate = REQUEST.input_tokens_estimate
    assert await _counting(upstream, "chat").count(REQUEST, [MODEL.id]) == estimate
    assert await _counting(upstream).count(REQUEST, []) == estimate
    assert upstream.path == ""


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"input_tokens": "many"},
        {"input_tokens": -1},
        UpstreamError("answered 404", status=404),
        UpstreamError("answered 401", status=401),
        UpstreamError("answered 529", status=529),
        UpstreamError("could not be connected to", status=None),
    ],
    ids=str,
)
@pytest.mark.cases
async def test_an_upstream_that_does_not_count_leaves_the_estimate(
    answer: JsonObject | UpstreamError,
) -> None:
    """Many servers of this shape have no such route."""
    counted = await _counting(_Upstream(answer)).count(REQUEST, [MODEL.id])
    assert counted == REQUEST.input_tokens_estimate


async def test_a_request_that_is_wrong_is_the_clients_to_hear_of() -> None:
    """An estimate would hide it until the call itself."""
    refused = UpstreamError("answered 400", status=400)
    with pytest.raises(UpstreamError):
        await _counting(_Upstream(refused)).count(REQUEST, [MODEL.id])
