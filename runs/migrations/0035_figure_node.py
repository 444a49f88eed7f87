"""The machine of a printed figure. The next load of the archive fills it in."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0032_sites")]

    operations = [
        migrations.AddField(
            "printedfigure",
            "node",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                to="runs.publishednode",
            ),
        ),
    ]
