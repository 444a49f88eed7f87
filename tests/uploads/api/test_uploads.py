"""Uploads over the API: what is stored, and what is refused."""

import gzip
import json
import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from django.db import connection

from runs.access.services import projects
from runs.analysis.summary import summarise
from runs.cells.services import summaries
from runs.histories.services import changes
from runs.models import (
    Campaign,
    Cell,
    CellSummary,
    Environment,
    HardwareProfile,
    Measurement,
    Metric,
    Revision,
    Run,
    Scenario,
    Series,
    SettingsSnapshot,
    Upload,
)
from runs.postgresql_settings import catalogue
from runs.uploads.api import circumstances, measured_values
from runs.uploads.api.fields import Faults, FieldReader
from tests import factories
from tests.api.upload_bodies import changed, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def post(client, bearer):
    """POST a body and give the answer."""

    def sent(body, path="uploads/", content_type="application/json", **headers):
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        given = bearer | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        return client.generic(
            "POST", f"/api/v1/{path}", data, content_type, headers=given
        )

    return sent


@pytest.fixture
def stored(post):
    """POST a body that is stored, and give the run."""

    def sent(body, **headers):
        answer = post(body, **headers)
        assert answer.status_code == 201, answer.content
        return Run.objects.get(pk=answer.json()["id"])

    return sent


def faults(answer, status=400):
    assert answer.status_code == status, answer.content
    assert answer.headers["Content-Type"] == "application/problem+json"
    return [(fault["pointer"], fault["code"]) for fault in answer.json()["errors"]]


# What is stored


def test_a_run_is_stored_and_answered_with_its_addresses(post, client):
    answer = post(run())

    body = answer.json()
    assert answer.status_code == 201
    assert (body["campaign"], body["state"], body["repeat"]) == (
        "nightly",
        "finished",
        1,
    )
    assert body["url"] == f"http://testserver/runs/{body['id']}/"
    assert client.get(body["url"]).status_code == 200
    assert client.get(body["api_url"]).json()["measurements"][1]["value"] == 1000.5
    assert client.get("/campaigns/nightly/").status_code == 200


def test_the_campaign_is_made_at_first_sight(stored):
    made = stored(run(campaign_title="Every night")).campaign

    assert (made.title, made.origin, made.state) == (
        "Every night",
        "uploaded",
        "finished",
    )
    assert (made.scenario.slug, made.scenario.runnable) == ("tpcb-like", False)
    assert made.project == projects.default()
    assert made.factors == {"clients": [8]}


def test_a_known_campaign_needs_no_scenario(stored):
    stored(run())

    assert stored(run("scenario")).campaign.slug == "nightly"


def test_a_scenario_that_runs_stays_one(stored):
    Scenario.objects.create(slug="tpcb-like", title="TPC-B", runnable=True)

    assert stored(run()).campaign.scenario.runnable


def test_new_levels_become_the_campaigns(stored):
    for clients in (8, 1, 4):
        stored(run(levels={"clients": clients, "mode": "simple"}))

    assert Campaign.objects.get().factors == {"clients": [1, 4, 8], "mode": ["simple"]}


def test_the_same_again_is_a_repeat_and_overwrites_nothing(stored):
    first, second = stored(run()), stored(run())

    assert first.cell == second.cell
    assert (first.repeat, second.repeat) == (1, 2)
    assert Measurement.objects.count() == 4


def test_the_summary_is_that_of_the_repeats(stored):
    values = [1000.0, 1100.0, 970.0, 1013.5]
    for value in values:
        cell = stored(changed("measurements/0/value", value)).cell

    summary = CellSummary.objects.get(cell=cell, metric__name="tps")
    for name, expected in vars(summarise(values)).items():
        assert math.isclose(getattr(summary, name), expected, rel_tol=1e-12), name


