"""Reports, exports and shell scripts of campaigns and runs, as downloads."""

import csv
import io
import json
import tracemalloc
import zipfile
from itertools import cycle

import pytest
from django.db import connection
from django.db.models import Max
from docutils.core import publish_doctree

from runs.campaigns.selectors.report_parts import results
from runs.models import Annotation, Campaign, CellSummary, Command, Metric, Project, Run
from runs.reports.report import Picture
from tests import factories
from tests.each import some

pytestmark = pytest.mark.django_db


@pytest.fixture
def recorded_run(finished_campaign):
    """A finished run with a plan and two commands."""
    run = finished_campaign.runs.order_by("pk").first()
    run.plan = {
        "base_dir": "/srv/benchlab",
        "bindir": "/usr/bin",
        "version_num": 160014,
    }
    run.save()
    steps = (["/usr/bin/initdb", "-D", "/srv/benchlab/clusters/a/data"], ["true"])
    for ordinal, argv in enumerate(steps):
        Command.objects.create(
            run=run,
            attempt=1,
            ordinal=ordinal,
            step=argv[0].rpartition("/")[2],
            host="db1",
            argv=argv,
            exit_status=0,
        )
    return run


def unzipped(response):
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def compiled(text):
    """What docutils makes of it; a warning is an error."""
    settings = {"halt_level": 2, "report_level": 2, "warning_stream": io.StringIO()}
    return publish_doctree(text, settings_overrides=settings).astext()


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("html", "finished-en.html"),
        ("md", "finished-en.md.zip"),
        ("rst", "finished-en.rst.zip"),
    ],
)
def test_a_report_is_a_download(client, finished_campaign, wanted, name):
    response = client.get(f"/campaigns/finished/report/?format={wanted}&lang=en")
    assert response.status_code == 200
    assert response["Content-Disposition"] == f'attachment; filename="{name}"'


def test_a_report_says_that_all_runs_are_left_out(client, finished_campaign):
    finished_campaign.runs.update(state="withdrawn", code="invalid", validity="invalid")
    CellSummary.objects.all().delete()
    said = "Every run that finished is left out: its certificate says why."
    page = client.get("/campaigns/finished/report/?lang=en").content.decode()
    assert said in page


def test_an_unknown_format_is_refused_in_words(client, finished_campaign):
    response = client.get("/campaigns/finished/report/?format=docx")
    assert response.status_code == 400
    assert "known are html, md, rst" in response.content.decode()


def test_the_html_report_loads_nothing(client, finished_campaign):
    page = client.get("/campaigns/finished/report/").content.decode()
    markup = page[page.index("<body>") :]
    assert '<link rel="stylesheet"' not in page
    assert " src=" not in markup
    assert "http://testserver/campaigns/finished/" in markup


def test_the_report_has_the_verdicts_and_the_conditions(client, finished_campaign):
    finished_campaign.runs.update(
        environment=factories.environment(), hardware=factories.hardware()
    )
    text = unzipped(client.get("/campaigns/finished/report/?format=md&lang=en"))[
        "finished-en/finished-en.md"
    ]
    assert "18.4 against 16.14" in text
    assert "faster" in text
    assert "Debian 13" in text
    assert "figures/results.svg" in text


@pytest.mark.parametrize(("unit", "begins"), [("tps", "tozero"), ("ratio", None)])
def test_the_chart_of_a_ratio_does_not_begin_at_zero(finished_campaign, unit, begins):
    Metric.objects.update(unit=unit)
    picture = next(
        each for each in results.results(finished_campaign) if isinstance(each, Picture)
    )
    assert picture.figure["layout"]["yaxis"].get("rangemode") == begins


def test_the_rst_report_compiles_without_a_warning(
    client, finished_campaign, recorded_run
):
    files = unzipped(client.get("/campaigns/finished/report/?format=rst&lang=ja"))
    assert compiled(files["finished-ja/finished-ja.rst"])
    assert files["finished-ja/figures/results.svg"].startswith("<svg")


def test_the_report_tells_who_concluded_what(
    client, finished_campaign, django_user_model
):
    author = django_user_model.objects.create_user("hanako")
    for kind in Annotation.Kind.values:
        Annotation.objects.create(
            campaign=finished_campaign, kind=kind, text=f"the {kind}", author=author
        )
    page = client.get("/campaigns/finished/report/?lang=en").content.decode()
    for kind in Annotation.Kind.values:
        assert f"the {kind}" in page
    assert "— hanako, 20" in page


def published_reports_compile(client, languages, slugs):
    for slug, language in zip(slugs, languages, strict=False):
        answer = client.get(f"/campaigns/{slug}/report/?format=rst&lang={language}")
        text = unzipped(answer)[f"{slug}-{language}/{slug}-{language}.rst"]
        assert compiled(text), (slug, language)


def published():
    campaigns = Campaign.objects.filter(origin="published").order_by("slug")
    return campaigns.values_list("slug", flat=True)


def test_a_published_campaign_has_a_report_that_compiles(client, whole_archive):
    published_reports_compile(client, cycle(["en", "ja"]), published()[::8])


