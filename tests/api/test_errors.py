"""Errors over the API: one shape, every fault."""

import pytest
from django.core.exceptions import PermissionDenied
from django.db import connection
from django.http import Http404
from rest_framework.exceptions import ErrorDetail, Throttled, ValidationError
from rest_framework.test import APIRequestFactory

from benchlab import statement_limits
from runs.api.errors import problem_json
from runs.selectors.access import projects
from runs.services.errors import ServiceError
from tests import factories

REQUESTS = APIRequestFactory()


def answered(exc, method="post"):
    request = getattr(REQUESTS, method)("/api/v1/anything/")
    response = problem_json(exc, {"request": request})
    assert response.content_type == "application/problem+json"
    assert response.data["status"] == response.status_code
    return response


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("path", "query", "pointer", "code"),
    [
        ("campaigns/", {"orgin": "executed"}, "?orgin", "unknown_parameter"),
        ("campaigns/", {"origin": "elsewhere"}, "?origin", "invalid_choice"),
        ("campaigns/", {"origin": ""}, "?origin", "empty_parameter"),
        ("campaigns/", {"origin": " "}, "?origin", "empty_parameter"),
        ("runs/", {"state": ["failed", "finished"]}, "?state", "repeated_parameter"),
        ("runs/", {"metric": "tps"}, "?metric", "unknown_parameter"),
        ("measurements/", {"campain": "x"}, "?campain", "unknown_parameter"),
        ("measurements/", {"run": "x"}, "?run", "invalid"),
        ("servers/", {"name": "lab"}, "?name", "unknown_parameter"),
        ("servers/lab/", {"verbose": "1"}, "?verbose", "unknown_parameter"),
    ],
)
def test_a_query_parameter_that_is_wrong_is_named(get, path, query, pointer, code):
    body = get(path, expect=400, **query)

    assert body["code"] == "invalid"
    (fault,) = body["errors"]
    assert (fault["pointer"], fault["code"]) == (pointer, code)
    assert fault["message"] in body["detail"]


@pytest.mark.django_db
def test_an_unknown_parameter_is_told_which_ones_are_known(get):
    body = get("campaigns/", expect=400, orgin="executed")

    assert "origin, state, scenario, cursor, page_size, format" in body["detail"]


@pytest.mark.django_db
def test_all_faults_are_told_at_once(get):
    body = get("campaigns/", expect=400, orgin="executed", page=2)

    assert [fault["pointer"] for fault in body["errors"]] == ["?orgin", "?page"]
    assert body["detail"].startswith("2 faults")


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["campaigns/no-such/", "runs/1/", "runs/x/", "servers/none/", "nonsense/", ""]
)
def test_what_is_not_there_is_a_problem_too(get, path):
    body = get(path, expect=404)

    assert body["type"] == "urn:benchlab:problem:not_found"
    assert (body["title"], body["status"], body["code"]) == ("Not Found", 404, "not_found")
    assert body["detail"]
    assert body["errors"] == []


@pytest.mark.django_db
def test_an_address_without_its_slash_answers_as_that_with_it(client):
    response = client.get("/api/v1/campaigns?origin=executed")

    assert (response.status_code, response.json()["results"]) == (200, [])


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_method_that_an_address_lacks_is_the_same_for_everybody(client, admin_client, method):
    for asking in (client, admin_client):
        impossible = getattr(asking, method)("/api/v1/servers/")

        assert (impossible.status_code, impossible.json()["code"]) == (405, "method_not_allowed")
        assert impossible.headers["Content-Type"] == "application/problem+json"
        assert "GET" in impossible.headers["Allow"]


@pytest.mark.django_db
def test_writing_needs_a_login(client):
    refused = client.post("/api/v1/campaigns/")

    assert (refused.status_code, refused.json()["code"]) == (401, "not_authenticated")
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="BenchLab"'


def test_a_service_that_forbids_is_a_conflict_with_the_remedy():
    response = answered(ServiceError("server_busy", "A run is in progress.", remedy="Wait for it."))

    assert response.status_code == 409
    assert (response.data["code"], response.data["remedy"]) == ("server_busy", "Wait for it.")
    assert response.data["detail"] == "A run is in progress."
    assert response.data["errors"] == []


def test_a_service_that_blames_an_input_points_at_it():
    response = answered(ServiceError("no_title", "The title is missing.", field="title"))

    assert response.status_code == 422
    assert response.data["errors"] == [
        {"pointer": "/title", "code": "no_title", "message": "The title is missing."}
    ]
    assert "remedy" not in response.data


def test_a_fault_deep_in_a_body_is_pointed_at():
    response = answered(
        ValidationError(
            {
                "runs": [
                    {},
                    {"levels": {"a/b": [ErrorDetail("Not a number.", "invalid")]}},
                ],
                "non_field_errors": ["Too many."],
            }
        )
    )

    assert [(f["pointer"], f["message"]) for f in response.data["errors"]] == [
        ("/runs/1/levels/a~1b", "Not a number."),
        ("/", "Too many."),
    ]


@pytest.mark.parametrize(
    ("exc", "status", "code"),
    [(Http404(), 404, "not_found"), (PermissionDenied(), 403, "permission_denied")],
)
def test_djangos_own_exceptions_get_the_same_shape(exc, status, code):
    response = answered(exc)

    assert (response.status_code, response.data["code"]) == (status, code)


def test_headers_of_an_answer_are_kept():
    response = answered(Throttled(wait=7))

    assert (response.status_code, response.headers["Retry-After"]) == (429, "7")


def test_an_unforeseen_exception_is_left_to_django():
    assert problem_json(KeyError("x"), {"request": REQUESTS.get("/")}) is None


@pytest.mark.django_db(transaction=True)
def test_a_statement_that_takes_too_long_is_ended_and_the_answer_says_what_to_do(
    client, monkeypatch
):
    factories.finish_all(factories.campaign(factors={"version": ["16.14"]}, repeats=1))

    def slow(rows, to):
        return rows.extra(where=["pg_sleep(0.5) IS NOT NULL"])

    monkeypatch.setattr(projects, "visible", slow)
    monkeypatch.setattr(statement_limits, "READ", 0.1)
    monkeypatch.setattr(statement_limits, "PAGE", 0.1)
    answer, page = client.get("/api/v1/runs/"), client.get("/campaigns/")
    rows = b"".join(client.get("/api/v1/runs/?format=csv").streaming_content)
    again = connection.cursor().execute("SHOW statement_timeout").fetchone()

    assert (answer.status_code, answer.json()["code"]) == (503, "too_slow")
    assert "campaign" in answer.json()["remedy"]
    assert answer["Retry-After"] == page["Retry-After"] == "5"
    assert page.status_code == 503
    assert b"This takes too long" in page.content
    assert rows.count(b"\n") == 2  # an export has more time
    assert again == ("10min",)
