"""Changes of the machine: their kind, and what is known to have changed there."""

from django.db import migrations, models

from benchlab.gentle_migrations import AddCheck, InSteps

KINDS = [("step", "step"), ("machine", "machine"), ("alarm", "alarm")]


class Migration(InSteps):
    dependencies = [("runs", "0071_gate_answers")]

    operations = [
        migrations.AddField(
            "change",
            "facts",
            models.JSONField(default=list, db_default=models.Value([], models.JSONField())),
        ),
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField("change", "kind", models.CharField(max_length=10, choices=KINDS))
            ]
        ),
        migrations.RemoveConstraint("change", "change_kind_is_known"),
        AddCheck(
            "change",
            models.CheckConstraint(
                condition=models.Q(kind__in=[each for each, _text in KINDS]),
                name="change_kind_is_known",
            ),
        ),
    ]
