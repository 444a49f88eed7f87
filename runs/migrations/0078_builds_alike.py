"""What compiled an installation, and which of several releases an observation measures."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0077_public_states")]

    operations = [
        migrations.AddField(
            "installation", "compiler", models.CharField(blank=True, db_default="", max_length=200)
        ),
        migrations.AddField(
            "observation",
            "releases",
            models.CharField(
                db_default="newest", default="alike", max_length=10, verbose_name="releases"
            ),
        ),
    ]
