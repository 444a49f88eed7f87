"""Packs of small files, and how far control has packed those of runs."""

import uuid

import django.db.models.deletion
from django.db import migrations, models
from django.db.models.functions import Length
from django.db.models.lookups import Exact


class Migration(migrations.Migration):
    dependencies = [("runs", "0048_runs_of_nine")]

    operations = [
        migrations.AddField(
            "instance", "packed_up_to", models.BigIntegerField(db_default=0, default=0)
        ),
        migrations.CreateModel(
            name="Pack",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("size", models.BigIntegerField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.CreateModel(
            name="PackedFile",
            fields=[
                ("digest", models.BinaryField(primary_key=True, serialize=False)),
                ("start", models.IntegerField()),
                ("length", models.IntegerField()),
                ("is_double", models.BooleanField(db_default=False, default=False)),
                (
                    "pack",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="runs.pack",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Exact(Length("digest"), 32),
                        name="packed_file_named_by_digest",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("length__gt", 0), ("start__gte", 0)),
                        name="packed_file_has_place",
                    ),
                ]
            },
        ),
    ]
