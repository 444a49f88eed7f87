"""The sealed archive: what was changed behind BenchLab's back is named, and nothing else."""

import contextlib
import io
import json
import os
import stat
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.core.management import CommandError, call_command
from django.db import connection
from django.utils import timezone

from runs.access.selectors import macs
from runs.access.services import projects
from runs.cells.services import summaries
from runs.exchange import services
from runs.execution.reporter import ArtifactData
from runs.models import (
    Campaign,
    CellSummary,
    Change,
    Instance,
    Measurement,
    Run,
    RunEvent,
    Seal,
    SealRequest,
)
from runs.queue.services import artifacts, transitions, withdrawals
from runs.seals.selectors import sealed_content
from runs.seals.selectors.seals import canonical, entry_hash
from runs.seals.services import seal_keys, seals
from runs.shared.database import perform
from runs.shared.errors import ServiceError
from tests import factories
from tests.seals.services.conftest import PROGRAM

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def key(settings, tmp_path):
    """A key of its own for each test."""
    settings.SEAL_KEY = str(tmp_path / "seals" / "ed25519.pem")
    return Path(settings.SEAL_KEY)


@pytest.fixture
def campaign(db):
    """Eighteen runs that have finished and wait to be sealed; three of them with all there is."""
    made = factories.finish_all(factories.campaign("sixteen-against-eighteen"))
    for run in made.runs.order_by("pk")[:3]:
        factories.story(run)
        factories.artifact(
            run=run, data=ArtifactData("stdout", b"tps = 1\n" * run.repeat)
        )
        run.plan = {"host": "192.0.2.1", "bindir": "/b"}
        run.hardware, run.environment = factories.hardware(), factories.environment()
        run.save()
    perform([seals.requesting(runs=made.runs.values_list("pk", flat=True))])
    return made


@pytest.fixture
def sealed(campaign):
    assert seals.seal() == 18
    return campaign


def verify(*arguments):
    """The findings, as (run, code, message)."""
    out = io.StringIO()
    with contextlib.suppress(CommandError):
        call_command("verify", "--json", *arguments, stdout=out)
    found = [json.loads(line) for line in out.getvalue().splitlines() if line[0] == "{"]
    return [(each["run"], each["code"], each["message"]) for each in found]


