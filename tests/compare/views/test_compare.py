"""The compare page: what can be chosen, seen, taken away as a file, and kept."""

import csv
import io
import itertools
import json
import re

import pytest
from django.contrib.auth.models import User

from runs.archive import services
from runs.models import Bisection, Project, Run, SavedComparison
from runs.published import reading
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign():
    """Two versions x clients 1, 2, 4; 18 is 10 % faster."""
    return factories.finish_all(
        factories.campaign("c", title="Both"), gain={"18.4": 1.1}
    )


def page(client, query="", **headers):
    response = client.get(f"/compare/?{query}", headers=headers)
    assert response.status_code == 200
    return response.content.decode()


def figures(text):
    return [
        json.loads(found)
        for found in re.findall(r'<script[^>]*application/json">(.*?)</script>', text)
    ]


def test_nothing_chosen_shows_questions_of_the_archive_and_what_can_be_added(
    client, campaign
):
    services.load(files=reading.files())

    text = page(client)

    assert "Is PostgreSQL 9.3 slower than 9.2 on 80 cores?" in text
    assert text.count('class="example"') == 6
    for query in re.findall(r'class="example" href="/compare/\?([^"]+)"', text):
        shown = page(client, query.replace("&amp;", "&"))
        assert "problem__message" not in shown
        assert figures(shown)
    assert "?s=c~version%3D18.4" in page(client, "q=Both")


def test_of_three_versions_the_step_that_got_slower_is_said_before_the_others(client):
    factors = {"version": ["13.22", "14.19", "16.14", "18.4"], "clients": [1, 4]}
    gain = {"13.22": 1.0, "14.19": 0.9, "16.14": 1.05, "18.4": 1.2}
    factories.finish_all(factories.campaign("steps", factors=factors), gain=gain)

    told = re.findall(r'(?:answer|list__title)">(.*?)</', page(client, "s=steps"))

    assert [
        re.findall(r"PostgreSQL (\d+)|(slower|faster)", each) for each in told[:3]
    ] == [
        [("18", ""), ("", "faster"), ("13", "")],
        [("14", ""), ("", "slower"), ("13", "")],
        [("16", ""), ("", "faster"), ("14", "")],
    ]


def test_no_step_that_got_slower_is_folded(client):
    """Six of seven steps lose, and stand open; what got faster may be unfolded."""
    versions = ["10.23", "11.22", "12.22", "13.22", "14.19", "15.14", "16.14", "17.6"]
    gain = {version: 0.9**number for number, version in enumerate(versions[:7])}
    gain["17.6"] = 1.0
    factors = {"version": versions, "clients": [1, 4]}
    factories.finish_all(factories.campaign("losses", factors=factors), gain=gain)

    text = page(client, "s=losses")

    summary = text.split('id="summary"')[1].split("<details")[0]
    told = re.findall(
        r"PostgreSQL (\S+) is \S+ to 10 % slower than PostgreSQL (\S+)", summary
    )
    assert told[-6:] == [
        (head, base) for base, head in itertools.pairwise(versions[:7])
    ]


def test_a_comparison_has_lines_values_ratios_and_all_pairs(client, campaign):
    text = page(client, "s=c")

    lines, forest = figures(text)
    assert [trace["name"] for trace in lines["data"]] == ["16.14", "18.4"]
    assert lines["data"][1]["y"] == pytest.approx([1100, 2200, 4400], rel=1e-5)
    assert lines["data"][1]["meta"]["urls"] == ["/campaigns/c/"] * 3
    assert [trace["name"] for trace in forest["data"]] == ["faster"]
    assert "% faster" in text
    assert text.count("heat__cell--up-2") == 1


def test_relative_to_the_baseline_lines_are_ratios_with_intervals(client, campaign):
    (_base, head) = figures(page(client, "s=c&relative=1"))[0]["data"]

    assert head["y"] == pytest.approx([1.1, 1.1, 1.1])
    assert head["error_y"]["array"][0] > 0


def test_a_point_of_one_run_leads_to_it(client):
    campaign = factories.campaign(
        "one", factors={"version": ["16.14"], "clients": [1, 2]}, repeats=1
    )
    factories.finish_all(campaign)

    (lines,) = figures(page(client, "s=one"))

    runs = campaign.runs.order_by("cell__ordinal").values_list("pk", flat=True)
    assert lines["data"][0]["meta"]["urls"] == [f"/runs/{pk}/" for pk in runs]


