"""Whether a results database is a copy of another one, and who may catch up with its servers."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Control signs it at its next start."""

    dependencies = [("runs", "0086_shared_machines")]

    operations = [
        migrations.AddField(
            model_name="instance",
            name="epoch",
            field=models.PositiveIntegerField(db_default=1, default=1),
        ),
        migrations.AddField(
            model_name="instance",
            name="held_at",
            field=models.CharField(blank=True, db_default="", default="", max_length=80),
        ),
        migrations.AddField(
            model_name="instance",
            name="held_by",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                max_length=10,
            ),
        ),
        migrations.AddField(
            model_name="instance", name="held_since", field=models.DateTimeField(null=True)
        ),
        migrations.AddField(
            model_name="instance",
            name="places",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="instance",
            name="signature",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="lease",
            name="may_catch_up",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
