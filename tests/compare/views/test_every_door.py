"""Campaigns, histories and lines of versions: every door prints one answer, word for word."""

import io
import json
import random
import re
import zipfile
from html import unescape

import pytest
from django.core import mail

from runs.access.services import projects
from runs.archive.selectors.version_answers import RANK
from runs.histories.services import mails, webhooks
from runs.models import Campaign, Change, WebhookDelivery
from runs.shared import formats
from tests.compared_tables import random_table
from tests.random_histories import random_history, random_line

pytestmark = pytest.mark.django_db
# Ten each: one seed here, and as many as make 300 tables and histories with --all.
SEEDS = [7, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(200, 209))]

STEP = re.compile(
    r'strip__step--(\w+)(?: tone--(\w+))?"'
    r".*?<span>(.*?)</span>\s*<strong>(.*?)</strong>",
    re.DOTALL,
)


@pytest.fixture(autouse=True)
def unlimited(settings):
    settings.RATE_ANONYMOUS = 0


def plain(html):
    """The text of a piece of HTML in one line."""
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def page_of(client, address):
    answer = client.get(address)
    assert answer.status_code == 200, address
    return answer.content.decode()


def title_of(html):
    return plain(re.search(r"<h1[^>]*>(.*?)</h1>", html, re.DOTALL).group(1))


def bare(text):
    """Without what tells one blank from another."""
    return " ".join(text.split())


def markdown_in(packed):
    """The text of a report with pictures, in one line and without what keeps it plain."""
    with zipfile.ZipFile(io.BytesIO(packed)) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".md"))
        text = files.read(name).decode()
    return bare(re.sub(r"\\(.)", r"\1", text))


def row_about(html, slug):
    """The row of a list that leads to a campaign."""
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", html, re.DOTALL)
    return next((row for row in rows if f"/campaigns/{slug}/" in row), "")


# Campaigns: their page, the list, the API, the report, the search.


@pytest.mark.parametrize("seed", SEEDS)
def test_every_door_has_the_answer_of_a_campaign(client, seed):
    generator = random.Random(seed)
    for number in range(10):
        table = random_table(generator, number)
        api = client.get(f"/api/v1/campaigns/{table.campaign}/").json()["answer"]
        sentence = bare(api["sentence"])
        page = page_of(client, f"/campaigns/{table.campaign}/")
        listed = row_about(
            page_of(client, f"/campaigns/?q={table.campaign}"), table.campaign
        )
        found = plain(page_of(client, f"/search/?q={table.campaign}"))
        if sentence == "No answer yet":
            assert api["exit_code"] == 2, table
            assert sentence not in plain(listed) + found, table
            continue
        assert sentence in plain(page), table
        assert sentence in plain(listed), table
        assert sentence in found, table
        if table.kind == "executed":
            report = page_of(client, f"/campaigns/{table.campaign}/report/?format=html")
            packed = client.get(
                f"/campaigns/{table.campaign}/report/?format=md"
            ).content
            markdown = markdown_in(packed)
            assert sentence in plain(report), table
            assert sentence in markdown, table
            if "too few runs" not in sentence:  # what decides nothing is no news
                first = plain(page_of(client, "/"))
                assert sentence in first, table
            size = bare(api["short"].partition(", ")[0])
            assert "%" not in size or size in sentence, table


# Histories: their page and its charts, the API, lists, first page, search, mail, webhook, badge.


@pytest.mark.parametrize("seed", SEEDS)
def test_every_door_has_the_answer_of_a_history(
    client, seed, settings, django_user_model
):
    settings.SENDS_MAIL = True
    project = projects.default()
    project.members.add(
        django_user_model.objects.create_user("ichiro", "ichiro@example.org")
    )
    webhooks.create(project=project, url="https://ci.example/hook")
    generator = random.Random(seed)
    changed = 0
    for number in range(10):
        asked = random_history(generator, number)
        changed += assert_doors_agree(client, asked)
        Campaign.objects.filter(slug=asked.campaign).delete()
        mail.outbox.clear()
        WebhookDelivery.objects.all().delete()
    assert 0 < changed < 10, "the histories are too much alike"


