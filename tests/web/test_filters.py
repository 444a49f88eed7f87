"""What a list can be filtered by: the same on its page and in the API."""

import re

import pytest
from django.contrib.auth.models import User

from runs import urls
from runs.configurations.services import configurations
from tests import factories

pytestmark = pytest.mark.django_db

# Only the API lists scenarios of the archive, which BenchLab cannot run.
OF_THE_API = {"scenarios"}


@pytest.fixture
def lists(client, ready_server):
    """The address of each list that has a page, with the page's filters and the API's."""
    client.force_login(User.objects.create_superuser("admin"))
    configurations.sync()
    factories.campaign("nightly", on=ready_server)
    registered = [
        entry
        for subject in urls.SUBJECTS
        if hasattr(subject, "router")
        for entry in subject.router.registry
    ]
    pages = {name: (client.get(f"/{name}/"), door) for name, door, _base in registered}
    return {
        name: (page.context.get("filters"), getattr(door, "filterset_class", None))
        for name, (page, door) in pages.items()
        if page.status_code == 200 and name not in OF_THE_API
    }


def test_the_page_of_a_list_takes_the_filters_of_its_api(lists):
    assert set(lists) >= {
        "audit",
        "campaigns",
        "changes",
        "configurations",
        "hardware",
        "servers",
    }
    differ = {
        name: (page, api)
        for name, (page, api) in lists.items()
        if (page and type(page)) is not api
    }
    assert differ == {}


def test_a_filter_that_fits_nothing_leaves_nothing_or_says_why(lists, client):
    ignored = []
    for name, (filters, _api) in lists.items():
        for field in filters.filters if filters else ():
            page = client.get(f"/{name}/?{field}=nothing")
            found = page.context["filters"]
            if found.qs.exists() and not found.errors:
                ignored.append(f"{name} {field}")
            # A field, or the links of a switch.
            elif not re.search(
                rf'name="{field}"|href="\?{field}=', page.content.decode()
            ):
                ignored.append(f"{name} {field} is not on its page")
    assert ignored == []


def test_the_pages_of_a_list_keep_its_filters(client, lists):
    for number in range(60):
        factories.configuration(f"own-{number:02}")
    page = client.get("/configurations/?origin=own&q=own")
    assert (
        page.context["page"].after
        == f"origin=own&q=own&after={page.context['page'].rows[-1].pk}"
    )
    older = client.get(f"/configurations/?{page.context['page'].after}")
    assert [each.slug for each in older.context["page"].rows] == [
        f"own-{n}" for n in range(50, 60)
    ]
    assert older.context["page"].before.startswith("origin=own&q=own&before=")


def test_a_name_that_is_none_is_said_at_its_field(client, lists):
    page = client.get("/hardware/?server=db2").content.decode()
    assert "Nothing has this name" in page
    assert 'name="server"' in page
