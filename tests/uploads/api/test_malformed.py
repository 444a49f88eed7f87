"""Requests that are wrong: each is refused with its place and a remedy, and leaves nothing."""

import gc
import json
import logging
import re
import tracemalloc
from datetime import UTC, datetime, timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from runs.models import (
    Campaign,
    Measurement,
    Metric,
    Revision,
    Run,
    Scenario,
    Series,
    Upload,
)
from runs.shared.api.errors import REMEDIES
from tests.api.upload_bodies import changed, run
from tests.api.web_server import ROOT
from tests.each import check_each
from tests.unit.tools.pgbench.samples import sample

pytestmark = pytest.mark.django_db

FAR = f"{datetime.now(UTC) + timedelta(days=3):%Y-%m-%d}T00:00:00+00:00"
HUGE = 10**400
GOOD = run()
ONE = {"metric": "other", "unit": "ms", "direction": "lower", "value": 1.0}
OUTPUT = sample("18.6/a_tpcb").stdout
LOADING = sample("18.6/k_init_s1")


def nested(levels):
    made = {}
    for _each in range(levels):
        made = {"a": made}
    return {"facts": made}


def one(**fields):
    """A measurement of a metric of its own."""
    return [{**ONE, **fields}]


def series(**fields):
    return [{"name": "cpu", "values": [1.0], **fields}]


def commit(**fields):
    return {"sha": "abcdef0", **fields}


def settings(**named):
    return {"version": "18.1", "settings": named}


