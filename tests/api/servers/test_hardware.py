"""Hardware profiles over the API."""

from pathlib import Path

import pytest
from django.contrib.auth.models import User

from runs.models import HardwareProfile
from runs.selectors.servers import hardware
from runs.services import archive
from runs.services.access import projects
from tests import factories

pytestmark = pytest.mark.django_db

SAMPLE = Path(__file__).parents[2] / "samples/published/harbour-2020.yaml"


def measured(slug="lab", *, on, **fields):
    """A finished campaign of six runs on that hardware."""
    campaign = factories.finish_all(factories.campaign(slug, repeats=1, **fields))
    campaign.runs.update(hardware=on)
    return campaign


def test_a_profile_says_what_it_is_and_what_was_measured_on_it(get):
    server = factories.server("lab")
    measured(on=server.hardware)
    factories.run(hardware=server.hardware)  # still queued

    (row,) = get("hardware/")["results"]

    address = row.pop("url")
    assert get(address.partition("/api/v1/")[2]) == {**row, "url": address}
    assert row == {
        "id": server.hardware_id,
        "fingerprint": "two-core",
        "slug": "",
        "name": "two-core",
        "cpu_model": "EPYC",
        "sockets": None,
        "cores": 2,
        "threads": None,
        "memory_bytes": 8 * 2**30,
        "virtualization": "",
        "facts": {},
        "servers": ["lab"],
        "runs": 6,
        "published": 0,
    }


def test_a_publications_machine_is_told_with_its_campaigns(get):
    archive.load(files=[SAMPLE])

    rows = get("hardware/", source="harbour-2020")["results"]

    assert {row["slug"] for row in rows} == set(
        HardwareProfile.objects.values_list("slug", flat=True)
    )
    assert max(row["published"] for row in rows) > 1
    assert {row["runs"] for row in rows} == {0}


def test_profiles_are_filtered(get):
    factories.server("a")
    other = factories.hardware("other")
    HardwareProfile.objects.filter(pk=other.pk).update(cpu_model="Xeon Gold", virtualization="KVM")
    factories.server("b", hardware=other)

    def names(**query):
        return [row["name"] for row in get("hardware/", **query)["results"]]

    assert names() == ["other", "two-core"]
    assert names(cpu_model="xeon") == ["other"]
    assert names(virtualization="kvm") == ["other"]
    assert names(server="a") == ["two-core"]
    assert names(source="wg1-2017") == []
    assert names(page_size=1) == ["other"]


def test_what_only_a_private_project_measured_on_is_its_own(client, get, make_token):
    project = projects.create(slug="secret", is_public=False)
    own = factories.hardware("own")
    measured("hidden", on=own, project=project)
    shared = factories.server("lab").hardware
    measured("hidden-too", on=shared, project=project)

    (row,) = get("hardware/")["results"]

    assert (row["name"], row["runs"]) == ("two-core", 0)
    get(f"hardware/{own.pk}/", expect=404)
    token = {"Authorization": f"Bearer {make_token('read', of=project)}"}
    rows = client.get("/api/v1/hardware/", headers=token).json()["results"]
    assert {row["name"]: row["runs"] for row in rows} == {"own": 6, "two-core": 6}
    project.members.add(User.objects.create_user("ichiro"))
    client.force_login(User.objects.get(username="ichiro"))
    assert client.get(f"/api/v1/hardware/{own.pk}/").status_code == 200


def test_no_more_runs_are_counted_than_a_list_can_bear(get, monkeypatch):
    measured(on=factories.server().hardware)
    monkeypatch.setattr(hardware, "MOST_COUNTED", 5)

    (row,) = get("hardware/")["results"]

    assert row["runs"] == 5


def test_runs_and_servers_are_found_by_the_hardware(get):
    server = factories.server("a")
    factories.server("b", hardware=factories.hardware("other"))
    measured("there", on=server.hardware)
    measured("elsewhere", on=factories.hardware("other"))

    assert [row["slug"] for row in get("servers/", hardware="two-core")["results"]] == ["a"]
    rows = get("runs/", hardware="two-core")["results"]
    assert {row["campaign"] for row in rows} == {"there"}
    assert len(rows) == 6


@pytest.mark.parametrize("number", [1, 5])
def test_the_list_takes_four_queries_however_long(get, number, django_assert_num_queries):
    for each in range(number):
        measured(f"c{each}", on=factories.server(hardware=factories.hardware(f"h{each}")).hardware)

    with django_assert_num_queries(4):
        assert len(get("hardware/")["results"]) == number
