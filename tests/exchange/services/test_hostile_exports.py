"""Malicious exports: refused completely, and nothing of them stays."""

import hashlib
import io
import json
import re
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.utils import timezone

from runs import export_reader
from runs.access.services import projects
from runs.exchange import services
from runs.exchange.services import parquet
from runs.exchange.services import reading as exchange_reading
from runs.execution.reporter import ArtifactData
from runs.models import (
    Artifact,
    Campaign,
    Measurement,
    Metric,
    Project,
    Run,
    Scenario,
    SettingsSnapshot,
)
from runs.queue.services import artifacts
from runs.reading import process
from runs.reading.kinds import exports
from runs.shared.errors import Refused
from tests import factories
from tests.each import some

pytestmark = pytest.mark.django_db

PLAN = {"bindir": "/usr/lib/postgresql/18/bin", "version_num": 180000}
DIGEST = hashlib.sha256(b"tps = 1\n").hexdigest()
CONTROLS = ("a\r\nX-Evil: 1", "a\0b", "a\x1b]0;b", "a\u2028b", "\ud800")
NUMBERS = (float("nan"), float("inf"), 1e300, True, "1", None, [1])
DIGESTS = (
    "/etc/passwd",
    "../../etc/passwd",
    "a file outside",
    "0" * 63,
    "0" * 65,
    "A" * 64,
    "0" * 64 + "\n",
    "",
    None,
    7,
    "０" * 64,
    "0" * 62 + "/.",
)
TIMES = (
    "0001-01-01T00:00:00+23:00",
    "9999-12-31T23:59:59-23:00",
    "2026-01-31",
    7,
    "now",
)

CODES = {
    "invalid",
    "not_json",
    "not_a_time",
    "fields_differ",
    "file_differs",
    "not_a_list",
}


WORDINGS = (
    {"text": 1},
    {"text": "%(a)s", "values": {"b": ""}},
    {"text": "%(a)99999999s", "values": {"a": ""}},
    {"text": "%(a)s%(a)s", "values": {"a": ""}},
    {"text": "%(a)s", "values": {"a": {"text": "%s", "values": {"b": ""}}}},
)


def hostile_values():
    """Kind of line, field within it (or within its nested rows), and a value for it."""
    for field, values in {
        "run.artifacts.sha256": DIGESTS,
        "file.sha256": DIGESTS,
        "run.artifacts.name": (
            *CONTROLS,
            "../x",
            "a/../b",
            "/etc/passwd",
            "",
            "a\\b",
            "x" * 201,
        ),
        "run.artifacts.media_type": (*CONTROLS, "text", "", "a/b\r\nc", "text/html<"),
        "run.artifacts.size": (-1, 2**63, 1.5, "7", True, 9),
        "run.measurements.value": NUMBERS,
        "run.measurements.n": (-1, 2**31, 0.5, "1"),
        "run.repeat": (-1, 2**31, 1.5, True, "1", None),
        "run.attempt": (-1, 2**15),
        "run.labels": ({"a": 1}, {"a\0": "b"}, [], None),
        "run.quality": (
            "x",
            ["x"],
            {"a": 1},
            [{"message": 1}],
            [{"wording": WORDINGS[0]}],
        ),
        "run.speed": (
            "x",
            [],
            {"db": 1},
            {"db": {"before": []}},
            {"db": {"after": {"core": "1"}}},
            {"db\0": {}},
        ),
        "run.wording": WORDINGS,
        "run.events.wording": WORDINGS,
        "run.plan": (
            "x",
            [],
            {"generators": ["x"]},
            {"translated": [{}]},
            {"bindir": 1},
        ),
        "run.external_id": (*CONTROLS, "x" * 201),
        "run.measurements": ("x", {"a": 1}, [1], None),
        "run.started_at": TIMES,
        "series.values": ("x", [float("inf")], [1e60], ["1"], {}),
        "series.interval": (*NUMBERS, 0, -1),
        "series.name": (*CONTROLS, "a b", "", "<b>"),
        "command.argv": ("x", [1], {}, None),
        "command.exit_status": (2**31, "0", 1.5),
        "cell.levels": ([], {"a": [1]}, {"a": {}}, {"a": float("nan")}, {"a": "b\n"}),
        "cell.version_num": (-1, 2**31),
        "campaign.slug": (*CONTROLS, "a/b", "../x", "", "x" * 121),
        "campaign.title": (*CONTROLS, "x" * 201, 7),
        "campaign.factors": ([], {"a": 1}, "x"),
        "campaign.expected_every": (-1, float("inf"), "1 day", 1e30),
        "campaign.seed": (2**63, "1", 0.5),
        "campaign.priority": (2**15,),
        "scenario.slug": ("../x", "a b", "", None),
        "metric.unit": (*CONTROLS, "x" * 41),
        "revision.url": (
            "javascript:alert(1)",
            "http://x/\r\n",
            "file:///etc/passwd",
            "x",
        ),
        "revision.parents": ("x", [1], [["x"]]),
        "settings.settings": ([], {"work_mem": "4MB"}, {"work_mem": {"setting": {}}}),
        "settings.content_hash": ("0" * 64, "x"),
        "hardware.memory_bytes": (-(2**63) - 1, 2**63, 0.5),
        "configuration.settings": ({"work_mem": 1}, [], "x"),
        "configuration.initdb_options": ("x", [1]),
        "benchlab-export.project": (
            None,
            [],
            {},
            {"slug": "../x", "name": "x", "public": True},
        ),
        "annotation.text": ("a\0b", None, 7),
    }.items():
        for value in values:
            yield field, value


