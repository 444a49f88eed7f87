"""Campaigns: list, form, estimate, page and cancelling."""

import html
import json
import re

import pytest
from django.db import connection, transaction
from django.http import QueryDict
from django.test.utils import CaptureQueriesContext
from django.urls import URLResolver, get_resolver
from django.utils.translation import override

from runs.archive import services
from runs.campaigns.selectors import campaigns
from runs.campaigns.views.treatment_fields import ChoicesField
from runs.cells.selectors import factor_names
from runs.cells.services import summaries
from runs.compare.selectors.describe.summary import summarise_table
from runs.compare.selectors.judge.ratios import ratios
from runs.models import Campaign, Configuration, Run
from runs.scenarios import registry
from runs.scenarios.definition import ChoiceFactor
from runs.shared import pages
from runs.tools.adapter import Reason, quoted
from runs.wording import Marked
from runs.workloads.services import scenarios
from tests import factories, history_points
from tests.each import some
from tests.web.test_browser import SAMPLE

pytestmark = pytest.mark.django_db


def draft(server, **changed):
    """What the form sends."""
    return {
        "title": "16 against 18",
        "scenario": "fixed-point-read",
        "server": server.slug,
        "installations": [each.pk for each in server.installations.all()],
        "clients": "1, 2, 4",
        "repeats": "3",
        "scale": "1",
        "duration": "5",
        **changed,
    }


def test_an_empty_list_says_what_to_do(client):
    assert "No campaigns yet" in client.get("/campaigns/").content.decode()


def test_the_list_is_paged(client, known):
    for number in range(30):
        factories.campaign(
            f"number-{number}", factors={"version": ["16.14"]}, repeats=1
        )
    first = client.get("/campaigns/").content.decode()
    assert "number-29" in first
    assert "number-0<" not in first
    (older,) = re.findall(r'rel="next"\s+href="([^"]+)"', first)
    second = client.get(f"/campaigns/{older}").content.decode()
    assert "number-0<" in second
    (newer,) = re.findall(r'rel="prev"\s+href="([^"]+)"', second)
    assert "number-29" in client.get(f"/campaigns/{newer}").content.decode()


def test_pages_in_both_directions_have_every_row_once(known):
    for number in range(7):
        factories.campaign(
            f"number-{number}", title=f"t{number // 2}", factors={}, repeats=1
        )
    for by, order in (("-pk", ("-pk",)), ("title", ("title", "pk"))):
        expected = list(Campaign.objects.order_by(*order).values_list("pk", flat=True))
        forth, back, address = [], [], ""
        while page := pages.page(
            Campaign.objects.all(), QueryDict(address), size=3, by=by
        ):
            forth.append([each.pk for each in page.rows])
            if not page.after:
                break
            address = page.after
        while page.before:
            page = pages.page(
                Campaign.objects.all(), QueryDict(page.before), size=3, by=by
            )
            back.append([each.pk for each in page.rows])
        assert [key for each in forth for key in each] == expected
        assert back[::-1] == forth[:-1]
    for nonsense in ("after=x", "before=", f"after={10**30}", "page=4"):
        page = pages.page(Campaign.objects.all(), QueryDict(nonsense), size=3)
        assert page.rows[0].pk == max(expected)
        assert not page.before
    # What is new since then, or gone, neither cuts the first page short nor leaves a page empty.
    newest_first = sorted(expected, reverse=True)
    newest, expected_first = newest_first[0], newest_first[:3]
    for address in (
        f"before={newest - 1}",
        f"before={newest}",
        f"after={min(expected)}",
    ):
        page = pages.page(Campaign.objects.all(), QueryDict(address), size=3)
        assert [each.pk for each in page.rows] == expected_first
        assert (page.before, page.after) == ("", f"after={expected_first[-1]}")
    hidden = Campaign.objects.exclude(pk=newest)
    page = pages.page(hidden, QueryDict(f"after={newest}"), size=3, by="title")
    assert not page.before


def test_the_lists_queries_do_not_grow(client, known, django_assert_num_queries):
    for number in range(8):
        factories.campaign(
            f"number-{number}", factors={"version": ["16.14"]}, repeats=1
        )
    with django_assert_num_queries(3):
        client.get("/campaigns/")


@pytest.mark.parametrize("path", ["/campaigns/new/", "/campaigns/new/estimate/"])
def test_a_visitor_is_asked_to_log_in(client, path):
    response = client.get(path)
    assert response.status_code == 302
    assert response.url.startswith("/login/?next=")


def test_without_a_server_the_form_says_to_register_one(administrator):
    assert "Register a server" in administrator.get("/campaigns/new/").content.decode()


def test_the_form_comes_filled_and_estimated(member, ready_server):
    page = member.get("/campaigns/new/").content.decode()
    assert 'value="1, 2, 4"' in page
    assert re.search(r"Runs</span>\s*<span class=\"stat__value\">18", page)
    assert "Ready to queue." in page


