"""Whoever has the database alone: what they change is named, and nothing of theirs is signed."""

import contextlib
import io
import json
from importlib import import_module

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from runs.access.services import audit, projects
from runs.access.services.audit import Actor
from runs.archive.services import comparison, publications
from runs.campaigns.services import metric_corrections
from runs.cells.services import summaries
from runs.exchange import services
from runs.execution.reporter import Findings
from runs.models import (
    AuditEntry,
    AuditLink,
    CellSummary,
    Instance,
    Metric,
    Run,
    Seal,
    SealRequest,
)
from runs.published import reading
from runs.queue.services import results, transitions
from runs.seals.services import seals
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def key(settings, tmp_path):
    """A key of its own for each test."""
    settings.SEAL_KEY = str(tmp_path / "seals" / "ed25519.pem")


@pytest.fixture
def campaign(db):
    """Runs that are sealed, and entries of the audit trail that are linked."""
    made = factories.finish_all(factories.campaign("sixteen-against-eighteen"))
    for run in made.runs.all():
        seals.request(run=run.pk)
    for place in range(5):
        with audit.acting(Actor("hanako", "page")):
            audit.record(
                "changed", f"server db{place}", after={"port": 5432, "share": 1e300}
            )
    seals.seal()
    assert verify() == set()
    return made


@pytest.fixture
def publication(monkeypatch):
    """The archive has a small publication only."""
    small = [path for path in reading.files() if path.stem == "wg1-2021"]
    monkeypatch.setattr(reading, "files", lambda folder=None: [] if folder else small)
    publications.load(files=small)


def verify(*arguments):
    """The codes of what is found, and what the command ends with."""
    out, status = io.StringIO(), 0
    try:
        call_command("verify", "--json", *arguments, stdout=out)
    except CommandError as error:
        status = error.returncode
    codes = {json.loads(line)["code"] for line in out.getvalue().splitlines()}
    assert status == bool(codes)
    return codes


def sql(statement, *parameters):
    """What a role of the database does, past all of BenchLab."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


AMENDED = "INSERT INTO runs_sealrequest (kind, run, reason) VALUES ('amended', %(run)s, 'unit')"
CHANGED = "UPDATE runs_measurement SET value = value * 3 WHERE run_id = %(run)s"
PUT_IN = """
WITH new AS (
  INSERT INTO runs_run (campaign_id, cell_id, repeat, position, origin, state, attempt, code,
      message, remedy, server_version, tool_name, tool_version, quality, labels, external_id,
      queued_at, finished_at)
  SELECT campaign_id, cell_id, 99, 99, 'published', state, attempt, code, message, remedy,
      server_version, tool_name, tool_version, quality, labels, external_id, now(), now()
    FROM runs_run WHERE id = %(run)s RETURNING id)
INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)
SELECT new.id, metric_id, 999999, 1, 'single' FROM new, runs_measurement WHERE run_id = %(run)s
"""
SWAPPED = """
ALTER TABLE runs_run DROP CONSTRAINT run_in_cell_of_campaign;
UPDATE runs_run SET repeat = repeat + campaign_id * 1000;
UPDATE runs_run SET cell_id = (SELECT other.id FROM runs_cell own, runs_cell other WHERE
    own.id = runs_run.cell_id AND other.key = own.key AND other.campaign_id <> own.campaign_id)
