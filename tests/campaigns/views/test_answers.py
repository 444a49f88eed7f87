"""What a campaign answers: the same words on its page, in the API and in the list."""

import re

import pytest

from runs.campaigns.selectors import answers
from runs.campaigns.services import repeats
from runs.histories.services import changes
from runs.models import Campaign
from tests import factories
from tests.history_points import history, sha, store

pytestmark = pytest.mark.django_db


def text_of(client, address):
    return re.sub(r"\s+", " ", client.get(address).content.decode())


@pytest.fixture
def lab(ready_server):
    made = factories.campaign(
        "lab", on=ready_server, state="finished", title="Reads of 18"
    )
    factories.finish_all(made, gain={"16.14": 1.0, "18.4": 1.3})
    return made


def test_page_api_and_list_say_the_same_of_a_campaign(client, lab):
    answer = client.get("/api/v1/campaigns/lab/").json()["answer"]
    assert set(answer) == {"sentence", "short", "low", "high", "family", "exit_code"}
    assert answer["sentence"] in text_of(client, "/campaigns/lab/")
    assert answer["sentence"] in text_of(client, "/campaigns/")
    assert answer["low"] < 1.3 < answer["high"]
    assert answer["exit_code"] == 0
    assert answer["short"] in answer["sentence"]


def test_every_list_of_campaigns_says_the_answer_and_when_the_data_are_of(client, lab):
    """Beside it nothing says that the campaign has finished."""
    run = lab.runs.first()
    run.hardware = factories.hardware()
    run.save()
    addresses = (
        "/",
        "/campaigns/",
        f"/scenarios/{lab.scenario.slug}/",
        f"/hardware/{run.hardware.pk}/",
    )
    sentence = client.get("/api/v1/campaigns/lab/").json()["answer"]["sentence"]
    day = run.started_at.date().isoformat()

    for address in addresses:
        text = text_of(client, address)
        row = text.split('list__title" href="/campaigns/lab/"')[1].split("</tr>")[0]
        assert sentence in row, address
        assert day in row, address
        assert "finished" not in row, address


def test_a_condition_whose_runs_are_all_invalid_is_counted(client, lab, settings):
    """Page, API, list and report name all conditions that were asked."""
    lost = lab.cells.filter(version="18.4").first()
    for run in lost.runs.all():
        repeats.leave_out_invalid(run)
    number = lab.cells.filter(version="18.4").count()

    sentence = client.get("/api/v1/campaigns/lab/").json()["answer"]["sentence"]

    assert f"in 1 of {number} conditions." in sentence
    for address in (
        "/campaigns/lab/",
        "/campaigns/",
        "/campaigns/lab/report/?format=html",
    ):
        assert sentence in text_of(client, address), address
    # What the rule left out says so in the reader's language.
    page = client.get(
        f"/runs/{lost.runs.first().pk}/", headers={"Accept-Language": "ja"}
    )
    assert "Invalid: it is in no median" not in page.content.decode()


def test_a_comparison_has_the_words_of_its_page(client, lab):
    sides = (
        "base=campaign:lab~version%3D16.14&head=campaign:lab~version%3D18.4&metric=tps"
    )
    api = client.get(f"/api/v1/compare/?{sides}").json()
    page = text_of(client, "/compare/?s=lab~version=16.14&s=lab~version=18.4")
    answer = api["answer"]
    (together,) = api["together"]
    assert (answer["low"], answer["high"]) == (together["low"], together["high"])
    assert answer["exit_code"] == api["exit_code"]
    renamed = answer["sentence"].replace(api["head"]["label"], "PostgreSQL 18.4")
    heading = re.search(r'class="answer">\s*(.*?)\s*</h1>', page)[1]
    assert renamed.replace(api["base"]["label"], "16.14").split(" than ")[0] in heading


def test_each_campaign_stands_under_its_own_scenario_with_the_date_of_its_data(
    client, lab
):
    """A group of one has a heading too, and none stands under that of another."""
    store(history([1000] * 40 + [900] * 20))
    changes.find(campaign_id=Campaign.objects.get(slug="nightly").pk)
    rows = re.findall(r"<tr>(.*?)</tr>", text_of(client, "/campaigns/"), re.DOTALL)
    (nightly,) = (row for row in rows if "/campaigns/nightly/" in row)
    (executed,) = (row for row in rows if "/campaigns/lab/" in row)
    for row, slug in ((nightly, "nightly"), (executed, "lab")):
        title = Campaign.objects.get(slug=slug).scenario.title
        assert row.index(title) < row.index(f"/campaigns/{slug}/")
    assert f"Since {sha(40)} (2026-02-10)" in nightly
    assert "2026-01-01" in nightly
    # Its page has the dates of its data, too.
    head = (
        text_of(client, "/campaigns/nightly/").partition("<h1")[2].partition('id="')[0]
    )
    assert "2026-01-01" in head
    # Finished is said where the answer is missing.
    assert ">finished<" not in re.sub(r"\s", "", executed)


def test_a_campaign_without_an_answer_says_how_it_stands(client, ready_server):
    factories.campaign("waiting", on=ready_server)
    page = text_of(client, "/campaigns/")
    assert "waiting" in page
    assert re.search(r'class="badge[^>]*>.*?queued', page)
    assert (
        client.get("/api/v1/campaigns/waiting/").json()["answer"]["sentence"]
        == "No answer yet"
    )


@pytest.mark.parametrize(("fewer", "is_judged"), [(0, True), (1, False)])
def test_the_list_judges_no_campaign_of_many_cells(
    client, lab, monkeypatch, fewer, is_judged
):
    """A long one would be read whole; its page and the API judge it."""
    last_cell = lab.cells.latest("ordinal")
    monkeypatch.setattr(answers, "MOST_CELLS", last_cell.ordinal - fewer)
    sentence = client.get("/api/v1/campaigns/lab/").json()["answer"]["sentence"]
    listed = text_of(client, "/campaigns/")
    assert (sentence in listed) == is_judged
    assert bool(re.search(r'class="badge[^>]*>.*?finished', listed)) != is_judged


def test_a_printed_table_answers_by_its_conclusion(client, whole_archive):
    answer = client.get("/api/v1/campaigns/wg1-2021-read/").json()["answer"]
    assert "slower" in answer["sentence"]
    assert "not tested" in answer["family"]
    listed = text_of(client, "/campaigns/?origin=published")
    assert (
        answer["sentence"] in text_of(client, "/campaigns/?origin=published&q=2021")
        or listed
    )


@pytest.mark.parametrize("number", [2, 6])
def test_the_queries_of_the_list_do_not_grow(
    client, ready_server, number, django_assert_max_num_queries
):
    for index in range(number):
        made = factories.campaign(f"lab-{index}", on=ready_server, state="finished")
        factories.finish_all(made)
        store(history([1000] * 6, campaign=f"ci-{index}"))
    with django_assert_max_num_queries(22):
        client.get("/campaigns/")