def test_the_number_of_runs_has_no_note_of_another_part_of_the_page(
    member, ready_server
):
    page = member.get("/campaigns/new/?remeasures=0").content.decode()
    notes = re.findall(r"stat__note\">(.*?)<", page)
    assert not [note for note in notes if "optional" in note]


@pytest.mark.parametrize(
    ("query", "title"),
    [
        ("", "Fixed-point update on db1"),
        ("&title=Old+on+db1&proposed_title=Old+on+db1", "Fixed-point update on db1"),
        ("&title=&proposed_title=Old+on+db1", "Fixed-point update on db1"),
        ("&title=Mine&proposed_title=Old+on+db1", "Mine"),
    ],
)
def test_a_title_follows_the_choices_until_it_is_typed(
    member, ready_server, query, title
):
    answer = member.get(
        f"/campaigns/new/?scenario=fixed-point-update&server=db1{query}"
    )
    page = answer.content.decode()
    assert f'name="title" value="{title}"' in page
    assert 'name="proposed_title" value="Fixed-point update on db1"' in page


def test_a_choice_keeps_what_was_typed(member, ready_server):
    page = member.get(
        "/campaigns/new/?server=db1&clients=8,16&scale=20"
    ).content.decode()
    assert 'value="8,16"' in page
    assert 'name="scale" value="20"' in page


def test_a_campaign_is_duplicated_as_a_form_to_change(member, ready_server):
    given = draft(
        ready_server, clients="3, 5", repeats="4", wanted_percent="2", most_repeats="9"
    )
    given |= {"settings": "work_mem: 4MB, 8MB", "profile": "on"}
    slug = member.post("/campaigns/new/", given).url.strip("/").split("/")[-1]
    link = f"/campaigns/new/?again={slug}"
    assert link in member.get(f"/campaigns/{slug}/").content.decode()
    page = member.get(link)
    form = page.context["form"]
    assert page.context["draft"] is not None, page.context["complaints"]
    names = (
        "clients",
        "repeats",
        "wanted_percent",
        "most_repeats",
        "settings",
        "profile",
    )
    found = {name: form[name].value() for name in names}
    assert found == {
        "clients": "3, 5",
        "repeats": 4,
        "wanted_percent": 2,
        "most_repeats": 9,
        "settings": "work_mem: 4MB, 8MB",
        "profile": True,
    }
    chosen = {str(each) for each in form["installations"].value()}
    assert chosen == {str(each) for each in given["installations"]}
    assert form["title"].value() == f"{given['title']}, again"


def test_only_configurations_that_fit_the_scenario_are_offered(member, ready_server):
    services.load(files=[SAMPLE])
    published = set(
        Configuration.objects.filter(origin="published").values_list("name", flat=True)
    )
    assert published

    def offered(scenario):
        form = member.get(f"/campaigns/new/?scenario={scenario}").context["form"]
        return {
            str(label) for _value, label in form["configuration"].field.choices
        } & published

    assert offered("fixed-point-read") == published
    assert offered("block-size") == set()


def test_the_estimate_follows_the_form(member, ready_server):
    data = draft(ready_server, clients="1", repeats="5")
    page = member.get("/campaigns/new/estimate/", data).content.decode()
    assert re.search(r"stat__value\">10\s", page)


@pytest.mark.parametrize("written", ["1-8", "1–8", "1..8", "1～8"])
def test_a_range_is_answered_with_how_numbers_are_written(
    member, ready_server, written
):
    bad = draft(ready_server, clients=written)
    page = member.get("/campaigns/new/estimate/", bad).content.decode()
    assert f"{written} is a range: write each number, such as 1, 2, 4, 8." in page


def test_a_single_run_of_each_cell_is_no_verdict(member, ready_server):
    def told(**changed):
        page = member.get("/campaigns/new/estimate/", draft(ready_server, **changed))
        return page.content.decode()

    assert "No verdict possible" in told(repeats="1")
    assert "Ready to queue" not in told(repeats="1")
    assert "Ready to queue" in told(repeats="2")
    further = {"wanted_percent": "3", "most_repeats": "5"}
    assert "Ready to queue" in told(repeats="1", **further)


def test_levels_out_of_range_are_said_at_their_field_and_without_an_estimate(
    member, ready_server
):
    bad = draft(ready_server, clients="1, 99999")
    page = member.get("/campaigns/new/estimate/", bad).content.decode()
    assert "Clients: 99999 is out of range. Choose from 1 to 10,000." in page
    assert "stat__value" not in page
    assert "matrix" not in page
    errors = member.post("/campaigns/new/", bad).context["form"].errors
    assert list(errors) == ["clients"]


def test_a_command_is_named_and_is_no_path(member, ready_server):
    fields = {"time_limit": "60", "scale": "0", "disk_mb": "10", "scenario": "command"}
    page = member.get("/campaigns/new/", {"scenario": "command"}).content.decode()
    assert 'name="command"' in page
    assert 'value="bench.sh"' in page
    for name in ("../x/bench.sh", "-rf", ".profile", "a:b", "a" * 81):
        bad = draft(ready_server, **fields) | {"command": f"bench.sh, {name}"}
        errors = member.post("/campaigns/new/", bad).context["form"].errors
        assert list(errors) == ["command"]
        assert errors["command"] == [f"{name} is not such a name."]
    assert not Campaign.objects.filter(scenario__slug="command").exists()


