"""Campaigns of several servers, and topologies."""

import json
import re
from pathlib import Path

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from runs.access.services import projects
from runs.archive.services import load
from runs.campaigns.services import campaigns, drafts
from runs.models import Campaign, HardwareProfile
from runs.workloads.services import topologies
from tests import factories
from tests.campaigns.views.test_campaigns import draft as sent

pytestmark = pytest.mark.django_db


# A campaign on several servers: the form without JavaScript, and the campaign's pages.


def machine(slug, number, versions=("16.14", "18.4")):
    made = factories.server(
        slug,
        name=f"Rack {number}",
        address=f"192.0.2.{number}",
        hardware=factories.hardware(f"board {number}"),
        environment=factories.environment(f"Linux {number}"),
    )
    for version in versions:
        factories.installation(
            made,
            version,
            has_psql=True,
            pgbench_version_num=factories.version_num(version),
        )
    return made


@pytest.fixture
def rack(known, ready_server):
    return machine("rack-2", 2)


@pytest.fixture
def queued(ready_server, rack):
    return queue([ready_server, rack])


def queue(servers, **changed):
    first, *more = servers
    given = {
        "title": "Two machines",
        "scenario": "fixed-point-read",
        "server": first,
        "more_servers": more,
        "installations": [
            each for server in servers for each in server.installations.all()
        ],
        "levels": {"clients": [1, 2]},
        "parameters": {"scale": 1, "duration": 1},
        "repeats": 3,
    }
    return campaigns.create(draft=drafts.Draft(**(given | changed)))


def finish(campaign):
    for run in campaign.runs.select_related("cell", "server").order_by("pk"):
        gain = 1.5 if run.server.slug == "rack-2" else 1.0
        gain *= 1.1 if run.cell.version == "18.4" else 1.0
        noise = 1 + 0.002 * (run.repeat - 2)
        factories.finish(run, tps=1000 * run.cell.levels["clients"] * gain * noise)
    Campaign.objects.update(state="finished")
    return campaign


def boxes(page, name):
    """The values of the boxes of a field, with whether they are ticked."""
    tags = re.findall(rf'<input[^>]*name="{name}"[^>]*>', page)
    return {re.search(r'value="([^"]*)"', tag)[1]: "checked" in tag for tag in tags}


def test_other_servers_can_be_ticked_and_nothing_else_changes(
    member, ready_server, rack
):
    page = member.get("/campaigns/new/?server=db1").content.decode()
    assert boxes(page, "more_servers") == {"rack-2": False}
    assert list(boxes(page, "installations")) == [
        str(each.pk) for each in ready_server.installations.all()
    ]


def test_without_another_server_nobody_is_asked(member, ready_server):
    assert "more_servers" not in member.get("/campaigns/new/").content.decode()


def test_with_several_servers_versions_are_chosen(member, ready_server, rack):
    factories.installation(rack, "17.2", pgbench_version_num=170002)
    page = member.get("/campaigns/new/?server=db1&more_servers=rack-2").content.decode()
    assert boxes(page, "more_servers") == {"rack-2": True}
    assert boxes(page, "installations") == {"16.14": True, "17.2": False, "18.4": True}
    assert "PostgreSQL 16.14 · on every server" in page
    assert "PostgreSQL 17.2 · only on Rack 2" in page
    assert re.search(r"Runs</span>\s*<span class=\"stat__value\">36", page)
    assert "Ready to queue." in page


def test_a_change_of_servers_keeps_the_ticked_versions(member, ready_server, rack):
    only = ready_server.installations.get(version="18.4")
    both = f"/campaigns/new/?server=db1&more_servers=rack-2&installations={only.pk}"
    page = member.get(both).content.decode()
    assert boxes(page, "installations") == {"16.14": False, "18.4": True}
    page = member.get(
        "/campaigns/new/?server=rack-2&installations=16.14"
    ).content.decode()
    ticked = {pk for pk, is_ticked in boxes(page, "installations").items() if is_ticked}
    assert ticked == {str(rack.installations.get(version="16.14").pk)}


def test_a_campaign_on_both_is_queued(member, ready_server, rack):
    given = sent(ready_server, more_servers=["rack-2"], installations=["16.14", "18.4"])
    response = member.post("/campaigns/new/", given)
    campaign = Campaign.objects.get()
    assert response.url == f"/campaigns/{campaign.slug}/"
    assert campaign.factors["server"] == ["db1", "rack-2"]
    assert campaign.runs.count() == 36


def test_the_form_of_one_server_may_be_sent_for_two(member, ready_server, rack):
    """As without JavaScript, where a box changes nothing else before the form is sent."""
    member.post("/campaigns/new/", sent(ready_server, more_servers=["rack-2"]))
    assert Campaign.objects.get().cells.count() == 12


