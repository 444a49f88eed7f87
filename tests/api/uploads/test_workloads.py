"""What was measured is part of an uploaded cell: no other workload is taken for a repeat."""

import re

import pytest

from runs.management.commands.part_uploads import Command
from runs.models import Campaign, Cell, CellSummary, Run
from runs.services.campaigns import summaries
from tests import factories
from tests.api.upload_bodies import run
from tests.unit.tools.pgbench.samples import sample

pytestmark = pytest.mark.django_db

FIGURES = ("measurements", "series", "status", "levels")
SIMPLE = sample("18.6/a_tpcb")


def edited(text, **changes):
    """An output with other lines: query_mode="prepared", tps="701.5"."""
    for name, value in changes.items():
        words = name.replace("_", " ")
        text = re.sub(rf"^({words}(?::| =) )[^\s]+.*$", rf"\g<1>{value}", text, flags=re.MULTILINE)
    return text


@pytest.fixture
def post(client, bearer):
    def sent(stdout, **fields):
        body = run(*FIGURES, raw={"stdout": stdout, "exit_status": 0}, tool="pgbench") | fields
        return client.post("/api/v1/uploads/", body, "application/json", headers=bearer)

    return sent


PREPARED = edited(SIMPLE.stdout, query_mode="prepared")
READ = edited(SIMPLE.stdout, transaction_type="<builtin: select only>")
RETRIED = edited(SIMPLE.stdout, maximum_number_of_tries="10")
LIMITED = SIMPLE.stdout + "rate limit schedule lag: avg 0.1 (max 2.0) ms\n"
RECONNECTED = SIMPLE.stdout.replace(
    "without initial connection time", "including reconnection times"
)


def test_simple_and_prepared_are_no_repeats_of_each_other(post):
    answers = [post(text).json() for text in (SIMPLE.stdout, PREPARED, SIMPLE.stdout, PREPARED)]

    assert [answer["repeat"] for answer in answers] == [1, 1, 2, 2]
    levels = [cell.levels.get("query_mode") for cell in Cell.objects.order_by("pk")]
    assert levels == [None, "prepared"]


def test_each_part_of_a_workload_parts_cells(post):
    texts = (SIMPLE.stdout, PREPARED, READ, RETRIED, LIMITED, RECONNECTED)

    assert [post(text).json()["repeat"] for text in texts] == [1] * 6
    known = [set(cell.levels) - set(Cell.objects.earliest("pk").levels)
             for cell in Cell.objects.order_by("pk")]  # fmt: skip
    assert known == [
        set(), {"query_mode"}, {"script"}, {"max_tries"}, {"rate"}, {"connection"},
    ]  # fmt: skip


def test_what_the_uploader_says_of_script_and_rate_stands_for_what_was_read(post):
    post(LIMITED, workload={"rate": 500, "script": "mine"})

    cell = Cell.objects.get()
    assert (cell.levels["rate"], cell.levels["script"]) == (500, "mine")


def test_what_the_output_says_is_not_contradicted(post):
    answer = post(PREPARED, workload={"query_mode": "simple"})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/workload/query_mode"


def test_figures_without_raw_output_say_their_workload(client, bearer):
    def send(**fields):
        return client.post("/api/v1/uploads/", run(**fields), "application/json", headers=bearer)

    assert send().json()["repeat"] == 1
    assert send(workload={"query_mode": "simple"}).json()["repeat"] == 2
    assert send(workload={"query_mode": "prepared"}).json()["repeat"] == 1
    fault = send(workload={"mode": "simple"}).json()["errors"][0]
    assert (fault["pointer"], fault["code"]) == ("/workload/mode", "unknown_field")


def verdict(client, **asked):
    answer = client.get("/api/v1/compare/", {"metric": "tps", **asked})
    assert answer.status_code == 200, answer.content
    return answer.json()


def revision(number):
    return {"sha": f"{number:08x}", "committed_at": f"2026-01-0{number}T00:00:00Z"}


