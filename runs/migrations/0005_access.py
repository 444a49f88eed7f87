"""Who may do what, what was done, and what was measured: kept so that nobody changes it unseen."""

from django.db import migrations, models

# Of imports that were not looked at as they are today: such a name is no stored content.
FORGET_NAMELESS = r"DELETE FROM runs_artifact WHERE sha256 !~ '^[0-9a-f]{64}$' OR size < 0"


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_house")]

    operations = [
        migrations.RunSQL(FORGET_NAMELESS, migrations.RunSQL.noop),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.CheckConstraint(
                condition=models.Q(("sha256__regex", "^[0-9a-f]{64}$")),
                name="artifact_named_by_digest",
            ),
        ),
        migrations.AddConstraint(
            model_name="artifact",
            constraint=models.CheckConstraint(
                condition=models.Q(("size__gte", 0)), name="artifact_has_size"
            ),
        ),
    ]
