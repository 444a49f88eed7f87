"""Hardware: the list, a page of each profile, and the ways to it."""

from pathlib import Path

import pytest

from runs.access.services import projects
from runs.archive.services import load
from runs.models import Campaign, HardwareProfile
from runs.servers.selectors import hardware as selectors
from tests import factories

pytestmark = pytest.mark.django_db

SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"
FACTS = {
    "disks": [
        {"name": "nvme0n1", "model": "PM9A3", "size_bytes": 2**40, "rotational": False}
    ],
    "network": [
        {"name": "eth0", "driver": "virtio_net", "speed_mbit": 10000, "mtu": 9000}
    ],
    "numa_nodes": 2,
    "threads_per_core": 2,
    "product": "Super Server",
    "cloud": "aws m7i.large",
}


@pytest.fixture
def archive():
    """A publication that measured on one machine, the Crane."""
    load(files=[SAMPLE])
    return HardwareProfile.objects.get(name="Crane")


def shown(client, path):
    """The text of a page."""
    answer = client.get(path)
    assert answer.status_code == 200, path
    return " ".join(answer.content.decode().split())


def uploaded(name="own", **facts):
    """A profile as an upload may describe it, with arbitrary facts."""
    return HardwareProfile.objects.create(fingerprint=name, name=name, facts=facts)


def measured(on, slug="lab", **fields):
    """A finished campaign of six runs on that hardware."""
    campaign = factories.finish_all(factories.campaign(slug, repeats=1, **fields))
    campaign.runs.update(hardware=on)
    return campaign


def test_an_empty_list_says_what_to_do(client):
    page = shown(client, "/hardware/")

    assert "No hardware is known yet" in page
    assert 'href="/servers/new/"' in page


def test_the_list_tells_what_each_is_and_how_much_was_measured_on_it(client, archive):
    server = factories.server("lab")
    HardwareProfile.objects.filter(pk=server.hardware_id).update(facts=FACTS)
    measured(server.hardware)

    page = shown(client, "/hardware/")

    assert f'href="/hardware/{server.hardware_id}/">two-core</a>' in page
    for told in ("EPYC", "8 GiB", "PM9A3 · 1 TiB", "aws m7i.large", "NVMe", "Zen 9"):
        assert told in page, told
    rows = {row.hardware.name: row for row in client.get("/hardware/").context["rows"]}
    assert (len(rows["two-core"].servers), rows["two-core"].runs) == (1, 6)
    campaigns = (
        Campaign.objects.filter(published__nodes__hardware=archive).distinct().count()
    )
    assert (rows["Crane"].published, rows["Crane"].runs) == (campaigns, 0)
    assert campaigns > 1


def test_the_list_is_searched(client, archive):
    factories.server(hardware=uploaded("cloudy", cloud="aws m7i.large"))

    assert "Crane" not in shown(client, "/hardware/?q=m7i")
    assert "cloudy" in shown(client, "/hardware/?q=M7I+aws")
    assert "Crane" in shown(client, "/hardware/?q=zen")
    nothing = shown(client, "/hardware/?q=abacus")
    assert "No hardware fits" in nothing
    assert 'value="abacus"' in nothing


def test_a_page_has_fifty_and_keeps_the_search(client):
    for number in range(51):
        factories.server(hardware=uploaded(f"box-{number:02}"))

    page = shown(client, "/hardware/?q=box")

    assert "box-49" in page
    assert "box-50" not in page
    after = HardwareProfile.objects.get(name="box-49").pk
    assert f'href="?q=box&amp;after={after}"' in page
    assert "box-50" in shown(client, f"/hardware/?q=box&after={after}")


def test_a_profiles_page_has_facts_servers_campaigns_and_noise(client):
    server = factories.server("lab", name="The lab's")
    HardwareProfile.objects.filter(pk=server.hardware_id).update(facts=FACTS)
    campaign = factories.finish_all(
        factories.campaign("lab", title="Measured", on=server)
    )
    campaign.runs.update(hardware=server.hardware)

    page = shown(client, f"/hardware/{server.hardware_id}/")

    for told in (
        "Super Server",
        "2 threads a core",
        "MTU 9000",
        "solid state",
        "Measured",
    ):
        assert told in page, told
    assert 'href="/servers/lab/"' in page
    assert "Repeats scatter by 0.2 %" in page
    assert server.address not in page


