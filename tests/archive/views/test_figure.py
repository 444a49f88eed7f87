"""The page of one printed figure, searches as readers make them, and the archive as one file."""

import csv
import io
import json
import re
import zipfile

import pytest
from django.utils import translation

from runs.archive.selectors import archive as selectors
from runs.archive.services import load
from runs.models import PrintedFigure, PublishedTable, Run
from runs.published import reading
from runs.published.figures import figures
from tests import factories

# What readers look for, and the tables (by the beginnings of their names) of which one comes first.
ENGLISH = {
    "PostgreSQL 14": "wg1-2021",
    "is 14 slower than 13": "wg1-2021-read",
    "page checksums": "wg1-2013-2-3 wg1-2013-2-4",
    "403.38": "wg1-2013-2-2",
    "CPU cores": "wg1-2013-2-5",
    "partition insert trigger": "wg1-2013-3-5 wg1-2013-3-insert-cpu",
    "DELETE TRUNCATE": "wg1-2013-3-6",
    "SSD updating": "wg1-2013-4-5 wg1-2013-4-6 wg1-2013-4-8",
    "index-only scan": "wg1-2013-4-7 wg1-2013-4-index-only-cpu",
    "Postgres-XC": "wg1-2013-5",
    "autovacuum 8.3": "stability-8-3",
    "block size": "block-size-2012",
    "semaphore futex": "wg1-2017-strace-counts wg1-2017-semaphore-stacks",
    "Windows shared_buffers": "wg1-2017-windows-shared-buffers",
    "wal_sync_method": "wg1-2017-windows-wal-sync-method wg1-2017-5-3",
    "parallel query workers": "wg1-2017-6",
    "PGroonga": "wg1-2017-7",
    "full text search title": "wg1-2017-7-8 wg1-2017-7-11 wg1-2017-7-7",
    "synchronous standbys": "wg1-2017-8-8 wg1-2017-8-10 postgresbench-2026-standbys",
    "asynchronous replication": "wg1-2017-8-9 wg1-2017-8-10",
    "foreign table update": "wg1-2017-9-4-2",
    "flame graph": "wg1-2021-flame-graph",
}
JAPANESE = {
    "バージョン14": "wg1-2021",
    "チェックサム": "wg1-2013-2-3 wg1-2013-2-4",
    "チェックサム オーバーヘッド": "wg1-2013-2-3",
    "オーバーヘッド": "wg1-2013-2-3 wg1-2017-9-3 wg1-2021",
    "コア数": "wg1-2013-2-5",
    "パーティション 挿入": "wg1-2013-3-5 wg1-2013-3-insert-cpu",
    "SSD 配置": "wg1-2013-4",
    "インデックスオンリースキャン": "wg1-2013-4-7 wg1-2013-4-index-only-cpu wg1-2013-4-stack",
    "スケールアウト": "wg1-2013-5",
    "長時間 安定性": "stability-8 moppel-2022",
    "ブロックサイズ": "block-size-2012",
    "定点観測 更新": "wg1-2017-fixed-point-update wg1-2021-update",
    "PostgreSQL 9.6 10 更新": "wg1-2017-fixed-point-update",
    "セマフォ": "wg1-2017-semaphore-stacks wg1-2017-fixed-point-update",
    "Windows版 更新": "wg1-2017-windows-linux-update wg1-2017-windows-wal-sync-method",
    "パラレルクエリ ワーカー数": "wg1-2017-6",
    "全文検索": "wg1-2017-7",
    "同期レプリケーション": "wg1-2017-8-8 wg1-2017-8-10",
    "非同期レプリケーション": "wg1-2017-8-9 wg1-2017-8-10",
    "9,254.0": "wg1-2017-8",
    "外部テーブル": "wg1-2017-9",
    "フレームグラフ": "wg1-2021-flame-graph",
}
# Words of nearly every table: that something is found at all.
# The conditions of table 4.8, as each record of its figures has them.
CONDITIONS = "conditions: Scale factor: 26000; Duration: 600 s; "
COMMON = ("サーバー", "ベンチマーク", "fillfactor", "pg_bigm", "バージョン")


@pytest.fixture
def archive(known):
    load(files=reading.files())


