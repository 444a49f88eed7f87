"""Export and import of projects over the API."""

import csv
import json

import pytest

from runs.access.services import projects
from runs.models import Campaign, HardwareProfile, Metric, Run
from runs.shared.api import doors
from runs.workloads.services import scenarios
from tests import factories
from tests.history_points import repeats, store

pytestmark = pytest.mark.django_db

NDJSON = "application/x-ndjson"


@pytest.fixture
def private(db):
    made = projects.create(slug="secret", is_public=False)
    factories.finish_all(factories.campaign("hidden", project=made))
    return made


@pytest.fixture
def member(client, django_user_model):
    """Somebody who has logged in, and is no administrator."""
    client.force_login(
        django_user_model.objects.create_user("ichiro", password="secret")
    )
    return client


def header(token):
    return {"Authorization": f"Bearer {token}"}


def exported(client, slug, token=None):
    answer = client.get(
        f"/api/v1/projects/{slug}/export/", headers=header(token) if token else None
    )
    if answer.status_code != 200:
        return answer.status_code
    assert answer.headers["Content-Type"] == NDJSON
    return b"".join(answer.streaming_content)


def imported(client, slug, content, token, media_type=NDJSON):
    path = f"/api/v1/projects/{slug}/import/"
    return client.generic("POST", path, content, media_type, headers=header(token))


def test_an_export_is_imported_elsewhere(client, project, private, make_token):
    reader = make_token("read", of=private)
    content = exported(client, "secret", reader)
    Campaign.objects.all().delete()

    answer = imported(client, "default", content, make_token("admin"))

    assert answer.status_code == 200, answer.content
    assert answer.json() == {
        "project": "default",
        "campaigns": 1,
        "runs": 18,
        "there": 0,
    }
    assert Run.objects.count() == 18


def test_anybody_exports_what_is_public(client, project):
    factories.finish_all(factories.campaign("open"))

    assert b'"slug":"open"' in exported(client, "default")


def test_a_private_project_is_not_there_for_others(client, private, make_token, member):
    assert exported(client, "secret") == 404
    assert exported(client, "secret", make_token("read")) == 404
    assert exported(member, "secret") == 404


def test_a_token_of_an_administrator_stays_bound_to_its_project(
    client, private, project, admin_user, make_token
):
    assert exported(client, "secret", make_token("read", by=admin_user)) == 404


@pytest.mark.parametrize("scopes", [("read", "upload", "queue")])
def test_an_import_needs_the_scope(client, make_token, scopes):
    answer = imported(client, "default", b"", make_token(*scopes))

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")


def test_an_import_goes_only_into_the_tokens_project(client, private, make_token):
    assert imported(client, "secret", b"", make_token("admin")).status_code == 404


def test_who_is_no_administrator_imports_nothing(member, project):
    answer = member.post("/api/v1/projects/default/import/", b"", NDJSON)

    assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


@pytest.mark.parametrize(
    ("content", "media_type", "status"),
    [(b"\n", NDJSON, 400), (b"{}\n", NDJSON, 400), (b"{}\n", "application/json", 415)],
)
def test_what_is_no_export_is_refused(
    client, make_token, project, content, media_type, status
):
    answer = imported(client, "default", content, make_token("admin"), media_type)

    assert answer.status_code == status
    assert answer.headers["Content-Type"] == "application/problem+json"


# Lists as CSV: the rows of the pages, in one answer, and no text that is a formula.


LISTS = (
    "campaigns",
    "runs",
    "servers",
    "hardware",
    "configurations",
    "scenarios",
    "measurements",
)


@pytest.fixture
def rows(client):
    """The rows of a list as CSV."""

    def read(path):
        answer = client.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.content
        assert answer.headers["Content-Type"] == "text/csv; charset=utf-8"
        lines = b"".join(answer.streaming_content).decode().splitlines()
        return list(csv.DictReader(lines))

    return read


@pytest.fixture
def lab(db):
    """Something in every list."""
    scenarios.sync()
    factories.configuration("plain", settings={"work_mem": "4MB"})
    for number in range(2):
        server = factories.server(
            versions=["16.14"], hardware=factories.hardware(f"h{number}")
        )
        campaign = factories.finish_all(factories.campaign(repeats=1, on=server))
        campaign.runs.update(hardware=server.hardware)


