"""Runs: the page, its files, and cancelling."""

import json
import re
from datetime import UTC, datetime, timedelta

import pytest

from runs.access.services import projects
from runs.execution.errors import TargetProblem
from runs.execution.reporter import ArtifactData
from runs.models import Command, Metric, Run, RunEvent, Seal
from runs.queue.views import run_page
from runs.seals.services import seals
from tests import factories
from tests.pictures import pictures_of
from tests.unit.benches import bench_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def finished_run(ready_server):
    """A run with everything that a run leaves."""
    campaign = factories.campaign("one", on=ready_server, repeats=1)
    return factories.story(factories.finish(campaign.runs.first(), tps=1234.5))


def test_it_shows_all_that_the_run_left(client, finished_run):
    page = client.get(f"/runs/{finished_run.pk}/").content.decode()
    for words in (
        "1,234",
        "pgbench -n",
        "work_mem",
        "Over the seconds of the run",
        "claimed",
    ):
        assert words in page
    assert "hx-trigger" not in page


def test_a_figure_without_a_better_direction_has_no_note(client, finished_run):
    Metric.objects.filter(name="tps").update(direction="neutral")
    assert "neither" not in client.get(f"/runs/{finished_run.pk}/").content.decode()


def test_notes_of_engines_are_read_in_japanese(client, finished_run):
    bench = bench_of()
    text = "Throughput ended at %(percent)s %% of what it was at the beginning."
    bench.note("throughput_drifts", text, level="info", percent=7)
    bench.note("prewarm_extension", "Warmed up by pg_prewarm.")
    late = TargetProblem("The monitor did not end within %(seconds)s s.", seconds=20)
    bench.note(
        "lag_missing", "The lag of the standbys is not known: %(problem)s", problem=late
    )
    # As runs of before have it.
    bench.note("autovacuum_came", "Autovacuum was off, and 3 came all the same.")
    quality = [note.stored for note in bench.findings.notes]
    Run.objects.filter(pk=finished_run.pk).update(quality=quality)
    japanese = [
        "スループットは、最後には最初の 7 % になりました。",
        "pg_prewarm でウォームアップしました。",
        "スタンバイの遅延は分かりません: モニタが 20 秒以内に終わりませんでした。",
        "Autovacuum was off, and 3 came all the same.",
    ]
    english = [note["message"] for note in quality]
    assert english[0] == "Throughput ended at 7 % of what it was at the beginning."
    for language, expected in (("en", english), ("ja", japanese)):
        asked = {"headers": {"Accept-Language": language}}
        page = client.get(f"/runs/{finished_run.pk}/", **asked).content.decode()
        assert [text for text in expected if text not in page] == []
        notes = client.get(f"/api/v1/runs/{finished_run.pk}/", **asked).json()[
            "quality"
        ]
        assert [note["message"] for note in notes] == expected
        assert {*notes[0]} == {"code", "message", "level"}


@pytest.mark.parametrize(
    ("changed", "quality", "shown"),
    [
        ({}, [], "ended with the load"),
        ({"exit_status": 143}, [], "ended with the load"),
        ({"exit_status": 127}, [], "exit 127"),
        ({"stderr": "Cannot open monitor.sar: Permission denied"}, [], "exit 1"),
        (
            {},
            ["There is no record of what 192.0.2.1 did under load. sadf: x"],
            "exit 1",
        ),
        (
            {},
            ["There is no record of what 192.0.2.9 did under load."],
            "ended with the load",
        ),
        ({"step": "measure"}, [], "exit 1"),
        ({"step": "monitor-db-print"}, [], "exit 1"),
    ],
)
def test_a_monitor_that_was_ended_with_the_load_did_not_fail(
    client, finished_run, changed, quality, shown
):
    given = {"step": "monitor", "exit_status": 1} | changed
    Command.objects.update(**given)
    notes = [
        {"code": "monitor_missing", "message": text, "level": "info"}
        for text in quality
    ]
    Run.objects.filter(pk=finished_run.pk).update(quality=notes)
    page = client.get(f"/runs/{finished_run.pk}/").content.decode()
    part = page[
        page.index('id="commands"') : page.index(
            "192.0.2.1", page.index('id="commands"')
        )
    ]
    assert re.search(r"ended with the load|exit \d+", part)[0] == shown


def test_output_is_shown_as_text(client, finished_run):
    Command.objects.update(stdout="<script>alert(1)</script>", stderr="x" * 20_000)
    page = client.get(f"/runs/{finished_run.pk}/").content.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "12000 characters left out" in page


def test_a_failed_run_tells_code_message_and_remedy(client, finished_run):
    Run.objects.update(
        state="failed", code="c0de", message="It broke.", remedy="Mend it."
    )
    page = client.get(f"/runs/{finished_run.pk}/").content.decode()
    for words in ("c0de", "It broke.", "Mend it."):
        assert words in page


