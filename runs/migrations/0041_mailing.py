"""Whoever sends a mail notes that in a short transaction, and holds none while the mail is sent."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0038_cell_order")]

    operations = [
        migrations.AddField("campaign", "mailing_since", models.DateTimeField(null=True)),
        migrations.AddField("change", "mailing_since", models.DateTimeField(null=True)),
    ]
