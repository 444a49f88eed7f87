"""Raw output over the API: every recorded pgbench run, and what is kept of it."""

import json
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Sum

from runs.models import CellSummary, Run
from tests.api.upload_bodies import run
from tests.unit.tools.pgbench.samples import all_samples, sample
from tests.unit.tools.pgbench.test_samples import expected_status

pytestmark = pytest.mark.django_db

FIGURES = ("measurements", "series", "status", "levels")
GOOD = sample("18.6/a_tpcb")
STATES = {"complete": "finished", "partial": "failed", "failed": "failed"}


def raw(of, **fields):
    """An upload of a recorded run; to 13 it is the uploader who knows the version."""
    files = {"stdout": of.stdout, "stderr": of.stderr, "exit_status": of.exit_status}
    if of.major < 14:
        fields.setdefault("postgresql", {"version": f"{of.major:g}"})
    return run(*FIGURES, raw=files, tool="pgbench", **fields)


@pytest.fixture
def post(client, bearer):
    def sent(body, path="uploads/"):
        return client.post(f"/api/v1/{path}", body, "application/json", headers=bearer)

    return sent


def printed(of):
    """The last TPS that the tool printed in its summary, read by another way than the parser's.

    To 13 there are two lines, and the one without connections is meant.
    """
    found = re.findall(r"^tps = ([\d.]+)(.*)$", of.stdout, re.MULTILINE)
    excluding = [tps for tps, words in found if "including conn" not in words]
    return float(excluding[0]) if excluding else None


def by_version():
    """The recorded runs in batches, one for each folder."""
    folders = {}
    for each in all_samples():
        folders.setdefault(each.name.rpartition("/")[0], []).append(each)
    return folders.items()


@pytest.mark.parametrize(("folder", "samples"), by_version(), ids=lambda value: str(value)[:40])
def test_every_recorded_run_gives_what_it_printed_or_says_why_not(post, folder, samples):
    refused = post({"runs": [raw(each) for each in samples]}, "uploads/batch/")
    found = refused.json()["errors"] if refused.status_code == 400 else []
    unreadable = [samples[int(fault["pointer"].split("/")[2])] for fault in found]
    assert {fault["code"] for fault in found} <= {"not_pgbench_output", "not_a_run"}
    assert all(expected_status(each) == "failed" for each in unreadable)
    known = [each for each in samples if each not in unreadable]

    answer = post({"runs": [raw(each) for each in known]}, "uploads/batch/") if found else refused

    assert answer.status_code == 201, answer.content
    for each, row in zip(known, answer.json()["runs"], strict=True):
        expected = expected_status(each)
        stored = Run.objects.get(pk=row["id"])
        tps = stored.measurements.filter(metric__name="tps").first()
        assert row["state"] == STATES[expected], each.name
        if expected == "complete":
            assert (row["code"], row["message"]) == ("", "")
            if "skipped_corrected" not in {note["code"] for note in stored.quality}:
                assert tps.value == pytest.approx(printed(each), rel=1e-9), each.name
        else:
            assert row["code"], each.name
            assert row["message"], each.name
        if expected == "failed":
            assert not stored.measurements.exists(), each.name
    finished = [row for row in answer.json()["runs"] if row["state"] == "finished"]
    counted = CellSummary.objects.filter(metric__name="tps").aggregate(runs=Sum("n"))["runs"]
    assert counted == len(finished) or (not finished and counted is None)


def test_levels_and_versions_come_out_of_the_output(post):
    stored = Run.objects.get(pk=post(raw(GOOD)).json()["id"])

    assert stored.cell.levels["clients"] == int(
        re.search(r"number of clients: (\d+)", GOOD.stdout)[1]
    )
    assert (stored.tool_name, stored.tool_version) == ("pgbench", "18.6")
    assert stored.labels["query_mode"] == "simple"
    assert stored.series.filter(name="tps").exists()


def test_the_output_is_kept_as_it_came(post, client):
    stored = Run.objects.get(pk=post(raw(GOOD)).json()["id"])

    for name, content in (("stdout", GOOD.stdout), ("stderr", GOOD.stderr), ("exit_status", "0")):
        kept = client.get(f"/runs/{stored.pk}/artifacts/{name}/")
        assert b"".join(kept.streaming_content) == content.encode()


def test_a_text_alone_is_standard_output(post):
    answer = post(run(*FIGURES, raw=GOOD.stdout, tool={"name": "pgbench", "version": "18.6"}))

    assert (answer.status_code, answer.json()["state"]) == (201, "finished")


def test_files_are_taken_as_they_are(client, bearer):
    body = {
        "run": json.dumps(run(*FIGURES, tool="pgbench")),
        "exit_status": "0",
        "stdout": SimpleUploadedFile("out.txt", GOOD.stdout.encode()),
        "stderr": SimpleUploadedFile("err.txt", GOOD.stderr.encode()),
    }

    answer = client.post("/api/v1/uploads/", body, headers=bearer)

    assert answer.status_code == 201, answer.content
    stored = Run.objects.get(pk=answer.json()["id"])
    assert stored.measurements.get(metric__name="tps").value == printed(GOOD)


def test_files_under_a_key_are_stored_once_whatever_the_boundary(client, bearer):
    def send(boundary):
        parts = {"run": json.dumps(run(*FIGURES, tool="pgbench")), "stdout": GOOD.stdout}
        body = "".join(
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n'
            for name, text in parts.items()
        )
        return client.generic(
            "POST",
            "/api/v1/uploads/",
            f"{body}--{boundary}--\r\n",
            f"multipart/form-data; boundary={boundary}",
            headers={**bearer, "Idempotency-Key": "k"},
        )

    assert [send("one").status_code, send("two").status_code] == [201, 200]


def test_a_run_that_failed_is_stored_as_failed_with_the_reason(post):
    failed = sample("18.6/i_sql_error")

    answer = post(raw(failed)).json()

    assert (answer["state"], answer["code"]) == ("failed", "clients_aborted")
    assert "aborted" in answer["message"]


def faults(answer):
    assert answer.status_code == 400, answer.content
    assert not Run.objects.exists()
    return [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"tool": "sqlite-bench"}, ("/tool", "tool_unknown")),
        ({"raw": "hello"}, ("/raw", "not_pgbench_output")),
        ({"raw": {}}, ("/raw", "required")),
        ({"raw": {"stdout": 1.5}}, ("/raw/stdout", "not_a_string")),
        ({"raw": []}, ("/raw", "not_an_object")),
        ({"status": "finished"}, ("/status", "either_or")),
        ({"measurements": []}, ("/measurements", "either_or")),
        ({"levels": {"clients": 999}}, ("/levels/clients", "level_differs")),
        ({"tool": {"name": "pgbench", "version": "17"}}, ("/tool/version", "version_differs")),
    ],
)
def test_what_does_not_fit_the_output_is_refused(post, changes, fault):
    body = raw(GOOD) | changes

    assert fault in faults(post(body))


def test_an_unknown_tool_is_told_which_ones_are_known(post):
    answer = post(raw(GOOD) | {"tool": "nothing"})

    assert "pgbench" in answer.json()["detail"]


def test_a_nul_in_the_output_is_no_trouble(post):
    answer = post(run(*FIGURES, raw={"stdout": GOOD.stdout + "\0"}, tool="pgbench"))

    assert answer.status_code == 201
