"""Input that no client of good will sends: a problem in the API's shape, and never an error."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from tests.api.upload_bodies import run
from tests.unit.tools.pgbench.samples import sample

pytestmark = pytest.mark.django_db

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


@pytest.mark.parametrize("address", ["/configurations/?q=%00", "/runs/1/artifacts/%00/"])
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
    response = client.post("/api/v1/campaigns/", body, "application/json", headers=bearer)

    assert response.status_code == 400
    assert "/title" in {fault["pointer"] for fault in response.json()["errors"]}


@pytest.mark.parametrize(
    "name", ["", "a\nb", ".", "..", "logs/../x", "logs//x", "/etc/passwd", "\x1b[1m"]
)
def test_a_file_whose_name_is_no_address_is_refused(client, bearer, name):
    body = run(
        "measurements", "status", "levels", raw={"stdout": OUTPUT, name: "x"}, tool="pgbench"
    )
    response = client.post("/api/v1/uploads/", body, "application/json", headers=bearer)

    assert response.status_code == 400
    (fault,) = response.json()["errors"]
    assert fault["code"] == "not_a_name"


@pytest.mark.parametrize("name", ["stderr", "logs/pgbench_log.1", "結果 1.txt", "a?b#c%2F"])
def test_a_name_that_is_taken_is_one_that_the_page_can_show(client, bearer, name):
    body = run(
        "measurements", "status", "levels", raw={"stdout": OUTPUT, name: "x"}, tool="pgbench"
    )
    made = client.post("/api/v1/uploads/", body, "application/json", headers=bearer)
    assert made.status_code == 201, made.content
    page = client.get(f"/runs/{made.json()['id']}/")

    assert page.status_code == 200


def test_the_parts_of_a_form_are_files_with_names_as_well(client, bearer):
    fields = run("measurements", "status", "levels", tool="pgbench")
    part = SimpleUploadedFile("run", str(fields).replace("'", '"').encode())
    sent = {"run": part, "stdout": SimpleUploadedFile("stdout", OUTPUT.encode()), "..": "x"}
    response = client.post("/api/v1/uploads/", sent, headers=bearer)

    assert response.status_code == 400
    assert response.json()["errors"][0]["code"] == "not_a_name"
