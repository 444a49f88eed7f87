"""The API matches its own description for any request: no 5xx, no undocumented answer.

Cases are made from the OpenAPI document by schemathesis, the same ones in each run.
Four cases for each operation by default, and ten with those that are slow.
"""

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from runs.models import Campaign, Token
from runs.services.access import projects, tokens
from runs.services.campaigns import scenarios
from tests import factories

pytestmark = [pytest.mark.django_db, pytest.mark.timeout(240)]

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
    uploaded = factories.campaign("nightly", project=projects.default(), origin="uploaded")
    factories.finish_all(uploaded)
    return schemathesis.openapi.from_wsgi("/api/v1/schema/?format=json", WSGIHandler())


@pytest.fixture
def header(db):
    """A token that may do everything."""
    made = tokens.create(name="all", scopes=Token.Scope.values, project=projects.default())
    # The client in between the application and schemathesis does not unpack answers.
    return {"Authorization": f"Bearer {made.text}", "Accept-Encoding": "identity"}


def aim(case):
    """Every other time ask for something that is there."""
    places = case.path_parameters or {}
    if "slug" in places and len(str(places["slug"])) % 2:
        places["slug"] = next((KNOWN[part] for part in case.path.split("/") if part in KNOWN), "x")
    if "id" in places and str(places["id"]).isdigit() and int(places["id"]) % 2:
        run = Campaign.objects.get(slug="known").runs.first()
        places["id"] = run.server.hardware_id if "/hardware/" in case.path else run.pk


@pytest.mark.parametrize("cases", [4, pytest.param(10, marks=pytest.mark.slow)])
def test_every_answer_is_one_that_the_description_knows(described, header, subtests, cases):
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
            with transaction.atomic():  # each case finds the database as the first one did
                case.call_and_validate(checks=CHECKS, headers=header)
                transaction.set_rollback(True)

        with subtests.test(operation.label):
            every_case()