@pytest.mark.django_db
def test_the_archive_as_readers_meet_it(archive, client):
    """One load of all publications for all questions: loading takes seconds."""
    _searches_find_the_right_result_first()
    _versions_of_factors_are_found(client)
    _a_figure_says_what_is_known_of_it(client)
    _a_published_run_leads_to_its_figure(client)
    _every_figure_has_its_record(client)
    _warnings_travel_with_the_data(client)
    _charts_and_comparisons_say_where_a_figure_is_printed(client)
    _unknown_repeats_are_no_single_run(client)
    _without_a_spread_there_is_no_verdict(client)
    _a_comparison_has_the_ratio_of_the_question(client)
    _corrections_stand_with_what_they_correct(client)
    _the_way_to_the_original_is_told(client)
    _the_data_package_is_whole(client)
    _a_publication_can_be_cited(client)
    _the_first_page_answers_in_one_tap(client)
    _what_cannot_be_repeated_says_why(client)
    _filters_count_under_the_other_filters(client)
    _machines_have_their_names_in_japanese(client)
    _what_was_measured_since_has_its_conditions(client)


def _searches_find_the_right_result_first():
    entries = selectors.entries()
    wrong = []
    for text, wanted in [
        *ENGLISH.items(),
        *JAPANESE.items(),
        *((each, "") for each in COMMON),
    ]:
        found = selectors.saying(entries, text)
        first = found[0].table.campaign.slug if found else ""
        if not first or (wanted and not first.startswith(tuple(wanted.split()))):
            wrong.append((text, [entry.table.campaign.slug for entry in found[:3]]))
    assert not wrong, wrong
    assert selectors.saying(entries, "it's \\ 'quoted & :A | !") == []


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
            for entry in selectors.filtered(entries, selectors.Wanted(version=version))
        }
    ]
    assert missed == []
    listed = client.get(
        "/archive/?version=10&theme=fixed-point-update"
    ).content.decode()
    assert "The highest TPS of 9.6 is far above that of 10" in listed
    offers = selectors.choices(entries, entries, selectors.Wanted())
    offered = [value for value, _label, _count in offers["version"]]
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
    figure = PrintedFigure.objects.exclude(measured_run=None).first()
    answer = client.get(f"/runs/{figure.measurement.run_id}/")

    assert answer.status_code == 302
    assert f"/archive/figures/{figure.table.campaign.slug}/" in answer.url


def _every_figure_has_its_record(client):
    """API and CSV have the same record; repeats that are not printed are not guessed."""
    rows = []
    address = "/api/v1/measurements/?origin=published&page_size=1000"
    while address:
        answer = client.get(address).json()
        rows += answer["results"]
        address = answer["next"]
    printed = PrintedFigure.objects.select_related("table")
    in_files = sum(
        len(figures(campaign))
        for path in reading.files()
        for campaign in reading.read(path).campaigns
    )
    assert len(rows) == printed.count() == in_files > 3500
    incomplete = [
        row["printed"]
        for row in rows
        if row["value"] is None
        or not (row["printed"] and row["place"]["table"] and row["place"]["words"])
        or row["said_by"] not in ("printed", "derived", "not_measured")
        or row["exact"] is None
        or row["conditions"] is None
        or (row["n"] is None and row["statistic"] not in (None, "median", "mean"))
    ]
    assert incomplete == []
    # Sizes of a file: no constant, machine or system is printed for them.
    assert sum(not row["conditions"] for row in rows) == 5
    disputed = sum(bool(row["disputed"]) for row in rows)
    assert disputed == printed.filter(disputed__isnull=False).distinct().count() >= 20
    table = client.get("/api/v1/measurements/?origin=published&format=csv")
    lines = list(
        csv.DictReader(io.StringIO(b"".join(table.streaming_content).decode()))
    )
    assert len(lines) == len(rows)
    assert [json.loads(line["conditions"]) for line in lines] == [
        row["conditions"] for row in rows
    ]
    assert sum(line["disputed"] not in ("", "[]") for line in lines) == disputed
    assert (
        sum(line["n"] == "" for line in lines)
        == sum(row["n"] is None for row in rows)
        > 100
    )


