"""Errors over the API: one shape, every fault."""

import os
import select
import signal
import time

import psycopg
import pytest
from django.core.exceptions import PermissionDenied
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import OperationalError, connection, connections, transaction
from django.http import Http404
from psycopg import errors
from psycopg_pool import PoolTimeout
from rest_framework.exceptions import ErrorDetail, Throttled, ValidationError
from rest_framework.test import APIRequestFactory

from benchlab import statement_limits
from benchlab.database import base
from benchlab.database.base import DatabaseWrapper
from benchlab.database.patience import PatientConnection
from benchlab.embedded.embedded_server import free_port
from runs.access.selectors import projects
from runs.cells.selectors import versions
from runs.models import Cell, Measurement, Run
from runs.shared.api.errors import problem_json
from runs.shared.errors import ServiceError
from tests import factories
from tests.api.upload_bodies import run
from tests.unit.tools.pgbench.samples import sample

pytestmark = pytest.mark.django_db

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
    "path",
    ["campaigns/no-such/", "runs/1/", "runs/x/", "servers/none/", "nonsense/", ""],
)
def test_what_is_not_there_is_a_problem_too(get, path):
    body = get(path, expect=404)

    assert body["type"] == "urn:benchlab:problem:not_found"
    assert (body["title"], body["status"], body["code"]) == (
        "Not Found",
        404,
        "not_found",
    )
    assert body["detail"]
    assert body["errors"] == []


@pytest.mark.django_db
def test_an_address_without_its_slash_answers_as_that_with_it(client):
    response = client.get("/api/v1/campaigns?origin=executed")

    assert (response.status_code, response.json()["results"]) == (200, [])


@pytest.mark.django_db
@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_a_method_that_an_address_lacks_is_the_same_for_everybody(
    client, admin_client, method
):
    for asking in (client, admin_client):
        impossible = getattr(asking, method)("/api/v1/servers/")

        assert (impossible.status_code, impossible.json()["code"]) == (
            405,
            "method_not_allowed",
        )
        assert impossible.headers["Content-Type"] == "application/problem+json"
        assert "GET" in impossible.headers["Allow"]


@pytest.mark.django_db
def test_writing_needs_a_login(client):
    refused = client.post("/api/v1/campaigns/")

    assert (refused.status_code, refused.json()["code"]) == (401, "not_authenticated")
    assert refused.headers["WWW-Authenticate"] == 'Bearer realm="BenchLab"'


def test_a_service_that_forbids_is_a_conflict_with_the_remedy():
    response = answered(
        ServiceError("server_busy", "A run is in progress.", remedy="Wait for it.")
    )

    assert response.status_code == 409
    assert (response.data["code"], response.data["remedy"]) == (
        "server_busy",
        "Wait for it.",
    )
    assert response.data["detail"] == "A run is in progress."
    assert response.data["errors"] == []


def test_a_service_that_blames_an_input_points_at_it():
    response = answered(
        ServiceError("no_title", "The title is missing.", field="title")
    )

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

    def slow(rows, _to):
        return rows.extra(where=["pg_sleep(0.5) IS NOT NULL"])

    monkeypatch.setattr(projects, "_exclude", slow)
    monkeypatch.setattr(projects, "parts", lambda rows, to: [slow(rows, to)])
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


@pytest.mark.django_db
def test_the_limit_is_set_once_in_an_outer_transaction_and_again_after_a_savepoint(
    monkeypatch,
):
    really, times = statement_limits._set, []
    monkeypatch.setattr(
        statement_limits, "_set", lambda *of: times.append(of) or really(*of)
    )
    found = []

    def view(_request):
        for _time in range(2):
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
                found.append(
                    (cursor.execute("SHOW statement_timeout").fetchone(), len(times))
                )
            transaction.savepoint_rollback(transaction.savepoint())

    statement_limits.LimitStatements(view)(REQUESTS.get("/"))
    statement_limits.LimitStatements(view)(REQUESTS.get("/api/v1/runs/"))
    assert found == [(("10s",), 1), (("10s",), 2), (("15s",), 3), (("15s",), 4)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("address", ["/api/v1/runs/", "/campaigns/", "/tokens/"])
def test_a_database_that_went_away_is_no_fault_of_benchlab(admin_client, address):
    """The page of tokens is refused by middleware, which looks for the session."""
    admin_client.raise_request_exception = False
    with psycopg.connect(
        **connection.get_connection_params() | {"autocommit": True}
    ) as other:
        other.execute(
            "SELECT pg_terminate_backend(%s, 5000)",
            [connection.connection.info.backend_pid],
        )

    answer = admin_client.get(address, headers={"accept-language": "en"})

    connection.close()
    assert (answer.status_code, answer["Retry-After"]) == (503, "5")
    if address.startswith("/api/"):
        assert answer.json()["code"] == "database_away"
    assert "/readyz shows an operator what is wrong" in answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_pooled_connection_is_asked_for_its_health_only_after_postgresql_ended_it():
    options = {
        **connection.settings_dict["OPTIONS"],
        "pool": {"min_size": 1, "max_size": 2},
    }
    given = {"OPTIONS": options, "CONN_MAX_AGE": 0, "CONN_HEALTH_CHECKS": False}
    pooled = DatabaseWrapper({**connection.settings_dict, **given}, alias="default")

    def process(sql="SELECT pg_backend_pid() AS asked"):
        with pooled.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchone()[0]

    try:
        first = process()
        pooled.close()
        pooled.connect()
        with connection.cursor() as cursor:
            cursor.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [first])
            last = cursor.fetchone()[0]
            pooled.close()
            cursor.execute("SELECT pg_terminate_backend(%s, 5000)", [first])
        second = process()
    finally:
        pooled.close()
        pooled.close_pool()

    assert last.endswith("AS asked")
    assert second != first