def assert_doors_agree(client, asked):
    """Whether the history has a change that stands."""
    campaign = Campaign.objects.get(slug=asked.campaign)
    api = client.get(f"/api/v1/history/?campaign={asked.campaign}").json()
    answer = api["answer"]
    sentence = bare(answer["sentence"])
    page = page_of(client, f"/campaigns/{asked.campaign}/history/")

    # The title is the sentence; each series has its size, the worst first.
    assert title_of(page) == sentence, asked
    newest = {
        json.dumps(series["levels"]): next(
            (
                change
                for change in sorted(series["changes"], key=lambda each: -each["id"])
                if change["decision"] not in Change.GONE
            ),
            None,
        )
        for series in api["series"]
    }
    shown = re.findall(
        r'<figure class="histories__one(.*?)".*?</figcaption>', page, re.DOTALL
    )
    names = re.findall(
        r'<figcaption class="histories__name">.*?<(?:a|span)[^>]*>(.*?)</.*?<strong>(.*?)</strong>',
        page,
        re.DOTALL,
    )
    assert len(shown) == len(names) == len(api["series"]), asked
    order = ["slower", "faster", "different", "same"]
    verdicts = [
        change["verdict"] if change else "same" for change in map(newest.get, newest)
    ]
    tones = [
        tone.rpartition("tone--")[2] if "tone--" in tone else "same" for tone in shown
    ]
    assert tones == sorted(
        map(formats.tone, verdicts), key=[*map(formats.tone, order)].index
    )
    sizes = sorted(
        formats.change(change["ratio"]) for change in newest.values() if change
    )
    assert sorted(plain(size) for _name, size in names if "%" in size) == sizes, asked
    assert answer["exit_code"] == int("slower" in verdicts), asked

    # Every point is drawn, with the figure that the API has.
    medians = sorted(
        point["median"] for one in api["series"] for point in one["points"]
    )
    table = page.partition("data-histories-figures")[2].partition("</table>")[0]
    # Of a lone series the table has the ends and the number of runs, too.
    figures = re.findall(r'<td><a href="/runs/[^>]*>([^<]*)</a></td>', table)
    assert sorted(map(float, figures)) == pytest.approx(medians, rel=1e-5), asked

    # What stands begins at commits, and each list names them with the same words.
    campaign_changes = Change.objects.filter(campaign=campaign)
    standing = campaign_changes.exclude(decision__in=Change.GONE)
    listed = plain(row_about(page_of(client, "/campaigns/"), asked.campaign))
    campaign_answer = client.get(f"/api/v1/campaigns/{asked.campaign}/").json()[
        "answer"
    ]
    assert campaign_answer == answer, asked
    assert sentence in listed, asked
    assert sentence in plain(page_of(client, f"/campaigns/{asked.campaign}/")), asked
    assert sentence in plain(page_of(client, f"/search/?q={asked.campaign}")), asked
    inbox = plain(page_of(client, "/changes/?which=all"))
    first_page = plain(page_of(client, "/"))
    if not standing.exists():
        assert sentence == "No change of level", asked
        return 0
    least, most = answer["low"], answer["high"]
    ratios = [change.ratio for change in standing]
    assert min(ratios) <= least <= most <= max(ratios), asked
    assert bare(answer["short"]) in sentence, asked
    if set(campaign_changes.values_list("decision", flat=True)) == {"open"}:
        assert sentence in inbox, asked
        assert sentence in first_page, asked

    # What was sent says the same of the same changes.
    mails.send()
    body = bare(mail.outbox[-1].body) if mail.outbox else ""
    told = [json.loads(each.payload) for each in WebhookDelivery.objects.all()]
    by_id = {change.pk: change for change in campaign_changes}
    for report in told:
        for change in report.get("changes", ()):
            stored = by_id[change["id"]]
            assert change["verdict"] == stored.verdict, asked
    line = sentence.partition(": ")[2]
    lines = [bare(text) for report in told for text in report.get("lines", ())]
    if set(campaign_changes.values_list("decision", flat=True)) == {"open"}:
        assert line in lines, (asked, lines)
        assert sentence in body, (asked, body)

    # The badge asks the gate's question, and has the gate's words and colour.
    gate = client.get(
        f"/api/v1/compare/?campaign={asked.campaign}&base=history:main"
    ).json()
    badge = page_of(client, f"/campaigns/{asked.campaign}/badge.svg")
    assert bare(gate["answer"]["short"]) in plain(badge), asked
    red = "#b3261e"
    is_open = "open" in plain(badge)
    assert (red in badge) == (gate["exit_code"] == 1 or is_open), asked
    return 1


# Lines of versions: their page, its strip and chart, the API, the first page.


@pytest.mark.parametrize("seed", SEEDS)
def test_every_door_has_the_answer_of_a_line_of_versions(client, seed):
    generator = random.Random(seed)
    states = set()
    for number in range(10):
        base, head = random_line(generator, number)
        for query in ("", f"?from={base}&to={head}"):
            api = client.get(f"/api/v1/versions/{query}").json()
            page = page_of(client, f"/versions/{query}")
            assert title_of(page) == bare(api["answer"]["sentence"]), (
                seed,
                number,
                query,
            )
            text = plain(page)
            assert all(bare(line) in text for line in api["details"]), (
                seed,
                number,
                query,
            )
            strip = page.partition('id="answer"')[2].partition("</ol>")[0]
            steps = STEP.findall(strip)
            assert len(steps) == len(api["steps"]), (seed, number, query)
            for (state, tone, name, short), step in zip(
                steps, api["steps"], strict=True
            ):
                states.add(step["state"])
                assert state == step["state"], (seed, number, step)
                assert plain(name) == f"{step['base']} → {step['head']}", (
                    seed,
                    number,
                    step,
                )
                if step["state"] in ("decided", "printed"):
                    assert plain(short) == formats.change(step["ratio"]), (
                        seed,
                        number,
                        step,
                    )
                if step["state"] == "decided":
                    assert tone == formats.tone(step["verdict"]), (seed, number, step)
                    if Campaign.objects.filter(slug__startswith="line-").count() == 1:
                        # Of two campaigns on one machine the table has the ratio of each.
                        table = page.partition('id="steps"')[2]
                        assert formats.ratio(step["ratio"]) in table, (
                            seed,
                            number,
                            step,
                        )
        first = client.get("/api/v1/versions/").json()["answer"]["sentence"]
        assert title_of(page_of(client, "/")) == bare(first), (seed, number)
        Campaign.objects.filter(slug__startswith="line-").delete()
    assert {"decided", "unknown"} <= states <= set(RANK)
