"""The site of a server: only workers that serve it reach the machine."""

from django.core.validators import RegexValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0031_builds")]

    operations = [
        migrations.AddField(
            "server",
            "site",
            models.CharField(
                blank=True,
                default="",
                help_text="The name of the place whose workers reach it, as in BENCHLAB_SITES. Left empty, every worker reaches it.",
                max_length=40,
                validators=[
                    RegexValidator(
                        "^[a-z0-9][a-z0-9-]*$", "Use small letters, digits and hyphens."
                    )
                ],
                verbose_name="site",
            ),
        ),
    ]
