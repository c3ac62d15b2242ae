"""Several services in one cluster, warm pods, and what `doctor` finds out."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest
import yaml
from tests.clusters import OPTIONS, PODS, RUN, Clustered, clustered, driving, eventually, said
from tests.unit.deploy.made import warm_pool

from turnout.core.ids import RunId
from turnout.errors import SandboxUnavailableError
from turnout.sandbox.base import BaseRef, BaseSpec, Command, Limits
from turnout.sandbox.kubernetes.api.claim import GROUP
from turnout.sandbox.kubernetes.manifests.labels import LEASE
from turnout.testing.repositories import buggy_pagination

NOBODY: frozenset[RunId] = frozenset()


@pytest.fixture
async def here(tmp_path: Path, sandbox_state: Path) -> AsyncIterator[Clustered]:
    """Open a cluster."""
    async with clustered(tmp_path, state=sandbox_state) as opened:
        yield opened


async def facts(here: Clustered) -> Mapping[str, tuple[bool, str]]:
    """Return what a probe found."""
    found = await here.driver.probe()
    assert found.usable == all(ok for name, ok, _ in found.facts if name != "warm pods")
    assert here.pods() == []
    return {name: (ok, why) for name, ok, why in found.facts}


async def test_a_living_service_is_left_alone(here: Clustered, tmp_path: Path) -> None:
    """Neither its own sandboxes nor those of another one are reaped while a lease runs."""
    sandbox = await here.start()
    async with driving(here.cluster, tmp_path) as other:
        assert await other.driver.reap(NOBODY) == ()
    assert await here.driver.reap(NOBODY) == ()
    assert await said(sandbox, "echo alive") == "alive\n"
    await sandbox.close()


async def test_what_a_dead_service_left_is_reaped(here: Clustered, tmp_path: Path) -> None:
    """A pod that ended with its connection is no one's; a known run keeps it."""
    sandbox = await here.start()
    here.cluster.tear_streams()
    ends = ("Succeeded", "Failed")
    assert await eventually(lambda: here.pods()[0]["status"]["phase"] in ends)
    async with driving(here.cluster, tmp_path) as other:
        assert await other.driver.reap(frozenset({RUN})) == ()
        assert await other.driver.reap(NOBODY) == (RUN,)
    assert here.pods() == []
    await sandbox.close()


async def test_a_pod_whose_lease_has_run_out_is_reaped(here: Clustered, tmp_path: Path) -> None:
    """It may run still, but nobody has said for long that it should."""
    sandbox = await here.start()
    old = {"metadata": {"annotations": {LEASE: "1000"}}}
    await here.cluster.store.merge(PODS, sandbox.pod, old)
    async with driving(here.cluster, tmp_path) as other:
        assert await other.driver.reap(NOBODY) == (RUN,)
    await sandbox.close()


async def test_pods_of_others_are_not_ours(here: Clustered) -> None:
    """What bears none of our labels, or names no run, is not looked at."""
    for labels in ({}, {"app.kubernetes.io/name": "turnout-sandbox"}):
        name = f"other-{len(labels)}"
        await here.cluster.store.add(PODS, {"metadata": {"name": name, "labels": labels}})
    assert await here.driver.reap(NOBODY) == ()
    assert len(here.pods()) == 2


async def test_a_cluster_that_holds_is_usable(here: Clustered) -> None:
    """Every wall was looked at, in a pod; the lack of warm ones is told and no hindrance."""
    found = await facts(here)
    assert found["privileges"][0]
    assert found["closed network"] == (True, "a pod does not reach the API server")
    assert "not installed" in found["warm pods"][1]


async def test_missing_rights_are_named(here: Clustered) -> None:
    """Each of them, and the file that grants them."""
    here.cluster.faults.forbidden |= {("create", "pods"), ("get", "pods/exec")}
    found = await facts(here)
    assert found["permissions"] == (
        False,
        "not allowed: create pods, get pods/exec; apply deploy/kubernetes/rbac.yaml",
    )


async def test_policies_that_nobody_enforces_are_found_out(here: Clustered) -> None:
    """A pod that reaches the API server is in no closed network, whatever the policies say."""
    here.cluster.faults.unenforced = True
    found = await facts(here)
    assert not found["closed network"][0]
    assert "not enforced" in found["closed network"][1]


async def test_a_pod_that_does_not_start_is_a_fact(tmp_path: Path) -> None:
    """Nothing raises; the reason of the cluster is told."""
    async with clustered(tmp_path, start_seconds=1) as here:
        here.cluster.faults.start = "no_profile"
        assert "CreateContainerError" in (await facts(here))["pod"][1]


