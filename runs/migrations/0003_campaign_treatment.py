"""What a campaign asks of its machines, beside its scenario."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0002_archive_and_uploads")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="treatment",
            field=models.JSONField(default=dict),
        ),
    ]
