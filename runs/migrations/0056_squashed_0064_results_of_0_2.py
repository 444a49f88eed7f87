"""What 0.2 has stored, as this release has it: what is private, secret or packed.

- Publications come from reviewed files only: drafts of the browser become files, their table goes.
- Requests to seal and entries of the audit trail have a mark by a key outside the database. What
  waits without one, and what services of 0.2 still store, is marked by control some minutes later:
  the mark of the update lets it (`runs.services.seals`).
- Stored settings that may be secrets lose their values: commands, and unknown settings. A hidden
  value counts as equal, so settings that differed in secrets only become one row; sealed runs with
  such settings are amended, which their chains say.
- Configurations, own scripts and metrics of uploads belong to the project that uses them. What
  several projects use, or none, is of the default project, or of its author's only one. Metrics of
  scenarios, tools and publications, and those of several projects, are shared.
- Each file of a run is a file again, and the bandwidths of the scenario get names of their own:
  `read_bandwidth` is fio's, in MiB/s.
"""

import functools
import hashlib
import io
import json
import logging
import zipfile
from datetime import UTC
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import migrations, models, transaction
from django.db.models import CASCADE, PROTECT, Count, ForeignKey, Q
from django.utils import timezone

from benchlab import bucket
from benchlab.gentle_migrations import InSteps, in_steps
from runs.postgresql_settings import secrets
from runs.selectors.access import macs

logger = logging.getLogger(__name__)

FOLDER = "publication-drafts"


def export(apps: Any, _editor: Any) -> None:
    """Write each draft below the instance's folder, and the text that the archive had of it.

    A file that cannot be written ends the migration before anything is dropped.
    """
    folder = Path(settings.VAR_DIR, FOLDER)
    for draft in apps.get_model("runs", "PublicationDraft").objects.iterator():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        # The form took plain slugs only, but the table takes anything.
        name = draft.slug.replace("/", "-")
        texts = {f"{name}.yaml": draft.text}
        if draft.accepted not in ("", draft.text):
            texts[f"{name}.accepted.yaml"] = draft.accepted
        for file, text in texts.items():
            Path(folder, file).write_bytes(text.encode())


def begin_update(apps, schema_editor):
    """Where something is stored. One row."""
    Run, AuditEntry = apps.get_model("runs", "Run"), apps.get_model("runs", "AuditEntry")
    if not (AuditEntry.objects.exists() or Run.objects.exclude(origin="published").exists()):
        return
    Instance, now = apps.get_model("runs", "Instance"), timezone.now()
    Instance.objects.get_or_create(pk=1)
    mark = macs.mark(macs.UPDATE, now.astimezone(UTC).isoformat())
    Instance.objects.update(unsealed_since=now, unsealed_mark=mark)


BATCH = 500
REASON = "an update hid values of its settings that may be secrets"
KIND = "amended"


def hide(apps, schema_editor):
    """Snapshots, a batch in a transaction with what it amends; then the few configurations."""
    masked = functools.lru_cache(100_000)(secrets.masked)
    Snapshot = apps.get_model("runs", "SettingsSnapshot")
    last = 0
    while batch := list(Snapshot.objects.filter(pk__gt=last).order_by("pk")[:BATCH]):
        last = batch[-1].pk
        with transaction.atomic():
            _hide_batch(apps, batch, masked)
    for name in ("Configuration", "ConfigurationRevision"):
        for row in apps.get_model("runs", name).objects.order_by("pk").iterator():
            kept = {key: masked(key, str(value)) for key, value in row.settings.items()}
            if kept != {key: str(value) for key, value in row.settings.items()}:
                told = [kept, list(row.initdb_options), *filter(None, [row.written_for])]
                row.settings, row.content_hash = kept, _hash(told)
                row.save(update_fields=["settings", "content_hash"])


def _hide_batch(apps, batch, masked):
    Snapshot, Run = apps.get_model("runs", "SettingsSnapshot"), apps.get_model("runs", "Run")
    changed = {}
    for row in batch:
        kept = {name: _shown(name, told, masked) for name, told in row.settings.items()}
        if kept != row.settings:
            changed[row.pk] = kept
    if not changed:
        return
    _amend(apps, list(Run.objects.filter(settings__in=changed).values_list("pk", flat=True)))
    for key, kept in changed.items():
        content_hash = _hash(kept)
        same = Snapshot.objects.filter(content_hash=content_hash).exclude(pk=key).first()
        if same is None:
            Snapshot.objects.filter(pk=key).update(settings=kept, content_hash=content_hash)
        else:
            Run.objects.filter(settings=key).update(settings=same)
            Snapshot.objects.filter(pk=key).delete()


def _shown(name, told, masked):
    value = told.get("setting")
    return {**told, "setting": masked(name, str(value))} if value else told