"""
# The first five take writing to tables only, the last one takes their owner.
FORGERIES = {
    CHANGED: {"run_changed"},
    f"{CHANGED}; {AMENDED}": {"run_changed", "request_forged"},
    "UPDATE runs_cellsummary SET median = median * 3 WHERE cell_id ="
    " (SELECT cell_id FROM runs_run WHERE id = %(run)s)": {"summary_changed"},
    "UPDATE runs_measurement SET value = 100 WHERE id = (SELECT max(m.id) FROM runs_measurement m"
    " JOIN runs_run r ON r.id = run_id WHERE origin = 'published')": {
        "published_changed"
    },
    PUT_IN: {"never_sealed"},
    "ALTER TABLE runs_auditentry DISABLE TRIGGER ALL; DELETE FROM runs_auditentry WHERE id ="
    " (SELECT min(id) FROM runs_auditentry)": {"audit_missing", "schema_differs"},
}


@pytest.mark.usefixtures("publication")
def test_six_forgeries_are_named(campaign):
    assert verify() == set()
    run, failures = campaign.runs.order_by("pk")[1], []
    for statement, codes in FORGERIES.items():
        with contextlib.suppress(Undone), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                cursor.execute(statement, {"run": run.pk})
            number = Seal.objects.count()
            seals.seal()
            if (found := verify()) != codes or Seal.objects.count() != number:
                failures.append((statement, found))
            raise Undone
    assert not failures


class Undone(Exception):
    """Takes a forgery back."""


# What somebody changes of the archive, of its first campaign or beside it.
ARCHIVE = {
    "direction": "UPDATE runs_metric SET direction = CASE direction WHEN 'higher' THEN 'lower' ELSE"
    " 'higher' END WHERE id IN (SELECT metric_id FROM runs_measurement m JOIN runs_run r ON"
    " r.id = run_id WHERE origin = 'published')",
    "grid": "UPDATE runs_publishedtable SET grid = '[[\"1\"]]'",
    "findings": "UPDATE runs_publishedtable SET findings = '[]'",
    "year": "UPDATE runs_source SET year = 1999",
    "mean": "UPDATE runs_cellsummary SET mean = 1 WHERE cell_id IN (SELECT cell_id FROM"
    " runs_run WHERE origin = 'published')",
    "cores": "UPDATE runs_hardwareprofile SET cores = 1 WHERE slug <> ''",
    "n": "UPDATE runs_printedfigure SET n = 99",
    "version": "UPDATE runs_cell SET version = '99' WHERE id IN (SELECT cell_id FROM"
    " runs_run WHERE origin = 'published')",
    # In the cell of somebody else, said to be of the archive.
    "run": "ALTER TABLE runs_run DROP CONSTRAINT run_in_cell_of_campaign;"
    " INSERT INTO runs_run (campaign_id, cell_id, repeat, position, origin, state, attempt,"
    " code, message, remedy, server_version, tool_name, tool_version, quality, labels, external_id,"
    " queued_at, finished_at) SELECT (SELECT min(campaign_id) FROM runs_publishedtable), cell_id,"
    " 99, 99, 'published', state, attempt, code, message, remedy, server_version, tool_name,"
    " tool_version, quality, labels, external_id, now(), now() FROM runs_run WHERE id = %(run)s",
}


@pytest.mark.usefixtures("publication")
def test_whatever_is_changed_in_the_archive_is_named(campaign):
    run, missed = campaign.runs.order_by("pk")[1], []
    for name, statement in ARCHIVE.items():
        with contextlib.suppress(Undone), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
                cursor.execute(statement, {"run": run.pk})
            if "published_changed" not in verify():
                missed.append(name)
            raise Undone
    assert missed == []


def test_the_whole_archive_is_as_in_its_files():
    publications.load(files=reading.files())
    assert list(comparison.findings(comparison.read())) == []


@pytest.mark.usefixtures("publication")
def test_the_archive_is_stored_again_from_its_files():
    sql(
        "UPDATE runs_printedfigure SET text = '100' WHERE id = (SELECT min(id) FROM"
        " runs_printedfigure)"
    )
    assert verify() == {"published_changed"}
    call_command("load_published", stdout=io.StringIO())
    assert verify() == {"published_changed"}, "no file has changed"

    call_command("load_published", "--again", stdout=io.StringIO())
    assert verify() == set()


# What somebody with the owner's rights does to the trail.
TRAIL = {
    "DELETE FROM runs_auditentry WHERE subject = 'server db2'": "audit_missing",
    "UPDATE runs_auditentry SET actor = 'taro' WHERE subject = 'server db2'": "audit_changed",
    "UPDATE runs_auditentry a SET action = 'looked', subject = b.subject FROM runs_auditentry b"
    " WHERE a.subject = 'server db2' AND b.subject = 'server db3'": "audit_changed",
    "UPDATE runs_auditentry SET id = -id": "audit_missing",
    "DELETE FROM runs_auditlink WHERE number > 3": "chain_cut",
    "DELETE FROM runs_auditentry; DELETE FROM runs_auditlink": "chain_cut",
    "DELETE FROM runs_auditlink WHERE number = 2": "chain_gap",
    "UPDATE runs_auditlink SET number = number + 10 WHERE number < 3": "chain_gap",
    "INSERT INTO runs_auditentry (at, action, subject, actor, by_way_of, before, after) VALUES"
    " (now(), 'changed', 'server', 'taro', 'page', '{}', '{}')": "audit_forged",
    "INSERT INTO runs_auditentry (at, action, subject, actor, by_way_of, before, after, mark)"
    " SELECT at, action, subject, actor, by_way_of, before, after, mark FROM runs_auditentry"
    " WHERE subject = 'server db2'": "audit_forged",
}


def test_whatever_is_changed_in_the_audit_trail_is_named(campaign):
    failures = []
    for statement, code in TRAIL.items():
        with contextlib.suppress(Undone), transaction.atomic():
            sql("ALTER TABLE runs_auditentry DISABLE TRIGGER ALL")
            sql(statement)
            number = AuditLink.objects.count()
            seals.seal()
            is_linked = code == "audit_forged" and AuditLink.objects.count() > number
            if code not in (found := verify()) or is_linked:
                failures.append((statement, found))
            raise Undone
    assert not failures


def test_the_chain_of_the_trail_begins_once(campaign):
    sql("DELETE FROM runs_auditlink")
    sql("ALTER TABLE runs_auditentry DISABLE TRIGGER ALL")
    sql("UPDATE runs_auditentry SET mark = ''")
    assert verify() == {"chain_cut", "audit_forged", "schema_differs"}
    seals.seal()
    assert not AuditLink.objects.exists(), "the head says that it has begun already"


def test_what_the_release_before_stored_is_taken_over_after_the_update():
    """Its requests and entries have no mark, also those that it stores until it is replaced."""
    first, second = factories.finish_all(factories.campaign("c")).runs.order_by("pk")[
        :2
    ]
    Run.objects.exclude(pk__in=[first.pk, second.pk]).update(state="failed")
    CellSummary.objects.all().delete()
    summaries.refresh(cell_id=first.cell_id)
    summaries.refresh(cell_id=second.cell_id)
    AuditEntry.objects.create(actor="hanako", action="changed", subject="server db1")
    import_module("runs.migrations.0057_marks").begin_update(apps, None)
    sql("INSERT INTO runs_sealrequest (kind, run) VALUES ('sealed', %s)", first.pk)
    assert seals.seal() == 0
    assert verify() == {"never_sealed"}, "the other run was stored without a request"
    assert not AuditLink.objects.exists()

    seals.request_missing(after_seconds=0)
    assert seals.seal() == 2
    assert AuditLink.objects.count() == 1
    assert verify() == set()
    assert not Instance.objects.exclude(unsealed_since=None).exists()


def test_a_mark_is_for_one_request_only(campaign):
    """Whoever reads the queue cannot send a request of BenchLab's own again later."""
    run = campaign.runs.order_by("pk")[0]
    seals.request(run=run.pk, kind="amended", reason="corrected")
    row = SealRequest.objects.values().get()
    seals.seal()
    sql("UPDATE runs_measurement SET value = 1 WHERE run_id = %s", run.pk)
    SealRequest.objects.create(**row)

    assert seals.seal() == 0
    assert SealRequest.objects.get().refused == "used_before"
    assert verify() == {"amended", "run_changed", "request_forged"}


