"""What was "not valid" is called invalid, as everywhere else. No row changes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0066_alarm_words")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.AlterField(
                    "run",
                    "validity",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("valid", "valid"),
                            ("doubtful", "doubtful"),
                            ("invalid", "invalid"),
                        ],
                        db_default="",
                        max_length=10,
                    ),
                )
            ]
        )
    ]
