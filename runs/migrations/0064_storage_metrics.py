"""The bandwidths of the scenario get names of their own: `read_bandwidth` is fio's, in MiB/s."""

from django.db import migrations

from benchlab.gentle_migrations import InSteps

NAMES = ("read_bandwidth", "write_bandwidth")


def rename(apps, schema_editor):
    """Only rows that all projects share, in the scenario's unit: their figures stay theirs."""
    metrics = apps.get_model("runs", "Metric").objects
    for name in NAMES:
        metrics.filter(project=None, name=name, unit="MB/s").update(name=f"storage_{name}")


class Migration(InSteps):
    dependencies = [("runs", "0063_no_packs")]

    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
