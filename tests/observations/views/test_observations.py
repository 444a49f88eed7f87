"""The pages of observations: what the form says before it queues, what an edition's page shows."""

import html
import re
from dataclasses import replace
from io import BytesIO
from zipfile import ZipFile

import pytest
from django.urls import reverse
from django.utils import timezone

from runs.analysis.contrasts import Contrast
from runs.models import Campaign, Command, Environment, Observation, Project, Server
from runs.observations.services import observations
from runs.observations.services.observations import Design, Plan
from runs.workloads.services import scenarios
from tests import factories
from tests.pictures import pictures_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    scenarios.sync()
    on = {"hardware": factories.hardware(), "environment": factories.environment()}
    made = factories.server("db1", **on)
    for version, number in (("16.14", 160014), ("17.6", 170006), ("18.4", 180004)):
        factories.installation(made, version, has_psql=True, pgbench_version_num=number)
    return made


@pytest.fixture
def edition(server):
    design = Design(
        "fixed-point-read", {"clients": [1, 2]}, {"scale": 1, "duration": 5}, 3
    )
    made = observations.create(plan=Plan("秋の定点観測", server, [design]))
    begun = observations.begin(observation=made, label="2026")
    for campaign in begun.campaigns.all():
        on = {"hardware": server.hardware, "environment": server.environment}
        factories.finish_all(campaign, gain={"18.4": 1.1})
        campaign.runs.update(**on)
    Campaign.objects.update(state="finished")
    return begun


FORM = {
    "title": "Autumn",
    "server": "db1",
    "scenarios": ["fixed-point-read"],
    "anchor": "17",
    "clients": "1, 2",
    "scale": "1",
    "duration": "5",
    "repeats": "3",
    "time_zone": "UTC",
}


def test_the_form_says_what_an_edition_takes(admin_client, server):
    page = admin_client.get(reverse("observation-new")).content.decode()
    assert "Fixed-point read" in page
    assert "An edition takes about" in page
    assert Observation.objects.count() == 0


def test_a_machine_that_cannot_measure_now_is_said_before_anything_is_queued(
    admin_client, server, edition
):
    pages = (reverse("observation-new"), f"/observations/{edition.observation.slug}/")
    said = "other programs take 90 % of its processors"
    assert all(said not in admin_client.get(page).content.decode() for page in pages)
    Server.objects.update(load_share=0.9, load_at=timezone.now())
    for page in pages:
        assert said in admin_client.get(page).content.decode(), page


def test_estimating_again_queues_nothing(admin_client, server):
    page = admin_client.post(reverse("observation-new"), FORM | {"estimate": "true"})
    assert page.status_code == 200
    assert Campaign.objects.count() == 0


def test_one_button_queues_the_line(admin_client, server):
    answer = admin_client.post(reverse("observation-new"), FORM)
    assert answer.url == reverse("observation-detail", args=["autumn"])
    assert Campaign.objects.get().runs.count() == 3 * 2 * 3


@pytest.mark.parametrize(
    ("asked", "duration", "measured"),
    [
        ("", "20", None),
        ("2", "20", 2),
        # On a server of which nothing is known slices show more; three of them are too few.
        ("auto", "20", 1),
        ("auto", "3", None),
    ],
)
def test_cells_take_turns_where_that_shows_more(
    admin_client, server, asked, duration, measured
):
    fields = FORM | {"slice_seconds": asked, "duration": duration}
    preview = admin_client.post(
        reverse("observation-new"), fields | {"estimate": "true"}
    )
    assert ("measured in slices of" in preview.content.decode()) == bool(measured)

    admin_client.post(reverse("observation-new"), fields)

    assert Campaign.objects.get().slice_seconds == measured


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"hours": "0.02", "repeats": ""}, "which is more than there is"),
        ({"repeats": ""}, "Give the rounds, or the hours"),
        ({"night_from": "22:00"}, "Give both ends of the night"),
        ({"versions": ["18"], "anchor": "18"}, "Two versions at least"),
        ({"time_zone": "Mars"}, "no such time zone"),
        ({"clients": "many"}, "many"),
    ],
)
def test_what_is_wrong_is_said_and_nothing_queued(admin_client, server, changed, said):
    page = admin_client.post(
        reverse("observation-new"), FORM | changed
    ).content.decode()
    assert said in page
    assert Observation.objects.count() == 0