# The place that is changed, its value, and where the fault is.
FIELDS = [
    ("campaign", None, "/campaign", "required"),
    ("campaign", "", "/campaign", "required"),
    ("campaign", "two words", "/campaign", "not_a_slug"),
    ("campaign", 5, "/campaign", "not_a_string"),
    ("campaign", "x" * 121, "/campaign", "too_long"),
    ("campaign_title", "x" * 201, "/campaign_title", "too_long"),
    ("scenario", "no/slug", "/scenario", "not_a_slug"),
    ("levels", [], "/levels", "not_an_object"),
    ("levels", {"clients": [1]}, "/levels/clients", "not_a_level"),
    ("levels", {"a/b": None}, "/levels/a~1b", "not_a_level"),
    ("levels", {"clients": HUGE}, "/levels/clients", "not_a_level"),
    ("levels", {"clients": ""}, "/levels/clients", "not_a_level"),
    ("levels", {"x": "y" * 101}, "/levels/x", "too_long"),
    ("levels", {"x" * 101: 1}, "/levels/" + "x" * 100, "too_long"),
    ("levels", {f"{i}": i for i in range(21)}, "/levels", "too_many"),
    ("levels", {f"{i}" * 50: "y" * 90 for i in range(3)}, "/levels", "too_long"),
    ("started_at", None, "/started_at", "required"),
    ("started_at", "yesterday", "/started_at", "not_a_time"),
    ("started_at", "2026-01-31", "/started_at", "not_a_time"),
    ("started_at", 1700000000, "/started_at", "not_a_time"),
    ("started_at", "2026-01-31T02:00:00", "/started_at", "no_time_zone"),
    ("started_at", "1994-01-31T02:00:00Z", "/started_at", "too_old"),
    ("started_at", FAR, "/started_at", "in_the_future"),
    ("started_at", "9999-12-31T23:59:59-23:00", "/started_at", "in_the_future"),
    ("finished_at", "2026-01-31T01:59:59Z", "/finished_at", "negative_time"),
    ("status", None, "/status", "required"),
    ("status", "ok", "/status", "invalid_choice"),
    ("status", ["finished"], "/status", "invalid_choice"),
    ("status", "failed", "/measurements", "failed_with_figures"),
    ("reason", "why", "/reason", "either_or"),
    ("server", "!", "/server", "not_a_slug"),
    ("hardware", [], "/hardware", "not_an_object"),
    ("hardware", {}, "/hardware", "empty"),
    ("hardware", {"cpu": "x"}, "/hardware/cpu", "unknown_field"),
    ("hardware", {"cores": -1}, "/hardware/cores", "out_of_range"),
    ("hardware", {"cores": 1.5}, "/hardware/cores", "out_of_range"),
    ("hardware", {"cores": True}, "/hardware/cores", "out_of_range"),
    ("hardware", {"memory_bytes": HUGE}, "/hardware/memory_bytes", "out_of_range"),
    ("hardware", {"name": "x\u0000"}, "/hardware/name", "not_storable"),
    ("hardware", {"facts": {"a": ["\u0000"]}}, "/hardware/facts", "not_storable"),
    ("environment", {"os_name": "x" * 201}, "/environment/os_name", "too_long"),
    ("environment", {"os": "x"}, "/environment/os", "unknown_field"),
    ("postgresql", {"version": "new"}, "/postgresql/version", "not_a_version"),
    ("postgresql", {"settings": {"a": []}}, "/postgresql/settings/a", "not_a_string"),
    ("postgresql", {"port": 1}, "/postgresql/port", "unknown_field"),
    ("tool", {"version": "1"}, "/tool/name", "required"),
    ("tool", "x" * 41, "/tool", "too_long"),
    ("measurements", {}, "/measurements", "not_a_list"),
    ("measurements", [], "/measurements", "required"),
    ("measurements/0", 5, "/measurements/0", "not_an_object"),
    ("measurements/1/metric", "", "/measurements/1/metric", "required"),
    ("measurements/1/metric", "a b", "/measurements/1/metric", "not_a_slug"),
    ("measurements/1/metric", "tps", "/measurements/1/metric", "repeated"),
    ("measurements/1/metric", "x" * 81, "/measurements/1/metric", "too_long"),
    ("measurements/0/value", None, "/measurements/0/value", "required"),
    ("measurements/0/value", "5", "/measurements/0/value", "not_a_number"),
    ("measurements/0/value", True, "/measurements/0/value", "not_a_number"),
    ("measurements/0/value", HUGE, "/measurements/0/value", "out_of_range"),
    ("measurements/1/value", -0.1, "/measurements/1/value", "negative_time"),
    ("measurements/0/samples", [1], "/measurements/0/value", "either_or"),
    ("measurements/0/unit", 5, "/measurements/0/unit", "not_a_string"),
    ("measurements/0/unit", "x" * 41, "/measurements/0/unit", "too_long"),
    ("measurements/0/direction", "up", "/measurements/0/direction", "invalid_choice"),
    ("measurements/0/n", 3, "/measurements/0/n", "unknown_field"),
    ("series", [{"name": "x"}], "/series/0/values", "required"),
    ("series", [{"name": "x", "values": ["1"]}], "/series/0/values/0", "not_a_number"),
    ("series", [{"name": "x", "values": [1e39]}], "/series/0/values/0", "not_a_number"),
    ("series", [{"name": "x", "values": [HUGE]}], "/series/0/values/0", "not_a_number"),
    ("series", [{"name": "x y", "values": [1]}], "/series/0/name", "not_a_slug"),
    (
        "series",
        [{"name": "x", "values": [1], "start": -1}],
        "/series/0/start",
        "negative_time",
    ),
    (
        "series",
        [{"name": "x", "values": [1], "interval": 0}],
        "/series/0/interval",
        "out_of_range",
    ),
    ("series", 2 * [{"name": "x", "values": [1]}], "/series/1/name", "repeated"),
    (
        "series",
        [{"name": "x", "values": 200_001 * [1]}],
        "/series/0/values",
        "too_many",
    ),
    ("revision", {}, "/revision/sha", "required"),
    ("revision", {"sha": "main"}, "/revision/sha", "not_a_sha"),
    ("revision", {"sha": "0" * 40}, "/revision/sha", "not_a_sha"),
    (
        "revision",
        {"sha": "abcdef0", "url": "javascript:x"},
        "/revision/url",
        "not_a_url",
    ),
    (
        "revision",
        {"sha": "abcdef0", "parents": [1]},
        "/revision/parents/0",
        "not_a_sha",
    ),
    (
        "revision",
        {"sha": "abcdef0", "committed_at": FAR},
        "/revision/committed_at",
        "in_the_future",
    ),
    ("labels", {"a": None}, "/labels/a", "not_a_string"),
    ("labels", {"a": "x" * 501}, "/labels/a", "too_long"),
    ("labels", {f"{i}": "" for i in range(51)}, "/labels", "too_many"),
    ("labels", {"a\u0000": ""}, "/labels/a\u0000", "not_storable"),
    ("labels", {"a\ud800": ""}, "/labels/a\\ud800", "not_storable"),
    ("labels", {"a": "\ud800"}, "/labels/a", "not_storable"),
    ("external_id", "x" * 201, "/external_id", "too_long"),
    ("round", -1, "/round", "out_of_range"),
    ("round", True, "/round", "out_of_range"),
    ("round", 1.5, "/round", "out_of_range"),
    ("tps", 5, "/tps", "unknown_field"),
    ("raw", "text", "/tool", "tool_unknown"),
    ("levels", {"repeat": 1}, "/levels/repeat", "reserved"),
    ("levels", {"": 1}, "/levels/", "not_a_name"),
    ("levels", {" ": 1}, "/levels/ ", "not_a_name"),
    ("levels", {"mode": "  "}, "/levels/mode", "not_a_level"),
    ("levels", {"clients": -4}, "/levels/clients", "out_of_range"),
    ("levels", {"threads": 0}, "/levels/threads", "out_of_range"),
    ("levels", {"scale": -0.5}, "/levels/scale", "out_of_range"),
    ("levels", {"version": "999.1"}, "/levels/version", "not_a_version"),
    ("measurements", one(value=-5), "/measurements/0/value", "negative_time"),
    ("measurements", one(value=1e13), "/measurements/0/value", "out_of_range"),
    ("measurements", one(unit="tps", value=-1), "/measurements/0/value", "negative"),
    ("measurements", one(unit="rows", value=-1), "/measurements/0/value", "negative"),
    ("measurements", one(unit="MB/s", value=-1), "/measurements/0/value", "negative"),
    ("measurements", one(unit="KiB", value=-0.1), "/measurements/0/value", "negative"),
    (
        "measurements",
        one(unit="tps", value=1e13),
        "/measurements/0/value",
        "out_of_range",
    ),
    ("measurements", one(unit="", value=1e99), "/measurements/0/value", "out_of_range"),
    ("measurements/1/value", 0, "/measurements/1/value", "negative"),
    (
        "measurements",
        [{"metric": "tps", "value": -1}],
        "/measurements/0/value",
        "negative",
    ),
    (
        "measurements",
        [{"metric": "latency_p99", "samples": [1, -5, 1]}],
        "/measurements/0/samples",
        "negative_time",
    ),
    (
        "measurements",
        one(value=None, samples=[1, -2]),
        "/measurements/0/samples",
        "negative_time",
    ),
    (
        "measurements",
        one(value=None, samples=[]),
        "/measurements/0/samples",
        "required",
    ),
    (
        "measurements",
        one(value=None, samples="12"),
        "/measurements/0/samples",
        "not_a_list",
    ),
    (
        "measurements",
        one(value=None, samples=[1, None]),
        "/measurements/0/samples/1",
        "not_a_number",
    ),
    (
        "measurements",
        one(value=None, samples=10_001 * [1]),
        "/measurements/0/samples",
        "too_many",
    ),
    ("measurements", 1001 * one(), "/measurements", "too_many"),
    ("series", series(interval=1e-300), "/series/0/interval", "out_of_range"),
    ("series", series(interval=1e99), "/series/0/interval", "out_of_range"),
    ("series", series(interval=1e9), "/series/0/interval", "out_of_range"),
    ("series", series(interval="1"), "/series/0/interval", "not_a_number"),
    ("series", series(start=1e9), "/series/0/start", "out_of_range"),
    ("series", series(values=[None, None]), "/series/0/values", "empty"),
    ("series", series(values=[]), "/series/0/values", "required"),
    ("series", series(values={}), "/series/0/values", "not_a_list"),
    ("series", series(points=[1]), "/series/0/points", "unknown_field"),
    ("series", 101 * series(), "/series", "too_many"),
    ("postgresql", {"version": "999.1"}, "/postgresql/version", "not_a_version"),
    ("postgresql", {"version": "9.7.1"}, "/postgresql/version", "not_a_version"),
    ("postgresql", {"version": "5"}, "/postgresql/version", "not_a_version"),
    (
        "postgresql",
        settings(work_memm="4MB"),
        "/postgresql/settings/work_memm",
        "unknown_setting",
    ),
    (
        "postgresql",
        {"settings": {"a b": "1"}},
        "/postgresql/settings/a b",
        "unknown_setting",
    ),
    (
        "postgresql",
        settings(work_mem=None),
        "/postgresql/settings/work_mem",
        "not_a_string",
    ),
    (
        "postgresql",
        settings(work_mem="x" * 10_001),
        "/postgresql/settings/work_mem",
        "too_long",
    ),
    ("postgresql", "18.1", "/postgresql", "not_an_object"),
    ("hardware", 5, "/hardware", "not_an_object"),
    ("hardware", {"cores": 10**9}, "/hardware/cores", "out_of_range"),
    ("hardware", {"sockets": 0}, "/hardware/sockets", "out_of_range"),
    ("hardware", {"threads": 10**9}, "/hardware/threads", "out_of_range"),
    ("hardware", {"memory_bytes": 16}, "/hardware/memory_bytes", "out_of_range"),
    ("hardware", {"memory_bytes": 2**60}, "/hardware/memory_bytes", "out_of_range"),
    ("hardware", nested(150), "/hardware/facts", "too_deep"),
    ("environment", nested(20), "/environment/facts", "too_deep"),
    ("environment", 5, "/environment", "not_an_object"),
    ("environment", {}, "/environment", "empty"),
    ("tool", 5, "/tool", "not_an_object"),
    ("tool", {"name": "x", "v": "1"}, "/tool/v", "unknown_field"),
    ("raw", 5, "/raw", "not_an_object"),
    ("raw", {}, "/raw", "required"),
    ("raw", {"exit_status": "abc"}, "/raw/exit_status", "not_a_number"),
    ("raw", {"stdout": 1.5}, "/raw/stdout", "not_a_string"),
    ("revision", commit(parents=["abcdef0"]), "/revision/parents/0", "own_parent"),
    ("revision", commit(parents=["ABCDEF0123"]), "/revision/parents/0", "own_parent"),
    ("revision", commit(parents=["beefbee"] * 2), "/revision/parents/1", "repeated"),
    ("revision", commit(parents="beefbee"), "/revision/parents", "not_a_list"),
    ("revision", commit(parents=["beefbee"] * 101), "/revision/parents", "too_many"),
    ("revision", commit(branch="main"), "/revision/branch", "unknown_field"),
    (
        "revision",
        commit(committed_at="2026-01-31"),
        "/revision/committed_at",
        "not_a_time",
    ),
    ("revision", commit(subject="x" * 201), "/revision/subject", "too_long"),
    ("revision", commit(author="x" * 101), "/revision/author", "too_long"),
    ("revision", commit(author={"name": "J"}), "/revision/author", "not_a_string"),
    ("revision", commit(merge_base="abcdef0"), "/revision/merge_base", "not_an_object"),
    ("revision", commit(merge_base={}), "/revision/merge_base/sha", "required"),
    (
        "revision",
        commit(merge_base={"sha": "main"}),
        "/revision/merge_base/sha",
        "not_a_sha",
    ),
    ("revision", "abcdef0", "/revision", "not_an_object"),
    ("workload", {"mode": "x"}, "/workload/mode", "unknown_field"),
    ("workload", [], "/workload", "not_an_object"),
    ("labels", [], "/labels", "not_an_object"),
    ("labels", {"a": []}, "/labels/a", "not_a_string"),
    ("server", "nowhere", "/server", "server_unknown"),
    ("scenario", "other", "/scenario", "scenario_differs"),
    ("configuration", "none", "/configuration", "configuration_differs"),
    ("hardware", "nothing", "/hardware", "hardware_unknown"),
    ("environment", "nothing", "/environment", "environment_unknown"),
    ("levels", {"clients": "8"}, "/levels/clients", "level_twice"),
    ("levels", {"clients": 8.0}, "/levels/clients", "level_twice"),
    ("measurements/0/metric", "TPS", "/measurements/0/metric", "metric_case"),
    (
        "measurements",
        [{"metric": "m", "value": 1}],
        "/measurements/0/direction",
        "metric_unknown",
    ),
    (
        "measurements",
        [{"metric": "m", "value": 1, "direction": "lower"}],
        "/measurements/0/unit",
        "metric_unknown",
    ),
    ("measurements/0/unit", "per minute", "/measurements/0/unit", "metric_conflict"),
    (
        "measurements/1/direction",
        "higher",
        "/measurements/1/direction",
        "metric_conflict",
    ),
    ("series", series(name="tps", unit="ms"), "/series/0/unit", "metric_conflict"),
]


