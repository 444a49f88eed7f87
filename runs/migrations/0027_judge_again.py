"""Runs that were never judged were passed over, and the instance said that all of them are judged.

So the workers look once more, 100 runs at a time.
"""

from django.db import migrations


def look_again(apps, schema_editor):
    """Forget that all runs are judged. One row."""
    apps.get_model("runs", "Instance").objects.update(judged_rules=0)


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("runs", "0026_rules")]

    operations = [migrations.RunPython(look_again, migrations.RunPython.noop, elidable=True)]