@pytest.fixture
def content():
    """The export of a project with a file, and the project gone."""
    project = projects.create(slug="lab", is_public=True)
    campaign = factories.campaign(
        "nightly",
        project=project,
        configuration=factories.configuration("tuned"),
        repeats=1,
    )
    factories.finish_all(campaign)
    for run in campaign.runs.all():
        run.plan = PLAN
        run.hardware = factories.hardware()
        factories.story(run)
    factories.artifact(run=run, data=ArtifactData("stdout", b"tps = 1\n"))
    revision = project.revisions.create(sha="a" * 40, url="https://example.org/a")
    campaign.cells.update(revision=revision)
    campaign.annotations.create(text="No change.")
    made = b"".join(services.lines(project))
    campaign.delete()
    for model in (Project, Scenario, SettingsSnapshot):
        model.objects.all().delete()
    artifacts.path_of(DIGEST).unlink()
    return made


def written(row):
    """A line as BenchLab writes it, but that also what is no JSON is written."""
    text = json.dumps(row, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode(errors="surrogatepass") + b"\n"


def changed(content, field, value):
    """The export with another value there, in the first line that has one."""
    kind, *names = field.split(".")
    lines, is_done = [], False
    for line in content.splitlines():
        row = json.loads(line)
        if row["type"] == kind and not is_done:
            is_done = _set(row, names, value)
        lines.append(written(row))
    assert is_done, field
    return lines


def _set(row, names, value):
    if len(names) > 1:
        return bool(row[names[0]]) and _set(row[names[0]][0], names[1:], value)
    assert names[0] in row
    row[names[0]] = value
    return True


def files():
    return [path for path in settings.ARTIFACTS_DIR.rglob("*") if path.is_file()]


def test_every_hostile_value_is_refused_and_leaves_nothing(content):
    wrong = []
    for field, value in some(hostile_values()):
        try:
            with transaction.atomic():
                services.load(lines=changed(content, field, value))
                transaction.set_rollback(True)
            wrong.append((field, value, "was taken"))
        except Refused as refused:
            if refused.faults[0].code not in CODES:
                wrong.append((field, value, refused.faults[0].code))
        if (
            files()
            or Run.objects.exists()
            or Metric.objects.filter(name="none").exists()
        ):
            wrong.append((field, value, "left something"))

    assert not wrong
    assert not Campaign.objects.exists()
    services.load(lines=io.BytesIO(content))
    assert artifacts.open_artifact(Artifact.objects.get()).read() == b"tps = 1\n"


def test_a_file_of_an_import_that_is_refused_later_never_reaches_the_store(content):
    lines = content.splitlines(keepends=True)
    seen = []

    def watched():
        for line in lines[:-1]:
            yield line
            seen.extend(path for path in files() if path.suffix == ".gz")

    with pytest.raises(Refused):
        services.load(lines=watched())

    assert (seen, files()) == ([], [])


def test_a_file_of_another_project_cannot_be_claimed(content):
    factories.artifact(run=factories.run(), data=ArtifactData("secret", b"tps = 1\n"))
    lines = [
        line
        for line in content.splitlines(keepends=True)
        if b'"type":"file"' not in line
    ]
    end = written({"type": "end", "lines": len(lines)})

    with pytest.raises(Refused) as refused:
        services.load(lines=[*lines[:-1], end])

    assert refused.value.faults[0].code == "file_differs"


@pytest.mark.parametrize(
    "line",
    [
        b'{"type": "campaign", "x": "' + b"x" * export_reader.LONGEST_LINE,
        b'{"type": "campaign", "x": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
        b'{"type": "campaign", "x": ['
        + b"{}," * (export_reader.MOST_BRACKETS + 1)
        + b"{}]}",
        b'{"type": "campaign", "repeats": ' + b"9" * 1_000_000 + b"}",
        b'{"type": "campaign", "seed": 1e999}',
    ],
    ids=["long", "deep", "brackets", "digits", "infinite"],
)
def test_a_line_made_to_fill_the_memory_is_refused(content, line):
    with pytest.raises(Refused) as refused:
        services.load(lines=[content.splitlines()[0], line])

    assert refused.value.faults[0].code in {"too_long", "not_json"}


def test_a_name_that_is_no_digest_has_no_place_in_the_store():
    run = factories.run()
    for digest in ("/etc/passwd", "../../x", "0" * 63, "A" * 64, "", "0" * 63 + "\n"):
        with pytest.raises(ValueError, match="SHA-256"):
            artifacts.path_of(digest)
        with pytest.raises(IntegrityError), transaction.atomic():
            Artifact.objects.create(run=run, name="x", size=1, sha256=digest)


def test_pruning_removes_nothing_outside_the_store(content, tmp_path):
    outside = tmp_path / "outside.gz"
    outside.write_bytes(b"not ours")

    with pytest.raises(Refused):
        services.load(
            lines=changed(content, "run.artifacts.sha256", str(tmp_path / "outside"))
        )
    artifacts.prune(before=timezone.now(), keep=())

    assert outside.exists()


def test_an_export_of_several_batches_is_read_in_one_process(content, monkeypatch):
    monkeypatch.setattr(exchange_reading, "BATCH_BYTES", 1)
    started = []
    start = process._Process._start
    monkeypatch.setattr(
        process._Process, "_start", lambda self: (started.append(self), start(self))[1]
    )
    done = services.load(lines=io.BytesIO(content))
    assert (done.runs, len(started)) == (Run.objects.count(), 1)
    assert started[0]._popen.poll() is not None


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(content, monkeypatch):
    monkeypatch.setattr(exports, "MOST_UNPACKED", 5)
    with pytest.raises(Refused) as caught:
        services.load(lines=io.BytesIO(content))
    assert caught.value.faults[0].code == "content_differs"
    assert not files()


@pytest.fixture
def lab():
    """Runs of two months around the turn of a year, a failed one, and one without an end."""
    campaign = factories.finish_all(
        factories.campaign('say "hello", world', on=factories.server())
    )
    keys = list(campaign.runs.order_by("pk").values_list("pk", flat=True))
    ends = (
        datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC),
        datetime(2026, 1, 1, tzinfo=UTC),
    )
    for key, end in zip(keys, ends, strict=False):
        Run.objects.filter(pk=key).update(finished_at=end)
    Run.objects.filter(pk__in=keys[2:-2]).update(
        finished_at=datetime(2026, 1, 31, 12, tzinfo=UTC)
    )
    Run.objects.filter(pk=keys[-2]).update(finished_at=None)
    Run.objects.filter(pk=keys[-1]).update(state="failed")
    return campaign


