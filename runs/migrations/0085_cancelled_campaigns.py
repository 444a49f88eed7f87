"""When somebody cancelled a whole campaign: a run that is cancelled alone cancels nothing else."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Campaigns that are called cancelled stay so: their state is not derived again."""

    dependencies = [("runs", "0084_kept_clusters")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="cancelled_at",
            field=models.DateTimeField(null=True),
        ),
    ]
