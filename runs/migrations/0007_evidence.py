"""What an uploaded run's load was, and how far a run may be relied on."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0006_inference")]

    operations = [
        migrations.AddField(
            model_name="cell",
            name="workload",
            field=models.JSONField(
                default=dict, db_default=models.Value({}, models.JSONField())
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="validity",
            field=models.CharField(
                blank=True,
                choices=[
                    ("valid", "valid"),
                    ("doubtful", "doubtful"),
                    ("invalid", "not valid"),
                ],
                db_default="",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="certificate",
            field=models.JSONField(
                default=dict, db_default=models.Value({}, models.JSONField())
            ),
        ),
        migrations.AddField(
            model_name="run",
            name="again_of",
            field=models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=models.SET_NULL,
                related_name="again",
                to="runs.run",
            ),
        ),
        migrations.AddIndex(
            model_name="run",
            index=models.Index(
                condition=models.Q(("again_of__isnull", False)),
                fields=["again_of"],
                name="run_measured_again",
            ),
        ),
        migrations.AddField(
            model_name="campaign",
            name="remeasures",
            field=models.PositiveSmallIntegerField(
                db_default=1, default=1, verbose_name="repeats of doubtful runs"
            ),
        ),
    ]