@pytest.mark.slow
@pytest.mark.parametrize("languages", [["en", "ja"], ["ja", "en"]])
def test_every_published_campaign_has_its_report_in_each_language(
    client, whole_archive, languages
):
    published_reports_compile(client, cycle(languages), published())


def test_the_report_of_a_publication_has_the_print_its_ratios_and_its_source(
    client, whole_archive
):
    campaign = Campaign.objects.get(slug="wg1-2013-2-2")
    answer = client.get(f"/campaigns/{campaign.slug}/report/?format=md&lang=en")
    text = unzipped(answer)[f"{campaign.slug}-en/{campaign.slug}-en.md"]
    assert "**As printed**" in text
    assert "Ratios computed from the printed figures" in text
    assert "## Citation" in text


def test_the_queries_of_a_report_do_not_grow(
    client, known, ready_server, django_assert_max_num_queries
):
    factors = {"version": ["16.14", "18.4"], "clients": list(range(1, 9))}
    campaign = factories.campaign("big", on=ready_server, factors=factors)
    factories.finish_all(campaign)
    with django_assert_max_num_queries(45):
        client.get("/campaigns/big/report/")


def test_the_script_of_a_run_is_a_download(client, recorded_run):
    response = client.get(f"/runs/{recorded_run.pk}/script/")
    assert (
        response["Content-Disposition"]
        == f'attachment; filename="run-{recorded_run.pk}.sh"'
    )
    assert '"$PG_16_14"/initdb -D "$BASE"/clusters/a/data' in response.content.decode()


def test_the_script_of_a_campaign_has_its_finished_runs(client, recorded_run):
    script = client.get("/campaigns/finished/script/").content.decode()
    assert f"Run {recorded_run.pk}: version 16.14, clients 1, repeat 1" in script


def test_what_executed_nothing_has_no_script(client, finished_campaign):
    assert client.get("/campaigns/finished/script/").status_code == 404


def test_the_csv_has_a_line_a_measurement(client, finished_campaign):
    text = client.get("/campaigns/finished/export.csv").getvalue().decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 18
    assert {(row["version"], row["clients"]) for row in rows} == {
        (version, clients) for version in ("16.14", "18.4") for clients in "124"
    }
    assert {row["metric"] for row in rows} == {"tps"}


def test_the_json_has_cells_with_summaries_and_measurements(client, finished_campaign):
    told = json.loads(client.get("/campaigns/finished/export.json").getvalue())
    assert len(told["cells"]) == 6
    assert [len(cell["measurements"]) for cell in told["cells"]] == [3] * 6
    assert told["cells"][0]["summaries"][0]["n"] == 3


OF_MORE = """
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT run, metric, 1000.5, 1, 'single'
  FROM unnest(%s::bigint[]) AS run, unnest(%s::bigint[]) AS metric
"""


def lengthen(campaign, runs):
    """So many more runs, each with ten measurements."""
    metrics = [factories.metric(f"metric-{number}").pk for number in range(10)]
    cell = campaign.cells.first()
    last = cell.runs.aggregate(last=Max("repeat"))["last"]
    made = Run.objects.bulk_create(
        Run(
            campaign=campaign,
            cell=cell,
            repeat=last + number,
            position=0,
            state="finished",
        )
        for number in range(1, runs + 1)
    )
    with connection.cursor() as cursor:
        cursor.execute(OF_MORE, [[run.pk for run in made], metrics])


def test_an_export_takes_no_more_memory_and_queries_for_more_rows(
    client, finished_campaign, django_assert_max_num_queries
):
    endings = some(("csv", "json"), 2)
    peaks, sizes = {each: [] for each in endings}, {each: [] for each in endings}
    for runs in (250, 1000):
        lengthen(finished_campaign, runs)
        for ending in endings:
            tracemalloc.start()
            with django_assert_max_num_queries(5):
                answer = client.get(f"/campaigns/finished/export.{ending}")
                sizes[ending].append(sum(map(len, answer.streaming_content)))
            peaks[ending].append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    for ending, (few, many) in sizes.items():
        assert many > 4 * few, ending
        # 7,500 rows as objects are five times as much.
        assert peaks[ending][1] < peaks[ending][0] + 1_000_000, ending


@pytest.mark.parametrize("path", ["report/", "script/", "export.csv", "export.json"])
def test_what_belongs_to_a_private_project_is_not_there(
    client, finished_campaign, recorded_run, path
):
    finished_campaign.project = Project.objects.create(
        slug="p", name="p", is_public=False
    )
    finished_campaign.save()
    assert client.get(f"/campaigns/finished/{path}").status_code == 404
    assert client.get(f"/runs/{recorded_run.pk}/script/").status_code == 404


@pytest.mark.parametrize("query", ["", "&relative=1&facet=version&x=none"])
def test_a_comparison_is_a_report_too(client, finished_campaign, query):
    series = "s=finished~version=16.14&s=finished~version=18.4"
    answer = client.get(f"/compare/report/?{series}{query}&format=rst&lang=en")
    (text,) = [text for name, text in unzipped(answer).items() if name.endswith(".rst")]
    assert compiled(text)
    assert "Comparison: PostgreSQL 16.14" in text
    assert "faster" in text


def test_a_comparison_of_nothing_is_no_report(client, db):
    assert client.get("/compare/report/").status_code == 404