async def test_a_missing_runtime_class_is_found_out(tmp_path: Path) -> None:
    """Before any pod waits for it."""
    async with clustered(tmp_path, runtime_class="gvisor") as here:
        found = await facts(here)
        assert not found["runtime class"][0]
        assert here.cluster.asked_for("POST", "/pods") == []
        classes = "/apis/node.k8s.io/v1/runtimeclasses"
        await here.cluster.store.add(classes, {"metadata": {"name": "gvisor"}})
        assert (await facts(here))["runtime class"] == (True, "gvisor")


async def test_a_cluster_out_of_reach_is_a_fact(here: Clustered) -> None:
    """The probe of a cluster that is down says so."""
    await here.cluster.stop()
    found = await here.driver.probe()
    assert not found.usable
    assert found.facts[0][:2] == ("API server", False)
    await here.cluster.serve()


@pytest.fixture
async def base(here: Clustered, tmp_path: Path) -> BaseRef:
    """Prepare a small repository."""
    repository = buggy_pagination(tmp_path / "repository")
    return await here.driver.prepare(BaseSpec(str(repository), repository.head, requirements=()))


async def test_a_workspace_has_its_tests_and_its_history(here: Clustered, base: BaseRef) -> None:
    """Sent, unpacked, clean for git, and the environment works."""
    sandbox = await here.driver.create(RUN, base, Limits())
    assert await said(sandbox, "git status --porcelain; git log --format=%s") == "first\n"
    assert "1 failed, 2 passed" in await said(sandbox, "python -m pytest -q 2>&1 | tail -1")
    await sandbox.write("pages.py", b"changed\n")
    patch = await sandbox.diff()
    assert [change.path for change in patch.files] == ["pages.py"]
    await sandbox.close()
    assert here.pods() == []


async def test_the_base_is_kept_as_it_came_back(here: Clustered, base: BaseRef) -> None:
    """The host holds one file for each tree and environment, and unpacks none."""
    state = here.driver.state_dir
    for kind in ("trees", "environments"):
        made = {path.name for path in (state / kind).rglob("*")}
        assert "packed.tar" in made
        assert not made & {"tests", "lib", "bin", ".git", "pages.py"}


async def test_a_claimed_pod_is_warm(tmp_path: Path, sandbox_state: Path) -> None:
    """With agent-sandbox a run takes a pod that runs already, by a claim that is given up after."""
    async with clustered(tmp_path, state=sandbox_state, warm_pool="turnout") as here:
        cluster, space = here.cluster, OPTIONS.namespace
        cluster.groups.add(GROUP)
        repository = buggy_pagination(tmp_path / "repository")
        spec = BaseSpec(str(repository), repository.head, requirements=())
        base = await here.driver.prepare(spec)
        template, _ = yaml.safe_load_all(warm_pool())
        await cluster.warm.fill(space, "turnout", template["spec"]["podTemplate"])
        (warm,) = here.pods()
        sandbox = await here.driver.create(RUN, base, Limits())
        assert sandbox.pod == warm["metadata"]["name"]
        assert await said(sandbox, "git log --format=%s") == "first\n"
        (claim,) = cluster.asked_for("POST", "/sandboxclaims")
        assert claim.body["spec"]["warmPoolRef"] == {"name": "turnout"}
        assert claim.body["spec"]["lifecycle"]["shutdownPolicy"] == "Delete"
        (pod,) = here.pods()
        assert pod["metadata"]["annotations"]["turnout/run"] == RUN
        await sandbox.close()
        assert here.pods() == []


async def test_an_empty_pool_is_told(tmp_path: Path, sandbox_state: Path) -> None:
    """The claim waits its time, the error says what its controller says, and it is given up."""
    pool = {"warm_pool": "turnout", "start_seconds": 3}
    async with clustered(tmp_path, state=sandbox_state, **pool) as here:
        base = await here.driver.prepare(BaseSpec(None, requirements=()))
        with pytest.raises(SandboxUnavailableError, match="No warm pod came within 3 s: no pod"):
            await here.driver.create(RUN, base, Limits())
        claims = f"/apis/{GROUP}/namespaces/{OPTIONS.namespace}/sandboxclaims"
        assert here.cluster.store.list(claims, {}) == []


async def test_what_a_sandbox_uses_is_asked_for_when_it_sleeps(here: Clustered) -> None:
    """The question does not wake it."""
    sandbox = await here.start()
    await sandbox.run(Command(("true",)))
    await sandbox.pause()
    assert (await sandbox.usage()).frozen_seconds >= 0
    await sandbox.close()
