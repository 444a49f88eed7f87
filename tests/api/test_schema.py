"""The API's description: what it says, and that answers hold to it."""

import pytest
import schemathesis
import yaml
from django.core.cache import cache
from django.core.handlers.wsgi import WSGIHandler
from django.core.management import call_command
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from runs.access.services import projects, tokens
from runs.models import Campaign, Token
from runs.shared.api.upload_limits import (
    ENVIRONMENT_TEXTS,
    HARDWARE_NUMBERS,
    HARDWARE_TEXTS,
)
from runs.uploads.api import circumstances, description, measured_values, runs
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db


# The description of the API, and its page.


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """The schema as `manage.py spectacular` writes it; a warning fails."""
    path = tmp_path_factory.mktemp("schema") / "schema.yml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(path))
    return yaml.load(path.read_text(), yaml.CSafeLoader)


def test_every_address_is_described(schema):
    assert list(schema["paths"]) == [
        "/api/v1/audit/",
        "/api/v1/audit/{id}/",
        "/api/v1/bisections/",
        "/api/v1/bisections/{id}/",
        "/api/v1/bisections/{id}/cancel/",
        "/api/v1/campaigns/",
        "/api/v1/campaigns/{slug}/",
        "/api/v1/campaigns/{slug}/annotations/",
        "/api/v1/campaigns/{slug}/await/",
        "/api/v1/campaigns/{slug}/cancel/",
        "/api/v1/campaigns/{slug}/pause/",
        "/api/v1/campaigns/{slug}/plan/",
        "/api/v1/campaigns/{slug}/priority/",
        "/api/v1/campaigns/{slug}/report/",
        "/api/v1/campaigns/{slug}/reproduction/",
        "/api/v1/campaigns/{slug}/resume/",
        "/api/v1/campaigns/{slug}/retry/",
        "/api/v1/campaigns/{slug}/rounds/",
        "/api/v1/changes/",
        "/api/v1/changes/{id}/",
        "/api/v1/changes/{id}/decision/",
        "/api/v1/compare/",
        "/api/v1/compare/why/",
        "/api/v1/configurations/",
        "/api/v1/configurations/{slug}/",
        "/api/v1/configurations/check/",
        "/api/v1/hardware/",
        "/api/v1/hardware/{id}/",
        "/api/v1/history/",
        "/api/v1/hosts/join/",
        "/api/v1/hosts/leave/",
        "/api/v1/loads/{slug}/answers/{campaign}/",
        "/api/v1/loads/{slug}/answers/{campaign}/trials/",
        "/api/v1/loads/{slug}/dump/",
        "/api/v1/measurements/",
        "/api/v1/measurements/{id}/",
        "/api/v1/observations/",
        "/api/v1/observations/{slug}/",
        "/api/v1/observations/{slug}/begin/",
        "/api/v1/preflight/",
        "/api/v1/preflight/{check_id}/",
        "/api/v1/projects/{slug}/export/",
        "/api/v1/projects/{slug}/import/",
        "/api/v1/runs/",
        "/api/v1/runs/{id}/",
        "/api/v1/runs/{id}/restore/",
        "/api/v1/runs/{id}/retry/",
        "/api/v1/runs/{id}/withdraw/",
        "/api/v1/runs/{run_id}/series/{name}/",
        "/api/v1/scenarios/",
        "/api/v1/scenarios/{slug}/",
        "/api/v1/schedules/",
        "/api/v1/schedules/{id}/",
        "/api/v1/schedules/{id}/pause/",
        "/api/v1/schedules/{id}/resume/",
        "/api/v1/search/",
        "/api/v1/servers/",
        "/api/v1/servers/{slug}/",
        "/api/v1/servers/{slug}/join/",
        "/api/v1/servers/{slug}/maintain/",
        "/api/v1/servers/{slug}/release/",
        "/api/v1/servers/{slug}/separate/",
        "/api/v1/sources/",
        "/api/v1/sources/{slug}/",
        "/api/v1/trials/",
        "/api/v1/trials/{check_id}/",
        "/api/v1/uploads/",
        "/api/v1/uploads/batch/",
        "/api/v1/versions/",
        "/api/v1/webhooks/",
        "/api/v1/webhooks/{id}/",
        "/api/v1/webhooks/{id}/deliveries/",
        "/api/v1/webhooks/{id}/ping/",
    ]


def test_each_operation_tells_its_problems(schema):
    for path, operations in schema["paths"].items():
        for operation in operations.values():
            responses = operation["responses"]
            assert "application/problem+json" in responses["400"]["content"]
            assert "application/problem+json" in responses["401"]["content"]
            assert ("404" in responses) == ("{" in path)


def test_filters_and_paging_are_described(schema):
    parameters = schema["paths"]["/api/v1/measurements/"]["get"]["parameters"]

    assert {parameter["name"] for parameter in parameters} == {
        "campaign",
        "cursor",
        "format",
        "metric",
        "origin",
        "page_size",
        "run",
        "source",
        "table",
        "version",
    }


def test_a_page_of_results_is_described_as_it_comes(schema):
    page = schema["components"]["schemas"]["PaginatedCampaignList"]

    assert set(page["properties"]) == {"results", "next"}