@pytest.mark.parametrize("other", [PREPARED, READ, LIMITED, RECONNECTED])
def test_another_workload_is_never_faster_or_slower(post, client, other):
    for _each in range(3):
        post(SIMPLE.stdout, revision=revision(1))
        assert post(other, revision=revision(2)).json()["state"] == "finished"

    body = verdict(client, campaign="nightly")

    assert body["overall"] == "not_comparable"
    assert [reason["code"] for reason in body["rows"][0]["reasons"]] == ["workload_differs"]


def test_versions_that_print_more_and_less_are_compared(post, client):
    old, new = sample("13.12/a_tpcb"), sample("18.6/a_tpcb")
    for each in (old, new) * 3:
        post(each.stdout, postgresql={"version": each.version})

    body = verdict(
        client, base="campaign:nightly~version=13.12", head="campaign:nightly~version=18.6"
    )

    (row,) = body["rows"]
    assert row["verdict"] != "not_comparable"
    assert (row["base"]["n"], row["head"]["n"]) == (3, 3)


def test_an_output_without_a_version_needs_one_and_says_what_to_add(post):
    old = sample("13.12/a_tpcb")

    fault = post(old.stdout).json()["errors"][0]
    assert (fault["pointer"], fault["code"]) == ("/postgresql/version", "version_unknown")
    assert '"postgresql": {"version": "13.12"}' in fault["message"]
    assert not Run.objects.exists()
    assert post(old.stdout, levels={"version": "13"}).status_code == 201
    assert post(old.stdout, postgresql={"version": "13.12"}).status_code == 201


def test_the_version_of_a_server_with_one_installation_is_that_of_its_runs(post):
    factories.server("db1", versions=["13.12"])
    factories.server("db2", versions=["13.12", "14.9"])
    old = sample("13.12/a_tpcb").stdout

    assert post(old, server="db1").status_code == 201
    assert Cell.objects.get().version == "13.12"
    assert post(old, server="db2").status_code == 400


def test_packaged_versions_are_understood(post):
    for text in ("18.6 (Ubuntu 18.6-1.pgdg22.04+1)", "18.6 (e21737f)", "18.6"):
        answer = post(SIMPLE.stdout, postgresql={"version": text})
        assert answer.status_code == 201, answer.content

    assert {each.server_version for each in Run.objects.all()} == {"18.6"}
    assert Cell.objects.count() == 1


def test_uploads_of_before_are_parted_by_what_they_say(post):
    for text in (SIMPLE.stdout, PREPARED, SIMPLE.stdout):
        post(text)
    simple, prepared = Cell.objects.order_by("pk")
    # As an older BenchLab stored them: all in one cell, tries among the levels.
    Run.objects.filter(cell=prepared).update(cell=simple, repeat=3)
    prepared.delete()
    simple.levels |= {"maximum_tries": 1}
    simple.workload, simple.key = {}, "old"
    simple.save()
    summaries.refresh(cell_id=simple.pk)
    noted = Campaign.objects.get().factors
    assert noted["query_mode"] == ["prepared"]
    Campaign.objects.update(factors={name: noted[name] for name in noted if name != "query_mode"})

    Command().handle()
    Command().handle()

    found = {cell.levels.get("query_mode", ""): cell for cell in Cell.objects.all()}
    assert {name: cell.runs.count() for name, cell in found.items()} == {"": 2, "prepared": 1}
    counted = CellSummary.objects.filter(metric__name="tps")
    assert {row.cell_id: row.n for row in counted} == {
        found[""].pk: 2, found["prepared"].pk: 1,
    }  # fmt: skip
    assert "maximum_tries" not in found[""].levels
    assert Campaign.objects.get().factors["query_mode"] == ["prepared"]
    assert [post(text).json()["repeat"] for text in (SIMPLE.stdout, PREPARED)] == [3, 2]
    assert Campaign.objects.get().cells.count() == 2