def test_a_scale_factor_of_zero_is_said_where_it_is_a_factor(member, ready_server):
    bad = {"scenario": "pgbench", "scale": "0"}
    page = member.get(
        "/campaigns/new/estimate/", draft(ready_server, **bad)
    ).content.decode()
    assert "Scale factor: 0 is out of range." in page
    assert "stat__value" not in page


def test_the_estimate_names_a_problem_with_its_remedy(member, ready_server):
    ready_server.state = "unreachable"
    ready_server.save()
    page = member.get("/campaigns/new/estimate/", draft(ready_server)).content.decode()
    assert "Server db1 is not ready." in page


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"clients": "one"}, "one is not a whole number."),
        ({"clients": ""}, "This field is required."),
        ({"repeats": "0"}, "greater than or equal to 1"),
        ({"installations": []}, "This field is required."),
        ({"scale": "big"}, "Enter a whole number."),
        ({"title": ""}, "This field is required."),
    ],
)
def test_bad_input_is_said_and_queues_nothing(member, ready_server, changed, message):
    response = member.post("/campaigns/new/", draft(ready_server, **changed))
    assert response.status_code == 200
    assert message in response.content.decode()
    assert not Campaign.objects.exists()


def test_what_the_service_refuses_stands_at_its_field(member, ready_server):
    ready_server.state = "unreachable"
    ready_server.save()
    response = member.post("/campaigns/new/", draft(ready_server))
    assert "Server db1 is not ready." in response.context["form"].errors["server"][0]
    assert not Campaign.objects.exists()


def test_a_draft_is_queued_and_its_page_shown(member, ready_server):
    response = member.post("/campaigns/new/", draft(ready_server, seed="7"))
    campaign = Campaign.objects.get()
    assert response.url == f"/campaigns/{campaign.slug}/"
    assert (campaign.runs.count(), campaign.seed) == (18, 7)


@pytest.mark.parametrize(
    ("step", "ticked"),
    [("all", {"16.14", "18.4"}), ("16,17", {"16.14"}), ("", {"16.1", "16.14", "18.4"})],
)
def test_the_line_of_versions_leads_to_a_form_with_the_newest_release_of_each(
    member, ready_server, step, ticked
):
    factories.installation(
        ready_server, "16.1", has_psql=True, pgbench_version_num=160001
    )
    line = member.get("/versions/").content.decode()
    assert 'href="/observations/new/"' in line
    # Of neighbours without figures there is one row for all.
    assert re.search(
        r"/new/\?scenario=fixed-point-read&amp;versions=9.2,[\d.,]+,18&amp;dur", line
    )
    page = member.get(
        f"/campaigns/new/?scenario=fixed-point-read&versions={step}&duration=30"
    )
    form = page.context["form"]
    chosen = ready_server.installations.filter(pk__in=form.initial["installations"])
    assert set(chosen.values_list("version", flat=True)) == ticked
    assert form.initial["duration"] == "30"


def test_a_visitor_queues_nothing(client, ready_server):
    assert client.post("/campaigns/new/", draft(ready_server)).status_code == 302
    assert not Campaign.objects.exists()


def test_a_finished_campaign_says_which_version_is_faster(client, finished_campaign):
    page = client.get("/campaigns/finished/").content.decode()
    told = r"PostgreSQL 18\.4 is [\d.]+ to [\d.]+ % faster than PostgreSQL 16\.14 on average"
    assert re.search(rf"{told}, in all 3 conditions\.", page)
    assert "Clients 1, 2, 4" in page
    assert "hx-trigger" not in page


def test_a_campaign_page_shows_any_of_its_metrics(client, finished_campaign):
    metric = factories.metric("latency_average", unit="ms", direction="lower")
    for number, run in enumerate(finished_campaign.runs.all()):
        run.measurements.create(metric=metric, value=1.5 + number / 100)
    summaries.refresh_all(cell_ids=[each.pk for each in finished_campaign.cells.all()])
    first = client.get("/campaigns/finished/").content.decode()
    assert '<option value="latency_average"' in first
    assert "Transactions per second against Clients" in first
    other = client.get("/campaigns/finished/?metric=latency_average").content.decode()
    assert "Transactions per second against Clients" not in other
    assert '<option value="latency_average" selected>' in " ".join(other.split())
    unknown = client.get("/campaigns/finished/?metric=nothing").content.decode()
    assert "Transactions per second against Clients" in unknown


