"""Dumps of loads, which come in parts."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0100_ended_runs_of_servers")]

    operations = [
        migrations.AddField(
            model_name="load",
            name="dump_bytes",
            field=models.BigIntegerField(default=0, db_default=0),
        ),
        migrations.CreateModel(
            name="LoadPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True,
                        primary_key=True,
                        serialize=False,
                        verbose_name="ID",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
                (
                    "load",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="runs.load",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("load", "number"), name="load_part_once"
                    )
                ],
            },
        ),
    ]
