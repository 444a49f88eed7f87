"""The description of the API, and its page."""

import pytest
import yaml
from django.core.management import call_command

from runs.api.uploads import circumstances, description, numbers, runs

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """The schema as `manage.py spectacular` writes it; a warning fails."""
    path = tmp_path_factory.mktemp("schema") / "schema.yml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(path))
    return yaml.safe_load(path.read_text())


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
        "/api/v1/configurations/",
        "/api/v1/configurations/{slug}/",
        "/api/v1/configurations/check/",
        "/api/v1/hardware/",
        "/api/v1/hardware/{id}/",
        "/api/v1/history/",
        "/api/v1/measurements/",
        "/api/v1/measurements/{id}/",
        "/api/v1/preflight/",
        "/api/v1/preflight/{check_id}/",
        "/api/v1/projects/{slug}/export/",
        "/api/v1/projects/{slug}/import/",
        "/api/v1/runs/",
        "/api/v1/runs/{id}/",
        "/api/v1/runs/{id}/restore/",
        "/api/v1/runs/{id}/retry/",
        "/api/v1/runs/{id}/withdraw/",
        "/api/v1/scenarios/",
        "/api/v1/scenarios/{slug}/",
        "/api/v1/schedules/",
        "/api/v1/schedules/{id}/",
        "/api/v1/schedules/{id}/pause/",
        "/api/v1/schedules/{id}/resume/",
        "/api/v1/servers/",
        "/api/v1/servers/{slug}/",
        "/api/v1/servers/{slug}/maintain/",
        "/api/v1/servers/{slug}/release/",
        "/api/v1/sources/",
        "/api/v1/sources/{slug}/",
        "/api/v1/trials/",
        "/api/v1/trials/{check_id}/",
        "/api/v1/uploads/",
        "/api/v1/uploads/batch/",
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
        "campaign", "cursor", "format", "metric", "origin", "page_size", "run", "source", "table",
        "version",
    }  # fmt: skip


def test_a_page_of_results_is_described_as_it_comes(schema):
    page = schema["components"]["schemas"]["PaginatedCampaignList"]

    assert set(page["properties"]) == {"results", "next"}


def test_the_schema_is_served(client):
    response = client.get("/api/v1/schema/")

    assert response.status_code == 200
    assert yaml.safe_load(response.content)["info"]["title"] == "BenchLab API"


def test_the_documentation_page_loads_nothing_from_elsewhere(client):
    page = client.get("/api/docs/").content.decode()

    assert "/static/drf_spectacular_sidecar/" in page
    assert "cdn" not in page
    assert "https://" not in page


def test_uploads_are_described_field_by_field(schema):
    shapes = schema["components"]["schemas"]

    assert set(shapes["UploadedRun"]["properties"]) == runs.FIELDS
    assert set(shapes["UploadedMeasurement"]["properties"]) == numbers.MEASUREMENT
    assert set(shapes["UploadedSeries"]["properties"]) == numbers.SERIES
    assert set(shapes["UploadedHardware"]["properties"]) == circumstances.HARDWARE
    assert set(shapes["UploadedEnvironment"]["properties"]) == circumstances.ENVIRONMENT
    assert set(shapes["UploadedPostgreSQL"]["properties"]) == circumstances.POSTGRESQL
    assert set(shapes["UploadedRevision"]["properties"]) == circumstances.REVISION


def test_uploads_tell_their_problems_and_the_token_that_they_need(schema):
    operation = schema["paths"]["/api/v1/uploads/"]["post"]

    assert {"200", "201", "409", "413", "415", "422", "429"} <= set(operation["responses"])
    assert {"token": []} in operation["security"]


@pytest.mark.parametrize("example", [description.RUN, {"runs": 2 * [description.RUN]}])
def test_the_examples_are_stored_as_they_stand(client, bearer, example):
    path = "/api/v1/uploads/batch/" if "runs" in example else "/api/v1/uploads/"

    answer = client.post(path, example, "application/json", headers=bearer)

    assert answer.status_code == 201, answer.content