def _charts_and_comparisons_say_where_a_figure_is_printed(client):
    """The hover text of a chart has the record; so have the tables of a comparison."""
    wanted = (
        "as printed: 253.9; unit: tps",
        "Table 4.8, section 4.6.1, p. 43",
        "row 5, column 6",
        "said by the publication (measured)",
        "n = 1, single value",
        CONDITIONS,
        "disputed: TPS中央値を出した際",
    )
    of_table = PrintedFigure.objects.filter(
        table__number="4.8", measurement__metric__name="tps"
    )
    base, head = (
        of_table.get(text=text).measurement.run.cell_id for text in ("198.5", "253.9")
    )
    chart = client.get("/campaigns/wg1-2013-2-3/").content.decode()
    assert "as printed: 15373.38; unit: tps" in chart
    for address in (
        "/compare/?s=wg1-2013-4-8&metric=tps",
        f"/compare/cells/?a={base}&b={head}",
        "/compare/?s=wg1-2013-4-8&metric=tps&format=csv",
        "/compare/?s=wg1-2013-4-8&metric=tps&format=json",
        "/compare/report/?s=wg1-2013-4-8&metric=tps",
        "/compare/report/?s=wg1-2013-4-8&metric=tps&format=rst",
    ):
        page = text_of(client.get(address).content)
        for text in wanted:
            assert text in page, (address, text)

    line = client.get("/versions/").content.decode()
    for text in (
        "Table 2.2, section 2.3.3 (3), p. 14",
        "as printed: 21378.30; unit: tps",
    ):
        assert text in line, text


def text_of(content):
    """A page; of a report with its pictures the text."""
    if not content.startswith(b"PK"):
        return content.decode()
    packed = zipfile.ZipFile(io.BytesIO(content))
    return packed.read(
        next(each for each in packed.namelist() if each.endswith(".rst"))
    ).decode()


def _unknown_repeats_are_no_single_run(client):
    for address in ("/compare/?s=wg1-2013-3-5", "/compare/?s=wg1-2013-3-5&format=json"):
        page = client.get(address).content.decode()
        assert "single run" not in page
        assert "single_run" not in page
        assert "number of runs not printed" in page or "repeats_unknown" in page
    campaigns = {
        slug: client.get(f"/api/v1/campaigns/{slug}/").json()["repeats"]
        for slug in ("wg1-2013-3-5", "wg1-2013-2-2")
    }
    assert campaigns == {"wg1-2013-3-5": None, "wg1-2013-2-2": 3}


def _without_a_spread_there_is_no_verdict(client):
    """Runs enough, but no spread printed: each page says so, and the API keeps its codes."""
    for address in (
        "/compare/?s=wg1-2021-read",
        "/compare/?s=wg1-2021-read&format=csv",
        "/compare/report/?s=wg1-2021-read&format=html",
        "/versions/?theme=fixed-point-read",
        "/",
    ):
        page = text_of(client.get(address).content)
        assert "not tested" in page, address
        assert "too few runs" not in page, address
        assert "spread not printed" in page, address
    sides = "base=campaign:wg1-2021-read~version%3D13.4&head=campaign:wg1-2021-read~version%3D14.0"
    row = client.get(f"/api/v1/compare/?{sides}&metric=tps").json()["rows"][0]
    assert (row["verdict"], row["reasons"][0]["code"]) == (
        "too_few_runs",
        "spread_unknown",
    )
    markdown = client.get(
        f"/api/v1/compare/?{sides}&metric=tps&format=md"
    ).content.decode()
    assert "not tested: spread not printed" in markdown


def _a_comparison_has_the_ratio_of_the_question(client):
    """The button leads from a published table to what its question compares."""
    page = client.get("/campaigns/wg1-2013-4-5/").content.decode()
    link = "/compare/?" + page.split('href="/compare/?')[1].split('"')[0].replace(
        "&amp;", "&"
    )
    compared = client.get(link + "&format=json").json()
    assert compared["base"] == "wg1-2013-4-5~placement=all-hdd"
    assert compared["x"] == "load"


