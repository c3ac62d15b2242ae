"""Requests to an API server that does not always answer."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kubernetes_asyncio.client import Configuration

from turnout.errors import SandboxError, SandboxUnavailableError
from turnout.sandbox.kubernetes.api.access import Version
from turnout.sandbox.kubernetes.api.cluster import Answer, Cluster, ClusterError, configuration_of
from turnout.sandbox.kubernetes.manifests.policy import deny_all
from turnout.sandbox.kubernetes.options import KubernetesOptions
from turnout.testing.kubernetes.faults import Refusal
from turnout.testing.kubernetes.server import FakeCluster

POLICIES = "/apis/networking.k8s.io/v1/namespaces/turnout-sandboxes/networkpolicies"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[FakeCluster]:
    """Serve an API server without a pod."""
    async with FakeCluster(tmp_path) as served:
        yield served


@pytest.fixture
async def cluster(server: FakeCluster) -> AsyncIterator[Cluster]:
    """Connect to it, waiting hardly at all between attempts."""
    connected = Cluster(Configuration(host=server.url), first_delay=0.001)
    yield connected
    await connected.close()


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504])
async def test_what_passes_is_tried_again(
    server: FakeCluster, cluster: Cluster, status: int
) -> None:
    """A server that is overloaded or restarting is asked until it answers."""
    server.faults.refuse(status, times=3)
    assert (await cluster.ask("GET", "/version")).read(Version).number == (1, 36)
    assert len(server.asked) == 4


@pytest.mark.parametrize(("status", "mend"), [(401, "credentials"), (403, "rbac.yaml"), (422, "")])
async def test_a_refusal_is_final(
    server: FakeCluster, cluster: Cluster, status: int, mend: str
) -> None:
    """It is told with what the server said and what helps."""
    server.faults.refuse(status, times=9)
    with pytest.raises(ClusterError, match="it was so ordered") as raised:
        await cluster.ask("GET", "/version")
    assert raised.value.status == status
    assert mend in raised.value.mend
    assert len(server.asked) == 1


async def test_attempts_are_counted(server: FakeCluster, cluster: Cluster) -> None:
    """A server that never recovers is given up."""
    server.faults.refuse(503, times=50)
    with pytest.raises(ClusterError):
        await cluster.ask("GET", "/version")
    assert len(server.asked) == 5


async def test_the_server_says_how_long_to_wait(server: FakeCluster, cluster: Cluster) -> None:
    """`Retry-After` counts, where it is a number of seconds."""
    server.faults.refusals.append(Refusal(429, headers={"Retry-After": "never"}))
    server.faults.refusals.append(Refusal(429, headers={"Retry-After": "0"}))
    assert (await cluster.ask("GET", "/version")).status == 200


async def test_a_lost_answer_is_no_second_object(server: FakeCluster, cluster: Cluster) -> None:
    """What was made although the answer said otherwise is found when it is asked for again."""
    server.faults.refusals.append(Refusal(504, verb="POST", done=True))
    assert (await cluster.ask("POST", POLICIES, body=deny_all())).status == 409
    assert len(server.store.list(POLICIES, {})) == 1


async def test_an_object_that_others_made_is_a_conflict(
    server: FakeCluster, cluster: Cluster
) -> None:
    """Without a lost answer, 409 is an error unless it is expected."""
    await cluster.ask("POST", POLICIES, body=deny_all())
    with pytest.raises(ClusterError, match="already exists"):
        await cluster.ask("POST", POLICIES, body=deny_all())
    assert (await cluster.ask("POST", POLICIES, body=deny_all(), accept=(409,))).status == 409


async def test_no_answer_is_told_as_such() -> None:
    """A port where nobody listens is not waited for."""
    cluster = Cluster(Configuration(host="http://127.0.0.1:9"), first_delay=0.001)
    with pytest.raises(ClusterError, match="cannot be reached") as raised:
        await cluster.ask("GET", "/version")
    assert raised.value.status == 0
    await cluster.close()


async def test_a_restart_of_the_server_is_survived(server: FakeCluster, cluster: Cluster) -> None:
    """Connections of before are not used again."""
    await cluster.ask("GET", "/version")
    await server.stop()
    await server.serve()
    assert (await cluster.ask("GET", "/version")).status == 200


def test_an_answer_that_is_not_what_it_should_be_is_an_error() -> None:
    """Whatever stands between us and the server may have written it."""
    with pytest.raises(SandboxError, match="cannot be read"):
        Answer(200, b"<html>").read(Version)


def test_the_number_of_a_version_is_read() -> None:
    """Some servers write a plus sign, some nothing."""
    assert Version(major="1", minor="33+").number == (1, 33)
    assert Version().number == (0, 0)


async def test_a_missing_configuration_is_named(tmp_path: Path) -> None:
    """Outside a cluster, without a kubeconfig, there is nothing to reach."""
    with pytest.raises(SandboxUnavailableError, match="No cluster is configured"):
        await configuration_of(KubernetesOptions("image"))
    missing = KubernetesOptions("image", kubeconfig=tmp_path / "none")
    with pytest.raises(SandboxUnavailableError, match="No cluster is configured"):
        await configuration_of(missing)


async def test_a_kubeconfig_is_read(tmp_path: Path) -> None:
    """Address and token of its current context are used."""
    file = tmp_path / "config"
    file.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: k, cluster: {server: 'http://127.0.0.1:1'}}]\n"
        "users: [{name: u, user: {token: t}}]\n"
        "contexts: [{name: c, context: {cluster: k, user: u}}]\n"
    )
    found = await configuration_of(KubernetesOptions("image", kubeconfig=file))
    assert found.host == "http://127.0.0.1:1"
    assert found.api_key["BearerToken"] == "Bearer t"
