"""Messages as text and values, and what a server at fault must have before its runs go on."""

from django.db import migrations, models

from benchlab.gentle_migrations import InSteps


def _json() -> "models.JSONField[object, object]":
    return models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))


class Migration(InSteps):
    dependencies = [("runs", "0069_refuted_changes")]

    operations = [
        migrations.AddField("run", "wording", _json()),
        migrations.AddField("runevent", "wording", _json()),
        migrations.AddField("server", "wording", _json()),
        migrations.AddField("server", "needs", _json()),
    ]