def _corrections_stand_with_what_they_correct(client):
    def address(text):
        figure = PrintedFigure.objects.get(table__number="5.5", text=text)
        return f"/archive/figures/wg1-2013-5-5/{figure.row + 1}-{figure.column + 1}/"

    assert "PostgreSQL: mean of 3" in client.get(address("910")).content.decode()
    assert "PostgreSQL: mean of 3" not in client.get(address("889")).content.decode()
    assert (
        "PostgreSQL: mean of 3"
        in client.get("/campaigns/wg1-2013-5-5/").content.decode()
    )
    with translation.override("en"):
        japanese = client.get(
            "/campaigns/wg1-2013-5-5/", headers={"Accept-Language": "ja"}
        )
    assert (
        "PostgreSQL：3 回の平均 → PostgreSQL：試行数の記載なし"
        in japanese.content.decode()
    )


def _the_way_to_the_original_is_told(client):
    page = client.get("/archive/wg1-2013/").content.decode()
    assert "its address is not known to us" in page
    assert 'href="https://www.pgecons.org/download_main/"' in page
    answer = client.get("/api/v1/sources/wg1-2013/").json()
    assert answer["traces"][0]["url"] == "https://www.pgecons.org/download_main/"
    assert {each["table"] for each in answer["corrections"]} >= {"all", "2.3", "5.5"}
    later = client.get("/archive/later/").content.decode()
    assert "BRIN indexes" in later
    assert "PostgreSQL 9.3 → 9.4" in later
    assert "<code>wg1-2014.yaml</code>" in later
    assert "wg1-2013.yaml" not in later
    assert "docs/adding-a-source.md" in later


def _warnings_travel_with_the_data(client):
    def rows(table):
        answer = client.get(
            f"/api/v1/measurements/?source=wg1-2013&table={table}&page_size=200"
        )
        return {row["printed"]: row for row in answer.json()["results"]}

    assert rows("4.7")["614.2(*)"]["exact"] is False
    disputed = rows("2.3")["81.98 %"]
    assert (disputed["said_by"], disputed["disputed"][0]["recomputed"]) == (
        "derived",
        "101.997",
    )
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
    assert f"version {described['version']}" in described["citation"]
    assert package.read("sources.bib").decode().count("@misc{") == len(reading.files())
    for resource in described["resources"]:
        (head, *_rows) = csv.reader(
            io.StringIO(package.read(resource["path"]).decode())
        )
        assert head == [field["name"] for field in resource["schema"]["fields"]]


def _a_publication_can_be_cited(client):
    bibtex = client.get("/archive/wg1-2013/citation.bib").content.decode()
    (item,) = client.get("/archive/wg1-2013/citation.json").json()

    assert bibtex.startswith("@misc{wg1-2013,\n  title = {2013 WG1 activity report")
    assert item["issued"] == {"date-parts": [[2014]]}
    assert client.get("/archive/wg1-2013/citation.doc").status_code == 404
    table = client.get("/archive/tables/wg1-2013-2-3/citation.bib").content.decode()
    assert "@misc{wg1-2013-2-3," in table
    assert "Table 2.3, section 2.4.3 (3), p. 16. Transcribed by BenchLab" in table
    figure = PrintedFigure.objects.get(text="614.2(*)")
    address = f"/archive/figures/wg1-2013-4-7/{figure.row + 1}-{figure.column + 1}/citation.json"
    (item,) = client.get(address).json()
    assert item["section"] == "4.5.2"
    for fact in (
        "conditions: Duration: 600 s; Xeon E5-2690",
        "as printed: 614.2(*)",
        "row 1, column 3",
        "not exact",
        "n = 1, single value",
    ):
        assert fact in item["note"], item["note"]


def _the_first_page_answers_in_one_tap(client):
    page = client.get("/").content.decode()
    spread = "spread not printed"
    for question, answer, basis, slug in [
        (
            "Was 14 slower than 13 for reads in 2021?",
            "Yes, as printed: 2.0 to 5.6 % slower, over all conditions of its table",
            f"AWS m5a.8xlarge (DB server) · WG1 2021 · medians of 3, {spread}",
            "wg1-2021-read",
        ),
        (
            "What do page checksums cost?",
            "To 32 clients the cost is 1 to 4 %",
            f" · WG1 2013 · medians of 3, {spread}",
            "wg1-2013-2-3",
        ),
        (
            "What does a synchronous standby cost?",
            "One synchronous standby leaves 50.4 % of the throughput",
            f" · WG1 2017 · means of 3, {spread}",
            "wg1-2017-8-8",
        ),
        (
            "What does an SSD bring?",
            "the updating load runs about 30 times, the reading load about 111 times as fast",
            " · WG1 2013 · medians of 3, each run printed",
            "wg1-2013-4-5",
        ),
    ]:
        link = page[: page.index(question)].rpartition("<a ")[2]
        assert f"/campaigns/{slug}/" in link
        shown = page[page.index(question) :].partition("</a>")[0]
        # What is behind the link has the same answer, then who concludes what.
        told = client.get(f"/campaigns/{slug}/").content.decode()
        head = told[told.index('id="answer"') :].partition("</p>")[0]
        for text in (question, answer, basis):
            assert text in shown
            assert text in head
        assert told.index("The publication concludes") < told.index('id="chart"')