def test_the_first_page_goes_on_to_all_versions_by_one_button(
    admin_client, client, server
):
    design = Design(
        "fixed-point-read", {"clients": [1]}, {"scale": 1, "duration": 5}, 3
    )
    made = observations.create(
        plan=Plan("First", server, [design], versions=["16", "18"])
    )
    observations.begin(observation=made)
    asked = admin_client.get(reverse("home"))
    assert "Go on to all 3 versions" in asked.content.decode()
    assert "Go on to" not in client.get(reverse("home")).content.decode()
    fields = {"proposed": "true", "duration": asked.context["run_seconds"]}
    assert (
        '<input type="hidden" name="proposed" value="true">' in asked.content.decode()
    )
    admin_client.post(reverse("observation-new"), fields)
    whole = Observation.objects.first()
    assert whole.versions == []
    assert [
        len(each.factors["version"]) for each in whole.editions.get().campaigns.all()
    ] == [3, 3]
    assert "Go on to" not in admin_client.get(reverse("home")).content.decode()


def test_who_may_not_queue_is_sent_to_log_in(client, server):
    assert client.post(reverse("observation-new"), FORM).status_code in (302, 403)
    assert Observation.objects.count() == 0


def test_the_page_says_each_step_in_a_sentence(client, edition):
    page = client.get(reverse("observation-detail", args=[edition.observation.slug]))
    text = page.content.decode()
    assert "PostgreSQL 18.4 is" in text
    assert "<svg" in text


def test_the_report_has_the_sections_of_the_yearly_reports(client, edition):
    address = reverse("observation-report", args=[edition.observation.slug])
    answer = client.get(address, {"edition": "2026", "lang": "ja", "format": "md"})
    archive = ZipFile(BytesIO(answer.content))
    (name,) = (each for each in archive.namelist() if each.endswith(".md"))
    text = archive.read(name).decode()
    heads = [line for line in text.splitlines() if line.startswith("## ")]
    # Without words of people the discussion has the open questions: proven steps without a cause.
    names = ["目的", "検証環境", "検証手順", "定点観測(参照系)", "要確認の試行"]
    names += ["考察", "まとめ", "データ"]
    assert heads == [
        rf"## {number}\. {name}" for number, name in enumerate(names, start=1)
    ]
    assert "未解決の問い" in text
    assert "表 1" in text
    assert "図 1" in text


@pytest.mark.browser
def test_the_report_is_printed_whole_on_paper(client, edition, chromium):
    address = reverse("observation-report", args=[edition.observation.slug])
    text = client.get(
        address, {"edition": "2026", "lang": "ja", "format": "html"}
    ).content.decode()
    with chromium.new_page(viewport={"width": 794, "height": 1123}) as page:
        page.set_content(text)
        page.emulate_media(media="print")
        assert page.evaluate("document.documentElement.scrollWidth") <= 794
        breaks = "each => each.map((one) => getComputedStyle(one).breakInside)"
        assert set(page.locator("figure").evaluate_all(breaks)) == {"avoid"}
        printed = page.pdf(format="A4")
    assert printed.startswith(b"%PDF-")
    assert 2 <= len(re.findall(rb"/Type /Page\b", printed)) <= 12


def test_the_report_says_of_each_condition_which_runs_are_in_doubt_and_why(
    client, edition
):
    campaign = edition.campaigns.get()
    (cell, *_others) = campaign.cells.filter(version="17.6")
    doubted = list(
        campaign.runs.filter(cell=cell).order_by("pk").values_list("pk", flat=True)
    )
    finding = {"code": "not_optimised", "weight": "doubt", "figures": {"flag": "-O0"}}
    campaign.runs.filter(pk__in=doubted).update(
        validity="doubtful", certificate={"findings": [finding]}
    )
    address = reverse("observation-report", args=[edition.observation.slug])
    answer = client.get(address, {"edition": "2026", "lang": "en", "format": "html"})
    text = " ".join(re.sub(r"<[^>]*>", " ", answer.content.decode()).split())
    assert (
        f"doubtful {', '.join(map(str, doubted))} PostgreSQL was built with -O0" in text
    )
    assert "&quot;version&quot;" not in text


