"""When members were mailed that a campaign's uploads stay away."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_indexes")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="missing_mailed_at",
            field=models.DateTimeField(null=True),
        ),
    ]