def test_the_chosen_server_is_not_counted_twice(member, ready_server, rack):
    member.post("/campaigns/new/", sent(ready_server, more_servers=["db1"]))
    assert "server" not in Campaign.objects.get().factors


def test_a_version_that_a_server_lacks_stands_at_its_field(member, ready_server, rack):
    factories.installation(ready_server, "17.2")
    given = sent(ready_server, more_servers=["rack-2"], installations=["17.2"])
    response = member.post("/campaigns/new/", given)
    (error,) = response.context["form"].errors["installations"]
    assert "Rack 2 has no PostgreSQL 17.2." in error
    assert not Campaign.objects.exists()


def test_an_unknown_server_is_refused(member, ready_server, rack):
    response = member.post(
        "/campaigns/new/", sent(ready_server, more_servers=["nowhere"])
    )
    assert "more_servers" in response.context["form"].errors


def test_the_form_asks_as_often_for_six_servers_as_for_two(member, ready_server, rack):
    def count(*slugs):
        more = "".join(f"&more_servers={slug}" for slug in slugs)
        with CaptureQueriesContext(connection) as found:
            page = member.get(f"/campaigns/new/?server=db1{more}").content.decode()
        assert all(boxes(page, "more_servers")[slug] for slug in slugs)
        return len(found)

    machine("spare", 9)  # a load generator is offered in both cases
    slugs = [machine(f"rack-{number}", number).slug for number in range(3, 7)]
    assert count("rack-2") == count("rack-2", *slugs)


def test_the_page_names_the_servers_and_what_each_is(client, queued):
    finish(queued)
    page = client.get("/campaigns/two-machines/").content.decode()
    conditions = page[page.index('id="conditions"') :]
    for words in ("db1", "Rack 2", "two-core", "board 2", "Linux 2"):
        assert words in conditions
    assert "PostgreSQL 16.14 · Rack 2" in page
    for pair in (
        "Server Rack 2 is|against .* Server db1",
        "PostgreSQL 18.4 .* PostgreSQL 16.14",
    ):
        assert re.search(pair, page)
    assert "Between servers a ratio is of whole machines" in page
    assert "baseline: Server db1, PostgreSQL 16.14" in page
    assert "rack-2 against" not in page


def test_the_chart_has_a_line_for_each_server_and_version(client, queued):
    finish(queued)
    page = client.get("/campaigns/two-machines/").content.decode()
    (figure,) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert [trace["name"] for trace in json.loads(figure)["data"]] == [
        "16.14 · db1",
        "18.4 · db1",
        "16.14 · Rack 2",
        "18.4 · Rack 2",
    ]


def test_the_pages_queries_do_not_grow_with_servers(client, ready_server, rack):
    two = queue([ready_server, rack], title="two")
    five = queue(
        [ready_server, rack, *(machine(f"rack-{n}", n) for n in (3, 4, 5))],
        title="five",
    )

    def count(campaign):
        with CaptureQueriesContext(connection) as found:
            assert client.get(f"/campaigns/{campaign.slug}/").status_code == 200
        return len(found)

    assert count(two) == count(five)


def test_a_run_shows_its_server_by_name(client, queued):
    run = queued.runs.filter(server__slug="rack-2").first()
    page = client.get(f"/runs/{run.pk}/").content.decode()
    assert re.search(
        r"Server\s*<b>Rack 2</b>|Server[^<]*</\w+>\s*<\w+[^>]*>\s*Rack 2", page
    )


def test_servers_that_a_campaign_varies_are_compared_and_said_to_be_other_machines(
    client, queued
):
    finish(queued)
    keys = [f"two-machines~version=18.4~server={slug}" for slug in ("db1", "rack-2")]
    address = "/compare/?" + "&".join(f"s={key.replace('=', '%3D')}" for key in keys)
    page = client.get(address).content.decode()
    assert "not comparable" not in page
    assert "Compared although the hardware differs" in page
    assert "% faster" in page


def test_a_campaign_compared_as_a_whole_has_a_series_for_each_server(client, queued):
    finish(queued)
    found = client.get("/compare/?s=two-machines").context["page"]
    assert found.labels == (
        "PostgreSQL 16.14 · Server db1",
        "PostgreSQL 18.4 · Server db1",
        "PostgreSQL 16.14 · Rack 2",
        "PostgreSQL 18.4 · Rack 2",
    )
    assert found.loaded.x == "clients"


def test_the_report_has_each_machine_and_names(client, queued):
    finish(queued)
    report = client.get(
        "/campaigns/two-machines/report/?format=html&lang=en"
    ).content.decode()
    for words in (
        "board 2",
        "Linux 2",
        "db1, Rack 2",
        "Rack 2 against db1",
        "16.14 · Rack 2",
    ):
        assert words in report


