"""An update from a release without seals: what the old services store meanwhile is sealed as well.

0014 queues the runs that are there. Web services of the old release take uploads until they are
replaced, and know nothing of seals: control looks once for what they stored.
"""

from django.db import migrations, models
from django.db.models.functions import Now


def look_once(apps, schema_editor):
    """Where runs are stored and none has been sealed yet. One row."""
    Run, Seal = apps.get_model("runs", "Run"), apps.get_model("runs", "Seal")
    if Run.objects.exclude(origin="published").exists() and not Seal.objects.exists():
        Instance = apps.get_model("runs", "Instance")
        Instance.objects.get_or_create(pk=1)
        Instance.objects.update(unsealed_since=Now())


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("runs", "0035_figure_node")]

    operations = [
        migrations.AddField("instance", "unsealed_since", models.DateTimeField(null=True)),
        migrations.RunPython(look_once, migrations.RunPython.noop, elidable=True),
    ]
