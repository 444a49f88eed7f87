"""Observations: designs that come back, and their editions."""

from django.conf import settings
from django.db import migrations, models
from django.db.models import deletion

from benchlab.gentle_migrations import InSteps


class Migration(InSteps):
    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
        ("runs", "0072_machine_changes"),
    ]

    operations = [
        migrations.CreateModel(
            name="Observation",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("slug", models.SlugField(max_length=120, unique=True)),
                ("title", models.CharField("title", max_length=150)),
                ("designs", models.JSONField()),
                ("versions", models.JSONField(default=list)),
                ("anchor", models.CharField("anchor", max_length=10)),
                ("night_from", models.TimeField(null=True)),
                ("night_until", models.TimeField(null=True)),
                ("time_zone", models.CharField("time zone", default="UTC", max_length=60)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "configuration",
                    models.ForeignKey("runs.configuration", deletion.SET_NULL, null=True),
                ),
                (
                    "created_by",
                    models.ForeignKey(settings.AUTH_USER_MODEL, deletion.SET_NULL, null=True),
                ),
                (
                    "project",
                    models.ForeignKey(
                        "runs.project", deletion.CASCADE, null=True, related_name="observations"
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        "runs.server", deletion.CASCADE, related_name="observations"
                    ),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.CreateModel(
            name="Edition",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField("edition", max_length=40)),
                ("purpose", models.TextField("purpose", blank=True)),
                ("discussion", models.TextField("discussion", blank=True)),
                ("conclusion", models.TextField("conclusion", blank=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("campaigns", models.ManyToManyField("runs.campaign", related_name="editions")),
                (
                    "observation",
                    models.ForeignKey(
                        "runs.observation", deletion.CASCADE, related_name="editions"
                    ),
                ),
            ],
            options={
                "ordering": ["observation", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("observation", "label"), name="edition_once")
                ],
            },
        ),
    ]