def _what_cannot_be_repeated_says_why(client):
    page = client.get("/campaigns/wg1-2013-5-7/").content.decode()
    assert "The publication computes these figures and measures none" in page
    assert "?from=" not in page
    page = client.get("/campaigns/wg1-2013-4-stack/").content.decode()
    assert "has the wait events of the backends" in page
    assert "?from=wg1-2013-4-stack" in page


def _machines_have_their_names_in_japanese(client):
    # A request leaves its language behind.
    with translation.override("en"):
        page, other = (
            client.get(
                f"/campaigns/{slug}/", headers={"Accept-Language": "ja"}
            ).content.decode()
            for slug in ("wg1-2013-4-5", "wg1-2013-2-2")
        )
    assert "Xeon E5-2690 × 2、192 GB、PCIe SSD" in page
    assert "WG1 2013 PCIe SSD 搭載マシン（表 4.3）" in page
    assert "スケールファクタ" in page
    assert "SAN ディスクアレイ（iSCSI）" in page
    # Printed as 2 TB, whichever of both units it means.
    assert "80 コアサーバ、2 TB" in other
    assert "TiB" not in other


def _filters_count_under_the_other_filters(client):
    """Also in the answer to a search by htmx, which replaces the filters with the tables."""

    def counted(page, name):
        select = page.partition(f'id="archive-{name}"')[2].partition("</select>")[0]
        return dict(re.findall(r'<option value="([^"]+)"[^>]*>[^(]*\((\d+)\)', select))

    for headers in ({}, {"HX-Request": "true"}):
        page = client.get(
            "/archive/?q=SSD&version=9.3", headers=headers
        ).content.decode()
        themes = counted(page, "theme")
        shown = int(
            re.search(rf"(\d+) of {PublishedTable.objects.count()} results", page)[1]
        )
        assert sum(map(int, themes.values())) == shown > 0
        assert themes["replication"] == "0"
        assert ("hx-swap-oob" in page) == bool(headers)
        # A filter does not narrow itself: other versions are counted as if it were not set.
        without = client.get("/archive/?q=SSD", headers=headers).content.decode()
        assert counted(page, "version") == counted(without, "version")
        assert int(counted(without, "version")["9.3"]) == shown


def _what_was_measured_since_has_its_conditions(client):
    """Of another scale nothing is listed; what is in doubt says so."""
    for slug, parameters in (
        ("same-scale", {"scale": 2000, "duration": 60}),
        ("other-scale", {"scale": 2, "duration": 6}),
        ("no-scale", {}),
    ):
        made = factories.campaign(slug, parameters=parameters)
        factories.finish_all(made)
        made.runs.update(hardware=factories.hardware())
    Run.objects.filter(campaign__slug="same-scale", repeat=1).update(
        validity="doubtful"
    )
    page = text_of(client.get("/archive/figures/wg1-2021-read/1-2/").content)
    since = re.sub(
        r"\s+", " ", page[page.index('id="since"') :].partition("</section>")[0]
    )

    assert "same levels, under other conditions" in since
    assert "/campaigns/other-scale/" not in since
    (line,) = [
        each
        for each in since.split("<li>")[1:]
        if "same-scale" in each and "16.14" in each
    ]
    for text in ("two-core, 2 cores · 8 GiB", "Scale factor 2000", "Duration 60 s"):
        assert text in line
    assert "⚠ 1 doubtful" in line
    assert "doubtful" not in next(
        each for each in since.split("<li>") if "no-scale" in each
    )
