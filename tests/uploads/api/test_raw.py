"""Raw output over the API: every recorded pgbench run, and what is kept of it."""

import json
import re
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db.models import Sum
from django.utils import timezone

from runs.models import (
    Campaign,
    Cell,
    CellSummary,
    Metric,
    Run,
    Scenario,
    Token,
    Upload,
)
from runs.reading import process
from tests import factories
from tests.api.upload_bodies import run
from tests.each import some
from tests.unit.tools.pgbench.samples import all_samples, sample
from tests.unit.tools.pgbench.test_adapter import expected_status
from tests.unit.tools.reading import sample as tool_sample

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
    """The recorded runs in batches, one for each folder; the parser by itself reads all of them."""
    folders = {}
    for each in all_samples():
        folders.setdefault(each.name.rpartition("/")[0], []).append(each)
    return some(folders.items())


@pytest.mark.parametrize(
    ("folder", "samples"), by_version(), ids=lambda value: str(value)[:40]
)
def test_every_recorded_run_gives_what_it_printed_or_says_why_not(
    post, folder, samples
):
    refused = post({"runs": [raw(each) for each in samples]}, "uploads/batch/")
    found = refused.json()["errors"] if refused.status_code == 400 else []
    unreadable = [samples[int(fault["pointer"].split("/")[2])] for fault in found]
    assert {fault["code"] for fault in found} <= {"not_pgbench_output", "not_a_run"}
    assert all(expected_status(each) == "failed" for each in unreadable)
    known = [each for each in samples if each not in unreadable]

    answer = (
        post({"runs": [raw(each) for each in known]}, "uploads/batch/")
        if found
        else refused
    )

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
    counted = CellSummary.objects.filter(metric__name="tps").aggregate(runs=Sum("n"))[
        "runs"
    ]
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

    for name, content in (
        ("stdout", GOOD.stdout),
        ("stderr", GOOD.stderr),
        ("exit_status", "0"),
    ):
        kept = client.get(f"/runs/{stored.pk}/artifacts/{name}/")
        assert b"".join(kept.streaming_content) == content.encode()


def test_a_text_alone_is_standard_output(post):
    answer = post(
        run(*FIGURES, raw=GOOD.stdout, tool={"name": "pgbench", "version": "18.6"})
    )

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
        parts = {
            "run": json.dumps(run(*FIGURES, tool="pgbench")),
            "stdout": GOOD.stdout,
        }
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


def test_a_failure_and_its_notes_are_told_in_the_readers_language(client, bearer):
    body = run(
        *FIGURES,
        raw={"stdout": GOOD.stdout, "stderr": "too %(late)s", "exit_status": 3},
    )
    body |= {"tool": "pgbench"}
    said = {
        "en": "The tool exited with status 3: too %(late)s",
        "ja": "ツールが終了ステータス 3 で終了しました: too %(late)s",
    }
    unknown = {
        "en": "Lines that BenchLab does not know: too %(late)s",
        "ja": "BenchLabが知らない行: too %(late)s",
    }
    for language, sentence in said.items():
        headers = bearer | {"Accept-Language": language}
        made = client.post(
            "/api/v1/uploads/", body, "application/json", headers=headers
        ).json()
        found = client.get(f"/api/v1/runs/{made['id']}/", headers=headers).json()
        assert made["message"] == found["message"] == sentence
        notes = {note["code"]: note["message"] for note in found["quality"]}
        assert notes == {"exit_status": sentence, "unknown_lines": unknown[language]}


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
        (
            {"tool": {"name": "pgbench", "version": "17"}},
            ("/tool/version", "version_differs"),
        ),
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


SIMPLE = sample("18.6/a_tpcb")


def edited(text, **changes):
    """An output with other lines: query_mode="prepared", tps="701.5"."""
    for name, value in changes.items():
        words = name.replace("_", " ")
        text = re.sub(
            rf"^({words}(?::| =) )[^\s]+.*$", rf"\g<1>{value}", text, flags=re.MULTILINE
        )
    return text


@pytest.fixture
def post_raw(client, bearer):
    def sent(stdout, **fields):
        body = (
            run(*FIGURES, raw={"stdout": stdout, "exit_status": 0}, tool="pgbench")
            | fields
        )
        return client.post("/api/v1/uploads/", body, "application/json", headers=bearer)

    return sent


PREPARED = edited(SIMPLE.stdout, query_mode="prepared")
READ = edited(SIMPLE.stdout, transaction_type="<builtin: select only>")
RETRIED = edited(SIMPLE.stdout, maximum_number_of_tries="10")
LIMITED = SIMPLE.stdout + "rate limit schedule lag: avg 0.1 (max 2.0) ms\n"
RECONNECTED = SIMPLE.stdout.replace(
    "without initial connection time", "including reconnection times"
)