def old(version, started_at):
    return run(postgresql={"version": version}, started_at=started_at)


def raw(**files):
    fields = ("measurements", "status", "levels")
    return run(*fields, tool="pgbench", raw={"stdout": OUTPUT, **files})


# Complete bodies of a run.
BODIES = [
    (old("18.1", "1996-01-31T00:00:00Z"), "/started_at", "too_old"),
    (old("9.2.24", "2005-01-31T00:00:00Z"), "/started_at", "too_old"),
    (run(server="a", hardware={"cores": 2}), "/hardware", "either_or"),
    (
        run(levels={"version": "17"}, postgresql={"version": "18.1"}),
        "/levels/version",
        "version_differs",
    ),
    (raw(exit_status="abc"), "/raw/exit_status", "not_a_number"),
    (raw(**{"..": "x"}), "/raw/..", "not_a_name"),
    (raw() | {"measurements": []}, "/measurements", "either_or"),
    (raw() | {"levels": {"clients": 99}}, "/levels/clients", "level_differs"),
    (
        raw() | {"postgresql": {"version": "17.1"}},
        "/postgresql/version",
        "version_differs",
    ),
    (raw() | {"tool": "unheard_of"}, "/tool", "tool_unknown"),
    (raw(stdout="hello\n"), "/raw", "not_pgbench_output"),
    (
        raw(stdout="pgbench is a benchmarking tool for PostgreSQL.\n\nUsage:\n"),
        "/raw",
        "not_a_run",
    ),
    (raw(stdout="pgbench (PostgreSQL) 18.1\n"), "/raw", "not_a_run"),
    (raw(stdout=LOADING.stdout, stderr=LOADING.stderr), "/raw", "not_a_run"),
    (
        raw(stdout=sample("13.12/a_tpcb").stdout),
        "/postgresql/version",
        "version_unknown",
    ),
]