@pytest.mark.parametrize("path", LISTS)
def test_csv_tells_what_the_pages_tell(lab, get, rows, path):
    told = get(f"{path}/", page_size=1000)["results"]

    assert len(told) > 0
    assert [_as_text(row) for row in told] == rows(f"{path}/?format=csv")


def _as_text(row):
    """A row of JSON as it stands in a file."""
    texts = {name: "" if value is None else str(value) for name, value in row.items()}
    nested = {
        name: value
        for name, value in row.items()
        if isinstance(value, dict | list | bool)
    }
    return texts | {name: json.dumps(value) for name, value in nested.items()}


@pytest.mark.parametrize("path", LISTS)
def test_a_single_one_is_no_csv(lab, client, get, path):
    row = get(f"{path}/")["results"][0]
    key = row["id"] if path in ("runs", "hardware", "measurements") else row["slug"]

    assert client.get(f"/api/v1/{path}/{key}/").status_code == 200
    assert client.get(f"/api/v1/{path}/{key}/?format=csv").status_code == 400


def test_filters_hold_and_pages_do_not(lab, get, rows):
    slug = get("servers/")["results"][0]["slug"]

    assert len(rows(f"runs/?server={slug}&format=csv&page_size=1")) == 6
    (fault,) = get("runs/", expect=400, format="csv", state="heaven")["errors"]
    assert fault["pointer"] == "?state"


def test_more_rows_than_are_read_at_a_time_come_all(lab, rows, monkeypatch):
    monkeypatch.setattr(doors, "CHUNK", 5)
    before = rows("campaigns/?format=csv")

    for _number in range(9):
        factories.campaign(repeats=0)

    after = rows("campaigns/?format=csv")
    assert len(after) == len(before) + 9
    assert [json.loads(row["runs"]) for row in after[-2:]] == 2 * [{"finished": 6}]


@pytest.mark.parametrize(
    ("path", "queries"),
    [("campaigns", 2), ("runs", 1), ("servers", 2), ("hardware", 4), ("scenarios", 2)],
)
@pytest.mark.parametrize("more", [0, 3])
def test_as_many_queries_however_long(
    lab, rows, path, queries, more, django_assert_num_queries
):
    for number in range(more):
        scenario = factories.scenario(f"made-{number}")
        campaign = factories.campaign(repeats=1, scenario=scenario)
        server = factories.server(
            versions=["18.4"], hardware=factories.hardware(f"more-{number}")
        )
        campaign.runs.update(hardware=server.hardware)

    with django_assert_num_queries(queries):
        rows(f"{path}/?format=csv")


def test_what_is_of_a_private_project_is_not_in_it(rows):
    project = projects.create(slug="secret", is_public=False)
    campaign = factories.campaign(
        "hidden", project=project, scenario=factories.scenario("secret")
    )
    campaign.runs.update(hardware=factories.hardware("secret"))

    for path in ("campaigns", "runs", "hardware", "scenarios"):
        assert "secret" not in str(rows(f"{path}/?format=csv")), path
        assert "hidden" not in str(rows(f"{path}/?format=csv")), path


def test_no_text_is_a_formula_and_json_has_it_as_it_was(rows, get):
    store(repeats(campaign="nightly", levels={"clients": 8}, tps=[-5.5]))
    Metric.objects.filter(name="tps").update(unit="=cmd|'/C calc'!A0")

    (row,) = rows("measurements/?format=csv")

    assert row["unit"] == "'=cmd|'/C calc'!A0"
    assert float(row["value"]) == -5.5
    (told,) = get("measurements/")["results"]
    assert told["unit"] == "=cmd|'/C calc'!A0"


def test_the_name_of_a_machine_is_no_formula(lab, rows):
    HardwareProfile.objects.filter(fingerprint="h1").update(name="=HYPERLINK(1)")

    assert "'=HYPERLINK(1)" in [row["name"] for row in rows("hardware/?format=csv")]
