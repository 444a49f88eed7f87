"""Bisections, and the rules by which stored changes were judged."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("runs", "0019_counts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="change",
            name="earliest",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="change",
            name="latest",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="change",
            name="rules",
            field=models.PositiveSmallIntegerField(db_default=1, default=1),
        ),
        migrations.CreateModel(
            name="Bisection",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("finished", "finished"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        default="running",
                        max_length=10,
                    ),
                ),
                ("asked", models.JSONField()),
                ("draft", models.JSONField()),
                ("builds", models.JSONField()),
                ("followed", models.JSONField(default=dict)),
                ("low", models.PositiveIntegerField(default=0)),
                ("high", models.PositiveIntegerField()),
                ("verdict", models.CharField(blank=True, max_length=20)),
                ("is_found", models.BooleanField(default=False)),
                ("rules", models.PositiveSmallIntegerField(default=0)),
                ("message", models.TextField(blank=True)),
                ("fingerprint", models.CharField(max_length=64)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bisections",
                        to="runs.campaign",
                    ),
                ),
                (
                    "created_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bisections",
                        to="runs.project",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bisections",
                        to="runs.server",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="BisectionStep",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("low", models.PositiveIntegerField()),
                ("middle", models.PositiveIntegerField(null=True)),
                ("high", models.PositiveIntegerField()),
                (
                    "bisection",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="steps",
                        to="runs.bisection",
                    ),
                ),
                (
                    "campaign",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="bisection_step",
                        to="runs.campaign",
                    ),
                ),
            ],
            options={
                "ordering": ["bisection", "pk"],
            },
        ),
        migrations.AddIndex(
            model_name="bisection",
            index=models.Index(
                condition=models.Q(("state", "running")), fields=["id"], name="bisection_running"
            ),
        ),
        migrations.AddConstraint(
            model_name="bisection",
            constraint=models.CheckConstraint(
                condition=models.Q(("state__in", ["running", "finished", "failed", "cancelled"])),
                name="bisection_state_is_known",
            ),
        ),
        migrations.AddConstraint(
            model_name="bisection",
            constraint=models.UniqueConstraint(
                condition=models.Q(("state", "running")),
                fields=("campaign", "fingerprint"),
                name="bisection_once_at_a_time",
            ),
        ),
    ]