def test_peoples_words_stay_when_figures_change(admin_client, client, edition):
    slug = edition.observation.slug
    words = {
        "edition": "2026",
        "discussion": "<b>18</b> は速い。",
        "conclusion": "",
        "purpose": "",
    }
    admin_client.post(reverse("observation-write", args=[slug]), words)
    report = client.get(reverse("observation-report", args=[slug]), {"edition": "2026"})
    text = report.content.decode()
    assert "&lt;b&gt;18&lt;/b&gt; は速い。" in text
    written = {
        "edition": "2026",
        "history": "2026-11-28: first",
        "licence": "CC BY 4.0",
    }
    admin_client.post(reverse("observation-write", args=[slug]), written)
    report = client.get(reverse("observation-report", args=[slug]), {"edition": "2026"})
    text = report.content.decode()
    for words in ("2026-11-28: first", "CC BY 4.0", "&lt;b&gt;18&lt;/b&gt; は速い。"):
        assert words in text


def test_its_data_file_is_offered(client, edition):
    address = reverse("observation-publication", args=[edition.observation.slug])
    answer = client.get(address, {"edition": "2026"})
    assert answer.headers["Content-Disposition"].endswith('.yaml"')
    assert "fixed-point-read" in answer.content.decode()


def test_the_next_edition_is_one_button(admin_client, edition):
    address = reverse("observation-begin", args=[edition.observation.slug])
    admin_client.post(address, {"label": "2027"})
    assert edition.observation.editions.count() == 2
    page = admin_client.post(address, {"label": "2027"}, follow=True).content.decode()
    assert "There is an edition 2027 already" in page


def test_the_anchor_has_a_line_of_its_own_from_the_second_edition_on(client, edition):
    address = reverse("observation-detail", args=[edition.observation.slug])
    assert client.get(address).context["anchors"] == []
    for label, gain in (("2027", 0.8), ("2028", 0.9)):
        begun = observations.begin(observation=edition.observation, label=label)
        factories.finish_all(begun.campaigns.get(), gain={"17.6": gain})
    page = client.get(address)
    ((_scenario, figure),) = page.context["anchors"]
    labels = figure["layout"]["yaxis"]["ticktext"]
    assert labels == ["2027 : 2026", "2028 : 2026"]
    pictures = pictures_of(client, address)
    assert set(pictures) == {
        f"{address}chart.svg?edition=2028&chart=anchor-1",
        f"{address}chart.svg?edition=2028&chart=1",
    }
    drawn_anchor, drawn_line = pictures.values()
    assert "2027 : 2026" in drawn_anchor
    assert "秋の定点観測 2028: Fixed-point read" in drawn_line
    for wrong in ("2", "0", "anchor-2", "anchor-", "x", "٣"):
        assert client.get(f"{address}chart.svg?chart={wrong}").status_code == 404
    assert sorted(x for trace in figure["data"] for x in trace["x"]) == [
        pytest.approx(0.8, rel=0.01),
        pytest.approx(0.9, rel=0.01),
    ]
    assert (
        "The anchor 17 from edition to edition: Fixed-point read"
        in page.content.decode()
    )
    report = reverse("observation-report", args=[edition.observation.slug])
    text = client.get(report, {"edition": "2028"}).content.decode()
    assert "The anchor 17 from edition to edition" in text


def test_the_form_says_which_differences_the_rounds_can_show(admin_client, edition):
    in_whole_runs = {"slice_seconds": ""}
    page = admin_client.get(reverse("observation-new"), in_whole_runs).content.decode()
    assert re.search(r"differences of [0-9.]+ % and more", page.replace("\xa0", " "))


def test_a_private_observation_is_not_there(client, server):
    private = Project.objects.create(slug="secret", name="Secret", is_public=False)
    design = Design(
        "fixed-point-read", {"clients": [1]}, {"scale": 1, "duration": 5}, 3
    )
    made = observations.create(plan=Plan("Secret", server, [design]), project=private)
    observations.begin(observation=made)
    for name in ("detail", "report", "publication"):
        address = reverse(f"observation-{name}", args=[made.slug])
        assert client.get(address, {"edition": "2026"}).status_code == 404
    assert "Secret" not in client.get(reverse("observation-list")).content.decode()