def test_a_figure_that_changed_before_it_was_sealed_is_not_sealed(campaign):
    run = factories.finish(factories.run(campaign.cells.first(), repeat=9), tps=1001)
    seals.request(run=run.pk)
    sql("UPDATE runs_measurement SET value = 3003 WHERE run_id = %s", run.pk)

    assert seals.seal() == 0
    assert verify() == {"never_sealed", "request_forged"}


def test_no_row_can_say_that_an_update_goes_on(campaign):
    """Then control would have everything sealed that has no seal."""
    forged = factories.finish(factories.run(campaign.cells.first(), repeat=9), tps=9999)
    sql("INSERT INTO runs_sealrequest (kind, run) VALUES ('sealed', %s)", forged.pk)
    Instance.objects.get_or_create(pk=1)
    sql("UPDATE runs_instance SET unsealed_since = now() - interval '11 minutes'")
    seals.request_missing()

    assert seals.seal() == 0
    assert verify() == {"never_sealed", "request_forged"}


def test_a_forged_request_holds_up_no_other_and_goes_when_a_person_says_so(campaign):
    run, other = (
        factories.finish(factories.run(campaign.cells.first(), repeat=place), tps=1)
        for place in (8, 9)
    )
    for _each in range(3):
        sql(
            "INSERT INTO runs_sealrequest (kind, run, mark) VALUES ('sealed', %s, '字')",
            run.pk,
        )
    seals.request(run=other.pk)
    assert seals.seal() == 1

    call_command(
        "acknowledge", "--run", str(run.pk), "--reason", "mine", stdout=io.StringIO()
    )
    assert seals.seal() == 1
    CellSummary.objects.filter(cell=run.cell).delete()
    assert verify() == {"summary_changed"}
    assert AuditEntry.objects.filter(
        action="seal_requested", subject=f"run {run.pk}"
    ).exists()