def test_a_summary_that_uploads_carry_forward_is_the_one_made_of_all_values(
    stored, post
):
    """Beyond EXACT repeats its median is made anew by control."""
    random = Random(1)
    values = [random.lognormvariate(7, 0.01) for _number in range(3 * summaries.EXACT)]
    sizes, left = [1, 2, summaries.EXACT - 4, 1, 1, 1, 7], list(values)
    for size in [*sizes, len(values) - sum(sizes)]:
        batch, left = left[:size], left[size:]
        bodies = [changed("measurements/0/value", value) for value in batch]
        assert post({"runs": bodies}, "uploads/batch/").status_code == 201
    summary = CellSummary.objects.get(metric__name="tps")
    assert _is_summary(summary, replace(summarise(values), median=summary.median))

    assert changes.find(campaign_id=summary.cell.campaign_id) == []

    summary.refresh_from_db()
    assert _is_summary(summary, summarise(values))
    cell = stored(changed("measurements/0/value", 0.0)).cell
    assert CellSummary.objects.get(cell=cell, metric__name="tps").log_variance is None


def _is_summary(stored, expected):
    return all(
        math.isclose(getattr(stored, name), value, rel_tol=1e-9)
        for name, value in vars(expected).items()
    )


def test_a_median_is_that_of_the_newest_repeats_by_whatever_it_is_made(stored):
    cell = stored(run()).cell
    Run.objects.bulk_create(
        Run(
            campaign=cell.campaign,
            cell=cell,
            repeat=number,
            position=0,
            state="finished",
        )
        for number in range(2, summaries.MEDIAN_OF + 202)
    )
    tps = Metric.objects.get(name="tps")
    Measurement.objects.bulk_create(
        Measurement(run=each, metric=tps, value=each.repeat)
        for each in cell.runs.exclude(repeat=1)
    )
    summaries.refresh_all(cell_ids=[cell.pk])
    CellSummary.objects.filter(cell=cell, metric=tps).update(median=0)

    found = [
        _median(cell, each) for each in (summaries.renew_medians, summaries.refresh_all)
    ]
    summaries.refresh(cell_id=cell.pk)

    assert {*found, CellSummary.objects.get(cell=cell, metric=tps).median} == {701.5}


def _median(cell, make):
    make(cell_ids=[cell.pk])
    return CellSummary.objects.get(cell=cell, metric__name="tps").median


@pytest.mark.parametrize(
    "values", [[5.0], [0.0, 4.0], [-1.0, 2.0, 3.0], [1e-100, 1e24]]
)
def test_the_databases_summary_is_that_of_python(stored, values):
    of = {"metric": "balance", "unit": "points", "direction": "higher"}
    for value in values:
        cell = stored(run(measurements=[{**of, "value": value}])).cell
    columns = ("n", "median", "minimum", "maximum", "mean", "log_mean", "log_variance")
    of_metric = CellSummary.objects.filter(cell=cell, metric__name="balance")
    ours = of_metric.values(*columns).get()

    summaries.refresh(cell_id=cell.pk)

    for name, expected in of_metric.values(*columns).get().items():
        same = ours[name] == expected or math.isclose(
            ours[name], expected, rel_tol=1e-12
        )
        assert same, name


def test_a_revision_has_a_cell_of_its_own_in_one_history(stored):
    merge_base = {"sha": "4f1c09d2a7be"}
    told = {"ref": "main", "subject": "Add x", "author": "J", "merge_base": merge_base}
    one = stored(run(revision={"sha": "4F1C09D2A7BE", **told}))
    other = stored(run(revision={"sha": "b" * 40, "parents": ["4f1c09d2a7be"]}))

    assert one.cell.key == '{"clients": 8}@4f1c09d2a7be'
    assert one.cell.series_key == other.cell.series_key == '{"clients": 8}'
    assert (one.cell.revision.ref, other.cell.revision.parents) == (
        "main",
        ["4f1c09d2a7be"],
    )
    assert (one.cell.revision.subject, one.cell.revision.author) == ("Add x", "J")
    assert one.cell.revision.merge_base == "", "a commit is not its own"


def test_what_was_not_known_of_a_revision_is_added(stored):
    stored(run(revision={"sha": "abcdef0", "ref": "main"}))
    stored(
        run(
            revision={
                "sha": "abcdef0",
                "ref": "other",
                "url": "https://example.org/abcdef0",
                "committed_at": "2026-01-30T00:00:00+09:00",
                "subject": " Drop the\nindex ",
                "author": "Jane Doe",
                "merge_base": {
                    "sha": "BEEFBEE",
                    "committed_at": "2026-01-29T00:00:00Z",
                },
            }
        )
    )
    stored(run(revision={"sha": "abcdef0", "subject": "Other", "author": "Other"}))

    made = Revision.objects.get()
    assert (made.subject, made.author) == ("Drop the index", "Jane Doe")
    assert (made.merge_base, made.merge_base_at.day) == ("beefbee", 29)
    assert (made.ref, made.url) == ("main", "https://example.org/abcdef0")
    assert made.committed_at == datetime(2026, 1, 29, 15, tzinfo=UTC)


