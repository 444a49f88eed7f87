"""When and why a change was refuted. What was refuted before has neither."""

from django.db import migrations, models

from benchlab.gentle_migrations import AddCheck, InSteps

REASONS = [
    ("later_runs", "later runs no longer show it"),
    ("withdrawn", "its run was withdrawn"),
    ("newer_rules", "newer rules do not find it"),
]
DECISIONS = [(each, each) for each in ("open", "confirmed", "dismissed", "refuted")]


class Migration(InSteps):
    dependencies = [("runs", "0068_campaign_changes")]

    operations = [
        migrations.AddField("change", "settled_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "change",
            "reason",
            models.CharField(
                max_length=20, choices=REASONS, blank=True, default="", db_default=""
            ),
        ),
        migrations.AlterField(
            "change",
            "decision",
            models.CharField(max_length=10, choices=DECISIONS, default="open"),
        ),
        AddCheck(
            "change",
            models.CheckConstraint(
                condition=models.Q(reason__in=[*(each for each, _text in REASONS), ""]),
                name="change_reason_is_known",
            ),
        ),
    ]
