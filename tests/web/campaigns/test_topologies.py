"""Topologies: the list, and a page of each with its nodes and campaigns."""

from pathlib import Path

import pytest

from runs.models import HardwareProfile
from runs.services.access import projects
from runs.services.archive import load
from runs.services.campaigns import topologies
from tests import factories

pytestmark = pytest.mark.django_db

SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"


@pytest.fixture
def archive():
    """A publication with a topology of two machines, one of them described."""
    load(files=[SAMPLE])


@pytest.fixture
def apart():
    """A database, and two servers that generate its load."""
    database, *generators = (factories.server(name, name=name) for name in ("db", "one", "two"))
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
    rows = {row.topology.slug: row for row in client.get("/topologies/").context["rows"]}
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
    assert "does not tell which machines" in shown(client, f"/topologies/{apart.slug}/")


def test_what_only_a_private_project_uses_is_its_own(client, apart):
    project = projects.create(slug="secret", is_public=False)
    alone = topologies.topology_of(server=factories.server("alone", name="alone"))
    for topology in (apart, alone):
        factories.campaign(topology=topology, project=project, title="Hidden", repeats=0)

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
def test_the_lists_queries_do_not_grow(client, archive, number, django_assert_num_queries):
    for each in range(number):
        topology = topologies.topology_of(server=factories.server(f"s{each}"))
        factories.campaign(topology=topology, repeats=0)
    with django_assert_num_queries(4):
        client.get("/topologies/")


@pytest.mark.parametrize("number", [1, 5])
def test_a_pages_queries_do_not_grow(client, apart, number, django_assert_num_queries):
    for _each in range(number):
        factories.campaign(topology=apart, repeats=0)
    with django_assert_num_queries(6):
        client.get(f"/topologies/{apart.slug}/")