@pytest.mark.parametrize("order", [1, -1])
def test_a_batch_says_of_a_commit_what_any_of_its_runs_says(post, order):
    whole = {
        "sha": "abcdef0",
        "ref": "main",
        "committed_at": "2026-01-30T00:00:00Z",
        "parents": ["1234567"],
    }
    bodies = [run(revision=whole), run(revision={"sha": "abcdef0", "author": "Jane"})]

    assert post({"runs": bodies[::order]}, "uploads/batch/").status_code == 201

    made = Revision.objects.get()
    assert (made.ref, made.parents, made.author) == ("main", ["1234567"], "Jane")
    assert made.committed_at.day == 30


def test_a_commit_by_more_or_fewer_digits_is_one_in_a_batch(post):
    whole = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
    other = f"{whole[:8]}{'0' * 32}"
    shas = (whole[:12], whole, other, whole[:20])
    bodies = [run(revision={"sha": sha, "ref": "main"}) for sha in shas]

    assert post({"runs": bodies}, "uploads/batch/").status_code == 201

    assert set(Revision.objects.values_list("sha", flat=True)) == {whole, other}


def test_an_id_that_looks_like_that_of_a_text_is_as_any_other(post):
    first = run(external_id="text:bench-1")
    assert post(first).status_code == 201
    refused = post(run(external_id="text:bench-1", revision={"sha": "abcdef0"}))

    assert refused.status_code == 409


@pytest.mark.parametrize(("first", "second"), [(40, 10), (10, 40), (7, 12)])
def test_a_commit_by_more_or_fewer_digits_is_one(stored, get, first, second):
    whole = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b"
    other = f"{whole[:6]}{'0' * 34}"
    for sha in (whole[:first], other, whole[:second], whole[:first]):
        stored(run(revision={"sha": sha, "ref": "main"}))

    assert sorted(Revision.objects.values_list("sha", flat=True)) == [
        other,
        whole[:first],
    ]
    assert Run.objects.order_by("-id").first().repeat == 3
    found = get(
        "compare/",
        campaign=Campaign.objects.get().slug,
        base=f"revision:{other}",
        head=f"revision:{whole}",
    )
    # No sign of a change, and not: no such revision.
    assert (found["exit_code"], found["rows"][0]["verdict"]) == (0, "no_sign")


def test_a_short_sha_of_several_commits_is_refused(stored, post):
    for end in ("aa", "bb"):
        stored(run(revision={"sha": f"9f86d08{end * 16}", "ref": "main"}))

    answer = post(run(revision={"sha": "9f86d08", "ref": "main"}))

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["code"] == "ambiguous_revision"


def test_the_version_is_a_level(stored):
    old = stored(run(postgresql={"version": "17.4"}))
    new = stored(run(postgresql={"version": "18.1"}))

    assert (old.cell.version, old.cell.version_num, old.server_version) == (
        "17.4",
        170004,
        "17.4",
    )
    assert old.cell != new.cell
    assert new.cell.levels == {"version": "18.1", "clients": 8}


def test_a_major_version_among_the_levels_stays(stored):
    made = stored(run(levels={"version": "18"}, postgresql={"version": "18.1"}))

    assert (made.cell.version, made.server_version) == ("18", "18.1")


def test_hardware_environment_and_settings_are_stored_once(stored):
    body = run(
        hardware={
            "cpu_model": "EPYC",
            "cores": 32,
            "facts": {"disks": [{"name": "nvme0"}]},
        },
        environment={"os_name": "Debian 13", "kernel": "6.12"},
        postgresql={"version": "18.1", "settings": {"work_mem": "4MB", "jit": False}},
    )
    first, second = stored(body), stored(body)

    assert first.hardware == second.hardware == HardwareProfile.objects.get()
    assert first.environment == second.environment == Environment.objects.get()
    assert first.settings == second.settings == SettingsSnapshot.objects.get()
    assert (first.hardware.name, first.hardware.cores) == ("EPYC", 32)
    assert first.settings.settings["jit"]["setting"] == "false"


