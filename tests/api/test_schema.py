"""The description of the API, and its page."""

import pytest
import yaml
from django.core.management import call_command

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    """The schema as `manage.py spectacular` writes it; a warning fails."""
    path = tmp_path_factory.mktemp("schema") / "schema.yml"
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", str(path))
    return yaml.safe_load(path.read_text())


def test_every_address_is_described(schema):
    assert list(schema["paths"]) == [
        "/api/v1/campaigns/",
        "/api/v1/campaigns/{slug}/",
        "/api/v1/measurements/",
        "/api/v1/measurements/{id}/",
        "/api/v1/runs/",
        "/api/v1/runs/{id}/",
        "/api/v1/servers/",
        "/api/v1/servers/{slug}/",
    ]


def test_each_operation_tells_its_problems(schema):
    for path, operations in schema["paths"].items():
        responses = operations["get"]["responses"]
        assert "application/problem+json" in responses["400"]["content"]
        assert ("404" in responses) == ("{" in path)


def test_filters_and_paging_are_described(schema):
    parameters = schema["paths"]["/api/v1/measurements/"]["get"]["parameters"]

    assert {parameter["name"] for parameter in parameters} == {
        "campaign", "cursor", "metric", "origin", "page_size", "run", "version",
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