def sql(statement, *parameters):
    """What a superuser of the database does, past all of BenchLab."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)


# Sealed as parts of their own, derived, or of the run's way to its result.
NOT_AS_FIELDS = {
    "again_of",
    "led_by",
    "cancel_requested_at",
    "cell_major",
    "cell_version",
    "certificate",
    "code",
    "id",
    "is_public",
    "message",
    "private_project",
    "remedy",
    "speed",
    "state",
    "validity",
    "wording",
    "imported",
    "campaign",
    "cell",
    "cluster",
    "environment",
    "hardware",
    "plan",
    "server",
    "settings",
}


def test_each_field_of_a_run_is_sealed_or_left_out_on_purpose():
    assert {each.name for each in Run._meta.concrete_fields} == {
        *sealed_content.RUN
    } | NOT_AS_FIELDS


def test_what_was_sealed_verifies(sealed):
    assert verify("--files") == []
    assert [seal.number for seal in Seal.objects.all()] == list(range(1, 19))
    assert not SealRequest.objects.exists()


def test_one_figure_changed_by_the_superuser_names_that_run_and_nothing_else(sealed):
    run = sealed.runs.order_by("pk")[7]
    before = Measurement.objects.get(run=run).value
    sql("UPDATE runs_measurement SET value = value * 1.01 WHERE run_id = %s", run.pk)
    now = Measurement.objects.get(run=run).value

    assert verify() == [
        (
            run.pk,
            "run_changed",
            f"Run {run.pk} has changed: tps:single is {now}, sealed as {before}.",
        )
    ]


# What somebody with the database changes of the second run, and the part that is named.
FORGERIES = {
    'UPDATE runs_run SET plan = plan || \'{"bindir": "/c"}\' WHERE id = %(run)s': "plan",
    "UPDATE runs_command SET stdout = 'tps = 2' WHERE run_id = %(run)s": "commands",
    "UPDATE runs_command SET argv = '[\"pgbench\"]' WHERE run_id = %(run)s": "commands",
    "UPDATE runs_series SET values = '{2,NULL}' WHERE run_id = %(run)s": "series",
    "DELETE FROM runs_series WHERE run_id = %(run)s": "series",
    "UPDATE runs_artifact SET sha256 = repeat('0', 64) WHERE run_id = %(run)s": "artifacts",
    "DELETE FROM runs_measurement WHERE run_id = %(run)s": "tps:single is not there",
    "INSERT INTO runs_measurement (run_id, metric_id, value, n, statistic)"
    " SELECT run_id, metric_id, 1, 1, 'median' FROM runs_measurement"
    " WHERE run_id = %(run)s": "tps:median is 1.0",
    "UPDATE runs_run SET hardware_id = NULL WHERE id = %(run)s": "hardware",
    "UPDATE runs_run SET environment_id = NULL WHERE id = %(run)s": "environment",
    "UPDATE runs_run SET settings_id = NULL WHERE id = %(run)s": "settings",
    "UPDATE runs_run SET server_version = '19' WHERE id = %(run)s": "run",
    "UPDATE runs_run SET started_at = now() WHERE id = %(run)s": "run",
    'UPDATE runs_run SET labels = \'{"a": "b"}\' WHERE id = %(run)s': "run",
    "UPDATE runs_run SET state = 'failed' WHERE id = %(run)s": "is now: failed",
    "UPDATE runs_run SET state = 'withdrawn' WHERE id = %(run)s": "the chain says: sealed",
    "DELETE FROM runs_artifact WHERE run_id = %(run)s; DELETE FROM runs_series WHERE run_id ="
    " %(run)s; DELETE FROM runs_command WHERE run_id = %(run)s; DELETE FROM runs_runevent WHERE"
    " run_id = %(run)s; DELETE FROM runs_measurement WHERE run_id = %(run)s; DELETE FROM runs_run"
    " WHERE id = %(run)s": "is gone",
    "UPDATE runs_seal SET reason = 'fine' WHERE run = %(run)s": "is another one",
    "UPDATE runs_seal SET content = replace(content, '1', '2') WHERE run = %(run)s": "another one",
    "UPDATE runs_seal SET signature = repeat('x', 64)::bytea WHERE run = %(run)s": "signature",
    "UPDATE runs_seal SET key = repeat('x', 32)::bytea WHERE run = %(run)s": "not trusted",
}


def test_each_forgery_is_named_with_its_run(sealed):
    run, failures = sealed.runs.order_by("pk")[1], []
    for statement, part in FORGERIES.items():
        with connection.cursor() as cursor:
            cursor.execute("SAVEPOINT forgery")
            cursor.execute(statement, {"run": run.pk})
            found = verify()
            cursor.execute("ROLLBACK TO forgery")
        if {each[0] for each in found} != {run.pk} or not any(
            part in each[2] for each in found
        ):
            failures.append((statement, found))
    assert not failures


def test_what_all_runs_share_is_sealed_with_each(sealed):
    three = [run.pk for run in sealed.runs.order_by("pk")[:3]]
    every = set(sealed.runs.values_list("pk", flat=True))
    for statement, expected in {
        "UPDATE runs_hardwareprofile SET cpu_model = 'faster'": set(three),
        "UPDATE runs_settingssnapshot SET settings = '{}'": set(three),
        "UPDATE runs_metric SET unit = 'thousands'": every,
        "UPDATE runs_campaign SET parameters = '{\"duration\": 3600}'": every,
    }.items():
        with connection.cursor() as cursor:
            cursor.execute("SAVEPOINT forgery")
            cursor.execute(statement)
            assert {run for run, _code, _message in verify()} == expected, statement
            cursor.execute("ROLLBACK TO forgery")


def test_cells_that_change_places_are_named(sealed):
    first, second = sealed.cells.order_by("pk")[:2]
    sql(
        "UPDATE runs_cell SET levels = %s WHERE id = %s",
        json.dumps(second.levels),
        first.pk,
    )

    assert {run for run, _code, _message in verify()} == set(
        first.runs.values_list("pk", flat=True)
    )


def test_a_chain_that_was_cut_is_named_wherever_it_was_cut(sealed):
    sql("DELETE FROM runs_seal WHERE number = 7")
    (gap, unsealed) = verify()
    assert gap == (None, "chain_gap", "Entries 7 to 7 of the chain are missing.")
    assert unsealed[1] == "never_sealed"

    sql("DELETE FROM runs_seal")
    codes = [code for _run, code, _message in verify()]
    assert codes == ["chain_cut", *["never_sealed"] * 18]


def test_an_end_that_was_cut_off_is_named_even_after_the_chain_went_on(sealed):
    sql("DELETE FROM runs_seal WHERE number > 16")
    later = factories.finish(factories.run(sealed.cells.first(), repeat=9), tps=1)
    seals.request(run=later.pk)
    seals.seal()

    assert (None, "chain_cut") in [(run, code) for run, code, _message in verify()]


def test_a_run_that_was_put_in_by_hand_is_named(sealed):
    forged = factories.finish(factories.run(sealed.cells.first(), repeat=9), tps=9999)

    ((run, code, _message),) = verify()
    assert (run, code) == (forged.pk, "never_sealed")


def updated(at):
    """What the migration of an update stores."""
    told = {
        "unsealed_since": at,
        "unsealed_mark": macs.mark(macs.UPDATE, at.isoformat()),
    }
    Instance.objects.update_or_create(pk=1, defaults=told)


def test_what_old_services_store_during_an_update_is_sealed_once_they_are_gone(sealed):
    """And at no other time: a run without a request is then one that was put in by hand."""
    sql("DELETE FROM runs_seal")
    seals.request_missing()
    assert not SealRequest.objects.exists()
    updated(timezone.now())
    seals.request_missing()
    assert not SealRequest.objects.exists()
    updated(timezone.now() - timedelta(minutes=11))
    for _twice in range(2):
        seals.request_missing()
        assert SealRequest.objects.count() == 18
    assert not Instance.objects.exclude(unsealed_since=None).exists()


def test_a_change_cannot_be_sealed_over(sealed):
    run = sealed.runs.order_by("pk")[0]
    before = Measurement.objects.get(run=run).value
    sql("UPDATE runs_measurement SET value = 1 WHERE run_id = %s", run.pk)
    seals.request(run=run.pk)
    assert seals.seal() == 0
    assert [found[0] for found in verify()] == [run.pk]

    # Said to be on purpose it stands in the chain, with what was there before.
    seals.request(run=run.pk, kind="amended", reason="corrected")
    assert seals.seal() == 1
    codes = {(named, code) for named, code, _message in verify()}
    assert codes == {(run.pk, "amended"), (run.pk, "run_changed")}
    with pytest.raises(CommandError, match="No amendments of default: 18"):
        call_command("acknowledge", "default", "18", "--reason", "looked at")
    call_command("acknowledge", "default", "19", "--reason", "the unit was wrong")
    assert [code for _run, code, _message in verify()] == ["run_changed"], (
        "it has other figures"
    )
    sql("UPDATE runs_measurement SET value = %s WHERE run_id = %s", before, run.pk)
    summaries.refresh(cell_id=run.cell_id)
    out = io.StringIO()
    call_command("verify", stdout=out)
    assert f"acknowledged: run {run.pk}: corrected" in out.getvalue()
    assert Seal.objects.filter(run=run.pk).count() == 2


def test_a_file_whose_content_was_changed_is_named(sealed):
    path = artifacts.path_of(sealed.runs.order_by("pk")[0].artifacts.get().sha256)
    other = artifacts.path_of(sealed.runs.order_by("pk")[1].artifacts.get().sha256)
    path.write_bytes(other.read_bytes())
    out = io.StringIO()

    with pytest.raises(CommandError):
        call_command("verify", "--files", stdout=out)
    assert (
        f"file_changed: the content of the file {path.stem} is not its own"
        in out.getvalue()
    )


def test_the_key_is_made_once_for_its_owner_only_and_another_one_is_not_trusted(
    sealed, key
):
    made = key.read_bytes()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert stat.S_IMODE(key.parent.stat().st_mode) == 0o700
    assert seal_keys.Signer().public in seal_keys.trusted()
    assert key.read_bytes() == made

    for path in key.parent.glob("*.pub"):
        path.unlink()
    assert {code for _run, code, _message in verify()} == {"key_unknown"}


def test_without_a_key_nothing_is_sealed_and_everything_waits(
    campaign, settings, tmp_path
):
    (tmp_path / "file").write_text("")
    settings.SEAL_KEY = str(tmp_path / "file" / "key.pem")

    assert seals.seal() == 0
    assert SealRequest.objects.count() == 18


def test_sealing_works_in_batches_and_goes_on(campaign, monkeypatch):
    monkeypatch.setattr(seals, "BATCH", 4)

    assert seals.seal() == 18
    assert verify() == []


def test_each_project_has_a_chain_of_its_own(sealed):
    lab = projects.create(slug="lab", is_public=False)
    other = factories.finish_all(factories.campaign("other", project=lab))
    perform([seals.requesting(runs=other.runs.values_list("pk", flat=True))])
    seals.seal()

    numbers = Seal.objects.filter(project=lab).values_list("number", flat=True)
    assert list(numbers) == list(range(1, 19))
    assert verify() == []


def test_a_run_that_finishes_waits_to_be_sealed(campaign):
    run = factories.run(campaign.cells.first(), repeat=9, state=Run.State.COLLECTING)
    assert transitions.transition(run_id=run.pk, to=Run.State.FINISHED, code="finished")

    assert SealRequest.objects.filter(run=run.pk, kind="sealed").count() == 1


def test_a_withdrawn_run_counts_nowhere_and_says_why(sealed):
    run = sealed.runs.order_by("pk")[0]
    cell, ended = run.cell, run.finished_at
    alarm = Change.objects.create(
        cell=cell,
        run=run,
        metric=factories.metric(),
        kind="alarm",
        ratio=1,
        before=1,
        after=1,
    )
    withdrawals.withdraw(run=run, reason="the disk was failing")

    run.refresh_from_db()
    alarm.refresh_from_db()
    assert (run.state, run.message, run.finished_at) == (
        "withdrawn",
        "the disk was failing",
        ended,
    )
    assert CellSummary.objects.get(cell=cell).n == 2
    assert alarm.decision == Change.Decision.REFUTED
    sealed.refresh_from_db()
    assert sealed.state == "finished"
    assert verify() == [], "an entry that waits is no fault"
    seals.seal()
    assert verify() == []
    assert Seal.objects.filter(run=run.pk).values_list("kind", "reason").last() == (
        "withdrawn",
        "the disk was failing",
    )


def test_a_restored_run_counts_again(sealed):
    run = sealed.runs.order_by("pk")[0]
    withdrawals.withdraw(run=run, reason="the disk was failing")
    withdrawals.restore(run=run, reason="it was another disk")
    seals.seal()

    assert (run.state, run.message) == ("finished", "")
    assert CellSummary.objects.get(cell=run.cell).n == 3
    assert RunEvent.objects.filter(run=run).values_list("code", "message").last() == (
        "restored",
        "it was another disk",
    )
    assert verify() == []
    assert [seal.kind for seal in Seal.objects.filter(run=run.pk)] == [
        "sealed",
        "withdrawn",
        "restored",
    ]


def test_what_cannot_be_withdrawn_is_refused_with_the_reason(sealed):
    finished = sealed.runs.order_by("pk")[0]
    failed = factories.run(sealed.cells.first(), repeat=9, state=Run.State.FAILED)
    published = factories.finish(
        factories.run(sealed.cells.first(), repeat=10, origin="published"), tps=1
    )
    cases = [
        (withdrawals.withdraw, failed, "why", "not_finished"),
        (withdrawals.withdraw, published, "why", "is_published"),
        (withdrawals.withdraw, finished, " ", "reason_missing"),
        (withdrawals.withdraw, finished, "a\nb", "reason_invalid"),
        (withdrawals.withdraw, finished, "x" * 501, "reason_invalid"),
        (withdrawals.restore, finished, "why", "not_withdrawn"),
    ]
    for act, run, reason, code in cases:
        with pytest.raises(ServiceError) as refused:
            act(run=run, reason=reason)
        assert refused.value.code == code


# Offline


@pytest.fixture
def export(sealed, tmp_path):
    """The lines of an export of runs with everything, of which one is withdrawn."""
    run = sealed.runs.order_by("pk")[2]
    withdrawals.withdraw(run=run, reason="the disk was failing")
    seals.seal()
    lines = services.lines(projects.default())
    return [json.loads(line) for line in lines]


def test_an_export_verifies_offline_by_the_standard_library_alone(
    export, key, tmp_path
):
    path, (public,) = tmp_path / "export.ndjson", key.parent.glob("*.pub")
    path.write_text("".join(canonical(row) + "\n" for row in export))
    command = [
        sys.executable,
        "-I",
        "-S",
        str(PROGRAM),
        str(path),
        "--key",
        str(public),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ, check=False
    )

    assert done.returncode == 0, done.stdout + done.stderr
    first, last, signed, verdict = done.stdout.splitlines()
    assert first == "18 sealed runs looked at, 0 not sealed; 19 entries"
    assert last == f"last entry 19:{export[-2]['hash']}"
    assert signed.startswith("19 entries signed with the key ")
    assert signed.endswith("(trusted)")
    assert verdict == "as it was sealed"


def of(rows, kind):
    """The first run with everything, or what belongs to it."""
    found = [row for row in rows if row["type"] == kind]
    return found[0]


def _figure(rows):
    of(rows, "run")["measurements"][0]["value"] += 1


def _plan(rows):
    of(rows, "run")["plan"]["bindir"] = "/c"


def _level(rows):
    of(rows, "cell")["levels"]["clients"] = 64


def _file(rows):
    of(rows, "file")["gzip"] = [row for row in rows if row["type"] == "file"][1]["gzip"]


def _unsealed(rows):
    of(rows, "run")["seal"] = None


def _counts_again(rows):
    next(row for row in rows if row.get("state") == "withdrawn")["state"] = "finished"


def _reason(rows):
    next(row for row in rows if row.get("kind") == "withdrawn")["reason"] = "none"


def _another_key(rows):
    """Someone without the key seals the whole export again."""
    signer, previous = Ed25519PrivateKey.generate(), bytes(32)
    for row in rows:
        if row["type"] == "seal":
            row["content"] = row["content"].replace("1000.0", "9999.0")
            names = ("number", "kind", "run", "at", "reason", "content")
            told = {name: row[name] for name in names}
            previous = entry_hash(previous=previous, project="default", **told)
            row["hash"] = previous.hex()
            row["key"] = signer.public_key().public_bytes_raw().hex()
            row["signature"] = signer.sign(b"benchlab seal 1\n" + previous).hex()


EDITS = {
    _figure: "tps:single is ",
    _plan: "has changed: plan",
    _level: "has changed: cell",
    _file: "is not its own",
    _unsealed: "it is finished and has no seal",
    _counts_again: "is finished; the chain says withdrawn",
    _reason: "is another one than was sealed",
    _another_key: "signed with a key that is not trusted",
    lambda rows: of(rows, "command").update(stdout="tps = 2"): "has changed: commands",
    lambda rows: of(rows, "series").update(values=[2.0]): "has changed: series",
    lambda rows: of(rows, "hardware").update(
        cpu_model="faster"
    ): "has changed: hardware",
    lambda rows: of(rows, "settings").update(settings={}): "has changed: settings",
    lambda rows: of(rows, "metric").update(unit="thousands"): "has changed: metrics",
    lambda rows: rows.remove(of(rows, "run")): "series cannot be here",
    lambda rows: rows.remove(
        of(rows, "seal")
    ): "entries 1 to 1 of the chain are missing",
    lambda rows: rows.pop(): "its last line is missing",
    lambda rows: of(rows, "run").update(validity="invalid"): "has changed: validity",
}


def test_whatever_is_changed_in_an_export_is_named(export, offline, key):
    (public,) = key.parent.glob("*.pub")
    failures = []
    for change, words in EDITS.items():
        rows = json.loads(json.dumps(export))
        change(rows)
        status, said = offline(rows, "--key", str(public))
        if status != 1 or words not in said:
            failures.append((words, said))
    assert not failures


def test_an_end_that_was_noted_shows_what_was_cut_off_an_export(export, offline):
    end = f"{export[-2]['number']}:{export[-2]['hash']}"
    cut = [*export[:-2], {"type": "end", "lines": len(export) - 1}]

    assert offline(export, "--entry", end)[0] == 0
    assert offline(cut, "--entry", end)[0] == 1


def test_signatures_are_verified_in_python_as_by_the_package(program):
    key = Ed25519PrivateKey.generate()
    public, verify = key.public_key().public_bytes_raw(), program.is_signed_in_python
    for message in (b"", b"x", bytes(1000)):
        signature = key.sign(message)
        assert verify(message, signature, public)
        assert not verify(message + b"y", signature, public)
        for place in (0, 31, 32, 63):
            wrong = bytearray(signature)
            wrong[place] ^= 1
            assert not verify(message, bytes(wrong), public)
        assert not verify(message, signature, bytes(32))
        assert not verify(message, signature[:63], public)


def test_sealed_exports_are_imported_and_sealed_again(export, tmp_path):
    lines = [canonical(row).encode() + b"\n" for row in export]
    Campaign.objects.all().delete()
    Seal.objects.all().delete()

    assert services.load(lines=lines).runs == 18
    assert seals.seal() == 17, "one came withdrawn"