@pytest.mark.parametrize("language", ["en", "ja"])
def test_every_door_says_the_same_sentence_of_a_campaign(
    client, finished_campaign, language
):
    client.cookies["django_language"] = language
    with override(language):
        words = factor_names.words(finished_campaign)
        (sentence,) = summarise_table(ratios(finished_campaign, "tps"), words).values()
    for door in (
        "/campaigns/finished/",
        "/compare/?s=finished",
        "/",
        f"/campaigns/finished/report/?format=html&lang={language}",
        "/compare/report/?s=finished&format=html",
    ):
        response = client.get(door)
        assert sentence in html.unescape(response.content.decode()), door
    by_api = client.get(
        "/api/v1/campaigns/finished/", headers={"Accept-Language": language}
    )
    assert by_api.json()["summary"] == [sentence]
    shared = client.get("/campaigns/finished/").content.decode()
    assert f'<meta name="description" content="{sentence}">' in html.unescape(shared)


def test_each_message_of_a_tool_is_a_cause_and_a_text_of_ours_is_one_whatever_it_quotes(
    ready_server,
):
    campaign = factories.campaign("troubled", on=ready_server)
    reasons = [
        quoted("tool_error", said) for said in ("no disk", "no disk", "no memory")
    ]
    reasons += [Reason("other", Marked("%(name)s failed."), name=name) for name in "ab"]
    for run, reason in zip(campaign.runs.order_by("position"), reasons, strict=False):
        told = {name: getattr(reason, name) for name in ("code", "message", "wording")}
        Run.objects.filter(pk=run.pk).update(state="failed", **told)
    numbers = [each["number"] for each in campaigns.causes(campaign, ["failed"])]
    assert numbers == [2, 1, 2]


def test_many_versions_are_a_table_of_steps_at_a_glance(client, ready_server):
    factors = {"version": ["12.22", "14.19", "16.14", "18.4"], "clients": [1, 2]}
    campaign = factories.campaign("line", on=ready_server, factors=factors)
    factories.finish_all(
        campaign, gain={"12.22": 1.0, "14.19": 0.9, "16.14": 0.9, "18.4": 1.2}
    )
    page = " ".join(client.get("/campaigns/line/").content.decode().split())
    table = page[page.index('class="table heat"') :]
    table = re.sub(r"<[^>]+>", " ", table[: table.index("</table>")])
    rows = re.findall(r"(14\.19|16\.14|18\.4) ((?:[^%]*%){4})", table)
    changes = {version: re.findall(r"[+-]?[\d.]+ %", cells) for version, cells in rows}
    # The step on average, the total since 12.22, and the step at 1 and at 2 clients.
    assert changes["14.19"] == ["-10.0 %"] * 4
    assert changes["16.14"][1] == "-10.0 %"
    assert changes["18.4"] == ["+33.3 %", "+20.0 %", "+33.3 %", "+33.3 %"]
    assert "heat__cell--down-2" in page
    assert "heat__cell--up-3" in page


@pytest.mark.parametrize("clients", [[1], [1, 2]])
def test_many_versions_at_one_level_are_bars_and_no_heap(client, ready_server, clients):
    versions = ["10.23", "11.22", "12.22", "13.22", "14.19", "16.14", "17.6", "18.4"]
    campaign = factories.campaign(
        "line", on=ready_server, factors={"version": versions, "clients": clients}
    )
    factories.finish_all(campaign)
    page = client.get("/campaigns/line/").content.decode()
    (figure,) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    traces = json.loads(figure)["data"]
    if len(clients) == 1:
        assert [trace["x"] for trace in traces] == [versions]
        assert {trace["type"] for trace in traces} == {"bar"}
    else:
        assert sorted(trace["name"] for trace in traces) == versions
    assert ("Each version against the oldest" in page) == (len(clients) > 1)


def test_the_chart_has_a_line_for_each_version(client, finished_campaign):
    page = client.get("/campaigns/finished/").content.decode()
    (figure,) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    assert [trace["name"] for trace in json.loads(figure)["data"]] == ["16.14", "18.4"]


def test_a_campaign_in_progress_is_polled(client, ready_server):
    campaign = factories.campaign("live", on=ready_server, state="running")
    run = campaign.runs.first()
    factories.finish(run, tps=1000)
    response = client.get("/campaigns/live/", headers={"HX-Request": "true"})
    page = response.content.decode()
    assert "<html" not in page
    assert 'hx-trigger="every 2s"' in page
    assert "1 of 18 runs" in page


@pytest.mark.parametrize("path", ["/campaigns/live/", "/campaigns/", "/"])
def test_cancelled_runs_do_not_count_as_finished(client, ready_server, path):
    campaign = factories.campaign("live", on=ready_server, state="cancelled")
    factories.finish(campaign.runs.first(), tps=1000)
    campaign.runs.exclude(state="finished").update(state="cancelled")
    page = " ".join(client.get(path).content.decode().split())
    assert ("1 of 18 runs finished" if path == "/campaigns/live/" else "1 / 18") in page
    assert "18 / 18" not in page
    assert "18 of 18" not in page


