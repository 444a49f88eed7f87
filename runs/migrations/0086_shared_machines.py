"""Which machine a server is: registrations of one machine measure in turn."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    """Nothing is known of any server until it is inspected, or a run starts there."""

    dependencies = [("runs", "0085_cancelled_campaigns")]

    operations = [
        migrations.CreateModel(
            name="Machine",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.AddField(
            model_name="server",
            name="identity",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()), default=dict
            ),
        ),
        migrations.AddField(
            model_name="server",
            name="is_apart",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="server",
            name="machine",
            field=models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="servers",
                to="runs.machine",
            ),
        ),
    ]