def _hash(content):
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _amend(apps, runs):
    """Requests to seal what is there now, of runs that are sealed, with their marks."""
    Seal, Request = apps.get_model("runs", "Seal"), apps.get_model("runs", "SealRequest")
    for start in range(0, len(runs), 5_000):
        some = runs[start : start + 5_000]
        entries = dict(_counted(Seal, some))
        waiting = dict(_counted(Request.objects.filter(refused=""), some))
        made = []
        for run in entries:
            place = entries[run] + waiting.get(run, 0)
            mark = macs.mark(macs.REQUEST, KIND, run, REASON, "", place)
            fields = {"kind": KIND, "run": run, "reason": REASON, "place": place, "mark": mark}
            made.append(Request(**fields, figures="", refused=""))
        Request.objects.bulk_create(made, batch_size=5_000)


def _counted(rows, runs):
    rows = getattr(rows, "objects", rows).filter(run__in=runs).order_by()
    return rows.values_list("run").annotate(Count("pk"))


# %(uses)s has (key, project) of each use. What nobody has used yet is of its author's only project.
OWNED = """
WITH usual AS (SELECT id FROM runs_project WHERE slug = 'default'),
used AS (
    SELECT key, min(project) AS project, count(DISTINCT project) AS projects
    FROM ({uses}) AS uses (key, project) GROUP BY key
), joined AS (
    SELECT user_id, min(project_id) AS project, count(*) AS projects
    FROM runs_membership GROUP BY user_id
)
UPDATE {table} owned SET project_id = CASE
    WHEN used.projects = 1 THEN used.project
    WHEN used.projects IS NULL AND joined.projects = 1 THEN joined.project
    ELSE (SELECT id FROM usual) END
FROM {table} each
    LEFT JOIN used ON used.key = each.id LEFT JOIN joined ON joined.user_id = each.created_by_id
WHERE owned.id = each.id AND owned.project_id IS NULL{which}
"""
PROJECT = "coalesce(campaign.project_id, (SELECT id FROM usual))"
CONFIGURATIONS = OWNED.format(
    table="runs_configuration",
    uses=f"""
        SELECT configuration_id, {PROJECT} FROM runs_campaign campaign
        WHERE configuration_id IS NOT NULL
        UNION ALL SELECT varied.configuration_id, {PROJECT}
        FROM runs_campaignconfiguration varied JOIN runs_campaign campaign
            ON campaign.id = varied.campaign_id""",
    which=" AND owned.origin = 'own'",
)
WORKLOADS = OWNED.format(
    table="runs_workload",
    uses=f"""
        SELECT version.workload_id, {PROJECT}
        FROM runs_workloadversion version JOIN runs_cell cell ON cell.workload_version_id = version.id
            JOIN runs_campaign campaign ON campaign.id = cell.campaign_id""",
    which="",
)


USED = """
WITH usual AS (SELECT id FROM runs_project WHERE slug = 'default'),
summarised AS (
    SELECT DISTINCT metric_id, cell.campaign_id
    FROM runs_cellsummary summary JOIN runs_cell cell ON cell.id = summary.cell_id
),
-- Of what has no summary, as of runs that failed, the oldest and the newest figure.
other AS (
    SELECT metric.id AS metric_id, run.campaign_id FROM runs_metric metric CROSS JOIN LATERAL (
        (SELECT run_id FROM runs_measurement WHERE metric_id = metric.id ORDER BY run_id LIMIT 1)
        UNION ALL
        (SELECT run_id FROM runs_measurement WHERE metric_id = metric.id
         ORDER BY run_id DESC LIMIT 1)
    ) AS figure JOIN runs_run run ON run.id = figure.run_id
    WHERE NOT EXISTS (SELECT FROM summarised WHERE summarised.metric_id = metric.id)
), used AS (
    SELECT metric_id, min(coalesce(project_id, (SELECT id FROM usual))) AS project,
        count(DISTINCT coalesce(project_id, (SELECT id FROM usual))) AS projects,
        bool_or(origin = 'published') AS is_published
    FROM (SELECT * FROM summarised UNION ALL SELECT * FROM other) AS found
        JOIN runs_campaign campaign ON campaign.id = campaign_id
    GROUP BY metric_id
)
UPDATE runs_metric metric SET project_id = used.project FROM used
WHERE used.metric_id = metric.id AND projects = 1 AND NOT is_published
    AND metric.project_id IS NULL
    AND (name, unit, direction) NOT IN (
        SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])
    ) AND name <> ALL(%s)
"""


def own(apps, editor):
    """Give each metric to the only project that uses it, unless BenchLab itself names it."""
    from runs.scenarios import registry as scenarios
    from runs.tools import registry as tools

    shared = [(each.name, each.unit, each.direction) for each in tools.metrics().values()]
    with editor.connection.cursor() as cursor:
        columns = [list(each) for each in zip(*shared, strict=True)]
        cursor.execute(USED, [*columns, list(scenarios.metrics())])