def test_what_waits_is_marked_again_when_the_key_changes(campaign, settings):
    run = factories.finish(factories.run(campaign.cells.first(), repeat=9), tps=1)
    seals.request(run=run.pk)
    sql(
        "INSERT INTO runs_sealrequest (kind, run) VALUES ('amended', %s)",
        campaign.runs.first().pk,
    )
    with audit.acting(Actor("hanako", "page")):
        audit.record("changed", "server db9")
    old, settings.ENCRYPTION_KEY = (
        settings.ENCRYPTION_KEY,
        Fernet.generate_key().decode(),
    )
    assert "audit_forged" in verify()
    seals.take_over(also=old)

    assert verify() == {"request_forged"}
    assert seals.seal() == 1
    assert verify() == {"request_forged"}


def test_an_acknowledgement_is_worth_nothing_without_its_signature(
    campaign, settings, tmp_path
):
    run = campaign.runs.order_by("pk")[0]
    seals.request(run=run.pk, kind="amended", reason="corrected")
    seals.seal()
    number = str(Seal.objects.latest("number").number)
    call_command(
        "acknowledge", "default", number, "--reason", "looked", stdout=io.StringIO()
    )
    assert verify() == set()

    path = tmp_path / "seals" / "acknowledged.json"
    path.write_text(path.read_text().replace("looked", "found"))
    assert verify() == {"amended"}


def test_a_published_head_must_be_in_the_chains_later(campaign, tmp_path):
    heads = io.StringIO()
    call_command("seal_head", stdout=heads)
    call_command("seal_head", "--audit", stdout=heads)
    path = tmp_path / "heads"
    path.write_text(heads.getvalue())
    assert len(heads.getvalue().splitlines()) == 2
    assert verify("--head", str(path)) == set()

    # Somebody with the key, too, makes another chain: the line elsewhere says so.
    sql("DELETE FROM runs_seal")
    (tmp_path / "seals" / "heads.json").unlink()
    for run in Run.objects.all():
        seals.request(run=run.pk)
    seals.seal()
    assert verify() == set()
    assert verify("--head", str(path)) == {"head_missing"}
    path.write_text(heads.getvalue().replace(" 18 ", " 17 "))
    assert verify("--head", str(path)) == {"head_unsigned"}


def test_an_export_has_the_published_head(campaign, tmp_path, offline):
    line = seals.head_line(chain="default")
    head = tmp_path / "head"
    head.write_text(line + "\n")
    later = factories.finish(factories.run(campaign.cells.first(), repeat=9), tps=1)
    seals.request(run=later.pk)
    seals.seal()
    rows = [json.loads(each) for each in services.lines(projects.default())]
    assert offline(rows, "--head", str(head))[0] == 0

    head.write_text(
        line.replace("2026", "2025", 1) if "2026" in line else line[:-1] + "0\n"
    )
    assert "signature of the head" in offline(rows, "--head", str(head))[1]
    other = line.split()
    head.write_text(seals.head_line(chain="default"))
    cut = [
        each
        for each in rows
        if not (each["type"] == "seal" and each["number"] > int(other[2]))
    ]
    status, said = offline(cut, "--head", str(head))
    assert status == 1
    assert "by a published head" in said