@pytest.mark.parametrize(
    ("state", "told"),
    [
        ("running", "2 runs were doubtful or invalid and are measured again"),
        ("finished", "2 runs were doubtful or invalid and were measured again"),
    ],
)
def test_a_campaign_says_that_doubtful_runs_are_measured_again(
    client, ready_server, state, told
):
    campaign = factories.campaign("live", on=ready_server, state=state)
    assert "not valid" not in client.get("/campaigns/live/").content.decode()
    for run in list(campaign.runs.all()[:2]):
        Run.objects.create(
            campaign=campaign,
            cell_id=run.cell_id,
            repeat=9 + run.repeat,
            position=99,
            again_of=run,
        )
    assert told in client.get("/campaigns/live/").content.decode()


def test_a_failed_run_is_listed_with_its_remedy(client, finished_campaign):
    run = finished_campaign.runs.first()
    Run.objects.filter(pk=run.pk).update(
        state="failed",
        code="disk_full",
        message="The disk is full.",
        remedy="Free space.",
    )
    page = client.get("/campaigns/finished/").content.decode()
    for words in ("disk_full", "The disk is full.", "Free space."):
        assert words in page


def test_its_queries_do_not_grow_with_the_runs(client, ready_server):
    numbers = []
    for slug, repeats in (("small", 1), ("large", 9)):
        factories.finish_all(factories.campaign(slug, repeats=repeats, on=ready_server))
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/campaigns/{slug}/")
        numbers.append(len(queries))
    assert numbers[0] == numbers[1] < 33


def test_an_unknown_campaign_is_not_found(client):
    response = client.get("/campaigns/none/")
    assert response.status_code == 404
    assert "Page not found" in response.content.decode()


def test_only_who_has_logged_in_may_cancel(client, ready_server):
    campaign = factories.campaign("live", on=ready_server, state="running")
    assert "Cancel the campaign" not in client.get("/campaigns/live/").content.decode()
    assert client.post("/campaigns/live/cancel/").status_code == 302
    assert not campaign.runs.filter(state="cancelled").exists()


def test_a_member_cancels(member, ready_server):
    campaign = factories.campaign("live", on=ready_server, state="running")
    assert "Cancel the campaign" in member.get("/campaigns/live/").content.decode()
    response = member.post("/campaigns/live/cancel/", follow=True)
    assert "what has finished is kept" in response.content.decode()
    assert campaign.runs.filter(state="cancelled").count() == 18


def test_cancelling_twice_is_refused_in_words(member, finished_campaign):
    response = member.post("/campaigns/finished/cancel/", follow=True)
    assert "This campaign has ended already." in response.content.decode()
    assert "campaign_has_ended" in response.content.decode()


def test_cancelling_needs_a_post(member, finished_campaign):
    assert member.get("/campaigns/finished/cancel/").status_code == 405


def checksums_draft(server, **changed):
    sent = draft(
        server, scenario="page-checksums", checksums=["off", "on"], clients="1"
    )
    return sent | changed


def test_a_factor_of_choices_is_asked_for_by_boxes(member, ready_server):
    page = member.get("/campaigns/new/?scenario=page-checksums").content.decode()
    boxes = re.findall(
        r'<input type="checkbox" name="checksums" value="(\w+)"[^>]*checked', page
    )
    assert boxes == ["off", "on"]


def test_boxes_that_were_ticked_stay_so_when_the_server_is_changed(
    member, ready_server
):
    page = member.get(
        "/campaigns/new/?scenario=page-checksums&checksums=on&checksums=off&clients=3"
    ).content.decode()
    assert len(re.findall(r'name="checksums"[^>]*checked', page)) == 2
    page = member.get(
        "/campaigns/new/?scenario=page-checksums&checksums=on"
    ).content.decode()
    assert re.findall(r'name="checksums" value="(\w+)"[^>]*checked', page) == ["on"]


def test_choices_become_cells_and_show_on_the_page(member, ready_server):
    response = member.post("/campaigns/new/", checksums_draft(ready_server))
    assert response.status_code == 302
    campaign = Campaign.objects.get()
    assert campaign.factors["checksums"] == ["off", "on"]
    page = member.get(response.url).content.decode()
    assert "Page checksums" in page or "checksums off" in page


def test_a_choice_that_is_not_offered_is_refused(member, ready_server):
    page = member.post(
        "/campaigns/new/", checksums_draft(ready_server, checksums=["maybe"])
    )
    assert "maybe" in page.content.decode()
    assert Campaign.objects.count() == 0


def test_the_load_generator_can_be_chosen(member, ready_server):
    oldest = ready_server.installations.filter(
        pgbench_version_num__isnull=False
    ).first()
    member.post("/campaigns/new/", draft(ready_server, client=oldest.pk))
    plan = Run.objects.first().plan
    assert plan["client_bindir"] == oldest.bindir


@pytest.mark.parametrize(
    "slug", ["fixed-point-read", "fixed-point-update", "page-checksums"]
)
def test_every_scenario_that_runs_has_a_page(client, known, slug):
    assert client.get(f"/scenarios/{slug}/").status_code == 200