def test_a_whole_listing_of_settings_is_the_servers_own_word(stored, post):
    """Debian's has a setting of its own, and a commit may add one."""
    names = sorted(catalogue.all_names())[: circumstances.WHOLE_LISTING]
    given = dict.fromkeys(names, "1") | {
        "extension_destdir": "",
        "added_by_a_commit": "on",
    }
    made = stored(run(postgresql={"version": "15.18", "settings": given}))
    kept = made.settings.settings
    assert {"extension_destdir", "added_by_a_commit"} <= kept.keys()
    few = {"extension_destdir": "", "work_mem": "4MB"}
    assert (
        post(run(postgresql={"version": "15.18", "settings": few})).status_code == 400
    )


def test_a_server_brings_its_hardware(stored):
    server = factories.server("lab")

    made = stored(run(server="lab"))

    assert (made.server, made.hardware, made.environment) == (
        server,
        server.hardware,
        server.environment,
    )


def test_hardware_is_named_by_its_slug(stored):
    known = factories.hardware("two-core")
    HardwareProfile.objects.update(slug="two-core")

    assert stored(run(hardware="two-core")).hardware == known


def test_samples_become_their_median_and_are_kept(stored, client):
    of = {"metric": "tps", "unit": "tps", "direction": "higher"}
    body = run(measurements=[{**of, "samples": [3, 1, 2, 10]}])

    made = stored(body)

    measurement = made.measurements.get()
    assert (measurement.value, measurement.n, measurement.statistic) == (
        2.5,
        4,
        "median",
    )
    kept = client.get(f"/runs/{made.pk}/artifacts/samples.json/")
    assert json.loads(b"".join(kept.streaming_content)) == {"tps": [3, 1, 2, 10]}


def test_a_series_is_stored(stored):
    made = stored(
        run(
            series=[
                {"name": "tps", "unit": "tps", "start": 1, "values": [1.5, None, 2]}
            ]
        )
    )

    series = made.series.get()
    assert (series.start, series.interval, series.values) == (
        1.0,
        1.0,
        [1.5, None, 2.0],
    )


def test_labels_tool_and_times_are_stored(stored):
    made = stored(
        run(
            labels={"ci": "42", "draft": True, "job": 7},
            tool={"name": "pgbench", "version": "18.1"},
            postgresql={"version": "18.1"},
            finished_at="2026-01-31T02:01:00.5Z",
            external_id="job-42",
        )
    )

    assert made.labels == {"ci": "42", "draft": "true", "job": "7"}
    assert (made.tool_name, made.tool_version) == ("pgbench", "18.1")
    assert made.finished_at - made.started_at == timedelta(seconds=60.5)
    assert (made.external_id, made.origin) == ("job-42", "uploaded")


def test_a_round_is_stored_as_told_and_never_guessed(stored):
    assert stored(run(round=0)).round == 0
    assert stored(run()).round is None


@pytest.mark.parametrize(
    ("body", "code", "numbers"),
    [
        (run("measurements", status="failed", reason="Out of disk."), "failed", 0),
        (run(status="partial", reason="A client died."), "partial", 2),
    ],
)
def test_a_run_that_did_not_finish_counts_nowhere(post, get, body, code, numbers):
    answer = post(body).json()

    assert (answer["state"], answer["code"]) == ("failed", code)
    assert answer["message"] == body["reason"]
    assert len(get(f"runs/{answer['id']}/")["measurements"]) == numbers
    assert get("measurements/")["results"] == []
    assert not CellSummary.objects.exists()


def test_text_in_any_script_is_stored_as_it_is(stored):
    odd = "\\N\t検証\n\\.\r😀\\x"
    made = stored(run(labels={"note": odd}, campaign_title=odd, external_id=odd))

    assert (made.labels, made.external_id, made.campaign.title) == (
        {"note": odd},
        odd,
        odd,
    )


def test_an_upload_with_a_token_belongs_to_the_tokens_project(client, make_token):
    secret = projects.create(slug="secret", is_public=False)
    header = {"Authorization": f"Bearer {make_token('upload', of=secret)}"}

    answer = client.post("/api/v1/uploads/", run(), "application/json", headers=header)

    assert answer.status_code == 201
    assert Campaign.objects.get().project == secret
    assert client.get(answer.json()["api_url"]).status_code == 404


