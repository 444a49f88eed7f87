"""The main job, end to end, as a newcomer and an operator meet it."""

import os
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from benchmarks.processes import counted, running
from tests.instance.conftest import FIRST_REPEATS, Instance, manage

pytestmark = [pytest.mark.instance, pytest.mark.browser, pytest.mark.timeout(900)]


def test_the_first_campaign_finishes_with_every_run_measured(
    instance: Instance, first_campaign
):
    assert first_campaign["state"] == "finished"
    assert first_campaign["runs"] == {"finished": 4 * FIRST_REPEATS}
    for version in ("16", "18"):
        rows = instance.get(
            f"measurements/?campaign={first_campaign['slug']}&metric=tps&version={version}"
        )["results"]
        assert len(rows) == 2 * FIRST_REPEATS
        assert {row["levels"]["clients"] for row in rows} == {1, 4}
        assert all(row["value"] > 0 for row in rows)


def test_of_an_ended_campaign_only_loaded_clusters_are_left_and_a_clean_up_removes_them(
    instance: Instance, first_campaign
):
    runs, clusters = instance.base / "runs", instance.base / "clusters"
    instance.wait_for(lambda: not list(runs.iterdir()), 20)
    kept = list(clusters.iterdir())
    assert kept
    assert [cluster for cluster in kept if not (cluster / "prepared").exists()] == []
    assert instance.processes_on_target() == []
    manage(instance, "sweep")
    assert list(clusters.iterdir()) == []


def test_the_campaign_page_shows_chart_and_ratios(
    page: Page, instance: Instance, first_campaign
):
    faults: list[str] = []
    page.on(
        "console",
        lambda said: faults.append(said.text) if said.type == "error" else None,
    )
    page.goto(f"{instance.url}/campaigns/{first_campaign['slug']}/")
    drawn = page.locator(".chart__wide svg").first
    expect(drawn).to_be_visible()
    assert drawn.locator("polyline").count() == 2
    expect(
        page.get_by_text(re.compile("faster|slower|the same|undecided")).first
    ).to_be_visible()
    assert faults == []


def test_the_run_page_shows_every_command_the_seconds_and_the_files(
    page: Page, instance, first_campaign
):
    run = instance.get(f"runs/?campaign={first_campaign['slug']}")["results"][0]
    page.goto(f"{instance.url}/runs/{run['id']}/")
    expect(page.locator(".chart__wide svg").first).to_be_visible()
    expect(page.get_by_text("pg_ctl").first).to_be_attached()
    expect(page.get_by_text("pgbench.out").first).to_be_visible()
    # What pgbench printed is downloaded as it was.
    with page.expect_download() as started:
        page.get_by_role("link", name="pgbench.out").click()
    text = Path(started.value.path()).read_text()
    (tps,) = instance.get(f"measurements/?run={run['id']}&metric=tps")["results"]
    assert f"tps = {tps['value']:.6f}" in text


@pytest.fixture
def admin(admin_throughout: Page) -> Page:
    """One login for all tests; it outlives the restart of the instance."""
    return admin_throughout


def queue(
    admin: Page,
    instance: Instance,
    title: str,
    scenario: str = "fixed-point-read",
    **fields: Any,
) -> str:
    """Fill the form of a new campaign on this machine's PostgreSQL 18; its slug."""
    admin.goto(f"{instance.url}/campaigns/new/?scenario={scenario}")
    admin.fill("[name=title]", title)
    # What is seldom changed is folded.
    folded = admin.locator("main form details")
    folded.evaluate_all("all => all.forEach(each => { each.open = true; })")
    boxes = admin.locator("[name=installations]")
    for index in range(boxes.count()):
        label = admin.locator(
            f"label[for={boxes.nth(index).get_attribute('id')}]"
        ).inner_text()
        boxes.nth(index).set_checked("PostgreSQL 18" in label)
    # A doubtful run would be measured again, and on a busy machine all are.
    if in_slices := fields.pop("slice_seconds", ""):
        admin.select_option("[name=slice_seconds]", in_slices)
    for name, value in {"remeasures": 0, **fields}.items():
        admin.fill(f"[name={name}]", str(value))
    # By keyboard: the estimate above the button may move it in the middle of a click.
    admin.press("main form [type=submit]:not([formaction])", "Enter")
    # The first request of a process that has just begun, on a busy machine.
    admin.wait_for_url(re.compile("/campaigns/(?!new)"), timeout=90_000)
    return admin.url.rstrip("/").rpartition("/")[2]


def queue_gently(admin: Page, instance: Instance, title: str, **fields: Any) -> str:
    """The same with a load that leaves the processors to other tests."""
    fields = {"scale": 1, "clients": 1, "repeats": 1, "rate": 50, **fields}
    return queue(admin, instance, title, "pgbench", **fields)


