"""Cells of uploads made at the same time can have one ordinal: their order is that of their keys."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0037_unsealed")]

    operations = [
        migrations.AlterModelOptions("cell", {"ordering": ["campaign", "ordinal", "pk"]}),
    ]