def take_out(apps, _editor):
    """Store the members of each pack by themselves, then remove it; a pack that is lost is named."""
    from runs.services.runs import artifacts, file_store

    for pack in apps.get_model("runs", "Pack").objects.order_by("pk").iterator():
        key = f"packs/{pack.pk.hex[:2]}/{pack.pk.hex}.zip"
        try:
            with file_store.opened(key) as content:
                whole = io.BytesIO(content.read())
        except FileNotFoundError:
            logger.warning("%s is lost: manage.py verify --files names its files", key)
        else:
            with zipfile.ZipFile(whole) as members:
                for name in members.namelist():
                    single = artifacts.key_of(name.removesuffix(".gz"))
                    if not file_store.exists(single):
                        file_store.write(single, members.read(name))
        # Only now: what was cut off begins with this pack again.
        pack.delete()
        file_store.path_of(key).unlink(missing_ok=True)
        if bucket.is_set():
            bucket.remove(key)


NAMES = ("read_bandwidth", "write_bandwidth")


def rename(apps, schema_editor):
    """Only rows that all projects share, in the scenario's unit: their figures stay theirs."""
    metrics = apps.get_model("runs", "Metric").objects
    for name in NAMES:
        metrics.filter(project=None, name=name, unit="MB/s").update(name=f"storage_{name}")


def text(most, **more):
    return models.CharField(max_length=most, blank=True, db_default="", **more)


def project(name, on_delete=CASCADE, **more):
    return ForeignKey("runs.project", on_delete, null=True, related_name=name, **more)


def by_python(function, **more):
    return migrations.RunPython(function, migrations.RunPython.noop, **more)


class Migration(InSteps):
    dependencies = [("runs", "0055_partitions")]
    replaces = [
        ("runs", "0056_no_publication_drafts"),
        ("runs", "0057_marks"),
        ("runs", "0058_configurations_of_projects"),
        ("runs", "0060_hidden_settings"),
        ("runs", "0061_metrics_of_projects"),
        ("runs", "0062_campaigns_uploaded_as"),
        ("runs", "0063_no_packs"),
        ("runs", "0064_storage_metrics"),
    ]

    operations = in_steps(
        [
            # Files first, then the table.
            by_python(export, atomic=False),
            migrations.DeleteModel("PublicationDraft"),
            migrations.AddField("sealrequest", "figures", text(64)),
            migrations.AddField("sealrequest", "place", models.PositiveBigIntegerField(db_default=0)),
            migrations.AddField("sealrequest", "mark", text(64)),
            migrations.AddField("sealrequest", "refused", text(40)),
            migrations.AddField("auditentry", "mark", text(64, default="")),
            migrations.AlterField("auditentry", "at", models.DateTimeField(default=timezone.now)),
            migrations.AddField("instance", "unsealed_mark", text(64, default="")),
            migrations.CreateModel(
                name="AuditLink",
                fields=[
                    ("number", models.PositiveBigIntegerField(primary_key=True, serialize=False)),
                    ("entry", models.BigIntegerField(unique=True)),
                    ("hash", models.BinaryField(max_length=32)),
                    ("key", models.BinaryField(max_length=32)),
                    ("signature", models.BinaryField(max_length=64)),
                ],
                options={"ordering": ["number"]},
            ),
            by_python(begin_update),
            by_python(hide, atomic=False),
            migrations.AddField("configuration", "project", project("configurations")),
            migrations.AddField("workload", "project", project("workloads")),
            migrations.RunSQL(CONFIGURATIONS, migrations.RunSQL.noop),
            migrations.RunSQL(WORKLOADS, migrations.RunSQL.noop),
            migrations.AddField("metric", "project", project("metrics", PROTECT, db_index=False)),
            migrations.AddConstraint(
                "metric",
                models.UniqueConstraint(
                    fields=["name"], condition=Q(project=None), name="metric_once"
                ),
            ),
            migrations.AddConstraint(
                "metric",
                models.UniqueConstraint(fields=["project", "name"], name="metric_once_in_project"),
            ),
            migrations.AlterField("metric", "name", models.SlugField(max_length=80)),
            by_python(own),
            migrations.AddField(
                "campaign",
                "uploaded_as",
                models.SlugField(
                    blank=True, db_default="", db_index=False, default="", max_length=120
                ),
            ),
            migrations.AddConstraint(
                "campaign",
                models.UniqueConstraint(
                    condition=~Q(uploaded_as=""),
                    fields=["project", "uploaded_as"],
                    name="campaign_once_as_uploaded",
                ),
            ),
            by_python(take_out, atomic=False),
            migrations.DeleteModel("PackedFile"),
            migrations.DeleteModel("Pack"),
            migrations.RemoveField("instance", "packed_up_to"),
            by_python(rename),
        ]
    )