def test_a_campaigns_queries_do_not_grow_with_its_cells(
    client, finished_campaign, django_assert_max_num_queries
):
    with CaptureQueriesContext(connection) as few:
        client.get("/campaigns/finished/")
    factors = {"version": ["16.14", "18.4"], "clients": list(range(1, 41))}
    factories.finish_all(
        factories.campaign("more", factors=factors, on=None, repeats=3)
    )

    with django_assert_max_num_queries(len(few)):
        client.get("/campaigns/more/")


def test_the_form_varies_configurations_and_settings_without_javascript(
    member, ready_server
):
    for slug in ("small", "large"):
        factories.configuration(slug, settings={"work_mem": "8MB"})
    page = member.get("/campaigns/new/").content.decode()
    assert "Also with these configurations" in page
    installations = list(ready_server.installations.values_list("pk", flat=True))
    given = {
        "title": "Many factors",
        "scenario": "fixed-point-read",
        "server": "db1",
        "installations": installations,
        "clients": "1, 2",
        "scale": "1",
        "duration": "1",
        "repeats": "3",
        "more_configurations": ["small", "large"],
        "settings": "shared_buffers: 32MB, 64MB",
    }
    estimate = member.get("/campaigns/new/estimate/", given).content.decode()
    assert "shared_buffers 64MB" in estimate
    assert member.post("/campaigns/new/", given).status_code == 302
    made = Campaign.objects.get(title="Many factors")
    assert made.factors["configuration"] == ["fixed-point-small", "large", "small"]
    assert made.factors["shared_buffers"] == ["32MB", "64MB"]
    assert made.runs.count() == 2 * 3 * 2 * 2 * 3


def test_a_line_that_names_no_setting_is_told_at_its_field(member, ready_server):
    given = {
        "scenario": "fixed-point-read",
        "server": "db1",
        "settings": "shared_buffers",
    }
    page = member.post("/campaigns/new/", given).content.decode()
    assert "is not a setting with its values" in page


def test_the_quick_form_of_every_scenario_can_be_opened_and_queued(member):
    """In the browser's form, whatever its factors and clusters are."""
    scenarios.sync()
    server = factories.server(free_bytes=10**12)
    given = {"has_psql": True, "pgbench_version_num": 180004}
    factories.installation(
        server, "18.4", extensions=["plpgsql", "postgres_fdw"], **given
    )
    wrong = []
    for scenario in some(registry.every(), 2):
        page = member.get(
            f"/campaigns/new/?scenario={scenario.slug}&server={server.slug}"
        )
        names = [each.name for each in (*scenario.factors, *scenario.parameters)]
        missing = [
            name for name in names if f'name="{name}"' not in page.content.decode()
        ]
        if page.status_code != 200 or missing:
            wrong.append((scenario.slug, page.status_code, missing))
        quick = scenario.quick
        if not quick.levels:
            continue
        levels = {
            each.name: list(quick.levels.get(each.name, each.default))
            if isinstance(each, ChoiceFactor)
            else ", ".join(map(str, quick.levels.get(each.name, each.default)))
            for each in scenario.factors
        }
        values = {
            each.name: each.default for each in scenario.parameters
        } | quick.parameters
        sent = draft(
            server, scenario=scenario.slug, repeats="1", **{**values, **levels}
        )
        answer = member.post("/campaigns/new/", sent)
        if answer.status_code != 302:
            told = re.findall(
                r'class="[^"]*error[^"]*"[^>]*>(.*?)<', answer.content.decode()
            )
            wrong.append((scenario.slug, answer.status_code, told))
    assert wrong == []


def test_levels_that_are_names_are_drawn_as_bars(client, ready_server):
    scenarios.sync()
    factors = {"version": ["16.14", "18.4"], "load": ["read", "update"]}
    campaign = factories.campaign("named", on=ready_server, factors=factors, repeats=2)
    factories.finish_all(campaign, gain={"18.4": 1.1})
    page = client.get("/campaigns/named/").content.decode()
    (script,) = re.findall(r'<script type="application/json">(.*?)</script>', page)
    figure = json.loads(script)
    assert {trace["type"] for trace in figure["data"]} == {"bar"}
    assert all(len(trace["x"]) == 2 for trace in figure["data"])


@pytest.mark.parametrize(
    ("given", "ticked"),
    [
        ("off, on", ["off", "on"]),
        # Of the storage bandwidth, as its reproduction gives them.
        ("sequential read, random write", ["sequential read", "random write"]),
        (["on"], ["on"]),
    ],
)
def test_levels_are_ticked_whose_names_have_blanks(given, ticked):
    assert ChoicesField().prepare_value(given) == ticked


# A campaign of more cells than one page shows.