# What the body is as bytes, and further headers.
TEXTS = [
    (b"", {}, 415, "/Content-Type", "unsupported_media_type"),
    (b"   ", {}, 400, "/", "not_json"),
    (b"[]", {}, 400, "/", "not_an_object"),
    (b"5", {}, 400, "/", "not_an_object"),
    (b"null", {}, 400, "/", "not_an_object"),
    (b"{", {}, 400, "/", "not_json"),
    (b"{'a': 1}", {}, 400, "/", "not_json"),
    (b'{"a": NaN}', {}, 400, "/", "not_json"),
    (
        b'{"hardware": {"facts": {"a": 1e400}}}',
        {},
        400,
        "/hardware/facts",
        "not_finite",
    ),
    (b'{"a": ' + b"9" * 5000 + b"}", {}, 400, "/", "not_json"),
    (b"[" * 100_000, {}, 400, "/", "not_json"),
    (b"\xff\xfe{}", {}, 400, "/", "not_utf_8"),
    (b'{"campaign": "a", "campaign": "b"}', {}, 400, "/campaign", "repeated_key"),
    (b'{"levels": {"a/b": 1, "a/b": 2}}', {}, 400, "/levels/a~1b", "repeated_key"),
    (
        b'{"series": [{}, {"name": 1, "name": 2}]}',
        {},
        400,
        "/series/1/name",
        "repeated_key",
    ),
    (b'{"a": "' + b"x" * (10 * 2**20) + b'"}', {}, 413, "/", "too_large"),
    (b"{}", {"Content-Encoding": "gzip"}, 400, "/", "not_gzip"),
    (b"{}", {"Content-Encoding": "br"}, 415, "/Content-Type", "unsupported_media_type"),
    (
        b"{}",
        {"Content-Type": "text/plain"},
        415,
        "/Content-Type",
        "unsupported_media_type",
    ),
    (
        b"{}",
        {"Content-Type": "application/json; charset=latin1"},
        400,
        "/",
        "not_utf_8",
    ),
    (
        b"{}",
        {"Content-Type": "multipart/form-data; boundary=x"},
        400,
        "/",
        "not_multipart",
    ),
    (b"{}", {"Content-Type": "multipart/form-data"}, 400, "/", "not_multipart"),
    (
        json.dumps(GOOD).encode(),
        {"Idempotency-Key": ""},
        400,
        "/Idempotency-Key",
        "not_a_key",
    ),
    (
        json.dumps(GOOD).encode(),
        {"Idempotency-Key": " "},
        400,
        "/Idempotency-Key",
        "not_a_key",
    ),
    (
        json.dumps(GOOD).encode(),
        {"Idempotency-Key": "x" * 201},
        400,
        "/Idempotency-Key",
        "not_a_key",
    ),
]