def test_facets_have_a_chart_each_with_the_same_axes(client):
    for slug, system in (("a", "Debian 13"), ("b", "Windows 2022")):
        made = factories.finish_all(factories.campaign(slug), gain={"18.4": len(slug)})
        made.runs.update(environment=factories.environment(system))

    text = page(client, "s=a&s=b&facet=os&ignore=environment")

    one, other, _forest = figures(text)
    assert one["layout"]["yaxis"]["range"] == other["layout"]["yaxis"]["range"]
    assert one["layout"]["xaxis"]["range"] == other["layout"]["xaxis"]["range"]
    assert "Compared by override although the environment" in text


def test_what_is_not_comparable_says_why_and_how_to_override(client):
    for slug in ("a", "b"):
        made = factories.finish_all(factories.campaign(slug))
        made.runs.update(hardware=factories.hardware(slug))

    text = page(client, "s=a~version%3D18.4&s=b~version%3D18.4")

    assert "Not comparable: the hardware differs." in text
    assert "ignore=hardware" in text
    assert "Compare across different hardware" in text


def test_only_what_matters_says_so_where_nothing_does(client):
    factories.finish_all(factories.campaign("c"))

    assert "Nothing here is proven and large enough" in page(client, "s=c&matters=1")


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("s=c~version", "“version” in “c~version” must be a factor and its level"),
        ("s=nowhere", "There is no campaign nowhere."),
        ("s=c&facet=moon", "facet=moon is not known"),
        ("s=c&metric=tpz", "None of these series has the metric tpz."),
        ("s=c&x=moon", "The factor moon does not vary"),
    ],
)
def test_an_address_that_is_wrong_says_where(client, campaign, query, told):
    assert told in page(client, query)


@pytest.mark.parametrize("query", ["q=%00", "q=Both%00&in_os=%00", "x=%00"])
def test_a_null_character_is_refused(client, campaign, query):
    assert client.get(f"/compare/?{query}").status_code == 400


def test_a_null_character_within_a_side_does_no_harm(client, campaign):
    page(client, "s=c~version%3D%2500")


def test_htmx_gets_only_what_was_searched_for(client, campaign):
    asked = {"HX-Request": "true", "HX-Target": "candidates"}

    text = page(client, "q=Both&s=c~version%3D16.14", **asked)

    assert "<html" not in text
    assert "s=c~version%3D16.14&amp;s=c~version%3D18.4" in text.replace("%7E", "~")


def test_a_private_campaign_is_shown_to_members_alone(client, campaign):
    campaign.project = Project.objects.create(slug="p", name="p", is_public=False)
    campaign.save()
    cells = list(campaign.cells.values_list("pk", flat=True)[:2])
    address = f"/compare/cells/?a={cells[0]}&b={cells[1]}"

    assert "There is no campaign c." in page(client, "s=c")
    assert "/campaigns/c/" not in page(client, "q=Both")
    assert client.get(address).status_code == 404

    member = User.objects.create_user("ichiro")
    campaign.project.members.add(member)
    client.force_login(member)
    assert "There is no campaign c." not in page(client, "s=c")
    assert client.get(address).status_code == 200


@pytest.mark.parametrize(
    ("name", "media_type", "told"),
    [
        ("md", "text/markdown", "| PostgreSQL 18.4 | 1 | 1100 |"),
        ("latex", "application/x-tex", r"PostgreSQL 18.4 & 1 & 1100 &"),
    ],
)
def test_a_table_goes_into_papers_and_pull_requests(
    client, campaign, name, media_type, told
):
    response = client.get(f"/compare/?s=c&format={name}")

    assert response["Content-Type"].startswith(media_type)
    assert told in response.content.decode()


def test_a_spreadsheet_gets_every_value_at_full_precision(client, campaign):
    text = client.get("/compare/?s=c&format=csv").content.decode()

    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 6
    assert rows[3]["Series"] == "PostgreSQL 18.4"
    assert float(rows[3]["Ratio"]) == pytest.approx(1.1)
    assert rows[0]["Ratio"] == ""
    assert rows[3]["Verdict"] == "faster"


