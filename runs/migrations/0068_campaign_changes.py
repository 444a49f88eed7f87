"""What a campaign measures otherwise than the publication that it reproduces."""

from django.db import migrations, models

from benchlab.gentle_migrations import InSteps


class Migration(InSteps):
    dependencies = [("runs", "0067_words_of_validity")]

    operations = [
        migrations.AddField("campaign", "changes", models.JSONField(null=True)),
    ]