@pytest.mark.parametrize(
    ("tool", "text", "again", "is_one"),
    [
        ("pgbench", SIMPLE.stdout, {}, True),
        (
            "pgbench",
            SIMPLE.stdout,
            {"job": "another", "started_at": "2026-02-01T10:00:00Z"},
            True,
        ),
        ("pgbench", SIMPLE.stdout, {"raw": SIMPLE.stdout.replace("\n", "\r\n")}, True),
        ("pgbench", SIMPLE.stdout, {"external_id": "mine"}, False),
        ("pgbench", SIMPLE.stdout, {"revision": {"sha": "1234567"}}, False),
        ("pgbench", SIMPLE.stdout, {"campaign": "weekly"}, False),
        ("lines", "tps=1203.51 tps\nlatency_average=3.25 ms\n", {}, True),
    ],
)
def test_a_text_that_is_sent_again_is_the_same_run(post_raw, tool, text, again, is_one):
    first, second = (post_raw(text, **({"tool": tool} | more)) for more in ({}, again))

    assert (first.status_code, second.status_code) == (201, 200 if is_one else 201)
    assert second.json()["stored_before"] is is_one
    assert (first.json()["id"] == second.json()["id"]) is is_one


def test_what_is_new_of_several_is_stored_beside_what_is_there(
    client, bearer, post_raw
):
    there = post_raw(SIMPLE.stdout).json()["id"]
    one = run(*FIGURES, raw=SIMPLE.stdout, tool="pgbench")
    body = {"runs": [run(*FIGURES, raw=PREPARED, tool="pgbench"), one, one]}

    for expected in (3, 3):
        answer = client.post(
            "/api/v1/uploads/batch/", body, "application/json", headers=bearer
        )
        ids = [each["id"] for each in answer.json()["runs"]]
        assert ids[1] == there
        assert Run.objects.count() == len(set(ids)) == expected


def test_simple_and_prepared_are_no_repeats_of_each_other(post_raw):
    texts = (SIMPLE.stdout, PREPARED)
    answers = [
        post_raw(text, round=number).json() for number in (1, 2) for text in texts
    ]

    assert [answer["repeat"] for answer in answers] == [1, 1, 2, 2]
    levels = [cell.levels.get("query_mode") for cell in Cell.objects.order_by("pk")]
    assert levels == [None, "prepared"]


def test_each_part_of_a_workload_parts_cells(post_raw):
    texts = (SIMPLE.stdout, PREPARED, READ, RETRIED, LIMITED, RECONNECTED)

    assert [post_raw(text).json()["repeat"] for text in texts] == [1] * 6
    known = [
        set(cell.levels) - set(Cell.objects.earliest("pk").levels)
        for cell in Cell.objects.order_by("pk")
    ]
    assert known == [
        set(),
        {"query_mode"},
        {"script"},
        {"max_tries"},
        {"rate"},
        {"connection"},
    ]


def test_what_the_uploader_says_of_script_and_rate_stands_for_what_was_read(post_raw):
    post_raw(LIMITED, workload={"rate": 500, "script": "mine"})

    cell = Cell.objects.get()
    assert (cell.levels["rate"], cell.levels["script"]) == (500, "mine")


def test_what_the_output_says_is_not_contradicted(post_raw):
    answer = post_raw(PREPARED, workload={"query_mode": "simple"})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "/workload/query_mode"


def test_figures_without_raw_output_say_their_workload(client, bearer):
    def send(**fields):
        return client.post(
            "/api/v1/uploads/", run(**fields), "application/json", headers=bearer
        )

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
def test_another_workload_is_never_faster_or_slower(post_raw, client, other):
    for _each in range(3):
        post_raw(SIMPLE.stdout, revision=revision(1))
        assert post_raw(other, revision=revision(2)).json()["state"] == "finished"

    body = verdict(client, campaign="nightly")

    assert body["overall"] == "not_comparable"
    assert [reason["code"] for reason in body["rows"][0]["reasons"]] == [
        "workload_differs"
    ]