def test_a_run_in_progress_is_polled(client, finished_run):
    Run.objects.filter(pk=finished_run.pk).update(state="measuring")
    response = client.get(f"/runs/{finished_run.pk}/", headers={"HX-Request": "true"})
    page = response.content.decode()
    assert "<html" not in page
    assert 'hx-trigger="every 2s"' in page


def test_an_unknown_run_is_not_found(client):
    assert client.get("/runs/1/").status_code == 404


def test_its_queries_are_constant(client, finished_run, django_assert_num_queries):
    for ordinal in range(2, 9):
        Command.objects.create(
            run=finished_run,
            attempt=1,
            ordinal=ordinal,
            step=f"s{ordinal}",
            host="h",
            argv=["ls"],
        )
        RunEvent.objects.create(run=finished_run, code="note", message="On the way.")
    with django_assert_num_queries(7):
        client.get(f"/runs/{finished_run.pk}/")


def test_settings_that_were_chosen_come_first():
    settings = run_page.settings_of(
        {
            "a": {"setting": "1", "unit": None, "source": "default"},
            "z": {"setting": "2", "unit": "kB", "source": "configuration file"},
        }
    )
    assert [setting["name"] for setting in settings] == ["z", "a"]


def test_phases_tell_how_long_each_took(finished_run):
    start = datetime(2026, 1, 1, tzinfo=UTC)
    finished_run.queued_at, finished_run.state = start, "measuring"
    events = [
        RunEvent(to_state=state, at=start + timedelta(seconds=second), attempt=1)
        for state, second in (("claimed", 5), ("preparing", 6), ("measuring", 20))
    ]
    found = run_page.phases(finished_run, events, now=start + timedelta(seconds=30))
    took = [phase["took"].total_seconds() if phase["took"] else None for phase in found]
    assert took == [5, 1, 14, 10, None, None]
    assert [phase["when"] for phase in found] == [
        "past",
        "past",
        "past",
        "now",
        "ahead",
        "ahead",
    ]


def test_a_failed_run_shows_no_phase_beyond(finished_run):
    finished_run.state = "failed"
    at = finished_run.queued_at
    events = [
        RunEvent(to_state=state, at=at, attempt=1) for state in ("claimed", "failed")
    ]
    found = run_page.phases(finished_run, events, now=at)
    assert [phase["state"] for phase in found] == ["queued", "claimed", "failed"]


def test_an_artifact_is_downloaded_and_never_a_page(client, finished_run):
    factories.artifact(
        run=finished_run, data=ArtifactData("out.html", b"<b>hi</b>", "text/html")
    )
    response = client.get(f"/runs/{finished_run.pk}/artifacts/out.html/")
    assert b"".join(response.streaming_content) == b"<b>hi</b>"
    assert response["Content-Disposition"] == 'attachment; filename="out.html"'
    assert response["X-Content-Type-Options"] == "nosniff"


def test_an_unknown_artifact_is_not_found(client, finished_run):
    assert client.get(f"/runs/{finished_run.pk}/artifacts/none/").status_code == 404


def test_only_who_has_logged_in_may_cancel(client, ready_server):
    run = factories.campaign("live", on=ready_server).runs.first()
    assert client.post(f"/runs/{run.pk}/cancel/").status_code == 302
    run.refresh_from_db()
    assert run.state == "queued"


def test_a_member_cancels(member, ready_server):
    run = factories.campaign("live", on=ready_server).runs.first()
    response = member.post(f"/runs/{run.pk}/cancel/", follow=True)
    run.refresh_from_db()
    assert run.state == "cancelled"
    assert "The run is being cancelled." in response.content.decode()


def test_cancelling_an_ended_run_is_refused_in_words(member, finished_run):
    response = member.post(f"/runs/{finished_run.pk}/cancel/", follow=True)
    assert "This run has ended already." in response.content.decode()


def test_the_machines_have_a_chart_of_their_own(client, finished_run):
    for name, unit in (
        ("cpu_idle", "%"),
        ("load1-cpu_idle", "%"),
        ("disk_util_vda", "%"),
    ):
        finished_run.series.create(
            name=name, unit=unit, start=0.3, interval=1, values=[10, 20]
        )
    shown = run_page.live(finished_run)
    assert [trace["name"] for trace in shown["machines_figure"]["data"]] == [
        "CPU idle",
        "load1 CPU idle",
        "Disk busy vda",
    ]
    assert not any("CPU" in facts["title"] for facts in shown["series"])
    assert (
        "The machines during the run"
        in client.get(f"/runs/{finished_run.pk}/").content.decode()
    )