def campaign(instance: Instance, slug: str) -> dict[str, Any]:
    return dict(instance.get(f"campaigns/{slug}/"))


def test_from_the_form_to_the_drawn_chart(
    admin: Page, instance: Instance, first_campaign
):
    slug = queue(
        admin, instance, "Journey", clients="1, 2", repeats=1, scale=1, duration=1
    )
    expect(admin.locator(".chart__wide svg").first).to_be_visible(timeout=90_000)
    instance.wait_for(lambda: campaign(instance, slug)["state"] == "finished", 60)
    expect(
        admin.locator("main").get_by_text("finished", exact=True).first
    ).to_be_visible()
    expect(admin.locator("#cancel")).to_have_count(0)
    assert campaign(instance, slug)["runs"] == {"finished": 2}


def measuring(instance: Instance, slug: str) -> dict[str, Any]:
    """The run of a campaign, once pgbench puts load on."""

    def found() -> dict[str, Any] | None:
        rows = instance.get(f"runs/?campaign={slug}&state=measuring")["results"]
        return rows[0] if rows and running(instance.base) else None

    return dict(instance.wait_for(found, 90))


def test_a_cancel_in_mid_run_leaves_no_process(
    admin: Page, instance: Instance, first_campaign
):
    slug = queue_gently(admin, instance, "Cancelled", repeats=2, duration=600)
    measuring(instance, slug)
    admin.goto(f"{instance.url}/campaigns/{slug}/")
    admin.locator("summary", has_text="Cancel the campaign").click()
    admin.locator("form[action$='/cancel/'] [type=submit]").click()
    instance.wait_for(lambda: campaign(instance, slug)["runs"] == {"cancelled": 2}, 30)
    assert campaign(instance, slug)["state"] == "cancelled"
    instance.wait_for(lambda: not instance.processes_on_target(), 5)


@pytest.mark.slow  # test_faults.py kills workers as well
def test_a_run_whose_worker_is_killed_is_measured_once(
    admin: Page, instance: Instance, first_campaign
):
    with counted(instance.base) as loads:
        slug = queue_gently(admin, instance, "Killed worker", duration=12)
        run = measuring(instance, slug)
        # Each worker: which of them has the run is theirs to know.
        for name, pid in instance.pids().items():
            if name.startswith("worker"):
                os.kill(pid, signal.SIGKILL)
        killed = time.monotonic()
        instance.wait_for(lambda: campaign(instance, slug)["state"] == "finished", 90)
    assert time.monotonic() - killed > 5
    codes = codes_of(instance, run)
    assert "no_heartbeat" in codes
    assert "taken_over" in codes
    instance.assert_each_run_was_measured_once(slug, loads, 1)


def codes_of(instance: Instance, run: dict[str, Any]) -> list[str]:
    """What happened to a run, in order."""
    return [event["code"] for event in instance.get(f"runs/{run['id']}/")["events"]]


def test_slices_go_on_after_a_restart(admin: Page, instance: Instance, first_campaign):
    """Two cells in turn: the next start goes on with the slice that comes next."""
    slug = queue_gently(
        admin, instance, "In turn", clients="1, 2", duration=12, slice_seconds="1"
    )
    measuring(instance, slug)
    assert instance.stop() == 0
    instance.start()
    instance.wait_for(lambda: campaign(instance, slug)["state"] == "finished", 180)
    runs = instance.get(f"runs/?campaign={slug}")["results"]
    assert [run["state"] for run in runs] == ["finished", "finished"]


def test_ctrl_c_stops_all_of_it_and_a_second_start_finds_everything(
    admin: Page, instance: Instance, first_campaign
):
    slug = queue_gently(admin, instance, "Over the restart", duration=8)
    run = measuring(instance, slug)
    pids = instance.pids()
    assert instance.stop() == 0
    assert [name for name, pid in pids.items() if Path(f"/proc/{pid}").exists()] == []
    assert instance.processes_on_target() == []
    instance.lines.clear()
    instance.start()
    assert not any("password" in line for line in instance.lines)
    slugs = {each["slug"] for each in instance.get("campaigns/")["results"]}
    assert {slug, first_campaign["slug"]} <= slugs
    instance.wait_for(lambda: campaign(instance, slug)["state"] == "finished", 120)
    assert (
        len(instance.get(f"measurements/?campaign={slug}&metric=tps")["results"]) == 1
    )
    codes = codes_of(instance, run)
    # The worker handed it over; nobody had to wait until it had been silent for long enough.
    assert codes[codes.index("worker_stopped") + 1] == "taken_over"
    assert "no_heartbeat" not in codes
