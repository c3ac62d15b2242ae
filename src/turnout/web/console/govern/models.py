"""The catalog: evidence, health, and a probe that measures anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.responses import Response

from turnout.core.ids import DeploymentId
from turnout.errors import NotFoundError
from turnout.web.console.govern.parts import ModelsKnown
from turnout.web.console.govern.views.models import (
    ModelView,
    ProbeView,
    model_views,
    probe_view,
)
from turnout.web.console.sections import Change, Done, Page, Section
from turnout.web.console.visits import Visit

__all__ = [
    "DeploymentView",
    "ModelsView",
    "models_section",
]


@dataclass(frozen=True, slots=True)
class ModelsView:
    """Every deployment."""

    models: Sequence[ModelView]

    @property
    def probing(self) -> bool:
        """Whether a probe is under way, so that the page looks again by itself."""
        return any(model.probing for model in self.models)


@dataclass(frozen=True, slots=True)
class DeploymentView:
    """One deployment, and what its newest probe showed."""

    model: ModelView
    probe: ProbeView | None


def models_section(known: ModelsKnown) -> Section:
    """Return the pages; a probe costs money, so that it takes an admin."""
    pages = _Pages(known)
    return Section(
        "Models",
        "/models",
        pages=(Page("/models", pages.all), Page("/models/of", pages.one)),
        changes=(Change("/models/probe", "probe_model", pages.probe, "admin"),),
    )


class _Pages:
    def __init__(self, known: ModelsKnown) -> None:
        self._known = known

    async def all(self, visit: Visit) -> Response:
        """List the deployments, or how they stand now for a page that looks again."""
        template = "govern/models_list.html" if visit.partial else "govern/models.html"
        return visit.page(template, ModelsView(model_views(self._known.seen())))

    async def one(self, visit: Visit) -> Response:
        """Show one deployment, or how it stands now for a page that looks again."""
        wanted = DeploymentId(visit.query("id"))
        found = [model for model in model_views(self._known.seen()) if model.id == wanted]
        if not found:
            raise NotFoundError(f"There is no deployment {wanted[:200]!r}.")
        result = await self._known.probed(wanted)
        view = DeploymentView(found[0], None if result is None else probe_view(result))
        template = "govern/deployment_body.html" if visit.partial else "govern/deployment.html"
        return visit.page(template, view)

    async def probe(self, visit: Visit) -> Done:
        """Begin a probe; it goes on behind the page."""
        wanted = DeploymentId(visit.form.text("id"))
        before = self._known.probes.standings().get(wanted)
        runs = before is not None and before.state == "running"
        self._known.probes.start(wanted, by=visit.caller.key)
        shown = f"/models/of?{urlencode({'id': wanted})}"
        back = shown if visit.form.text("back") == "deployment" else "/models"
        return Done(visit.go(back), wanted, changed=not runs)
