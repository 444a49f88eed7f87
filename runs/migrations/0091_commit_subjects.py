"""What a commit says of itself, and where it left the branch that it is compared with."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0090_edition_words")]

    operations = [
        migrations.AddField(
            model_name="revision",
            name="subject",
            field=models.CharField(blank=True, db_default="", max_length=200),
        ),
        migrations.AddField(
            model_name="revision",
            name="author",
            field=models.CharField(blank=True, db_default="", max_length=100),
        ),
        migrations.AddField(
            model_name="revision",
            name="merge_base",
            field=models.CharField(blank=True, db_default="", max_length=64),
        ),
        migrations.AddField(
            model_name="revision",
            name="merge_base_at",
            field=models.DateTimeField(null=True),
        ),
    ]
