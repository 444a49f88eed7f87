"""Questions about the site itself: help answers them, and the search finds the answers."""

import pytest
from django.urls import reverse

from runs.compare.selectors.describe import verdict_words
from runs.home.selectors.questions import site_questions

pytestmark = pytest.mark.django_db


def test_help_has_every_answer_and_each_link_leads_somewhere(admin_client):
    page = admin_client.get("/help/").content.decode()
    for question in site_questions():
        assert f'id="{question.slug}"' in page
        for link in question.links:
            assert admin_client.get(link.address).status_code == 200


@pytest.mark.parametrize(
    ("words", "slug"),
    [
        ("licence", "licence"),
        ("false alarms", "false-alarms"),
        ("who runs this", "operator"),
        ("cancel run", "cancel"),
        ("API", "api"),
        ("How is the confidence interval computed?", "intervals"),
        ("Which version should I take", "version"),
        ("fail a pull request at a loss", "threshold"),
        ("noise floor", "noise"),
        ("disk space left", "room"),
        ("hardware of the newest report", "machines"),
        ("is the regression fixed since", "fixed"),
    ],
)
def test_the_search_finds_what_help_answers(client, whole_archive, words, slug):
    page = client.get("/search/", {"q": words}).content.decode()
    assert f'href="{reverse("help")}#{slug}"' in page


def test_a_question_about_postgresql_is_no_question_about_the_site(
    client, whole_archive
):
    page = client.get("/search/", {"q": "vacuum of bloated brin"}).content.decode()
    assert "/help/#" not in page


def test_a_setting_is_one_also_where_it_is_written_as_words(client, whole_archive):
    page = client.get("/search/", {"q": "huge pages"}).content.decode()
    assert "Nobody has compared values of huge_pages here" in page


def test_the_operator_and_the_licence_are_said(client, settings):
    assert "has not named itself" in client.get("/help/").content.decode()
    settings.OPERATOR = "Example users' group"
    settings.DATA_LICENCE = "CC BY 4.0"
    page = client.get("/help/").content.decode()
    assert "Example users&#x27; group" in page
    assert "CC BY 4.0" in page
    assert "has not named itself" not in page


def test_the_rate_of_red_builds_is_the_one_that_was_measured(client):
    rates = verdict_words.rates_of("few_jobs")
    page = client.get("/help/").content.decode()
    assert f"{100 * min(rates):.1f} to {100 * max(rates):.1f} %" in page


@pytest.mark.parametrize(
    ("words", "query"),
    [
        ("13 to 17", "from=13&amp;to=17"),
        ("17 13", "from=13&amp;to=17"),
        ("9.6 to 10 updates", "from=9.6&amp;to=10&amp;theme=fixed-point-update"),
        ("13 to 17, 64 clients", "from=13&amp;to=17&amp;clients=64"),
    ],
)
def test_two_versions_lead_to_the_way_between_them(client, whole_archive, words, query):
    page = client.get("/search/", {"q": words}).content.decode()
    assert f'href="/versions/?{query}"' in page