@pytest.fixture(scope="module")
def wide(django_db_setup, django_db_blocker):
    """Two versions x 10 clients x 30 fill factors x 1 run, all finished.

    It is there until the end of the module, so its tests are the last ones, and only read it.
    """
    factors = {
        "version": ["16.14", "18.4"],
        "clients": list(range(1, 11)),
        "fillfactor": list(range(70, 100)),
    }
    stored = transaction.atomic()
    with django_db_blocker.unblock():
        stored.__enter__()
        scenarios.sync()
        made = factories.campaign("wide", factors=factors, repeats=1)
        factories.finish_all(made)
    yield made
    with django_db_blocker.unblock():
        transaction.set_rollback(True)
        stored.__exit__(None, None, None)


def runs_on(page):
    return set(
        re.findall(r"/runs/(\d+)/", page.split('id="cells"')[1].split('id="order"')[0])
    )


def test_a_wide_campaign_is_paged_and_all_of_its_cells_are_reached(client, wide):
    pages = [client.get(f"/campaigns/wide/?cells={n}").content.decode() for n in (1, 2)]

    assert "cells=2#cells" in pages[0]
    assert max(map(len, pages)) < 600_000
    assert runs_on(pages[0]) | runs_on(pages[1]) == {
        str(run.pk) for run in wide.runs.all()
    }
    assert not runs_on(pages[0]) & runs_on(pages[1])


def test_the_last_page_of_a_table_has_its_last_row(client, wide):
    pages = [
        client.get(f"/campaigns/wide/?ratios={number}&order={number}").content.decode()
        for number in (1, 999)
    ]
    for name, until, wanted in (
        ("ratios", "cells", "Clients 10"),
        ("order", "take", "600: finished"),
    ):
        first, last = (
            page.split(f'id="{name}"')[1].split(f'id="{until}"')[0] for page in pages
        )
        assert wanted not in first, name
        assert wanted in last, name


def test_the_chart_of_a_wide_campaign_has_the_lines_of_the_rows_shown(client, wide):
    second = client.get("/campaigns/wide/?cells=2").content.decode()
    (figure,) = re.findall(r'<script type="application/json">(.*?)</script>', second)
    names = [trace["name"] for trace in json.loads(figure)["data"]]

    assert names[0] == "16.14 · Fill factor 85"
    assert len(names) == 30


def test_a_poll_and_a_table_keep_the_pages_of_the_others(client, wide):
    page = client.get(
        "/campaigns/wide/?cells=2&ratios=3", headers={"HX-Request": "true"}
    ).content.decode()

    assert 'hx-get="/campaigns/wide/?cells=2&amp;ratios=3"' in page
    assert "cells=1&amp;ratios=3#cells" in page
    # Verdicts are kept whatever cells are shown.
    assert '"?ratios=4#ratios' in page


def test_a_strange_page_is_no_error(client, wide):
    queries = ("cells=x&ratios=-1&order=999999&troubled=", "cells=0")
    statuses = {
        query: client.get(f"/campaigns/wide/?{query}").status_code for query in queries
    }

    assert statuses == dict.fromkeys(queries, 200)


@pytest.mark.django_db
def test_what_a_pgbench_campaign_does_not_vary_stands_in_its_conditions_only(client):
    made = factories.campaign(
        "pgbench",
        scenario=factories.scenario("pgbench"),
        factors={
            "version": ["16.14", "18.4"],
            "script": ["select-only"],
            "scale": [1],
            "clients": [1, 2],
            "query_mode": ["simple", "prepared"],
            "connection": ["kept"],
        },
        parameters={"duration": 60, "rate": 0, "max_tries": 0},
    )
    factories.finish_all(made)
    page = " ".join(client.get("/campaigns/pgbench/").content.decode().split())

    assert "PostgreSQL 16.14 · Query mode prepared<" in page
    assert ">Clients 1, PostgreSQL 16.14</td>" in page
    for title, value in (
        ("Scale factor", "1"),
        ("Script", "select-only"),
        ("Connections", "kept for the whole run"),
        ("Rate", "as fast as it goes"),
        ("Tries per transaction", "one"),
    ):
        assert f"<dt>{title}</dt> <dd> {value} </dd>" in page
    report = client.get("/campaigns/pgbench/report/?format=html").content.decode()
    assert "PostgreSQL 16.14 · Query mode prepared" in report
    # A run names all of its levels, in the words of the form.
    assert "Scale factor 1" in client.get("/").content.decode()


@pytest.mark.django_db
def test_a_campaign_that_varies_nothing_but_the_version_names_its_clients(client):
    made = factories.campaign(
        "pgbench", factors={"version": ["16.14", "18.4"], "clients": [8], "scale": [1]}
    )
    factories.finish_all(made)
    page = client.get("/campaigns/pgbench/").content.decode()
    assert ">Clients 8</td>" in page
    assert ">Clients 8, " not in page


def test_a_script_is_added_before_the_workload_has_a_name(administrator, known):
    sent = {
        "form-TOTAL_FORMS": 1,
        "form-INITIAL_FORMS": 0,
        "form-0-text": "SELECT 1;",
        "form-0-name": "one",
        "form-0-weight": 2,
        "variables": "most = 5",
        "more": 1,
    }
    page = administrator.post("/workloads/new/", sent)
    assert page.context["form"]["variables"].value() == "most = 5"
    assert not page.context["form"].errors
    texts = [each["text"].value() for each in page.context["scripts"]]
    assert texts == ["SELECT 1;", None]


