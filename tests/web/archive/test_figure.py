"""The page of one printed figure, searches as readers make them, and the archive as one file."""

import csv
import io
import json
import zipfile

import pytest

from runs.models import PrintedFigure
from runs.published import reading
from runs.selectors.archive import archive as selectors
from runs.services.archive import load

# What readers look for, and the tables of which one must come first.
SEARCHES = [
    ("サーバー", None),
    ("オーバーヘッド", None),
    ("ベンチマーク", None),
    ("バージョン14", {"wg1-2021-read", "wg1-2021-update", "wg1-2021-flame-graph"}),
    ("PostgreSQL 14", {"wg1-2021-read", "wg1-2021-update", "wg1-2021-flame-graph"}),
    ("403.38", {"wg1-2013-2-2"}),
    ("チェックサム", {"wg1-2013-2-3", "wg1-2013-2-4"}),
    ("page checksums", {"wg1-2013-2-3", "wg1-2013-2-4"}),
    ("index-only scan", {"wg1-2013-4-7", "wg1-2013-4-index-only-cpu"}),
    (
        "Postgres-XC",
        {"wg1-2013-5-5", "wg1-2013-5-years", "wg1-2013-5-6", "wg1-2013-5-7", "wg1-2013-5-storage"},
    ),
    ("synchronous standbys", {"wg1-2017-8-8", "wg1-2017-8-10"}),
    ("foreign table update", {"wg1-2017-9-4-2", "wg1-2017-9-3"}),
    ("autovacuum 8.3", None),
    ("pg_bigm", None),
    ("flame graph", {"wg1-2021-flame-graph", "wg1-2017-semaphore-stacks"}),
    ("fillfactor", None),
    ("full text search title", {"wg1-2017-7-8", "wg1-2017-7-11", "wg1-2017-7-7"}),
    ("ブロックサイズ", None),
    ("パーティション 挿入", {"wg1-2013-3-5", "wg1-2013-3-cpu"}),
]


@pytest.fixture
def archive(known):
    load(files=reading.files())


@pytest.mark.django_db
def test_the_archive_as_readers_meet_it(archive, client):
    """One load of all publications for all that is asked of them: loading takes seconds."""
    _searches_find_the_right_result_first()
    _versions_of_factors_are_found(client)
    _a_figure_says_what_is_known_of_it(client)
    _a_published_run_leads_to_its_figure(client)
    _warnings_travel_with_the_data(client)
    _the_data_package_is_whole(client)
    _a_publication_can_be_cited(client)


def _searches_find_the_right_result_first():
    entries = selectors.entries()
    wrong = []
    for text, wanted in SEARCHES:
        found = selectors.matching(entries, selectors.Wanted(words=text))
        first = found[0].table.campaign.slug if found else ""
        if not first or (wanted and first not in wanted):
            wrong.append((text, [entry.table.campaign.slug for entry in found[:3]]))
    assert not wrong, wrong
    assert selectors.matching(entries, selectors.Wanted(words="it's \\ 'quoted & :A | !")) == []


def _versions_of_factors_are_found(client):
    entries = selectors.entries()
    missed = [
        (version, slug)
        for version, slug in [
            ("10", "wg1-2017-fixed-point-read"),
            ("10", "wg1-2017-fixed-point-update"),
            ("9.6", "wg1-2017-fixed-point-update"),
            ("14", "wg1-2021-update"),
            ("14", "wg1-2021-flame-graph"),
            ("9.2", "wg1-2013-5-5"),
        ]
        if slug
        not in {
            entry.table.campaign.slug
            for entry in selectors.matching(entries, selectors.Wanted(version=version))
        }
    ]
    assert missed == []
    offered = [choice.value for choice in selectors.choices(entries)["version"]]
    assert {"8.2", "8.3"} <= set(offered)


def _a_figure_says_what_is_known_of_it(client):
    figure = PrintedFigure.objects.get(text="614.2(*)")
    address = f"/archive/figures/wg1-2013-4-7/{figure.row + 1}-{figure.column + 1}/"
    page = client.get(address).content.decode()

    assert "614.2(*)" in page
    assert "not exact" in page
    assert "all on HDD | 2501.0 | 614.2(*)" in page
    assert client.get("/archive/figures/wg1-2013-4-7/99-1/").status_code == 404


def _a_published_run_leads_to_its_figure(client):
    figure = PrintedFigure.objects.filter(measurement__isnull=False).first()
    answer = client.get(f"/runs/{figure.measurement.run_id}/")

    assert answer.status_code == 302
    assert f"/archive/figures/{figure.table.campaign.slug}/" in answer.url


def _warnings_travel_with_the_data(client):
    def rows(table):
        answer = client.get(f"/api/v1/measurements/?source=wg1-2013&table={table}&page_size=200")
        return {row["printed"]: row for row in answer.json()["results"]}

    assert rows("4.7")["614.2(*)"]["exact"] is False
    disputed = rows("2.3")["81.98 %"]
    assert (disputed["said_by"], disputed["disputed"][0]["recomputed"]) == ("derived", "101.997")
    unprinted = rows("3.5")["9,988"]
    assert (unprinted["n"], unprinted["statistic"]) == (None, None)
    assert rows("5.5")["910"]["n"] is None
    assert rows("5.5")["889"]["n"] == 3


def _the_data_package_is_whole(client):
    answer = client.get("/archive/data.zip")
    package = zipfile.ZipFile(io.BytesIO(b"".join(answer.streaming_content)))
    described = json.loads(package.read("datapackage.json"))

    figures = list(csv.DictReader(io.StringIO(package.read("figures.csv").decode())))
    assert len(figures) == PrintedFigure.objects.count()
    assert {each["exact"] for each in figures} == {"true", "false"}
    for resource in described["resources"]:
        (head, *_rows) = csv.reader(io.StringIO(package.read(resource["path"]).decode()))
        assert head == [field["name"] for field in resource["schema"]["fields"]]


def _a_publication_can_be_cited(client):
    bibtex = client.get("/archive/wg1-2013/citation.bib").content.decode()
    (item,) = client.get("/archive/wg1-2013/citation.json").json()

    assert bibtex.startswith("@misc{wg1-2013,\n  title = {2013 WG1 activity report")
    assert item["issued"] == {"date-parts": [[2014]]}
    assert client.get("/archive/wg1-2013/citation.doc").status_code == 404
