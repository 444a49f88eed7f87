"""Requests to seal and entries of the audit trail have a mark by a key outside the database.

What waits without one, and what services of the release before still store, is marked by control
some minutes later: the mark of the update, made here, lets it (`runs.seals.services.seals`).
"""

from datetime import UTC

from django.db import migrations, models
from django.utils import timezone

from benchlab.gentle_migrations import InSteps
from runs.access.selectors import macs


def begin_update(apps, schema_editor):
    """Where something is stored. One row."""
    Run, AuditEntry = apps.get_model("runs", "Run"), apps.get_model("runs", "AuditEntry")
    if not (AuditEntry.objects.exists() or Run.objects.exclude(origin="published").exists()):
        return
    Instance, now = apps.get_model("runs", "Instance"), timezone.now()
    Instance.objects.get_or_create(pk=1)
    mark = macs.mark(macs.UPDATE, now.astimezone(UTC).isoformat())
    Instance.objects.update(unsealed_since=now, unsealed_mark=mark)


def text(most):
    return models.CharField(max_length=most, blank=True, db_default="")


class Migration(InSteps):
    dependencies = [("runs", "0056_no_publication_drafts")]

    operations = [
        migrations.AddField("sealrequest", "figures", text(64)),
        migrations.AddField("sealrequest", "place", models.PositiveBigIntegerField(db_default=0)),
        migrations.AddField("sealrequest", "mark", text(64)),
        migrations.AddField("sealrequest", "refused", text(40)),
        migrations.AddField(
            "auditentry",
            "mark",
            models.CharField(max_length=64, blank=True, default="", db_default=""),
        ),
        migrations.AlterField(
            "auditentry", "at", models.DateTimeField(default=timezone.now)
        ),
        migrations.AddField(
            "instance",
            "unsealed_mark",
            models.CharField(max_length=64, blank=True, default="", db_default=""),
        ),
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
        migrations.RunPython(begin_update, migrations.RunPython.noop, elidable=True),
    ]