def test_the_same_on_two_machines_is_one_question(admin_client, edition):
    """Each version of db2 takes 0.8 of the time of db1's, and 18 gains less there."""
    slower = factories.server("db2")
    for version, number in (("16.14", 160014), ("17.6", 170006), ("18.4", 180004)):
        factories.installation(
            slower, version, has_psql=True, pgbench_version_num=number
        )
    page = admin_client.get(
        reverse("observation-detail", args=[edition.observation.slug])
    )
    ((server, query),) = page.context["elsewhere"]
    form = admin_client.get(f"{reverse('observation-new')}?{query}").context["form"]
    assert (server.name, form["clients"].value(), form["anchor"].value()) == (
        "db2",
        "1, 2",
        "17",
    )

    design = Design(
        "fixed-point-read", {"clients": [1, 2]}, {"scale": 1, "duration": 5}, 3
    )
    made = observations.create(plan=Plan("Elsewhere", slower, [design]))
    for campaign in observations.begin(observation=made, label="2026").campaigns.all():
        factories.finish_all(campaign, gain={"16.14": 0.8, "17.6": 0.8, "18.4": 0.8})
    address = reverse("observation-detail", args=["elsewhere"])
    against = {"against": f"{edition.observation.slug}~2026"}
    (again,) = admin_client.get(address, against).context["again"]
    assert "With the anchor 17, db2 is 20 % slower than db1." in again.sentence
    new = next(each for each in again.others if each.version == "18")
    assert new.direct.ratio == pytest.approx(0.8 / 1.1, rel=0.01)
    assert new.change.ratio == pytest.approx(1 / 1.1, rel=0.01)
    assert new.word.startswith("slower \N{WARNING SIGN}")  # Nobody has judged the runs.
    new = replace(new, judged=())
    assert new.word == "slower"
    noisy = replace(new, change=Contrast(0.9, 0.7, 1.2))
    assert noisy.word == "undecided"
    assert replace(new, change=Contrast(0.9)).word == "too few runs"
    report = admin_client.get(
        reverse("observation-report", args=["elsewhere"]),
        {"edition": "2026", **against},
    )
    assert "db2 : db1" in report.content.decode()
    assert admin_client.get(address, {"against": "x~2026"}).status_code == 404

    other = factories.environment("Ubuntu 24.04")
    Campaign.objects.filter(editions__observation=made).get().runs.update(
        environment=other
    )
    lines = {
        by: re.findall(
            "<h3>(.*?)</h3>",
            admin_client.get("/versions/", {"by": by}).content.decode(),
        )
        for by in ("machine", "os", "arrangement", "nothing")
    }
    assert [name for name in lines["machine"] if name.startswith("db")] == [
        "db1",
        "db2",
    ]
    assert lines["os"] == ["Debian 13", "Ubuntu 24.04"]
    assert lines["arrangement"] == ["single server"]
    assert lines["nothing"] == []


def test_the_report_has_the_settings_of_the_system_and_the_calls_of_pgbench(
    client, edition
):
    run = edition.campaigns.get().runs.filter(state="finished").order_by("pk").first()
    Environment.objects.filter(pk=run.environment_id).update(
        facts={
            "kernel_settings": {"vm.swappiness": "10"},
            "limits": {"open_files": 1024},
        }
    )
    argv = [
        "/opt/18/bin/pgbench",
        "-c",
        "2",
        "-T",
        "60",
        "-f",
        "a script.sql",
        "benchlab",
    ]
    Command.objects.create(
        run=run, attempt=1, ordinal=1, step="pgbench", host="db1", argv=argv
    )
    address = reverse("observation-report", args=[edition.observation.slug])
    text = client.get(address, {"edition": "2026", "lang": "en"}).content.decode()
    assert "vm.swappiness" in text
    assert "ulimit open_files" in text
    assert "pgbench -c 2 -T 60 -f 'a script.sql' benchlab" in html.unescape(text)
    assert "pgbench is the load generator that comes with PostgreSQL" in text