BATCHES = [
    ({}, "/runs", "required"),
    ({"runs": []}, "/runs", "required"),
    ({"runs": {}}, "/runs", "not_a_list"),
    ({"runs": 1001 * [1]}, "/runs", "too_many"),
    ({"runs": [GOOD], "all": True}, "/all", "unknown_field"),
    ({"runs": [GOOD, 5]}, "/runs/1", "not_an_object"),
    ({"runs": [GOOD, run("campaign")]}, "/runs/1/campaign", "required"),
    ({"runs": 2 * [run(external_id="7")]}, "/runs/1/external_id", "repeated"),
    (
        {"runs": [GOOD, changed("measurements/1/value", -1)]},
        "/runs/1/measurements/1/value",
        "negative_time",
    ),
]

FORM = {"Content-Type": "multipart/form-data; boundary=x"}
LISTS = (
    "campaigns",
    "changes",
    "runs",
    "measurements",
    "configurations",
    "hardware",
    "scenarios",
    "schedules",
    "servers",
    "sources",
    "webhooks",
    "compare",
    "history",
)
QUERIES = [
    *((f"{name}/?x=1", "?x", "unknown_parameter") for name in LISTS),
    ("runs/?state=", "?state", "empty_parameter"),
    ("runs/?state=finished&state=failed", "?state", "repeated_parameter"),
    ("runs/?format=AAA", "?format", "unknown_format"),
    ("runs/?page_size=0", "?page_size", "invalid"),
    ("runs/?cursor=x", "?cursor", "invalid"),
    ("runs/?state=none", "?state", "invalid_choice"),
    ("compare/?base=revision:main", "?head", "required"),
    ("compare/?campaign=nightly&head=main", "?head", "not_a_side"),
    (
        "compare/?campaign=nowhere&base=revision:a&head=revision:b",
        "?campaign",
        "unknown_campaign",
    ),
    ("compare/?base=run:1&head=run:2&effect=-1", "?effect", "out_of_range"),
    ("compare/?base=run:1&head=run:2&metric=none", "?metric", "unknown_metric"),
    ("compare/?base=run:1&head=run:2&level=clients", "?level", "not_a_level"),
    ("compare/?base=run:1&head=run:2&ignore=all", "?ignore", "invalid_choice"),
    ("history/", "?campaign", "required"),
    ("history/?campaign=nightly&metric=none", "?metric", "unknown_metric"),
]