@pytest.mark.django_db(transaction=True)
def test_a_postgresql_that_hangs_is_not_waited_for():
    """Its backend is stopped: its kernel goes on to take what is sent, so TCP finds nothing."""
    with PatientConnection.connect(**connection.get_connection_params()) as waiting:
        waiting.patience = 0.3
        process = waiting.info.backend_pid
        os.kill(process, signal.SIGSTOP)
        try:
            with pytest.raises(
                psycopg.OperationalError, match=r"has not answered in 0\.3 s"
            ):
                waiting.execute("SELECT 1")
        finally:
            os.kill(process, signal.SIGCONT)
        assert waiting.closed


def test_only_the_question_whether_a_connection_works_has_its_short_limit():
    """Workers ask by the same connections, and wait for locks and long statements."""
    parameters = connection.get_connection_params() | {"autocommit": True}
    with PatientConnection.connect(**parameters) as pooled:
        pooled.execute("LISTEN something")
        with psycopg.connect(**parameters) as other:
            other.execute("NOTIFY something")
        deadline = time.monotonic() + 10
        while not select.select([pooled], [], [], 0.1)[0]:
            assert time.monotonic() < deadline
        assert base._works(pooled)
        assert pooled.patience is None


def test_a_request_waits_little_longer_than_its_statements_may_take(client):
    assert client.get("/campaigns/").status_code == 200
    assert (
        connection.connection.patience
        == statement_limits.PAGE + statement_limits.GRACE_SECONDS
    )


@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (errors.QueryCanceled(), "too_slow"),
        (errors.TooManyConnections(), "too_busy"),
        (errors.DeadlockDetected(), "too_busy"),
        (errors.DiskFull(), "disk_full"),
        (errors.AdminShutdown(), "database_away"),
        (errors.CannotConnectNow(), "database_away"),
        (psycopg.OperationalError("connection refused"), "database_away"),
    ],
)
def test_what_keeps_the_database_from_answering_has_a_code_and_a_remedy(cause, code):
    failure = OperationalError()
    failure.__cause__ = cause

    answer = answered(failure)

    assert (answer.status_code, answer.data["code"]) == (503, code)
    assert answer.data["remedy"]


def test_a_pool_without_a_connection_is_busy_or_has_no_database(monkeypatch):
    waited = OperationalError()
    waited.__cause__ = PoolTimeout()
    assert statement_limits.problem(waited) == "too_busy"

    nobody = connection.get_connection_params() | {"port": free_port()}
    monkeypatch.setattr(connections["default"], "get_connection_params", lambda: nobody)
    assert statement_limits.problem(waited) == "database_away"


OUTPUT = sample("18.6/a_tpcb").stdout


@pytest.mark.parametrize(
    "address",
    [
        "campaigns/%00/",
        "servers/%00/",
        "sources/%00/",
        "history/?campaign=%00",
        "compare/?campaign=%00",
        "measurements/?campaign=x%00",
    ],
)
def test_an_address_with_nul_is_refused(client, address):
    response = client.get(f"/api/v1/{address}")

    assert response.status_code == 400
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == "not_storable"


@pytest.mark.parametrize(
    "address", ["/configurations/?q=%00", "/runs/1/artifacts/%00/"]
)
def test_so_is_that_of_a_page(client, address):
    response = client.get(address)

    assert response.status_code == 400
    assert "NUL" in response.content.decode()


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ('{"server": "\\u0000"}', 400, "not_storable"),
        ('{"labels": {"a\\u0000": 1}}', 400, "not_storable"),
        ("[" * 100_000, 400, "not_json"),
        ('{"repeats": 1e999}', 400, "not_json"),
        ('{"repeats": NaN}', 400, "not_json"),
        ('{"title": "\\udc00\xff', 400, "not_json"),
        ('{"title": "' + "x" * 11 * 2**20 + '"}', 413, "too_large"),
    ],
)
@pytest.mark.parametrize("door", ["campaigns/", "preflight/"])
def test_a_body_that_cannot_be_read_is_refused_at_every_door(
    client, bearer, door, body, status, code
):
    response = client.post(f"/api/v1/{door}", body, "application/json", headers=bearer)

    assert response.status_code == status, response.content[:500]
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["code"] == code