def test_runs_of_two_campaigns_that_exchange_their_cells_are_named(campaign):
    other = factories.finish_all(factories.campaign("another"))
    for run in other.runs.all():
        seals.request(run=run.pk)
    seals.seal()
    assert verify() == set()

    sql("SET CONSTRAINTS ALL IMMEDIATE")
    sql(SWAPPED)
    CellSummary.objects.all().delete()
    for run in Run.objects.all():
        summaries.refresh(cell_id=run.cell_id)
    assert verify() == {"run_changed", "cell_of_another"}


def test_what_pages_say_beside_the_figures_is_sealed(campaign):
    project = projects.default()
    revision = project.revisions.create(
        sha="a" * 40, ref="main", committed_at="2026-01-31T02:00Z"
    )
    campaign.cells.update(revision=revision)
    run = factories.finish(factories.run(campaign.cells.first(), repeat=9), tps=1)
    Metric.objects.update(project=project)
    seals.request(run=run.pk)
    seals.seal()
    before = verify()
    statements = {
        "UPDATE runs_run SET validity = 'invalid' WHERE id = %(run)s": "validity",
        "UPDATE runs_revision SET committed_at = now()": "revision",
        "UPDATE runs_revision SET ref = 'other'": "revision",
        "UPDATE runs_metric SET title = 'Latency, 99th percentile'": "metrics",
    }
    for statement, part in statements.items():
        with contextlib.suppress(Undone), transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(statement, {"run": run.pk})
            out = io.StringIO()
            with contextlib.suppress(CommandError):
                call_command("verify", stdout=out)
            assert f"Run {run.pk} has changed: {part}." in out.getvalue(), statement
            raise Undone
    assert verify() == before


FIGURE, OF_OTHERS = "UPDATE runs_measurement", "WHERE run_id = %s AND metric_id <> %s"


def test_no_amendment_makes_another_change_right(campaign):
    """A figure is changed by SQL; then somebody corrects another metric of the run."""
    project = projects.default()
    run = factories.finish(factories.run(campaign.cells.first(), repeat=9), tps=1)
    metric = Metric.objects.create(
        project=project, name="ops", unit="1/s", direction="higher"
    )
    run.measurements.create(metric=metric, value=5)
    summaries.refresh(cell_id=run.cell_id)
    seals.request(run=run.pk)
    seals.seal()
    sql(f"{FIGURE} SET value = 777 {OF_OTHERS}", run.pk, metric.pk)
    summaries.refresh(cell_id=run.cell_id)
    assert verify() == {"run_changed"}

    metric_corrections.correct(
        metric=metric, unit="1/min", direction="higher", title="Ops"
    )
    seals.seal()
    number = Seal.objects.latest("number").number
    assert verify() == {"run_changed", "amended"}
    call_command(
        "acknowledge", "default", str(number), "--reason", "May", stdout=io.StringIO()
    )
    assert verify() == {"run_changed"}
    sql(f"{FIGURE} SET value = 1 {OF_OTHERS}", run.pk, metric.pk)
    summaries.refresh(cell_id=run.cell_id)
    assert verify() == set()


def test_executed_figures_are_sealed_as_the_engine_found_them(campaign):
    """A trigger changes them on their way into the table."""
    run = factories.run(campaign.cells.first(), repeat=9, state=Run.State.COLLECTING)
    found = Findings(measurements={"tps": 358.1})
    run.measurements.create(metric=factories.metric(), value=1074.3)
    transitions.transition(
        run_id=run.pk,
        to=Run.State.FINISHED,
        code="finished",
        figures=results.digest(found),
    )
    assert seals.seal() == 0
    assert verify() == {"never_sealed", "request_forged"}
    sql("UPDATE runs_measurement SET value = 358.1 WHERE run_id = %s", run.pk)
    request = SealRequest.objects.get(run=run.pk)
    SealRequest.objects.filter(pk=request.pk).update(refused="")
    assert seals.seal() == 1
