"""Topics: titles that the archive bears out, and pages with all evidence and every gap."""

import re
from html import unescape

import pytest
from django.utils import translation

from runs.access.selectors.projects import NOBODY
from runs.models import Project, PublishedTable
from runs.scenarios import registry
from runs.shared.formats import publication, translated
from runs.topics.catalogue import BY_SLUG, TOPICS
from runs.topics.selectors import topics
from runs.workloads.services import scenarios
from tests import factories

pytestmark = pytest.mark.django_db
FIGURE = re.compile(r"\d[\d.,]*\d|\d")


def whole(topic):
    """What an editor wrote: the title, and what goes on beneath."""
    return f"{topic.sentence} {topic.detail}"


def text_of(client, address, **headers):
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200, address
    return unescape(answer.content.decode())


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.slug)
def test_every_figure_of_a_title_is_in_a_conclusion_that_it_rests_on(
    whole_archive, topic
):
    tables = PublishedTable.objects.filter(campaign__slug__in=topic.rests_on)
    known = " ".join(
        [finding["en"] for table in tables for finding in table.findings]
        + [version for table in tables for version in table.versions]
        + [str(table.campaign.title) for table in tables]
    )
    assert len(tables) == len(topic.rests_on)
    assert set(FIGURE.findall(whole(topic))) <= set(FIGURE.findall(known))


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.slug)
def test_the_japanese_title_has_the_same_figures(topic):
    with translation.override("ja"):
        japanese = f"{translated(topic.sentence)} {translated(topic.detail)}"
    assert japanese != whole(topic)
    assert set(FIGURE.findall(whole(topic))) <= set(FIGURE.findall(japanese))


def test_a_title_is_read_at_a_glance():
    for topic in TOPICS:
        assert len(topic.sentence) <= 180, topic.slug


TIMES = re.compile(r"\d[\d.]*(?= times)|(?<=factor of )\d[\d.]*")
RANGE = re.compile(r"(\d[\d.]*) to (\d[\d.]*) times")


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.slug)
def test_a_range_in_a_title_leaves_out_no_figure_of_its_conclusion(
    whole_archive, topic
):
    """What a conclusion says beside its range, as "hot-points 2.45 times", is in the title."""
    tables = PublishedTable.objects.filter(campaign__slug__in=topic.rests_on)
    for low, high in RANGE.findall(whole(topic)):
        for finding in (finding for table in tables for finding in table.findings):
            if low in finding["en"] and high in finding["en"]:
                beside = {
                    figure
                    for figure in TIMES.findall(finding["en"])
                    if not float(low) <= float(figure) <= float(high)
                }
                assert beside <= set(FIGURE.findall(whole(topic))), finding["en"]


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.slug)
def test_what_stands_beneath_a_title_names_all_that_it_rests_on(whole_archive, topic):
    found = topics.answer(topic, to=NOBODY)
    for row in found.rows:
        if row.rests_here:
            assert row.who in found.basis
            assert all(machine in found.basis for machine in row.machines)


def test_a_table_of_another_theme_is_evidence_and_no_part_of_the_picture(whole_archive):
    """The peak on 80 cores stands in a table of versions, whose ratios say nothing of cores."""
    answer = topics.answer(BY_SLUG["cores"], to=NOBODY)

    (row,) = [row for row in answer.rows if row.slug == "wg1-2013-2-2"]
    assert row.rests_here
    assert "peak at 80 clients" in row.says
    assert "9.2" not in str(answer.figure)


def test_a_chart_compares_with_the_version_of_the_question(whole_archive):
    topic = BY_SLUG["upgrades"]
    (figure,) = [topics.answer(topic, to=NOBODY).figure]
    labels = str(figure)
    assert "12.22" not in labels
    assert ": 13." in labels


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.slug)
def test_only_what_has_a_procedure_is_offered_to_be_measured(
    member, ready_server, whole_archive, topic
):
    page = text_of(member, f"/topics/{topic.slug}/")
    offered = set(re.findall(r"/campaigns/new/\?scenario=([\w-]+)", page))
    assert offered <= {scenario.slug for scenario in registry.every()}
    for gap in topics.answer(topic, to=NOBODY).gaps:
        assert (gap.scenario in offered) == gap.is_measurable
        assert gap.is_measurable or gap.why_not in page


