"""Names and labels of what is made in a cluster."""

import re

import pytest

from turnout.core.ids import RunId
from turnout.sandbox.kubernetes.manifests.labels import EGRESS, OURS, labels_of, object_name

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")


@pytest.mark.parametrize(
    "run_id", [RunId("run-0123456789ab"), RunId("Run_of A.User/../x"), RunId("x" * 300), RunId("")]
)
def test_a_name_is_one_that_clusters_take(run_id: RunId) -> None:
    """Whatever the run is called: a DNS label."""
    name = object_name(run_id, "0123abcd")
    assert NAME.fullmatch(name)
    assert len(name) <= 63


def test_names_of_other_runs_differ() -> None:
    """A run whose name is not one for clusters keeps a name of its own."""
    assert object_name(RunId("A"), "0") != object_name(RunId("B"), "0")


def test_the_policies_choose_by_the_labels() -> None:
    """A sandbox always bears those of all, and that of the proxy only where it may reach it."""
    assert OURS.items() <= labels_of("me", reaches_proxy=False).items()
    assert EGRESS not in labels_of("me", reaches_proxy=False)
    assert labels_of("me", reaches_proxy=True)[EGRESS] == "proxy"