def test_who_has_logged_in_uploads_as_well(admin_client):
    answer = admin_client.post("/api/v1/uploads/", run(), "application/json")

    assert answer.status_code == 201


def test_without_a_token_nothing_is_stored(client):
    answer = client.post("/api/v1/uploads/", run(), "application/json")

    assert (answer.status_code, answer.json()["code"]) == (401, "not_authenticated")


def test_a_token_without_the_scope_is_told_so(client, make_token):
    header = {"Authorization": f"Bearer {make_token('read', 'queue')}"}

    answer = client.post("/api/v1/uploads/", run(), "application/json", headers=header)

    assert (answer.status_code, answer.json()["code"]) == (403, "insufficient_scope")
    assert "“upload”" in answer.json()["detail"]


# What is refused


@pytest.mark.parametrize("samples", [[], [1, "2"], [1, None], "12", 10_001 * [1]])
def test_samples_that_are_none_are_refused(post, samples):
    body = run(
        measurements=[{"metric": "tps", "samples": samples, "direction": "higher"}]
    )

    (fault,) = faults(post(body))
    assert fault[0].startswith("/measurements/0/samples")


def test_more_than_a_thousand_measurements_are_refused(post):
    body = run(measurements=[{"metric": f"m{i}", "value": 1} for i in range(1001)])

    assert faults(post(body)) == [("/measurements", "too_many")]


def test_a_server_and_the_hardware_are_one_too_many(post):
    factories.server("lab")

    body = run(server="lab", hardware={"cores": 2})

    assert faults(post(body)) == [("/hardware", "either_or")]


def test_a_version_that_contradicts_the_levels_is_refused(post):
    body = run(levels={"version": "17"}, postgresql={"version": "18.1"})

    assert faults(post(body)) == [("/levels/version", "version_differs")]


def test_every_fault_of_every_run_is_told_at_once(post):
    bodies = [
        run(),
        changed("measurements/1/value", "x"),
        run("campaign", status="done"),
        5,
        run(),
    ]

    found = faults(post({"runs": bodies}, "uploads/batch/"))

    assert found == [
        ("/runs/1/measurements/1/value", "not_a_number"),
        ("/runs/2/campaign", "required"),
        ("/runs/2/status", "invalid_choice"),
        ("/runs/3", "not_an_object"),
    ]
    assert not Run.objects.exists()


def test_faults_without_end_are_told_up_to_a_thousand(post):
    found = faults(post({"runs": 1000 * [{}]}, "uploads/batch/"))

    assert len(found) == 1000


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b" ", "not_json"),
        (b"{", "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b'{"a": -Infinity}', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not_json"),
        (b'{"a": "\xff"}', "not_utf_8"),
        ("{}".encode("utf-16"), "not_utf_8"),
        (b"[]", "not_an_object"),
        (b"null", "not_an_object"),
    ],
)
@pytest.mark.parametrize("path", ["uploads/", "uploads/batch/"])
def test_a_body_that_is_no_json_object_is_refused(post, body, code, path):
    answer = post(body, path)

    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_an_overflowing_number_is_not_infinity(post):
    body = json.dumps(run()).replace("1000.5", "1e999")

    assert faults(post(body)) == [("/measurements/0/value", "out_of_range")]


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/json; charset=shift_jis", 400),
        ("application/json; charset=UTF-8", 201),
    ],
)
def test_the_content_type_is_looked_at(post, content_type, status):
    assert post(run(), content_type=content_type).status_code == status


def test_a_body_above_ten_megabytes_is_refused(post):
    body = b'{"campaign": "' + 11 * 2**20 * b"x" + b'"}'

    assert post(body).status_code == 413


def test_a_packed_body_is_unpacked(post):
    body = gzip.compress(json.dumps(run()).encode())

    assert post(body, Content_Encoding="gzip").status_code == 201


@pytest.mark.parametrize(
    ("body", "encoding", "status"),
    [
        (None, "gzip", 413),
        (gzip.compress(b"{}", mtime=0)[:-4], "gzip", 400),
        (gzip.compress(b"{}", mtime=0) + b"x", "gzip", 400),
        (b"{}", "gzip", 400),
        (b"{}", "br", 415),
    ],
)
def test_a_packed_body_that_is_none_or_a_bomb_is_refused(post, body, encoding, status):
    # Each process that collects the tests would pack the bomb.
    packed = gzip.compress(bytes(200 * 2**20), 1) if body is None else body
    assert post(packed, Content_Encoding=encoding).status_code == status