def asked(folder, sql):
    return duckdb.sql(
        sql.format(files=f"'{folder}/measurements/*/*.parquet'")
    ).fetchall()


def test_each_measurement_of_a_finished_run_is_in_the_file_of_its_month(
    lab, tmp_path, capsys
):
    call_command("export_parquet", str(tmp_path))

    counted = "SELECT month, count(*) FROM {files} GROUP BY 1 ORDER BY 1"
    assert asked(tmp_path, counted) == [("2025-12", 1), ("2026-01", 15), ("none", 1)]
    assert (
        "measurements/month=2026-01/data.parquet: 15 measurements"
        in capsys.readouterr().out
    )
    values = asked(tmp_path, "SELECT measurement, value FROM {files} ORDER BY 1")
    stored = Measurement.objects.filter(run__state="finished").order_by("pk")
    assert values == list(stored.values_list("pk", "value"))


def test_a_row_tells_what_it_is_of(lab, tmp_path):
    list(parquet.write(tmp_path))

    first = lab.runs.select_related("cell").earliest("pk")
    names = (
        "run, campaign, scenario, version, major, levels ->> '$.clients', "
        "metric, server, revision"
    )
    [row] = asked(tmp_path, f"SELECT {names} FROM {{files}} WHERE run = {first.pk}")
    assert row == (
        first.pk,
        lab.slug,
        "fixed-point-read",
        first.cell.version,
        first.cell_major,
        str(first.cell.levels["clients"]),
        "tps",
        first.server.slug,
        None,
    )


def test_a_month_that_changed_is_written_again_and_the_others_are_left_alone(
    lab, tmp_path
):
    list(parquet.write(tmp_path))
    old = (tmp_path / "measurements/month=2025-12/data.parquet").stat()
    Measurement.objects.filter(run__finished_at__year=2026).update(value=7.5)

    written = list(parquet.write(tmp_path, since="2026-01"))

    assert [(each.month, each.rows) for each in written] == [("2026-01", 15)]
    assert asked(
        tmp_path, "SELECT DISTINCT value FROM {files} WHERE month = '2026-01'"
    ) == [(7.5,)]
    now = (tmp_path / "measurements/month=2025-12/data.parquet").stat()
    assert (now.st_ino, now.st_mtime_ns) == (old.st_ino, old.st_mtime_ns)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["measurements"]


def test_an_empty_lab_has_no_file(db, tmp_path):
    assert list(parquet.write(tmp_path)) == []


@pytest.mark.parametrize("since", ["2026", "2026-13", "nonsense"])
def test_what_is_no_month_is_refused(db, tmp_path, since):
    with pytest.raises(CommandError, match="is a month such as"):
        call_command("export_parquet", str(tmp_path), "--since", since)


def test_the_query_of_the_documentation_answers(lab, tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "scaling.md").read_text()
    [query] = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
    list(parquet.write(tmp_path))
    query = query.replace("/srv/parquet", str(tmp_path)).replace("= '8'", "= '2'")
    found = duckdb.sql(query).fetchall()
    assert {major for major, *_others in found} == {"16", "18"}