def test_what_is_costly_and_public_is_made_once(client, monkeypatch, db):
    """The description of a release, and the archive until a publication is loaded."""
    cache.clear()
    for address, made_by in (
        ("/api/v1/schema/", "runs.shared.api.schema_view.SchemaGenerator.get_schema"),
        ("/archive/data.zip", "runs.archive.selectors.data_package.write"),
    ):
        first = client.get(address)
        monkeypatch.setattr(made_by, None)
        again = client.get(address)
        assert again.getvalue() == first.getvalue()
        unchanged = client.get(
            address, headers={"if-none-match": first.headers["ETag"]}
        )
        assert unchanged.status_code == 304, address


def test_the_schema_is_served(client):
    response = client.get("/api/v1/schema/")

    assert response.status_code == 200
    assert (
        yaml.load(response.content, yaml.CSafeLoader)["info"]["title"] == "BenchLab API"
    )


def test_the_documentation_page_loads_nothing_from_elsewhere(client):
    page = client.get("/api/docs/").content.decode()

    assert "/static/drf_spectacular_sidecar/" in page
    assert "cdn" not in page
    assert 'href="/"' in page
    assert "<noscript>" in page
    assert "https://" not in page


def test_uploads_are_described_field_by_field(schema):
    shapes = schema["components"]["schemas"]

    assert set(shapes["UploadedRun"]["properties"]) == runs.FIELDS
    assert (
        set(shapes["UploadedMeasurement"]["properties"]) == measured_values.MEASUREMENT
    )
    assert set(shapes["UploadedSeries"]["properties"]) == measured_values.SERIES
    assert set(shapes["UploadedHardware"]["properties"]) == {
        *HARDWARE_TEXTS,
        *HARDWARE_NUMBERS,
        "facts",
    }
    assert set(shapes["UploadedEnvironment"]["properties"]) == {
        *ENVIRONMENT_TEXTS,
        "facts",
    }
    assert set(shapes["UploadedPostgreSQL"]["properties"]) == circumstances.POSTGRESQL
    assert set(shapes["UploadedRevision"]["properties"]) == circumstances.REVISION


def test_uploads_tell_their_problems_and_the_token_that_they_need(schema):
    operation = schema["paths"]["/api/v1/uploads/"]["post"]

    assert {"200", "201", "409", "413", "415", "422", "429"} <= set(
        operation["responses"]
    )
    assert {"token": []} in operation["security"]


@pytest.mark.parametrize("example", [description.RUN, {"runs": 2 * [description.RUN]}])
def test_the_examples_are_stored_as_they_stand(client, bearer, example):
    path = "/api/v1/uploads/batch/" if "runs" in example else "/api/v1/uploads/"

    answer = client.post(path, example, "application/json", headers=bearer)

    assert answer.status_code == 201, answer.content


# The API matches its own description for any request: no 5xx, no undocumented answer.
#
# Cases are made from the OpenAPI document by schemathesis, the same ones in each run.
# Two cases for each operation by default, and ten with those that are slow.


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
# Slugs that are there, and what belongs to them.
KNOWN = {
    "campaigns": "known",
    "servers": "db1",
    "projects": "default",
    "scenarios": "fixed-point-read",
}


@schemathesis.serializer("application/x-ndjson")
def ndjson(_context, value):
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")


@pytest.fixture
def one_connection(db):
    """A request leaves the test's connection open, as with Django's own test client."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.fixture
def described(one_connection):
    """The description, served by the application over a database with something in it."""
    scenarios.sync()
    server = factories.server("db1", versions=["18.4"])
    campaign = factories.finish_all(
        factories.campaign("known", project=projects.default(), on=server)
    )
    factories.story(campaign.runs.first())
    uploaded = factories.campaign(
        "nightly", project=projects.default(), origin="uploaded"
    )
    factories.finish_all(uploaded)
    return schemathesis.openapi.from_wsgi("/api/v1/schema/?format=json", WSGIHandler())


@pytest.fixture
def header(db):
    """A token that may do everything."""
    made = tokens.create(
        name="all", scopes=Token.Scope.values, project=projects.default()
    )
    # The client in between the application and schemathesis does not unpack answers.
    return {"Authorization": f"Bearer {made.text}", "Accept-Encoding": "identity"}


def aim(case):
    """Every other time ask for something that is there."""
    places = case.path_parameters or {}
    if "slug" in places and len(str(places["slug"])) % 2:
        places["slug"] = next(
            (KNOWN[part] for part in case.path.split("/") if part in KNOWN), "x"
        )
    if "id" in places and str(places["id"]).isdigit() and int(places["id"]) % 2:
        run = Campaign.objects.get(slug="known").runs.first()
        places["id"] = run.server.hardware_id if "/hardware/" in case.path else run.pk


@pytest.mark.timeout(240)
@pytest.mark.parametrize("cases", [2, pytest.param(10, marks=pytest.mark.slow)])
def test_every_answer_is_one_that_the_description_knows(
    described, header, subtests, cases
):
    for found in described.get_all_operations():
        operation = found.ok()

        @settings(
            max_examples=cases,
            deadline=None,
            derandomize=True,
            database=None,
            phases=[Phase.explicit, Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy())
        def every_case(case):
            aim(case)
            with (
                transaction.atomic()
            ):  # each case finds the database as the first one did
                case.call_and_validate(checks=CHECKS, headers=header)
                transaction.set_rollback(True)

        with subtests.test(operation.label):
            every_case()