# What contradicts what is stored


def test_a_metric_with_another_unit_is_refused_naming_both(post):
    factories.metric("tps", unit="tps")

    answer = post(changed("measurements/0/unit", "per minute"))

    assert faults(answer, 422) == [("/measurements/0/unit", "metric_conflict")]
    assert "“tps”" in answer.json()["detail"]
    assert "“per minute”" in answer.json()["detail"]
    assert not Campaign.objects.exists()


def test_two_runs_that_disagree_on_a_new_metric_are_refused(post):
    body = {"runs": [run(), changed("measurements/0/direction", "lower")]}

    answer = post(body, "uploads/batch/")

    assert faults(answer, 422) == [
        ("/runs/1/measurements/0/direction", "metric_conflict")
    ]
    assert not Metric.objects.exists()


def test_a_known_metric_needs_neither_unit_nor_direction(stored):
    stored(run())

    again = run(measurements=[{"metric": "tps", "value": 5}])
    assert stored(again).measurements.get().metric.unit == "tps"


def test_a_new_metric_needs_a_direction(post):
    answer = post(run(measurements=[{"metric": "speed", "value": 5}]))

    assert faults(answer, 422) == [("/measurements/0/direction", "metric_unknown")]


@pytest.mark.parametrize(
    ("body", "pointer", "code"),
    [
        (run("scenario", campaign="new"), "/scenario", "required"),
        (run(scenario="other"), "/scenario", "scenario_differs"),
        (run(configuration="none"), "/configuration", "configuration_differs"),
        (run(server="nowhere"), "/server", "server_unknown"),
        (run(hardware="nothing"), "/hardware", "hardware_unknown"),
        (run(environment="nothing"), "/environment", "environment_unknown"),
        (run(campaign="executed"), "/campaign", "campaign_not_uploaded"),
        (run(campaign="others"), "/campaign", "campaign_taken"),
    ],
)
def test_what_contradicts_the_database_is_a_422(post, body, pointer, code):
    factories.campaign("executed", repeats=0, scenario=factories.scenario("tpcb-like"))
    other = projects.create(slug="other", is_public=True)
    factories.campaign("others", repeats=0, origin="uploaded", project=other)
    assert post(run()).status_code == 201

    assert (pointer, code) in faults(post(body), 422)
    assert Run.objects.count() == 1


def test_an_external_id_is_there_once(post):
    assert post(run(external_id="7")).status_code == 201
    assert post(run(external_id="7", campaign="other")).status_code == 201

    answer = post(run(external_id="7"))

    assert faults(answer, 409) == [("/external_id", "external_id_taken")]
    assert answer.json()["code"] == "external_id_taken"
    assert Run.objects.count() == 2


def test_an_external_id_twice_in_a_batch_is_refused(post):
    answer = post({"runs": 2 * [run(external_id="7")]}, "uploads/batch/")

    assert faults(answer) == [("/runs/1/external_id", "repeated")]


# Once a key


def test_the_same_key_and_body_is_stored_once(post):
    first = post(run(), Idempotency_Key="k")
    again = post(run(), Idempotency_Key="k")

    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    assert Run.objects.count() == 1


def test_a_key_with_an_external_id_is_replayed_and_no_conflict(post):
    bodies = [post(run(external_id="7"), Idempotency_Key="k") for _ in range(2)]

    assert [answer.status_code for answer in bodies] == [201, 200]


def test_the_same_key_with_another_body_is_a_conflict(post):
    post(run(), Idempotency_Key="k")

    answer = post(changed("levels/clients", 9), Idempotency_Key="k")

    assert (answer.status_code, answer.json()["code"]) == (
        409,
        "idempotency_key_reused",
    )
    assert Run.objects.count() == 1


def test_a_key_of_a_refused_body_is_free(post):
    assert post(run("campaign"), Idempotency_Key="k").status_code == 400
    assert not Upload.objects.exists()
    assert post(run(), Idempotency_Key="k").status_code == 201


def test_another_project_has_its_own_keys(post, client, make_token):
    post(run(), Idempotency_Key="k")
    other = make_token("upload", of=projects.create(slug="other", is_public=True))
    headers = {"Authorization": f"Bearer {other}", "Idempotency-Key": "k"}

    body = run(campaign="elsewhere")
    answer = client.post("/api/v1/uploads/", body, "application/json", headers=headers)

    assert answer.status_code == 201


