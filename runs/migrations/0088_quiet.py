"""How busy servers are while no run has them, and campaigns that wait until they are free."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Nothing is known of any load until a worker asks."""

    dependencies = [("runs", "0087_copies")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="waits_for_quiet",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AddField(
            model_name="server", name="load_at", field=models.DateTimeField(null=True)
        ),
        migrations.AddField(
            model_name="server",
            name="load_programs",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddField(
            model_name="server", name="load_share", field=models.FloatField(null=True)
        ),
        migrations.AddField(
            model_name="server", name="quiet_since", field=models.DateTimeField(null=True)
        ),
    ]