def test_a_publications_machine_leads_to_its_campaigns(client, archive):
    page = shown(client, f"/hardware/{archive.pk}/")

    assert 'href="/campaigns/harbour-reading/"' in page
    assert "NVMe" in page
    assert "Noise floor" not in page


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"disks": "2 x NVMe"}, "2 x NVMe"),
        ({"disks": ["sda", "sdb"]}, "sda; sdb"),
        ({"disks": [{"size_bytes": 2**40}, {}]}, "1 TiB"),
        ({"disks": [{"size_bytes": "1 TB"}]}, "size_bytes 1 TB"),
        ({"disks": [{"name": "sda", "wear": 3}]}, "name sda, wear 3"),
        ({"network": {"speed": 10}}, "network.speed"),
        ({"cloud": ["a", 1]}, "a; 1"),
        ({"numa_nodes": "two"}, "two"),
        ({"raid": {"level": 5, "cache": None}}, "raid.level"),
        ({"note": {"en": "lent", "ja": "借用"}}, "lent"),
        ({"clock": 2.5, "ecc": True, "none": None, "empty": {}}, "True"),
        ({"x": "<script>"}, "&lt;script&gt;"),
    ],
)
def test_facts_of_any_form_are_shown(client, facts, told):
    profile = factories.server(hardware=uploaded(**facts)).hardware

    assert told in shown(client, f"/hardware/{profile.pk}/")
    assert shown(client, "/hardware/")


def test_what_only_a_private_project_measured_on_is_its_own(client, django_user_model):
    person = django_user_model.objects.create_user("ichiro")
    client.force_login(person)
    project = projects.create(slug="secret", is_public=False)
    own = uploaded("ours")
    measured(own, "hidden", title="Hidden", project=project)
    shared = factories.server().hardware
    measured(shared, "hidden-too", title="Hidden", project=project)

    assert client.get(f"/hardware/{own.pk}/").status_code == 404
    assert "ours" not in shown(client, "/hardware/")
    page = shown(client, f"/hardware/{shared.pk}/")
    assert "Hidden" not in page
    assert "Nothing was measured on it yet." in page

    project.members.add(person)
    assert "Hidden" in shown(client, f"/hardware/{own.pk}/")
    assert "ours" in shown(client, "/hardware/")


def test_an_unknown_one_is_not_found(client):
    assert client.get("/hardware/1/").status_code == 404


def test_no_more_runs_are_counted_than_a_page_can_bear(client, monkeypatch):
    hardware = factories.server().hardware
    measured(hardware)
    monkeypatch.setattr(selectors, "MOST_COUNTED", 6)

    assert "6 or more" in shown(client, "/hardware/")
    assert "6 or more" in shown(client, f"/hardware/{hardware.pk}/")


def test_other_pages_lead_to_it(client, archive):
    server = factories.server("lab", versions=["16.14", "18.4"])
    campaign = factories.campaign("lab", on=server)
    campaign.runs.update(hardware=server.hardware)
    run = factories.finish(campaign.runs.first(), tps=1)

    link = f'href="/hardware/{server.hardware_id}/"'
    for path in ("/servers/", "/servers/lab/", "/campaigns/lab/", f"/runs/{run.pk}/"):
        assert link in shown(client, path), path
    assert f'href="/hardware/{archive.pk}/"' in shown(
        client, "/campaigns/harbour-reading/"
    )


@pytest.mark.parametrize("number", [1, 5])
def test_the_lists_queries_do_not_grow(
    client, archive, number, django_assert_num_queries
):
    for each in range(number):
        measured(factories.server(hardware=uploaded(f"h{each}")).hardware, f"c{each}")
    with django_assert_num_queries(4):
        client.get("/hardware/")


@pytest.mark.parametrize("number", [1, 5])
def test_a_pages_queries_do_not_grow(client, number, django_assert_num_queries):
    hardware = factories.hardware()
    for each in range(number):
        factories.server(f"s{each}")
        measured(hardware, f"c{each}")
    with django_assert_num_queries(19):
        client.get(f"/hardware/{hardware.pk}/")