def test_versions_that_print_more_and_less_are_compared(post_raw, client):
    old, new = sample("13.12/a_tpcb"), sample("18.6/a_tpcb")
    for number, each in enumerate((old, new) * 3):
        post_raw(each.stdout, postgresql={"version": each.version}, round=number // 2)

    body = verdict(
        client,
        base="campaign:nightly~version=13.12",
        head="campaign:nightly~version=18.6",
    )

    (row,) = body["rows"]
    assert row["verdict"] != "not_comparable"
    assert (row["base"]["n"], row["head"]["n"]) == (3, 3)


def test_an_output_without_a_version_needs_one_and_says_what_to_add(post_raw):
    old = sample("13.12/a_tpcb")

    fault = post_raw(old.stdout).json()["errors"][0]
    assert (fault["pointer"], fault["code"]) == (
        "/postgresql/version",
        "version_unknown",
    )
    assert '"postgresql": {"version": "13.12"}' in fault["message"]
    assert not Run.objects.exists()
    assert post_raw(old.stdout, levels={"version": "13"}).status_code == 201
    assert post_raw(old.stdout, postgresql={"version": "13.12"}).status_code == 201


def test_the_version_of_a_server_with_one_installation_is_that_of_its_runs(post_raw):
    factories.server("db1", versions=["13.12"])
    factories.server("db2", versions=["13.12", "14.9"])
    old = sample("13.12/a_tpcb").stdout

    assert post_raw(old, server="db1").status_code == 201
    assert Cell.objects.get().version == "13.12"
    assert post_raw(old, server="db2").status_code == 400


def test_packaged_versions_are_understood(post_raw):
    for number, text in enumerate(
        ("18.6 (Ubuntu 18.6-1.pgdg22.04+1)", "18.6 (e21737f)", "18.6")
    ):
        answer = post_raw(SIMPLE.stdout, postgresql={"version": text}, round=number)
        assert answer.status_code == 201, answer.content

    assert {each.server_version for each in Run.objects.all()} == {"18.6"}
    assert Cell.objects.count() == 1


# Uploads at their limits: what is too much, or comes from who may not, leaves nothing behind.


def send(client, token, body, path="uploads/"):
    header = {"Authorization": f"Bearer {token}", "Idempotency-Key": "k"}
    data = json.dumps(body)
    return client.generic(
        "POST", f"/api/v1/{path}", data, "application/json", headers=header
    )


def numbers(count):
    return [
        {"metric": f"m{number}", "value": number, "unit": "", "direction": "higher"}
        for number in range(count)
    ]


def assert_nothing_is_stored():
    for model in (Run, Campaign, Scenario, Metric, Upload):
        assert not model.objects.exists(), model


def test_a_run_with_a_hundred_thousand_measurements_is_refused(client, make_token):
    answer = send(client, make_token(), run(measurements=numbers(100_000)))

    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (400, "too_many")
    assert_nothing_is_stored()


def test_a_batch_of_a_thousand_runs_is_stored(client, make_token):
    """With a hundred measurements each by script/test --all."""
    few = some([{"metric": f"m{number}", "value": 1.5} for number in range(100)], 10)
    known = send(client, make_token(), run(measurements=numbers(100)))
    assert known.status_code == 201
    body = {
        "runs": [
            run(measurements=few, levels={"clients": 8 + each}) for each in range(1000)
        ]
    }

    header = {"Authorization": f"Bearer {make_token()}"}
    answer = client.post(
        "/api/v1/uploads/batch/", body, "application/json", headers=header
    )

    assert answer.status_code == 201, answer.content[:500]
    assert Run.objects.count() == 1001


def test_an_expired_token_stores_nothing(client, make_token):
    token = make_token("upload")
    Token.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    answer = send(client, token, run())

    assert (answer.status_code, answer.json()["code"]) == (401, "token_expired")
    assert_nothing_is_stored()


@pytest.mark.parametrize("path", ["uploads/", "uploads/batch/"])
def test_a_token_without_the_scope_stores_nothing(client, make_token, path):
    body = run() if path == "uploads/" else {"runs": [run()]}

    answer = send(client, make_token("read", "queue"), body, path)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert_nothing_is_stored()


def test_a_clock_that_is_two_days_ahead_stores_nothing(client, make_token):
    ahead = (timezone.now() + timedelta(days=2)).isoformat()

    answer = send(client, make_token(), run(started_at=ahead))

    assert answer.json()["errors"][0]["code"] == "in_the_future"
    assert_nothing_is_stored()


def test_monitors_beside_an_output_become_series(post):
    body = raw(GOOD)
    body["raw"]["vmstat"] = tool_sample("vmstat", "1_4.txt").decode()

    answer = post(body)

    assert answer.status_code == 201, answer.content
    stored = Run.objects.get()
    assert stored.series.get(name="cpu_idle").unit == "%"
    assert "vmstat" in set(stored.artifacts.values_list("name", flat=True))


def test_a_refusal_is_in_the_readers_language(client, bearer):
    body = run(*FIGURES, raw="<html>502</html>", tool="pgbench")

    answer = client.post(
        "/api/v1/uploads/",
        body,
        "application/json",
        headers=bearer | {"accept-language": "ja"},
    )

    (fault,) = answer.json()["errors"]
    assert fault["code"] == "web_page"
    assert fault["message"] == "これはHTMLページで、pgbenchの出力ではありません。"


def test_an_output_that_takes_too_long_is_refused_with_the_reason(post, monkeypatch):
    monkeypatch.setattr(process, "WAIT_SECONDS", 0.01)
    large = GOOD.stdout + "progress: x\n" * process.SMALL_CHARACTERS

    answer = post(run(*FIGURES, raw=large, tool="pgbench"))

    assert answer.status_code == 422
    assert answer.json()["code"] == "reading_too_slow"
    assert answer.json()["errors"][0]["pointer"] == "/raw"
    assert not Run.objects.exists()


def test_a_large_output_is_read_as_a_small_one(post):
    text = GOOD.stdout
    small = post(run(*FIGURES, raw=text, tool="pgbench", external_id="small")).json()
    more = {"stdout": text, "postgresql.log": f"LOG:  {'x' * 60}\n" * 2_000}
    large = post(run(*FIGURES, raw=more, tool="pgbench", external_id="large")).json()

    figures = [
        set(
            Run.objects.get(pk=answer["id"]).measurements.values_list(
                "metric__name", "value"
            )
        )
        for answer in (small, large)
    ]
    assert figures[0] == figures[1] != set()
