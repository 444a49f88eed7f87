"""Changes of the schema for one subject."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0007_evidence")]

    operations = [
        migrations.AlterField(
            model_name="topologynode",
            name="role",
            field=models.CharField(
                choices=[
                    ("database", "database"),
                    ("load_generator", "load generator"),
                    ("clusters", "further clusters"),
                ],
                max_length=20,
            ),
        ),
    ]
