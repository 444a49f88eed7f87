"""What CI jobs are told is kept from now on; of what was told before nothing is known."""

import django.db.models.deletion
from django.db import migrations, models

from benchlab.gentle_migrations import AddCheck, InSteps


REASONS = [
    ("later_runs", "later runs no longer show it"),
    ("withdrawn", "its run was withdrawn"),
    ("left_behind", "its branch has left the commit behind"),
    ("newer_rules", "newer rules do not find it"),
]


class Migration(InSteps):
    dependencies = [("runs", "0070_wordings")]

    operations = [
        migrations.CreateModel(
            "GateAnswer",
            [
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("base", models.CharField(max_length=300)),
                ("asked", models.JSONField()),
                ("fingerprint", models.CharField(max_length=64)),
                ("overall", models.CharField(max_length=20)),
                ("table", models.JSONField()),
                ("runs", models.TextField()),
                ("rules", models.PositiveSmallIntegerField()),
                ("given_at", models.DateTimeField(auto_now_add=True)),
                (
                    "base_revision",
                    models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name="+", to="runs.revision"),
                ),
                (
                    "campaign",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name="gate_answers", to="runs.campaign"),
                ),
                (
                    "head",
                    models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name="+", to="runs.revision"),
                ),
            ],
            options={"ordering": ["-pk"]},
        ),
        migrations.AddField(
            "revisionref", "known_at", models.DateTimeField(auto_now_add=True, null=True)
        ),
        migrations.AddIndex(
            "gateanswer", models.Index(fields=["head", "-id"], name="gate_answer_by_head")
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "change",
                    "reason",
                    models.CharField(
                        max_length=20, choices=REASONS, blank=True, default="", db_default=""
                    ),
                )
            ]
        ),
        migrations.RemoveConstraint("change", "change_reason_is_known"),
        AddCheck(
            "change",
            models.CheckConstraint(
                condition=models.Q(reason__in=[*(each for each, _text in REASONS), ""]),
                name="change_reason_is_known",
            ),
        ),
    ]