# Topologies: the list, and a page of each with its nodes and campaigns.


SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"


@pytest.fixture
def archive():
    """A publication with a topology of two machines, one of them described."""
    load(files=[SAMPLE])


@pytest.fixture
def apart():
    """A database, and two servers that generate its load."""
    database, *generators = (
        factories.server(name, name=name) for name in ("db", "one", "two")
    )
    return topologies.topology_of(server=database, generators=generators)


def shown(client, path):
    """The text of a page."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    return " ".join(answer.content.decode().split())


def test_an_empty_list_says_what_to_do(client):
    page = shown(client, "/topologies/")

    assert "No topologies yet" in page
    assert 'href="/servers/new/"' in page


def test_the_list_has_kinds_nodes_and_campaigns(client, apart, archive):
    factories.campaign(topology=apart, repeats=0)

    page = shown(client, "/topologies/")

    assert f'href="/topologies/{apart.slug}/"' in page
    assert "database and load generator apart" in page
    for name in ("db", "one", "two"):
        assert f'href="/servers/{name}/">{name}</a>' in page
    crane = HardwareProfile.objects.get(name="Crane")
    assert f'href="/hardware/{crane.pk}/">Crane</a>' in page
    rows = {
        row.topology.slug: row for row in client.get("/topologies/").context["rows"]
    }
    assert rows[apart.slug].campaigns == 1
    assert [node.role for node in rows[apart.slug].nodes] == [
        "database",
        "load generator",
        "load generator",
    ]


def test_the_list_is_narrowed_to_a_kind(client, apart):
    assert apart.name in shown(client, "/topologies/?kind=client")
    page = shown(client, "/topologies/?kind=pooled")
    assert "No topology of this kind" in page
    assert 'value="pooled" selected' in page
    assert apart.name in shown(client, "/topologies/?kind=nonsense")


def test_a_page_tells_nodes_and_campaigns(client, apart):
    factories.campaign("c", title="Used it", topology=apart, repeats=0)
    link = f'href="/topologies/{apart.slug}/"'
    assert link in shown(client, "/campaigns/c/")

    page = shown(client, f"/topologies/{apart.slug}/")

    assert "Used it" in page
    for told in ("load generator", 'href="/servers/two/"', "two-core", "8 GiB"):
        assert told in page, told
    assert "192.0.2.1" not in page


def test_a_publications_machine_is_told_once_with_all_that_ran_on_it(client, archive):
    page = shown(client, "/topologies/harbour-2020-client-two-machines/")

    assert page.count(">Crane</a>") == 1
    assert "PostgreSQL 9.2.4" in page
    assert 'href="/campaigns/harbour-reading/"' in page
    assert 'href="/topologies/harbour-2020-client-two-machines/"' in shown(
        client, "/campaigns/harbour-reading/"
    )


def test_one_without_campaigns_or_machines_says_so(client, apart):
    assert "No campaign has used it yet." in shown(client, f"/topologies/{apart.slug}/")
    apart.nodes.all().delete()
    assert "does not name the machines" in shown(client, f"/topologies/{apart.slug}/")


def test_what_only_a_private_project_uses_is_its_own(client, apart):
    project = projects.create(slug="secret", is_public=False)
    alone = topologies.topology_of(server=factories.server("alone", name="alone"))
    for topology in (apart, alone):
        factories.campaign(
            topology=topology, project=project, title="Hidden", repeats=0
        )

    page = shown(client, "/topologies/")

    assert apart.slug not in page
    assert client.get(f"/topologies/{apart.slug}/").status_code == 404
    rows = client.get("/topologies/").context["rows"]
    assert [(row.topology.slug, row.campaigns) for row in rows] == [("single-alone", 0)]
    assert "Hidden" not in shown(client, "/topologies/single-alone/")
    factories.campaign(topology=apart, repeats=0)
    assert apart.slug in shown(client, "/topologies/")


def test_an_unknown_one_is_not_found(client):
    assert client.get("/topologies/none/").status_code == 404


@pytest.mark.parametrize("number", [1, 5])
def test_the_lists_queries_do_not_grow(
    client, archive, number, django_assert_num_queries
):
    for each in range(number):
        topology = topologies.topology_of(server=factories.server(f"s{each}"))
        factories.campaign(topology=topology, repeats=0)
    with django_assert_num_queries(5):
        client.get("/topologies/")


@pytest.mark.parametrize("number", [1, 5])
def test_a_pages_queries_do_not_grow(client, apart, number, django_assert_num_queries):
    for _each in range(number):
        factories.campaign(topology=apart, repeats=0)
    with django_assert_num_queries(7):
        client.get(f"/topologies/{apart.slug}/")