def test_a_key_must_be_printable_and_short(post):
    assert faults(post(run(), Idempotency_Key="x" * 201))[0][0] == "/Idempotency-Key"


# Batches


def test_a_batch_is_stored_in_its_order(post):
    bodies = [run(levels={"clients": number % 3 + 1}) for number in range(9)]

    answer = post({"runs": bodies}, "uploads/batch/")

    rows = answer.json()["runs"]
    assert answer.status_code == 201
    assert [row["repeat"] for row in rows] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert [
        Run.objects.get(pk=row["id"]).cell.levels["clients"] for row in rows
    ] == 3 * [1, 2, 3]
    assert {cell.ordinal for cell in Cell.objects.all()} == {1, 2, 3}


def test_a_batch_of_several_campaigns_is_stored(post):
    bodies = [run(campaign=f"c{number}") for number in range(3)]

    assert post({"runs": bodies}, "uploads/batch/").status_code == 201
    assert Campaign.objects.count() == 3


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, ("/runs", "required")),
        ({"runs": []}, ("/runs", "required")),
        ({"runs": {}}, ("/runs", "not_a_list")),
        ({"runs": 1001 * [1]}, ("/runs", "too_many")),
        ({"runs": [run()], "all": True}, ("/all", "unknown_field")),
    ],
)
def test_a_batch_that_is_none_is_refused(post, body, fault):
    assert fault in faults(post(body, "uploads/batch/"))
    assert not Run.objects.exists()


@pytest.mark.parametrize("number", [2, 20])
def test_a_batch_takes_the_same_queries_whatever_its_size(
    post, number, django_assert_num_queries
):
    def body():
        series = [{"name": "tps", "values": [1]}]
        return {
            "runs": [
                run(
                    levels={"clients": each % 10 + 1},
                    hardware={"cores": each % 10 + 1},
                    series=series,
                )
                for each in range(number)
            ]
        }

    post(body(), "uploads/batch/")
    with django_assert_num_queries(11):
        assert post(body(), "uploads/batch/").status_code == 201
    assert Series.objects.count() == 2 * number


@pytest.mark.parametrize("number", [1, 100])
def test_the_run_of_a_new_commit_takes_the_same_queries(
    post, number, django_assert_num_queries
):
    def body(commit):
        numbers = [
            {"metric": f"m{each}", "value": each, "unit": "", "direction": "higher"}
            for each in range(number)
        ]
        return run(measurements=numbers, revision={"sha": f"{commit:040x}"})

    post(body(1))
    with django_assert_num_queries(11):
        assert post(body(2)).status_code == 201
    assert Cell.objects.count() == 2


def test_an_upload_reads_as_much_of_tables_that_nobody_has_analysed(post):
    """PostgreSQL took any index that begins with the campaign, and read all of the campaign."""

    def of_commit(number):
        return run(revision={"sha": f"{number:040x}"})

    def blocks(number):
        with connection.cursor() as cursor:
            read = "SELECT sum(pg_stat_get_xact_blocks_fetched(oid))::integer FROM pg_class"
            cursor.execute(read + " WHERE relname ~ '^(runs|cell|revision)_'")
            (before,) = cursor.fetchone()
            assert post(of_commit(number)).status_code == 201
            cursor.execute(read + " WHERE relname ~ '^(runs|cell|revision)_'")
            (after,) = cursor.fetchone()
        return after - before

    with connection.cursor() as cursor:
        # Nothing is known of new tables, and nothing dead of other tests is in them.
        cursor.execute("TRUNCATE runs_cell, runs_revision CASCADE")
        cursor.execute("DISCARD PLANS")  # those made for few rows are kept below
    post(of_commit(0))
    few = min(blocks(number) for number in (1, 2, 3))
    many = {"runs": [of_commit(number) for number in range(4, 1004)]}
    assert post(many, "uploads/batch/").status_code == 201
    # Some indexes get a level, and each spelling of a commit goes down one of them. An index that
    # only begins with the campaign reads twice as much.
    assert min(blocks(number) for number in (1004, 1005, 1006)) < 1.7 * few


