"""The revision history and the licence of an edition's report, as people write them."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0089_slices")]

    operations = [
        migrations.AddField(
            model_name="edition",
            name="history",
            field=models.TextField(blank=True, db_default="", verbose_name="revision history"),
        ),
        migrations.AddField(
            model_name="edition",
            name="licence",
            field=models.TextField(blank=True, db_default="", verbose_name="licence"),
        ),
    ]