def test_a_program_gets_codes_and_numbers(client, campaign):
    found = client.get("/compare/?s=c&format=json").json()

    assert (found["metric"]["name"], found["x"]) == ("tps", "clients")
    assert [each["key"] for each in found["series"]] == [
        "c~version=16.14",
        "c~version=18.4",
    ]
    assert {row["verdict"] for row in found["rows"]} == {"faster"}
    (average,) = found["averages"]
    assert (average["rows"], average["verdict"]) == (3, "faster")


def test_an_unknown_format_is_not_found(client, campaign):
    assert client.get("/compare/?s=c&format=doc").status_code == 404


@pytest.mark.parametrize("chosen", ["a={0}&b={1}", "cell={0}&cell={1}"])
def test_two_points_show_all_their_metrics_and_runs(client, campaign, chosen):
    old, new = (
        campaign.cells.get(version=v, levels__clients=1) for v in ("16.14", "18.4")
    )
    factories.story(old.runs.first())

    text = client.get(
        f"/compare/cells/?{chosen.format(old.pk, new.pk)}"
    ).content.decode()

    assert "% faster" in text
    for run in Run.objects.filter(cell__in=[old, new]):
        assert f"/runs/{run.pk}/" in text


@pytest.mark.parametrize(
    "query", ["", "a=1", "cell=1", "cell=1&cell=2&cell=3", "a=x&b=y"]
)
def test_two_points_must_be_two(client, query):
    response = client.get(f"/compare/cells/?{query}")

    assert response.status_code == 400
    assert "Choose exactly two points." in response.content.decode()


def test_points_that_are_not_there_are_not_found(client):
    assert client.get("/compare/cells/?a=98765&b=98766").status_code == 404


def test_a_comparison_is_kept_and_opened_again(member, campaign):
    sent = {"query": "s=c&relative=1", "title": "Old and new", "note": "On one machine"}
    listed = member.post("/compare/save/", sent, follow=True).content.decode()

    assert "Old and new" in listed
    assert "On one machine" in listed
    assert member.get("/compare/saved/old-and-new/").url == "/compare/?s=c&relative=1"
    member.post("/compare/save/", sent)
    assert set(SavedComparison.objects.values_list("slug", flat=True)) == {
        "old-and-new",
        "old-and-new-2",
    }


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"query": "s=c", "title": " "}, "The comparison has no title."),
        ({"query": "", "title": "Nothing"}, "Nothing is compared yet."),
    ],
)
def test_what_cannot_be_kept_is_said(member, campaign, sent, told):
    assert told in member.post("/compare/save/", sent, follow=True).content.decode()
    assert not SavedComparison.objects.exists()


def test_a_stranger_logs_in_before_keeping(client, campaign):
    assert client.post("/compare/save/", {"query": "s=c", "title": "x"}).url.startswith(
        "/login/"
    )


def test_campaigns_lead_to_their_comparison(client, campaign):
    assert 'href="/compare/?s=c"' in client.get("/campaigns/c/").content.decode()


@pytest.mark.parametrize("count", [2, 12])
def test_the_page_takes_as_many_queries_for_many_series_as_for_few(
    client, count, django_assert_num_queries
):
    versions = [f"{number}.1" for number in range(10, 10 + count)]
    made = factories.campaign(
        "c", factors={"version": versions, "clients": [1, 2]}, repeats=5
    )
    factories.finish_all(made)
    Run.objects.update(
        hardware=factories.hardware(), environment=factories.environment()
    )

    with django_assert_num_queries(15):
        page(client, "s=c")


@pytest.fixture
def bisection(finished_campaign):
    made = Bisection.objects.create(
        campaign=finished_campaign,
        server=finished_campaign.runs.first().server,
        asked={},
        draft={},
        builds=[{"commit": each * 40, "installation": 0} for each in "ab"],
        high=1,
    )
    made.steps.create(campaign=finished_campaign, low=0, high=1)
    return made


@pytest.mark.parametrize(("state", "asks"), [("running", True), ("finished", False)])
def test_it_asks_for_news_until_it_has_ended(client, bisection, state, asks):
    Bisection.objects.filter(pk=bisection.pk).update(state=state)

    page = client.get(f"/bisections/{bisection.pk}/").content.decode()

    assert "a" * 12 in page
    assert "PostgreSQL 16 and 18" in page
    assert (f'hx-get="/bisections/{bisection.pk}/"' in page) is asks