def test_a_form_for_a_theme_without_a_procedure_says_what_it_would_measure(
    member, ready_server, whole_archive
):
    page = text_of(member, "/campaigns/new/?scenario=sysbench")
    assert "BenchLab has no procedure for “Small loads of sysbench”" in page
    assert "another scenario: “Fixed-point read”" in page
    assert "has no procedure" not in text_of(
        member, "/campaigns/new/?scenario=replication"
    )


def test_every_published_theme_is_in_a_topic_or_on_the_page_of_versions(whole_archive):
    themes = set(
        PublishedTable.objects.values_list("campaign__scenario__slug", flat=True)
    )
    of_topics = {scenario for topic in TOPICS for scenario in topic.scenarios}
    assert themes <= of_topics | {"fixed-point-read", "fixed-point-update"}


@pytest.mark.parametrize("topic", TOPICS, ids=lambda topic: topic.slug)
def test_a_page_has_the_answer_as_its_title_and_all_its_tables(
    client, whole_archive, topic
):
    page = text_of(client, f"/topics/{topic.slug}/")
    tables = PublishedTable.objects.filter(campaign__scenario__slug__in=topic.scenarios)

    assert f"<h1>{topic.sentence}</h1>" in page
    assert topic.detail in page
    for slug in tables.values_list("campaign__slug", flat=True):
        assert f'href="/campaigns/{slug}/"' in page


def test_the_list_has_every_topic_with_its_sentence(client, whole_archive):
    page = text_of(client, "/topics/")
    for topic in TOPICS:
        assert f'href="/topics/{topic.slug}/"' in page
        assert topic.sentence in page


def measured(**options):
    scenarios.sync()
    campaign = factories.campaign(
        "mine",
        factors={"checksums": ["off", "on"], "version": ["18.4"], "clients": [1, 4]},
        scenario=factories.scenario("page-checksums"),
        **options,
    )
    return factories.finish_all(campaign)


def test_what_was_measured_here_stands_beside_the_print(client, whole_archive):
    campaign = measured()
    answer = topics.answer(TOPICS[0], to=NOBODY)
    (gaps,) = answer.gaps
    ((found, said),) = answer.measured

    assert found == campaign
    assert said.sentence in text_of(client, "/topics/page-checksums/")
    assert {square.major: square.state for square in gaps.squares}["18"] == "decided"
    assert [trace["marker"]["symbol"] for trace in answer.figure["data"]] == [
        "diamond",
        "circle",
    ]


def test_a_private_campaign_is_in_no_strangers_topic(client, member, whole_archive):
    project = Project.objects.create(slug="secret", name="s", is_public=False)
    measured(project=project)

    assert "mine" not in text_of(client, "/topics/page-checksums/")


def test_an_unknown_topic_is_not_there(client):
    assert client.get("/topics/nothing/").status_code == 404


def test_a_picture_has_every_ratio_with_better_above_one(whole_archive):
    """Elapsed times are turned round: the parallel plans of query 10 are far above 1."""
    topic = next(topic for topic in TOPICS if topic.slug == "parallel-query")
    figure = topics.answer(topic, to=NOBODY).figure
    (printed,) = figure["data"]

    assert max(printed["x"]) > 1000
    assert len(figure["layout"]["yaxis"]["ticktext"]) <= topics.MOST_ROWS


@pytest.mark.parametrize(
    ("slug", "name"),
    [
        ("wg1-2021", "WG1 2021"),
        ("smalldatum-2025-09", "Smalldatum 2025-09"),
        ("smalldatum-2025-10-dell32", "Smalldatum 2025-10 dell32"),
        ("moppel-2024-pgdump", "Moppel 2024 pgdump"),
    ],
)
def test_a_publication_is_called_by_author_and_month(slug, name):
    assert publication(slug) == name


def test_a_picture_of_more_rows_than_fit_has_the_newest_versions(whole_archive):
    """From 13 to 17: the analytical queries come last, and have the rows of 16 and 17."""
    figure = topics.answer(BY_SLUG["upgrades"], to=NOBODY).figure

    labels = figure["layout"]["yaxis"]["ticktext"]

    assert len(labels) == topics.MOST_ROWS
    for pair in ("17.7 : 13.23", "18.1 : 13.23", "16 : 13", "17 : 13"):
        assert any(label.startswith(pair) for label in labels)
