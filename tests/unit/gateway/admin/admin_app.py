"""The admin application on stores in memory, and callers by name of their key."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date

from starlette.testclient import TestClient

from turnout.core.govern.toolwatch import ToolReport
from turnout.core.policies import Policy
from turnout.core.receipts import Candidate, Decision
from turnout.errors import GatewayError
from turnout.gateway.access import sent_key
from turnout.gateway.admin.app import AdminParts, build_admin
from turnout.gateway.catalog import Catalog
from turnout.gateway.exchange import Caller, InferenceRequest
from turnout.gateway.policy.desk import PolicyDesk
from turnout.gateway.wire.chat import ChatShape
from turnout.testing.clock import FrozenClock
from turnout.testing.exchange import deployment
from turnout.testing.stores import MemoryPoliciesStore

CALLERS = {
    "boss": Caller("boss", admin=True),
    "dev": Caller("dev", policies=("team",)),
    "plain": Caller("plain"),
}
CATALOG = Catalog(deployments=(deployment("p/big"), deployment("p/small")))


def authenticate(headers: Mapping[str, str]) -> Caller:
    """Admit the callers above, by the name of their key."""
    caller = CALLERS.get(sent_key(headers))
    if caller is None:
        raise GatewayError("The API key is wrong.", status=401, code="invalid_api_key")
    return caller


@dataclass
class Explained:
    """Decides for the first model, and remembers what it was asked."""

    asked: list[tuple[Caller, InferenceRequest, Policy | None]] = field(default_factory=list)

    async def __call__(
        self, caller: Caller, request: InferenceRequest, draft: Policy | None = None
    ) -> Decision:
        """Return a decision."""
        self.asked.append((caller, request, draft))
        first = CATALOG.deployments[0].id
        return Decision(
            objective="cost",
            task="coding",
            task_source="request",
            order=(first,),
            candidates=(Candidate(first, 1.0, None),),
            sticky=False,
            policy_revision=0,
            reason="It is the first.",
        )


class Quiet:
    """Nothing was declared on any day."""

    async def report(self, policy: str, *, since: date, today: date) -> ToolReport:
        """Return an empty report."""
        return ToolReport(policy, since, today, (), ())


@dataclass
class Admin:
    """A running admin application."""

    client: TestClient
    explained: Explained

    def call(self, method: str, path: str, key: str = "boss", **options):
        """Send a request with a key."""
        headers = {"authorization": f"Bearer {key}", **options.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **options)


def admin_app(*own: Policy) -> Admin:
    """Return the application, with the policies of a file."""
    explained = Explained()
    desk = PolicyDesk(MemoryPoliciesStore(), CATALOG, FrozenClock(), own=own)
    app = build_admin(
        AdminParts(
            authenticate=authenticate,
            policies=desk,
            explain=explained,
            shapes={"chat": ChatShape()},
            reports=Quiet(),
            clock=FrozenClock(),
        )
    )
    return Admin(TestClient(app, raise_server_exceptions=False), explained)