def test_each_chart_of_a_run_is_a_picture_for_other_pages(client, finished_run):
    finished_run.series.create(
        name="cpu_idle", unit="%", start=0, interval=1, values=[10, 20]
    )
    waits = {
        "columns": ["type", "event", "asleep", "runnable"],
        "rows": [["LWLock", "WALWrite", "75", "5"]],
    }
    data = ArtifactData("evidence-waits.json", json.dumps(waits).encode())
    factories.artifact(run=finished_run, data=data)
    path = f"/runs/{finished_run.pk}/"

    pictures = pictures_of(client, path)
    (part,) = pictures_of(client, f"{path}series/?from=0&to=1").items()

    assert set(pictures) == {
        f"{path}chart.svg",
        f"{path}chart.svg?chart=machines",
        f"{path}chart.svg?chart=waits",
    }
    words = list(pictures.values())
    assert all(f"Run {finished_run.pk}: " in text for text in words)
    assert "CPU idle" in pictures[f"{path}chart.svg?chart=machines"]
    assert "LWLock · WALWrite" in pictures[f"{path}chart.svg?chart=waits"]
    assert part[0] == f"{path}chart.svg?from=0.0&to=1.0"
    assert part[1] != pictures[f"{path}chart.svg"]
    assert client.get(f"{path}chart.svg?chart=stacks").status_code == 404


def test_a_picture_of_a_private_run_is_for_members_alone(
    client, admin_client, ready_server
):
    project = projects.create(slug="secret", is_public=False)
    campaign = factories.campaign("hidden", project=project, on=ready_server, repeats=1)
    run = factories.story(factories.finish(campaign.runs.first(), tps=1234.5))

    assert admin_client.get(f"/runs/{run.pk}/chart.svg").status_code == 200
    assert client.get(f"/runs/{run.pk}/chart.svg").status_code == 404


def test_a_machine_that_never_waited_shows_no_panel_for_it(finished_run):
    finished_run.series.create(name="cpu_idle", unit="%", interval=1, values=[0, 0])
    finished_run.series.create(name="cpu_steal", unit="%", interval=1, values=[0, 0])
    shown = run_page.live(finished_run)
    assert [trace["name"] for trace in shown["machines_figure"]["data"]] == ["CPU idle"]
    assert len(shown["machines"]) == 2


@pytest.fixture
def make_person(django_user_model):
    """A function that makes somebody of that role in the public project."""

    def made(role):
        user = django_user_model.objects.create_user(role)
        projects.default().memberships.create(user=user, role=role)
        return user

    return made


def test_a_maintainer_withdraws_a_run_and_everybody_reads_why(
    client, finished_run, make_person
):
    client.force_login(make_person("maintainer"))
    page = client.get(f"/runs/{finished_run.pk}/").content.decode()
    assert "Not sealed yet." in page
    assert f"/runs/{finished_run.pk}/withdraw/" in page
    reason = "<b>the disk</b> was failing"
    client.post(f"/runs/{finished_run.pk}/withdraw/", {"reason": reason})
    client.logout()

    page = client.get(f"/runs/{finished_run.pk}/").content.decode()
    finished_run.refresh_from_db()
    assert finished_run.state == "withdrawn"
    assert "its figures count nowhere any more" in page
    assert "&lt;b&gt;the disk&lt;/b&gt; was failing" in page
    assert "<b>the disk" not in page
    assert "/restore/" not in page


def test_an_operator_is_neither_offered_to_withdraw_nor_allowed_to(
    client, finished_run, make_person
):
    client.force_login(make_person("operator"))
    assert "/withdraw/" not in client.get(f"/runs/{finished_run.pk}/").content.decode()

    assert (
        client.post(f"/runs/{finished_run.pk}/withdraw/", {"reason": "x"}).status_code
        == 403
    )
    finished_run.refresh_from_db()
    assert finished_run.state == "finished"


def test_a_sealed_run_shows_its_entry_of_the_chain(
    client, finished_run, settings, tmp_path
):
    settings.SEAL_KEY = str(tmp_path / "seals" / "key.pem")
    seals.request(run=finished_run.pk)
    seals.seal()
    seal = Seal.objects.get()

    page = client.get(f"/runs/{finished_run.pk}/").content.decode()
    assert seal.digest in page
    assert seal.public_key in page
    assert "1 of the chain of default" in page


@pytest.mark.django_db
def test_the_list_of_runs_says_of_each_that_failed_why(
    client, django_assert_max_num_queries
):
    campaign = factories.campaign("nightly", repeats=3)
    failed, *_others = campaign.runs.order_by("pk")
    text, remedy = "Step load ended.", "Read the step's output on the run's page."
    Run.objects.filter(pk=failed.pk).update(
        state="failed", code="step_failed", message=text, remedy=remedy
    )
    page = client.get("/runs/?state=failed").content.decode()
    assert page.count("<tr") == 2
    assert text in page
    assert f'href="/runs/{failed.pk}/"' in page
    japanese = client.get("/runs/?state=failed", headers={"Accept-Language": "ja"})
    assert (
        "実行ページ" in japanese.content.decode()
        or remedy not in japanese.content.decode()
    )
    everything = client.get("/runs/").content.decode()
    assert everything.count("<tr") == campaign.runs.count() + 1
    with django_assert_max_num_queries(8):
        client.get("/runs/?server=nowhere")
    assert "Nothing was found" in client.get("/runs/?state=lost").content.decode()