@pytest.fixture
def ask(client, make_token):
    """Send a request and give the answer. A good run is there already."""

    bearer = {"Authorization": f"Bearer {make_token('read', 'upload', 'admin')}"}

    def asked(method, path, data="", content_type="application/json", **headers):
        if not isinstance(data, bytes | str):
            data = json.dumps(data)
        given = bearer | headers
        return client.generic(
            method, f"/api/v1/{path}", data, content_type, headers=given
        )

    assert asked("POST", "uploads/", GOOD).status_code == 201
    return asked


def stored():
    kept = (Campaign, Measurement, Metric, Revision, Run, Scenario, Series, Upload)
    return [model.objects.count() for model in kept]


def check(answer, pointer, code, *statuses):
    assert answer.status_code in (statuses or (400, 422)), answer.content[:300]
    assert answer.headers["Content-Type"] == "application/problem+json"
    faults = answer.json()["errors"]
    assert (pointer, code) in [(each["pointer"], each["code"]) for each in faults], (
        faults[:5]
    )
    for each in faults:
        assert each["message"], each
        assert each.get("remedy"), f"no remedy for {each['code']}"


def send_form(client, bearer, parts):
    return client.post("/api/v1/uploads/", parts, headers=bearer)


def forms():
    fields = json.dumps(run("measurements", "status", "levels", tool="pgbench"))
    file = SimpleUploadedFile
    out = OUTPUT.encode()
    return [
        (
            {"run": fields, "stdout": [file("a", out), file("b", out)]},
            "/stdout",
            "repeated",
        ),
        ({"run": [fields, fields], "stdout": file("a", out)}, "/run", "repeated"),
        (
            {"run": fields, "stdout": file("a", out), "exit_status": "abc"},
            "/raw/exit_status",
            "not_a_number",
        ),
        ({"run": fields, "stdout": file("a", out), "..": "x"}, "/raw/..", "not_a_name"),
        ({"run": "{", "stdout": file("a", out)}, "/", "not_json"),
        ({"stdout": file("a", out)}, "/campaign", "required"),
    ]


