"""The dashboard of results: each query of its panels, executed as its data source does."""

import json
import re
from datetime import datetime
from pathlib import Path
from string import Template
from urllib.parse import urlsplit

import pytest

from runs.histories.services import changes
from runs.models import Campaign
from tests.history_points import history, store

pytestmark = pytest.mark.django_db
DASHBOARD = json.loads(
    (Path(__file__).parents[3] / "deploy/grafana-results.json").read_text()
)
SITE = "http://testserver"
VARIABLES = {"benchlab": SITE, "campaign": "nightly", "metric": "tps"}


@pytest.fixture
def nightly(project):
    store(history([1000] * 40 + [900] * 20))
    changes.find(campaign_id=Campaign.objects.get(slug="nightly").pk)


def rows_at(selector, body):
    """What the selector finds: names between dots, and a place of a list in brackets."""
    for name, place in re.findall(r"(\w+)(?:\[(\d+)\])?", selector):
        body = body[name][int(place)] if place else body[name]
    return body if isinstance(body, list) else [body]


def is_of(kind, value):
    if kind == "timestamp":
        return bool(datetime.fromisoformat(value))
    return isinstance(value, int | float if kind == "number" else str)


@pytest.mark.parametrize("panel", DASHBOARD["panels"], ids=lambda panel: panel["title"])
def test_a_panel_shows_rows_of_what_its_columns_name(client, nightly, panel):
    (target,) = panel["targets"]
    url = Template(target["url"]).substitute(VARIABLES)
    assert url.startswith(f"{SITE}/api/v1/")
    assert urlsplit(url).netloc == "testserver"

    answer = client.get(url.removeprefix(SITE))

    assert answer.status_code == 200, answer.content
    rows = rows_at(target["root_selector"], answer.json())
    assert rows
    wrong = [
        (column["selector"], row.get(column["selector"]))
        for row in rows
        for column in target["columns"]
        if not is_of(column["type"], row.get(column["selector"]))
    ]
    assert wrong == []


def test_the_history_has_all_its_points(client, nightly):
    (target,) = DASHBOARD["panels"][0]["targets"]
    url = Template(target["url"]).substitute(VARIABLES).removeprefix(SITE)

    assert len(rows_at(target["root_selector"], client.get(url).json())) == 60


def test_a_dashboard_needs_no_token_and_names_its_own_source():
    assert "Authorization" not in json.dumps(DASHBOARD)
    names = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    assert names == {"datasource", *VARIABLES}