def test_every_page_shows_a_metric_that_only_older_commits_have(admin_client):
    """What a project measures changes; its metrics stay to be chosen."""
    commits = [history_points.commit(number) for number in range(3)]
    history_points.store(
        history_points.repeats(commits[0], tps=[1000], latency=[5]),
        history_points.repeats(commits[1], tps=[1000]),
        history_points.repeats(commits[1], tps=[1000], levels={"clients": 16}),
        history_points.repeats(
            commits[1], tps=[1000], latency=[5], levels={"clients": 32}
        ),
        history_points.repeats(commits[2], tps=[1000], levels={"clients": 32}),
    )
    patterns, routes = list(get_resolver().url_patterns), set()
    while patterns:
        pattern = patterns.pop()
        if isinstance(pattern, URLResolver):
            patterns += pattern.url_patterns
        elif str(pattern.pattern).startswith("campaigns/<slug:slug>/"):
            routes.add(str(pattern.pattern))
    seen = set()
    for route in routes:
        address = "/" + route.replace("<slug:slug>", "nightly")
        for name in ("tps", "latency"):
            status = admin_client.get(address, {"metric": name}).status_code
            assert status in (200, 404, 405), address
            seen |= {route} if status == 200 else set()
    assert len(seen) > 5


IN_SLICES = "Measured in slices of 1 s, in turn."
IN_RUNS = "Measured in whole runs."


def estimated(member, query="scenario=fixed-point-read&clients=1&duration=12"):
    """What the estimate of a form that nobody touched says of its design."""
    page = member.get(f"/campaigns/new/?{query}").content.decode()
    select = page.partition('name="slice_seconds"')[2].partition("</select>")[0]
    assert re.search(r'<option value="auto"\s+selected>', select)
    return " ".join(page.split())


def test_slices_are_proposed_where_they_show_more(member, ready_server):
    text = estimated(member)

    assert IN_SLICES in text
    assert "nothing was recorded on this server yet" in text


def test_what_was_proposed_refuses_nothing_that_slices_cannot_do(member, ready_server):
    """Runs of a second are too short for slices: they are whole, and no fault of who asks."""
    assert IN_RUNS in estimated(
        member, "scenario=fixed-point-read&clients=1&duration=1"
    )


def test_whole_runs_are_proposed_where_clusters_do_not_fit_together(
    member, ready_server
):
    hardware = factories.hardware("small")
    hardware.memory_bytes = 2**30
    hardware.save()
    ready_server.hardware = hardware
    ready_server.save()

    assert IN_RUNS in estimated(member)


def test_whole_runs_are_proposed_where_they_scatter_less_than_seconds(
    member, ready_server
):
    campaign = factories.campaign("quiet", on=ready_server, repeats=6)
    campaign.runs.update(hardware=ready_server.hardware)
    for number, run in enumerate(campaign.runs.all()):
        factories.finish(run, tps=1000 + number % 2)
        rates = [1000.0 * (1 + 0.3 * (-1) ** second) for second in range(30)]
        run.series.create(name="tps", interval=1, values=rates)

    text = estimated(member)

    assert IN_RUNS in text
    assert "that were recorded on this server" in text


def test_what_slices_have_shown_is_known_before_whole_runs_were_repeated(
    member, ready_server
):
    """Both sides drift alike by tens of percent; from slice to slice they differ by 2 %."""
    campaign = factories.campaign("turns", on=ready_server, repeats=3)
    Campaign.objects.filter(pk=campaign.pk).update(slice_seconds=1)
    campaign.runs.update(hardware=ready_server.hardware)
    for number, run in enumerate(campaign.runs.order_by("pk")):
        factories.finish(run, tps=1000)
        rates = [
            (1000 + 100 * (number % 2))
            * (1 + 0.3 * (-1) ** second)
            * (1 + 0.01 * (-1) ** (number + second // 2))
            for second in range(30)
        ]
        run.series.create(name="slice_tps", interval=1, values=rates)

    text = estimated(member)
    server = " ".join(member.get("/servers/db1/").content.decode().split())

    assert IN_SLICES in text
    assert "how whole runs scatter here is not known yet" in text
    shown = float(re.search(r"slices in turn show ±([\d.]+)", text)[1])
    assert shown < 3
    assert "36 slices of 1 s a side, in turn" in server


def test_a_scenario_that_is_not_steady_offers_no_slices(member, ready_server):
    page = member.get("/campaigns/new/?scenario=long-run-stability").content.decode()

    assert 'name="slice_seconds"' not in page


def test_the_page_of_a_campaign_says_that_it_took_turns(client):
    factories.campaign("turns", slice_seconds=2)

    assert (
        "in slices of 2 s, in turn" in client.get("/campaigns/turns/").content.decode()
    )
