"""Each field of a draft comes through each door: the form of a new campaign, and the API."""

from dataclasses import MISSING, fields

import pytest
from django.contrib.auth.models import User
from django.http import QueryDict

from runs.access.selectors import permissions
from runs.archive.services import publications as archive
from runs.campaigns.api.drafts import CampaignDraftSerializer
from runs.campaigns.services.drafts import Draft
from runs.campaigns.views.forms import CampaignForm
from runs.published import reading
from runs.scenarios import registry
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db

PUBLISHED = "wg1-2013-2-2"


@pytest.fixture
def servers():
    scenarios.sync()
    made = [factories.server(slug) for slug in ("db", "db2", "load", "standby")]
    for each in made:
        factories.installation(each, "18.4", has_psql=True, pgbench_version_num=180004)
    return made


@pytest.fixture
def configurations():
    archive.load(files=[path for path in reading.files() if path.stem == "wg1-2013"])
    return [factories.configuration(slug) for slug in ("plain", "tuned")]


BODY = {
    "title": "Through a door",
    "scenario": "fixed-point-read",
    "servers": ["db", "db2"],
    "versions": ["18.4"],
    "client": "/usr/lib/postgresql/18.4/bin",
    "generators": ["load"],
    "cluster_servers": ["standby"],
    "levels": {"clients": [1, 2], "arrangement": ["sync"]},
    "parameters": {"scale": 3, "duration": 8},
    "repeats": 4,
    "seed": 5,
    "configurations": ["plain", "tuned"],
    "settings": {"work_mem": ["4MB", "8MB"]},
    "reproduces": PUBLISHED,
    "priority": 6,
    "most_attempts": 7,
    "remeasures": 2,
    "leaves_out_doubtful": True,
    "wanted_half_width": 0.02,
    "most_repeats": 9,
    "slice_seconds": 2,
    "a_a": True,
    "treatment": {"cold_cache": True},
}


# What nobody types: BenchLab titles in Japanese what it titles itself.
OWN = {"title_ja"}


def by_api():
    reader = User(username="ada", is_superuser=True)
    serializer = CampaignDraftSerializer(data=BODY, context={"reader": reader})
    serializer.is_valid(raise_exception=True)
    return serializer.unchecked_draft()


def by_form(servers, configurations):
    db, other, load, standby = servers
    plain, tuned = configurations
    data = QueryDict(mutable=True)
    data.update(
        {
            "title": "Through a door",
            "scenario": "fixed-point-read",
            "server": db.slug,
            "more_servers": other.slug,
            "installations": "18.4",
            "client": db.installations.get().pk,
            "generators": load.slug,
            "cluster_servers": standby.slug,
            "clients": "1, 2",
            "arrangement": "sync",
            "scale": "3",
            "duration": "8",
            "repeats": "4",
            "seed": "5",
            "configuration": plain.pk,
            "more_configurations": tuned.slug,
            "settings": "work_mem: 4MB, 8MB",
            "from": PUBLISHED,
            "priority": "6",
            "most_attempts": "7",
            "remeasures": "2",
            "leaves_out_doubtful": "on",
            "wanted_percent": "2",
            "most_repeats": "9",
            "slice_seconds": "2",
            "is_a_a": "on",
            "cold_cache": "on",
        }
    )
    project = permissions.default_project()
    form = CampaignForm(
        data,
        scenario=registry.get("fixed-point-read"),
        servers=[db, other],
        project=project,
    )
    assert form.is_valid(), form.errors
    return form.draft()


def test_each_field_of_a_draft_comes_through_the_api_and_through_the_form(
    servers, configurations
):
    api, form = by_api(), by_form(servers, configurations)
    for field in fields(Draft):
        default = field.default
        if default is MISSING:
            default = (
                None if field.default_factory is MISSING else field.default_factory()
            )
        for door, draft in (("API", api), ("form", form)):
            is_default = getattr(draft, field.name) == default
            assert is_default == (field.name in OWN), f"{door}: {field.name}"
    given = form.to_json()
    factors = [each.name for each in registry.get("fixed-point-read").factors]
    # The form sends each factor; the API fills in what is left out.
    assert {*given["levels"]} >= {*factors, "arrangement"}
    assert api.to_json() == given
