"""The tool is a version of its own: one pgbench for all servers of a campaign."""

from dataclasses import replace

import pytest

from runs.execution.plan import RunPlan
from runs.services.campaigns import campaigns, scenarios
from runs.services.servers.tools import installed, tools_among
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    """Three servers' binaries, of which 14 has both tools, 16 pgbench only, and 18 none."""
    scenarios.sync()
    made = factories.server(free_bytes=100 * 10**9)
    factories.installation(made, "9.3.5", pgbench_version_num=90305, has_psql=True)
    factories.installation(made, "14.19", pgbench_version_num=140019, has_psql=True)
    factories.installation(made, "16.10", pgbench_version_num=160010)
    factories.installation(made, "18.0")
    return made


@pytest.fixture
def draft(server):
    return factories.draft(server, title="all", parameters={"scale": 1, "duration": 5})


def plans(campaign):
    return [RunPlan.from_json(run.plan) for run in campaign.runs.order_by("pk")]


def test_every_version_is_measured_by_the_newest_pgbench_and_asked_by_the_newest_psql(draft):
    found = plans(campaigns.create(draft=draft))
    assert {plan.version_num for plan in found} == {90305, 140019, 160010, 180000}
    assert {plan.client_version_num for plan in found} == {160010}
    assert {plan.client_bindir for plan in found} == {"/usr/lib/postgresql/16.10/bin"}
    assert {plan.psql_bindir for plan in found} == {"/usr/lib/postgresql/14.19/bin"}


def test_another_pgbench_may_be_chosen(draft, server):
    old = server.installations.get(version="9.3.5")
    found = plans(campaigns.create(draft=replace(draft, client=old)))
    assert {plan.client_version_num for plan in found} == {90305}
    assert {plan.psql_bindir for plan in found} == {"/usr/lib/postgresql/14.19/bin"}


def test_an_installation_without_pgbench_cannot_be_the_load_generator(draft, server):
    without = server.installations.get(version="18.0")
    [problem] = campaigns.estimate(replace(draft, client=without)).problems
    assert (problem.code, problem.field) == ("missing_program", "client")


def test_a_removed_installation_is_no_tool(server):
    server.installations.filter(version="16.10").update(removed_at="2026-01-01T00:00:00Z")
    assert tools_among(installed([server])[server.pk]).pgbench.version == "14.19"


def test_without_a_psql_there_are_no_tools(server):
    server.installations.update(has_psql=False)
    assert tools_among(installed([server])[server.pk]) is None