def test_every_malformed_request_is_refused_with_its_place_and_a_remedy(
    ask, client, bearer
):
    before = stored()
    asked = []

    def refused(case):
        send, pointer, code, *statuses = case
        asked.append(code)
        check(send(), pointer, code, *statuses)
        assert stored() == before, "something was stored"

    def post(body, path="uploads/", **headers):
        kind = headers.pop("Content-Type", "application/json")
        return lambda: ask("POST", path, body, kind, **headers)

    check_each(
        [
            *(
                (post(changed(path, value)), at, code)
                for path, value, at, code in FIELDS
            ),
            *((post(body), at, code) for body, at, code in BODIES),
            *(
                (post(text, **more), at, code, status)
                for text, more, status, at, code in TEXTS
            ),
            *((post(body, "uploads/batch/"), at, code) for body, at, code in BATCHES),
            *(
                ((lambda parts=parts: send_form(client, bearer, parts)), at, code)
                for parts, at, code in forms()
            ),
            *(
                (lambda path=path: ask("GET", path), at, code)
                for path, at, code in QUERIES
            ),
            (post(GOOD, "uploads/?x=1"), "?x", "unknown_parameter"),
            (post({"runs": [GOOD]}, "uploads/batch/?x=1"), "?x", "unknown_parameter"),
            (
                post(b"--x--", "uploads/batch/", **FORM),
                "/Content-Type",
                "unsupported_media_type",
                415,
            ),
            (
                lambda: ask("PATCH", "campaigns/nightly/", {"tracked_ref": "nowhere"}),
                "/tracked_ref",
                "unknown_ref",
            ),
        ],
        refused,
    )
    assert len(asked) >= 170


def test_levels_that_are_too_long_are_told_beside_other_faults(ask):
    levels = {name * 50: "y" * 90 for name in "abc"}
    body = changed("levels", levels) | {"round": "x"}
    faults = ask("POST", "uploads/", body, "application/json").json()["errors"]
    assert {"/levels", "/round"} <= {fault["pointer"] for fault in faults}


LONG = 100_000
# Every field of a run that is text.
TEXTS_OF_A_RUN = {
    **GOOD,
    "campaign_title": "",
    "workload": {"scale": ""},
    "levels": {"script": ""},
    "reason": "",
    "server": "",
    "hardware": {"cpu_model": "", "storage": ""},
    "environment": {"os_name": "", "kernel": ""},
    "postgresql": {"version": "", "settings": {"work_mem": ""}},
    "configuration": "",
    "tool": {"name": "", "version": ""},
    "series": [{"name": "", "unit": "", "values": [1.0]}],
    "revision": {
        "sha": "",
        "ref": "",
        "url": "",
        "subject": "",
        "author": "",
        "parents": [""],
    },
    "labels": {"host": ""},
    "external_id": "",
    "job": "",
}


def with_long_texts(value, number):
    """The value with a long text of this request's own in place of each."""
    if isinstance(value, dict):
        return {name: with_long_texts(inner, number) for name, inner in value.items()}
    if isinstance(value, list):
        return [with_long_texts(inner, number) for inner in value]
    return f"{number}x" * LONG if isinstance(value, str) else value


def test_texts_that_are_refused_as_too_long_stay_in_no_memory(ask):
    def send(number):
        body = with_long_texts(TEXTS_OF_A_RUN, number)
        answer = ask("POST", "uploads/", body, "application/json")
        check(answer, "/measurements/0/metric", "too_long")

    send(0)
    send(1)
    # What is logged has the request, and is kept for a report of the test.
    logging.disable(logging.CRITICAL)
    tracemalloc.start()
    try:
        for number in range(2, 7):
            send(number)
        gc.collect()
        remaining, _most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        logging.disable(logging.NOTSET)
    # One that is remembered each time is five times as long.
    assert remaining < 2 * LONG


def test_each_code_of_a_fault_has_a_remedy():
    """Those that only the sources know: a fault that is added there needs a remedy as well."""
    found = set()
    for folder in ("runs/uploads/api", "runs/uploads/services"):
        for file in sorted((ROOT / folder).glob("*.py")):
            found |= set(
                re.findall(
                    r'(?:add|fault|Fault)\([^,\n]+, "([a-z_]+)"', file.read_text()
                )
            )
    assert len(found) > 30
    assert found <= REMEDIES.keys()
