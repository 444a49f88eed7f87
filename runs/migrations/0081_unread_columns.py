"""Columns that nothing reads."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0080_needless_indexes")]

    operations = [
        migrations.RemoveField("installation", "discovered_at"),
        migrations.RemoveField("preparedcluster", "prepared_at"),
    ]