@pytest.mark.parametrize(
    ("name", "first", "second", "pointer"),
    [
        (
            "hardware",
            {"name": "a", "cores": 1},
            {"name": "a", "cores": True},
            "hardware/cores",
        ),
        (
            "hardware",
            {"name": "a", "cores": 1},
            {"name": "a", "cores": 1.0},
            "hardware/cores",
        ),
        ("postgresql", {"version": "18.1"}, {"version": 18.1}, "postgresql/version"),
        ("revision", {"sha": "a" * 40}, {"sha": "x" * 40}, "revision/sha"),
    ],
)
def test_what_runs_say_nearly_alike_is_read_apart(post, name, first, second, pointer):
    body = {"runs": [run(**{name: each}) for each in (first, first, second, second)]}

    assert [place for place, _code in faults(post(body, "uploads/batch/"))] == [
        f"/runs/{index}/{pointer}" for index in (2, 3)
    ]


NUMBER = {"metric": "tps", "value": 1.5, "unit": "tps", "direction": "higher"}


@pytest.mark.parametrize(
    "changed",
    [
        *({"value": each} for each in (1, -1, 0, True, None, "1", 1e25, 10**400, 1e13)),
        *({"unit": each} for each in ("", None, 1, "x" * 41, "ms", "\0", [])),
        *(
            {"metric": each}
            for each in ("", None, 7, "latency_p95", "a b", "m" * 81, {})
        ),
        *({"direction": each} for each in (None, "up", 1, "lower", {})),
        {"samples": [1, 2]},
        {"samples": None},
        {"more": 1},
    ],
)
def test_the_short_way_to_read_a_figure_leads_to_what_the_long_one_does(changed):
    given = NUMBER | changed
    found = Faults()
    read = measured_values._measurement(FieldReader(given, "/measurements/0", found))

    short = measured_values._plain(given)

    is_plain = not found and not given.get("samples")
    assert short == (read if is_plain else None)


# Conditions of uploads


def test_an_upgraded_sysstat_and_a_new_fact_are_compared_as_before(stored, get, client):
    """A machine goes on measuring: first its sysstat is upgraded, then the client records more."""
    linux = {"os_name": "Debian GNU/Linux 13 (trixie)", "kernel": "Linux 6.12.41"}
    facts = [
        {"tools": {"sysstat": "12.6.1"}},
        {"tools": {"sysstat": "12.7.5"}},
        {"tools": {"sysstat": "12.7.5"}, "recorded_since_the_next_release": "yes"},
    ]
    systems = [linux | {"facts": each} for each in facts]
    tps = run()["measurements"][0]
    systems.append(linux | {"kernel": "Linux 6.18.2", "facts": facts[0]})
    for number, system in enumerate(systems):
        for place, value in enumerate((1000.0, 1001.0, 999.0)):
            stored(
                run(
                    revision={"sha": f"{number + 1:040x}", "ref": "main"},
                    environment=system,
                    job="one",
                    measurements=[tps | {"value": value * (1 - number / 10)}],
                    round=place,
                )
            )
    assert Environment.objects.count() == len(systems)

    def compared(head):
        sides = {"base": f"revision:{1:040x}", "head": f"revision:{head:040x}"}
        (row,) = get("compare/", campaign="nightly", **sides)["rows"]
        return row["verdict"], [
            each["code"] for each in (*row["reasons"], *row["despite"])
        ]

    silent = [f"{name}_unknown" for name in ("hardware",)]
    assert compared(2) == ("slower", silent)
    assert compared(3) == ("slower", silent)
    assert compared(4) == ("not_comparable", ["environment_differs", *silent])
    page = client.get(
        f"/compare/?s=nightly~revision%3D{1:012x}&s=nightly~revision%3D{3:012x}"
    )
    assert "sysstat" not in page.content.decode()


@pytest.mark.parametrize(
    ("ref", "branch"),
    [
        ("refs/heads/main", "main"),
        ("origin/main", "main"),
        ("refs/tags/v1", "v1"),
        ("refs/pull/7/merge", "pull/7/merge"),
        ("HEAD", ""),
        ("(no branch)", ""),
        ("feature/origin/x", "feature/origin/x"),
    ],
)
def test_a_branch_has_one_spelling(stored, ref, branch):
    stored(run(revision={"sha": "abcdef0", "ref": ref}))

    assert Revision.objects.get().ref == branch
