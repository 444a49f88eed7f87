"""Changes of the schema for one subject."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("runs", "0004_house")]

    operations = []