def test_a_large_body_is_read_as_such(client, bearer):
    """Beyond what Django takes of a form."""
    body = '{"title": "' + "x" * 3 * 2**20 + '"}'
    response = client.post(
        "/api/v1/campaigns/", body, "application/json", headers=bearer
    )

    assert response.status_code == 400
    assert "/title" in {fault["pointer"] for fault in response.json()["errors"]}


@pytest.mark.parametrize(
    "name", ["", "a\nb", ".", "..", "logs/../x", "logs//x", "/etc/passwd", "\x1b[1m"]
)
def test_a_file_whose_name_is_no_address_is_refused(client, bearer, name):
    body = run(
        "measurements",
        "status",
        "levels",
        raw={"stdout": OUTPUT, name: "x"},
        tool="pgbench",
    )
    response = client.post("/api/v1/uploads/", body, "application/json", headers=bearer)

    assert response.status_code == 400
    (fault,) = response.json()["errors"]
    assert fault["code"] == "not_a_name"


@pytest.mark.parametrize(
    "name", ["stderr", "logs/pgbench_log.1", "結果 1.txt", "a?b#c%2F"]
)
def test_a_name_that_is_taken_is_one_that_the_page_can_show(client, bearer, name):
    body = run(
        "measurements",
        "status",
        "levels",
        raw={"stdout": OUTPUT, name: "x"},
        tool="pgbench",
    )
    made = client.post("/api/v1/uploads/", body, "application/json", headers=bearer)
    assert made.status_code == 201, made.content
    page = client.get(f"/runs/{made.json()['id']}/")

    assert page.status_code == 200


def test_the_parts_of_a_form_are_files_with_names_as_well(client, bearer):
    fields = run("measurements", "status", "levels", tool="pgbench")
    part = SimpleUploadedFile("run", str(fields).replace("'", '"').encode())
    sent = {
        "run": part,
        "stdout": SimpleUploadedFile("stdout", OUTPUT.encode()),
        "..": "x",
    }
    response = client.post("/api/v1/uploads/", sent, headers=bearer)

    assert response.status_code == 400
    assert response.json()["errors"][0]["code"] == "not_a_name"


def test_pages_follow_each_other_to_the_end_without_a_gap(client):
    for number in range(5):
        factories.campaign(f"c{number}", repeats=0)

    address, slugs = "/api/v1/campaigns/?page_size=2&origin=executed", []
    while address:
        body = client.get(address).json()
        slugs.append([row["slug"] for row in body["results"]])
        address = body["next"]
        assert address is None or address.startswith(
            "http://testserver/api/v1/campaigns/?"
        )

    assert slugs == [["c4", "c3"], ["c2", "c1"], ["c0"]]


def test_a_full_last_page_has_no_next(get):
    for _ in range(2):
        factories.campaign(repeats=0)

    assert get("campaigns/", page_size=2)["next"] is None


def test_what_arrives_while_a_client_reads_does_not_shift_its_pages(client, get):
    for number in range(4):
        factories.campaign(f"c{number}", repeats=0)
    following = get("campaigns/", page_size=2)["next"]
    factories.campaign("late", repeats=0)

    assert [row["slug"] for row in client.get(following).json()["results"]] == [
        "c1",
        "c0",
    ]


def test_a_page_has_a_hundred_rows_unless_asked_for_up_to_a_thousand(get):
    factories.finish_all(factories.campaign(repeats=20))

    assert len(get("measurements/")["results"]) == 100
    body = get("measurements/", page_size=1000)
    assert (len(body["results"]), body["next"]) == (120, None)


@pytest.mark.parametrize(
    "size", ["0", "-1", "1001", "many", "1.5", "²", "9" * 5000, f"{1000:023}"]
)
def test_a_page_size_out_of_range_is_refused(get, size):
    (fault,) = get("campaigns/", expect=400, page_size=size)["errors"]

    assert fault["pointer"] == "?page_size"
    assert "1000" in fault["message"]


@pytest.mark.parametrize("cursor", ["0", "-5", "x", "9223372036854775808", "1;drop"])
def test_a_bad_cursor_is_refused(get, cursor):
    (fault,) = get("runs/", expect=400, cursor=cursor)["errors"]

    assert fault["pointer"] == "?cursor"


def test_measurements_of_a_filter_come_in_pages_of_their_runs(client):
    factories.finish_all(factories.campaign(repeats=2))
    address, rows = "/api/v1/measurements/?page_size=5&version=16", []
    while address:
        body = client.get(address).json()
        rows += body["results"]
        address = body["next"]

    expected = Measurement.objects.filter(run__cell__version__startswith="16.")
    assert len(rows) == expected.count() > 5
    assert [row["id"] for row in rows] == list(
        expected.order_by("-run_id", "-pk").values_list("pk", flat=True)
    )


def test_a_run_knows_its_cells_version_however_that_changes():
    run = factories.run()
    cells = Cell.objects.filter(pk=run.cell_id)
    told = Run.objects.filter(pk=run.pk).values_list("cell_version", "cell_major")
    assert told.get() == ("16.14", "16")
    for version in ("9.6.24", "9.10", "19beta1", "", "9", "devel"):
        cells.update(version=version)
        assert told.get() == (version, versions.major(version)), version
